"""A toolset holds its connections: state stays, tasks and loops may differ, a server's end is noticed."""

import asyncio
import gc
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException

from langchain_envscaler.errors import InfrastructureError, NotFoundError, UsageError
from langchain_envscaler.graphs.toolset import MCPServerWarning, MCPToolset


def by_name(tools: list[Any]) -> dict[str, Any]:
    return {tool.name: tool for tool in tools}


def tool_call(name: str, /, call_id: str = "call-1", **args: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "args": args, "id": call_id}


async def test_a_servers_state_is_there_at_the_next_call(config, journal):
    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        assert await tools["add"].ainvoke({"amount": 2}) == "2"
        assert await tools["add"].ainvoke({"amount": 3}) == "5"
    assert len(journal.events("started")) == 1


def test_synchronous_use_needs_no_event_loop(config):
    with MCPToolset(config) as toolset:
        tools = by_name(toolset.get_tools())
        assert tools["add"].invoke({"amount": 2}) == "2"
        assert tools["show"].invoke({}) == "2"


async def test_synchronous_use_within_a_running_loop_works_too(local):
    with MCPToolset(local()) as toolset:
        tools = by_name(toolset.get_tools())
        assert tools["add"].invoke({"amount": 2}) == "2"
        assert await tools["add"].ainvoke({"amount": 2}) == "4"


async def test_state_is_kept_over_http(http_workshop):
    _, url = http_workshop()
    async with MCPToolset(url) as toolset:
        tools = by_name(await toolset.aget_tools())
        await tools["add"].ainvoke({"amount": 2})
        assert await tools["show"].ainvoke({}) == "2"


async def test_opened_in_one_task_used_in_a_second_and_closed_in_a_third(config, journal):
    toolset = MCPToolset(config)
    await asyncio.create_task(toolset.aopen())
    tools = by_name(await asyncio.create_task(toolset.aget_tools()))
    assert await asyncio.create_task(tools["add"].ainvoke({"amount": 1})) == "1"
    await asyncio.create_task(toolset.aclose())
    assert toolset.closed
    journal.wait_for("ended")


def test_a_connection_outlives_the_event_loop_that_opened_it(config, journal):
    toolset = MCPToolset(config)
    asyncio.run(toolset.aopen())
    tools = by_name(toolset.get_tools())
    assert asyncio.run(tools["add"].ainvoke({"amount": 1})) == "1"
    assert asyncio.run(tools["add"].ainvoke({"amount": 1})) == "2"
    asyncio.run(toolset.aclose())
    assert len(journal.events("started")) == 1


def test_closing_twice_does_nothing_and_use_after_closing_is_refused(config):
    toolset = MCPToolset(config).open()
    toolset.close()
    toolset.close()
    with pytest.raises(UsageError, match="closed"):
        toolset.get_tools()


def test_a_toolset_that_nobody_refers_to_ends_its_servers(config, journal):
    MCPToolset(config).open()
    gc.collect()
    journal.wait_for("ended")


def test_nothing_is_started_before_the_first_use(config, journal):
    threads = threading.active_count()
    toolset = MCPToolset(config)
    assert threading.active_count() == threads
    assert toolset.status["workshop"].state == "new"
    toolset.close()
    assert journal.events("started") == []


async def test_all_pages_of_the_tools_are_listed(local):
    async with MCPToolset(local()) as toolset:
        assert len(await toolset.aget_tools()) == 11


async def test_every_shape_of_schema_reaches_the_model_as_the_server_gave_it(local):
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
    function = tools["shapes"].function["function"]
    assert json.dumps(function["parameters"]) == json.dumps(
        {
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
                "alpha": {
                    "anyOf": [{"type": "integer"}, {"type": "null"}],
                    "default": None,
                    "title": "Alpha",
                },
                "free": {"type": "object"},
                "title": {"type": ["string", "null"], "enum": ["a", None]},
            },
            "required": ["zeta"],
            "additionalProperties": False,
        }
    )
    assert tools["show"].function["function"]["parameters"] == {"type": "object"}


