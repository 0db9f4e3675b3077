"""Agents with an episode per thread, alone and in conversation with a simulated user."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_envscaler.errors import NotFoundError, UsageError
from langchain_envscaler.graphs.conversation import create_conversation
from langchain_envscaler.graphs.environment import create_environment_agent

EMPTY = {"messages": []}


def thread(name: str = "1") -> dict:
    return {"configurable": {"thread_id": name}}


def append(word: str) -> list:
    return [("append", {"word": word})]


def results(state: dict) -> list[str]:
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


async def test_a_thread_begins_an_episode_and_is_given_its_task(service, scripted):
    model = scripted(append("a"), append("b"), "Task Completed")
    agent = create_environment_agent(model, "words", task_id="ab", worlds=service, evaluate=True)
    state = await agent.ainvoke(EMPTY)
    assert state["messages"][0].content == "Make the list a, b."
    assert state["task"] == {"env_id": "words", "task_id": "ab", "task": "Make the list a, b."}
    assert state["evaluation"]["reward"] == 1.0
    assert model.prompts[0][0].content.endswith("Rules:\n- Words are only ever added.")
    place = state["episodes"]["environment"]
    assert service.get(place["episode_id"]).state(place["revision"]) == {"words": ["a", "b"]}


def test_it_runs_in_synchronous_code(service, scripted):
    model = scripted(append("a"), "Task Completed")
    agent = create_environment_agent(model, "words", task_id="ab", worlds=service, evaluate=True)
    assert agent.invoke(EMPTY)["evaluation"]["reward"] == 0.0


async def test_the_context_says_which_episode_a_thread_begins(service, scripted):
    agent = create_environment_agent(scripted("Hello."), worlds=service)
    state = await agent.ainvoke(EMPTY, context={"env_id": "words", "task_id": "ab"})
    assert state["task"]["task_id"] == "ab"


async def test_a_message_of_the_users_own_stands_in_for_the_task(service, scripted):
    agent = create_environment_agent(scripted("Hello."), "words", task_id="ab", worlds=service)
    state = await agent.ainvoke({"messages": [HumanMessage("Show me the list.")]})
    assert [message.content for message in state["messages"]] == ["Show me the list.", "Hello."]


async def test_a_thread_without_an_environment_is_refused(service, scripted):
    agent = create_environment_agent(scripted("Hello."), worlds=service)
    with pytest.raises(UsageError, match="env_id"):
        await agent.ainvoke(EMPTY)


async def test_an_unknown_environment_is_refused(service, scripted):
    agent = create_environment_agent(scripted("Hello."), "nowhere", worlds=service)
    with pytest.raises(NotFoundError, match="nowhere"):
        await agent.ainvoke(EMPTY)


async def test_threads_have_worlds_of_their_own_and_keep_them(service, scripted):
    saver = InMemorySaver()
    for word in "abc":
        agent = create_environment_agent(
            scripted(append(word), "Done."), "words", worlds=service, checkpointer=saver
        )
        await agent.ainvoke({"messages": [HumanMessage("go")]}, thread(word))
    for word in "abc":
        agent = create_environment_agent(
            scripted([("show", {})], "Done."), worlds=service, checkpointer=saver
        )
        state = await agent.ainvoke({"messages": [HumanMessage("show")]}, thread(word))
        assert results(state)[-1] == f"['{word}']"


async def test_many_threads_at_once_do_not_mix(service, scripted):
    async def run(number: int) -> str:
        model = scripted(append(f"w{number}"), [("show", {})], "Done.")
        agent = create_environment_agent(model, "words", worlds=service)
        state = await agent.ainvoke({"messages": [HumanMessage("go")]})
        return results(state)[-1]

    shown = await asyncio.gather(*(run(number) for number in range(12)))
    assert shown == [f"['w{number}']" for number in range(12)]


async def test_the_bundled_environments_are_at_hand(scripted):
    agent = create_environment_agent(scripted("Task Failed"), "library_desk")
    state = await agent.ainvoke({"messages": [HumanMessage("go")]})
    assert state["task"]["env_id"] == "library_desk"


def test_an_address_of_another_kind_is_refused(scripted):
    with pytest.raises(UsageError, match="http://"):
        create_environment_agent(scripted(), "words", worlds="ftp://somewhere")


async def test_a_conversation_ends_when_the_user_says_so(service, scripted):
    model = scripted(append("a"), "Added a. What else?", append("b"), "Added b.")
    user = scripted("Please add a.", "Now b.", "###STOP###")
    graph = create_conversation(model, user, "words", task_id="ab", worlds=service, evaluate=True)
    state = await graph.ainvoke(EMPTY)
    spoken = [one.content for one in state["messages"] if one.content and not isinstance(one, ToolMessage)]
    assert spoken == ["Please add a.", "Added a. What else?", "Now b.", "Added b."]
    assert state["ended"] == "user"
    assert state["evaluation"]["reward"] == 1.0


async def test_only_the_user_knows_the_task_and_sees_no_tools(service, scripted):
    model = scripted(append("a"), "Added a.")
    user = scripted("Please add a.", "Thanks. ###STOP###")
    graph = create_conversation(model, user, "words", task_id="ab", worlds=service)
    state = await graph.ainvoke(EMPTY)
    assert "Make the list a, b." in user.prompts[0][0].content
    assert [(type(one), one.content) for one in user.prompts[1][1:]] == [
        (HumanMessage, "Hello! How can I help you?"),
        (AIMessage, "Please add a."),
        (HumanMessage, "Added a."),
    ]
    assert all("Make the list" not in str(message.content) for message in model.prompts[0])
    assert isinstance(model.prompts[0][0], SystemMessage)
    assert state["messages"][-1].content == "Thanks."


def test_a_user_may_be_a_list_of_messages_in_synchronous_code(service, scripted):
    model = scripted("Yes?", "I see.")
    graph = create_conversation(model, ["One.", "Two."], "words", worlds=service)
    state = graph.invoke(EMPTY)
    assert [message.content for message in state["messages"]] == ["One.", "Yes?", "Two.", "I see."]
    assert state["ended"] == "user"


async def test_a_user_may_be_a_function_of_the_conversation(service, scripted):
    graph = create_conversation(
        scripted("A.", "B."), lambda state: f"{len(state['messages'])}", "words", worlds=service, max_turns=2
    )
    state = await graph.ainvoke(EMPTY)
    assert [message.content for message in state["messages"]] == ["0", "A.", "2", "B."]
    assert state["ended"] == "max_turns"


async def test_a_conversation_rewinds_with_its_world(service, scripted):
    saver = InMemorySaver()
    model = scripted(append("a"), "Added a.", append("b"), "Added b.")
    graph = create_conversation(model, ["a", "b"], "words", worlds=service, checkpointer=saver)
    await graph.ainvoke(EMPTY, thread())
    snapshots = [one for one in graph.get_state_history(thread()) if one.next == ("model",)]
    at_b = next(one for one in snapshots if one.values["messages"][-1].content == "b")
    model = scripted([("show", {})], "Shown.")
    again = create_conversation(model, ["a", "b"], "words", worlds=service, checkpointer=saver)
    state = await again.ainvoke(None, at_b.config)
    assert results(state)[-1] == "['a']"
