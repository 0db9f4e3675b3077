"""Writing a bundled scenario: checks from expressions, a start state from a shared base, the recorded solution.

An environment's `scenarios.py` reads like this:

    _scenario = partial(scenario, "library_desk", "LibraryDesk")

    SCENARIOS = [
        _scenario(
            "01-return-a-book",
            task="Copy C-101 was just handed in. Please check it back in.",
            state=merged(BASE, {"copies": {"C-101": {"status": "on_loan"}}}),
            checks=[
                ("Is copy C-101 on the shelf?", 'final_state["copies"]["C-101"]["status"] == "available"'),
                ("Was nothing else changed?", only_changed("C-101", "L-7")),
            ],
            reference=[("return_copy", {"copy_id": "C-101"})],
        ),
    ]
"""

import ast
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from textwrap import dedent, indent
from typing import Any

from langchain_envscaler.environments.metadata import Check, ReferenceCall, Scenario

__all__ = ["check", "merged", "only_changed", "same", "same_except", "scenario"]


def scenario(
    env_id: str,
    env_class_name: str,
    slug: str,
    *,
    task: str,
    state: Mapping[str, Any],
    checks: Sequence[tuple[str, str]],
    reference: Sequence[tuple[str, dict[str, Any]]],
) -> Scenario:
    """A scenario of a bundled environment.

    Args:
        env_id: The environment's id, which is also the name of its folder.
        env_class_name: The name of the environment's class.
        slug: What follows `env_id` and a dash in the task id, for example "01-return-a-book".
        task: The task as a person would write it. Indentation goes, lines of a paragraph are joined; empty lines
            and lines that begin with "- " stay.
        state: The state the episode starts from. It is copied.
        checks: Pairs of a question and a Python expression that answers it, see `check`.
        reference: Pairs of a tool's name and its arguments: the recorded solution, look-ups included.

    Raises:
        SyntaxError: A check is not a Python expression.
    """
    built = [check(item, expression) for item, expression in checks]
    return Scenario(
        env_id=env_id,
        env_class_name=env_class_name,
        task_id=f"{env_id}-{slug}",
        init_config=deepcopy(dict(state)),
        task=_unwrapped(task),
        checklist=[each.check_item for each in built],
        checklist_with_func=built,
        reference=[ReferenceCall(name=name, arguments=arguments) for name, arguments in reference],
    )


def check(item: str, expression: str) -> Check:
    """A check from a question and a Python expression over `final_state` and `initial_state`.

    The expression may span several lines; its truth value is the answer. A missing key counts as no.

    Raises:
        SyntaxError: `expression` is not a Python expression.
    """
    body = dedent(expression).strip()
    ast.parse(f"(\n{body}\n)", mode="eval")
    source = f"def check_func(final_state):\n    return bool(\n{indent(body, ' ' * 8)}\n    )\n"
    return Check(check_item=item, check_func=source)


def same(*tables: str) -> str:
    """The expression that these parts of the state are as they were at the start."""
    return f"all(final_state[table] == initial_state[table] for table in {list(tables)!r})"


def same_except(table: str, *record_ids: str) -> str:
    """The expression that no record of a table was changed, added or removed, except those with these ids."""
    kept = f"if key not in {list(record_ids)!r}"
    return (
        f"{{key: value for key, value in final_state[{table!r}].items() {kept}}}"
        f" == {{key: value for key, value in initial_state[{table!r}].items() {kept}}}"
    )


def only_changed(*record_ids: str, **new_records: int) -> str:
    """The expression that in all tables only these records were changed, and so many records added to these tables.

    A part of the state whose values are all mappings is a table; counters and plain values are left aside.
    """
    return f"""
all(
    {{key: value for key, value in final_state[table].items() if key in records and key not in {list(record_ids)!r}}}
    == {{key: value for key, value in records.items() if key not in {list(record_ids)!r}}}
    and len(final_state[table].keys() - records.keys()) == {new_records!r}.get(table, 0)
    for table, records in initial_state.items()
    if isinstance(records, dict) and all(isinstance(value, dict) for value in records.values())
)
"""


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `base` with `changes` laid over it: mappings are merged at every depth, the rest is replaced."""
    result = deepcopy(dict(base))
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        else:
            result[key] = deepcopy(value)
    return result


def _unwrapped(text: str) -> str:
    """A text from an indented triple-quoted string: paragraphs and "- " items kept, lines within one joined."""
    return re.sub(r"(?<!\n)\n[ ]*(?![ \n]|- )", " ", dedent(text).strip())
