"""Runs threads in processes of their own, each forked from this one, which has everything imported already.

Reads one line of JSON a thread from its standard input and answers with the process's id, then, when that has
ended, with how.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.graphs.agent import create_tool_agent
from langchain_envscaler.graphs.checkpoints import open_checkpointer


class Moments:
    """The moments between which a process may be killed: around everything that is written or done."""

    def __init__(self, kill_at: int | None) -> None:
        self.kill_at = kill_at
        self.passed = 0
        self._lock = threading.Lock()

    def pass_one(self) -> None:
        with self._lock:
            if self.passed == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.passed += 1

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.pass_one()
            result = function(*args, **kwargs)
            self.pass_one()
            return result

        return wrapped


class AroundTools(AgentMiddleware):
    """Makes the beginning and the end of a tool call moments."""

    def __init__(self, moments: Moments) -> None:
        super().__init__()
        self.moments = moments

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self.moments.pass_one()
        result = await handler(request)
        self.moments.pass_one()
        return result


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
    moments = Moments(order["kill_at"])
    async with open_checkpointer(order["checkpoints"]) as saver:
        saver.put = moments.around(saver.put)
        saver.put_writes = moments.around(saver.put_writes)
        if order["server"] is not None:
            await go_on(order, saver, moments, order["server"], "add")
        else:
            async with EpisodeService(Catalog.load(order["folder"]), store=order["episodes"]) as service:
                service.store.commit = moments.around(service.store.commit)
                episode = await service.aget(order["episode_id"])
                await go_on(order, saver, moments, episode, "append")
    await asyncio.to_thread(Path(order["moments"]).write_text, str(moments.passed))


async def go_on(order: dict[str, Any], saver: Any, moments: Moments, mcp: Any, tool: str) -> None:
    config = {"configurable": {"thread_id": order["thread_id"]}}
    model = CountingScriptModel(steps=order["steps"], tool=tool)
    agent = create_tool_agent(
        model, mcp, checkpointer=saver, max_errors=None, middleware=[AroundTools(moments)]
    )
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
