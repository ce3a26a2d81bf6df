"""The words by which errors are told apart, one family of patterns each, over lower-case text.

They are phrased by idea ("tokens … exceed", "limit … requested"), not copied from messages, so that a wording nobody
has seen yet has a fair chance. `brim.providers.errors` holds the order in which they are asked.
"""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.S)


TOKENS = re.compile(r"\btokens?\b")
_SIZE = r"\d+(?:\.\d+)? ?[kmg]i?b"

RATE = _any(
    r"\brate[ _-]?limit",
    r"\btoo many requests\b",
    r"\b(?:tokens?|requests?|images?)[ _-](?:used[ _-])?per[ _-](?:second|sec|minute|min|hour|day|week|month)",
    r"\b[io]?[tr]p[mdh]\b",
    r"throttl",
    r"\btokens? quota|token_quota",
    r"\bquota\b.{0,40}\bexceeded|exceeded.{0,40}\bquota\b",
    r"resource_?exhausted",
    r"\bwait before (?:trying|retrying|sending)",
    r"concurren\w+ (?:limit|requests?)",
    r"\bper[ -](?:minute|day|hour)\b.{0,30}\blimit|\blimit.{0,30}\bper[ -](?:minute|day|hour)\b",
    r"\b(?:daily|hourly|weekly) .{0,30}\b(?:limit|quota|cap)\b",
    r"requests? (?:rate )?(?:increased|is) too (?:quickly|frequent|fast)",
    r"请求过于频繁|速率限制|频率限制|限流|并发(?:数|限制)|每分钟",
)

# A wait in figures: of a rate limit, unless a failing server (5xx) names it.
PAUSE = re.compile(r"\b(?:wait|retry|try again)\b[a-z ]{0,12} \d+(?:\.\d+)? ?(?:m?s|sec|min|hour|h)\w*\b")

QUOTA = _any(
    r"insufficient[ _-](?:quota|balance|credits?|funds)",
    r"current quota",
    r"credit balance",
    r"requires more credits|credits? required|out of credits?|no credits?|can only afford",
    r"billing[ _](?:hard[ _]limit|not[ _]active)|payment required|arrearage|overdue|spend(?:ing)? limit",
    r"\bmonthly (?:usage |spend\w* )?limit|\bkey limit exceeded",
    r"usage is required for long context",
    r"usage limits?\. you will regain",
    r"余额不足|欠费|额度不足",
)

OVERFLOW_CODES = _any(
    r"context_?(?:length|window|size|limit)_?exceeded",
    r"exceed_context_size",
    r"max_prompt_tokens_exceeded",
    r"tokens_limit_reached",
    r"(?:context_window|prompt|input)_too_(?:long|large)",
    r"max_(?:prompt|input|context)_tokens.{0,20}exceed",
    r"context_overflow|contextwindowexceeded|max_context_length|model_context_window",
)

# Words of another limit: characters, bytes, pictures, fields. They outweigh a vague "too long".
OTHER_MEASURE = _any(
    r"\b(?:characters?|chars|bytes?|pixels?|images?|array|string|field|headers?|entity|file(?:name)?|url|pages?)\b",
    rf"\b{_SIZE}\b",
    r"\b(?:message|body|request|payload|content) size\b",
    r"字符|字节",
)

_CONTEXT = (
    r"(?:context[ _-]?(?:length|window|size|limit|budget)s?|max_seq_len|max_model_len|n_ctx|num_ctx"
    r"|上下文|コンテキスト|컨텍스트)"
)
_OVER = (
    r"(?:exceed\w*|overflow\w*|too (?:long|large|big|many|small)|(?:larg|long|great|bigg)er than|more than|over\b|beyond"
    r"|reached|ran out|not enough|insufficient|doesn't fit|does not fit|to fit|>=?|maximum|limited? (?:to|of)"
    r"|but (?:got|the)|超过|超出|超え|过长|太长|大于|초과)"
)

OVERFLOW_STRONG = _any(
    rf"{_CONTEXT}.{{0,120}}{_OVER}",
    rf"{_OVER}.{{0,120}}{_CONTEXT}",
    rf"{_CONTEXT}.{{0,40}}(?:less|smaller|lower) than.{{0,30}}(?:prompt|input|request|messages)",
    r"\btoo (?:long|large|big) for (?:the |this |its )?(?:model's? )?context\b",
    r"\bcontext overflow|\bnot enough context|\b(?:ran )?out of context",
    r"\bn_keep\b.{0,20}>=",
    r"(?:supports?|limited to|has)\b.{0,30}\b\d[\d.,]*\s?[km]?(?: tokens?)?(?: of)? context\b",
    r"\bmaximum (?:prompt|input|sequence|model) (?:length|tokens?)\b.{0,60}\b(?:but|request|contains|got|exceed|tokens)",
    r"(?:longer than|larger than|greater than|over|exceed\w*|above) (?:the )?maximum (?:prompt|input|sequence|model) length",
    r"\brange of (?:input|prompt|message)\w*[ _](?:length|tokens?)",
)

