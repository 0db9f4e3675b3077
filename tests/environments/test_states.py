from collections.abc import Callable
from typing import Any

import pytest

from langchain_envscaler.errors import DataError


def _holding(expression: str) -> str:
    return f"""
import datetime, collections, dataclasses, decimal, enum, uuid

class Color(enum.Enum):
    RED = "red"

@dataclasses.dataclass
class Point:
    x: int

class Env:
    def __init__(self, config):
        self.value = {expression}
    def get(self):
        return self.value
"""


@pytest.mark.parametrize(
    ("expression", "form"),
    [
        ("(1, (2,))", [1, [2]]),
        ("{3, 1, 2}", [1, 2, 3]),
        ("{1: 'a', None: 'b', True: 'c'}", {"1": "c", "null": "b"}),
        ("float('nan')", "NaN"),
        ("[float('inf'), -float('inf')]", ["Infinity", "-Infinity"]),
        ("datetime.datetime(2026, 1, 2, 3, 4)", "2026-01-02T03:04:00"),
        ("datetime.timedelta(minutes=1)", 60.0),
        ("decimal.Decimal('1.50')", "1.50"),
        ("b'ab'", "YWI="),
        ("{Color.RED: Color.RED}", {"red": "red"}),
        ("Point(4)", {"x": 4}),
        ("collections.deque([1])", [1]),
        ("uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_values_have_the_documented_json_form(run: Callable[..., Any], expression: str, form: Any) -> None:
    episode = run(_holding(expression), get="")
    assert episode.state() == {"value": form}
    assert episode.call("get").data == form
    episode.sleep()
    assert episode.state() == {"value": form}


@pytest.mark.parametrize(
    ("expression", "path"),
    [
        ("[[], print]", r"\$\.value\[1\]"),
        ("{1: 0, '1': 0}", r"\$\.value"),
        ("(lambda a: (a.append(a), a)[1])([])", r"contains itself at \$\.value\[0\]"),
    ],
)
def test_a_value_without_a_json_form_is_named_by_its_path(
    run: Callable[..., Any], expression: str, path: str
) -> None:
    episode = run(_holding(expression), get="")
    with pytest.raises(DataError, match=path):
        episode.state()
    assert not episode.call("get").is_error


def test_a_state_that_cannot_be_kept_is_refused_at_the_start(run: Callable[..., Any]) -> None:
    with pytest.raises(DataError, match="pickle"):
        run(_holding("lambda: 0"), get="")
