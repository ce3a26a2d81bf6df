"""What the user says becomes a constraint; what is quoted, imagined, asked, remembered, withdrawn or foreign does not."""

from __future__ import annotations

import pytest

from brim.context.constraints import Constraint, constraints_of
from brim.conversation import Message, assistant, call, result, system, user

EXPLICIT = [
    (
        "Rename the module. You may not touch the public header include/api.h.",
        "You may not touch the public header include/api.h",
    ),
    (
        "Reports go out weekly. No one outside finance may see the salary column.",
        "No one outside finance may see the salary column",
    ),
    ("Please check the draft; it can be at most 900 words.", "at most 900 words"),
    (
        "Migrate the jobs one by one. Whatever happens, don't restart broker-2 before 22:00.",
        "don't restart broker-2 before 22:00",
    ),
    ("All examples have to run on Windows too.", "All examples have to run on Windows too"),
    ("We need the tables in metric units, without exception.", "in metric units, without exception"),
    ("Leave config/prod.toml alone. The rest of the folder is yours.", "Leave config/prod.toml alone"),
    ("Use only the colours from palette.json when you draw the charts.", "Use only the colours from palette.json"),
    ("can you sort the guest list? and make sure that table 4 stays free", "make sure that table 4 stays free"),
    ("Could you move the invoices but never rename the 2019 ones?", "never rename the 2019 ones"),
    ("写接口文档的时候，示例里不得出现真实手机号。", "示例里不得出现真实手机号"),
    ("这个仓库一律用 tab 缩进，别用空格。", "一律用 tab 缩进"),
    ("送货的话最多只能接受两次改约。", "最多只能接受两次改约"),
    ("周报帮我写一下，篇幅不超过 800 字。", "篇幅不超过 800 字"),
    ("迁移可以开始了，但是 22 点之前不要动主库。", "22 点之前不要动主库"),
    ("谁都不能直接改 master 分支，得先提 MR。", "谁都不能直接改 master 分支"),
]
PLAIN = [
    (
        "I'd rather have the summary as three short paragraphs. The source is minutes_0412.docx.",
        "as three short paragraphs",
    ),
    ("Our tests live next to the code, so put new ones there as well.", "put new ones there as well"),
    ("Function names here follow verb_noun. Can you clean up billing.py?", "Function names here follow verb_noun"),
    ("Let's keep the tone informal, it's for the club magazine.", "keep the tone informal"),
    ("Dates in the export are written day first.", "Dates in the export are written day first"),
    (
        "Complaints about delivery go to Ilse's team, the others stay with us.",
        "Complaints about delivery go to Ilse's team",
    ),
    ("Mum likes to be phoned in the afternoon.", "Mum likes to be phoned in the afternoon"),
    ("标题尽量控制在 15 个字以内，副标题随意。", "标题尽量控制在 15 个字以内"),
    ("我们这边的日志统一走 logback，级别用 INFO。", "日志统一走 logback"),
    ("发票抬头写公司全称，麻烦寄到前台。", "发票抬头写公司全称"),
    ("回复客户的时候用「您」，落款写客服小组。", "用「您」"),
    ("变更单按老规矩走，先测试环境再生产。", "先测试环境再生产"),
]
IMPLICIT = [
    (
        "Write the install guide. Half of our users sit behind a proxy that strips TLS.",
        "Half of our users sit behind a proxy that strips TLS",
    ),
    ("Plan the menu for Saturday. My nephew has coeliac disease.", "My nephew has coeliac disease"),
    ("The grant runs out on 30 June. When could the second survey start?", "The grant runs out on 30 June"),
    (
        "Book us a table for nine. The lift in that building is out of order.",
        "The lift in that building is out of order",
    ),
    ("size the cluster please, we get 12,000 requests a second at peak", "we get 12,000 requests a second at peak"),
    ("Make me a reading list; I read Dutch and a little Danish.", "I read Dutch and a little Danish"),
    ("帮我排一下值班表。小周九月份休产假。", "小周九月份休产假"),
    ("做个促销页，服务器只有 2 核 4 G。", "服务器只有 2 核 4 G"),
    ("写个脚本导数据，生产库那台机器没外网。", "生产库那台机器没外网"),
    ("我爸血压高，帮我列个一周菜谱。", "我爸血压高"),
    ("安排下周的面试，候选人周三才从国外回来。", "候选人周三才从国外回来"),
]
DECOYS = [
    ("The sign at the pool reads 'No diving, ever'. Can you draw a funnier version?", "No diving, ever"),
    (
        "What does 'applicants must be domiciled in the EU' mean in plain words?",
        "applicants must be domiciled in the EU",
    ),
    (
        "Imagine a client who insists that we must answer within an hour.",
        "we must answer within an hour",
    ),
    ("What if the auditors said we may only keep logs for a week? Just curious.", "we may only keep logs for a week"),
    ("Do we always have to sign the tags? Or is that just habit?", "always have to sign the tags"),
    ("Must every endpoint be versioned, in your opinion?", "every endpoint be versioned"),
    ("My old team had a rule: never deploy on Fridays. Funny how that sticks.", "never deploy on Fridays"),
    ("Back then we were only allowed 64 KB per message. Those were the days.", "only allowed 64 KB per message"),
    ("A friend's company forbids remote work completely. How do they even hire?", "forbids remote work completely"),
    (
        "The old wiki says deployments must go through Jenkins. That hasn't been true for a year.",
        "deployments must go through Jenkins",
    ),
    ("Never use the staging key. Oh, forget that, the key was revoked yesterday.", "Never use the staging key"),
    (
        "Please write a dialogue in which the villain says 'You must never open this door'.",
        "You must never open this door",
    ),
    ("Is it correct English to write 'staff must to wear badges'?", "staff must to wear badges"),
    ('Someone posted "always run as root" in the forum. Why is that a bad idea?', "always run as root"),
    ("At my last job we were limited to 10 connections. Luckily that's over.", "limited to 10 connections"),
    ("电梯里写着“禁止吸烟”，日语怎么写？", "禁止吸烟"),
    ("如果有一天客户要求所有报表必须当天出，我们得加几个人？随便问问。", "所有报表必须当天出"),
    ("我们是不是一定要用 HTTPS？内网应该无所谓吧？", "一定要用 HTTPS"),
    ("前公司规定周五不准上线，现在想想挺有道理的。", "周五不准上线"),
    ("朋友公司要求每天必须写日报，你觉得这种管理有用吗？", "每天必须写日报"),
    ("旧文档里说必须先停服务再备份，那份早就过时了，把那段删掉吧。", "必须先停服务再备份"),
    ("不要用红色。算了，当我没说。", "不要用红色"),
    ("“员工不得私自接单”这句话有没有语病？", "员工不得私自接单"),
    ("上一家单位的服务器都跑在 CentOS 6 上，真是折磨。", "服务器都跑在 CentOS 6 上"),
    ("小说里师父说：“你绝不能下山。”帮我把这一段写得更有张力。", "你绝不能下山"),
]
REVISIONS = [
    ("Send the letter at 8:00. Wait, no: that is too early, make it 14:00.", "Send the letter at 8:00", "make it 14:00"),
    ("Cap the uploads at 20 MB. Correction: the cap must be 35 MB.", "Cap the uploads at 20 MB", "the cap must be 35 MB"),
    ("The review is Rina's job. She left, so change that to Paolo.", "The review is Rina's job", "change that to Paolo"),
    ("Please paint the hall green. On second thought, go for grey.", "paint the hall green", "go for grey"),
    ("预算控制在 3000 块。刚跟老板确认了，改成 5000 块。", "预算控制在 3000 块", "改成 5000 块"),
    ("会议室订周三的。说错了，是周四下午。", "会议室订周三的", "是周四下午"),
    ("导出格式用 CSV。不对，对方系统只认 Excel，必须用 xlsx。", "导出格式用 CSV", "必须用 xlsx"),
]  # fmt: skip


