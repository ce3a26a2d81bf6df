"""What the user (or the system) said that binds later work.

Every sentence of a user or system message is judged by form: who gives the order (frames), whether it carries a
marker word (explicit), a wish or a standing convention (plain), or states a fact that later work must respect
(implicit). Text of tools and of the model is never looked at, so it cannot become a rule. A later revision marks the
earlier wording as superseded. No model, no lists of subjects: markers, sentence form and specificity only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec

from brim.context.frames import Frame, frame_of, is_question
from brim.context.revisions import replaced_by, revises
from brim.context.sentences import split_sentences, without_quotes
from brim.context.wording import is_injected
from brim.conversation import Message

Strength: TypeAlias = Literal["explicit", "plain", "implicit"]
_STRENGTHS: tuple[Strength, ...] = ("explicit", "plain", "implicit")
Kind: TypeAlias = Literal["explicit", "plain", "implicit", "request", "aside", "courtesy", "quoted"]


class Constraint(msgspec.Struct, frozen=True):
    """One sentence that binds. `text` is `messages[message_index].text[start:start + len(text)]`, verbatim.

    `score` ranks constraints of one strength by how specific they are (higher is kept first); `superseded` says that
    a later wording replaced it.
    """

    message_index: int
    text: str
    strength: Strength
    superseded: bool = False
    start: int = 0
    score: float = 0.0


class Said(msgspec.Struct, frozen=True):
    """One sentence of a message, judged: `quoted` covers all that is not given as the speaker's own word."""

    start: int
    end: int
    kind: Kind
    score: float
    superseded: bool = False


