"""What a server's refusals and failures mean to the caller, each in one line."""

import json
import re
from typing import Any

import httpx2

from langchain_envscaler.chat.backends.base import ContextOverflow
from langchain_envscaler.errors import EnvScalerError, InfrastructureError, NotFoundError, UsageError

__all__ = ["Refusal", "overflow_lengths", "refusal_error", "transport_error"]

_OVERFLOW = re.compile(
    r"maximum context length|context length|context size|context window|longer than the maximum model length"
    r"|max_model_len|exceed_context_size",
    re.IGNORECASE,
)
_LONGEST_MESSAGE = 600


class Refusal(Exception):
    """A server's answer with an error status.

    Attributes:
        status: The HTTP status.
        message: What the server said, in one line.
        details: The error object of its answer; empty where there is none.
    """

    def __init__(self, status: int, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details

    @classmethod
    def of(cls, response: httpx2.Response) -> "Refusal":
        """The refusal that a response holds, whatever its form."""
        text = response.text
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        error = body.get("error", body) if isinstance(body, dict) else body
        details = error if isinstance(error, dict) else {}
        message = next(
            (details[key] for key in ("message", "detail", "error") if isinstance(details.get(key), str)),
            error if isinstance(error, str) else text,
        )
        return cls(response.status_code, _one_line(message) or response.reason_phrase, details)

    @property
    def is_overflow(self) -> bool:
        """Whether prompt and output are longer than the context."""
        return self.status in (400, 413, 422) and bool(
            _OVERFLOW.search(f"{self.message} {self.details.get('type')}")
        )


def refusal_error(refusal: Refusal, base_url: str, model: str, models: list[str] | None) -> EnvScalerError:
    """The error that a refusal is to the caller.

    Args:
        refusal: What the server answered.
        base_url: The server's address.
        model: The model that was asked for.
        models: The models that the server offers, where it does not know the model or the path.
    """
    status, message = refusal.status, refusal.message
    if refusal.is_overflow:
        return ContextOverflow(f"the prompt and its output do not fit the model's context: {message}")
    if status in (401, 403):
        return UsageError(
            f"the server at {base_url} refused the API key ({status}: {message}); give api_key=... or set "
            "ENVSCALER_API_KEY"
        )
    if status == 404 and models and model not in models:
        return NotFoundError(
            f"the server at {base_url} has no model {model!r}; it offers "
            f"{', '.join(models)}: give one as model=..."
        )
    if status == 404:
        hint = "" if base_url.endswith("/v1") else f"; is it at {base_url}/v1?"
        return NotFoundError(f"the server at {base_url} has no such endpoint or model ({message}){hint}")
    if status < 500 and status != 429:
        return UsageError(f"the server at {base_url} refused the request ({status}): {message}")
    return InfrastructureError(f"the server at {base_url} failed ({status}): {message}")


def transport_error(error: httpx2.TransportError, base_url: str) -> InfrastructureError:
    """The error that a failed or broken connection is to the caller."""
    reason = _one_line(str(error)) or type(error).__name__
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        return InfrastructureError(
            f"no server answers at {base_url} ({reason}); start it, or give its address as base_url=..."
        )
    if isinstance(error, httpx2.TimeoutException):
        return InfrastructureError(
            f"the server at {base_url} gave no sign within its time; give it more with timeout=..."
        )
    return InfrastructureError(f"the connection to {base_url} broke off while it answered ({reason})")


def overflow_lengths(refusal: Refusal) -> tuple[int | None, int | None]:
    """The model's context and the prompt's length in tokens, as far as an overflow's message tells them."""
    context = refusal.details.get("n_ctx")
    prompt = refusal.details.get("n_prompt_tokens")
    if isinstance(context, int) and isinstance(prompt, int):
        return context, prompt
    found_context = re.search(
        r"(?:context (?:length|size|window)|max_model_len)\D{0,20}?(\d+)", refusal.message
    )
    found_prompt = re.search(
        r"(\d+) (?:in the messages|in the prompt|input tokens|prompt tokens)"
        r"|prompt (?:contains|has)\D{0,20}?(\d+)",
        refusal.message,
    )
    return (
        int(found_context.group(1)) if found_context else None,
        int(found_prompt.group(1) or found_prompt.group(2)) if found_prompt else None,
    )


def _one_line(text: Any) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:_LONGEST_MESSAGE]}..."
