"""Answers by a schema, fallback models and effort, through `ai` as users and scripts run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from brim.testing import ScriptedProvider, broken_stream, fault, reply, tool_call, tool_calls
from shared_ai import Home, make_home

CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 0}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
GOOD = '{"city": "北京", "people": 21000000}'
BAD = '{"city": "北京", "people": -5}'


def home_with(root: Path, url: str, schema: Any = CITY) -> Home:
    home = make_home(root, url)
    (home.work / "city.json").write_text(json.dumps(schema))
    return home


def own_provider(home: Home, api: str, url: str) -> None:
    """A provider of the user's own, `own`, that speaks an API at the scripted server."""
    (home.root / "config.toml").write_text(f'[providers.own]\napi = "{api}"\nbase_url = "{url}"\nkey = "k"\n')


# ---- structured answers --------------------------------------------------------------------------------------------


def test_an_answer_by_a_schema_is_the_json_alone(tmp_path: Path) -> None:
    """The API is asked for the schema, the answer is checked, and stdout carries one JSON value and nothing else."""
    with ScriptedProvider([reply(GOOD), reply(f"```json\n{GOOD}\n```"), reply(GOOD)]) as upstream:
        home = home_with(tmp_path / "home", upstream.base_url)
        for _ in range(2):
            ran = home.run("the capital of China", "--schema", "city.json")
            assert ran.code == 0 and json.loads(ran.out) == {"city": "北京", "people": 21_000_000}
            assert len(ran.out.splitlines()) == 1
        asked = upstream.requests[0].body["response_format"]
        assert asked["type"] == "json_schema"
        assert asked["json_schema"] == {"name": "city", "strict": True, "schema": CITY}
        result = home.run("again", "--schema", "city.json", "--output-format", "json").result
    assert result["data"]["people"] == 21_000_000 and result["text"] == GOOD


def test_an_answer_that_does_not_keep_to_the_schema_is_asked_once_more(tmp_path: Path) -> None:
    """The model is told what is wrong, once; then the good answer is printed, or the command fails and says why."""
    with ScriptedProvider([reply(BAD), reply(GOOD), reply("no idea"), reply(BAD)]) as upstream:
        home = home_with(tmp_path / "home", upstream.base_url)
        ran = home.run("the capital of China", "--schema", "city.json")
        assert ran.code == 0 and json.loads(ran.out)["people"] == 21_000_000
        assert "asking once more" in ran.err and "$.people" in ran.err
        told = upstream.requests[1].messages[-1]
        assert told["role"] == "user" and "$.people" in told["content"] and '"minimum":0' in told["content"]
        failed = home.run("the capital of China", "--schema", "city.json")
        assert (failed.code, failed.out) == (1, "")
        assert "asked twice" in failed.err and "-5" in failed.err
        assert len(upstream.requests) == 4


def test_each_api_is_asked_in_its_own_way(tmp_path: Path) -> None:
    """Responses has text.format, Anthropic output_config.format without bounds (they are checked here)."""
    with ScriptedProvider([reply(GOOD)], repeat_last=True) as upstream:
        home = home_with(tmp_path / "home", upstream.base_url)
        own_provider(home, "openai.responses", upstream.base_url)
        assert home.run("q", "--schema", "city.json", "--model", "own/gpt-5").code == 0
        form = upstream.requests[-1].body["text"]["format"]
        assert form == {"type": "json_schema", "name": "city", "schema": CITY, "strict": True}
        own_provider(home, "anthropic.messages", upstream.url)
        assert home.run("q", "--schema", "city.json", "--model", "own/claude-sonnet-5-5", "--effort", "low").code == 0
        body = upstream.requests[-1].body
        assert body["output_config"]["effort"] == "low"
        asked = body["output_config"]["format"]
        assert asked["type"] == "json_schema"
        assert asked["schema"]["properties"]["people"] == {"type": "integer"}
        assert asked["schema"]["additionalProperties"] is False
        assert home.run("q", "--schema", "city.json", "--model", "own/claude-3-5-haiku-20241022").code == 0
        body = upstream.requests[-1].body
        assert "output_config" not in body and "minimum" in json.dumps(body["system"])


