"""The world goes with the thread: forks, rewinds, chains of calls, calls that are made again."""

import asyncio
import random

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_envscaler import create_tool_agent
from langchain_envscaler.errors import UsageError
from langchain_envscaler.graphs.toolset import MCPToolset

THREAD = {"configurable": {"thread_id": "1"}}


def ask(text: str = "go") -> dict:
    return {"messages": [HumanMessage(text)]}


def appends(*words: str) -> list:
    return [("append", {"word": word}) for word in words]


def results(state: dict) -> list[str]:
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


async def test_an_episode_is_served_in_memory_and_the_state_names_its_place(service, scripted):
    episode = service.start("words", "ab")
    agent = create_tool_agent(scripted(appends("a"), appends("b"), "Task Completed"), episode)
    state = await agent.ainvoke(ask())
    assert state["episodes"] == {"words": {"episode_id": episode.episode_id, "revision": 2}}
    assert episode.evaluate().reward == 1.0


def test_an_episode_serves_synchronous_code(service, scripted):
    episode = service.start("words", "ab")
    create_tool_agent(scripted(appends("a"), "Done."), episode).invoke(ask())
    assert episode.state() == {"words": ["a"]}


async def test_observations_are_the_environments_own_text(service, scripted):
    agent = create_tool_agent(scripted(appends("a"), [("show", {})], "Done."), service.start("words"))
    assert results(await agent.ainvoke(ask())) == ["{'success': True, 'count': 1}", "['a']"]


async def test_a_call_that_raises_is_an_error_message_and_moves_the_world(service, scripted):
    episode = service.start("words")
    agent = create_tool_agent(scripted([("fail", {"reason": "no"})], appends("a"), "Done."), episode)
    state = await agent.ainvoke(ask())
    message = next(one for one in state["messages"] if isinstance(one, ToolMessage))
    assert message.status == "error"
    assert "no" in message.content
    assert episode.state() == {"words": ["failed", "a"]}


@pytest.mark.parametrize(
    "call", [("append", {"word": "a", "colour": "red"}), ("append", {}), ("__init__", {}), ("words", {})]
)
async def test_a_call_that_the_environment_does_not_know_is_refused_in_words(service, scripted, call):
    episode = service.start("words")
    state = await create_tool_agent(scripted([call], "Done."), episode).ainvoke(ask())
    message = next(one for one in state["messages"] if isinstance(one, ToolMessage))
    assert message.status == "error"
    assert "append" in message.content
    assert episode.state() == {"words": []}


async def test_calls_of_one_message_run_in_their_order_whichever_arrives_first(service, scripted):
    for _ in range(5):
        episode = service.start("words")
        agent = create_tool_agent(scripted(appends(*"abcdefgh"), appends("i"), "Done."), episode)
        state = await agent.ainvoke(ask())
        assert episode.state() == {"words": list("abcdefghi")}
        assert state["episodes"]["words"]["revision"] == 9
        assert [f"'count': {n}" in text for n, text in enumerate(results(state), 1)] == [True] * 9


def test_calls_of_one_message_run_in_their_order_in_synchronous_code(service, scripted):
    episode = service.start("words")
    create_tool_agent(scripted(appends(*"abcdefgh"), "Done."), episode).invoke(ask())
    assert episode.state() == {"words": list("abcdefgh")}


async def test_from_every_checkpoint_another_path_gives_the_world_of_that_path(service, scripted):
    words = [f"w{number}" for number in range(20)]
    episode = service.start("words")
    model = scripted(*(appends(word) for word in words), "Done.")
    saver = InMemorySaver()
    await create_tool_agent(model, episode, checkpointer=saver).ainvoke(ask(), THREAD)
    assert episode.state() == {"words": words}
    agent = create_tool_agent(scripted(), episode, checkpointer=saver)
    history = [snapshot async for snapshot in agent.aget_state_history(THREAD)]
    random.Random(5).shuffle(history)
    for snapshot in history:
        done = results(snapshot.values) if snapshot.values else []
        if snapshot.next == ("tools",):
            continue  # the call that the model has already asked for is not another path
        path = [*words[: len(done)], "x", "y"]
        fork = create_tool_agent(scripted(appends("x"), appends("y"), "Done."), episode, checkpointer=saver)
        state = await fork.ainvoke(ask("another way") if not snapshot.values else None, snapshot.config)
        revision = state["episodes"]["words"]["revision"]
        if snapshot.next == ():
            assert revision == 20
            continue
        assert episode.state(revision) == {"words": path}
        assert episode.state() == {"words": path}


