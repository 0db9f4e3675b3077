"""Runs threads in processes of their own, each forked from this one, which has everything imported already.

Reads one line of JSON a thread from its standard input and answers with the process's id, then, when that has
ended, with how.
"""

import asyncio
import json
import os
import sys
import uuid
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.graphs.agent import create_tool_agent
from langchain_envscaler.graphs.checkpoints import open_checkpointer


class CountingScriptModel(BaseChatModel):
    """Asks for one word after the other by the number of results that it sees, under a new id every time."""

    steps: int
    tool: str

    @property
    def _llm_type(self) -> str:
        return "counting-script"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        done = sum(isinstance(message, ToolMessage) for message in messages)
        if done >= self.steps:
            message = AIMessage("Done.")
        else:
            args = {"word": f"w{done}"} if self.tool == "append" else {"amount": 1}
            call = {"name": self.tool, "args": args, "id": f"call-{uuid.uuid4()}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def run(order: dict[str, Any]) -> None:
    """Begin the thread, or go on with it."""
    config = {"configurable": {"thread_id": order["thread_id"]}}
    async with open_checkpointer(order["checkpoints"]) as saver:
        if order["server"] is not None:
            await go_on(order, saver, config, order["server"], "add")
            return
        async with EpisodeService(Catalog.load(order["folder"]), store=order["episodes"]) as service:
            episode = await service.aget(order["episode_id"])
            await go_on(order, saver, config, episode, "append")


async def go_on(order: dict[str, Any], saver: Any, config: Any, mcp: Any, tool: str) -> None:
    model = CountingScriptModel(steps=order["steps"], tool=tool)
    agent = create_tool_agent(model, mcp, checkpointer=saver, max_errors=None)
    begun = (await agent.aget_state(config)).values
    await agent.ainvoke(None if begun else {"messages": [HumanMessage("go")]}, config)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(run(order))
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