def test_a_schema_that_is_no_objects_is_wrapped(tmp_path: Path) -> None:
    """APIs take objects only: a list is asked for inside one, and printed without it."""
    schema = {"type": "array", "items": {"$ref": "#/$defs/name"}, "$defs": {"name": {"type": "string"}}}
    with ScriptedProvider([reply('{"answer": ["a", "b"]}')]) as upstream:
        home = home_with(tmp_path / "home", upstream.base_url, schema)
        ran = home.run("names", "--schema", "city.json")
        asked = upstream.requests[0].body["response_format"]["json_schema"]["schema"]
    assert ran.out == '["a", "b"]\n'
    assert asked["type"] == "object" and asked["$defs"] == schema["$defs"]


def test_tools_run_before_an_answer_by_a_schema(tmp_path: Path) -> None:
    """The model may look first; only the last answer keeps to the schema."""
    with ScriptedProvider([tool_call("glob", {"pattern": "*"}, text="Let me look."), reply(GOOD)]) as upstream:
        ran = home_with(tmp_path / "home", upstream.base_url).run("q", "--schema", "city.json")
    assert ran.code == 0 and json.loads(ran.out)["city"] == "北京"


def test_a_server_that_knows_no_schema_still_answers_by_it(tmp_path: Path) -> None:
    """A 400 that names the field is asked again without it; what comes is checked all the same."""
    refused = fault(400, {"error": {"message": "response_format.type json_schema is not supported"}})
    with ScriptedProvider([refused, reply("It is Beijing."), reply(GOOD)]) as upstream:
        ran = home_with(tmp_path / "home", upstream.base_url).run("q", "--schema", "city.json")
        assert ran.code == 0 and json.loads(ran.out)["people"] == 21_000_000
        assert "does not take response_format" in ran.err
        assert "response_format" not in upstream.requests[1].body


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "no JSON"),
        ("[]", "no object"),
        ('{"type": "strng"}', "no JSON schema"),
        ('{"$ref": "http://x/y"}', "http://x/y"),
    ],
)
def test_a_schema_that_is_none_is_a_usage_error(text: str, words: str, tmp_path: Path) -> None:
    """Nothing is asked with a schema that cannot be checked."""
    home = make_home(tmp_path / "home", None)
    (home.work / "city.json").write_text(text)
    ran = home.run("q", "--schema", "city.json", "--output-format", "json")
    assert ran.code == 2 and words in ran.result["error"]["message"]
    missing = home.run("q", "--schema", "nothing.json")
    assert missing.code == 2 and "nothing.json" in missing.err


def test_a_schema_in_a_profile(tmp_path: Path) -> None:
    """A profile names a schema beside its config file."""
    with ScriptedProvider([reply(GOOD)]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        (home.root / "city.json").write_text(json.dumps(CITY))
        (home.root / "config.toml").write_text('[profiles.city]\nschema = "city.json"\neffort = "low"\n')
        ran = home.run("q", "--profile", "city")
    assert ran.code == 0 and json.loads(ran.out)["city"] == "北京"


@pytest.mark.local_model
def test_the_embedded_model_keeps_to_a_schema(tmp_path: Path) -> None:
    """llama.cpp holds the 135M model to the schema token by token: the answer is valid, whatever it says."""
    from brim.errors import ModelMissing
    from brim.providers.models import model_path

    try:
        path = model_path("smollm2")
    except ModelMissing as missing:
        pytest.skip(str(missing))
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "green", "blue"]}, "sure": {"type": "boolean"}},
        "required": ["colour", "sure"],
        "additionalProperties": False,
    }
    home = make_home(tmp_path / "home", None, key=None)
    (home.work / "colour.json").write_text(json.dumps(schema))
    ran = home.run("What colour is the sky?", "--model", f"local/{path}", "--schema", "colour.json", timeout=300)
    assert ran.code == 0, ran
    answer = json.loads(ran.out)
    assert answer["colour"] in ("red", "green", "blue") and isinstance(answer["sure"], bool)
    assert "no tools" in ran.err


# ---- fallbacks -----------------------------------------------------------------------------------------------------


def fallback_home(root: Path, first: str, second: str) -> Home:
    home = make_home(root, first)
    (home.root / "config.toml").write_text(
        f'fallback_models = ["second/other-model"]\n[providers.second]\nbase_url = "{second}"\nkey = "k2"\n'
    )
    return home


