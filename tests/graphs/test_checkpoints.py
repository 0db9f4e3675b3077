"""Threads in SQLite and PostgreSQL by one option: any way of running, strict reading, clear faults."""

import asyncio
import sqlite3

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langchain_envscaler import create_tool_agent
from langchain_envscaler.errors import DataError, InfrastructureError, UsageError
from langchain_envscaler.graphs.checkpoints import open_checkpointer

THREAD = {"configurable": {"thread_id": "1"}}


class Dangerous:
    """A type that no checkpoint may bring to life."""

    made = 0

    def __init__(self, value: int = 0) -> None:
        type(self).made += 1
        self.value = value

    def model_dump(self) -> dict:
        return {"value": self.value}


def ask(text: str) -> dict:
    return {"messages": [HumanMessage(text)]}


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path) -> str:
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    return str(tmp_path / "threads.sqlite")


async def test_a_thread_goes_on_in_another_saver_and_loop(address, local, scripted):
    model = scripted([("add", {"amount": 2})], "Two.", "Bye.")
    async with open_checkpointer(address) as saver:
        await create_tool_agent(model, local(), checkpointer=saver).ainvoke(ask("go"), THREAD)

    def go_on() -> dict:
        with open_checkpointer(address) as saver:
            return create_tool_agent(model, local(), checkpointer=saver).invoke(ask("bye"), THREAD)

    state = await asyncio.to_thread(go_on)
    assert [message.content for message in state["messages"]] == ["go", "", "2", "Two.", "bye", "Bye."]


async def test_an_address_is_enough_and_serves_both_ways_of_running(address, local, scripted):
    model = scripted([("add", {"amount": 2})], "Two.", "Bye.")
    agent = create_tool_agent(model, local(), checkpointer=address)
    await agent.ainvoke(ask("go"), THREAD)
    state = await asyncio.to_thread(agent.invoke, ask("bye"), THREAD)
    assert state["messages"][-1].content == "Bye."
    history = [snapshot async for snapshot in agent.aget_state_history(THREAD)]
    assert len(history) == len(list(agent.get_state_history(THREAD))) == 8


async def test_threads_do_not_mix(address, local, scripted):
    async with open_checkpointer(address) as saver:
        agents = [
            create_tool_agent(scripted([("put", {"value": n})], f"{n}."), local(), checkpointer=saver)
            for n in range(20)
        ]
        configs = [{"configurable": {"thread_id": f"t{n}"}} for n in range(20)]
        await asyncio.gather(*(agent.ainvoke(ask("go"), c) for agent, c in zip(agents, configs, strict=True)))
        for number, (agent, config) in enumerate(zip(agents, configs, strict=True)):
            messages = (await agent.aget_state(config)).values["messages"]
            assert [one.content for one in messages if isinstance(one, ToolMessage)] == [str(number)]


async def test_a_deleted_thread_is_gone(address, local, scripted):
    async with open_checkpointer(address) as saver:
        agent = create_tool_agent(scripted("Hello."), local(), checkpointer=saver)
        await agent.ainvoke(ask("go"), THREAD)
        await saver.adelete_thread("1")
        assert (await agent.aget_state(THREAD)).values == {}


def test_a_type_that_is_not_allowed_comes_back_as_plain_data(address):
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"x": Dangerous(7)}
    checkpoint["channel_versions"] = {"x": "1"}
    config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    permissive = JsonPlusSerializer(allowed_msgpack_modules=True)
    with open_checkpointer(address, serde=permissive) as saver:
        saver.put(config, checkpoint, {"source": "input", "step": 0, "parents": {}}, {"x": "1"})
    Dangerous.made = 0
    with open_checkpointer(address) as saver:
        value = saver.get_tuple(config).checkpoint["channel_values"]["x"]
    assert Dangerous.made == 0
    assert not isinstance(value, Dangerous)


def test_pickled_values_are_not_read(tmp_path):
    path = tmp_path / "threads.sqlite"
    checkpoint = empty_checkpoint()
    config = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    with open_checkpointer(path) as saver:
        saver.put(config, checkpoint, {"source": "input", "step": 0, "parents": {}}, {})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (b"cos\nsystem\n.",))
    connection.close()
    with open_checkpointer(path) as saver, pytest.raises(NotImplementedError):
        saver.get_tuple(config)


def test_nothing_is_made_before_the_first_use(tmp_path, local, scripted):
    path = tmp_path / "threads.sqlite"
    create_tool_agent(scripted("Hello."), local(), checkpointer=str(path))
    assert not path.exists()


def test_a_closed_saver_says_so(tmp_path):
    saver = open_checkpointer(tmp_path / "threads.sqlite")
    saver.close()
    with pytest.raises(UsageError, match="closed"):
        saver.get_tuple(THREAD)


def test_another_kind_of_address_is_refused():
    with pytest.raises(UsageError, match="mysql://"):
        open_checkpointer("mysql://host/base")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "threads.sqlite"
    path.write_text("This is a letter to my aunt, who lives by the sea and likes long letters very much.")
    with pytest.raises(DataError, match="move the file away"), open_checkpointer(path):
        pass


def test_a_file_of_another_version_is_refused(tmp_path):
    path = tmp_path / "threads.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE checkpoints (thread_id TEXT, everything BLOB)")
    connection.close()
    with pytest.raises(DataError, match="another; install the version"), open_checkpointer(path):
        pass


def test_a_place_where_no_file_can_be_is_refused(tmp_path):
    with (
        pytest.raises(DataError, match="SQLite file"),
        open_checkpointer(tmp_path / "none" / "threads.sqlite"),
    ):
        pass


def test_a_postgres_that_does_not_answer_is_an_error():
    address = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(InfrastructureError, match="PostgreSQL"), open_checkpointer(address):
        pass
