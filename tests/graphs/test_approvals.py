"""Consent before a tool runs: by name or annotation, decided once, nothing run twice."""

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.types import Command

from langchain_envscaler import create_tool_agent

THREAD = {"configurable": {"thread_id": "1"}}
GO = {"messages": [HumanMessage("go")]}


def results(state: dict) -> list[tuple[str, str]]:
    return [(one.status, one.content) for one in state["messages"] if isinstance(one, ToolMessage)]


def decide(*decisions: dict) -> Command:
    return Command(resume={"decisions": list(decisions)})


def asked(state: dict) -> list[str]:
    return [one["name"] for one in state["__interrupt__"][0].value["action_requests"]]


@pytest.fixture
def address(tmp_path) -> str:
    return str(tmp_path / "threads.sqlite")


@pytest.mark.parametrize(
    ("approve", "expected"),
    [
        ("destructive", ["add"]),
        ("changes", ["add", "put"]),
        ("all", ["add", "show", "put"]),
        (["p*"], ["put"]),
        (["workshop/show", "put"], ["show", "put"]),
    ],
)
async def test_tools_want_consent_by_annotation_or_name(local, scripted, address, approve, expected):
    model = scripted([("add", {"amount": 1}), ("show", {}), ("put", {"value": 7})], "Done.")
    agent = create_tool_agent(model, local(), checkpointer=address, approve=approve)
    assert asked(await agent.ainvoke(GO, THREAD)) == expected


async def test_an_approved_call_runs_once_and_the_others_too(local, scripted, address, journal):
    model = scripted([("add", {"amount": 1}), ("put", {"value": 7})], "Done.")
    agent = create_tool_agent(model, local(), checkpointer=address, approve=["add"])
    await agent.ainvoke(GO, THREAD)
    assert journal.calls() == []
    state = await agent.ainvoke(decide({"type": "approve"}), THREAD)
    assert [status for status, _ in results(state)] == ["success", "success"]
    assert sorted(call["name"] for call in journal.calls()) == ["add", "put"]


async def test_a_rejected_call_does_not_run_and_the_model_reads_why(local, scripted, address, journal):
    agent = create_tool_agent(
        scripted([("add", {"amount": 1})], "Fine."), local(), checkpointer=address, approve="all"
    )
    await agent.ainvoke(GO, THREAD)
    state = await agent.ainvoke(decide({"type": "reject", "message": "not today"}), THREAD)
    assert results(state)[0][0] == "error"
    assert "not today" in results(state)[0][1]
    assert journal.calls() == []


async def test_an_edited_call_runs_as_edited_and_the_model_is_told(local, scripted, address, journal):
    agent = create_tool_agent(
        scripted([("add", {"amount": 1})], "Fine."), local(), checkpointer=address, approve="all"
    )
    await agent.ainvoke(GO, THREAD)
    edited = {"name": "add", "args": {"amount": 40}}
    state = await agent.ainvoke(decide({"type": "edit", "edited_action": edited}), THREAD)
    assert journal.calls()[0]["arguments"] == {"amount": 40}
    assert "40" in results(state)[0][1]


async def test_a_person_may_answer_in_the_tools_place(local, scripted, address, journal):
    agent = create_tool_agent(
        scripted([("add", {"amount": 1})], "Fine."), local(), checkpointer=address, approve="all"
    )
    await agent.ainvoke(GO, THREAD)
    state = await agent.ainvoke(decide({"type": "respond", "message": "it is 12"}), THREAD)
    assert results(state) == [("success", "it is 12")]
    assert journal.calls() == []


async def test_decisions_can_be_narrowed(local, scripted, address):
    agent = create_tool_agent(
        scripted([("add", {"amount": 1})], "Fine."),
        local(),
        checkpointer=address,
        approve="all",
        decisions=["approve", "reject"],
    )
    state = await agent.ainvoke(GO, THREAD)
    allowed = state["__interrupt__"][0].value["review_configs"][0]["allowed_decisions"]
    assert allowed == ["approve", "reject"]


async def test_an_approval_after_a_restart_lets_the_call_run(local, scripted, address, journal):
    before = create_tool_agent(
        scripted([("add", {"amount": 1})], "never"), local(), checkpointer=address, approve="all"
    )
    await before.ainvoke(GO, THREAD)
    after = create_tool_agent(scripted("Done."), local(), checkpointer=address, approve="all")
    state = await after.ainvoke(decide({"type": "approve"}), THREAD)
    assert results(state) == [("success", "1")]
    assert len(journal.calls("add")) == 1


def test_consent_is_asked_for_in_synchronous_code(local, scripted, address, journal):
    model = scripted([("add", {"amount": 1})], "Done.")
    agent = create_tool_agent(model, local(), checkpointer=address, approve="all")
    assert asked(agent.invoke(GO, THREAD)) == ["add"]
    assert results(agent.invoke(decide({"type": "approve"}), THREAD)) == [("success", "1")]


async def test_an_episodes_calls_keep_their_order_where_one_of_them_waits(service, scripted, address):
    episode = service.start("words")
    calls = [("append", {"word": "a"}), ("token", {}), ("append", {"word": "c"})]
    agent = create_tool_agent(scripted(calls, "Done."), episode, checkpointer=address, approve=["token"])
    assert asked(await agent.ainvoke(GO, THREAD)) == ["token"]
    await agent.ainvoke(decide({"type": "approve"}), THREAD)
    words = episode.state()["words"]
    assert (len(words), words[0], words[2]) == (3, "a", "c")


async def test_a_rejected_call_leaves_no_gap_among_an_episodes_calls(service, scripted, address):
    episode = service.start("words")
    calls = [("append", {"word": "a"}), ("token", {}), ("append", {"word": "c"})]
    agent = create_tool_agent(scripted(calls, "Done."), episode, checkpointer=address, approve=["token"])
    await agent.ainvoke(GO, THREAD)
    await agent.ainvoke(decide({"type": "reject"}), THREAD)
    assert episode.state() == {"words": ["a", "c"]}


async def test_an_unasked_thread_runs_through(local, scripted, address):
    model = scripted([("show", {})], "Done.")
    agent = create_tool_agent(model, local(), checkpointer=address, approve="changes")
    assert results(await agent.ainvoke(GO, THREAD)) == [("success", "0")]
