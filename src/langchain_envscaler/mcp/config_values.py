"""What stands behind a value of a client configuration: variables, inputs, paths and files of variables."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_envscaler.errors import DataError, NotFoundError

__all__ = ["Variables", "read_env_file"]

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Variables:
    """The values that `${...}` stands for in one configuration.

    Known are `${NAME}` and `${NAME:-default}` (`.mcp.json`), `${env:NAME}` (VS Code, Cursor), `${input:id}`
    (VS Code), `${workspaceFolder}`, `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and
    `${/}`. Other text in `${}` is left as it is: it may be meant for the program that is started.
    """

    environ: Mapping[str, str]
    inputs: Mapping[str, str]
    folder: Path
    """The workspace: the configuration file's folder (or the one above an editor's own folder)."""

    @classmethod
    def of(
        cls, environ: Mapping[str, str] | None, inputs: Mapping[str, str], file: Path | None = None
    ) -> "Variables":
        """The variables for a configuration in a file, or for one given as a mapping."""
        folder = Path.cwd() if file is None else file.parent
        if file is not None and folder.name in (".vscode", ".cursor"):
            folder = folder.parent
        return cls(os.environ if environ is None else environ, inputs, folder)

    def with_input_defaults(self, declared: Any) -> "Variables":
        """The same with the defaults that a configuration's `inputs` declare."""
        defaults = {
            one["id"]: one["default"]
            for one in (declared if isinstance(declared, list) else [])
            if isinstance(one, Mapping)
            and isinstance(one.get("id"), str)
            and isinstance(one.get("default"), str)
        }
        return replace(self, inputs={**defaults, **self.inputs})

    def expand(self, text: str, where: str) -> str:
        """The text with each reference replaced by its value.

        Raises:
            DataError: A variable or an input without a value.
        """
        return _REFERENCE.sub(lambda found: self._value(found[1], found[0], where), text)

    def path(self, text: str) -> Path:
        """A path as written in the configuration, absolute: relative ones start at the workspace."""
        return self.folder / Path(text).expanduser()

    def _value(self, reference: str, written: str, where: str) -> str:
        if reference.startswith("input:"):
            return self._input(reference.removeprefix("input:"), where)
        if reference.startswith("env:"):
            return self._variable(reference.removeprefix("env:"), None, where)
        fixed = {
            "workspaceFolder": str(self.folder),
            "workspaceFolderBasename": self.folder.name,
            "userHome": str(Path.home()),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        if reference in fixed:
            return fixed[reference]
        name, marked, default = reference.partition(":-")
        if not _NAME.match(name):
            return written
        return self._variable(name, default if marked else None, where)

    def _variable(self, name: str, default: str | None, where: str) -> str:
        value = self.environ.get(name) or default
        if value is None:
            value = self.environ.get(name)
        if value is None:
            raise DataError(f"expected the environment variable {name} for {where}, found none; set it")
        return value

    def _input(self, name: str, where: str) -> str:
        if name not in self.inputs:
            raise DataError(
                f"expected a value for the input {name!r} of {where}, found none; "
                f"pass inputs={{{name!r}: ...}}, or write the value into the configuration"
            )
        return self.inputs[name]


def read_env_file(path: Path, where: str) -> dict[str, str]:
    """The variables of a file of `NAME=value` lines; blank lines, `#` comments and `export` are allowed.

    Raises:
        NotFoundError: No such file.
        DataError: A file that cannot be read, or a line of another form.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise NotFoundError(f"expected the envFile of {where} at {path}, found nothing") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"expected a readable envFile for {where} at {path}, found: {error}") from None
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals or not _NAME.match(name.strip()):
            raise DataError(f"expected NAME=value at line {number} of {path}, the envFile of {where}")
        variables[name.strip()] = _unquoted(value.strip())
    return variables


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    # Outside of quotes a comment may follow.
    return re.split(r"\s+#", value, maxsplit=1)[0]