async def test_a_thread_that_goes_on_from_an_earlier_checkpoint_finds_the_earlier_world(service, scripted):
    episode = service.start("words")
    model = scripted(appends("a"), "One.", appends("b"), "Two.", [("show", {})], "Three.")
    agent = create_tool_agent(model, episode, checkpointer=InMemorySaver())
    await agent.ainvoke(ask("one"), THREAD)
    after_one = (await agent.aget_state(THREAD)).config
    await agent.ainvoke(ask("two"), THREAD)
    state = await agent.ainvoke(ask("three"), after_one)
    assert results(state)[-1] == "['a']"


async def test_a_replayed_call_finds_its_recorded_result(service, scripted):
    episode = service.start("words")
    model = scripted([("token", {})], "Done.", "Done again.")
    agent = create_tool_agent(model, episode, checkpointer=InMemorySaver())
    first = results(await agent.ainvoke(ask(), THREAD))
    before_tools = next(one for one in agent.get_state_history(THREAD) if one.next == ("tools",))
    again = await agent.ainvoke(None, before_tools.config)
    assert results(again) == first
    assert len(episode.history()) == 1


async def test_one_call_id_for_two_calls_at_one_place_does_not_confuse_them(service, scripted):
    episode = service.start("words")

    def turn(word: str) -> AIMessage:
        return AIMessage("", tool_calls=[{"name": "append", "args": {"word": word}, "id": "call_0"}])

    saver = InMemorySaver()
    agent = create_tool_agent(scripted(turn("a"), "Done."), episode, checkpointer=saver)
    await agent.ainvoke(ask(), THREAD)
    start = [one for one in agent.get_state_history(THREAD) if one.next == ("model",)][-1]
    other = create_tool_agent(scripted(turn("b"), "Done."), episode, checkpointer=saver)
    state = await other.ainvoke(None, start.config)
    assert results(state) == ["{'success': True, 'count': 1}"]
    assert episode.state() == {"words": ["b"]}


async def test_two_threads_on_one_episode_each_see_their_own_world(service, scripted):
    episode = service.start("words")
    saver = InMemorySaver()
    threads = [{"configurable": {"thread_id": name}} for name in "pq"]
    for thread in threads:
        agent = create_tool_agent(scripted("Hello."), episode, checkpointer=saver)
        await agent.ainvoke(ask(), thread)
    for thread, word in zip(threads, "pq", strict=True):
        agent = create_tool_agent(
            scripted(appends(word), [("show", {})], "Done."), episode, checkpointer=saver
        )
        assert results(await agent.ainvoke(ask(), thread))[-1] == f"['{word}']"


async def test_two_episodes_keep_their_places_apart(service, scripted):
    one, two = service.start("words"), service.start("words")
    turns = [[("one_append", {"word": "a"}), ("two_append", {"word": "b"})], [("two_append", {"word": "c"})]]
    agent = create_tool_agent(scripted(*turns, "Done."), {"one": one, "two": two})
    state = await agent.ainvoke(ask())
    assert {name: place["revision"] for name, place in state["episodes"].items()} == {"one": 1, "two": 2}
    assert (one.state(), two.state()) == ({"words": ["a"]}, {"words": ["b", "c"]})


async def test_another_episode_under_the_threads_server_is_refused(service, scripted):
    saver = InMemorySaver()
    await create_tool_agent(scripted("Hi."), service.start("words"), checkpointer=saver).ainvoke(
        ask(), THREAD
    )
    agent = create_tool_agent(scripted("Hi."), service.start("words"), checkpointer=saver)
    with pytest.raises(UsageError, match="begin a new thread"):
        await agent.ainvoke(ask(), THREAD)


async def test_tools_used_without_a_graph_act_at_the_newest_state(service):
    episode = service.start("words")
    async with MCPToolset(episode) as toolset:
        append = next(tool for tool in await toolset.aget_tools() if tool.name == "append")
        await asyncio.gather(*(append.ainvoke({"word": word}) for word in "abc"))
    assert sorted(episode.state()["words"]) == ["a", "b", "c"]
