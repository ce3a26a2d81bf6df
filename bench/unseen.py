"""Conversations that had no part in choosing brim's constants, made from the public repositories they come from:

    python bench/unseen.py FOLDER --mini-swe REPO --crosswoz REPO --tau REPO
    BRIM_DATA=FOLDER python bench/economics.py --tables files

`REPO`: a clone (work tree or bare) of gruckion/mini-swe-agent, thu-coai/CrossWOZ, sierra-research/tau-bench. The transcripts
of $BRIM_DATA (converted by the same rules) are left out. Written are a hundred runs at random and what is left of the five
hundred as long sessions of one repository (six to thirteen runs in a row); the CrossWOZ dialogues with the largest
results, eight alone and the next hundred as four long ones; forty-eight runs of tau's airline. Nothing of it is committed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

COMMAND = re.compile(r"\n*```bash\s*\n(.*?)\n```\n*", re.S)
RUNS_AT_RANDOM = 100
DIALOGUES_ALONE, DIALOGUES_IN_A_ROW, LONG_DIALOGUES = 8, 25, 4
TAU_RUNS = 48
SEED = 7

Message = dict[str, Any]


def blob(repo: Path, path: str) -> bytes:
    return subprocess.run(["git", "-C", repo, "show", f"HEAD:{path}"], capture_output=True, check=True).stdout


def names(repo: Path, folder: str) -> list[str]:
    command = ["git", "-C", repo, "ls-tree", "-r", "--name-only", "HEAD", folder]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def call(id: str, name: str, arguments: dict[str, Any]) -> Message:
    text = json.dumps(arguments, ensure_ascii=False)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def run_of_mini_swe(data: bytes) -> list[Message]:
    """Its commands stand in the text, in one fenced block each, and are answered by the user."""
    made: list[Message] = []
    open_call = ""
    calls = 0
    for each in json.loads(data)["messages"]:
        given = each["content"]
        text = given if isinstance(given, str) else "".join(part.get("text", "") for part in given)
        if each["role"] == "assistant":
            commands = COMMAND.findall(text)
            open_call = ""
            made.append({"role": "assistant", "content": text})
            if len(commands) == 1:
                calls += 1
                open_call = f"call_{calls}"
                made[-1]["content"] = COMMAND.sub("", text).strip()
                made[-1]["tool_calls"] = [call(open_call, "bash", {"command": commands[0].strip()})]
        elif each["role"] == "user" and open_call:
            made.append({"role": "tool", "content": text, "tool_call_id": open_call, "name": "bash"})
            open_call = ""
        else:
            made.append({"role": each["role"], "content": text})
    return made


def dialogue_of_crosswoz(dialogue: dict[str, Any], tables: dict[str, dict[str, Any]]) -> list[Message]:
    """The wizard's database state is a call where it changes, the rows of its selection are the result."""
    made: list[Message] = []
    calls = 0
    before: dict[str, Any] = {}
    for each in dialogue["messages"]:
        if each["role"] == "usr":
            made.append({"role": "user", "content": each["content"]})
            continue
        asked: list[Message] = []
        results: list[Message] = []
        for domain, state in each["sys_state"].items():
            if state == before.get(domain) or not any(state.values()):
                continue
            calls += 1
            wanted = {name: value for name, value in state.items() if name != "selectedResults" and value}
            asked.append(call(f"call_{calls}", "query_db", {"domain": domain, "constraints": wanted}))
            rows = [tables.get(domain, {}).get(name, name) for name in state["selectedResults"]]
            text = json.dumps(rows, ensure_ascii=False)
            results.append({"role": "tool", "content": text, "tool_call_id": f"call_{calls}", "name": "query_db"})
        before = each["sys_state"]
        if asked:
            made += [{"role": "assistant", "content": "", "tool_calls": asked}, *results]
        made.append({"role": "assistant", "content": each["content"]})
    return made


def in_a_row(parts: Iterable[Sequence[Message]]) -> list[Message]:
    """Whole conversations one after the other; the repeated system prompt is dropped, ids stay apart."""
    made: list[Message] = []
    for number, messages in enumerate(parts, 1):
        for message in messages:
            if message["role"] == "system" and made:
                continue
            calls = [{**each, "id": f"t{number}_{each['id']}"} for each in message.get("tool_calls", ())]
            answered = {"tool_call_id": f"t{number}_{message['tool_call_id']}"} if "tool_call_id" in message else {}
            made.append({**message, **({"tool_calls": calls} if calls else {}), **answered})
    return made


