"""An environment inside its child process: loaded, constructed, called, and its state taken and put back."""

import contextlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Iterator
from typing import Any

from langchain_envscaler.environments.sandbox.json_form import NoJsonFormError, is_dunder, json_form
from langchain_envscaler.environments.sandbox.module_state import ModuleState
from langchain_envscaler.environments.sandbox.names import MODULE_NAME

__all__ = [
    "CallOutcome",
    "Environment",
    "captured_output",
    "compile_source",
    "error_text",
    "load_module",
    "state_variables",
]

_LOG_CHARS = 8192


def compile_source(source: str) -> bytes:
    """The environment's source, compiled, in a form that only a child reads."""
    return marshal.dumps(compile(source, f"<{MODULE_NAME}>", "exec", dont_inherit=True))


def load_module(compiled: bytes) -> types.ModuleType:
    """Run the environment's code as a module of this process."""
    module = types.ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    exec(marshal.loads(compiled), module.__dict__)  # noqa: S102 - what this process is confined for
    return module


class CallOutcome:
    """What a call of a tool gave."""

    __slots__ = ("data", "is_error", "log", "text")

    def __init__(self, text: str, data: Any, is_error: bool, log: str = "") -> None:
        self.text = text
        self.data = data
        self.is_error = is_error
        self.log = log


class Environment:
    """The instance of an environment's class that this process holds."""

    def __init__(self, compiled: bytes, class_name: str) -> None:
        with captured_output():
            module = load_module(compiled)
        found = getattr(module, class_name, None)
        if not isinstance(found, type):
            raise LookupError(f"expected a class {class_name!r} in the environment's code, found none")
        self._class = found
        self._module_state = ModuleState(module)
        self._instance: Any = None
        self._last_state: bytes | None = None

    def construct(self, init_config: dict[str, Any]) -> bytes:
        """Make a new instance, as EnvScaler makes it: constructed, then each key set as an attribute.

        Both are given the same values, so an environment that keeps its configuration sees it change. The
        configuration is the environment's from here on.

        Returns:
            The state.
        """
        with captured_output():
            try:
                instance = self._class(init_config)
            except TypeError:
                instance = self._class()
            for name, value in init_config.items():
                setattr(instance, name, value)
        self._instance = instance
        self._last_state = self._state()
        return self._last_state

    def restore(self, state: bytes) -> None:
        """Make an instance with a state that a child took."""
        variables, module_changes = pickle.loads(state)
        instance: Any = object.__new__(self._class)
        vars(instance).update(variables)
        if module_changes is not None:
            self._module_state.apply(module_changes)
        self._instance = instance
        # Not the bytes that came: pickled once more, an equal state can be other bytes.
        self._last_state = self._state()

    def call(self, name: str, arguments: dict[str, Any], max_chars: int) -> CallOutcome:
        """Call a tool. What it raises is an outcome too; it keeps what it changed before."""
        with captured_output() as output:
            try:
                result = getattr(self._instance, name)(**arguments)
                data, text = _shown(result, str(result), max_chars)
                outcome = CallOutcome(text, data, False)
            except BaseException as error:  # SystemExit too ends the call, not the process
                text = _cut(error_text(error), max_chars)
                outcome = CallOutcome(text, text, True)
        outcome.log = output.getvalue()
        return outcome

    def changed_state(self) -> bytes | None:
        """The state as bytes for a child, or None where it is the same as when last taken."""
        state = self._state()
        if state == self._last_state:
            return None
        self._last_state = state
        return state

    def state_form(self) -> Any:
        """The JSON form of the state."""
        return json_form(state_variables(self._instance))

    def _state(self) -> bytes:
        return pickle.dumps((state_variables(self._instance), self._module_state.changes()), 5)


def state_variables(instance: Any) -> dict[str, Any]:
    """An instance's variables that make up the state: all but those with dunder names."""
    return {name: value for name, value in vars(instance).items() if not is_dunder(name)}


def _shown(result: Any, text: str, max_bytes: int) -> tuple[Any, str]:
    """A result's JSON form and text, both within the limit on what may be shown."""
    if len(text) > max_bytes:
        text = _cut(text, max_bytes)
        return text, text
    try:
        return json_form(result), text
    except (NoJsonFormError, RecursionError):
        return text, text


def _cut(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}... [cut: {len(text)} characters in all, the limit is {max_chars}]"


def error_text(error: BaseException) -> str:
    """An exception as one reads it in a traceback's last line, without a traceback."""
    try:
        message = str(error)
    except BaseException:
        message = ""
    kind = type(error).__name__
    return f"{kind}: {message}" if message else kind


class _BoundedText(io.TextIOBase):
    """Keeps the beginning of what is written to it."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = _LOG_CHARS

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def getvalue(self) -> str:
        return "".join(self._parts)


@contextlib.contextmanager
def captured_output() -> Iterator[_BoundedText]:
    """Collects what code prints, up to a limit, and keeps it away from this process's own streams."""
    output = _BoundedText()
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = output
    try:
        yield output
    finally:
        sys.stdout, sys.stderr = before
