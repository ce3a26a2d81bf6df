"""Modes compared in use: sessions are shared out by their ids, the same way every time."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brim.agent.config import load_config
from brim.agent.trial import ORDER, assigned_mode, check_shares
from brim.errors import ConfigError


def test_shares_are_met() -> None:
    """Of many sessions each mode gets its share, and the rest gets none."""
    shares = {"full": 0.1, "compact": 0.3, "auto": 0.4}
    got = [assigned_mode(f"session-{n}", shares) for n in range(20_000)]
    for mode, share in (*shares.items(), (None, 0.2)):
        assert got.count(mode) / len(got) == pytest.approx(share, abs=0.015)


def test_known_ids() -> None:
    """An id keeps its mode from one version to the next."""
    shares = {"full": 0.3, "compact": 0.3, "auto": 0.4}
    assert [assigned_mode(id, shares) for id in ("a", "b", "c", "d", "e", "f")] == [
        "full", "compact", "full", "auto", "full", "full",
    ]  # fmt: skip


@given(st.text(), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_larger_share_keeps_its_sessions(id: str, less: float, more: float) -> None:
    """Raising the first mode's share never takes one of its sessions away; a share of 1 takes all, of 0 none."""
    low, high = sorted((less, more))
    if assigned_mode(id, {"full": low}) == "full":
        assert assigned_mode(id, {"full": high}) == "full"
    assert assigned_mode(id, {"auto": 1.0}) == "auto"
    assert assigned_mode(id, dict.fromkeys(ORDER, 0.0)) is None


@pytest.mark.parametrize(
    "wrong", [{"full": 0.7, "auto": 0.5}, {"full": -0.1}, {"full": "half"}, {"fast": 0.5}, {"full": True}]
)
def test_shares_that_make_no_sense(wrong: dict[str, object]) -> None:
    """Shares over 1 together, of other modes or of other types are errors that name them."""
    with pytest.raises(ConfigError, match="experiment"):
        check_shares(wrong)


def test_read_from_the_config(tmp_path: Path) -> None:
    """[experiment] of the user's config file is read and checked; an unknown mode is told with the nearest one."""
    file = tmp_path / "config.toml"
    file.write_text("[experiment]\ncompact = 0.25\nauto = 0.5\n")
    assert load_config(tmp_path, {}, user_file=file).experiment() == {"compact": 0.25, "auto": 0.5}
    assert load_config(tmp_path, {"BRIM_EXPERIMENT_FULL": "0.25"}, user_file=file).experiment()["full"] == 0.25
    file.write_text("[experiment]\ncompact = 0.75\nauto = 0.5\n")
    with pytest.raises(ConfigError, match=r"1\.25 together"):
        load_config(tmp_path, {}, user_file=file)
    file.write_text("[experiment]\ncompct = 0.75\n")
    with pytest.raises(ConfigError, match=r"experiment\.compct"):
        load_config(tmp_path, {}, user_file=file)