async def test_arguments_reach_the_server_as_the_model_gave_them(local):
    arguments = {"zeta": {"label": "a", "next": {"label": "b"}}, "alpha": None, "free": {"x": [1, {}]}}
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
        assert json.loads(await tools["shapes"].ainvoke(arguments)) == arguments


async def test_the_calls_id_reaches_the_server_and_the_results_meta_comes_back(local, journal):
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["add"].ainvoke(tool_call("add", "call-7", amount=2))
    assert message.content == "2"
    assert message.tool_call_id == "call-7"
    assert message.artifact == {"structured_content": {"number": 2}, "meta": {"workshop/number": 2}}
    assert journal.calls()[0]["meta"]["envscaler/call_id"] == "call-7"


def test_the_calls_id_reaches_the_server_from_synchronous_code(local, journal):
    with MCPToolset(local()) as toolset:
        by_name(toolset.get_tools())["add"].invoke(tool_call("add", "call-8", amount=2))
    assert journal.calls()[0]["meta"]["envscaler/call_id"] == "call-8"


async def test_an_error_result_is_an_error_message(local):
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["fail"].ainvoke(tool_call("fail", reason="too late"))
        assert isinstance(message, ToolMessage)
        assert (message.status, message.content) == ("error", "failed: too late")
        with pytest.raises(ToolException, match="too late"):
            await tools["fail"].ainvoke({"reason": "too late"})


async def test_a_protocol_error_is_an_error_message(local):
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["refuse"].ainvoke(tool_call("refuse"))
    assert message.status == "error"
    assert "this is refused" in message.content


async def test_pictures_and_other_content_are_plain_json(local):
    async with MCPToolset(local()) as toolset:
        message = await by_name(await toolset.aget_tools())["picture"].ainvoke(tool_call("picture"))
    assert json.loads(json.dumps(message.content)) == message.content
    assert [block["type"] for block in message.content] == [
        "text",
        "image",
        "file",
        "text",
        "image",
        "file",
        "text",
    ]
    assert message.content[3]["text"] == "file (workshop://file)"


async def test_two_servers_with_a_tool_of_one_name_get_their_names_before_it(local):
    servers = {"one": local(tools=["add", "show"]), "two": local(tools=["add", "put"])}
    async with MCPToolset(servers) as toolset:
        tools = by_name(await toolset.aget_tools())
        assert list(tools) == ["one_add", "show", "two_add", "put"]
        await tools["one_add"].ainvoke({"amount": 5})
        assert await tools["two_add"].ainvoke({"amount": 1}) == "1"
        assert await tools["show"].ainvoke({}) == "5"


async def test_a_clash_is_refused_where_prefixes_are_not_wanted(local):
    toolset = MCPToolset({"one": local(tools=["add"]), "two": local(tools=["add"])}, prefix="never")
    with pytest.raises(UsageError, match="one/add and for two/add"):
        await toolset.aopen()
    await toolset.aclose()


async def test_tools_can_be_allowed_and_denied_by_pattern(local):
    options = {"include": ["one/*", "show"], "exclude": ["d*", "one/fail"]}
    async with MCPToolset({"one": local(), "two": local()}, **options) as toolset:
        names = [tool.name for tool in await toolset.aget_tools()]
    assert names == ["add", "one_show", "put", "shapes", "refuse", "picture", "wait", "learn", "two_show"]


async def test_one_server_of_three_that_is_down_is_named_and_the_others_work(workshop):
    servers = {
        "one": workshop("one", "--tools", "add"),
        "gone": {"command": "no-such-program-anywhere"},
        "two": workshop("two", "--tools", "show"),
    }
    toolset = MCPToolset({"mcpServers": servers})
    with pytest.warns(MCPServerWarning, match="'gone'"):
        await toolset.aopen()
    tools = by_name(await toolset.aget_tools())
    assert list(tools) == ["add", "show"]
    assert await tools["add"].ainvoke({"amount": 1}) == "1"
    assert toolset.status["gone"].state == "down"
    assert toolset.status["one"].state == "connected"
    await toolset.aclose()


