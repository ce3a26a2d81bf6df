"""How a sentence is meant: given by the user here and now, or quoted, imagined, asked, remembered, withdrawn.

A rule is a rule only if its speaker gives it. Each family below holds common phrasings in English and Chinese that
frame a sentence otherwise; none names a subject matter. Where nothing frames a sentence it counts as given.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from brim.context.phrases import Phrases, Spoken

Frame: TypeAlias = Literal["given", "quoted", "imagined", "asked", "remembered", "foreign", "withdrawn", "courtesy"]

_IMAGINED = Phrases(
    words="suppose supposing imagine pretend hypothetically hypothetical dreamt dreamed assume",
    english=r"what if\b|let's say\b|let us say\b|for the sake of argument|in theory\b|thought experiment|"
    r"say (?:a|an|some|someone|somebody|the) |if (?:someone|somebody|anyone|a \w+ )|what would (?:happen|it)\b|"
    r"(?:if|when|once|were) (?:\w+ ){0,3}?(?:one day|someday|some day|ever)\b|would it (?:help|hurt|matter|work|"
    r"be)\b|"
    r"(?:if|were) (?:we|i|they|you) (?:were|had)\b|(?:film|movie|novel|book|story|fairy tale|dialogue|scene|play|"
    r"script|"
    r"character|villain|hero)\b.{0,40}\b(?:says?|said|shouts?|cries|whispers?|tells?|orders?|warns?)\b",
    opens="what let's let sake theory thought say if day someday some ever would film movie novel book story tale dialogue "
    "scene play script character villain hero",
    chinese=r"假如|假设|设想|假定|要是哪天|要是有(?:人|一天)|(?:如果|假使|要是)(?:哪天|有人|有一天|某天|将来|有个)|"
    r"倘若|万一哪天|哪天(?:老板|客户|要是|领导|公司)|打个比方|比方说|举个例子|理论上|想象一下|要是(?:换成|当初)|"
    r"(?:小说|故事|剧本|台词|电影|书|剧|歌|游戏)里.{0,8}(?:说|喊|写)",
)
_CURIOUS = Phrases(
    words="theoretical trivia quiz",
    english=r"out of curiosity|just (?:curious|wondering|asking)|curious (?:about|whether|if)|was wondering|for fun\b|"
    r"no plans?\b|not planning|asked me\b|idle question|exam question|"
    r"for (?:a|an|my|the|our) (?:\w+ ){0,3}?(?:slide|course|class|training|talk|lecture|novel|story|quiz|example|"
    r"exercise)\b",
    opens="curiosity just curious wondering fun plan plans planning asked idle exam for",
    chinese=r"好奇|随口问|随便问|就想(?:听听|问问|知道)|想听听|听听(?:你|大家)的|心里估|没(?:有)?这个打算|只是问问|"
    r"问着玩|"
    r"[帮替].{0,12}问的|出(?:道|个)题|写小说|讲课用|课件里|培训(?:用|材料)|当(?:例子|案例)",
)
_ABOUT_WORDS = Phrases(
    words="translate translates translated translation translating rephrase paraphrase proofread grammatical "
    "grammatically grammar idiomatic pronounce",
    english=r"in(?:to)? (?:german|french|spanish|italian|english|chinese|japanese|korean|dutch|polish|portuguese|russian|"
    r"swedish|latin)\b|how (?:would|do|should|can) (?:you|i|we|one) (?:put|say|word|phrase|render|read|spell)\b|"
    r"what (?:does|did|do) .{0,80}\bmean\b|is (?:it|this|that) (?:correct|right)\b|correct english|plain words|"
    r"(?:funnier|nicer|shorter|better|politer|\w+ version of it)\b|word (?:a|this|that|it)\b|"
    r"(?:sentence|phrase|string|slogan|caption|proverb|saying)\b",
    opens="german french spanish italian english chinese japanese korean dutch polish portuguese russian swedish latin "
    "how what is plain funnier nicer shorter better politer version word sentence phrase string slogan caption proverb "
    "saying",
    chinese=r"翻译|译成|译为|怎么[说翻译写读念]|什么意思|啥意思|通顺|语病|(?:英文|中文|日语|英语|法语|德语|"
    r"韩语)(?:怎么|一般|该)|"
    r"[这那]句话",
)
_REPORTED = Phrases(
    words="says said reads states stated claims claimed wrote writes written insists insisted posted quoted quotes motto "
    "slogan suggested proposed recommended",
    english=r"according to|tells? (?:us|you|people)|told\b|(?:someone|somebody|he|she|they|it) say\b",
    opens="according tell tells told say",
    chinese=r"写(?:着|了|的|明|道)|说(?!明)|规定|要求|里有(?:句|一句|条)|上有(?:句|条)|贴(?:着|了)|印(?:着|了)|提到|"
    r"标语|声称|备注",
)
_INTRODUCES = re.compile(
    r"\b(?:says?|said|reads?|states?|wrote|writes|written|posted|claims?|goes)\W{0,3}(?:that )?◦|"
    r"(?:写|说|贴|印|要求|规定)[着了道明的]?(?:一?句)?[：:，,]?◦"
)
_VOID = Phrases(
    words="outdated obsolete nevermind disregard kidding dummy placeholder nonsense rubbish rejected",
    english=r"out of date|no longer\b|not any ?more|(?:doesn't|does not|hasn't) appl|never mind|scratch that|strike that|"
    r"forget (?:it|that|about|what i)\b|ignore (?:it|that|this|what|the|my)\b|(?:only|i'm|just) joking|"
    r"(?:was|were|been|got) (?:cancelled|canceled|dropped|revoked|lifted|withdrawn|repealed|scrapped|abandoned|"
    r"overruled|removed)|(?:delete|remove|drop) (?:the|that|this) (?:paragraph|line|section|rule|sentence|page|note)|"
    r"behind (?:me|us)\b|moved on from|(?:isn't|is not|wasn't|hasn't been) (?:true|right|valid|the case)|"
    r"changed my mind|take that back|made[- ]up\b|told (?:him|her|them) no\b|turned (?:it|that|this) down",
    opens="date longer more anymore apply applied applies mind scratch strike forget ignore joking cancelled canceled "
    "dropped revoked lifted withdrawn repealed scrapped abandoned overruled removed delete remove drop behind moved true "
    "right valid case changed take made told turned",
    chinese=r"过时|作废|废弃|废止|不再(?:适用|有效|用|要求)|已经?取消|取消了|用不上|不适用|不算数|当我没说|算了|开玩笑|"
    r"说着玩|"
    r"别当真|忽略(?:它|这|那|掉)|不用(?:管|理)|不必理|[删去]掉(?:那|这)|把那.{0,6}[删去]|早就(?:不|没|废|取消)|"
    r"(?:就|早|都|已经?)离职|撤回|收回(?:这|那|刚)|假数据|编的|虚构|"
    r"[跟和与].{1,8}(?:没关系|无关)|上一代|早已",
)
_REMEMBERED = Phrases(
    words="formerly ex",
    english=r"used to\b|back (?:when|then)\b|back in (?:the day|my|college|school|(?:19|20)\d\d)|those (?:days|were the)|"
    r"in (?:my|the|our) (?:old|previous|former|last) (?:job|company|team|firm|office|life|role|place|shop|employer)|"
    r"at (?:my|the|our|an?) (?:old|previous|former|last|first) \w+|at (?:the|my) [\w' -]{2,30}? (?:job|gig|"
    r"internship)\b|"
    r"(?:years|decades|ages|months|jobs?|companies|teams|flats|houses|employers) (?:ago|back|earlier)\b|"
    r"i (?:once )?(?:worked|lived|studied|served|"
    r"interned) (?:at|in|for|with)\b|"
    r"(?:rules?|policy|policies|motto) (?:was|were|used)\b|once upon a time|(?:my|our|a|an) (?:ex|former|previous|"
    r"old)[- ]"
    r"(?:boss|manager|employer|company|landlord|teacher|team|colleague|job|firm|office|school|client)|"
    r"when i (?:was|worked|lived|studied)\b|at the time\b|in the (?:army|navy|old days|\w+ties)\b|"
    r"at (?:school|uni|university|college)\b|i still (?:laugh|remember|dream)\b|"
    r"(?:the|our|my) (?:previous|former) (?:vendor|supplier|provider|owner|tenant|client|customer|agency|admin|"
    r"contractor|maintainer|developer|flat|place|house)\b",
    opens="back earlier worked lived studied served interned rule rules policy policies motto army navy days seventies "
    "eighties nineties twenties school uni university college still used those old previous former last first job gig "
    "internship ago once ex when time",
    chinese=r"以前(?:有|在|我|那|的|公司|单位|老|带)|从前|曾经|当年|过去(?:在|的公司|那)|那会儿|那时候?|"
    r"[上前](?:一)?(?:家|份)(?:公司|单位|工作|东家)?|前(?:公司|单位|东家|同事|老板|领导|雇主)|"
    r"原来(?:那家|的公司|的单位|在)|老东家|早年|小时候|[去前]年[^，。]{0,10}(?:要求|规定|说|必须|只能)|(?:上学|"
    r"读书)(?:时|那)|"
    r"(?:大学|高中|初中|中学|小学|读研|读博|当兵|实习|留学|上学|读书|年轻)(?:的|那)?(?:时候|会儿|时|期间|那几?年)",
)
_STILL = Phrases(
    words="today",
    english=r"still (?!laugh|remember|dream|miss|smile|shudder)|ever since\b|to this day",
    opens="still since day",
    chinese=r"至今|到现在|现在[也还]|依然|仍",
)
_FOREIGN = Phrases(
    english=r"(?:a|my|some|his|her) (?:friend|neighbou?r|cousin|roommate|flatmate|classmate|acquaintance|buddy|mate|pal|"
    r"girlfriend|boyfriend|brother|sister|uncle|aunt)(?:'s|s')? (?:\w+ )?(?:company|team|office|boss|employer|firm|"
    r"startup|"
    r"school|gym|landlord|shop|works|says|said|swears|insists|claims|thinks)\b|"
    r"(?:some|other|another|certain|many|most|so many) (?:\w+ )?(?:team|company|companies|teams|people|shops|firms|"
    r"places|"
    r"folks|projects|schools|vendors|offices|guides)s? (?:\w+ ){0,2}?(?:has an?|have an?|requires?|insists?|bans?|"
    r"forbids?|"
    r"says?|swears?|demands?|believe|claim|mandates?)\b|next door\b|the team (?:upstairs|downstairs|across)\b|"
    r"our competitors? (?:only|never|always|must|may|has|have|requires?|insists?|bans?)\b|"
    r"(?:at|from) (?:another|a different|some other) (?:team|company|firm|shop|office|school|place|startup|bank|"
    r"agency|"
    r"hospital|lab|university)\b|"
    r"i(?:'ve)? (?:once |just |recently )?(?:read|heard|saw|seen) (?:an?|some|in|on|somewhere)\b.{0,60}\b"
    r"(?:that|claim\w*|say\w*|argu\w*)\b",
    opens="friend friend's neighbor neighbour neighbor's neighbour's cousin cousin's roommate roommate's flatmate flatmate's "
    "classmate classmate's acquaintance buddy buddy's mate mate's pal pal's girlfriend girlfriend's boyfriend boyfriend's "
    "brother brother's sister sister's uncle uncle's aunt aunt's team teams company companies people shops firms places "
    "folks projects schools vendors offices guides next competitor competitors another different other read heard saw seen",
    chinese=r"(?:隔壁|别家|人家|朋友|同学|邻居|亲戚|表[哥弟姐妹]|对家|竞品|友商)(?:的|那边|那个|那家|他们)*"
    r"(?:组|团队|公司|部门|课题组|单位|学校|店|项目|老板|班|宿舍|小区|厂|规定|要求)|"
    r"(?:别的|其他|另外?一个|楼上|楼下|对面)(?:的)?(?:组|团队|公司|部门|单位|学校|店|项目)[^，。]{0,4}(?:规定|要求|"
    r"说)|"
    r"听说(?:别|其他|有)|有[的些](?:团队|公司|人)|(?:网上|据)[^，。]{0,6}说|(?:很多|不少|好多|大多数)(?:公司|团队|"
    r"人|企业)|"
    r"[他她]们(?:公司|单位|组|厂|学校|部门)",
)
_REQUEST = re.compile(
    r"(?:(?:and|so|ok|okay|hi|hello|hey|also|then|now|please|pls)[ ,]+)*(?:can|could|would|will) you\b"
)
_REQUEST_ZH = re.compile(r"能不能帮|能帮|可以帮|帮我|请你?|麻烦")
_ASKS = re.compile(
    r"(?:(?:and|so|but|ok|okay|also|hmm|well|wait)[ ,]+)*(?:is|are|was|were|does|did|"
    r"(?:do|should|shall|must|may|has|have|had) (?:i|we|you|they|he|she|it|the|all|every|any|there|this|that)|am i|"
    r"why|who|whose|how (?:do|does|did|would|should|can|come|many|much|about|is|are)|isn't|aren't|doesn't|don't we|"
    r"shouldn't we)\b"
)
_ASKS_ZH = re.compile(r"是不是|是否|要不要|有没有必要|该不该|能不能|可不可以|需不需要|非得|难道|还是说")
_COURTESY = re.compile(
    r"(?:(?:ok|okay|yes|no|yep|nope|hi|hey|hello|thanks?|thank you|thx|cheers|great|perfect|cool|nice|fine|"
    r"good (?:morning|afternoon|evening)|sure|sounds good|got it|right|morning|bye|goodbye|see you|good|that's all|"
    r"no problem|very much|so much|a lot|there|everyone|all|team|again)[\s,.!~:;]*)+$"
)
_COURTESY_ZH = re.compile(
    r"(?:(?:好的?|嗯+|行|可以|谢谢|多谢|感谢|你好|您好|再见|拜拜|没有?问题|没有(?:其他|别的)?问题了?|不客气|"
    r"明白了?|知道了?|收到|辛苦了?|"
    r"太好了|那好吧?|了|啊|哦|呀|吧|您|你|的|早上好|晚上好|下午好|不用了|没有了|没了)[\s，,。.！!~～、]*)+$"
)
_TAKES_BACK = re.compile(
    r"(?:(?:oh|hmm|actually|no|wait|well)[ ,]*)*(?:never ?mind|forget (?:it|that|what i)|(?:scratch|strike) that\.?$|"
    r"(?:ignore|disregard) (?:that|what i)|"
    r"(?:drop|skip|scrap|cancel) (?:that|this) (?:idea|thought|one|point)\b|just kidding|only joking|kidding|"
    r"i take that back|"
    r"(?:that|which|this|it)(?: \w+)?(?: is| was|'s|'ll| no longer| doesn't| does not| never) (?:a joke|"
    r"not (?:needed|true|required|necessary)|cancelled|canceled|obsolete|outdated|out of date|history|"
    r"off the table|appl))"
)
_TAKES_BACK_ZH = re.compile(
    r"[哦啊唉嗯哎]?[，,]?(?:算了|不[改要弄做用搞写换加]了|还是别|当我没说|开玩笑的?|说着玩|不用了|别当真|撤回|"
    r"忽略[这上刚]|"
    r"[这那上][条句个点]?(?:话|规定|要求)?(?:已经|早就?|就)?(?:作废|取消|不算|过时|不用[管理]|不需要|不作数))"
)

_WORDS = re.compile(r"[A-Za-z]{2,}")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def is_question(text: str) -> bool:
    """It ends as a question, or with one of the Chinese question particles."""
    bare = text.rstrip(" ”\"'’」』)）～~")
    return bare.endswith(("?", "？", "吗", "么", "呢")) and not bare.endswith(("什么", "那么", "这么"))


def frame_of(sentences: list[Spoken], index: int, orders: Phrases) -> Frame:
    """The frame of `sentences[index]`, judged by its own words and by its neighbours in the same message.

    `orders` are the words of an order: they decide whether an order stands inside a quotation only.
    """
    spoken = sentences[index]
    if _is_courtesy(spoken):
        return "courtesy"
    after = sentences[index + 1 : index + 3]
    ordered = orders.found_in(spoken)
    reported = _REPORTED.found_in(spoken)
    only_quoted = (
        spoken.quotes
        and not ordered
        and (orders.found_in(spoken.unquoted) or _INTRODUCES.search(spoken.lower) is not None)
    )
    if spoken.quotes and _is_all_quote(spoken.bare):
        return "quoted"
    if only_quoted and (is_question(spoken.text) or _treats_as_text(sentences, index)):
        return "quoted"
    if _IMAGINED.found_in(spoken) and not _is_request(spoken):
        return "imagined"
    if _REMEMBERED.found_in(spoken) and not _STILL.found_in(spoken):
        return "remembered"
    if _FOREIGN.found_in(spoken) and (ordered or reported):
        return "foreign"
    if reported:
        if _VOID.found_in(spoken) or any(_VOID.found_in(other) for other in after):
            return "withdrawn"
        if only_quoted or (after and is_question(after[0].text) and not _is_request(after[0])):
            return "quoted"  # what others say, told in order to ask about it
    if index + 1 < len(sentences) and _takes_back(sentences[index + 1]):
        return "withdrawn"
    if _CURIOUS.found_in(spoken) and not ordered:
        return "asked"
    if is_question(spoken.text) or _ASKS.match(spoken.lower) or (spoken.han and _ASKS_ZH.search(spoken.bare)):
        return "given" if _is_request(spoken) else "asked"
    return "given"


def _is_request(spoken: Spoken) -> bool:
    return bool(_REQUEST.match(spoken.lower) or (spoken.han and _REQUEST_ZH.search(spoken.bare)))


def _is_all_quote(bare: str) -> bool:
    """Beside its quotation the sentence has at most two words, or two Chinese characters."""
    return len(_WORDS.findall(bare)) <= 2 and len(_HAN.findall(bare)) <= 2


def _is_courtesy(spoken: Spoken) -> bool:
    """Nothing but thanks, greetings and assent."""
    if len(spoken.text) > 60:
        return False
    return bool((_COURTESY_ZH.match(spoken.text)) if spoken.han else _COURTESY.match(spoken.lower))


def _treats_as_text(sentences: list[Spoken], index: int) -> bool:
    """The quotation is talked about: reported, asked about for its wording, imagined, void, or one to be curious of."""
    if _REPORTED.found_in(sentences[index]):
        return True
    around = sentences[max(0, index - 1) : index + 3]
    return any(family.found_in(s) for s in around for family in (_ABOUT_WORDS, _IMAGINED, _CURIOUS, _VOID))


def _takes_back(spoken: Spoken) -> bool:
    return bool(_TAKES_BACK.match(spoken.lower) or (spoken.han and _TAKES_BACK_ZH.match(spoken.bare)))
