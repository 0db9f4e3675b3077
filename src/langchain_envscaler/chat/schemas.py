"""JSON schemas in a form that a grammar holds exactly.

Grammar engines read the common keywords but skip what stands beside `$ref`, `anyOf` or in several `allOf`.
So a schema is first rewritten: references with company are followed, `allOf` is merged, what stands beside
`anyOf` is moved into its branches. What no grammar can hold is refused or, where allowed, left out.
"""

import logging
from collections.abc import Mapping
from typing import Any

from langchain_envscaler.chat.schema_merging import CannotMerge, merged
from langchain_envscaler.errors import UsageError

__all__ = ["grammar_schema"]

logger = logging.getLogger(__name__)

_ANNOTATIONS = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
        "$anchor",
        "discriminator",
        "nullable",
        "example",
        "strict",
    ]
)
_DEFINITIONS = ("$defs", "definitions")
_UNHELD = [
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
]
_DEEPEST = 64


def grammar_schema(schema: Mapping[str, Any], *, at: str, is_strict: bool = True) -> dict[str, Any]:
    """The schema, rewritten so that a grammar made of it admits only what the schema admits.

    `uniqueItems` alone is always left out: no grammar can hold it, and sets are made unique afterwards.

    Args:
        schema: A JSON schema of an object or of another value.
        at: Where it comes from, for messages.
        is_strict: Whether a keyword that no grammar can hold is an error; else it is left out and logged.

    Raises:
        UsageError: It holds such a keyword, or contradicts itself.
    """
    return _Rewriter(schema, at, is_strict=is_strict).rewrite()


