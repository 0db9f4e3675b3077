"""Servers that other people wrote, from npm: what they offer works through the agent unchanged."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_envscaler import create_tool_agent
from langchain_envscaler.graphs.toolset import MCPToolset

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "everything": "@modelcontextprotocol/server-everything",
    "filesystem": "@modelcontextprotocol/server-filesystem",
    "memory": "@modelcontextprotocol/server-memory",
}
INSTALL_SECONDS = 240


@pytest.fixture(scope="session")
def node_servers() -> dict[str, list[str]]:
    """The commands of the servers, installed from npm into a folder that is kept."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("skipped: Node's commands node and npm are not installed")
    folder = ROOT / ".cache" / "node-servers"
    if not all((folder / "node_modules" / package).is_dir() for package in PACKAGES.values()):
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), *PACKAGES.values()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if done.returncode != 0:
            pytest.skip(f"skipped: npm could not install the servers: {done.stderr.strip()[-300:]}")
    commands = {}
    for name, package in PACKAGES.items():
        home = folder / "node_modules" / package
        binary = json.loads((home / "package.json").read_text())["bin"]
        script = binary if isinstance(binary, str) else next(iter(binary.values()))
        commands[name] = [node, str(home / script)]
    return commands


@pytest.fixture
def config(node_servers, tmp_path) -> dict[str, Any]:
    """A configuration with all three, as a user of Claude Desktop would have it."""
    (tmp_path / "files").mkdir()
    more = {"filesystem": [str(tmp_path / "files")]}
    env = {"memory": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    return {
        "mcpServers": {
            name: {
                "command": command[0],
                "args": [*command[1:], *more.get(name, [])],
                "env": env.get(name, {}),
            }
            for name, command in node_servers.items()
        }
    }


def results(state: dict) -> list[Any]:
    return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]


async def test_all_three_are_connected_and_no_two_tools_share_a_name(config):
    async with MCPToolset(config, required=True) as toolset:
        names = [tool.name for tool in await toolset.aget_tools()]
        assert {status.state for status in toolset.status.values()} == {"connected"}
    assert len(set(names)) == len(names) > 20
    assert {"echo", "write_file", "create_entities"} <= set(names)


async def test_an_agent_uses_all_three(config, scripted, tmp_path):
    entity = {"name": "Ada", "entityType": "person", "observations": ["likes numbers"]}
    model = scripted(
        [("echo", {"message": "hello"})],
        [("write_file", {"path": str(tmp_path / "files" / "note.txt"), "content": "written"})],
        [("create_entities", {"entities": [entity]})],
        [("search_nodes", {"query": "Ada"})],
        "Done.",
    )
    state = await create_tool_agent(model, config).ainvoke({"messages": [HumanMessage("go")]})
    found = results(state)
    assert "hello" in str(found[0])
    assert (tmp_path / "files" / "note.txt").read_text() == "written"
    assert "likes numbers" in str(found[3])
    assert all(one.status == "success" for one in state["messages"] if isinstance(one, ToolMessage))


async def test_a_picture_passes_a_checkpoint(config, scripted):
    config = {"mcpServers": {"everything": config["mcpServers"]["everything"]}}
    async with MCPToolset(config) as toolset:
        names = {tool.name for tool in await toolset.aget_tools()}
        tool = next(name for name in ("get-tiny-image", "getTinyImage") if name in names)
        agent = create_tool_agent(scripted([(tool, {})], "Done."), toolset, checkpointer=InMemorySaver())
        thread = {"configurable": {"thread_id": "1"}}
        await agent.ainvoke({"messages": [HumanMessage("go")]}, thread)
        content = results((await agent.aget_state(thread)).values)[0]
    assert "image" in [block["type"] for block in content]


async def test_a_file_outside_of_the_allowed_folder_is_an_error_that_the_model_reads(config, scripted):
    config = {"mcpServers": {"filesystem": config["mcpServers"]["filesystem"]}}
    model = scripted([("read_text_file", {"path": "/etc/hostname"})], "I may not.")
    state = await create_tool_agent(model, config).ainvoke({"messages": [HumanMessage("go")]})
    message = next(one for one in state["messages"] if isinstance(one, ToolMessage))
    assert message.status == "error"
    assert "denied" in str(message.content).lower()


async def test_annotations_tell_which_tools_only_read(config):
    async with MCPToolset({"mcpServers": {"filesystem": config["mcpServers"]["filesystem"]}}) as toolset:
        tools = {tool.name: tool for tool in await toolset.aget_tools()}
    assert tools["read_text_file"].ref.read_only
    assert not tools["write_file"].ref.read_only


async def test_progress_of_a_long_operation_is_streamed(config, scripted):
    config = {"mcpServers": {"everything": config["mcpServers"]["everything"]}}
    async with MCPToolset(config) as toolset:
        names = {tool.name for tool in await toolset.aget_tools()}
        tool = next(
            name for name in ("trigger-long-running-operation", "longRunningOperation") if name in names
        )
        agent = create_tool_agent(scripted([(tool, {"duration": 1, "steps": 2})], "Done."), toolset)
        asked = {"messages": [HumanMessage("go")]}
        reports = [event async for event in agent.astream(asked, stream_mode="custom")]
    assert [report["progress"] for report in reports][-1] == 2
