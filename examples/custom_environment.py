"""Your own Python class as an environment: derived, run in the sandbox, solved, scored and exported.

Run it from a checkout; the folder for the exported files is optional:

    python examples/custom_environment.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

from tool_shed import ToolShed  # type: ignore[import-not-found]  # lies beside this script

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.metadata import Check, EnvironmentSpec, ReferenceCall, Scenario

SCENARIO = Scenario(
    env_id="tool_shed",
    env_class_name="ToolShed",
    task_id="tool_shed-01-pass-on-the-ladder",
    task="Ada brings the ladder back, and Ben would like to have it now. Please record both.",
    init_config={
        "tools": {
            "ladder": {"name": "ladder", "deposit": 20, "borrowed_by": "Ada"},
            "drill": {"name": "drill", "deposit": 35, "borrowed_by": None},
        },
        "neighbours": {"Ada": {"name": "Ada", "balance": 5}, "Ben": {"name": "Ben", "balance": 50}},
    },
    checklist_with_func=[
        Check(
            check_item="Has Ben got the ladder?",
            check_func="def check_func(final_state):\n"
            "    return final_state['tools']['ladder']['borrowed_by'] == 'Ben'\n",
        ),
        Check(
            check_item="Has Ada got her deposit back?",
            check_func="def check_func(final_state):\n"
            "    before = initial_state['neighbours']['Ada']['balance']\n"
            "    return final_state['neighbours']['Ada']['balance'] == before + 20\n",
        ),
    ],
    reference=[
        ReferenceCall(name="give_back", arguments={"tool": "ladder"}),
        ReferenceCall(name="borrow", arguments={"neighbour": "Ben", "tool": "ladder"}),
    ],
)


def main(folder: Path) -> None:
    # Signatures and docstrings become tools and rules. The class's module is all that the sandbox runs, so it
    # stands in a file of its own, tool_shed.py.
    spec = EnvironmentSpec.from_class(ToolShed)
    print(f"{spec.env_id}: {spec.environment_summary}")
    for tool in spec.tools:
        print(f"  {tool['function']['name']}({', '.join(tool['function']['parameters']['properties'])})")

    own = Catalog([spec], [SCENARIO])
    catalog = Catalog.bundled()
    catalog.merge(own)

    with catalog.start(SCENARIO.env_id, SCENARIO.task_id) as episode:
        print(f"\nTask: {SCENARIO.task}")
        too_early = episode.call("borrow", {"neighbour": "Ben", "tool": "ladder"})
        print(f"borrow, too early -> {too_early.text}")
        print(f"reward so far: {episode.evaluate().reward}\n")

        for call in SCENARIO.reference:
            print(f"{call.name} {call.arguments} -> {episode.call(call.name, call.arguments).text}")
        evaluation = episode.evaluate()
        for check in evaluation.checks:
            print(f"{'pass' if check.passed else 'fail'}  {check.item}")
        print(f"reward: {evaluation.reward}")

    own.export(folder)
    loaded = Catalog.load(folder)
    print(f"\nexported to {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(f"read back: {len(loaded.environments)} environment, {len(loaded.scenarios)} scenario")
    print(f"an agent can solve it: envscaler run {spec.env_id} --data {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tool_shed_")))
