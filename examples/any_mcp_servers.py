"""One agent over several MCP servers, from a configuration as Claude Desktop, Cursor or VS Code keep it.

Run it from a checkout, offline:

    python examples/any_mcp_servers.py
"""

import sys
from pathlib import Path
from typing import Any

from langchain_envscaler import ChatEnvScaler, create_tool_agent
from langchain_envscaler.environments.metadata import ReferenceCall
from langchain_envscaler.graphs.reference import ReferenceBackend

CONFIG: dict[str, Any] = {
    "mcpServers": {
        "library": {
            "command": sys.executable,
            "args": [
                "-m",
                "langchain_envscaler",
                "serve",
                "library_desk",
                "--task",
                "library_desk-01-return-a-book",
            ],
        },
        "notes": {
            "command": sys.executable,
            "args": [str(Path(__file__).parent / "notes_server.py")],
        },
    }
}
"""Yours works here as it is: this mapping, or the path of your configuration file."""

# The calls that a model would choose itself; written down here, so that the story needs no weights.
CALLS = [
    ReferenceCall(name="get_member", arguments={"member_id": "M-102"}),
    ReferenceCall(name="check_in", arguments={"copy_id": "C-301"}),
    ReferenceCall(name="add_note", arguments={"text": "M-102 has returned The Salt Road."}),
    ReferenceCall(name="list_notes"),
]


def main() -> None:
    """Let one agent use both servers."""
    model = ChatEnvScaler(model="written-down", backend=ReferenceBackend(CALLS))
    agent = create_tool_agent(model, CONFIG)
    state = agent.invoke(
        {"messages": [{"role": "user", "content": "Check in The Salt Road for M-102 and make a note of it."}]}
    )
    for message in state["messages"]:
        print(f"{message.type}: {message.text or message.tool_calls}")


if __name__ == "__main__":
    main()
