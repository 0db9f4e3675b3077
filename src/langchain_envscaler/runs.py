"""One thread of an agent in an environment: its server process, its graph, its episode and its score.

The environment runs in a server process of its own, reached over MCP; the thread's checkpoints and the
episode's journal are two SQLite files in one folder, so a run that was killed goes on where it was.
"""

import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict

from langchain_envscaler.chat.model import ChatEnvScaler
from langchain_envscaler.environments.diff import StateChange, state_changes
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import UsageError
from langchain_envscaler.graphs.agent import create_tool_agent
from langchain_envscaler.graphs.checkpoints import open_checkpointer
from langchain_envscaler.graphs.reference import MODEL_NAME, reference_model
from langchain_envscaler.graphs.toolset import MCPToolset
from langchain_envscaler.home import EPISODES, default_home

if TYPE_CHECKING:
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.episode import Episode
    from langchain_envscaler.environments.metadata import Scenario

__all__ = [
    "AgentRun",
    "ModelChoice",
    "RunResult",
    "ThreadRecord",
    "default_home",
    "find_thread",
    "new_thread",
]

THREADS = "threads.sqlite"
_RECORD_KEY = "envscaler_thread"

SYSTEM_PROMPT = (
    "You work in an environment through its tools. Look up what you need before you change anything, keep to "
    "the environment's rules, and make one tool call at a time. When everything that was asked for is done, "
    "answer with a message that says Task Completed; if it cannot be done, with one that says Task Failed "
    "and why."
)


class ModelChoice(BaseModel):
    """Which model acts, and how it is run."""

    model_config = ConfigDict(frozen=True)

    model: str = "reference"
    """"reference" replays a recorded solution; any other name is a model's, for `ChatEnvScaler`."""
    base_url: str | None = None
    api: Literal["chat", "completions"] = "chat"
    tool_choice: str | None = None
    """"any" forces a call in every turn; None leaves the choice to the model."""
    max_tokens: int | None = None
    temperature: float = 0.7
    enable_thinking: bool = True

    def build(self, scenario: "Scenario | None") -> BaseChatModel:
        """The chat model.

        Raises:
            UsageError: The reference policy was chosen where no solution is recorded.
        """
        if self.model == MODEL_NAME and self.base_url is None:
            if scenario is None:
                raise UsageError(
                    "expected a task for the reference policy, since it replays a task's recorded solution; "
                    "name one with --task, or a model with --model"
                )
            return reference_model(scenario)
        return ChatEnvScaler(
            model=self.model,
            backend="auto" if self.base_url is None else "openai",
            base_url=self.base_url,
            api=self.api,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            enable_thinking=self.enable_thinking,
        )


class ToolChoiceMiddleware(AgentMiddleware):
    """Lays down the tool choice of every model call."""

    def __init__(self, tool_choice: str) -> None:
        super().__init__()
        self._tool_choice = tool_choice

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        return await handler(request.override(tool_choice=self._tool_choice))


class WholeMessage(BaseModel):
    """A model's message when it is complete; its pieces came before."""

    model_config = ConfigDict(frozen=True)

    message: AIMessage


RunEvent: TypeAlias = AIMessage | WholeMessage | ToolMessage
"""A piece of a model's message as it comes, the message when it is complete, or a tool's result."""


class ThreadRecord(BaseModel):
    """What a thread's checkpoints remember beside its messages."""

    model_config = ConfigDict(frozen=True)

    thread_id: str
    env_id: str
    task_id: str | None
    episode_id: str
    choice: ModelChoice
    max_steps: int
    seed: int | None = None


class RunResult(BaseModel):
    """How a run ended."""

    model_config = ConfigDict(frozen=True)

    env_id: str
    task_id: str | None
    thread_id: str
    episode_id: str
    model: str
    reward: float | None
    """None where the episode has no task, so that nothing is checked."""
    checks: list[dict[str, Any]]
    steps: int
    """Tool calls that the thread holds a result of."""
    answer: str
    """The text of the model's last message."""
    state_changes: list[StateChange]


