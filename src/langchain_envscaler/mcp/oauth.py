"""Tokens of an outside authorization server: the server is an OAuth resource server and nothing more.

It publishes where tokens come from (protected-resource metadata, RFC 9728) and verifies what it is shown, by
the issuer's public keys or by asking the issuer (introspection, RFC 7662).
"""

import asyncio
import hashlib
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import jwt
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl, BaseModel, ConfigDict
from starlette.routing import Route

from langchain_envscaler.errors import InfrastructureError

__all__ = ["IntrospectionVerifier", "JwtVerifier", "ResourceServer"]

_CACHED_SECONDS = 30
_CACHED_TOKENS = 10_000
_ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


class ResourceServer(BaseModel):
    """This server's part in OAuth."""

    model_config = ConfigDict(frozen=True, url_preserve_empty_path=True)

    resource_url: AnyHttpUrl
    """The address under which clients know this server: a token must be issued for it."""
    authorization_servers: tuple[AnyHttpUrl, ...]
    """Who issues tokens."""
    scopes: tuple[str, ...] = ()
    """What a token must allow."""

    @property
    def metadata_url(self) -> str:
        """Where the protected-resource metadata is published."""
        return str(build_resource_metadata_url(self.resource_url))

    def routes(self) -> list[Route]:
        """The route of the protected-resource metadata."""
        return create_protected_resource_routes(
            resource_url=self.resource_url,
            authorization_servers=list(self.authorization_servers),
            scopes_supported=list(self.scopes) or None,
        )


class JwtVerifier(TokenVerifier):
    """Verifies signed tokens (RFC 9068) with the keys that the issuer publishes."""

    def __init__(self, jwks_url: str, *, issuer: str, audience: str) -> None:
        """Verify tokens of an issuer for an audience (this server's resource URL).

        Args:
            jwks_url: Where the issuer publishes its keys. They are fetched when first needed and kept.
        """
        self._keys = jwt.PyJWKClient(jwks_url, cache_keys=True, timeout=10)
        self._issuer = issuer
        self._audience = audience

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that a token gives, or None.

        Raises:
            InfrastructureError: The issuer's keys cannot be fetched.
        """
        try:
            key = await asyncio.to_thread(self._keys.get_signing_key_from_jwt, token)
            claims = jwt.decode(
                token,
                key.key,
                # Never a shared secret: with one, whoever can verify could also issue.
                algorithms=list(_ASYMMETRIC),
                audience=self._audience,
                issuer=self._issuer,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise InfrastructureError(
                "expected the token issuer's keys at its JWKS address, found no answer; try again"
            ) from error
        except jwt.PyJWTError:
            return None
        return _access(claims, self._audience)


class IntrospectionVerifier(TokenVerifier):
    """Asks the authorization server about each token; an answer holds for half a minute."""

    def __init__(
        self,
        endpoint: str,
        *,
        client_id: str,
        client_secret: str,
        resource: str,
    ) -> None:
        """Ask an introspection endpoint as a client of the authorization server.

        Args:
            resource: This server's resource URL, which a token's audience must name.
        """
        self._endpoint = endpoint
        self._credentials = httpx2.BasicAuth(client_id, client_secret)
        self._resource = resource
        self._http = httpx2.AsyncClient(timeout=10)
        self._known: dict[str, tuple[float, AccessToken | None]] = {}

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that a token gives, or None.

        Raises:
            InfrastructureError: The authorization server does not answer.
        """
        # The cache must not hold what a memory dump could replay.
        digest = hashlib.sha256(token.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        access = await self._ask(token)
        if len(self._known) >= _CACHED_TOKENS:
            self._known.clear()
        self._known[digest] = (time.monotonic() + _CACHED_SECONDS, access)
        return access

    async def aclose(self) -> None:
        """Close the connections to the authorization server."""
        await self._http.aclose()

    async def _ask(self, token: str) -> AccessToken | None:
        try:
            response = await self._http.post(
                self._endpoint,
                data={"token": token, "token_type_hint": "access_token"},
                auth=self._credentials,
            )
            response.raise_for_status()
            claims = response.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise InfrastructureError(
                "expected an answer of the token introspection endpoint, found none; try again"
            ) from error
        if not isinstance(claims, dict) or claims.get("active") is not True:
            return None
        return _access(claims, self._resource)


def _access(claims: Mapping[str, Any], resource: str) -> AccessToken | None:
    """What verified claims allow at this server, or None if they are meant for another."""
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if resource not in audiences:
        return None
    scope = claims.get("scope") or claims.get("scp") or ""
    expires_at = claims.get("exp")
    return AccessToken(
        # The token itself is not needed any more.
        token="",
        client_id=str(claims.get("client_id") or claims.get("azp") or claims.get("sub") or ""),
        subject=str(claims["sub"]) if claims.get("sub") else None,
        scopes=scope.split() if isinstance(scope, str) else [str(one) for one in scope],
        expires_at=int(expires_at) if expires_at is not None else None,
        resource=resource,
        claims={"iss": claims["iss"]} if claims.get("iss") else None,
    )
