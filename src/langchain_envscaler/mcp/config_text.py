"""The text of a client configuration: JSON, with the comments and trailing commas that editors allow."""

import json
import re
from pathlib import Path
from typing import Any

from langchain_envscaler.errors import DataError, NotFoundError

__all__ = ["decode_config", "read_config"]

# A string (kept as it is), a comment, or a comma before a closing bracket (comments may stand between).
_COMMENT = r"//[^\n]*|/\*.*?\*/"
_STRING = r'"(?:[^"\\]|\\.)*"'
_STRING_OR_COMMENT = re.compile(f"({_STRING})|{_COMMENT}", re.DOTALL)
_STRING_OR_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def read_config(path: Path) -> Any:
    """The value that a configuration file holds.

    Raises:
        NotFoundError: No such file.
        DataError: A file that cannot be read, or that is not JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFoundError(
            f"expected an MCP configuration file at {path}, found nothing; check the path, or give a URL"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"expected a readable MCP configuration file at {path}, found: {error}") from None
    return decode_config(text, str(path))


def decode_config(text: str, where: str = "the MCP configuration") -> Any:
    """The value of a configuration's text.

    Raises:
        DataError: Text that is not JSON, or an object with the same key twice.
    """
    plain = _STRING_OR_COMMENT.sub(lambda found: found[1] or _blank(found[0]), text)
    plain = _STRING_OR_TRAILING_COMMA.sub(lambda found: found[1] or " ", plain)
    try:
        return json.loads(plain, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise DataError(
            f"expected JSON in {where}, found an error at line {error.lineno}, "
            f"column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise DataError(f"expected JSON in {where}, found brackets nested without end") from None
    except _DuplicateKeyError as error:
        raise DataError(
            f"expected each name once in {where}, found {error.key!r} twice; rename one"
        ) from None


class _DuplicateKeyError(Exception):
    def __init__(self, key: str) -> None:
        self.key = key


def _blank(comment: str) -> str:
    """White space in a comment's place, so that an error's line and column stay true."""
    return re.sub(r"[^\n]", " ", comment)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: the last of two servers of one name must not win in silence."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise _DuplicateKeyError(key)
        result[key] = value
    return result
