"""The words that mark a rule, a wish, a fact that binds, a piece of work: data for `constraints`, nothing more.

General function words and phrasings of English and Chinese only; no subject matter.
"""

from __future__ import annotations

import re

from brim.context.phrases import Phrases

EXPLICIT = Phrases(
    words="must mustn't never shall forbidden prohibited mandatory obligatory compulsory required requirement strictly "
    "always maximum minimum deadline exclusively insist insists refrain avoid ensure forbid forbids ban "
    "bans banned require requires "
    "essential imperative crucial vital",
    english=r"off[- ]limits|under no (?:circumstances?|conditions?)\b|in no case\b|at no (?:time|point)\b|"
    r"without (?:exception|fail)\b|"
    r"no exceptions?\b|(?:not|isn't|aren't) an option\b|out of the question|no[- ]go\b|(?:has|needs) to \w+|"
    r"do not\b|don't\b|may not\b|(?:cannot|can't) be\b|(?:not|isn't|aren't) (?:allowed|permitted)\b|"
    r"(?:no one|nobody|nothing|none|no \w+) (?:\w+ ){0,2}?(?:may|can|should|leaves?|goes|gets|is to|are to)\b|"
    r"(?:may|can) only\b|only (?:use|run|touch|edit|write|send|call|accept|if|when|after|by|with|in|the|those|on|"
    r"to|from|"
    r"\S+ (?:\S+ ){0,6}?(?:may|can|are|is|should))\b|(?:use|take|accept|allow|send|show|include) only\b|"
    r"only,? please|"
    r"(?:has|have|need|needs) to (?:be|stay|go|remain|have|fit|use|pass|match|run|keep|work|come|say|read|end|"
    r"start)\b|"
    r"at (?:most|least)\b|no (?:more|fewer|less|later|earlier|longer) than\b|not (?:exceed|more than|later than)\b|"
    r"hard limit|make sure\b|be sure to\b|by all means|no matter (?:what|how)\b|until further notice|"
    r"unless (?:i|we|you) |hands off|leave (?:\S+ ){1,5}?(?:alone|untouched|(?:as|the way) (?:it|they|is|are)\b)|"
    r"keep (?:\S+ ){0,3}?(?:away|out|off)\b|(?:is|are) (?:final|fixed|non-negotiable)\b",
    opens="option question go off under case time point without exceptions exception not don't cannot can't isn't "
    "aren't one nobody nothing none no only has have need needs most least than exceed hard sure means matter "
    "until unless hands leave keep final fixed non",
    chinese=r"必须|务必|必需|禁止|严禁|不准|不许|不得|勿|切忌|不行|一个字都不|绝对|不可(?!能|思议|避免)|不能(?!不)|"
    r"不要|千万|只能|只许|只准|只可|"
    r"仅限|仅能|只允许|一律|绝不|绝对不|决不|一定(?:要|得|不|别)|不允许|最多|至多|至少|最少|不超过|不低于|不高于|"
    r"不少于|不晚于|"
    r"不早于|不大于|不小于|严格|强制|从不|始终|永远|任何情况|无论如何|不管怎样|都得|全都要|非.{1,6}不可|"
    r"得(?:先|保证|确保|保留|留|走|用|按|由|经)|确保|保证|避免|统一(?:用|按|走|写|成)|"
    r"(?<![分区特级类性个识鉴告离差辨派])别(?![人的处墅名家说致称扭管具])|除非|否则|上限|下限|截止|一概|概不|唯一|"
    r"谁都不|"
    r"都不(?:能|许|要|准|可)|不给(?!力)|免谈",
)
PLAIN = Phrases(
    words="please pls kindly prefer prefers preferred preferably instead let's should shouldn't ought throughout policy "
    "guideline guidelines convention conventionally standard named called sign signed keep kept stay stays remain remains "
    "everywhere whenever first want wants expect expects need needs carry carries belong belongs count counts treat treats "
    "treated wins follow follows like likes rather written spelled usual usually normally",
    english=r"(?:i|we)(?:'d| would) (?:like|prefer|rather|want|love|hate)\b|let us\b|by default|"
    r"go(?:es)? (?:to|through|in|into|under|on|via|first)\b|(?:start|end|begin)s? with\b|stick (?:to|with)\b|"
    r"each (?:time|of)\b|every \w+|all (?:of |the |our |my |new |\w+s\b)|any (?:new|\w+)\b|(?:is|are) to\b|gets?\b|"
    r"(?:we|i|our team|the team) (?:always |usually |normally |generally )?(?:use|name|call|write|ship|deploy|tag|"
    r"store|log|"
    r"review|merge|round|bill|reply|answer|address|speak|report|measure|work|run|test|quote|spell|format|send|put|"
    r"do)\b",
    opens="i i'd we we'd let default go goes start starts end ends begin begins stick each every all any is are get gets "
    "team",
    chinese=r"请|麻烦|(?:我们|咱们)(?:这边|这里)?都|希望|最好|尽量|尽可能|优先|倾向|习惯|惯例|约定|规范|默认|按照?|"
    r"照着?|统一|"
    r"都(?:用|是|要|按|走|写|放|以|叫|从|由|发|给)|一般(?:用|都|是|写|走|按|在|由)|通常|平时|要(?:用|按|写|走|先|"
    r"带|有|低|高|短|求)|"
    r"应该|应当|需要?|得|就(?:用|按|写|走|行|好)|放在|放到|以.{1,10}为(?:准|主)|开头|结尾|打头|落款|署名|称呼|口径|"
    r"算(?:作|是|一)|走.{1,8}(?:流程|审批|渠道)|先.{1,12}再|归.{1,6}管|由.{1,8}(?:来|负责|审|批|定|念|签)|喜欢|偏好|"
    r"爱(?:用|看|吃)|想要|宁可|宁愿|吧[。！!]?$|就成|为宜|为好|算数",
)
BINDING = Phrases(
    words="is are was were has have had run runs hang hangs hold holds carry carries due until between expire expires end "
    "ends start starts close closes open opens limit limited budget allergic allergy deaf blind pregnant vegan vegetarian "
    "wheelchair frozen locked support supports can't cannot doesn't don't won't isn't aren't no without down shut closed "
    "broken missing pulled billed shared own owns approve approves responsible charge read reads live lives sit sits "
    "get gets take takes speak speaks only",
    english=r"because of\b|from .{1,20} to\b|read-only|still on\b|stuck on\b|out of\b|\w+'s? (?:on|off|out|away|"
    r"closed)\b",
    opens="because from read-only read still stuck out on off away",
    chinese=r"是|有|没|不|在|用的|只|才|到.{1,12}(?:为止|才|截止)|为止|过期|到期|截止|预算|上限|一共|总共|共用|限|过敏|"
    r"怀孕|孕|"
    r"色盲|忌|素|坏|断|停|关|缺|剩|差|负责|授权|版本|老版|跑在|卡在|误差|偏|识字|轮椅|独居|由|高|低|休|假",
)
SUPPORTING = Phrases(
    words="since because considering",
    english=r"given that|seeing that|bearing in mind|(?:remember|note) that",
    opens="given seeing bearing remember note",
    chinese=r"鉴于|考虑到|由于|因为|记得|记住|注意",
)
STANDING = Phrases(
    words="throughout everywhere always every each all any whenever",
    english=r"from now on|in (?:our|the) (?:usual|same)|new \w+s\b|\w*points\b",
    opens="from usual same new endpoints",
    chinese=r"以后|每次|每个|所有|统一|一律|全部|全程|从现在",
)
OUR_RULE = Phrases(
    english=r"(?:our|my|the|one|house|hard) (?:\w+ )?(?:rule|rules|policy|constraint|convention|requirement|"
    r"standard)s?\b",
    opens="rule rules policy constraint constraints convention conventions requirement requirements standard standards",
    chinese=r"(?:我们|咱们|这边|规矩|规则|原则|要求)的?[是：:]",
)
INABILITY = re.compile(
    r"(?:i|we) (?:can't|cannot|don't|do not) (?:see|find|know|understand|remember|get|think|believe|mind|tell|"
    r"figure|have|"
    r"care)\b"
)
SPECIFIC = re.compile(
    r"\d+|(?<=\w)[._/](?=[A-Za-z0-9])|[A-Z]{2,}| [A-Z][a-z]|\(\)|[$€£¥%「]|"
    r"[一二两三四五六七八九十百千万半]+(?:个|天|周|月|年|号|点|岁|人|位|台|元|块|次|成|折|层|栋|楼|分钟|小时)|"
    r"周[一二三四五六日]"
)
"""What makes a sentence specific: numbers, names, paths, amounts."""
TASK = re.compile(
    r"(?:(?:ok|okay|hi|hello|hey|so|and|also|then|now|please|pls|first|next|great|thanks|good|well|anyway|"
    r"alright)[ ,!.:]+)*"
    r"(?:(?:can|could|would|will) you|i(?:'d like| want| need| would like) (?:you |a |an |the |to )|help (?:me|us)|"
    r"(?:add|book|build|calculate|change|check|clean|compare|compute|convert|count|create|debug|delete|describe|"
    r"design|do|"
    r"draft|draw|edit|explain|extract|figure|fill|find|fix|format|generate|get|give|go|implement|improve|install|"
    r"investigate|"
    r"list|look|make|merge|migrate|move|open|optimi[sz]e|plan|plot|prepare|print|profile|propose|pull|put|read|"
    r"refactor|"
    r"remove|rename|replace|review|rewrite|run|search|set|show|size|sketch|sort|split|suggest|summari[sz]e|take|"
    r"tell|test|"
    r"tidy|tighten|translate|try|turn|update|upgrade|upload|verify|write)\b)"
)
TASK_ZH = re.compile(
    r"(?:你好|您好|好的?|那|嗯|麻烦[你您]?|请[你您]?|然后|接着|再|先|现在)?[，,！!\s]*"
    r"(?:(?:能|可以|可否|能否|能不能)?请?[你您]?[帮给替](?:我|忙|我们|个忙)|想(?:要|让|请|找|写|查|做|问|把)|"
    r"要(?:做|写|查|找)|"
    r"把|[写做列出来][一个份篇]|查(?:一下|查)|找[一个]|看看|看一下|改一?下|生成|整理|列[出一]|分析|总结|翻译|安排|"
    r"写个|做个)"
)
CLAUSE = re.compile(r"[;；，]|, (?=(?:since|as|because|and|but|oh|by the way|we|it|the|our)\b)|: ")
"""Where a sentence that asks for work may go on to state a fact."""