class _Rewriter:
    def __init__(self, root: Mapping[str, Any], at: str, *, is_strict: bool) -> None:
        self._root = root
        self._at = at
        self._is_strict = is_strict

    def rewrite(self) -> dict[str, Any]:
        rewritten = self._schema(self._root, self._at, 0)
        for name in _DEFINITIONS:
            if isinstance(self._root.get(name), Mapping):
                rewritten[name] = {
                    key: self._schema(value, f"{self._at}.{name}.{key}", 0)
                    for key, value in self._root[name].items()
                }
        return rewritten

    def _schema(self, schema: Any, path: str, depth: int) -> dict[str, Any]:
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            raise UsageError(f"{path}: expected a JSON schema, got {schema!r}, which no value satisfies")
        if depth > _DEEPEST:
            raise UsageError(
                f"{path}: the schema refers to itself without end; use $ref alone, nothing beside it"
            )
        held = {
            key: value for key, value in schema.items() if key not in _ANNOTATIONS and key not in _DEFINITIONS
        }
        self._check(held, path)
        if "$ref" in held and len(held) == 1:
            return held
        if "$ref" in held:
            target = self._resolve(held.pop("$ref"), path)
            return self._schema(self._merge(target, held, path), path, depth + 1)
        if "allOf" in held:
            for part in held.pop("allOf"):
                held = self._merge(held, self._followed(part, path), path)
            return self._schema(held, path, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if keyword in held:
                return self._branches(held, keyword, path, depth)
        return self._plain(held, path, depth)

    def _branches(self, schema: dict[str, Any], keyword: str, path: str, depth: int) -> dict[str, Any]:
        """A choice; grammars take `oneOf` as `anyOf`, and so it is written."""
        branches = schema.pop(keyword)
        if schema:
            branches = [self._merge(schema, self._followed(branch, path), path) for branch in branches]
        rewritten = []
        for place, branch in enumerate(branches):
            if branch is not False:
                rewritten.append(self._schema(branch, f"{path}.{keyword}[{place}]", depth + 1))
        return {"anyOf": rewritten}

    def _plain(self, schema: dict[str, Any], path: str, depth: int) -> dict[str, Any]:
        if "enum" in schema or "const" in schema:
            return _values(schema, path)
        properties = schema.get("properties")
        if properties is not None:
            # A property that is required but not described may have any value.
            named = {
                **properties,
                **{name: {} for name in schema.get("required", ()) if name not in properties},
            }
            schema["properties"] = {
                name: self._schema(value, f"{path}.{name}", depth + 1) for name, value in named.items()
            }
        for keyword in ("items", "additionalProperties", "propertyNames"):
            if isinstance(schema.get(keyword), Mapping):
                schema[keyword] = self._schema(schema[keyword], f"{path}.{keyword}", depth + 1)
        if isinstance(schema.get("prefixItems"), list):
            schema["prefixItems"] = [
                self._schema(item, f"{path}.prefixItems[{place}]", depth + 1)
                for place, item in enumerate(schema["prefixItems"])
            ]
        if isinstance(schema.get("patternProperties"), Mapping):
            schema["patternProperties"] = {
                pattern: self._schema(value, f"{path}.{pattern}", depth + 1)
                for pattern, value in schema["patternProperties"].items()
            }
        return schema

    def _check(self, schema: dict[str, Any], path: str) -> None:
        """Takes out what no grammar holds."""
        schema.pop("uniqueItems", None)
        unheld = [keyword for keyword in _UNHELD if keyword in schema]
        if "pattern" in schema and ("minLength" in schema or "maxLength" in schema):
            unheld += [keyword for keyword in ("minLength", "maxLength") if keyword in schema]
        if "multipleOf" in schema and schema.get("type") != "integer":
            unheld.append("multipleOf")
        if not unheld:
            return
        listed = ", ".join(unheld)
        if self._is_strict:
            raise UsageError(
                f"{path}: no grammar can hold {listed}, so no valid answer could be promised; leave "
                f"{'it' if len(unheld) == 1 else 'them'} out of the schema and check the answer afterwards"
            )
        logger.warning("%s: %s cannot be held by a grammar and is left to the model", path, listed)
        for keyword in unheld:
            del schema[keyword]

    def _followed(self, schema: Any, path: str) -> Any:
        """A part that is to be merged: a reference is followed, since nothing merges with a reference."""
        return (
            self._resolve(schema["$ref"], path)
            if isinstance(schema, Mapping) and "$ref" in schema
            else schema
        )

    def _resolve(self, reference: Any, path: str) -> Mapping[str, Any]:
        target: Any = self._root
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UsageError(f"{path}: expected a $ref within the schema (#/...), got {reference!r}")
        for step in reference.lstrip("#").strip("/").split("/") if reference != "#" else ():
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, Mapping) else None
        if not isinstance(target, Mapping):
            raise UsageError(f"{path}: $ref {reference!r} points to nothing in the schema")
        return {key: value for key, value in target.items() if key not in _DEFINITIONS}

    def _merge(self, first: Mapping[str, Any], second: Any, path: str) -> dict[str, Any]:
        if second is True:
            return dict(first)
        if not isinstance(second, Mapping):
            raise UsageError(f"{path}: expected a JSON schema, got {second!r}")
        try:
            return merged(
                {key: value for key, value in first.items() if key not in _ANNOTATIONS},
                {key: value for key, value in second.items() if key not in _ANNOTATIONS},
            )
        except CannotMerge as error:
            raise UsageError(f"{path}: no grammar can hold several schemas at once that {error}") from None


def _values(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """A choice of values; those that the schema's type excludes are no choice."""
    values = [schema["const"]] if "const" in schema else list(schema["enum"])
    if "const" in schema and "enum" in schema and schema["const"] not in schema["enum"]:
        values = []
    kinds = schema.get("type")
    if kinds is not None:
        allowed = [kinds] if isinstance(kinds, str) else kinds
        values = [value for value in values if any(_is_kind(value, kind) for kind in allowed)]
    if not values:
        raise UsageError(f"{path}: the schema's values and its type exclude each other, so nothing is valid")
    return {"enum": values}


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return _is_kind(value, "number") and value == int(value)
    kinds = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
    return isinstance(value, kinds.get(kind, object))
