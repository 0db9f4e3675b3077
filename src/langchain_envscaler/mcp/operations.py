"""The plumbing of the HTTP interface: an operation is declared once, and is both served and documented.

An operation names its method, its path, the models of its query, its body and its response, and the function
that answers. Its route parses what comes and refuses what does not fit; the OpenAPI document is written from
the same declaration.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from langchain_envscaler.mcp.problems import MEDIA_TYPE, HttpProblem, Problem

__all__ = [
    "Body",
    "Call",
    "NoQuery",
    "Operation",
    "Query",
    "Shape",
    "json_response",
    "openapi",
    "operation",
    "operations_of",
    "routes",
]


class Query(BaseModel):
    """The query of an operation: exactly the declared parameters, each at most once."""

    model_config = ConfigDict(extra="forbid")


class NoQuery(Query):
    """An operation without query parameters."""


class Body(BaseModel):
    """The JSON body of an operation: exactly the declared fields, each of its own type."""

    model_config = ConfigDict(extra="forbid", strict=True)


QueryT = TypeVar("QueryT", bound=Query)
BodyT = TypeVar("BodyT", bound=Body | None)


@dataclass(frozen=True, slots=True)
class Call(Generic[QueryT, BodyT]):
    """One request to an operation, parsed."""

    request: Request
    query: QueryT
    body: BodyT

    def path(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.request.path_params[name])


Answer: TypeAlias = Callable[[Call[Any, Any]], Awaitable[BaseModel | Response | None]]
AnswerT = TypeVar("AnswerT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Shape:
    """What an operation takes and gives, beside its function."""

    method: Literal["GET", "POST", "DELETE"]
    path: str
    response: type[BaseModel] | str | None = None
    """The response's model, the media type of one that is not JSON, or None where it has no body."""
    status: int = 200
    query: type[Query] = NoQuery
    body: type[Body] | None = None
    body_optional: bool = False
    problems: Sequence[int] = ()
    """The statuses of its own refusals, beside those that any operation has."""
    public: bool = False
    """Answers without a token."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the interface."""

    shape: Shape
    name: str
    """Its id in the OpenAPI document."""
    summary: str
    answer: Answer


def operation(shape: Shape) -> Callable[[AnswerT], AnswerT]:
    """Makes a method an operation: its name is the operation's, its docstring's first line the summary."""

    def declare(method: AnswerT) -> AnswerT:
        method._shape = shape  # type: ignore[attr-defined]
        return method

    return declare


def operations_of(interface: object) -> list[Operation]:
    """The operations that an object's methods were declared to be, in the order in which they stand there."""
    return [
        Operation(member._shape, name, (member.__doc__ or name).splitlines()[0], getattr(interface, name))
        for name, member in vars(type(interface)).items()
        if hasattr(member, "_shape")
    ]


def routes(operations: Iterable[Operation]) -> list[Route]:
    """The routes that serve the operations: one for each path, which knows all of its methods."""
    by_path: dict[str, dict[str, Operation]] = {}
    for operation in operations:
        by_path.setdefault(operation.shape.path, {})[operation.shape.method] = operation
    return [_route(path, methods) for path, methods in by_path.items()]


def _route(path: str, operations: Mapping[str, Operation]) -> Route:
    async def endpoint(request: Request) -> Response:
        # HEAD comes with GET.
        operation = operations["GET" if request.method == "HEAD" else request.method]
        shape = operation.shape
        call = Call(request, _query(shape.query, request), await _body(shape, request))
        result = await operation.answer(call)
        if isinstance(result, Response):
            return result
        if result is None:
            return Response(status_code=shape.status)
        return json_response(result, shape.status)

    return Route(path, endpoint, methods=list(operations))


def json_response(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A model as a JSON response."""
    return Response(
        model.model_dump_json(by_alias=True),
        status_code=status,
        media_type="application/json",
        headers=dict(headers or {}),
    )


def _query(model: type[QueryT], request: Request) -> QueryT:
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    if len(set(names)) != len(names):
        raise HttpProblem(422, "expected each query parameter once, found one several times")
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise HttpProblem(422, f"expected other query parameters: {_listed(error)}") from None


async def _body(shape: Shape, request: Request) -> Body | None:
    if shape.body is None:
        return None
    raw = await request.body()
    if not raw and shape.body_optional:
        return shape.body()
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HttpProblem(415, "expected a body of the type application/json, found another type or none")
    try:
        return shape.body.model_validate_json(raw)
    except ValidationError as error:
        broken = any(
            one["type"] == "json_invalid" for one in error.errors(include_url=False, include_input=False)
        )
        raise HttpProblem(400 if broken else 422, f"expected another body: {_listed(error)}") from None


def _listed(error: ValidationError) -> str:
    """What a model refused, without the values: they may be secret, and they may be long."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, one['loc'])) or 'all of it'}: {one['msg']}" for one in errors[:5])


def openapi(
    operations: Iterable[Operation], *, version: str, description: str, authenticated: bool
) -> dict[str, Any]:
    """The OpenAPI 3.1 document of the operations."""
    operations = list(operations)
    models = {Problem} | {
        model
        for operation in operations
        for model in (operation.shape.body, operation.shape.response)
        if isinstance(model, type)
    }
    inputs = {operation.shape.body for operation in operations}
    ordered = sorted(models, key=lambda model: model.__name__)
    schemas, definitions = models_json_schema(
        [(model, "validation" if model in inputs else "serialization") for model in ordered],
        ref_template="#/components/schemas/{model}",
    )
    references = {model: schema for (model, _), schema in schemas.items()}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        documented = _documented(operation, references, authenticated)
        paths.setdefault(operation.shape.path, {})[operation.shape.method.lower()] = documented
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "langchain-envscaler", "version": version, "description": description},
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }
    if authenticated:
        document["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    return document


def _documented(operation: Operation, references: Mapping[Any, Any], authenticated: bool) -> dict[str, Any]:
    shape = operation.shape
    secured = authenticated and not shape.public
    problems = {*shape.problems, 422, 503}
    if shape.body is not None:
        problems |= {400, 413, 415}
    if secured:
        problems |= {401, 403}
    problem = {MEDIA_TYPE: {"schema": references[Problem]}}
    responses: dict[str, Any] = {str(shape.status): _success(shape, references)}
    responses |= {
        str(status): {"description": "A problem", "content": problem} for status in sorted(problems)
    }
    documented: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [*_path_parameters(shape.path), *_query_parameters(shape.query)],
        "responses": responses,
    }
    if shape.body is not None:
        documented["requestBody"] = {
            "required": not shape.body_optional,
            "content": {"application/json": {"schema": references[shape.body]}},
        }
    if secured:
        documented["security"] = [{"bearer": []}]
    return documented


def _success(shape: Shape, references: Mapping[Any, Any]) -> dict[str, Any]:
    if shape.response is None:
        return {"description": "Done"}
    if isinstance(shape.response, str):
        return {"description": "Done", "content": {shape.response: {}}}
    return {
        "description": "Done",
        "content": {"application/json": {"schema": references[shape.response]}},
    }


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", path)
    ]


def _query_parameters(query: type[Query]) -> list[dict[str, Any]]:
    schema = query.model_json_schema(by_alias=True)
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": parameter}
        for name, parameter in schema.get("properties", {}).items()
    ]