@pytest.mark.parametrize("required", [True, ["gone"], "gone"])
async def test_a_required_server_that_is_down_is_an_error(workshop, required):
    servers = {"one": workshop("one", "--tools", "add"), "gone": {"command": "no-such-program-anywhere"}}
    toolset = MCPToolset({"mcpServers": servers}, required=required)
    with pytest.raises(InfrastructureError, match="'gone'"):
        await toolset.aopen()
    await toolset.aclose()


async def test_no_server_at_all_is_an_error():
    toolset = MCPToolset({"mcpServers": {"gone": {"command": "no-such-program-anywhere"}}})
    with pytest.raises(InfrastructureError, match="'gone'"):
        await toolset.aopen()
    await toolset.aclose()


async def test_a_server_that_ends_at_once_is_reported_with_its_last_words():
    import sys

    script = "import sys; print('no licence', file=sys.stderr); sys.exit(1)"
    toolset = MCPToolset({"bad": {"command": sys.executable, "args": ["-c", script]}})
    with pytest.raises(InfrastructureError, match="no licence"):
        await toolset.aopen()
    await toolset.aclose()


async def test_a_server_that_never_answers_is_given_up():
    import sys

    script = "import time; time.sleep(60)"
    toolset = MCPToolset({"mute": {"command": sys.executable, "args": ["-c", script]}}, connect_timeout=0.5)
    with pytest.raises(InfrastructureError, match="no answer in time"):
        await toolset.aopen()
    await toolset.aclose()


def test_an_unknown_required_server_is_refused(config):
    with pytest.raises(UsageError, match="found other"):
        MCPToolset(config, required=["other"])


async def test_a_call_beyond_its_limit_is_cancelled_on_the_server(config, journal):
    async with MCPToolset(config, timeouts={"wait": 0.3}) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["wait"].ainvoke(tool_call("wait", seconds=60))
        assert message.status == "error"
        assert "0.3 s" in message.content
        await asyncio.to_thread(journal.wait_for, "cancelled")
        assert await tools["show"].ainvoke({}) == "0"


async def test_a_call_beyond_its_limit_is_cancelled_over_http(http_workshop, journal):
    _, url = http_workshop()
    async with MCPToolset(url, timeout=0.5) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["wait"].ainvoke(tool_call("wait", seconds=60))
        assert "cancelled" in message.content
        await asyncio.to_thread(journal.wait_for, "cancelled")


