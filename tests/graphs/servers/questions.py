"""An MCP server whose tools ask a person something; what they do is written to a journal file."""

import argparse
import json
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel


class Size(BaseModel):
    size: int


class Colour(BaseModel):
    colour: str


def ask_size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def ask_colour(size: Annotated[Size, Resolve(ask_size)]) -> Elicit[Colour]:
    return Elicit(f"Which colour for size {size.size}?", Colour)


def make_server(journal: Path) -> MCPServer:
    """The server; what its tools do goes to the journal."""
    server = MCPServer("questions")

    def write(event: str, **fields: object) -> None:
        with journal.open("a") as file:
            file.write(json.dumps({"event": event, **fields}) + "\n")

    @server.tool()
    def order(item: str, size: Annotated[Size, Resolve(ask_size)]) -> str:
        """Order something."""
        write("ordered", item=item, size=size.size)
        return f"ordered {item} in size {size.size}"

    @server.tool()
    def paint(
        item: str,
        size: Annotated[Size, Resolve(ask_size)],
        colour: Annotated[Colour, Resolve(ask_colour)],
    ) -> str:
        """Paint something; asks twice."""
        write("painted", item=item, size=size.size, colour=colour.colour)
        return f"painted {item} of size {size.size} {colour.colour}"

    async def _measure(item: str, ctx: Context) -> str:
        write("begun", item=item)
        answer = await ctx.elicit("How many?", Size)
        if answer.action != "accept":
            write("given up", item=item, action=answer.action)
            return f"given up: {answer.action}"
        write("measured", item=item, size=answer.data.size)
        return f"measured {answer.data.size}"

    @server.tool()
    async def measure(item: str, ctx: Context) -> str:
        """Begin, then ask, in the middle of the work."""
        return await _measure(item, ctx)

    @server.tool(annotations=ToolAnnotations(idempotentHint=True))
    async def measure_again(item: str, ctx: Context) -> str:
        """The same, and it may be repeated."""
        return await _measure(item, ctx)

    @server.tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def linger(seconds: float) -> str:
        """Take a while."""
        import anyio

        write("lingering")
        await anyio.sleep(seconds)
        return "lingered"

    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal", type=Path, required=True)
    make_server(parser.parse_args().journal).run()
