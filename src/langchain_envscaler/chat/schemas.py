"""JSON schemas in a form that a grammar holds exactly."""

from collections.abc import Mapping
from typing import Any

__all__ = ["grammar_schema"]


def grammar_schema(schema: Mapping[str, Any], *, at: str) -> dict[str, Any]:
    return dict(schema)
