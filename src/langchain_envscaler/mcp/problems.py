"""Errors over HTTP: RFC 9457 problem documents, one form for every refusal."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from langchain_envscaler.errors import (
    DataError,
    EnvScalerError,
    InfrastructureError,
    LimitError,
    NotFoundError,
    UsageError,
)

__all__ = ["MEDIA_TYPE", "HttpProblem", "Problem", "problem_of", "problem_response"]

MEDIA_TYPE = "application/problem+json"

_TITLES = {
    400: ("bad-request", "The request cannot be served as it is"),
    401: ("unauthorized", "A bearer token is required"),
    403: ("forbidden", "Not allowed"),
    404: ("not-found", "Nothing is there"),
    405: ("method-not-allowed", "Another method is required"),
    409: ("conflict", "The request contradicts what is recorded"),
    413: ("too-large", "The request body is too large"),
    415: ("unsupported-media-type", "A JSON body is required"),
    421: ("misdirected", "The Host header names another server"),
    422: ("invalid", "The request does not have the expected form"),
    429: ("limit-reached", "A limit is reached"),
    500: ("internal", "The server failed"),
    503: ("unavailable", "Something that the server stands on failed"),
}


class Problem(BaseModel):
    """An error over HTTP, as `application/problem+json`."""

    type: str = Field(description="What kind of problem it is: a URN, the same for all of its kind")
    title: str = Field(description="The kind in words")
    status: int = Field(description="The HTTP status")
    detail: str = Field(description="What was expected, what came, and what to do")


class HttpProblem(Exception):
    """An error that ends a request with a status of its own."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """The response of a problem."""
    kind, title = _TITLES.get(status, _TITLES[500])
    problem = Problem(type=f"urn:envscaler:problem:{kind}", title=title, status=status, detail=detail)
    return Response(
        json.dumps(problem.model_dump()),
        status_code=status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def problem_of(error: EnvScalerError) -> HttpProblem:
    """The problem that one of the package's errors is."""
    if isinstance(error, NotFoundError):
        return HttpProblem(404, str(error))
    if isinstance(error, LimitError):
        return HttpProblem(429, str(error))
    if isinstance(error, DataError):
        return HttpProblem(422, str(error))
    if isinstance(error, UsageError):
        return HttpProblem(409, str(error))
    if isinstance(error, InfrastructureError):
        return HttpProblem(503, str(error), {"Retry-After": "1"})
    return HttpProblem(500, str(error))


async def respond_to_problem(_: Request, error: Exception) -> Response:
    """Starlette's handler of :class:`HttpProblem` and of the package's errors."""
    problem = problem_of(error) if isinstance(error, EnvScalerError) else error
    assert isinstance(problem, HttpProblem)
    return problem_response(problem.status, problem.detail, problem.headers)


async def respond_to_http_exception(_: Request, error: Exception) -> Response:
    """Starlette's handler of its own HTTP errors: no route, another method."""
    status: Any = getattr(error, "status_code", 500)
    headers: Any = getattr(error, "headers", None)
    detail = {
        404: "no such address; GET /openapi.json lists them",
        405: "this address does not take that method; the Allow header lists the ones it takes",
    }.get(status, str(getattr(error, "detail", error)))
    return problem_response(status, detail, headers)


async def respond_to_failure(_: Request, error: Exception) -> Response:
    """Starlette's handler of everything unforeseen: the log has the details, the client does not."""
    return problem_response(500, "the server failed at this request; its log says why")
