"""What a person may do in a conversation beside talking: look at the environment, take back a turn, fork."""

from collections.abc import Awaitable, Callable, Mapping

from langchain_envscaler.console import RunView
from langchain_envscaler.errors import UsageError
from langchain_envscaler.runs import AgentRun

__all__ = ["COMMANDS", "follow_command"]


async def _tools(run: AgentRun, view: RunView) -> None:
    for tool in await run.tools():
        view.show_tool(tool.name, tool.description)


async def _state(run: AgentRun, view: RunView) -> None:
    view.show_json(await run.state())


async def _check(run: AgentRun, view: RunView) -> None:
    view.show_score(await run.result())


async def _undo(run: AgentRun, view: RunView) -> None:
    view.note(f"Taken back, in the environment as well: {await run.undo()}")


async def _fork(run: AgentRun, view: RunView) -> None:
    record = await run.fork()
    view.note(f"Forked; go on there: envscaler chat --thread {record.thread_id}")


async def _help(run: AgentRun, view: RunView) -> None:
    for name, (about, _) in COMMANDS.items():
        view.note(f"{name}  {about}")


COMMANDS: Mapping[str, tuple[str, Callable[[AgentRun, RunView], Awaitable[None]]]] = {
    "/tools": ("the environment's tools", _tools),
    "/state": ("the environment's state", _state),
    "/check": ("the task's checks, and what changed", _check),
    "/undo": ("take back the last turn, in the environment as well", _undo),
    "/fork": ("begin a second thread from here", _fork),
    "/help": ("these commands", _help),
}
"""Each command with what it does; `/quit` ends the conversation."""


async def follow_command(text: str, run: AgentRun, view: RunView) -> None:
    """Do what a command says; one that is unknown or cannot be done is told, and the conversation goes on."""
    name = text.split()[0]
    if name not in COMMANDS:
        view.note(f"expected one of {', '.join(COMMANDS)} or /quit, found {name}")
        return
    try:
        await COMMANDS[name][1](run, view)
    except UsageError as error:
        view.note(str(error))
