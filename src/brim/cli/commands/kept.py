"""What the commands of `brim` open: the configuration of a folder, and the store it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from brim.cli.commands.shown import note
from brim.errors import UsageError

if TYPE_CHECKING:
    from brim.agent.config import Config
    from brim.store import Store


class Place(msgspec.Struct, frozen=True):
    """A folder with the environment and the configuration that hold there."""

    folder: Path
    env: dict[str, str]
    config: Config


def folder_of(given: Path | None) -> Path:
    """The folder that was named, or the current one. Raises UsageError where it is none."""
    folder = (given or Path.cwd()).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="give an existing folder")
    return folder.resolve()


def place_of(given: Path | None = None) -> Place:
    """The configuration of a folder. Raises ConfigError, UsageError; what was left out of it is told on stderr."""
    from brim.agent.config import load_config, load_dotenv

    folder = folder_of(given)
    env = load_dotenv(folder, os.environ)
    config = load_config(folder, env)
    for warning in config.warnings:
        note(f"! {warning}")
    return Place(folder, env, config)


def open_kept(place: Place) -> Store:
    """The store of sessions; told on stderr where it is damaged. Raises StoreUnusable, ConfigError."""
    from brim.store import open_store

    store = open_store(place.config.get("store"))
    if store.damage:
        note(f"! {store.damage}")
    store.on_damage = lambda damage: note(f"! {damage}")
    return store