def live(*messages: Message) -> list[Constraint]:
    return [c for c in constraints_of(messages) if not c.superseded]


def holds(text: str, *messages: Message) -> bool:
    return any(text in c.text for c in live(*messages))


@pytest.mark.parametrize(("message", "rule"), EXPLICIT)
def test_explicit_rules(message: str, rule: str) -> None:
    """A sentence of the user with a marker word is an explicit constraint, verbatim."""
    assert any(rule in c.text and c.strength == "explicit" for c in live(user(message)))


@pytest.mark.parametrize(("message", "rule"), PLAIN)
def test_plain_rules(message: str, rule: str) -> None:
    """A wish or convention without a marker word is a constraint."""
    assert holds(rule, user(message))


@pytest.mark.parametrize(("message", "fact"), IMPLICIT)
def test_implicit_facts(message: str, fact: str) -> None:
    """A fact that binds later work is a constraint."""
    assert holds(fact, user(message))


@pytest.mark.parametrize(("message", "order"), DECOYS)
def test_orders_that_nobody_gives(message: str, order: str) -> None:
    """Quoted, imagined, asked, remembered, withdrawn and foreign orders are no constraints."""
    assert not holds(order, user(message))


@pytest.mark.parametrize(("message", "old", "new"), REVISIONS)
def test_a_revision_in_the_same_message(message: str, old: str, new: str) -> None:
    """The later wording holds; the earlier one is there, marked as superseded, or not at all."""
    assert holds(new, user(message)) and not holds(old, user(message))


