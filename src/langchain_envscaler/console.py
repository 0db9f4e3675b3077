"""What the command shows a person: lists, the course of a run as it comes, and the table of checks."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, ToolMessage

    from langchain_envscaler.environments.diff import StateChange
    from langchain_envscaler.environments.metadata import Scenario
    from langchain_envscaler.runs import RunEvent, RunResult, ThreadRecord

__all__ = ["RunView", "show_doctor", "show_environment", "show_environments"]

RESULT_WIDTH = 600
"""Characters of a tool result that a person is shown; the thread keeps the whole."""


def _shortened(text: str, width: int = RESULT_WIDTH) -> str:
    return text if len(text) <= width else f"{text[:width]} … ({len(text) - width} more characters)"


class RunView:
    """Shows an agent's turns as they come: reasoning dim, calls and their results, then the score.

    Args:
        console: Where to print; None shows nothing.
    """

    def __init__(self, console: Console | None) -> None:
        self._console = console or Console(quiet=True)
        self._streaming: str | None = None

    def begin(self, record: "ThreadRecord", scenario: "Scenario | None") -> None:
        """What the run is about, and who acts."""
        title = record.env_id if scenario is None else f"{record.env_id} · {scenario.task_id}"
        self._console.print(Text(title, style="bold cyan"))
        if record.choice.model == "reference":
            self._line(
                "Model: the reference policy (the recorded solution, written as Qwen3 text; no weights)"
            )
        else:
            where = f" at {record.choice.base_url}" if record.choice.base_url else ""
            self._line(f"Model: {record.choice.model}{where}")
        self._line(f"Thread {record.thread_id}, episode {record.episode_id}")
        if scenario is not None:
            self._console.print(Text(f"\n{scenario.task}\n"))

    async def follow(self, events: "AsyncIterator[RunEvent]") -> None:
        """Show what comes."""
        from langchain_core.messages import ToolMessage

        from langchain_envscaler.runs import WholeMessage

        async for event in events:
            if isinstance(event, WholeMessage):
                self._calls(event.message)
            elif isinstance(event, ToolMessage):
                self._result(event)
            else:
                self._stream("reasoning", event.additional_kwargs.get("reasoning_content", ""), "dim italic")
                self._stream("content", event.text, "bold")
        self._end_line()

    def show_result(self, result: "RunResult") -> None:
        """The score, what changed, and how to go on."""
        self.show_score(result)
        self._console.print()
        self._console.print(
            Text("Go on: ") + Text(f"envscaler chat --thread {result.thread_id}", style="bold"),
            soft_wrap=True,
        )

    def show_score(self, result: "RunResult") -> None:
        """The checks, and what changed in the environment."""
        self._console.print()
        if result.reward is not None:
            _show_checks(self._console, result)
        _show_changes(self._console, result.state_changes)

    def show_tool(self, name: str, description: str) -> None:
        """A tool and the first line of what it does."""
        first = description.strip().partition("\n")[0]
        self._console.print(Text(name, style="cyan") + Text(f"  {first}", style="dim"))

    def show_json(self, value: Any) -> None:
        """A value as JSON."""
        self._console.print_json(data=value)

    def note(self, text: str) -> None:
        """A line about the run itself."""
        self._end_line()
        self._line(text)

    def _line(self, text: str) -> None:
        self._console.print(Text(text, style="dim"), soft_wrap=True)

    def _stream(self, kind: str, text: str, style: str) -> None:
        if not text:
            return
        if self._streaming != kind:
            self._end_line()
            self._streaming = kind
        self._console.print(Text(text, style=style), end="", soft_wrap=True)

    def _end_line(self) -> None:
        if self._streaming is not None:
            self._console.print()
        self._streaming = None

    def _calls(self, message: "AIMessage") -> None:
        self._end_line()
        for call in message.tool_calls:
            inside = ", ".join(f"{key}={value!r}" for key, value in call["args"].items())
            self._console.print(Text(f"→ {call['name']}({inside})", style="cyan"))
        for invalid in message.invalid_tool_calls:
            raw = _shortened(invalid["args"] or "", 200)
            self._console.print(Text(f"→ not a valid call: {raw} ({invalid['error']})", style="red"))

    def _result(self, message: "ToolMessage") -> None:
        self._end_line()
        style = "red" if message.status == "error" else "green"
        self._console.print(Text("← ", style=style) + Text(_shortened(message.text)))


def show_environments(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of environments: id, summary, numbers of tools and scenarios."""
    table = Table("Environment", "About", "Tools", "Scenarios", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(
            f"[cyan]{escape(row['env_id'])}[/]",
            escape(row["summary"]),
            str(row["tools"]),
            str(row["scenarios"]),
        )
    console.print(table)


def show_environment(console: Console, record: Mapping[str, Any]) -> None:
    """One environment: its introduction, rules, tools and scenarios."""
    console.print(Text(record["env_id"], style="bold cyan"))
    console.print(Text(record["introduction"]))
    if record["rules"]:
        console.print("\n[bold]Rules[/]")
        for rule in record["rules"]:
            console.print(Text(f"  - {rule}"))
    console.print("\n[bold]Tools[/]")
    for tool in record["tools"]:
        console.print(Text(f"  {tool['signature']}", style="cyan"))
        console.print(Text(f"      {tool['description']}", style="dim"))
    if record["scenarios"]:
        console.print("\n[bold]Scenarios[/]")
        for scenario in record["scenarios"]:
            console.print(
                Text(f"  {scenario['task_id']}", style="cyan"), Text(_shortened(scenario["task"], 160))
            )


def show_doctor(console: Console, record: Mapping[str, Any]) -> None:
    """What the machine offers, a line each."""
    isolation = record["isolation"]
    style = "green" if isolation["level"] == "full" else "yellow"
    console.print(f"langchain-envscaler {record['version']}, Python {record['python']}")
    console.print(
        f"Isolation of environments: [{style}]{isolation['level']}[/] ({escape(isolation['detail'])})"
    )
    engines = ", ".join(name for name, there in record["engines"].items() if there)
    console.print(f"Engines: {engines or 'none in process; a server is reached with --base-url'}")
    console.print(f"PostgreSQL: {'yes' if record['postgres'] else 'no'}")
    console.print(Text(f"Threads and episodes: {record['home']}"), soft_wrap=True)


def _show_checks(console: Console, result: "RunResult") -> None:
    table = Table("", "Check", box=None, pad_edge=False, header_style="bold")
    for check in result.checks:
        text = Text(check["item"])
        if check["reason"] and not check["passed"]:
            text += Text(f"  ({check['reason']})", style="dim")
        table.add_row("[green]✔[/]" if check["passed"] else "[red]✘[/]", text)
    console.print(table)
    passed = sum(check["passed"] for check in result.checks)
    style = "green" if passed == len(result.checks) else "red"
    console.print(
        f"[bold {style}]Reward {result.reward}[/] ({passed} of {len(result.checks)} checks passed)\n"
    )


def _show_changes(console: Console, changes: "Sequence[StateChange]") -> None:
    if not changes:
        console.print(Text("The environment's state is what it was at the start.", style="dim"))
        return
    console.print("[bold]What changed in the environment[/]")
    for change in changes:
        line = Text(f"  {change.path}  ", style="cyan")
        if change.op == "add":
            line += Text(f"+ {_shortened(repr(change.after), 200)}", style="green")
        elif change.op == "remove":
            line += Text(f"- {_shortened(repr(change.before), 200)}", style="red")
        else:
            line += Text(_shortened(repr(change.before), 100), style="red") + Text(" → ")
            line += Text(_shortened(repr(change.after), 100), style="green")
        console.print(line)
