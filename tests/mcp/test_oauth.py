"""Tokens of an outside authorization server, which runs here on a port of its own."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from langchain_envscaler.errors import InfrastructureError
from langchain_envscaler.mcp.oauth import IntrospectionVerifier, JwtVerifier, ResourceServer

ISSUER = "https://issuer.example"
RESOURCE = "https://envs.example"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _token(key: Any = KEY, **changes: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "alice",
        "client_id": "app",
        "scope": "episodes read",
        "exp": int(time.time()) + 600,
    } | changes
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key, algorithm="RS256", headers={"kid": "1"})


class Issuer:
    """An authorization server: it publishes its key and answers questions about tokens."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.answer: dict[str, Any] = {}
        self.app = Starlette(
            routes=[Route("/jwks", self._keys), Route("/introspect", self._introspect, methods=["POST"])]
        )

    async def _keys(self, _: Request) -> JSONResponse:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return JSONResponse({"keys": [public | {"kid": "1", "use": "sig", "alg": "RS256"}]})

    async def _introspect(self, request: Request) -> JSONResponse:
        self.asked.append({key: str(value) for key, value in (await request.form()).items()})
        assert request.headers["authorization"].startswith("Basic ")
        return JSONResponse(self.answer)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def issuer_url(issuer: Issuer, run_app: Callable[[ASGIApp], str]) -> str:
    return run_app(issuer.app)


async def test_a_signed_token_gives_its_subject_and_scopes(issuer_url: str) -> None:
    access = await JwtVerifier(f"{issuer_url}/jwks", issuer=ISSUER, audience=RESOURCE).verify_token(_token())
    assert access is not None
    assert (access.subject, access.client_id, access.resource) == ("alice", "app", RESOURCE)
    assert access.scopes == ["episodes", "read"]
    assert access.claims == {"iss": ISSUER}


async def test_a_token_that_is_not_for_this_server_gives_nothing(issuer_url: str) -> None:
    verifier = JwtVerifier(f"{issuer_url}/jwks", issuer=ISSUER, audience=RESOURCE)
    wrong = [
        _token(aud="https://elsewhere.example"),
        _token(iss="https://elsewhere.example"),
        _token(exp=int(time.time()) - 600),
        _token(exp=None),
        _token(key=OTHER_KEY),
        jwt.encode(
            {"iss": ISSUER, "aud": RESOURCE, "exp": 2**33}, "secret" * 8, "HS256", headers={"kid": "1"}
        ),
        jwt.encode({"iss": ISSUER, "aud": RESOURCE, "exp": 2**33}, None, "none", headers={"kid": "1"}),
        "nonsense",
        "",
    ]
    for token in wrong:
        assert await verifier.verify_token(token) is None


async def test_keys_out_of_reach_are_a_failure_and_no_refusal(unused_port: int) -> None:
    verifier = JwtVerifier(f"http://127.0.0.1:{unused_port}/jwks", issuer=ISSUER, audience=RESOURCE)
    with pytest.raises(InfrastructureError, match="JWKS"):
        await verifier.verify_token(_token())


@asynccontextmanager
async def _introspection(url: str) -> AsyncIterator[IntrospectionVerifier]:
    verifier = IntrospectionVerifier(
        f"{url}/introspect", client_id="us", client_secret="hush", resource=RESOURCE
    )
    yield verifier
    await verifier.aclose()


async def test_introspection_asks_once_for_a_while(issuer: Issuer, issuer_url: str) -> None:
    issuer.answer = {
        "active": True,
        "sub": "alice",
        "client_id": "app",
        "aud": [RESOURCE, "x"],
        "scope": "a b",
    }
    async with _introspection(issuer_url) as verifier:
        first, second = await verifier.verify_token("t1"), await verifier.verify_token("t1")
    assert first is not None
    assert first == second
    assert (first.subject, first.scopes) == ("alice", ["a", "b"])
    assert [asked["token"] for asked in issuer.asked] == ["t1"]


@pytest.mark.parametrize(
    "answer",
    [{"active": False}, {}, {"active": "true"}, {"active": True}, {"active": True, "aud": "https://else"}],
)
async def test_introspection_that_does_not_confirm_gives_nothing(
    issuer: Issuer, issuer_url: str, answer: dict[str, Any]
) -> None:
    issuer.answer = answer
    async with _introspection(issuer_url) as verifier:
        assert await verifier.verify_token("t1") is None


async def test_introspection_out_of_reach_is_a_failure_and_no_refusal(unused_port: int) -> None:
    async with _introspection(f"http://127.0.0.1:{unused_port}") as verifier:
        with pytest.raises(InfrastructureError, match="introspection"):
            await verifier.verify_token("t1")


def test_metadata_lies_where_the_standard_says() -> None:
    server = ResourceServer(
        resource_url=AnyHttpUrl("https://envs.example/api"), authorization_servers=(AnyHttpUrl(ISSUER),)
    )
    assert server.metadata_url == "https://envs.example/.well-known/oauth-protected-resource/api"
    assert [route.path for route in server.routes()] == ["/.well-known/oauth-protected-resource/api"]
