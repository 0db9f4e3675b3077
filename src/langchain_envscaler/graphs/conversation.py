"""A conversation between an agent in an environment and a simulated user, by EnvScaler's protocol."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NotRequired, TypeAlias

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer

from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.graphs.agent import assemble
from langchain_envscaler.graphs.environment import (
    EnvironmentContext,
    EnvironmentMiddleware,
    EnvironmentState,
    EvaluationMiddleware,
    worlds_of,
)
from langchain_envscaler.graphs.worlds import EpisodeToolsets, WorldChoice, Worlds

__all__ = [
    "CONVERSATION_PROMPT",
    "STOP",
    "USER_PROMPT",
    "ConversationState",
    "SimulatedUser",
    "create_conversation",
]

STOP = "###STOP###"
"""What a simulated user says when there is nothing left to say."""

CONVERSATION_PROMPT = (
    "You help a user in an environment through its tools. Look up what you need before you change anything, "
    "keep to the environment's rules, and make one tool call at a time. Ask the user where something is "
    "missing or not clear, and tell them what you have done."
)

USER_PROMPT = (
    "You are a user who talks to an assistant. The assistant acts for you; you cannot act yourself. What you "
    "want is:\n\n{task}\n\nWrite the user's next message, and nothing else. Be natural and short, and tell "
    "what you want bit by bit instead of all at once. Answer the assistant's questions only with what is "
    "written above; where it does not say, say that you do not know. When all of it is done, or when the "
    "assistant cannot go on, write {stop} and nothing else."
)

_GREETING = "Hello! How can I help you?"


class ConversationState(EnvironmentState):
    """The state of a conversation."""

    ended: NotRequired[str | None]
    """Why the conversation is over: "user" (the user said so) or "max_turns"."""


Script: TypeAlias = Callable[[ConversationState], str]
"""A user in code: the conversation's state in, the user's next message out."""


class SimulatedUser(AgentMiddleware[ConversationState, Any, Any]):
    """Speaks for the user: first, and after each of the agent's answers, until the conversation is over."""

    state_schema = ConversationState

    def __init__(
        self,
        user: BaseChatModel | Sequence[str] | Script,
        *,
        prompt: str = USER_PROMPT,
        max_turns: int | None = 30,
    ) -> None:
        """Speak for the user.

        Args:
            user: A chat model; or the user's messages in order; or a function of the conversation's state.
            prompt: What a model is told, with `{task}` and `{stop}` in it.
            max_turns: How many messages the user has, None for no limit.
        """
        super().__init__()
        self._user = user
        self._prompt = prompt
        self._max_turns = max_turns

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: ConversationState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if not self._begins(state):
            return None
        return self._opened(state, self._spoken(state))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: ConversationState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if not self._begins(state):
            return None
        return self._opened(state, await self._aspoken(state))

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: ConversationState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if self._is_last_turn(state):
            return {"ended": "max_turns"}
        return self._said(state, self._spoken(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: ConversationState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        if self._is_last_turn(state):
            return {"ended": "max_turns"}
        return self._said(state, await self._aspoken(state))

    def _begins(self, state: ConversationState) -> bool:
        return not any(isinstance(message, HumanMessage) for message in state["messages"])

    def _is_last_turn(self, state: ConversationState) -> bool:
        return self._max_turns is not None and _turns(state) >= self._max_turns

    def _opened(self, state: ConversationState, text: str) -> dict[str, Any]:
        update = self._said(state, text)
        # Without a jump the agent comes next anyway.
        if update.pop("jump_to", None) is None:
            update["jump_to"] = "end"
        return update

    def _said(self, state: ConversationState, text: str) -> dict[str, Any]:
        words, stopped, _ = text.partition(STOP)
        messages = [HumanMessage(words.strip())] if words.strip() else []
        if stopped or not messages:
            return {"messages": messages, "ended": "user"}
        return {"messages": messages, "ended": None, "jump_to": "model"}

    def _spoken(self, state: ConversationState) -> str:
        if isinstance(self._user, BaseChatModel):
            return self._user.invoke(self._prompted(state), _CONFIG).text
        return self._scripted(state)

    async def _aspoken(self, state: ConversationState) -> str:
        if isinstance(self._user, BaseChatModel):
            return (await self._user.ainvoke(self._prompted(state), _CONFIG)).text
        return self._scripted(state)

    def _scripted(self, state: ConversationState) -> str:
        if isinstance(self._user, Sequence):
            turn = _turns(state)
            return self._user[turn] if turn < len(self._user) else STOP
        assert not isinstance(self._user, BaseChatModel)
        return self._user(state)

    def _prompted(self, state: ConversationState) -> list[AnyMessage]:
        """The conversation as the user sees it: the agent's words are the other's, its tools are hidden."""
        task = state["task"]["task"] if "task" in state else None
        task = task or "Something of your own that the assistant can do."
        prompt: list[AnyMessage] = [
            SystemMessage(self._prompt.format(task=task, stop=STOP)),
            HumanMessage(_GREETING),
        ]
        for message in state["messages"]:
            if isinstance(message, HumanMessage):
                prompt.append(AIMessage(message.text))
            elif isinstance(message, AIMessage) and message.text and not message.tool_calls:
                prompt.append(HumanMessage(message.text))
        return prompt


_CONFIG: RunnableConfig = {"tags": ["simulated_user"], "run_name": "SimulatedUser"}


def _turns(state: ConversationState) -> int:
    return sum(isinstance(message, HumanMessage) for message in state["messages"])


def create_conversation(
    model: str | BaseChatModel,
    user: BaseChatModel | Sequence[str] | Script,
    environment: str | None = None,
    *,
    task_id: str | None = None,
    seed: int | None = None,
    worlds: EpisodeService | Worlds | str | None = None,
    evaluate: bool = False,
    system_prompt: str | SystemMessage | None = CONVERSATION_PROMPT,
    user_prompt: str = USER_PROMPT,
    max_turns: int | None = 30,
    checkpointer: Checkpointer | str | Path = None,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
    context_schema: type[EnvironmentContext] = EnvironmentContext,
    max_steps: int | None = 100,
    max_tokens: int | None = None,
    max_errors: int | None = 10,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make a conversation between an agent in an environment and a simulated user.

    Only the user knows the task; it speaks first, and says `###STOP###` when it is done. All of it is one
    thread, whose messages are the agent's view: the user's words are the human's.

    Args:
        model: The agent's chat model, or its name as for `init_chat_model`.
        user: The user: a chat model; its messages in order; or a function of the conversation's state.
        environment: The environment's id.
        task_id: The task (a scenario of the environment).
        evaluate: Run the task's checks when the conversation is over, into the state's `evaluation`.
        system_prompt: What the agent is told first, before the environment's introduction and rules.
        user_prompt: What a user that is a model is told, with `{task}` and `{stop}` in it.
        max_turns: How many messages the user has, None for no limit.
        max_steps: Model calls of the agent from one message of the user to the next.

    The other arguments are those of `create_environment_agent`.

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
        outer=[
            EnvironmentMiddleware(toolsets, default, give_task=False),
            *([EvaluationMiddleware(toolsets)] if evaluate else []),
            SimulatedUser(user, prompt=user_prompt, max_turns=max_turns),
        ],
        middleware=middleware,
        context_schema=context_schema,
        max_steps=max_steps,
        max_tokens=max_tokens,
        max_errors=max_errors,
        name=name,
    )
