from collections.abc import Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from langchain_envscaler.environments.derive import json_schema, tool_schema
from langchain_envscaler.environments.metadata import EnvironmentSpec
from langchain_envscaler.errors import UsageError


class Parcel(TypedDict):
    weight: float


class Base:
    def weigh(self, parcel: str) -> float:
        """Weigh a parcel."""
        return len(parcel)


class PostOffice(Base):
    """A village post office.

    It takes parcels and
    hands them out.

    Rules:
    - One parcel
      at a time.
    * No letters.

    Notes:
    - not a rule
    """

    limit = 3

    def __init__(self, init_config: dict[str, Any]) -> None:
        self.parcels: dict[str, Parcel] = init_config.get("parcels", {})

    def send(self, to: str, weight: float = 1.0, express: bool = False) -> dict[str, Any]:
        """Send a parcel.

        Args:
            to (str): The receiver.
        """
        return {"success": True}

    def _hidden(self) -> None: ...

    @staticmethod
    def price(weight: float) -> float:
        """The price."""
        return weight


class Unnameable:
    def run(self, *args: int) -> None:
        """Run."""


class Empty:
    def __init__(self) -> None: ...


def test_public_methods_become_tools_in_their_order_private_ones_do_not() -> None:
    spec = EnvironmentSpec.from_class(PostOffice)
    assert [tool["function"]["name"] for tool in spec.tools] == ["weigh", "send", "price"]
    assert spec.env_id == "post_office"


def test_a_tool_has_the_docstring_whole_and_a_type_per_parameter() -> None:
    spec = EnvironmentSpec.from_class(PostOffice, env_id="village")
    assert spec.tools[1] == {
        "type": "function",
        "function": {
            "name": "send",
            "description": "Send a parcel.\n\nArgs:\n    to (str): The receiver.",
            "parameters": {
                "type": "object",
                "properties": {
                    "to": {"type": "string"},
                    "weight": {"type": "number"},
                    "express": {"type": "boolean"},
                },
                "required": ["to"],
            },
        },
    }
    assert spec.tools[2]["function"]["parameters"]["required"] == ["weight"]


def test_the_docstring_gives_summary_introduction_and_rules() -> None:
    spec = EnvironmentSpec.from_class(PostOffice)
    assert spec.environment_summary == "A village post office."
    assert spec.environment_introduction == "A village post office.\n\nIt takes parcels and\nhands them out."
    assert spec.constraints_rules == ["One parcel at a time.", "No letters."]


def test_the_source_is_the_modules_and_the_details_name_signatures() -> None:
    spec = EnvironmentSpec.from_class(PostOffice)
    assert "class Base" in spec.env_class_code
    assert spec.env_class_def.rstrip().endswith('init_config.get("parcels", {})')
    assert spec.env_func_details["send"]["signature"]["parameters"][1] == {
        "name": "weight",
        "type": "float",
        "default": "1.0",
        "kind": "positional-or-keyword",
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (str | None, {"type": ["string", "null"]}),
        (Optional[int], {"type": ["integer", "null"]}),  # noqa: UP045  (the older spelling is what is tested)
        (int | str, {"type": ["integer", "string"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (list, {"type": "array", "items": {}}),
        (Sequence[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (tuple[int, str], {"type": "array", "items": {}}),
        (list[str] | None, {"type": ["array", "null"], "items": {"type": "string"}}),
        (dict[str, int], {"type": "object"}),
        (Parcel, {"type": "object"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (Annotated[int, "of parcels"], {"type": "integer"}),
        (list[int] | str, {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]}),
        (Any, {}),
        (object, {}),
    ],
)
def test_annotations_as_json_schema(annotation: Any, schema: dict[str, Any]) -> None:
    assert json_schema(annotation) == schema


def test_an_annotation_that_names_nothing_allows_anything() -> None:
    class Window:
        def look(self, where: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
            """Look."""

    assert tool_schema(Window, "look")["function"]["parameters"]["properties"] == {"where": {}}


def test_a_class_that_cannot_be_an_environment_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"tool 'run', found \*args: int"):
        EnvironmentSpec.from_class(Unnameable)
    with pytest.raises(UsageError, match="public methods"):
        EnvironmentSpec.from_class(Empty)
    with pytest.raises(UsageError, match="source can be read"):
        EnvironmentSpec.from_class(type("Made", (Base,), {}))
