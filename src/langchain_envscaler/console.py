"""What the command shows a person: lists, the course of a run as it comes, and the table of checks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

__all__ = ["StepView", "show_changes", "show_checks", "show_environment", "show_environments", "shortened"]

RESULT_WIDTH = 600
"""Characters of a tool result that a person is shown; the thread keeps the whole."""


def shortened(text: str, width: int = RESULT_WIDTH) -> str:
    """The text, or its beginning and how many characters were left out."""
    return text if len(text) <= width else f"{text[:width]} … ({len(text) - width} more characters)"


def _call_text(name: str, arguments: Mapping[str, Any]) -> str:
    inside = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"{name}({inside})"


class StepView:
    """Prints the course of an agent's turn: reasoning dim, answers plain, tool calls and their results."""

    def __init__(self, console: Console, *, show_reasoning: bool = True) -> None:
        self._console = console
        self._show_reasoning = show_reasoning
        self._streaming: str | None = None

    def _stream(self, kind: str, text: str, style: str) -> None:
        if not text:
            return
        if self._streaming != kind:
            self.end_line()
            self._streaming = kind
        self._console.print(Text(text, style=style), end="", soft_wrap=True)

    def reasoning(self, text: str) -> None:
        """A piece of reasoning, as it comes."""
        if self._show_reasoning:
            self._stream("reasoning", text, "dim italic")

    def content(self, text: str) -> None:
        """A piece of the answer, as it comes."""
        self._stream("content", text, "bold")

    def end_line(self) -> None:
        """Ends the line that was being streamed."""
        if self._streaming is not None:
            self._console.print()
        self._streaming = None

    def call(self, name: str, arguments: Mapping[str, Any]) -> None:
        """A tool call."""
        self.end_line()
        self._console.print(Text("→ ", style="cyan") + Text(_call_text(name, arguments), style="cyan"))

    def invalid_call(self, name: str | None, raw: str | None, error: str | None) -> None:
        """A tool call that could not be read."""
        self.end_line()
        self._console.print(Text(f"→ invalid call {name or ''} {shortened(raw or '')!r}: {error}", style="red"))

    def result(self, text: str, *, is_error: bool) -> None:
        """A tool's result."""
        self.end_line()
        style = "red" if is_error else "green"
        self._console.print(Text("← ", style=style) + Text(shortened(text), style="red" if is_error else "default"))

    def note(self, text: str) -> None:
        """A line about the run itself."""
        self.end_line()
        self._console.print(Text(text, style="yellow"))


def show_environments(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The table of environments: id, summary, numbers of tools and scenarios."""
    table = Table("Environment", "About", "Tools", "Scenarios", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(
            f"[cyan]{escape(row['env_id'])}[/]", escape(row["summary"]), str(row["tools"]), str(row["scenarios"])
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
            console.print(Text(f"  {scenario['task_id']}", style="cyan"), Text(shortened(scenario["task"], 160)))


def show_checks(console: Console, checks: Iterable[Mapping[str, Any]], reward: float) -> None:
    """The table of checks, green where they passed, and the reward."""
    rows = list(checks)
    table = Table("", "Check", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        text = Text(row["item"])
        if row["reason"] and not row["passed"]:
            text += Text(f"  ({row['reason']})", style="dim")
        table.add_row("[green]✔[/]" if row["passed"] else "[red]✘[/]", text)
    console.print(table)
    passed = sum(bool(row["passed"]) for row in rows)
    style = "green" if passed == len(rows) else "red"
    console.print(f"[bold {style}]Reward {reward}[/] ({passed} of {len(rows)} checks passed)")


def show_changes(console: Console, changes: Sequence[Mapping[str, Any]]) -> None:
    """What changed in the environment's state, a line a change."""
    if not changes:
        console.print(Text("The environment's state is what it was at the start.", style="dim"))
        return
    console.print("[bold]State changes[/]")
    for change in changes:
        line = Text(f"  {change['path']}  ", style="cyan")
        if change["op"] == "add":
            line += Text(f"+ {shortened(repr(change['after']), 200)}", style="green")
        elif change["op"] == "remove":
            line += Text(f"- {shortened(repr(change['before']), 200)}", style="red")
        else:
            before, after = shortened(repr(change["before"]), 100), shortened(repr(change["after"]), 100)
            line += Text(before, style="red") + Text(" → ") + Text(after, style="green")
        console.print(line)