_COUNT = r"(?:\btokens\b|\btoken (?:count|limit|length|budget|window|size)s?\b)"  # a single token is a key
_MORE = r"exceed\w*|(?:larg|long|great|bigg|high)er than|more than|above|beyond|over the"
OVERFLOW_TOKENS = _any(
    rf"{_COUNT}.{{0,100}}(?:{_MORE}|> ?\d|超过|超出)",
    r"\btokens?\b.{0,100}must be (?:<=|less|at most|no more|below)|must have (?:less|fewer|at most|no more).{0,30}\btokens?\b",
    rf"(?:{_MORE}|too (?:long|large|big|many)|超过|超出).{{0,100}}{_COUNT}",
    r"(?:prompt|input|messages?|history|conversation|sequence).{0,40}\bexceed\w*.{0,40}\b(?:max\w*|limit|allowed|capacity)",
    r"\b(?:prompt|input|sequence)(?: (?:length|size|tokens?))? ?\(?\d+\)? ?>=? ?\d",
    r"\b(?:prompt|input)\b.{0,40}\b(?:long|larg|great|bigg)er than (?:is |are |what is )?(?:allowed|permitted|supported)",
    r"\btokens? ?(?:数|总数|总长度|长度).{0,40}(?:超过|超出|大于)",
)

_SAID = r"(?:messages|prompt|input|conversation|history)"
OVERFLOW_VAGUE = _any(
    r"\b(?:prompt|input|messages?|conversation|history|chat|transcript)\b(?: \([^)]*\))?(?: (?:is|are|was|were|text|tokens?"
    r"|contexts?|you (?:sent|submitted|provided)))*(?: far| much| way)? too (?:long|large|big)\b",
    r"\btoo long (?:a )?(?:prompt|input)\b",
    rf"\breduc\w+ (?:the |your )?(?:length|size|number)? ?(?:of )?(?:the |your )?{_SAID}\b",
    rf"\bshorten\w* (?:the |your )?(?:{_SAID}|chat)\b",
    r"(?:输入|提示词|对话|\bprompt|上下文)\s?(?:内容)?(?:过长|太长|超长)",
    r"(?:输入|提示词|对话)[^。\n]{0,12}(?:超过|超出)[^。\n]{0,12}(?:长度|限制|上限)",
)

_LIMIT = r"(?:\b(?:limit|maximum|max|most|allowed|capacity|accepts|up to)\b|" + _CONTEXT + ")"
TOKEN_LIMIT = _any(rf"{_LIMIT}.{{0,60}}\btokens\b", rf"\btokens\b.{{0,60}}{_LIMIT}", r"\d/\d+ tokens\b")

# Tokens that are no size of a text.
OTHER_TOKENS = re.compile(r"\b(?:stop|special|bad|banned|forced|bias) tokens?\b")

NEGATIVE_OUTPUT = re.compile(r"max\w*tokens\b.{0,60}(?:got|was|received|given|:|=) ?-\d", re.S)

# An output limit of its own ("supports at most 16384 completion tokens") says nothing about the window.
OUTPUT_ONLY = _any(
    r"\bmax_(?!prompt|input|context|total)\w*tokens\b",
    r"\bmax(?:imum)?(?: allowed)?(?: number of)? (?:output|completion|response|new) tokens",
    r"\bmaximum tokens (?:you )?requested|\bmaximum tokens value",  # Bedrock, of the reply
    r"\b(?:output|completion) tokens? (?:limit|requested)",
    r"\bbudget_tokens\b|\b(?:thinking|reasoning)[ _](?:budget|tokens?)\b",
)
INPUT_WORDS = re.compile(
    r"\b(?:context|prompt|inputs?|messages?|conversation|history|total|n_ctx|requested token count)\b|max_model_len"
)

TOO_LARGE = _any(
    r"\b(?:entity|payload|body|request|content|message)\b.{0,20} too large",
    r"(?:request|payload|content)_too_large",
    rf"(?:exceed\w*|over|larger than|maximum|limit|max|too large).{{0,60}}\b(?:bytes?|{_SIZE})\b",
    rf"\b(?:bytes?|{_SIZE})\b.{{0,40}}(?:exceed|limit|maximum|>)",
    r"\bimages?\b.{0,80}(?:exceed|too (?:large|big|many)|maximum|at most|limit)",
    r"too (?:many|much) (?:images?|media|documents?|files|pages)",
    r"at most \d+ (?:images?|image\(s\)|documents?|pdf)|maximum of \d+ (?:pdf pages|images)|\bpixels?\b",
    r"string_above_max_length|string too long",
    r"request exceeds the maximum size",
    r"\b(?:message|body|request|payload|content) size \d+ (?:exceed|is (?:over|larger|more))",
)

AUTH = _any(
    r"invalid_?api_?key|api_key_invalid|authentication|unauthori[sz]ed|permission_?(?:denied|error)|access_?denied",
    r"\bforbidden\b",
    r"\bapi[ _-]?key\b.{0,60}(?:invalid|incorrect|missing|not valid|expired|required|provided|revoked|wrong)",
    r"(?:invalid|incorrect|missing|no|expired|wrong) (?:x-)?api[ _-]?key",
    r"invalid (?:bearer )?token",
    r"无效的(?:令牌|api)|鉴权|认证失败",
)

SERVER = _any(
    r"overload|server_?error|\bapi_error\b|internal_?error|internal (?:server )?error",
    r"service_?unavailable|service (?:is )?unavailable|temporarily unavailable|unavailable|at capacity",
    r"bad gateway|gateway time-?out|\btime(?:d )?[ -]?out\b|timeout_error|\bserver (?:is )?busy",
    r"model runner|loading model|model is (?:still )?loading",
    r"upstream (?:connect|error|request)|no healthy upstream|engine .{0,20}(?:died|dead)",
    r"系统繁忙|服务繁忙",
)

INVALID_CODES = re.compile(r"invalid_?request|bad_?request|invalid_argument|not_found|validation|unprocessable")
