"""An agent in a synthesized environment: each thread has an episode of its own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import UsageError
from langchain_envscaler.graphs.agent import assemble
from langchain_envscaler.graphs.state import EpisodePlace, ToolAgentState
from langchain_envscaler.graphs.worlds import (
    ENVIRONMENT,
    BundledWorlds,
    EpisodeToolsets,
    LocalWorlds,
    RemoteWorlds,
    WorldChoice,
    Worlds,
)
from langchain_envscaler.mcp.records import EpisodeRecord

__all__ = [
    "AGENT_PROMPT",
    "EnvironmentContext",
    "EnvironmentMiddleware",
    "EnvironmentState",
    "EvaluationMiddleware",
    "create_environment_agent",
    "worlds_of",
]

AGENT_PROMPT = (
    "You work in an environment through its tools. Look up what you need before you change anything, keep to "
    "the environment's rules, and make one tool call at a time. When everything that was asked for is done, "
    "answer with a message that says Task Completed; if it cannot be done, with one that says Task Failed "
    "and why."
)


class EnvironmentContext(BaseModel):
    """What a run may say of the episode that a new thread begins."""

    env_id: Annotated[str | None, Field(description="The environment, for a new thread")] = None
    task_id: Annotated[str | None, Field(description="The task; none for an environment without one")] = None
    seed: Annotated[int | None, Field(description="Makes randomness and the clock repeatable")] = None


class Task(TypedDict):
    """What a thread is about."""

    env_id: str
    task_id: str | None
    task: str | None
    """The task in words."""


class EnvironmentState(ToolAgentState):
    """The state of an agent in an environment."""

    task: NotRequired[Task]
    evaluation: NotRequired[dict[str, Any] | None]
    """The reward and the checks at the end of the last turn, where that was asked for."""


class EnvironmentMiddleware(AgentMiddleware[EnvironmentState, Any, Any]):
    """Begins an episode for a new thread."""

    state_schema = EnvironmentState

    def __init__(
        self,
        toolsets: EpisodeToolsets,
        default: WorldChoice | None = None,
        *,
        give_task: bool = True,
    ) -> None:
        """Begin episodes.

        Args:
            default: What a thread is about if its context does not say.
            give_task: Make the task the first message where the thread has none.
        """
        super().__init__()
        self._toolsets = toolsets
        self._default = default
        self._give_task = give_task

    def before_agent(self, state: EnvironmentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if _place(state) is not None:
            return None
        start = self._toolsets.worlds.start(self._choice(runtime))
        return self._begun(state, self._toolsets.loop.run(start))

    async def abefore_agent(self, state: EnvironmentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if _place(state) is not None:
            return None
        start = self._toolsets.worlds.start(self._choice(runtime))
        return self._begun(state, await self._toolsets.loop.arun(start))

    def _choice(self, runtime: Runtime[Any]) -> WorldChoice:
        context = runtime.context if isinstance(runtime.context, EnvironmentContext) else EnvironmentContext()
        if context.env_id is not None:
            return WorldChoice(env_id=context.env_id, task_id=context.task_id, seed=context.seed)
        if self._default is None:
            raise UsageError(
                "expected an environment for the new thread, found none; give one when the graph is made, or "
                'as context={"env_id": ..., "task_id": ...}'
            )
        said = {"task_id": context.task_id, "seed": context.seed}
        return self._default.model_copy(update={key: one for key, one in said.items() if one is not None})

    def _begun(self, state: EnvironmentState, episode: EpisodeRecord) -> dict[str, Any]:
        place = EpisodePlace(episode_id=episode.episode_id, revision=episode.revision)
        task = Task(env_id=episode.env_id, task_id=episode.task_id, task=episode.task)
        update: dict[str, Any] = {"episodes": {ENVIRONMENT: place}, "task": task}
        if self._give_task and episode.task and not _has_human(state):
            update["messages"] = [HumanMessage(episode.task)]
        return update


class EvaluationMiddleware(AgentMiddleware[EnvironmentState, Any, Any]):
    """Runs the task's checks when a turn ends, on the world that the thread sees."""

    state_schema = EnvironmentState

    def __init__(self, toolsets: EpisodeToolsets) -> None:
        super().__init__()
        self._toolsets = toolsets

    def after_agent(self, state: EnvironmentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        place = self._evaluated(state)
        if place is None:
            return None
        evaluation = self._toolsets.worlds.evaluate(place["episode_id"], place["revision"])
        return {"evaluation": self._toolsets.loop.run(evaluation).model_dump(mode="json")}

    async def aafter_agent(self, state: EnvironmentState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        place = self._evaluated(state)
        if place is None:
            return None
        evaluation = self._toolsets.worlds.evaluate(place["episode_id"], place["revision"])
        return {"evaluation": (await self._toolsets.loop.arun(evaluation)).model_dump(mode="json")}

    def _evaluated(self, state: EnvironmentState) -> EpisodePlace | None:
        task = state.get("task")
        return _place(state) if task is not None and task["task_id"] is not None else None


def create_environment_agent(
    model: str | BaseChatModel,
    environment: str | None = None,
    *,
    task_id: str | None = None,
    seed: int | None = None,
    worlds: EpisodeService | Worlds | str | None = None,
    evaluate: bool = False,
    system_prompt: str | SystemMessage | None = AGENT_PROMPT,
    checkpointer: Checkpointer | str | Path = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    context_schema: type[EnvironmentContext] = EnvironmentContext,
    store: BaseStore | None = None,
    max_steps: int | None = 100,
    max_tokens: int | None = None,
    max_errors: int | None = 10,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make an agent in an environment. Each thread begins an episode of its own, and its world goes with it.

    The environment and the task may also come with a run's context, as in
    `context={"env_id": ..., "task_id": ...}`. A thread that begins without a message is given the task in
    words. The agent says Task Completed or Task Failed when it is done.

    Args:
        model: A chat model that calls tools, or its name as for `init_chat_model`.
        environment: The environment's id.
        task_id: The task (a scenario of the environment).
        seed: Makes the environment's randomness and clock repeatable.
        worlds: Where episodes come from: a service in this process, or the address of a server that was
            started with `envscaler serve --http`. If not given, the bundled environments in this process,
            whose episodes end with it.
        evaluate: Run the task's checks at the end of each turn, into the state's `evaluation`.
        system_prompt: What the model is told first, before the environment's introduction and rules.
        context_schema: The form of a run's context, a subclass of `EnvironmentContext`.

    The other arguments are those of `create_tool_agent`.

    Raises:
        UsageError: An address of an unknown kind.
    """
    toolsets = EpisodeToolsets(worlds_of(worlds))
    default = None if environment is None else WorldChoice(env_id=environment, task_id=task_id, seed=seed)
    return assemble(
        model,
        toolsets,
        system_prompt=system_prompt,
        checkpointer=checkpointer,
        tools=tools,
        outer=[
            EnvironmentMiddleware(toolsets, default),
            *([EvaluationMiddleware(toolsets)] if evaluate else []),
        ],
        middleware=middleware,
        context_schema=context_schema,
        store=store,
        max_steps=max_steps,
        max_tokens=max_tokens,
        max_errors=max_errors,
        name=name,
    )


def worlds_of(worlds: EpisodeService | Worlds | str | None) -> Worlds:
    """Where episodes come from, out of what a caller may give.

    Raises:
        UsageError: An address of an unknown kind.
    """
    if isinstance(worlds, str):
        if not worlds.startswith(("http://", "https://")):
            raise UsageError(f"expected a server's http:// or https:// address, found {worlds!r}")
        return RemoteWorlds(worlds)
    if isinstance(worlds, EpisodeService):
        return LocalWorlds(worlds)
    return worlds if worlds is not None else BundledWorlds()


def _place(state: EnvironmentState) -> EpisodePlace | None:
    return (state.get("episodes") or {}).get(ENVIRONMENT)


def _has_human(state: EnvironmentState) -> bool:
    return any(isinstance(message, HumanMessage) for message in state["messages"])
