"""The package's errors as protocol errors."""

from collections.abc import Awaitable
from typing import TypeVar

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from langchain_envscaler.errors import EnvScalerError, InfrastructureError

__all__ = ["translated"]

Result = TypeVar("Result")


async def translated(work: Awaitable[Result]) -> Result:
    """Await the work; one of the package's errors becomes a protocol error that carries its message.

    Raises:
        MCPError: The client asked wrongly (invalid params), or something that the server stands on failed
            (internal error).
    """
    try:
        return await work
    except InfrastructureError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    except EnvScalerError as error:
        raise MCPError(INVALID_PARAMS, str(error)) from error
