"""An MCP server to try a client on: state, schemas of every shape, all kinds of results and faults.

Every call is written to a journal file as one line of JSON, so that a test can count what really happened.
"""

import argparse
import asyncio
import json
import os
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

SHAPES = {
    "type": "object",
    "title": "Shapes",
    "$defs": {
        "Node": {
            "type": "object",
            "title": "Node",
            "properties": {"label": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
            "required": ["label"],
        }
    },
    "properties": {
        "zeta": {"$ref": "#/$defs/Node", "description": "A list."},
        "alpha": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "title": "Alpha"},
        "free": {"type": "object"},
        "title": {"type": ["string", "null"], "enum": ["a", None]},
    },
    "required": ["zeta"],
    "additionalProperties": False,
}


def _object(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }


TOOLS = [
    types.Tool(name="add", description="Add to the number.", input_schema=_object(amount="integer")),
    types.Tool(
        name="show",
        description="Show the number.",
        input_schema={"type": "object"},
        annotations=types.ToolAnnotations(read_only_hint=True),
    ),
    types.Tool(
        name="put",
        description="Set the number.",
        input_schema=_object(value="integer"),
        annotations=types.ToolAnnotations(idempotent_hint=True, destructive_hint=False),
    ),
    types.Tool(name="shapes", description="Take every shape.", input_schema=SHAPES),
    types.Tool(name="fail", description="Fail.", input_schema=_object(reason="string")),
    types.Tool(name="refuse", description="Answer with a protocol error.", input_schema={"type": "object"}),
    types.Tool(name="picture", description="Give a picture.", input_schema={"type": "object"}),
    types.Tool(name="wait", description="Wait, with progress.", input_schema=_object(seconds="number")),
    types.Tool(name="die", description="End the process.", input_schema={"type": "object"}),
    types.Tool(
        name="die_once",
        description="End the process the first time.",
        input_schema={"type": "object"},
        annotations=types.ToolAnnotations(idempotent_hint=True),
    ),
    types.Tool(name="learn", description="Offer one more tool.", input_schema=_object(name="string")),
]


class Workshop:
    """The server's state and its answers."""

    def __init__(self, journal: Path | None, tools: list[str] | None, name: str) -> None:
        self.number = 0
        self.tools = [tool for tool in TOOLS if tools is None or tool.name in tools]
        self.journal = journal
        self.name = name

    def write(self, event: str, **fields: Any) -> None:
        if self.journal is not None:
            with self.journal.open("a") as file:
                file.write(
                    json.dumps({"event": event, "server": self.name, "pid": os.getpid(), **fields}) + "\n"
                )

    async def list_tools(
        self, ctx: ServerRequestContext[Any, Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        # Two pages, to see that a client asks for both.
        if params is not None and params.cursor == "second":
            return types.ListToolsResult(tools=self.tools[5:])
        more = "second" if len(self.tools) > 5 else None
        return types.ListToolsResult(tools=self.tools[:5], next_cursor=more, _meta={"workshop/listed": True})

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        meta = {
            key: value for key, value in (ctx.meta or {}).items() if "/" in key and not key.startswith("io.")
        }
        arguments = params.arguments or {}
        self.write("call", name=params.name, arguments=arguments, meta=meta)
        if all(tool.name != params.name for tool in self.tools):
            return self.result(f"unknown tool {params.name}", is_error=True)
        answer = getattr(self, f"tool_{params.name}", None)
        if answer is None:
            return self.result(f"{params.name} was learned")
        return await answer(ctx, **arguments)

    def result(self, text: str, *, is_error: bool = False, data: Any = None) -> types.CallToolResult:
        return types.CallToolResult(
            content=[types.TextContent(text=text)],
            structured_content=data,
            is_error=is_error,
            _meta={"workshop/number": self.number},
        )

    async def tool_add(self, ctx: Any, amount: int) -> types.CallToolResult:
        self.number += amount
        return self.result(str(self.number), data={"number": self.number})

    async def tool_show(self, ctx: Any) -> types.CallToolResult:
        return self.result(str(self.number))

    async def tool_put(self, ctx: Any, value: int) -> types.CallToolResult:
        self.number = value
        return self.result(str(self.number))

    async def tool_shapes(self, ctx: Any, **arguments: Any) -> types.CallToolResult:
        return self.result(json.dumps(arguments))

    async def tool_fail(self, ctx: Any, reason: str) -> types.CallToolResult:
        return self.result(f"failed: {reason}", is_error=True)

    async def tool_refuse(self, ctx: Any) -> types.CallToolResult:
        from mcp import MCPError

        raise MCPError(types.INVALID_PARAMS, "this is refused")

    async def tool_picture(self, ctx: Any) -> types.CallToolResult:
        return types.CallToolResult(
            content=[
                types.TextContent(text="a pixel"),
                types.ImageContent(data=PIXEL, mime_type="image/png"),
                types.AudioContent(data="AAAA", mime_type="audio/wav"),
                types.ResourceLink(name="file", uri="workshop://file"),
                types.ResourceLink(name="web", uri="https://example.org/a.png", mime_type="image/png"),
                types.EmbeddedResource(
                    resource=types.BlobResourceContents(
                        uri="workshop://b", blob="AAAA", mime_type="application/pdf"
                    )
                ),
                types.EmbeddedResource(
                    resource=types.TextResourceContents(uri="workshop://t", text="embedded")
                ),
            ],
        )

    async def tool_wait(self, ctx: Any, seconds: float) -> types.CallToolResult:
        try:
            await ctx.session.report_progress(1, 2, "half")
            await anyio.sleep(seconds)
        except asyncio.CancelledError:
            self.write("cancelled")
            raise
        return self.result("waited")

    async def tool_die(self, ctx: Any) -> types.CallToolResult:
        self.number += 1
        os._exit(3)

    async def tool_die_once(self, ctx: Any) -> types.CallToolResult:
        assert self.journal is not None
        lines = [json.loads(line) for line in self.journal.read_text().splitlines()]
        if sum(line["event"] == "call" and line["name"] == "die_once" for line in lines) == 1:
            os._exit(3)
        return self.result("alive")

    async def tool_learn(self, ctx: Any, name: str) -> types.CallToolResult:
        self.tools.append(types.Tool(name=name, description="Learned.", input_schema={"type": "object"}))
        return self.result(f"learned {name}")


def make_server(workshop: Workshop) -> Server[Any]:
    return Server(
        workshop.name,
        version="1",
        instructions=f"{workshop.name} keeps a number.",
        get_tool_input_schema=lambda name: None,
        on_list_tools=workshop.list_tools,
        on_call_tool=workshop.call_tool,
    )


async def _stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="workshop")
    parser.add_argument("--journal", type=Path)
    parser.add_argument("--tools", nargs="*")
    parser.add_argument("--http", type=int, metavar="PORT")
    parser.add_argument("--stateless", action="store_true")
    options = parser.parse_args()
    workshop = Workshop(options.journal, options.tools, options.name)
    workshop.write("started")
    server = make_server(workshop)
    if options.http is None:
        anyio.run(_stdio, server)
        workshop.write("ended")
        return
    import uvicorn

    app = server.streamable_http_app(stateless_http=options.stateless)
    uvicorn.run(app, host="127.0.0.1", port=options.http, log_level="warning", timeout_graceful_shutdown=1)


if __name__ == "__main__":
    main()
