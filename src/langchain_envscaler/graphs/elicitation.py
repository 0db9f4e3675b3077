"""A tool's questions to a person, as interrupts of the run (or to a function, where one is given).

The requests and the answers have the form of `langchain.mcp`, so that what shows those shows these.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypeAlias

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    InputRequest,
    InputResponses,
)
from typing_extensions import TypedDict

from langchain_envscaler.errors import UsageError

__all__ = [
    "INTERRUPT_TYPE",
    "LEGACY_KEY",
    "Answer",
    "Answers",
    "LegacyQuestion",
    "Question",
    "QuestionHandler",
    "Questions",
    "answered",
    "ask",
    "asked",
    "questions",
    "recorded_answers",
    "responses",
]

INTERRUPT_TYPE = "mcp_elicitation"
LEGACY_KEY = "question"
"""What the one question of a call in the older protocol goes by."""


class Question(TypedDict):
    """One question of a tool."""

    key: str
    """The server's name for it; the answer goes by the same."""
    message: str
    """What it says to the person."""
    mode: Literal["form", "url"]
    requested_schema: NotRequired[dict[str, Any]]
    """Of a form: the JSON schema of the answer's content."""
    url: NotRequired[str]
    """The address to visit."""


class Questions(TypedDict):
    """What the run is interrupted with."""

    type: Literal["mcp_elicitation"]
    tool_name: str
    requests: list[Question]
    sends_again: bool
    """The call was cancelled at the question and begins anew with the answer. Unless the tool is read-only or
    idempotent, that wants consent: `"resend": true` beside the responses."""


class Answer(TypedDict):
    """What a person answers."""

    action: Literal["accept", "decline", "cancel"]
    content: NotRequired[dict[str, Any] | None]
    """Of an accepted form: the data."""


class Answers(TypedDict):
    """What the run is resumed with: the answers by the questions' keys."""

    responses: dict[str, Answer]
    resend: NotRequired[bool]


QuestionHandler: TypeAlias = Callable[[str, Question], Awaitable[Answer]]
"""Answers a question while its call goes on: the server's name and the question in."""


@dataclass(frozen=True, slots=True)
class LegacyQuestion:
    """A question of a server of the older protocol, in the middle of a call, which was cancelled then."""

    params: ElicitRequestParams


def asked(key: str, params: ElicitRequestParams) -> Question:
    """A question in the form that a person is shown."""
    if isinstance(params, ElicitRequestFormParams):
        schema = dict(params.requested_schema)
        return Question(key=key, message=params.message, mode="form", requested_schema=schema)
    return Question(key=key, message=params.message, mode="url", url=str(params.url))


def answered(answer: Answer | None) -> ElicitResult:
    """An answer in the protocol's form; none is a cancellation."""
    if answer is None:
        return ElicitResult(action="cancel")
    return ElicitResult(
        action=answer["action"], content=answer.get("content") if answer["action"] == "accept" else None
    )


def questions(tool_name: str, requests: Mapping[str, InputRequest], *, sends_again: bool) -> Questions:
    """A round of requests as the questions that an interrupt shows.

    Raises:
        UsageError: The server asks for something that is no question to a person.
    """
    listed: list[Question] = []
    for key, request in requests.items():
        if not isinstance(request, ElicitRequest):
            raise UsageError(
                f"expected only questions to a person from the tool {tool_name!r}, found {request.method}; "
                "this client does not offer that"
            )
        listed.append(asked(key, request.params))
    return Questions(type="mcp_elicitation", tool_name=tool_name, requests=listed, sends_again=sends_again)


def responses(requests: Mapping[str, InputRequest], answers: Answers) -> InputResponses:
    """The answers to a round of requests in the protocol's form."""
    return {key: answered(answers["responses"].get(key)) for key in requests}


def ask(shown: Questions) -> Answers:
    """Interrupt the run with questions; when it is resumed, the answers.

    Raises:
        UsageError: There is no run to interrupt.
    """
    try:
        return interrupt(shown, response_schema=Answers)
    except (RuntimeError, KeyError) as error:
        raise UsageError(
            f"expected a graph with a checkpointer around the tool {shown['tool_name']!r}, which asks a "
            "person something, found none; use it in a graph, or give the toolset a function that answers"
        ) from error


def recorded_answers() -> Sequence[Answers]:
    """What the running call was answered before the run was resumed, in order.

    Called first in a call that is made again: each answer is found by asking for it.
    """
    found: list[Answers] = []
    while True:
        try:
            found.append(interrupt(None, response_schema=Answers))
        except (GraphInterrupt, RuntimeError):
            # A graph without a checkpointer is never resumed, and refuses the very question.
            return found
