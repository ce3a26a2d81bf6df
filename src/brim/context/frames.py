"""How a sentence is meant: given by the user here and now, or quoted, imagined, asked, remembered, withdrawn.

A rule is a rule only if its speaker gives it. Each test below is a family of common phrasings in English and Chinese
that frame a sentence otherwise; none names a subject matter. Where nothing frames a sentence it counts as given.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from brim.context.sentences import without_quotes

Frame: TypeAlias = Literal["given", "quoted", "imagined", "asked", "remembered", "foreign", "withdrawn", "courtesy"]

_IMAGINED = re.compile(
    r"\b(?:suppose|supposing|imagine|pretend|hypothetically|what if|let's say|let us say|for the sake of argument|"
    r"in theory|thought experiment|say (?:a|an|some|someone|somebody|the) |"
    r"(?:if|when|once|were) (?:\w+ ){0,3}?(?:one day|someday|some day|ever)|if (?:someone|somebody|anyone|a \w+ )|"
    r"would it (?:help|hurt|matter|work|be)|what would (?:happen|it)|(?:if|were) (?:we|i|they|you) (?:were|had)\b)"
    r"|假如|假设|设想|假定|要是哪天|要是有(?:人|一天)|如果(?:哪天|有人|有一天|某天|将来|有个)|倘若|万一哪天|"
    r"哪天(?:老板|客户|要是|领导|公司)|"
    r"打个比方|比方说|举个例子|理论上|想象一下|要是(?:换成|当初)",
    re.I,
)
_CURIOUS = re.compile(
    r"\b(?:out of curiosity|just (?:curious|wondering|asking)|curious (?:about|whether|if)|was wondering|for fun|"
    r"no plans?|not planning|asked me|idle question|theoretical|trivia|exam question|quiz|"
    r"for (?:a|an|my|the|our) (?:\w+ ){0,3}?(?:slide|course|class|training|talk|lecture|novel|story|quiz|example|"
    r"exercise))\b"
    r"|好奇|随口问|随便问|就想(?:听听|问问|知道)|想听听|听听(?:你|大家)的|心里估|没这个打算|没有这个打算|只是问问|"
    r"问着玩|帮.{0,12}问的|替.{0,12}问的|"
    r"出(?:道|个)题|写小说|讲课用|课件里|培训(?:用|材料)|当(?:例子|案例)",
    re.I,
)
_LANGUAGE_QUESTION = re.compile(
    r"\b(?:translat\w+|in(?:to)? (?:german|french|spanish|italian|english|chinese|japanese|korean|dutch|polish|"
    r"portuguese|"
    r"russian|swedish|latin)|how (?:would|do|should|can) (?:you|i|we|one) (?:put|say|word|phrase|translate|render|"
    r"read)|"
    r"what (?:does|did|do) .{0,60}\bmean\b|rephrase|paraphrase|proofread|grammatical\w*|is (?:it|this|"
    r"that) (?:correct|idiomatic))\b"
    r"|翻译|译成|译为|怎么说|怎么翻|怎么译|什么意思|啥意思|通顺|语病|英文(?:怎么|一般|该)|中文(?:怎么|一般|该)|"
    r"(?:这句|那句)话",
    re.I,
)
_REPORTED = re.compile(
    r"\b(?:says?|said|reads?|states?|stated|claims?|claimed|wrote|writes|written|according to|tells? (?:us|you|"
    r"people)|"
    r"told|insists?|insisted|the (?:sign|page|doc|docs|readme|wiki|paragraph|poster|banner|comment|note|ticket|"
    r"email) )"
    r"|写(?:着|了|的|明|道)|说(?!明)|规定|要求|里有(?:句|一句|条)|上有(?:句|条)|贴(?:着|了)|印(?:着|了)|提到|标语|"
    r"声称|备注",
    re.I,
)
_VOID = re.compile(
    r"\b(?:out of date|outdated|obsolete|no longer|not any ?more|doesn't apply|does not apply|hasn't applied|"
    r"never mind|"
    r"nevermind|forget (?:it|that|about|what i)|scratch that|strike that|ignore (?:it|that|this|what|the|my)|"
    r"disregard|"
    r"just kidding|only joking|i'm joking|kidding|(?:was|were|been|got) (?:cancelled|canceled|dropped|revoked|lifted|"
    r"withdrawn|repealed|scrapped|abandoned|overruled)|delete (?:the|that|this) (?:paragraph|line|section|rule|"
    r"sentence|page)|"
    r"(?:remove|drop) (?:the|that|this) (?:paragraph|line|section|rule|sentence|page)|behind (?:me|us)|moved on from|"
    r"(?:isn't|is not|wasn't) (?:true|right|valid|the case)|changed my mind|take that back|dummy|placeholder|"
    r"made[- ]up)\b"
    r"|过时|作废|废弃|废止|不再(?:适用|有效|用|要求)|已经?取消|取消了|用不上|不适用|不算数|当我没说|算了|开玩笑|"
    r"说着玩|别当真|忽略(?:它|这|那|掉)|"
    r"不用(?:管|理)|不必理|删掉(?:那|这)|早就(?:不|没|废|取消)|已经离职|(?:就|早|都|已)离职|撤回|收回(?:这|那|刚)|"
    r"假数据|编的|虚构",
    re.I,
)
_REMEMBERED = re.compile(
    r"\b(?:used to|back (?:when|then|in (?:the day|my|college|school|(?:19|20)\d\d))|in (?:my|the|our) (?:old|"
    r"previous|former|last) "
    r"(?:job|company|team|firm|office|life|role|place|shop|employer)|at (?:my|the|our|an?) (?:old|previous|former|"
    r"last|first) \w+|"
    r"at (?:the|my) [\w' -]{2,30}? (?:job|gig|internship)|(?:years|decades|ages) ago|once upon a time|formerly|"
    r"(?:my|our) (?:ex|former|previous|old)[- ](?:boss|manager|employer|company|landlord|teacher|team|colleague)|"
    r"(?:a|an) (?:former|previous|ex)[- ]\w+|when i (?:was|worked|lived|studied)|in those days|at the time)\b"
    r"|以前(?:有|在|我|那|的|公司|单位|老|带)|从前|曾经|当年|过去(?:在|的公司|那)|那会儿|那时候?|(?:上|"
    r"前)(?:一)?(?:家|份)(?:公司|单位|工作|东家)?|"
    r"前(?:公司|单位|东家|同事|老板|领导|雇主)|原来(?:那家|的公司|的单位|在)|老东家|早年|小时候|上学(?:时|那)|"
    r"读书(?:时|那)",
    re.I,
)
_STILL = re.compile(
    r"\b(?:still|to this day|and (?:now|today)|ever since)\b|至今|到现在(?:还|都)|现在(?:也|还)|依然|仍(?:然|"
    r"旧)?",
    re.I,
)
_FOREIGN = re.compile(
    r"\b(?:(?:a |my |some |his |her )(?:friend|neighbou?r|cousin|roommate|flatmate|brother|sister|uncle|aunt|"
    r"classmate|"
    r"acquaintance|buddy|mate|pal|girlfriend|boyfriend)(?:'s|s')? (?:\w+ )?(?:company|team|office|boss|employer|"
    r"firm|startup|"
    r"school|gym|landlord|shop|works|says|said|swears|insists|claims|thinks)|"
    r"(?:some|other|another|certain|many|most) (?:team|company|companies|teams|people|shops|firms|places|folks|"
    r"projects|"
    r"schools|vendors|offices)s? (?:\w+ ){0,2}?(?:have|has|require|requires|insist|insists|ban|bans|forbid|forbids|"
    r"say|says|"
    r"swear|swears|demand|demands|believe|claim|mandate|mandates|never|always|must)|"
    r"(?:google|amazon|netflix|facebook|a competitor|our competitors?|the competition|next door|"
    r"the team (?:next door|upstairs|"
    r"downstairs|across)))\b"
    r"|(?:隔壁|别的|其他|另一个|另外一个|别家|人家|朋友|同学|邻居|亲戚|对家|竞品|友商|楼上|楼下|对面)(?:的|那个|"
    r"那家|他们)?"
    r"(?:组|团队|公司|部门|课题组|单位|学校|店|项目|老板|班|宿舍|小区|厂)"
    r"|有的(?:团队|公司|人)|有些(?:团队|公司|人)|(?:他|她)们(?:公司|单位|组|厂|学校|部门)",
    re.I,
)
_PERSON_REQUEST = re.compile(
    r"^(?:(?:and|so|ok|okay|hi|hello|hey|also|then|now|please|pls)[ ,]+)*(?:can|could|would|will) you\b"
    r"|能不能帮|能帮|可以帮|帮我|请你?|麻烦",
    re.I,
)
_ASKS_ABOUT = re.compile(
    r"^(?:(?:and|so|but|ok|okay|also|hmm|well|wait)[ ,]+)*(?:is|are|was|were|do|does|did|should|shall|must|may|has|"
    r"have|had|am|"
    r"why|what|when|where|which|who|whose|how|isn't|aren't|doesn't|don't we|shouldn't)\b"
    r"|是不是|是否|要不要|有没有必要|该不该|能不能|可不可以|需不需要|非得|难道|还是说|吗[？?]?$|呢[？?]?$|么[？?]$|"
    r"为什么|怎么|多少|哪",
    re.I,
)
_COURTESY = re.compile(
    r"^(?:(?:ok|okay|yes|no|yep|nope|hi|hey|hello|thanks?|thank you|thx|cheers|great|perfect|cool|nice|fine|"
    r"good (?:morning|"
    r"afternoon|evening)|sure|sounds good|got it|right|morning|bye|goodbye|see you|good|that's all|no problem|"
    r"very much|"
    r"so much|a lot|there|everyone|all|team|again)[\s,.!~:;]*)+$"
    r"|^(?:(?:好的?|嗯+|行|可以|谢谢|多谢|感谢|你好|您好|再见|拜拜|没有?问题|没有(?:其他|别的)?问题了?|不客气|"
    r"明白了?|知道了?|收到|辛苦了?|"
    r"太好了|那好吧?|了|啊|哦|呀|吧|您|你|的|早上好|晚上好|下午好|不用了|没有了|没了)[\s，,。.！!~～、]*)+$",
    re.I,
)


def is_question(sentence: str) -> bool:
    """It ends as a question, or as one of the Chinese question particles."""
    bare = sentence.rstrip(" ”\"'’」』)）～~")
    return bare.endswith(("?", "？", "吗", "么", "呢")) and not bare.endswith(("什么", "那么", "这么"))


def frame_of(sentences: list[str], index: int, directive: re.Pattern[str]) -> Frame:
    """The frame of `sentences[index]`, judged by its own words and by its neighbours in the same message.

    `directive` matches the words of an order: they decide whether the order stands inside a quotation only.
    """
    text = sentences[index]
    bare = without_quotes(text)
    around = " ".join(sentences[max(0, index - 1) : index] + sentences[index + 1 : index + 3])
    after = " ".join(sentences[index + 1 : index + 3])
    if _COURTESY.match(text):
        return "courtesy"
    only_quoted = bare != text and directive.search(text) is not None and directive.search(bare) is None
    if only_quoted and (_quoted_as_text(bare, around) or is_question(text)):
        return "quoted"
    if _IMAGINED.search(bare) and not _PERSON_REQUEST.search(bare):
        return "imagined"
    if _REMEMBERED.search(bare) and not _STILL.search(text):
        return "remembered"
    if _FOREIGN.search(bare) and (_REPORTED.search(bare) or directive.search(bare)):
        return "foreign"
    if _VOID.search(bare) and directive.search(bare) is None:
        return "given"  # the sentence that withdraws is itself the user's word; what it withdraws is not
    if _REPORTED.search(bare) and (_VOID.search(after) or only_quoted):
        return "withdrawn" if _VOID.search(after) else "quoted"
    if index + 1 < len(sentences) and _takes_back(sentences[index + 1]):
        return "withdrawn"
    if is_question(text) or (_ASKS_ABOUT.match(bare) and not directive.match(bare)):
        return "given" if _PERSON_REQUEST.search(bare) and not _ASKS_ABOUT.match(bare) else "asked"
    if _CURIOUS.search(after) and directive.search(bare) and _LANGUAGE_QUESTION.search(bare):
        return "asked"
    return "given"


def _quoted_as_text(bare: str, around: str) -> bool:
    """The sentence treats its quotation as text: it reports it, asks about its wording, imagines or voids it."""
    return any(
        pattern.search(piece)
        for piece in (bare, around)
        for pattern in (_LANGUAGE_QUESTION, _IMAGINED, _CURIOUS, _VOID)
    ) or bool(_REPORTED.search(bare))


_TAKES_BACK = re.compile(
    r"^(?:oh[ ,]*|hmm[ ,]*|actually[ ,]*|no[ ,]*|wait[ ,]*|well[ ,]*)*(?:never ?mind|forget (?:it|that|what i)|"
    r"scratch that\.?$|"
    r"strike that\.?$|ignore (?:that|what i)|disregard (?:that|what i)|just kidding|only joking|kidding|"
    r"i take that back|"
    r"(?:that|which|this|it)(?: \w+)?(?: is| was|'s|'ll| no longer| doesn't| does not| never) (?:a joke|"
    r"not (?:needed|true|required|necessary)|"
    r"cancelled|canceled|obsolete|outdated|out of date|history|off the table|appl))"
    r"|^(?:哦|啊|唉|嗯|哎)?[，,]?(?:算了|当我没说|开玩笑的?|说着玩|不用了|别当真|撤回|忽略(?:这|上|刚)|(?:这|那|"
    r"上)(?:条|句|个)?(?:话|规定|要求)?(?:已经|早就?)?(?:作废|取消|不算|过时))",
    re.I,
)


def _takes_back(sentence: str) -> bool:
    return _TAKES_BACK.match(sentence) is not None
