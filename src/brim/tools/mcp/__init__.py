"""Tools of MCP servers: started from the configuration, offered within a budget of schemas, bounded and permitted like
brim's own. docs/mcp.md tells what a user sees of it.

`settings` and `project` say which servers there are; `stdio`, `http` and `server` run one; `repair`, `schemas` and `results`
translate; `servers` keeps them together and decides what is offered; `finder` is how the rest is reached. The `mcp` package
is imported when a server starts, never before.
"""

from brim.tools.mcp.servers import McpServers, ServerState
from brim.tools.mcp.settings import McpSettings, ServerSettings

__all__ = ["McpServers", "McpSettings", "ServerSettings", "ServerState"]
