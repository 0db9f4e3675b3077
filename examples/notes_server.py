"""A small MCP server of somebody else's, as far as the agent is concerned: notes, kept while it runs."""

from mcp.server import MCPServer

server = MCPServer("notes")
notes: list[str] = []


@server.tool()
def add_note(text: str) -> str:
    """Keep a note."""
    notes.append(text)
    return f"{len(notes)} notes kept"


@server.tool()
def list_notes() -> list[str]:
    """All notes, in order."""
    return notes


if __name__ == "__main__":
    server.run("stdio")
