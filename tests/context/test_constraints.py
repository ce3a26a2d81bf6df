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
    (
        "We start the data migration tonight. Under no condition should the legacy tables be dropped.",
        "Under no condition should the legacy tables be dropped",
    ),
    (
        "Draft the tender reply. It is essential that our hourly rate of 94 euros stays out of it.",
        "our hourly rate of 94 euros stays out of it",
    ),
    (
        "I want the API docs done by Friday; nobody but Lucia gets the admin token.",
        "nobody but Lucia gets the admin token",
    ),
    (
        "The plaque text needs work. Capital letters are not an option, the engraver refuses them.",
        "Capital letters are not an option",
    ),
    (
        "Ship to the depot. Parcels above 30 kg are forbidden on the lift.",
        "Parcels above 30 kg are forbidden on the lift",
    ),
    (
        "ok go ahead with the refactor but dont touch the generated files in gen/",
        "dont touch the generated files in gen/",
    ),
    ("Each slide has to carry the project number GA-7741.", "Each slide has to carry the project number GA-7741"),
    ("帮我订个会议室，话说投影坏的那间不行。", "投影坏的那间不行"),
    ("合同改一改，违约金那条一个字都不能动。", "违约金那条一个字都不能动"),
    ("数据导出之前先脱敏，身份证号绝对不可以明文出现。", "身份证号绝对不可以明文出现"),
    ("给客户的邮件里勿提内部代号「青鸟」。", "勿提内部代号「青鸟」"),
    ("每次发版都要先打 tag，没打 tag 的一概不上。", "没打 tag 的一概不上"),
    (
        "Legal says we must keep the imprint on every page. Please update the footer in site/base.html.",
        "we must keep the imprint on every page",
    ),
    (
        "The client wrote that the logo must appear on every sheet. Can you adapt the template?",
        "the logo must appear on every sheet",
    ),
    (
        "According to the fire officer, no more than 40 guests may be in the hall. Plan the seating.",
        "no more than 40 guests may be in the hall",
    ),
    ("My manager told me the launch date is fixed: 3 November, no later.", "3 November, no later"),
    ("The bank insists on wet signatures, so never send the form as a PDF.", "never send the form as a PDF"),
    ("老板说了，报价单上不许出现折扣两个字。", "报价单上不许出现折扣两个字"),
    ("按照消防要求，走廊里禁止堆放纸箱，排版位置图时注意。", "走廊里禁止堆放纸箱"),
    ("医生交代我妈不能吃柚子，帮我排一下菜单。", "我妈不能吃柚子"),
    ("If the tests fail, do not merge, tell me instead.", "do not merge"),
    ("如果接口超时，千万不要重试，直接报警。", "千万不要重试"),
    ("When you quote the CEO, always use her full title 'Chair and Chief Executive'.", "always use her full title"),
    ("Call the column 'net_total', never 'sum'.", "Call the column 'net_total'"),
    ("文件名统一用「日期_客户」的格式，不要带空格。", "不要带空格"),
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
    (
        "Write to Dr. Okafor about the samples. She goes by her first name, Adaeze, in letters.",
        "She goes by her first name, Adaeze, in letters",
    ),
    (
        "New migrations get a number from the wiki page, the next is 0312.",
        "New migrations get a number from the wiki page",
    ),
    ("Could you make the chart? Our reports use the teal palette.", "Our reports use the teal palette"),
    (
        "We round prices up to the next ten cents. What does the new list look like?",
        "We round prices up to the next ten cents",
    ),
    ("Answers in Spanish would suit me best.", "Answers in Spanish would suit me best"),
    (
        "Invoices over 5,000 land on Petra's desk before they go out.",
        "Invoices over 5,000 land on Petra's desk before they go out",
    ),
    ("The team writes tests before code here, so the same for this ticket.", "The team writes tests before code here"),
    ("Short sentences, no jargon, please. It's a leaflet for patients.", "Short sentences, no jargon, please"),
    ("分支名我们都带上工单号，比如 QX-118-login。", "分支名我们都带上工单号"),
    ("价格保留两位小数，四舍五入。", "价格保留两位小数"),
    ("孩子的名字写小名豆豆就好。", "写小名豆豆就好"),
    ("超过两百的报销归财务老赵看。", "超过两百的报销归财务老赵看"),
    ("图表配色跟公司模板走。", "图表配色跟公司模板走"),
    ("晚上九点以后别给我打电话，发短信吧。", "别给我打电话"),
    ('Replies to the parish go out signed "The Vestry".', "Replies to the parish go out signed"),
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
    (
        "Please plan the route for the delivery van. The bridge on Mill Street carries 3.5 tonnes.",
        "The bridge on Mill Street carries 3.5 tonnes",
    ),
    ("Optimise the image pipeline. The target phones have 1 GB of RAM.", "The target phones have 1 GB of RAM"),
    ("I need a bedtime story. Our daughter is afraid of dogs.", "Our daughter is afraid of dogs"),
    ("Prepare the training. Half the staff work nights.", "Half the staff work nights"),
    (
        "Migrate the forum to the new host. The licence for the old one lapses on 14 March.",
        "The licence for the old one lapses on 14 March",
    ),
    ("Suggest a gift for grandpa. He lost his sense of smell.", "He lost his sense of smell"),
    ("Set up the backup. We pay per gigabyte of egress.", "We pay per gigabyte of egress"),
    ("帮我做个旅游攻略，同行的有位老人坐轮椅。", "同行的有位老人坐轮椅"),
    ("写个定时任务。服务器凌晨三点到五点自动关机。", "服务器凌晨三点到五点自动关机"),
    ("推荐几家餐厅吧，我老婆吃素。", "我老婆吃素"),
    ("网站改版，用户里一大半还在用 IE11。", "用户里一大半还在用 IE11"),
    ("出个采购清单，经费还剩 4,300 元。", "经费还剩 4,300 元"),
    ("By the way, Tomas is the only one with the key to the server room.", "Tomas is the only one with the key"),
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
    (
        "How do lawyers phrase 'the tenant shall not sublet'? I'm reading a contract for fun.",
        "the tenant shall not sublet",
    ),
    ("Pretend my boss told us to always answer in rhyme. Write one example.", "always answer in rhyme"),
    ("Would we have to encrypt everything if we went public?", "have to encrypt everything"),
    ("My landlord at the old flat never allowed pets. The new one does.", "never allowed pets"),
    ("In the army we had to polish boots twice a day, I still laugh about it.", "had to polish boots twice a day"),
    ("The README of that abandoned fork claims you must install Python 2. Ignore it.", "you must install Python 2"),
    ("Use blue for the header. Never mind, I'll do the header myself.", "Use blue for the header"),
    ("Is there a rule that commits must be signed?", "commits must be signed"),
    ("My sister's office bans headphones. Can you imagine?", "bans headphones"),
    (
        'There\'s a poster in the canteen: "Trays must be returned". I need a Dutch version of it.',
        "Trays must be returned",
    ),
    ("If one day we had a million users, would we need to shard?", "need to shard"),
    ("The test string is 'do not delete me', count its vowels.", "do not delete me"),
    ('Explain the phrase "thou shalt not covet" to a ten-year-old.', "thou shalt not covet"),
    ("Some people say you should never comment code. What's your take?", "you should never comment code"),
    ("The previous vendor only delivered on Mondays, which was a pain.", "only delivered on Mondays"),
    ("Rewrite this sentence so it sounds friendlier: 'Payments must arrive by noon.'", "Payments must arrive by noon"),
    ("I dreamt that all our code had to be written in COBOL.", "all our code had to be written in COBOL"),
    ("把“严禁攀爬”翻成法语。", "严禁攀爬"),
    ("要是哪天公司要求全员必须坐班，你觉得离职率会涨多少？", "全员必须坐班"),
    ("听说别的部门一律不许用外部邮箱，真的假的？", "一律不许用外部邮箱"),
    ("大学那会儿宿舍十一点必须熄灯，怀念啊。", "宿舍十一点必须熄灯"),
    ("日志里这句 must not be null 是啥意思？", "must not be null"),
    ("标题必须加粗。哦这条不用管了，模板已经改好了。", "标题必须加粗"),
    ("“客户永远是对的”这话你怎么看？", "客户永远是对的"),
    ("老版说明书写着只能用 5 号电池，那是上一代机型的，跟这台没关系。", "只能用 5 号电池"),
    ("难道每个接口都必须写单测？", "每个接口都必须写单测"),
    ("我表弟他们学校禁止带手机，你说严不严。", "禁止带手机"),
    ("举个例子，假设甲方说“周末也必须在线”，合同里该怎么写？", "周末也必须在线"),
    (
        'What would you do if a customer said "you must refund me today"? Asking for a training video.',
        "you must refund me today",
    ),
    ("The museum label reads 'Do not touch'. Find me three synonyms for 'touch'.", "Do not touch"),
    ("Years back I worked at a bank where every change needed nine approvals.", "every change needed nine approvals"),
    ("Should we always use UTC, or is local time fine for a kiosk?", "always use UTC"),
    (
        "Let's assume for a moment that all data must stay in Norway. How much would that cost?",
        "all data must stay in Norway",
    ),
    (
        "I read an article claiming that startups should never hire remotely. Rubbish, if you ask me.",
        "startups should never hire remotely",
    ),
    ("Our competitor only ships on Tuesdays, weird isn't it?", "only ships on Tuesdays"),
    ("Make every heading red. Hmm, forget it, leave them as they were.", "Make every heading red"),
    ("My grandmother's rule was never to wash wool. What's your view on wool cycles?", "never to wash wool"),
    (
        "The spec draft from 2018 says passwords must have 6 characters; it was withdrawn in 2020.",
        "passwords must have 6 characters",
    ),
    ('Could you check the grammar of "all visitors has to sign in"?', "all visitors has to sign in"),
    ("In the film the captain shouts 'Nobody leaves this ship!' Which year was that?", "Nobody leaves this ship"),
    ("A colleague at another firm told me they may only deploy at night.", "they may only deploy at night"),
    ("Why do so many style guides say you must avoid the passive?", "you must avoid the passive"),
    ("请把下面这句改得口语一点：“请务必携带身份证件”。", "请务必携带身份证件"),
    ("我朋友那边规定出差只能坐高铁，你说是不是太死板了？", "出差只能坐高铁"),
    ("假如明年起所有系统都必须国产化，我们大概要换多少台机器？", "所有系统都必须国产化"),
    ("上大学的时候实验报告必须手写，现在想想真浪费时间。", "实验报告必须手写"),
    ("网上有人说绝对不能空腹喝牛奶，有科学依据吗？", "绝对不能空腹喝牛奶"),
    ("按钮一律做成圆角。哎算了，还是等设计师来定吧。", "按钮一律做成圆角"),
    ("这句报错 You must specify a region 是什么意思？", "You must specify a region"),
    ("“本店概不退换”这种告示合法吗？", "本店概不退换"),
    ("原来那份合同要求七天内付款，不过已经作废了。", "七天内付款"),
    ("为什么很多公司都要求必须双周迭代？", "必须双周迭代"),
    ("A waiter once told me that guests must order two courses. Is that even legal?", "guests must order two courses"),
    ("For the quiz night: which country says drivers may only use winter tyres?", "drivers may only use winter tyres"),
    ("The error text says 'file must not be empty'. Where does it come from?", "file must not be empty"),
    ("Suppose the contract said we can never raise prices, what could we do?", "we can never raise prices"),
    (
        "My ex always wanted the lights off by ten. Anyway, which lamp would you buy?",
        "always wanted the lights off by ten",
    ),
    ("Add a footer. No, drop that idea, the page is full already.", "Add a footer"),
    ("Is it true that pilots must not wear beards?", "pilots must not wear beards"),
    ("What's the Latin for 'let no one enter'?", "let no one enter"),
    ("Two jobs ago, all our laptops were limited to 4 GB. Horrible.", "limited to 4 GB"),
    ("The intern suggested we should always squash commits; I told him no.", "always squash commits"),
    (
        "According to an outdated FAQ, returns must be posted within 5 days. Please fix that FAQ.",
        "returns must be posted within 5 days",
    ),
    ('How strict is too strict? E.g. "Never speak before noon".', "Never speak before noon"),
    ("把「请勿喂食」这块牌子的英文想得俏皮一点。", "请勿喂食"),
    ("我们以前的甲方规定每天必须交日报，想起来都头大。", "每天必须交日报"),
    ("如果老板突然说预算只有一半，你会先砍哪块？", "预算只有一半"),
    ("有人跟我说简历绝对不能超过一页，你怎么看？", "简历绝对不能超过一页"),
    ("“不得转载”用在这里合适吗？", "不得转载"),
    ("邻居家规定晚上八点后禁止弹琴，是不是太早了？", "晚上八点后禁止弹琴"),
    ("字体改成宋体。哎不改了，就这样吧。", "字体改成宋体"),
    ("去年的活动要求必须实名，今年没这回事了。", "必须实名"),
    ("我看到一篇文章说数据库一定要分库分表，扯淡吧？", "一定要分库分表"),
    ("这道题：小明必须在三天内看完 90 页，平均每天看几页？", "必须在三天内看完 90 页"),
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
