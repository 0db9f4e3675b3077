"""An agent over MCP tools: built without a connection, told of every failure, bounded, repaired."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_envscaler import create_tool_agent
from langchain_envscaler.errors import DataError, InfrastructureError
from langchain_envscaler.graphs.toolset import MCPToolset

THREAD = {"configurable": {"thread_id": "1"}}


def ask(text: str = "go") -> dict:
    return {"messages": [HumanMessage(text)]}


def results(state: dict) -> list[str]:
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


async def test_it_acts_through_a_server_process_and_the_state_stays(config, scripted, journal):
    model = scripted([("add", {"amount": 2})], [("add", {"amount": 3})], "Five.")
    agent = create_tool_agent(model, config)
    assert journal.events("started") == []
    state = await agent.ainvoke(ask())
    assert results(state) == ["2", "5"]
    assert state["messages"][-1].content == "Five."
    assert len(journal.events("started")) == 1


def test_it_acts_in_synchronous_code(config, scripted):
    agent = create_tool_agent(scripted([("add", {"amount": 2})], "Two."), config)
    assert results(agent.invoke(ask())) == ["2"]


async def test_a_configuration_file_works_as_it_is(config, scripted, tmp_path):
    file = tmp_path / "claude_desktop_config.json"
    file.write_text(json.dumps(config))
    agent = create_tool_agent(scripted([("add", {"amount": 2})], "Two."), file)
    assert results(await agent.ainvoke(ask())) == ["2"]


async def test_a_url_works(http_workshop, scripted):
    _, url = http_workshop()
    agent = create_tool_agent(scripted([("add", {"amount": 2})], "Two."), url)
    assert results(await agent.ainvoke(ask())) == ["2"]


def test_a_broken_configuration_is_refused_when_building(scripted):
    with pytest.raises(DataError, match="mcpServers"):
        create_tool_agent(scripted("Hello."), {"mcpServers": []})


async def test_a_server_that_is_down_is_an_error_when_running(scripted):
    agent = create_tool_agent(scripted("Hello."), {"gone": {"command": "no-such-program-anywhere"}})
    with pytest.raises(InfrastructureError, match="'gone'"):
        await agent.ainvoke(ask())


async def test_the_model_sees_the_servers_schemas_as_they_are(local, scripted):
    model = scripted("Hello.")
    await create_tool_agent(model, local()).ainvoke(ask())
    shapes = next(tool for tool in model.tools[0] if tool["function"]["name"] == "shapes")
    parameters = shapes["function"]["parameters"]
    assert list(parameters) == [
        "type",
        "title",
        "$defs",
        "properties",
        "required",
        "additionalProperties",
    ]
    assert parameters["properties"]["zeta"] == {"$ref": "#/$defs/Node", "description": "A list."}


async def test_other_middleware_sees_tools_and_may_choose_among_them(local, scripted):
    class OnlyAdd(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            return await handler(request.override(tools=[one for one in request.tools if one.name == "add"]))

    model = scripted("Hello.")
    await create_tool_agent(model, local(), middleware=[OnlyAdd()]).ainvoke(ask())
    assert [tool["function"]["name"] for tool in model.tools[0]] == ["add"]


async def test_error_results_and_faults_are_told_to_the_model_and_the_graph_goes_on(local, scripted):
    model = scripted([("fail", {"reason": "rain"})], [("refuse", {})], [("hammer", {})], "I give up.")
    state = await create_tool_agent(model, local(tools=["fail", "refuse"])).ainvoke(ask())
    assert results(state) == [
        "failed: rain",
        "Error: the server 'workshop' refused the call: this is refused",
        "Error: there is no tool of that name. The tools are: fail, refuse.",
    ]
    tool_messages = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert [one.status for one in tool_messages] == ["error", "error", "error"]


async def test_the_death_of_a_server_in_a_call_is_told_truthfully(config, scripted, journal):
    model = scripted([("die", {})], [("add", {"amount": 1})], "Done.")
    state = await create_tool_agent(model, config).ainvoke(ask())
    assert "unknown whether the call took effect" in results(state)[0]
    assert results(state)[1] == "1"
    assert len(journal.calls("die")) == 1


async def test_local_tools_work_beside_the_servers(local, scripted):
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    model = scripted([("shout", {"text": "hey"}), ("add", {"amount": 1})], "Done.")
    state = await create_tool_agent(model, local(), tools=[shout]).ainvoke(ask())
    assert results(state) == ["HEY", "1"]


async def test_the_system_prompt_holds_the_servers_instructions(local, scripted):
    model = scripted("Hello.")
    await create_tool_agent(model, local(), system_prompt="Be brief.").ainvoke(ask())
    assert model.prompts[0][0] == SystemMessage("Be brief.\n\nworkshop keeps a number.")


async def test_several_servers_instructions_are_told_apart(local, scripted):
    model = scripted("Hello.")
    servers = {"a": local("one"), "b": local("two")}
    await create_tool_agent(model, servers).ainvoke(ask())
    assert "About the tools of a:\none keeps a number." in model.prompts[0][0].content


async def test_the_servers_instructions_can_be_left_out(local, scripted):
    model = scripted("Hello.")
    await create_tool_agent(model, local(), instructions=False).ainvoke(ask())
    assert [type(message) for message in model.prompts[0]] == [HumanMessage]


async def test_a_changed_tool_list_is_seen_in_the_next_turn(local, scripted):
    model = scripted([("learn", {"name": "new_trick"})], "Learned.", [("new_trick", {})], "Done.")
    agent = create_tool_agent(model, local(), checkpointer=InMemorySaver())
    await agent.ainvoke(ask(), THREAD)
    state = await agent.ainvoke(ask("and now"), THREAD)
    assert results(state) == ["learned new_trick", "new_trick was learned"]


async def test_rich_content_survives_a_checkpoint(local, scripted):
    saver = InMemorySaver()
    agent = create_tool_agent(scripted([("picture", {})], "A pixel."), local(), checkpointer=saver)
    before = await agent.ainvoke(ask(), THREAD)
    after = (await agent.aget_state(THREAD)).values
    assert after["messages"] == before["messages"]
    assert json.loads(json.dumps(after["messages"][2].content))[1]["type"] == "image"


async def test_a_turn_ends_at_its_limit_of_model_calls_and_the_next_turn_has_its_own(local, scripted):
    forever = [[("add", {"amount": 1})]] * 20
    agent = create_tool_agent(scripted(*forever), local(), checkpointer=InMemorySaver(), max_steps=3)
    state = await agent.ainvoke(ask(), THREAD)
    assert results(state) == ["1", "2", "3"]
    assert state["messages"][-1].content == "Stopped at the limit of 3 model calls in a turn."
    assert state["messages"][-1].response_metadata["stop_reason"] == "max_steps"
    state = await agent.ainvoke(ask("go on"), THREAD)
    assert results(state) == ["1", "2", "3", "4", "5", "6"]


async def test_the_limit_of_model_calls_holds_where_earlier_messages_are_summed_up(local, scripted):
    forever = [[("add", {"amount": 1})]] * 20
    summary = SummarizationMiddleware(
        scripted(*["So far so good."] * 20), trigger=("messages", 6), keep=("messages", 3)
    )
    agent = create_tool_agent(scripted(*forever), local(), middleware=[summary], max_steps=8)
    state = await agent.ainvoke(ask())
    assert state["messages"][-1].response_metadata["stop_reason"] == "max_steps"
    assert results(state)[-1] == "8"
    assert len(state["messages"]) < 10


async def test_a_turn_ends_at_its_limit_of_tokens(local, scripted):
    usage = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}

    def turn(_):
        call = {"name": "add", "args": {"amount": 1}, "id": os.urandom(4).hex()}
        return AIMessage(content="", tool_calls=[call], usage_metadata=usage)

    agent = create_tool_agent(scripted(*[turn] * 9), local(), max_tokens=250)
    state = await agent.ainvoke(ask())
    assert len(results(state)) == 3
    assert state["messages"][-1].response_metadata["stop_reason"] == "max_tokens"


async def test_a_turn_ends_after_too_many_failures_in_a_row(local, scripted):
    fail, add = [("fail", {"reason": "x"})], [("add", {"amount": 1})]
    agent = create_tool_agent(scripted(fail, add, fail, fail, fail, "never"), local(), max_errors=3)
    state = await agent.ainvoke(ask())
    assert len(results(state)) == 5
    assert state["messages"][-1].response_metadata["stop_reason"] == "max_errors"


async def test_open_calls_of_a_broken_turn_get_error_results_before_the_next_one(local, scripted, journal):
    model = scripted("I will look.")
    agent = create_tool_agent(model, local(), checkpointer=InMemorySaver())
    calls = [{"name": "add", "args": {"amount": 1}, "id": one} for one in ("a", "b")]
    broken = [
        HumanMessage("go", id="h1"),
        AIMessage("", tool_calls=calls, id="ai1"),
        ToolMessage("1", tool_call_id="a", id="t1"),
    ]
    await agent.aupdate_state(THREAD, {"messages": broken}, as_node="tools")
    state = await agent.ainvoke(ask("what now?"), THREAD)
    seen = model.prompts[0][1:]
    assert [type(message).__name__ for message in seen] == [
        "HumanMessage",
        "AIMessage",
        "ToolMessage",
        "ToolMessage",
        "HumanMessage",
    ]
    assert seen[3].tool_call_id == "b"
    assert seen[3].status == "error"
    assert "unknown whether the call took effect" in seen[3].content
    assert [message.id for message in state["messages"][:3]] == ["h1", "ai1", "t1"]
    assert state["messages"][:-1] == seen
    assert (await agent.aget_state(THREAD)).values["messages"] == state["messages"]
    assert journal.calls() == []


async def test_the_models_message_is_stored_before_its_tools_run(local, scripted):
    saver = InMemorySaver()
    agent = create_tool_agent(scripted([("wait", {"seconds": 60})], "never"), local(), checkpointer=saver)
    stored = []

    async def look():
        async for _ in agent.astream(ask(), THREAD, stream_mode="custom"):
            # The tool has told of its progress, so it is running.
            snapshot = await saver.aget_tuple(THREAD)
            stored.extend(snapshot.checkpoint["channel_values"]["messages"])
            return

    await asyncio.wait_for(look(), 20)
    assert isinstance(stored[-1], AIMessage)
    assert stored[-1].tool_calls[0]["name"] == "wait"


async def test_progress_of_a_tool_is_streamed(local, scripted):
    agent = create_tool_agent(scripted([("wait", {"seconds": 0})], "Done."), local())
    events = [event async for event in agent.astream(ask(), stream_mode=["custom", "tools"])]
    custom = [event for mode, event in events if mode == "custom"]
    assert [(one["type"], one["name"], one["progress"], one["total"], one["message"]) for one in custom] == [
        ("tool_progress", "wait", 1.0, 2.0, "half")
    ]
    tools = [event["event"] for mode, event in events if mode == "tools"]
    assert tools == ["tool-started", "tool-output-delta", "tool-finished"]


def test_progress_of_a_tool_is_streamed_in_synchronous_code(local, scripted):
    agent = create_tool_agent(scripted([("wait", {"seconds": 0})], "Done."), local())
    events = list(agent.stream(ask(), stream_mode="custom"))
    assert [event["message"] for event in events] == ["half"]


async def test_a_toolset_that_was_handed_in_stays_open(config, scripted, journal):
    async with MCPToolset(config) as toolset:
        for _ in range(2):
            await create_tool_agent(scripted([("add", {"amount": 1})], "Done."), toolset).ainvoke(ask())
        assert not toolset.closed
    assert len(journal.events("started")) == 1
    assert len(journal.calls("add")) == 2


def test_a_program_that_closes_nothing_ends_with_its_servers(config, journal):
    program = f"""
from langchain_core.language_models import FakeListChatModel
from langchain_envscaler import MCPToolset
toolset = MCPToolset({config!r})
print(len(toolset.get_tools()))
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60, cwd=root
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "11\n", "")
    journal.wait_for("ended")
