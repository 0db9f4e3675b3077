"""Who a request comes from: bearer tokens, kept as hashes, each of one principal."""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend
from mcp.server.auth.provider import AccessToken, TokenVerifier, principal_components
from pydantic import AnyHttpUrl, BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from langchain_envscaler.errors import DataError, InfrastructureError, NotFoundError
from langchain_envscaler.mcp.problems import problem_response

__all__ = ["BearerAuthentication", "TokenRecord", "TokenTable", "hash_token", "new_token", "principal_of"]

_PRINCIPAL = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,127}"


class TokenRecord(BaseModel):
    """A token as it is kept: whose it is and its hash, never the token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    principal: Annotated[str, Field(pattern=rf"^{_PRINCIPAL}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    expires_at: Annotated[int | None, Field(ge=0)] = None
    """Seconds since the epoch; None never expires."""


class _TokenFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tokens: list[TokenRecord]


def new_token(principal: str, *, expires_at: int | None = None) -> tuple[str, TokenRecord]:
    """A new random token (256 bits) and the record to keep of it. The token is shown only here."""
    token = f"envscaler_{secrets.token_urlsafe(32)}"
    return token, TokenRecord(principal=principal, sha256=hash_token(token), expires_at=expires_at)


def hash_token(token: str) -> str:
    """The hash under which a token is kept.

    A plain SHA-256 serves because tokens are random: there is no dictionary to try.
    """
    return hashlib.sha256(token.encode()).hexdigest()


class TokenTable(TokenVerifier):
    """The tokens of a server, as hashes. Verifies tokens for the SDK's bearer authentication."""

    def __init__(self, records: Iterable[TokenRecord]) -> None:
        self._records: Mapping[str, TokenRecord] = {record.sha256: record for record in records}

    @classmethod
    def load(cls, path: str | Path) -> "TokenTable":
        """Read the table from a JSON file: `{"tokens": [{"principal": ..., "sha256": ...}]}`.

        Raises:
            NotFoundError: No such file.
            DataError: A file of another form, or without a token.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            records = _TokenFile.model_validate(content).tokens
        except FileNotFoundError:
            raise NotFoundError(f"expected a file of tokens at {path}, found nothing") from None
        except ValidationError as error:
            # The message must not repeat the content: somebody may have put tokens there instead of hashes.
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the top level"
            raise DataError(
                f'expected {{"tokens": [{{"principal", "sha256"}}]}} in {path}, found an error at {where}: '
                f"{first['msg']}"
            ) from None
        except (OSError, ValueError) as error:
            raise DataError(
                f"expected a readable JSON file of tokens at {path}, found {type(error).__name__}"
            ) from None
        if not records:
            raise DataError(f"expected at least one token in {path}, found none: nobody could use the server")
        return cls(records)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that a token gives, or None."""
        # The look-up's timing tells about the hash only, and a hash tells nothing about another token.
        record = self._records.get(hash_token(token))
        if record is None:
            return None
        return AccessToken(
            token=record.sha256,
            client_id=record.principal,
            subject=record.principal,
            scopes=[],
            expires_at=record.expires_at,
        )


class BearerAuthentication:
    """ASGI middleware: a request without a valid token is refused, but for the public addresses."""

    def __init__(
        self,
        app: ASGIApp,
        verifier: TokenVerifier,
        *,
        resource_url: AnyHttpUrl | None = None,
        resource_metadata_url: str | None = None,
        required_scopes: Iterable[str] = (),
        public_paths: Iterable[str] = (),
    ) -> None:
        self._app = app
        self._backend = BearerAuthBackend(verifier, resource_server_url=resource_url)
        self._required_scopes = frozenset(required_scopes)
        self._public_paths = tuple(public_paths)
        self._challenge = f', resource_metadata="{resource_metadata_url}"' if resource_metadata_url else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(self._public_paths):
            await self._app(scope, receive, send)
            return
        try:
            result = await self._backend.authenticate(HTTPConnection(scope))
        except InfrastructureError as error:
            await problem_response(503, str(error), {"Retry-After": "1"})(scope, receive, send)
            return
        if result is None:
            await self._refuse(
                401, "invalid_token", "expected a valid bearer token in the Authorization header"
            )(scope, receive, send)
            return
        credentials, user = result
        missing = self._required_scopes.difference(credentials.scopes)
        if missing:
            detail = f"expected a token with the scope {' '.join(sorted(missing))}"
            await self._refuse(403, "insufficient_scope", detail)(scope, receive, send)
            return
        scope["auth"], scope["user"] = credentials, user
        await self._app(scope, receive, send)

    def _refuse(self, status: int, error: str, detail: str) -> ASGIApp:
        challenge = f'Bearer error="{error}", error_description="{detail}"{self._challenge}'
        return problem_response(status, detail, {"WWW-Authenticate": challenge})


def principal_of(scope: Scope) -> str | None:
    """Whose request it is; None on a server without authentication."""
    user = scope.get("user")
    if not isinstance(user, AuthenticatedUser):
        return None
    client_id, issuer, subject = principal_components(user.access_token)
    # A subject is unique only with its issuer.
    return "|".join(part for part in (issuer, subject or client_id) if part)