async def test_a_cancelled_caller_cancels_the_call_on_the_server(config, journal):
    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        task = asyncio.create_task(tools["wait"].ainvoke({"seconds": 60}))
        await asyncio.to_thread(journal.wait_for, "call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(journal.wait_for, "cancelled")


async def test_a_change_during_which_the_server_dies_is_not_repeated(config, journal):
    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["die"].ainvoke(tool_call("die"))
        assert message.status == "error"
        assert "unknown whether the call took effect" in message.content
        assert await tools["add"].ainvoke({"amount": 1}) == "1"
    assert len(journal.calls("die")) == 1
    assert len(journal.events("started")) == 2


async def test_an_idempotent_call_during_which_the_server_dies_is_repeated(config, journal):
    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        assert await tools["die_once"].ainvoke({}) == "alive"
    assert len(journal.calls("die_once")) == 2


async def test_a_change_is_repeated_where_the_user_said_so(config, journal):
    async with MCPToolset(config, repeat=["die"]) as toolset:
        tools = by_name(await toolset.aget_tools())
        message = await tools["die"].ainvoke(tool_call("die"))
        assert message.status == "error"
    assert len(journal.calls("die")) > 1


async def test_a_server_that_died_while_idle_is_started_again_without_a_word(config, journal):
    import os
    import signal

    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        os.kill(journal.events("started")[0]["pid"], signal.SIGKILL)
        async with asyncio.timeout(20):
            while toolset.status["workshop"].state == "connected":  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await tools["add"].ainvoke({"amount": 1}) == "1"


async def test_a_restarted_http_server_is_found_again(http_workshop, journal):
    process, url = http_workshop("--stateless")
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    async with MCPToolset(url) as toolset:
        tools = by_name(await toolset.aget_tools())
        await tools["add"].ainvoke({"amount": 1})
        process.kill()
        process.wait(10)
        message = await tools["add"].ainvoke(tool_call("add", amount=1))
        assert message.status == "error"
        assert "was not carried out" in message.content
        await asyncio.to_thread(http_workshop, "--stateless", port=port)
        assert await tools["add"].ainvoke({"amount": 1}) == "1"
    assert len(journal.calls("add")) == 2


async def test_a_changed_tool_list_is_seen_when_asked_for(local):
    async with MCPToolset(local()) as toolset:
        tools = by_name(await toolset.aget_tools())
        await tools["learn"].ainvoke({"name": "new_trick"})
        assert "new_trick" not in by_name(await toolset.aget_tools())
        tools = by_name(await toolset.aget_tools(refresh=True))
        assert await tools["new_trick"].ainvoke({}) == "new_trick was learned"


async def test_parallel_calls_share_one_connection(config, journal):
    async with MCPToolset(config) as toolset:
        tools = by_name(await toolset.aget_tools())
        results = await asyncio.gather(*(tools["add"].ainvoke({"amount": 1}) for _ in range(20)))
    assert sorted(map(int, results)) == list(range(1, 21))
    assert len(journal.events("started")) == 1


async def test_a_sign_of_life_can_be_asked_for(workshop):
    servers = {"one": workshop("one"), "gone": {"command": "no-such-program-anywhere"}}
    toolset = MCPToolset({"mcpServers": servers})
    status = await toolset.acheck()
    assert status["one"].state == "connected"
    assert status["one"].server == "one 1"
    assert status["gone"].state == "down"
    assert "no-such-program-anywhere" in status["gone"].error
    await toolset.aclose()


async def test_the_servers_instructions_are_at_hand(local):
    async with MCPToolset(local()) as toolset:
        assert toolset.instructions == {"workshop": "workshop keeps a number."}


async def test_a_request_below_tools_uses_the_held_connection(config, journal):
    async with MCPToolset(config) as toolset:
        result = await toolset.arequest("workshop", lambda session: session.call_tool("show", {}))
        assert result.content[0].text == "0"
        with pytest.raises(NotFoundError, match="workshop"):
            await toolset.arequest("other", lambda session: session.call_tool("show", {}))


async def test_server_objects_are_served_in_memory():
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("sums")

    @server.tool()
    def double(number: int) -> int:
        return number * 2

    async with MCPToolset({"maths": server}) as toolset:
        tools = by_name(await toolset.aget_tools())
        assert await tools["double"].ainvoke({"number": 4}) == "8"
    assert toolset.server_names == ("maths",)


@pytest.mark.parametrize(
    ("entry", "auth", "expected"),
    [
        ({}, "secret", "Bearer secret"),
        ({}, {"desk": "secret", "other": "wrong"}, "Bearer secret"),
        ({"headers": {"Authorization": "Basic abc"}}, None, "Basic abc"),
        ({}, None, None),
    ],
)
async def test_a_token_or_a_header_reaches_its_server(entry, auth, expected):
    seen: list[str | None] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(401)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        toolset = MCPToolset({"mcpServers": {"desk": {"url": url, **entry}}}, auth=auth)
        with pytest.raises(InfrastructureError, match="'desk'") as raised:
            await toolset.aopen()
        await toolset.aclose()
        server.shutdown()
    assert set(seen) == {expected}
    assert "secret" not in str(raised.value)
