"""What a step of our agent costs beside one of a bare `create_agent`, side by side in one process.

All run the same scripted model for the same number of steps, with the same checkpointer and durability
"sync", and call the same function over MCP, in memory. The bare agent has the tools handed to it when it is
made; ours finds them when it runs, and does all that makes a thread durable. For comparison, a bare agent
with the plain function as its tool shows what MCP itself costs.

    python benchmarks/graphs.py [--steps 20] [--rounds 15]
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from mcp.server.mcpserver import MCPServer

from langchain_envscaler.graphs.agent import create_tool_agent
from langchain_envscaler.graphs.checkpoints import open_checkpointer
from langchain_envscaler.graphs.toolset import MCPToolset

LIMIT = 1.5
"""How many times a bare agent's step ours may cost."""


class ScriptedModel(BaseChatModel):
    """Calls the tool so many times, then ends."""

    steps: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        done = sum(isinstance(message, ToolMessage) for message in messages)
        call = {"name": "double", "args": {"number": done}, "id": f"call-{uuid.uuid4()}"}
        message = AIMessage("", tool_calls=[call]) if done < self.steps else AIMessage("Done.")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer(messages)


def double(number: int) -> int:
    """Double a number."""
    return number * 2


async def timed(agent: Any) -> float:
    """Seconds that a new thread takes."""
    config = {"configurable": {"thread_id": uuid.uuid4().hex}}
    begun = time.perf_counter()
    await agent.ainvoke({"messages": [HumanMessage("go")]}, config, durability="sync")
    return time.perf_counter() - begun


async def compare(
    name: str, saver: BaseCheckpointSaver[Any], ours: BaseCheckpointSaver[Any], options: Any
) -> float:
    """Print the costs of a step; gives how many times a bare agent's ours is."""
    server = MCPServer("maths")
    server.tool()(double)
    model = ScriptedModel(steps=options.steps)
    async with MCPToolset(server) as toolset:
        agents = {
            "plain function": create_agent(model, [double], checkpointer=saver),
            "bare": create_agent(model, await toolset.aget_tools(), checkpointer=saver),
            "ours": create_tool_agent(model, toolset, checkpointer=ours),
        }
        costs: dict[str, list[float]] = {kind: [] for kind in agents}
        for number in range(options.rounds + 1):
            # One after the other in each round, so that all meet the same weather; the first warms up.
            for kind, agent in agents.items():
                cost = await timed(agent) / options.steps
                if number:
                    costs[kind].append(cost * 1e3)
    middle = {kind: statistics.median(times) for kind, times in costs.items()}
    ratio = middle["ours"] / middle["bare"]
    print(
        f"{name:10} plain function {middle['plain function']:5.2f} ms a step | "
        f"bare {middle['bare']:5.2f} ms | ours {middle['ours']:5.2f} ms | ratio {ratio:.2f}"
    )
    return ratio


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    ratios = [await compare("in memory", InMemorySaver(), InMemorySaver(), options)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        async with (
            AsyncSqliteSaver.from_conn_string(str(path / "same.sqlite")) as saver,
            open_checkpointer(path / "ours.sqlite") as ours,
        ):
            ratios.append(await compare("SQLite", saver, saver, options))
            await compare("own saver", saver, ours, options)
    if max(ratios) > LIMIT:
        raise SystemExit(f"expected at most {LIMIT} times a bare agent's step, found {max(ratios):.2f}")


if __name__ == "__main__":
    asyncio.run(main())
