"""What an output must look like, said without any engine: by which tools it may call, or by a JSON schema.

A backend turns a constraint into a grammar that masks tokens, so the output is valid by construction. With
thinking on, the grammar binds after the reasoning.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["CallConstraint", "Constraint", "JsonConstraint", "ToolSchema"]


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a grammar sees it.

    Attributes:
        name: Its name.
        parameters: The schema of its arguments; None where any JSON object will do.
        is_strict: Whether a schema that no grammar can hold is an error; else it is held as far as it can be.
    """

    name: str
    parameters: Mapping[str, Any] | None = None
    is_strict: bool = False


@dataclass(frozen=True, slots=True)
class CallConstraint:
    """The answer calls tools.

    Attributes:
        tools: The tools that may be called.
        required: True: the answer is nothing but calls, at least one. False: text and calls, each call valid.
        parallel: Whether more than one call may be written.
    """

    tools: tuple[ToolSchema, ...]
    required: bool = True
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class JsonConstraint:
    """The answer is one JSON value.

    Attributes:
        schema: Its schema; None: any JSON object.
        calls: Calls that may be written instead.
    """

    schema: Mapping[str, Any] | None = None
    calls: CallConstraint | None = None


Constraint: TypeAlias = CallConstraint | JsonConstraint