def new_thread(
    catalog: "Catalog",
    env_id: str,
    task_id: str | None,
    *,
    choice: ModelChoice,
    thread_id: str | None = None,
    max_steps: int = 50,
    seed: int | None = None,
) -> ThreadRecord:
    """A thread that has not begun; where no task is named, it is about the environment's first.

    Raises:
        NotFoundError: There is no such environment or task.
    """
    catalog.environment(env_id)
    scenarios = catalog.scenarios_of(env_id)
    if task_id is not None:
        catalog.scenario(env_id, task_id)
    elif scenarios:
        task_id = scenarios[0].task_id
    unique = uuid.uuid4().hex[:12]
    return ThreadRecord(
        thread_id=thread_id or f"{env_id}-{unique}",
        env_id=env_id,
        task_id=task_id,
        episode_id=f"ep-{unique}",
        choice=choice,
        max_steps=max_steps,
        seed=seed,
    )


async def find_thread(home: Path, thread_id: str) -> ThreadRecord | None:
    """What the checkpoints of a thread remember; None where there is no such thread.

    Raises:
        DataError: The file of threads is none, or one of another version.
    """
    if not (home / THREADS).exists():
        return None
    async with open_checkpointer(home / THREADS) as saver:
        found = await saver.aget_tuple({"configurable": {"thread_id": thread_id}})
    text = (found.metadata or {}).get(_RECORD_KEY) if found else None
    if text is None:
        return None
    return ThreadRecord.model_validate_json(str(text))