_EXPLICIT = re.compile(
    r"\b(?:must(?:n't)?|never|shall|forbidden|prohibited|mandatory|obligatory|compulsory|required|requirement|"
    r"off[- ]limits|"
    r"under no circumstances?|in no case|at no (?:time|point)|without (?:exception|fail)|no exceptions?|strictly|"
    r"always|"
    r"do not|don't|may not|cannot be|can't be|not allowed|isn't allowed|aren't allowed|not permitted|"
    r"(?:no one|nobody|nothing|none|no \w+) (?:\w+ ){0,2}?(?:may|can|should|leaves?|goes|gets|is to|are to)|"
    r"may only|can only|only (?:use|run|touch|edit|write|send|call|deliver|accept|rows|if|when|after|by|with|in|"
    r"the|those|on|to|from|"
    r"\w+ (?:may|can|are|is|should))|only,? please|(?:have|has|need|needs) to (?:be|stay|go|remain|have|fit|use|"
    r"pass|match|run|keep|work|come)|"
    r"at most|at least|no (?:more|fewer|less|later|earlier|longer) than|maximum|minimum|not (?:exceed|more than|"
    r"later than)|"
    r"up to a limit|hard limit|deadline|exclusively|insist(?:s)?|refrain|avoid|make sure|ensure|be sure to|"
    r"by all means|no matter (?:what|how)|until further notice|unless (?:i|we|you) |hands off|"
    r"leave (?:\w+ ){1,4}?(?:alone|untouched|as (?:it|they) (?:is|are)))\b",
    re.I,
)
_EXPLICIT_ZH = re.compile(
    r"必须|务必|必需|禁止|严禁|不准|不许|不得|切勿|请勿|切忌|不可(?!能|思议|避免)|不能(?!不)|不要|千万|只能|只许|"
    r"只准|只可|仅限|仅能|只允许|"
    r"一律|绝不|绝对不|决不|一定(?:要|得|不|别)|不允许|最多|至多|至少|最少|不超过|不低于|不高于|不少于|不晚于|"
    r"不早于|不大于|不小于|严格|强制|从不|"
    r"始终|永远|任何情况|无论如何|不管怎样|都得|全都要|非.{1,6}不可|得(?:先|保证|确保|保留|留|走|用|按|由|经)|确保|"
    r"保证|避免|统一(?:用|按|走|写|成)|"
    r"(?<![分区特级类性个识鉴告离差辨派])别(?![人的处墅名家说致称扭管具])|除非|否则|上限|下限|截止|一概|概不|唯一|"
    r"谁都不|都不(?:能|许|要|准|可)|不给(?!力)|免谈"
)
_PLAIN = re.compile(
    r"\b(?:please|pls|kindly|i'd (?:like|prefer|rather|want|love|hate)|we'd (?:like|prefer|rather|want)|"
    r"i would (?:like|prefer|rather)|"
    r"we would (?:like|prefer|rather)|prefers?|preferred|preferably|rather than|instead|let's|let us|"
    r"should(?:n't)?|ought to|"
    r"throughout|by default|as usual|our usual|convention(?:ally)?|standard(?: here)?|policy|guidelines?|"
    r"go(?:es)? (?:to|through|in|into|under|on|via|first)|"
    r"start(?:s)? with|end(?:s)? with|begin(?:s)? with|named|called|signed?|stick (?:to|with)|keep|kept|stay(?:s)?|"
    r"remain(?:s)?|"
    r"everywhere|whenever|each (?:time|of)|every (?:time|\w+)|all (?:of )?(?:the|our|my|new|\w+s)|any (?:new|\w+)|"
    r"first|is to|are to|"
    r"wants?|expects?|needs?|carry|carries|gets?|belongs?|counts?|treat(?:s|ed)?|wins?|comes? first|"
    r"(?:we|i|our team|the team) (?:always |usually |normally |generally )?(?:use|sign|name|call|count|write|"
    r"follow|treat|ship|deploy|"
    r"tag|store|log|review|merge|round|bill|reply|answer|address|speak|report|measure|work|run|test|quote|spell|"
    r"format|send|put|do))\b",
    re.I,
)
_PLAIN_ZH = re.compile(
    r"请|麻烦|(?:我们|咱们)(?:这边|这里)?都|希望|最好|尽量|尽可能|优先|倾向|习惯|惯例|约定|规范|默认|按照?|照着?|"
    r"统一|都(?:用|是|要|按|走|写|放|以|叫|从|由|发|给)|"
    r"一般(?:用|都|是|写|走|按|在|由)|通常|平时|要(?:用|按|写|走|先|带|有|低|高|短|求)|应该|应当|需要?|得|就(?:用|"
    r"按|写|走|行|好)|放在|放到|以.{1,10}为(?:准|主)|"
    r"开头|结尾|打头|落款|署名|称呼|口径|算(?:作|是|一)|走.{1,8}(?:流程|审批|渠道)|先.{1,12}再|归.{1,6}管|"
    r"由.{1,8}(?:来|负责|审|批|定|念|签)|"
    r"喜欢|偏好|爱(?:用|看|吃)|想要|宁可|宁愿|吧[。！!]?$|就成|为宜|为好|算数"
)
_BINDING = re.compile(
    r"\b(?:is|are|was|were|has|have|had|runs?|hangs?|holds?|carr(?:y|ies)|because of|due|until|from .{1,20} to|"
    r"between|expires?|ends?|"
    r"starts?|closes?|opens?|limit(?:ed)?|budget|allerg\w+|deaf|blind|pregnant|vegan|vegetarian|wheelchair|frozen|"
    r"locked|read[- ]only|"
    r"still on|stuck on|supports?|can't|cannot|doesn't|don't|won't|isn't|aren't|no|without|out of|down|shut|closed|"
    r"broken|missing|"
    r"pulled|billed|shared|owns?|approv\w+|responsible|charge|stammers?|reads?|lives?)\b",
    re.I,
)
_BINDING_ZH = re.compile(
    r"是|有|没|不|在|用的|只|到.{1,12}(?:为止|才|截止)|为止|才到|才能|过期|到期|截止|预算|上限|一共|总共|共用|限|"
    r"过敏|怀孕|孕|色盲|忌|素|坏|断|停|关|"
    r"缺|剩|还差|负责|授权|版本|老版|跑在|卡在|误差|偏|识字|听不|看不|轮椅|独居|由"
)
_SPECIFIC = re.compile(
    r"\d|[A-Z]{2,}|\b[A-Za-z]+[._/-][A-Za-z0-9]\w*|[A-Za-z]\w*\(\)|(?<=[a-z,;] )[A-Z][a-z]+|[$€£¥%]|「[^」]+」|"
    r"[一二两三四五六七八九十百千万半]+(?:个|天|周|月|年|号|点|岁|人|位|台|元|块|次|成|折|层|栋|楼|分钟|小时)|"
    r"周[一二三四五六日]"
)
_TASK = re.compile(
    r"^(?:(?:ok|okay|hi|hello|hey|so|and|also|then|now|please|pls|first|next|great|thanks|good|well|anyway|"
    r"alright)[ ,!.:]+)*"
    r"(?:(?:can|could|would|will) you|i(?:'d like| want| need| would like) (?:you |a |an |the |to )|help (?:me|us)|"
    r"(?:add|build|calculate|change|check|clean|compare|compute|convert|count|create|debug|delete|describe|design|"
    r"do|draft|draw|edit|"
    r"explain|extract|figure|fill|find|fix|format|generate|get|give|go|implement|improve|install|investigate|list|"
    r"look|make|merge|migrate|"
    r"move|open|optimi[sz]e|plan|plot|prepare|print|profile|propose|pull|put|read|refactor|remove|rename|replace|"
    r"review|rewrite|run|"
    r"search|set|show|sketch|sort|split|suggest|summari[sz]e|take|tell|test|tidy|tighten|translate|try|turn|update|"
    r"upgrade|upload|verify|"
    r"write)\b)",
    re.I,
)
_TASK_ZH = re.compile(
    r"^(?:你好|您好|好的?|那|嗯|麻烦(?:你|您)?|请(?:你|您)?|然后|接着|再|先|现在)?[，,！!\s]*"
    r"(?:(?:能|可以|可否|能否|能不能)?(?:请)?(?:你|您)?(?:帮|给|替)(?:我|忙|我们|个忙)|想(?:要|让|请|找|写|查|做|"
    r"问|把)|要(?:做|写|查|找)|"
    r"把|写(?:一|个|份|篇)|做(?:一|个|份)|查(?:一下|查)|找(?:一|个)|看看|看一下|改一?下|生成|整理|列(?:出|一)|分析|"
    r"总结|翻译|出(?:一|个|份)|来(?:一|个|份))"
)
_SUPPORTING = re.compile(
    r"\b(?:given that|since|because|seeing that|bearing in mind|remember that|note that|considering)\b|鉴于|考虑到|"
    r"由于|因为|记得|记住|注意",
    re.I,
)
_OUR_RULE = re.compile(
    r"\b(?:our|my|the|one|house|hard) (?:\w+ )?(?:rule|rules|policy|constraint|convention|requirement|"
    r"standard)s?\b|(?:我们|咱们|这边|规矩|规则|原则|要求)(?:的)?(?:是|：|:)",
    re.I,
)
_DIRECTIVE = re.compile(f"{_EXPLICIT.pattern}|{_EXPLICIT_ZH.pattern}", re.I)


