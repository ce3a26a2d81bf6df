"""Laws of rewinding: whatever was done to the files, going back gives what was there, and undo what is there now."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from brim.agent.rewind import rewind, undo
from brim.conversation import assistant, call, result, user
from brim.store import TEMPORARY, open_store
from brim.tools import ToolContext, run_tool

NAMES = ("a.txt", "b.txt", "sub/c.txt")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("write", "edit", "remove by hand", "write by hand")),
        st.sampled_from(NAMES),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=9,
)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in NAMES if (folder / name).exists()}


@settings(max_examples=80, deadline=None)
@given(STEPS, st.integers(0, 8), st.booleans())
def test_back_is_what_was_there_and_undo_what_is_there(
    steps: list[tuple[str, str, int]], back: int, both: bool
) -> None:
    """With force every file the tools changed since is as it was before its first change since; without, no file that somebody
    else has changed is touched. Undo, with force, restores the folder byte for byte, and no message is ever lost."""
    with tempfile.TemporaryDirectory() as root, open_store(TEMPORARY) as store:
        work = Path(root)
        id = store.new_session(str(work), "auto", "openai/gpt-4o").id
        context = ToolContext(workspace=work, blobs=store.blobs(id), count=len)
        seqs: list[int] = []
        changed: list[dict[str, bytes | None]] = []  # of each step: the files a tool changed, as they were before
        for step, (kind, name, value) in enumerate(steps):
            path = work / name
            seqs.append(store.append(id, [user(f"step {step}")]).start)
            before = path.read_bytes() if path.exists() else None
            did: dict[str, bytes | None] = {}
            if kind == "remove by hand":
                path.unlink(missing_ok=True)
            elif kind == "write by hand":
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"hand {value}\n")
            else:
                arguments: dict[str, Any] = {"path": name, "content": f"text {value}\n"}
                if kind == "edit":
                    arguments = {"path": name, "old": "text", "new": f"text {value}"}
                context.files.clear()  # the model has read it again
                output = asyncio.run(run_tool(kind, arguments, context))
                meta = {"checkpoint": output.meta["checkpoint"]} if "checkpoint" in output.meta else None
                store.append(id, [assistant("", call(kind, arguments, id=f"c{step}"))])
                store.append(id, [result(f"c{step}", output.text, is_error=output.is_error or None)], meta=meta)
                if meta:
                    did[name] = before
            changed.append(did)
        back = min(back, len(steps) - 1)
        wanted: dict[str, bytes | None] = {}
        for did in changed[back:]:
            for name, before in did.items():
                wanted.setdefault(name, before)
        now, said = snapshot(work), list(store.load(id).messages)

        careful = rewind(store, id, seqs[back], "files", context)
        for name, _ in careful.left:
            assert (work / name).read_bytes() == now[name]
        if careful.marker is not None:
            undo(store, id, context, force=True)
        assert snapshot(work) == now

        done = rewind(store, id, seqs[back], "both" if both else "files", context, force=True)
        after = snapshot(work)
        assert after == {name: data for name, data in {**now, **wanted}.items() if data is not None}
        assert list(store.load(id).messages)[: len(said)] == said
        if both:
            assert list(store.load(done.session).messages) == said[: seqs[back]]
        if done.marker is not None:
            assert undo(store, done.session, context, force=True).session == id
        assert snapshot(work) == now
