"""An environment's metadata, derived from an ordinary Python class: its source, signatures and docstrings."""

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal

from langchain_envscaler.errors import UsageError

__all__ = ["class_metadata", "json_schema", "tool_schema"]

_SIMPLE: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_NEXT_SECTION = re.compile(r"^\S[^\n]*:\s*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*[-*]\s+", re.MULTILINE)


def class_metadata(cls: type) -> dict[str, Any]:
    """The fields of an `EnvironmentSpec` that a class tells of itself, `env_id` and import roots aside.

    Public methods become tools; a name that begins with an underscore is left out. The docstring's first
    paragraph is the summary; its text up to a section `Rules:` the introduction; that section's bullets are
    the rules.

    Raises:
        UsageError: The class has no source to read, no public method, or one that no JSON object can call.
    """
    methods = _public_methods(cls)
    if not methods:
        raise UsageError(f"expected public methods to make tools of in class {cls.__name__}, found none")
    code = _module_source(cls)
    doc = inspect.getdoc(cls) if cls.__doc__ else ""
    introduction, rules = _introduction_and_rules(doc or "")
    return {
        "env_class_name": cls.__name__,
        "env_class_code": code,
        "env_class_def": _class_head(code, cls.__name__),
        "environment_summary": " ".join(introduction.partition("\n\n")[0].split()),
        "environment_introduction": introduction,
        "constraints_rules": rules,
        "operation_list": [
            {"operation_name": name, "operation_description": _summary(getattr(cls, name))}
            for name in methods
        ],
        "env_func_details": {name: _details(cls, name) for name in methods},
        "tools": [tool_schema(cls, name) for name in methods],
    }


def tool_schema(cls: type, name: str) -> dict[str, Any]:
    """A method as an OpenAI function schema of EnvScaler's form: the docstring whole, a type per parameter.

    Raises:
        UsageError: A parameter that cannot be given by name.
    """
    method, signature = getattr(cls, name), _signature(cls, name)
    _refuse_unnameable(name, signature)
    hints = _hints(method)
    parameters = signature.parameters.values()
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": inspect.getdoc(method) or name.replace("_", " "),
            "parameters": {
                "type": "object",
                "properties": {p.name: json_schema(hints.get(p.name, Any)) for p in parameters},
                "required": [p.name for p in parameters if p.default is p.empty],
            },
        },
    }


def json_schema(annotation: Any) -> dict[str, Any]:
    """The JSON schema of a parameter's annotation; what has no form of its own allows anything."""
    if isinstance(annotation, type) and annotation in _SIMPLE:
        return {"type": _SIMPLE[annotation]}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return json_schema(arguments[0])
    if origin is Literal:
        kinds = {_SIMPLE.get(type(value)) for value in arguments}
        kind = {"type": kinds.pop()} if len(kinds) == 1 else {}
        return {**kind, "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return _union_schema(arguments)
    plain = origin or annotation
    if plain in (list, set, frozenset, tuple) or _is_abstract_sequence(plain):
        items = [argument for argument in arguments if argument is not Ellipsis]
        return {"type": "array", "items": json_schema(items[0]) if len(set(items)) == 1 else {}}
    if isinstance(plain, type) and issubclass(plain, dict):
        return {"type": "object"}
    return {}


def _union_schema(members: tuple[Any, ...]) -> dict[str, Any]:
    """`X | None` keeps X's schema and allows null; a union of others lists them."""
    others = [json_schema(member) for member in members if member is not type(None)]
    nullable = len(others) < len(members)
    if len(others) == 1:
        schema = dict(others[0])
        if nullable and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
        if nullable and "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
        return schema
    if all(set(schema) == {"type"} for schema in others):
        kinds = dict.fromkeys(schema["type"] for schema in others)
        return {"type": [*kinds, *(["null"] if nullable else [])]}
    return {"anyOf": [*others, *([{"type": "null"}] if nullable else [])]}


def _is_abstract_sequence(plain: Any) -> bool:
    names = ("Sequence", "Iterable", "Set")
    return getattr(plain, "__module__", "") == "collections.abc" and plain.__name__ in names


def _public_methods(cls: type) -> list[str]:
    """The names of public methods in the order in which they stand, a base class's first."""
    names = dict.fromkeys(name for base in reversed(cls.__mro__[:-1]) for name in vars(base))
    return [
        name for name in names if not name.startswith("_") and _is_method(inspect.getattr_static(cls, name))
    ]


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, staticmethod | classmethod)


def _signature(cls: type, name: str) -> inspect.Signature:
    """The signature of a method as a caller of an instance sees it."""
    signature = inspect.signature(getattr(cls, name))
    if inspect.isfunction(inspect.getattr_static(cls, name)):
        return signature.replace(parameters=list(signature.parameters.values())[1:])
    return signature


def _refuse_unnameable(name: str, signature: inspect.Signature) -> None:
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(
                f"expected parameters that a JSON object can name for tool {name!r}, found {parameter}; "
                "write it out by name, or begin the method's name with an underscore"
            )


def _hints(method: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(method)
    except (NameError, TypeError, AttributeError):
        # An annotation that names what is not there says nothing about the type.
        return {}


def _details(cls: type, name: str) -> dict[str, Any]:
    method, signature = getattr(cls, name), _signature(cls, name)
    parameters = [
        {
            "name": parameter.name,
            "type": _annotation_text(parameter.annotation),
            "default": None if parameter.default is parameter.empty else repr(parameter.default),
            "kind": parameter.kind.description.replace(" ", "-"),
        }
        for parameter in signature.parameters.values()
    ]
    return {
        "signature": {"parameters": parameters, "return": _annotation_text(signature.return_annotation)},
        "doc": inspect.getdoc(method) or "",
        "source_code": _source(method),
    }


def _annotation_text(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _summary(method: Callable[..., Any]) -> str:
    return (inspect.getdoc(method) or "").partition("\n")[0]


def _introduction_and_rules(doc: str) -> tuple[str, list[str]]:
    before, found, after = doc.partition("\nRules:\n")
    if not found:
        return doc.strip(), []
    next_section = _NEXT_SECTION.search(after)
    section = after[: next_section.start()] if next_section else after
    rules = [" ".join(rule.split()) for rule in _BULLET.split(section)]
    return before.strip(), [rule for rule in rules if rule]


def _source(what: Any) -> str:
    try:
        return inspect.getsource(what)
    except (OSError, TypeError):
        return ""


def _module_source(cls: type) -> str:
    """The source of the class's module, which the sandbox runs: the class and what it stands on."""
    module = inspect.getmodule(cls)
    code = _source(module) if module is not None else ""
    if not re.search(rf"^class {cls.__name__}\b", code, re.MULTILINE):
        raise UsageError(
            f"expected class {cls.__name__} at the top level of a module whose source can be read; "
            "move it into a file of its own"
        )
    return code


def _class_head(code: str, name: str) -> str:
    """The module up to the end of the class's constructor: what its state is made of."""
    tree = ast.parse(code)
    lines = code.splitlines()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            functions = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
            init = next((function for function in functions if function.name == "__init__"), None)
            return "\n".join(lines[: init.end_lineno if init else node.lineno])
    return ""