def constraints_of(messages: Sequence[Message]) -> list[Constraint]:
    """Constraints of a history, in order, superseded ones included and marked.

    Only user and system messages are read; text that brim injected is not. Linear in the length of those messages.
    """
    found: list[Constraint] = []
    for index, message in enumerate(messages):
        if message.role not in ("user", "system"):
            continue
        text = message.text
        if not text or is_injected(text):
            continue
        own: list[Constraint] = []
        for said in judge(text):
            sentence = text[said.start : said.end]
            strength = said.kind if said.kind in ("explicit", "plain", "implicit") else None
            replaced = None if said.superseded or said.kind == "quoted" else _replaced_earlier(found, sentence)
            if replaced is not None:
                old = found[replaced]
                found[replaced] = msgspec.structs.replace(old, superseded=True)
                # What replaces a rule is a rule, however casually it is put: "make it 50 instead".
                strength = min(old.strength, strength or "implicit", key=_STRENGTHS.index)
            if strength is not None:
                own.append(Constraint(index, sentence, strength, said.superseded, said.start, said.score))
        found.extend(own)
    return found


def judge(text: str) -> list[Said]:
    """Every sentence of one message with what it is. Pasted blocks come out as `quoted`."""
    spans = split_sentences(text)
    said = [(i, text[s.start : s.end]) for i, s in enumerate(spans) if not s.pasted]
    own = [sentence for _, sentence in said]
    judged: dict[int, tuple[Kind, float]] = {}
    weight = _length_weight(len(text))
    for order, (position, sentence) in enumerate(said):
        frame = frame_of(own, order, _DIRECTIVE)
        kind = _kind_of(sentence, frame)
        judged[position] = kind, _score(sentence, kind) * weight
    replaced = _replaced_within(own, [judged[position][0] for position, _ in said])
    result: list[Said] = []
    place = {position: order for order, (position, _) in enumerate(said)}
    for position, span in enumerate(spans):
        kind, score = judged.get(position, ("quoted", 0.0))
        old = place.get(position) in replaced
        if place.get(position) in replaced.values() and kind in ("request", "aside", "implicit") and not old:
            kind = "plain"  # the wording that replaces another is what holds now
        if old and kind in ("request", "aside"):
            kind = "plain"
        result.append(Said(span.start, span.end, kind, score, old))
    return result