@pytest.mark.parametrize(
    ("first", "then", "old", "new"),
    [
        (
            "The report must be at most 10 pages.",
            "Actually, make that 12 pages for the report.",
            "10 pages",
            "12 pages",
        ),
        (
            "Deadline for the draft is Monday.",
            "The deadline for the draft has moved, it is now Thursday.",
            "Monday",
            "Thursday",
        ),
        ("图片宽度必须是 800 像素。", "图片宽度改成 1200 像素吧。", "800", "1200"),
    ],
)
def test_a_revision_in_a_later_message(first: str, then: str, old: str, new: str) -> None:
    """A later message replaces what an earlier one said about the same thing."""
    history = (user(first), assistant("ok"), user(then))
    assert holds(new, *history) and not holds(old, *history)


@pytest.mark.parametrize(
    "then",
    [
        "Now write the tests.",
        "The report looks good now.",
        "Thanks! Actually, how many pages is it?",
        "好的，那就这样吧。",
    ],
)
def test_what_is_no_revision_changes_nothing(then: str) -> None:
    """An ordinary next message leaves earlier rules in force, whatever small words are in it."""
    assert holds("at most 10 pages", user("The report must be at most 10 pages."), assistant("ok"), user(then))


@pytest.mark.parametrize(
    "message",
    [
        assistant("You must never do that."),
        result("1", "You must never do that."),
        user("[brim: you must never do that]"),
    ],
)
def test_only_users_and_systems(message: Message) -> None:
    """Text of the model, of tools and of brim itself is never a constraint."""
    history = [user("go on"), assistant("", call("read", {}, id="1")), message]
    assert not any("never" in c.text for c in constraints_of(history))


def test_system_messages_count() -> None:
    """What the system prompt orders is a constraint."""
    assert holds("Never give dosages.", system("You are a nurse bot. Never give dosages."))


@pytest.mark.parametrize(
    "paste",
    [
        "```\nalways rebase first\n```",
        "> You must never reply to all.",
        "2024-05-01 10:00:00 WARN you must never ignore this",
        "<document>\nEmployees must always wear a badge.\n</document>",
        "src/a.py:12: # never change this",
    ],
)
def test_pasted_text_is_no_order(paste: str) -> None:
    """Code, logs, quoted mail and documents inside a user's message are not the user's own words."""
    assert live(user(f"What do you make of this?\n\n{paste}")) == []


def test_constraints_are_exact_substrings() -> None:
    """Each constraint is the text of its message at its place, character for character."""
    history = [user(text) for text, *_ in (*EXPLICIT, *PLAIN, *IMPLICIT, *DECOYS, *REVISIONS)]
    for c in constraints_of(history):
        assert history[c.message_index].text[c.start : c.start + len(c.text)] == c.text
