"""EnvScaler's records: an environment's metadata and a scenario, in every form in which they are published.

Field names are those of the EnvScaler data sets. In the Hub's rows some structured fields are JSON text, in
the repository's files they are objects; both are accepted.
"""

import json
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

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