def _kind_of(sentence: str, frame: Frame) -> Kind:
    if frame == "courtesy":
        return "courtesy"
    bare = without_quotes(sentence)
    if frame == "asked":
        # A question can rest on a rule that it states: "given that we count … as active, how many …?"
        return "plain" if _SUPPORTING.search(bare) and _SPECIFIC.search(bare) else "aside"
    if frame != "given":
        return "quoted"
    explicit = _EXPLICIT.search(bare) or _EXPLICIT_ZH.search(bare)
    if explicit and not _first_person_inability(bare, explicit):
        return "explicit"
    if bare != sentence and _OUR_RULE.search(bare):
        return "explicit" if _DIRECTIVE.search(sentence) else "plain"
    if (_TASK.match(bare) or _TASK_ZH.match(bare)) and not _SUPPORTING.search(bare):
        if _standing(bare):
            return "plain"
        return "implicit" if _states_a_fact_beside(bare) else "request"
    if is_question(sentence):
        return "plain" if _SUPPORTING.search(bare) else "request"
    if _PLAIN.search(bare) or _PLAIN_ZH.search(bare):
        return "plain"
    if _BINDING.search(bare) or _BINDING_ZH.search(bare) or _SPECIFIC.search(sentence):
        return "implicit"
    return "aside"


_INABILITY = re.compile(
    r"\b(?:i|we) (?:can't|cannot|don't|do not)\b (?:see|find|know|understand|remember|get|think|believe|mind|tell|"
    r"figure|have|care)",
    re.I,
)
_CLAUSE = re.compile(r"[;；，]|, (?:since|as|because|and|but|oh|by the way)\b|: ")
_STANDING = re.compile(
    r"\b(?:throughout|everywhere|always|every|each|all|any|whenever|from now on|in (?:our|the) (?:usual|same)|"
    r"endpoints?|new \w+s)\b"
    r"|以后|每次|每个|所有|统一|一律|全部|全程|从现在",
    re.I,
)


def _first_person_inability(bare: str, match: re.Match[str]) -> bool:
    """ "I can't see why" and "I don't know" are no orders."""
    inability = _INABILITY.search(bare)
    return inability is not None and inability.start() <= match.start() <= inability.end()


def _standing(bare: str) -> bool:
    """An instruction about how all later work is to be done, not one piece of work."""
    return _STANDING.search(bare) is not None


def _states_a_fact_beside(bare: str) -> bool:
    """A clause after the request's own states something specific: "set up X; the site hangs off a satellite link"."""
    clauses = _CLAUSE.split(bare)[1:]
    return any(
        (_BINDING.search(clause) or _BINDING_ZH.search(clause))
        and _SPECIFIC.search(clause)
        and not (_TASK.match(clause) or _TASK_ZH.match(clause))
        for clause in clauses
    )


def _score(sentence: str, kind: Kind) -> float:
    """How much of a sentence is specific: names, numbers, paths and a predicate that binds."""
    points = 4.0 * min(len(_SPECIFIC.findall(sentence)), 4)
    points += 6.0 if _BINDING.search(sentence) or _BINDING_ZH.search(sentence) else 0.0
    if kind == "plain":
        points += 4.0 if _PLAIN.search(sentence) or _PLAIN_ZH.search(sentence) else 0.0
    length = len(sentence.encode())
    if length > 600:
        points *= 600 / length
    return points + 1.0


def _length_weight(chars: int) -> float:
    """What a person typed by hand counts for more than a sentence somewhere in a long document."""
    return 1.0 if chars <= 1_000 else max(0.2, 1_000 / chars)


def _replaced_within(sentences: list[str], kinds: list[Kind]) -> dict[int, int]:
    """For one message: order of each replaced sentence -> order of the one that replaces it."""
    replaced: dict[int, int] = {}
    for order in range(1, len(sentences)):
        if not revises(sentences[order]) or kinds[order] == "quoted" or is_question(sentences[order]):
            continue
        candidates = [i for i in range(max(0, order - 3), order) if i not in replaced and kinds[i] != "quoted"]
        candidates = [i for i in candidates if not is_question(sentences[i])]
        hit = replaced_by(sentences[order], [sentences[i] for i in candidates], same_message=True)
        if hit is not None:
            replaced[candidates[hit]] = order
    return replaced


_LOOK_BACK = 60
"""Constraints before the current message that a revision is compared with: what people correct is recent."""


def _replaced_earlier(found: list[Constraint], sentence: str) -> int | None:
    """Index in `found` of the constraint of an earlier message that `sentence` replaces."""
    if not revises(sentence):
        return None
    recent = [i for i in range(max(0, len(found) - _LOOK_BACK), len(found)) if not found[i].superseded]
    hit = replaced_by(sentence, [found[i].text for i in recent], same_message=False)
    return None if hit is None else recent[hit]