def test_a_fallback_answers_where_the_provider_is_down(tmp_path: Path) -> None:
    """It is told, the session goes on, and the next turn begins with the first model again."""
    with (
        ScriptedProvider([fault(503), reply("first again")]) as first,
        ScriptedProvider([reply("second here")]) as second,
    ):
        home = fallback_home(tmp_path / "home", first.base_url, second.base_url)
        ran = home.run("hello", "--session", "s", "--output-format", "stream-json")
        assert ran.code == 0 and ran.result["text"] == "second here" and ran.result["model"] == "second/other-model"
        notice = next(event for event in ran.events if event["type"] == "notice" and event["kind"] == "fallback")
        assert "openai/gpt-4o" in notice["text"] and "second/other-model" in notice["text"] and "503" in notice["text"]
        assert second.requests[0].body["model"] == "other-model"
        again = home.run("and now?", "--session", "s", "--output-format", "json")
        assert again.result["model"] == "openai/gpt-4o" and again.result["text"] == "first again"
        assert [each["content"] for each in first.requests[-1].messages[1:]] == ["hello", "second here", "and now?"]


def test_a_fallback_stays_for_the_turn(tmp_path: Path) -> None:
    """The calls of the first model are answered by the second one, which is asked to the end of the turn."""
    with (
        ScriptedProvider([tool_call("glob", {"pattern": "*"}), fault(529)]) as first,
        ScriptedProvider([tool_call("glob", {"pattern": "*.py"}), reply("done")]) as second,
    ):
        ran = fallback_home(tmp_path / "home", first.base_url, second.base_url).run("look", "--output-format", "json")
        assert ran.code == 0 and ran.result["text"] == "done"
        assert len(first.requests) == 2 and len(second.requests) == 2
        assert any(message["role"] == "tool" for message in second.requests[0].messages)


def test_thinking_is_not_sent_to_another_model(tmp_path: Path) -> None:
    """What one model thought means nothing to another: it is left out there, and kept for its own."""
    thinking = [tool_call("glob", {"pattern": "*"}), reply("one", thinking="first thought")]
    with ScriptedProvider([*thinking, fault(503), reply("three")]) as first, ScriptedProvider([reply("two")]) as second:
        home = fallback_home(tmp_path / "home", first.url, second.url)
        (home.root / "config.toml").write_text(
            'fallback_models = ["second/claude-x"]\n'
            f'[providers.first]\napi = "anthropic.messages"\nbase_url = "{first.url}"\nkey = "k"\n'
            f'[providers.second]\napi = "anthropic.messages"\nbase_url = "{second.url}"\nkey = "k"\n'
        )
        for text in ("a", "b", "c"):
            assert home.run(text, "--session", "s", "--model", "first/claude-y").code == 0
        assert "first thought" not in json.dumps(second.requests[0].body)
        assert '"one"' in json.dumps(second.requests[0].body)
        assert "first thought" in json.dumps(first.requests[-1].body)


@pytest.mark.parametrize(
    "entry",
    [fault(401), fault(400), fault(400, {"error": {"message": "maximum context length is 9 tokens",
                                                   "code": "context_length_exceeded"}})],
    ids=["auth", "bad request", "overflow"],
)  # fmt: skip
def test_no_fallback_for_what_another_model_cannot_help(entry: Any, tmp_path: Path) -> None:
    """A wrong key, a bad request and an overflow are the user's to know."""
    with ScriptedProvider([entry], repeat_last=True) as first, ScriptedProvider([reply("x")]) as second:
        ran = fallback_home(tmp_path / "home", first.base_url, second.base_url).run("hello")
        assert ran.code in (77, 1, 3) and not second.requests


def test_no_fallback_once_text_was_shown(tmp_path: Path) -> None:
    """A stream that breaks off after text is an error: a second answer behind half a first one would be none."""
    with ScriptedProvider([broken_stream("Half an ans")]) as first, ScriptedProvider([reply("x")]) as second:
        ran = fallback_home(tmp_path / "home", first.base_url, second.base_url).run("hello")
        assert ran.code == 69 and not second.requests


