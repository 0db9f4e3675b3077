"""One check of a scenario, in a child process of its own."""

import pickle
import sys
from collections.abc import Callable
from typing import Any

from langchain_envscaler.environments.sandbox.environment import captured_output, error_text, load_module
from langchain_envscaler.environments.sandbox.names import MODULE_NAME

__all__ = ["StateUnreadableError", "run_check"]


class StateUnreadableError(Exception):
    """A stored state that cannot be read back: never the check's fault."""


def run_check(source: str, final: bytes, initial: bytes, compiled: bytes) -> tuple[bool, str | None]:
    """Run one `check_func(final_state)`, with `initial_state` as a global.

    Returns:
        Whether it returned exactly True, and if it did anything but return True or False, what.

    Raises:
        StateUnreadableError: The states could not be read back.
    """
    try:
        final_state, initial_state = read_state(final, compiled), read_state(initial, compiled)
    except Exception as error:
        raise StateUnreadableError(error_text(error)) from error
    with captured_output():
        try:
            result = _check_function(source, initial_state)(final_state)
            if result is True:
                return True, None
            return False, None if result is False else f"returned {_shown(result)}, not True"
        except BaseException as error:
            return False, f"raised {error_text(error)[:500]}"


def read_state(state: bytes, compiled: bytes) -> dict[str, Any]:
    """A state's variables. The environment's code is loaded only for instances of its classes."""
    if MODULE_NAME.encode() in state and MODULE_NAME not in sys.modules:
        load_module(compiled)
    variables: dict[str, Any] = pickle.loads(state)[0]
    return variables


def _check_function(source: str, initial_state: dict[str, Any]) -> Callable[[Any], Any]:
    names: dict[str, Any] = {"__name__": "check", "initial_state": initial_state}
    exec(compile(source, "<check>", "exec", dont_inherit=True), names)  # noqa: S102
    function = names.get("check_func")
    if not callable(function):
        raise LookupError("expected a function check_func in the check's code, found none")
    checked: Callable[[Any], Any] = function
    return checked


def _shown(result: Any) -> str:
    text = repr(result)
    return f"{text[:200]} ({type(result).__name__})"
