"""A tool's questions to a person: interrupts that outlive the process, answered once, nothing done twice."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command

from langchain_envscaler import create_tool_agent
from langchain_envscaler.graphs.toolset import MCPToolset

THREAD = {"configurable": {"thread_id": "1"}}
GO = {"messages": [HumanMessage("go")]}


def results(state: dict) -> list[tuple[str, str]]:
    return [(one.status, one.content) for one in state["messages"] if isinstance(one, ToolMessage)]


def question(state: dict) -> dict[str, Any]:
    return state["__interrupt__"][0].value


def accept(shown: dict, resend: bool | None = None, **content: Any) -> Command:
    answers = {one["key"]: {"action": "accept", "content": content} for one in shown["requests"]}
    more = {} if resend is None else {"resend": resend}
    return Command(resume={"responses": answers, **more})


SCRIPT = Path(__file__).parent / "servers" / "questions.py"


@pytest.fixture
def process(journal) -> dict:
    """The server in a process of its own."""
    return {"questions": {"command": sys.executable, "args": [str(SCRIPT), "--journal", str(journal.path)]}}


@pytest.fixture
def questions(journal) -> Any:
    """The server in memory, for the tests that a process adds nothing to."""
    spec = importlib.util.spec_from_file_location("questions_server", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_server(journal.path)


@pytest.fixture
def address(tmp_path) -> str:
    return str(tmp_path / "threads.sqlite")


async def test_a_question_interrupts_the_run_and_its_answer_goes_to_the_tool(
    questions, scripted, address, journal
):
    agent = create_tool_agent(
        scripted([("order", {"item": "hat"})], "Done."), questions, checkpointer=address
    )
    shown = question(await agent.ainvoke(GO, THREAD))
    assert shown["type"] == "mcp_elicitation"
    assert shown["tool_name"] == "order"
    assert shown["sends_again"] is False
    assert shown["requests"][0]["message"] == "Which size?"
    assert "size" in shown["requests"][0]["requested_schema"]["properties"]
    assert journal.events("ordered") == []
    state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "ordered hat in size 7")]
    assert len(journal.events("ordered")) == 1


def test_a_question_interrupts_synchronous_code(process, scripted, address):
    agent = create_tool_agent(scripted([("order", {"item": "hat"})], "Done."), process, checkpointer=address)
    shown = question(agent.invoke(GO, THREAD))
    assert results(agent.invoke(accept(shown, size=7), THREAD)) == [("success", "ordered hat in size 7")]


async def test_a_question_outlives_the_graph_and_the_server(process, scripted, address, journal):
    turns = [("order", {"item": "hat"})]
    async with MCPToolset(process) as toolset:
        agent = create_tool_agent(scripted(turns, "never"), toolset, checkpointer=address)
        shown = question(await agent.ainvoke(GO, THREAD))
    async with MCPToolset(process) as toolset:
        agent = create_tool_agent(scripted("Done."), toolset, checkpointer=address)
        state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "ordered hat in size 7")]
    assert len(journal.events("ordered")) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_tool_may_ask_twice(questions, scripted, address, journal, mode):
    async with MCPToolset(questions, mode=mode, repeat=["paint"]) as toolset:
        model = scripted([("paint", {"item": "hat"})], "Done.")
        agent = create_tool_agent(model, toolset, checkpointer=address)
        first = question(await agent.ainvoke(GO, THREAD))
        second = question(await agent.ainvoke(accept(first, size=7), THREAD))
        assert second["requests"][0]["message"] == "Which colour for size 7?"
        state = await agent.ainvoke(accept(second, colour="red"), THREAD)
    assert results(state) == [("success", "painted hat of size 7 red")]
    assert len(journal.events("painted")) == 1


@pytest.mark.parametrize(("action", "status"), [("decline", "error"), ("cancel", "error")])
async def test_a_question_may_be_left_unanswered(questions, scripted, address, journal, action, status):
    agent = create_tool_agent(
        scripted([("order", {"item": "hat"})], "Fine."), questions, checkpointer=address
    )
    shown = question(await agent.ainvoke(GO, THREAD))
    responses = {one["key"]: {"action": action} for one in shown["requests"]}
    state = await agent.ainvoke(Command(resume={"responses": responses}), THREAD)
    assert results(state)[0][0] == status
    assert journal.events("ordered") == []


async def test_the_answer_goes_to_the_call_that_asked_and_the_other_runs_once(
    questions, scripted, address, journal
):
    calls = [("order", {"item": "hat"}), ("linger", {"seconds": 0})]
    agent = create_tool_agent(scripted(calls, "Done."), questions, checkpointer=address)
    shown = question(await agent.ainvoke(GO, THREAD))
    state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "ordered hat in size 7"), ("success", "lingered")]
    assert len(journal.events("lingering")) == 1


async def test_the_older_protocols_call_is_sent_again_with_the_answer_where_it_may_be_repeated(
    questions, scripted, address, journal
):
    async with MCPToolset(questions, mode="legacy") as toolset:
        model = scripted([("measure_again", {"item": "hat"})], "Done.")
        agent = create_tool_agent(model, toolset, checkpointer=address)
        shown = question(await agent.ainvoke(GO, THREAD))
        assert shown["sends_again"] is True
        state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "measured 7")]
    assert len(journal.events("begun")) == 2
    assert len(journal.events("measured")) == 1


async def test_the_older_protocols_call_is_sent_again_with_consent_only(
    questions, scripted, address, journal
):
    async with MCPToolset(questions, mode="legacy") as toolset:
        for number, resend in enumerate([None, True]):
            thread = {"configurable": {"thread_id": str(number)}}
            model = scripted([("measure", {"item": "hat"})], "Done.")
            agent = create_tool_agent(model, toolset, checkpointer=address)
            shown = question(await agent.ainvoke(GO, thread))
            state = await agent.ainvoke(accept(shown, size=7, resend=resend), thread)
            if resend:
                assert results(state) == [("success", "measured 7")]
            else:
                assert "without consent, not sent again" in results(state)[0][1]
    assert len(journal.events("measured")) == 1


async def test_the_older_protocols_question_outlives_the_graph_and_the_server(
    process, scripted, address, journal
):
    turns = [("measure_again", {"item": "hat"})]
    async with MCPToolset(process, mode="legacy") as toolset:
        agent = create_tool_agent(scripted(turns, "never"), toolset, checkpointer=address)
        shown = question(await agent.ainvoke(GO, THREAD))
    async with MCPToolset(process, mode="legacy") as toolset:
        agent = create_tool_agent(scripted("Done."), toolset, checkpointer=address)
        state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "measured 7")]
    # Once up to the question, and once with the answer.
    assert len(journal.events("begun")) == 2


async def test_the_older_protocols_question_waits_until_its_call_is_the_only_one(
    questions, scripted, address, journal
):
    async with MCPToolset(questions, mode="legacy") as toolset:
        calls = [("measure_again", {"item": "hat"}), ("linger", {"seconds": 0.3})]
        agent = create_tool_agent(scripted(calls, "Done."), toolset, checkpointer=address)
        shown = question(await agent.ainvoke(GO, THREAD))
        assert shown["tool_name"] == "measure_again"
        state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "measured 7"), ("success", "lingered")]
    assert len(journal.events("lingering")) == 1


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_function_answers_while_the_call_goes_on(questions, journal, mode):
    heard = []

    async def answer(server, one):
        heard.append((server, one["message"]))
        return {"action": "accept", "content": {"size": 9}}

    async with MCPToolset(questions, mode=mode, question_handler=answer) as toolset:
        tools = {tool.name: tool for tool in await toolset.aget_tools()}
        assert await tools["order"].ainvoke({"item": "hat"}) == "ordered hat in size 9"
        if mode == "legacy":
            assert await tools["measure"].ainvoke({"item": "hat"}) == "measured 9"
            assert len(journal.events("begun")) == 1
    assert heard[0] == ("questions", "Which size?")


async def test_a_question_outside_of_a_graph_is_an_error_that_says_what_to_do(questions):
    from langchain_core.tools import ToolException

    async with MCPToolset(questions) as toolset:
        order = next(tool for tool in await toolset.aget_tools() if tool.name == "order")
        with pytest.raises(ToolException, match="use it in a graph"):
            await order.ainvoke({"item": "hat"})


async def test_an_answer_of_another_form_is_refused_and_can_be_given_again(questions, scripted, address):
    from pydantic import ValidationError

    agent = create_tool_agent(
        scripted([("order", {"item": "hat"})], "Done."), questions, checkpointer=address
    )
    shown = question(await agent.ainvoke(GO, THREAD))
    with pytest.raises(ValidationError):
        await agent.ainvoke(Command(resume="seven"), THREAD)
    state = await agent.ainvoke(accept(shown, size=7), THREAD)
    assert results(state) == [("success", "ordered hat in size 7")]