def test_a_fallback_that_is_down_or_has_no_key_is_passed_over(tmp_path: Path) -> None:
    """Each is tried in its order; where none answers, the last failure is the error."""
    with (
        ScriptedProvider([fault(503)], repeat_last=True) as first,
        ScriptedProvider([fault(503), reply("ok")]) as second,
    ):
        home = fallback_home(tmp_path / "home", first.base_url, second.base_url)
        arguments = ("hello", "--fallback", "anthropic/claude-x", "--fallback", "second/one")
        failed = home.run(*arguments)
        assert (
            failed.code == 69
            and "anthropic/claude-x cannot be used" in failed.err
            and "ANTHROPIC_API_KEY" in failed.err
        )
        assert home.run(*arguments, "--fallback", "second/two").out == "ok\n"


# ---- effort --------------------------------------------------------------------------------------------------------


def test_effort_reaches_the_request(tmp_path: Path) -> None:
    """By flag, setting, environment and profile; the flag wins, over a budget from a file, too."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        model = ("--model", "openai/o3")
        (home.root / "config.toml").write_text(
            'thinking_budget = 20000\n[profiles.deep]\neffort = "high"\nthinking_budget = 9\n'
        )
        for arguments, budget, effort in (
            ((), "", "high"),
            (("--effort", "low"), "", "low"),
            ((), "100", "low"),
            (("--profile", "deep"), "", "low"),
        ):
            assert home.run("q", *model, *arguments, BRIM_THINKING_BUDGET=budget).code == 0
            assert upstream.requests[-1].body["reasoning_effort"] == effort
        quiet = home.run("q", "--effort", "high")
        assert "reasoning_effort" not in upstream.requests[-1].body and "gpt-4o does not think" in quiet.err


def test_an_effort_that_a_server_refuses_is_left_out_and_told_once(tmp_path: Path) -> None:
    """A server that does not know the field is asked without it from then on."""
    refused = fault(400, {"error": {"message": "Unrecognized request argument supplied: reasoning_effort"}})
    script: list[Any] = [refused, tool_call("glob", {"pattern": "*"}), reply("ok")]
    with ScriptedProvider(script) as upstream:
        ran = make_home(tmp_path / "home", upstream.base_url).run("q", "--model", "openai/my-model", "--effort", "low")
        assert ran.code == 0 and ran.err.count("does not take reasoning_effort") == 1
        assert [("reasoning_effort" in each.body) for each in upstream.requests] == [True, False, False]


def test_thinking_leaves_room_for_the_answer(tmp_path: Path) -> None:
    """A budget of thinking comes on top of the answer's maximum, and a temperature does not stand beside it."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        own_provider(home, "anthropic.messages", upstream.url)
        ran = home.run("q", "--model", "own/claude-sonnet-4-5", "--effort", "medium", "--temperature", "0.2")
        body = upstream.requests[-1].body
        assert body["thinking"] == {"type": "enabled", "budget_tokens": 8_192}
        assert body["max_tokens"] == 8_192 + 4_096 and "temperature" not in body
        assert "temperature" in ran.err


def test_a_cost_limit_without_a_price_is_told(tmp_path: Path) -> None:
    """A limit that cannot be held to is no silent one."""
    with ScriptedProvider([reply("ok")], repeat_last=True) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert "max_cost cannot be held" in home.run("q", "--model", "openai/nobodys-model", "--max-cost", "1").err
        assert "max_cost" not in home.run("q", "--max-cost", "1").err


def test_fallbacks_from_the_environment(tmp_path: Path) -> None:
    """A list in an environment variable is written with commas."""
    with ScriptedProvider([fault(503)]) as first, ScriptedProvider([reply("second")]) as second:
        home = fallback_home(tmp_path / "home", first.base_url, second.base_url)
        assert home.run("q", BRIM_FALLBACK_MODELS="mistral/x, second/y").out == "second\n"


# ---- calls of one message ------------------------------------------------------------------------------------------


def test_calls_beyond_the_most_of_a_message_are_not_run(tmp_path: Path) -> None:
    """Each of them has a result that says so; the setting says how many run."""
    calls = [("glob", {"pattern": f"*{n}"}) for n in range(5)]
    with ScriptedProvider([tool_calls(*calls), reply("ok")]) as upstream:
        home = make_home(tmp_path / "home", upstream.base_url)
        assert home.run("go", BRIM_MAX_CALLS="3").code == 0
        results = [each["content"] for each in upstream.requests[1].messages if each["role"] == "tool"]
    assert len(results) == 5
    assert [("not run" in text and "5 calls" in text) for text in results] == [False] * 3 + [True] * 2