def write(folder: Path, name: str, model: str | None, conversations: Iterable[tuple[str, Sequence[Message]]]) -> None:
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for id, messages in conversations:
            file.write(json.dumps({"id": id, "model": model, "messages": messages}, ensure_ascii=False) + "\n")


def known(data: Path) -> set[str]:
    """Paths and ids of the conversations that brim was made with."""
    found: set[str] = set()
    for path in data.glob("*_*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            source = (value.get("source") or {}).get("path") or []
            found |= {
                str(value.get("id")),
                *(value.get("parts") or []),
                *([source] if isinstance(source, str) else source),
            }
    return found


def mini_swe(folder: Path, repo: Path, seen: set[str]) -> None:
    model = "google/gemini-3-pro-preview"
    paths = [path for path in names(repo, "swebench_results") if path.endswith(".traj.json") and path not in seen]
    random.Random(SEED).shuffle(paths)
    alone, rest = paths[:RUNS_AT_RANDOM], paths[RUNS_AT_RANDOM:]
    write(folder, "coding_mini_swe", model, ((path, run_of_mini_swe(blob(repo, path))) for path in alone))
    of_repository: dict[str, list[str]] = {}
    for path in rest:
        of_repository.setdefault(path.split("/")[-2].rsplit("-", 1)[0], []).append(path)
    sizes = random.Random(SEED)
    rows: list[list[str]] = []
    for runs in of_repository.values():
        while len(runs) >= 6:
            size = sizes.choice([6, 7, 7, 13])
            rows.append(runs[:size])
            del runs[:size]
    long = ((row[0], in_a_row(run_of_mini_swe(blob(repo, path)) for path in row)) for row in rows)
    write(folder, "coding_stitched_long", model, long)


def crosswoz(folder: Path, repo: Path, seen: set[str]) -> None:
    tables = {
        domain: dict(json.loads(blob(repo, f"data/crosswoz/database/{file}_db.json")))
        for domain, file in (("景点", "attraction"), ("餐馆", "restaurant"), ("酒店", "hotel"))
    }
    made: dict[str, list[Message]] = {}
    for part in ("val", "test"):
        with zipfile.ZipFile(io.BytesIO(blob(repo, f"data/crosswoz/{part}.json.zip"))) as archive:
            for id, dialogue in json.loads(archive.read(archive.namelist()[0])).items():
                if (name := f"crosswoz-{part}/{id}") not in seen:
                    made[name] = dialogue_of_crosswoz(dialogue, tables)
    largest = sorted(made, key=lambda name: -sum(len(each["content"]) for each in made[name]))
    write(folder, "service_crosswoz_zh", None, ((name, made[name]) for name in largest[:DIALOGUES_ALONE]))
    start = range(DIALOGUES_ALONE, DIALOGUES_ALONE + DIALOGUES_IN_A_ROW * LONG_DIALOGUES, DIALOGUES_IN_A_ROW)
    rows = [largest[at : at + DIALOGUES_IN_A_ROW] for at in start]
    long = ((row[0], in_a_row(made[name] for name in row)) for row in rows)
    write(folder, "service_crosswoz_stitched_long_zh", None, long)


def tau(folder: Path, repo: Path, seen: set[str]) -> None:
    runs = json.loads(blob(repo, "historical_trajectories/gpt-4o-airline.json"))
    named = {f"tau-airline/task{run['task_id']}-trial{run['trial']}": run["traj"] for run in runs}
    ids = sorted(set(named) - seen)
    random.Random(SEED).shuffle(ids)
    fields = ("role", "content", "tool_calls", "tool_call_id", "name")

    def cleaned(messages: Sequence[Message]) -> list[Message]:
        return [
            {"content": "", **{name: each[name] for name in fields if each.get(name)}, "role": each["role"]}
            for each in messages
        ]

    write(folder, "service_tau_airline", "gpt-4o", ((id, cleaned(named[id])) for id in ids[:TAU_RUNS]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mini-swe", type=Path)
    parser.add_argument("--crosswoz", type=Path)
    parser.add_argument("--tau", type=Path)
    wanted = parser.parse_args()
    data = Path(os.environ.get("BRIM_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    if not data.is_dir():
        sys.exit(f"no transcripts in {data}: name the folder of those to leave out with BRIM_DATA")
    seen = known(data)
    wanted.folder.mkdir(parents=True, exist_ok=True)
    for make, repo in ((mini_swe, wanted.mini_swe), (crosswoz, wanted.crosswoz), (tau, wanted.tau)):
        if repo is not None:
            make(wanted.folder, repo, seen)


if __name__ == "__main__":
    main()
