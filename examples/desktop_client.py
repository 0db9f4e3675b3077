"""What a desktop client does with an environment: start its server, read the task, call tools, see the state.

Run it from a checkout, offline:

    python examples/desktop_client.py
"""

import asyncio
import sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import TextResourceContents

SERVER = StdioServerParameters(
    command=sys.executable,
    args=["-m", "langchain_envscaler", "serve", "library_desk", "--task", "library_desk-01-return-a-book"],
)


async def read(client: Client, uri: str) -> str:
    """The text of a resource."""
    contents = (await client.read_resource(uri)).contents[0]
    assert isinstance(contents, TextResourceContents)
    return contents.text


async def main() -> None:
    """One session, as a person with a desktop client would have it."""
    async with Client(stdio_client(SERVER)) as client:
        print("Task:", await read(client, "envscaler://task"))
        tools = await client.list_tools()
        print("Tools:", ", ".join(tool.name for tool in tools.tools))
        for name, arguments in [("check_in", {"copy_id": "C-301"}), ("check_in", {"copy": "C-301"})]:
            result = await client.call_tool(name, arguments)
            print("Error:" if result.is_error else "Result:", result.content[0].model_dump()["text"])
        print("State:", (await read(client, "envscaler://state"))[:200], "...")


if __name__ == "__main__":
    asyncio.run(main())