class AgentRun:
    """An agent at work on one thread; an async context manager.

    Args:
        home: The folder of threads and episodes.
        catalog: Where the thread's environment and task are.
        record: The thread, new or found.
        data: Folders of EnvScaler files that the environment's server needs as well.
    """

    def __init__(
        self, home: Path, catalog: "Catalog", record: ThreadRecord, *, data: Sequence[Path] = ()
    ) -> None:
        self.record = record
        self._home = home
        self._catalog = catalog
        self._data = tuple(data)
        self._stack = AsyncExitStack()
        self.scenario: Scenario | None = (
            catalog.scenario(record.env_id, record.task_id) if record.task_id is not None else None
        )
        self._config = _config(record)

    async def __aenter__(self) -> Self:
        self._home.mkdir(parents=True, exist_ok=True)
        choice = self.record.choice
        model = choice.build(self.scenario)
        saver = await self._stack.enter_async_context(open_checkpointer(self._home / THREADS))
        self._toolset = await self._stack.enter_async_context(MCPToolset(self.server_config(), required=True))
        self._graph = create_tool_agent(
            model,
            self._toolset,
            system_prompt=SYSTEM_PROMPT,
            checkpointer=saver,
            middleware=[ToolChoiceMiddleware(choice.tool_choice)] if choice.tool_choice else [],
            max_steps=self.record.max_steps,
        )
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    def server_config(self) -> dict[str, Any]:
        """The client configuration of the environment's server."""
        record = self.record
        arguments = ["-m", "langchain_envscaler", "serve", record.env_id]
        arguments += ["--episode-id", record.episode_id, "--store", str(self._home / EPISODES)]
        arguments += ["--task", record.task_id] if record.task_id is not None else []
        arguments += ["--seed", str(record.seed)] if record.seed is not None else []
        for folder in self._data:
            arguments += ["--data", str(folder.absolute())]
        return {"mcpServers": {record.env_id: {"command": sys.executable, "args": arguments}}}

    async def solve(self) -> AsyncIterator[RunEvent]:
        """Work on the thread's task: begin it, or go on where a killed run was; nothing where it is done.

        Raises:
            UsageError: The thread has no task.
        """
        state = await self._graph.aget_state(self._config)
        if state.values.get("messages"):
            if state.next:
                async for event in self._events(None):
                    yield event
            return
        if self.scenario is None:
            raise UsageError(
                f"expected a task to solve, environment {self.record.env_id!r} has none; name one with "
                "--task, or talk to the agent with envscaler chat"
            )
        async for event in self.send(self.scenario.task):
            yield event

    async def send(self, text: str) -> AsyncIterator[RunEvent]:
        """Say something to the agent, and follow its turn."""
        async for event in self._events({"messages": [HumanMessage(text)]}):
            yield event

    async def resume(self) -> AsyncIterator[RunEvent]:
        """Go on with a turn that a killed process left open, if there is one."""
        if (await self._graph.aget_state(self._config)).next:
            async for event in self._events(None):
                yield event

    async def _events(self, given: dict[str, Any] | None) -> AsyncIterator[RunEvent]:
        stream = self._graph.astream(given, self._config, stream_mode=["messages", "updates"])
        async for mode, payload in stream:
            if mode == "messages":
                chunk = payload[0]
                if isinstance(chunk, AIMessage):
                    yield chunk
                continue
            updates = payload.values() if isinstance(payload, dict) else ()
            for update in updates:
                for message in update.get("messages", ()) if isinstance(update, dict) else ():
                    if isinstance(message, AIMessage):
                        yield WholeMessage(message=message)
                    elif isinstance(message, ToolMessage):
                        yield message

    async def messages(self) -> list[BaseMessage]:
        """What the thread holds."""
        return list((await self._graph.aget_state(self._config)).values.get("messages", []))

    async def tools(self) -> list[BaseTool]:
        """The environment's tools."""
        return list(await self._toolset.aget_tools())

    async def undo(self) -> str:
        """Take back the last turn: the thread stands where it was before it, and the environment with it.

        Returns:
            What the user had said.

        Raises:
            UsageError: No turn was taken yet.
        """
        said = _said_by_user(await self.messages())
        if not said:
            raise UsageError("expected a turn to take back, found none in this thread")
        async for earlier in self._graph.aget_state_history(self._config):
            if len(_said_by_user(earlier.values.get("messages", []))) < len(said):
                await self._graph.aupdate_state(
                    _placed(earlier.config, self._config), None, as_node="__copy__"
                )
                break
        return said[-1]

    async def fork(self) -> "ThreadRecord":
        """A new thread that stands where this one stands, in the same environment; each goes its own way.

        Raises:
            UsageError: The thread holds nothing yet.
        """
        state = (await self._graph.aget_state(self._config)).values
        if not state.get("messages"):
            raise UsageError("expected a thread with a turn to fork, found none yet")
        record = self.record.model_copy(update={"thread_id": f"{self.record.env_id}-{uuid.uuid4().hex[:12]}"})
        await self._graph.aupdate_state(
            _config(record),
            {"messages": state["messages"], "episodes": state.get("episodes", {})},
            as_node="model",
        )
        return record

    async def state(self) -> dict[str, Any]:
        """The environment's state where the thread stands."""
        async with self._episode() as (episode, revision):
            return await episode.astate(revision)

    @asynccontextmanager
    async def _episode(self) -> AsyncIterator[tuple["Episode", int]]:
        """The thread's episode, and the revision that its last call led to."""
        state = (await self._graph.aget_state(self._config)).values
        place = state.get("episodes", {}).get(self.record.env_id)
        # Listing the tools starts the episode, where no call has done so yet.
        await self._toolset.aget_tools()
        async with EpisodeService(self._catalog, store=str(self._home / EPISODES)) as service:
            yield await service.aget(self.record.episode_id), place["revision"] if place else 0

    async def result(self) -> RunResult:
        """The thread's score and what it changed, at the revision that its last call led to."""
        messages = await self.messages()
        async with self._episode() as (episode, revision):
            evaluation = await episode.aevaluate(revision) if self.scenario is not None else None
            changes = state_changes(await episode.astate(0), await episode.astate(revision))
        answers = [message for message in messages if isinstance(message, AIMessage)]
        return RunResult(
            env_id=self.record.env_id,
            task_id=self.record.task_id,
            thread_id=self.record.thread_id,
            episode_id=self.record.episode_id,
            model=self.record.choice.model,
            reward=evaluation.reward if evaluation else None,
            checks=[
                {"item": check.item, "passed": check.passed, "reason": check.reason}
                for check in (evaluation.checks if evaluation else ())
            ],
            steps=sum(isinstance(message, ToolMessage) for message in messages),
            answer=answers[-1].text if answers else "",
            state_changes=changes,
        )


def _config(record: ThreadRecord) -> RunnableConfig:
    return {
        "configurable": {"thread_id": record.thread_id},
        "metadata": {_RECORD_KEY: record.model_dump_json()},
    }


def _placed(config: RunnableConfig, own: RunnableConfig) -> RunnableConfig:
    """An earlier checkpoint's configuration, with the metadata that each of the thread's checkpoints has."""
    return {**config, "metadata": own["metadata"]}


def _said_by_user(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages if isinstance(message, HumanMessage)]
