"""EnvScaler's records: an environment's metadata and a scenario, in every form in which they are published.

Field names are those of the EnvScaler data sets. In the Hub's rows some structured fields are JSON text, in
the repository's files they are objects; both are accepted.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, field_validator

from langchain_envscaler.environments.derive import class_metadata

__all__ = ["Check", "EnvironmentSpec", "ReferenceCall", "Scenario"]


def _decoded(value: Any) -> Any:
    """A structured field that was published as JSON text, decoded; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return json.loads(value)
    return value


def _decoded_or_empty(value: Any) -> Any:
    return [] if value is None else _decoded(value)


Records = Annotated[list[dict[str, Any]], BeforeValidator(_decoded_or_empty)]
Texts = Annotated[list[str], BeforeValidator(_decoded_or_empty)]


class Check(BaseModel):
    """One checkable goal: a question, and the source of `check_func(final_state)` that answers it."""

    model_config = ConfigDict(frozen=True)

    check_item: str
    check_func: str


class ReferenceCall(BaseModel):
    """One tool call of a scenario's recorded solution."""

    model_config = ConfigDict(frozen=True)

    name: str
    arguments: dict[str, JsonValue] = {}


class Scenario(BaseModel):
    """A task in an environment: the state it starts from, what is asked, and the checks that tell success."""

    model_config = ConfigDict(frozen=True)

    env_id: str
    env_class_name: str = ""
    task_id: str
    init_config: Annotated[dict[str, Any], BeforeValidator(_decoded)] = {}
    task: str
    checklist: Texts = []
    checklist_with_func: Annotated[list[Check], BeforeValidator(_decoded_or_empty)] = []
    reference: Annotated[list[ReferenceCall], BeforeValidator(_decoded_or_empty)] = []
    """The recorded solution; empty where none is known. Not a field of EnvScaler's own files."""

    def to_envscaler(self) -> dict[str, Any]:
        """The record in the form of EnvScaler's files, with the recorded solution as a further field."""
        return self.model_dump(mode="json")


class EnvironmentSpec(BaseModel):
    """A synthesized environment: the source of a class, its tools as OpenAI function schemas, its texts."""

    model_config = ConfigDict(frozen=True)

    env_id: str
    environment_summary: str = ""
    environment_introduction: str = ""
    state_space_definition: Records = []
    constraints_rules: Texts = []
    operation_list: Records = []
    env_class_name: str
    env_class_code: str
    env_class_def: str = ""
    env_func_details: Annotated[dict[str, Any], BeforeValidator(_decoded)] = {}
    env_structure: Annotated[Any, BeforeValidator(_decoded)] = None
    tools: Records
    import_roots: tuple[str, ...] = ()
    """Folders that the sandbox may read and import from, beyond the standard library."""

    @field_validator("tools")
    @classmethod
    def _function_schemas(cls, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each tool is an OpenAI function schema with a name of its own."""
        names: set[str] = set()
        for number, tool in enumerate(tools):
            function = tool.get("function")
            name = function.get("name") if isinstance(function, dict) else None
            if not isinstance(function, dict) or not isinstance(name, str) or not name.isidentifier():
                raise ValueError(
                    f"expected a function schema with a name, found tool {number} of another form"
                )
            parameters = function.get("parameters")
            if not isinstance(parameters, dict) or parameters.get("type") != "object":
                raise ValueError(f'expected parameters of type "object" for tool {name!r}')
            if name in names:
                raise ValueError(f"expected a name of its own for each tool, found {name!r} twice")
            names.add(name)
        return tools

    @classmethod
    def from_class(
        cls, source: type, *, env_id: str | None = None, import_roots: Sequence[str | Path] = ()
    ) -> Self:
        """The environment that a Python class is: public methods become tools, docstrings their descriptions.

        Args:
            source: The class, at the top level of a module whose source can be read.
            env_id: The environment's id; None writes the class's name in snake case.
            import_roots: Folders that the class's module imports from, beyond the standard library.

        Raises:
            UsageError: A class that no environment can be made of.
        """
        return cls(
            env_id=env_id or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", source.__name__).lower(),
            import_roots=tuple(str(Path(root).absolute()) for root in import_roots),
            **class_metadata(source),
        )

    def to_envscaler(self) -> dict[str, Any]:
        """The record in the form of EnvScaler's files; what that form does not know is left out."""
        return self.model_dump(mode="json", exclude={"import_roots"})
