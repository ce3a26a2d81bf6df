"""The commands of a conversation, `/help` and the rest, in three groups that enter themselves into one table."""

from brim.cli.slash import context, sessions, workings
from brim.cli.slash.table import COMMANDS, Command, command, run_command

__all__ = ["COMMANDS", "Command", "command", "context", "run_command", "sessions", "workings"]
