"""The applications that an environment can be installed into."""

from enum import StrEnum

__all__ = ["Client"]


class Client(StrEnum):
    """An application that starts MCP servers itself."""

    claude_desktop = "claude-desktop"
    claude_code = "claude-code"
    cursor = "cursor"
    vscode = "vscode"

    @property
    def section(self) -> str:
        """The key of its configuration under which servers stand."""
        return "servers" if self is Client.vscode else "mcpServers"
