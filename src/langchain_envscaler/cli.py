"""The command `envscaler`: environments, runs, conversations, servers.

Exit codes: 0 the work was done (whatever the reward), 1 the work failed, 2 wrong use.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from langchain_envscaler.errors import EnvScalerError, UsageError
from langchain_envscaler.mcp.client_kinds import Client

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from rich.console import Console

    from langchain_envscaler.console import RunView
    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.runs import AgentRun

__all__ = ["app", "main"]

app = typer.Typer(
    name="envscaler",
    help="Tool-calling agents in synthesized environments: run them, talk to them, serve them over MCP.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
envs = typer.Typer(help="The environments at hand.", no_args_is_help=True)
app.add_typer(envs, name="envs")

EnvArgument = Annotated[
    str, typer.Argument(metavar="ENV", help="An environment's id (see: envscaler envs list).")
]
DataOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", metavar="DIR", help="A folder of EnvScaler files to add to the catalog; may be repeated."
    ),
]
TaskOption = Annotated[
    str | None, typer.Option("--task", metavar="ID", help="A task of the environment; the first if left out.")
]
StartOption = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="ID", help="The task whose state the episode starts from; the first if left out."
    ),
]
ModelOption = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help='A model, or "reference", which replays the task\'s recorded solution.',
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="An OpenAI-compatible server that runs the model."),
]
ThinkingOption = Annotated[
    bool, typer.Option("--thinking/--no-thinking", help="Whether the model thinks first.")
]
TemperatureOption = Annotated[float, typer.Option(min=0.0, help="How freely the model's tokens are drawn.")]
MaxTokensOption = Annotated[int | None, typer.Option(min=1, help="Tokens that one answer may have.")]
MaxStepsOption = Annotated[int, typer.Option(min=1, help="Model calls after which a turn ends.")]
SeedOption = Annotated[
    int | None, typer.Option(help="Makes the environment's randomness and clock repeatable.")
]
HomeOption = Annotated[
    Path | None,
    typer.Option("--home", metavar="DIR", help="Where threads and episodes are kept ($ENVSCALER_HOME)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


class Api(StrEnum):
    """How to speak to an OpenAI-compatible server."""

    chat = "chat"
    completions = "completions"


class ToolChoice(StrEnum):
    """Whether the model must call a tool in each step."""

    auto = "auto"
    any = "any"


ApiOption = Annotated[Api, typer.Option("--api", help="The server's endpoint to use.")]
ToolChoiceOption = Annotated[
    ToolChoice,
    typer.Option("--tool-choice", help='"any" forces a tool call in each step, up to --max-steps.'),
]


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command; turns errors into one line and an exit code."""
    debug = "--debug" in sys.argv
    try:
        app()
    except EnvScalerError as error:
        if debug:
            raise
        _fail(str(error), type(error).__name__, 2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        _fail("interrupted", "KeyboardInterrupt", 1)
    except Exception as error:
        if debug:
            raise
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        _fail(f"unexpected {text} (run again as: envscaler --debug ...)", type(error).__name__, 1)


def _fail(message: str, kind: str, code: int) -> None:
    line = " ".join(message.split())
    print(f"envscaler: {line}", file=sys.stderr)
    if "--json" in sys.argv:
        print(json.dumps({"error": {"kind": kind, "message": line}}))
    sys.exit(code)


def _print_json(record: Any) -> None:
    print(json.dumps(record, ensure_ascii=False))


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def _catalog(data: list[Path] | None) -> "Catalog":
    from langchain_envscaler.environments.catalog import Catalog

    catalog = Catalog.bundled()
    for folder in data or []:
        catalog.merge(Catalog.load(folder))
    for problem in catalog.problems:
        print(f"envscaler: left out: {problem}", file=sys.stderr)
    return catalog


@envs.command("list")
def envs_list(data: DataOption = None, as_json: JsonOption = False) -> None:
    """List the environments: what each is about, its tools and scenarios in numbers."""
    catalog = _catalog(data)
    rows = [
        {
            "env_id": spec.env_id,
            "summary": spec.environment_summary,
            "tools": len(spec.tools),
            "scenarios": len(catalog.scenarios_of(spec.env_id)),
        }
        for spec in catalog.environments.values()
    ]
    if as_json:
        _print_json({"environments": rows, "problems": [str(problem) for problem in catalog.problems]})
        return
    from langchain_envscaler.console import show_environments

    show_environments(_console(), rows)


@envs.command("show")
def envs_show(env: EnvArgument, data: DataOption = None, as_json: JsonOption = False) -> None:
    """Show one environment: introduction, rules, tools, scenarios."""
    catalog = _catalog(data)
    spec = catalog.environment(env)
    functions = [tool["function"] for tool in spec.tools]
    record = {
        "env_id": spec.env_id,
        "summary": spec.environment_summary,
        "introduction": spec.environment_introduction,
        "rules": list(spec.constraints_rules),
        "tools": [
            {
                "name": function["name"],
                "signature": f"{function['name']}({', '.join(function['parameters'].get('properties', {}))})",
                "description": function["description"].strip().splitlines()[0]
                if function["description"]
                else "",
                "parameters": function["parameters"],
            }
            for function in functions
        ],
        "scenarios": [
            {"task_id": scenario.task_id, "task": scenario.task, "checks": len(scenario.checklist_with_func)}
            for scenario in catalog.scenarios_of(env)
        ],
    }
    if as_json:
        _print_json(record)
        return
    from langchain_envscaler.console import show_environment

    show_environment(_console(), record)


@app.command()
def run(
    env: EnvArgument,
    task: TaskOption = None,
    model: ModelOption = "reference",
    base_url: BaseUrlOption = None,
    api: ApiOption = Api.chat,
    tool_choice: ToolChoiceOption = ToolChoice.auto,
    max_tokens: MaxTokensOption = None,
    temperature: TemperatureOption = 0.7,
    thinking: ThinkingOption = True,
    max_steps: MaxStepsOption = 50,
    seed: SeedOption = None,
    thread: Annotated[
        str | None, typer.Option("--thread", metavar="ID", help="The thread's name; one that exists goes on.")
    ] = None,
    data: DataOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let an agent solve a task in an environment over MCP, and show its checks.

    A run that was interrupted goes on with --thread ID; one that is done is shown again.
    """
    from langchain_envscaler.runs import AgentRun, ModelChoice, default_home, find_thread, new_thread

    catalog, folder = _catalog(data), (home or default_home()).absolute()
    record = asyncio.run(find_thread(folder, thread)) if thread else None
    if record is None:
        choice = ModelChoice(
            model=_model_name(model, base_url),
            base_url=base_url,
            api=api.value,
            tool_choice=None if tool_choice is ToolChoice.auto else tool_choice.value,
            max_tokens=max_tokens,
            temperature=temperature,
            enable_thinking=thinking,
        )
        record = new_thread(
            catalog, env, task, choice=choice, thread_id=thread, max_steps=max_steps, seed=seed
        )
    elif record.env_id != env or task not in (None, record.task_id):
        raise UsageError(
            f"expected environment {record.env_id!r} and task {record.task_id!r}, which thread {thread!r} is "
            f"about, found {env!r} and {task!r}; leave --thread out to begin another thread"
        )
    view = _view(as_json)

    async def work(run: "AgentRun") -> None:
        view.begin(record, run.scenario)
        await view.follow(run.solve())
        result = await run.result()
        view.show_result(result)
        if as_json:
            _print_json(result.model_dump(mode="json"))

    _work(AgentRun(folder, catalog, record, data=data or ()), work, f"envscaler run {env} --thread")


@app.command()
def chat(
    env: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="The environment of a new thread.")
    ] = None,
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="ID", help="The task whose state a new thread starts from."),
    ] = None,
    message: Annotated[
        list[str] | None, typer.Option("--message", "-m", help="Say this and end; may be repeated.")
    ] = None,
    model: ModelOption = "reference",
    base_url: BaseUrlOption = None,
    api: ApiOption = Api.chat,
    max_tokens: MaxTokensOption = None,
    temperature: TemperatureOption = 0.7,
    thinking: ThinkingOption = True,
    max_steps: MaxStepsOption = 50,
    seed: SeedOption = None,
    thread: Annotated[
        str | None,
        typer.Option("--thread", metavar="ID", help="The thread to go on with, or a new one's name."),
    ] = None,
    data: DataOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Talk to an agent in an environment; each line that you type is a turn, an empty one or /quit ends.

    The thread and the environment are kept: --thread ID goes on with both, in a new process as well.
    /tools, /state and /check show the environment, /undo takes back a turn and what it changed there,
    /fork begins a second thread from here.
    """
    from langchain_envscaler.runs import AgentRun, ModelChoice, default_home, find_thread, new_thread
    from langchain_envscaler.slash import follow_command

    catalog, folder = _catalog(data), (home or default_home()).absolute()
    record = asyncio.run(find_thread(folder, thread)) if thread else None
    if record is None:
        if env is None:
            raise UsageError(
                f"expected a thread that exists, found none named {thread!r} in {folder}; "
                "to begin one, name an environment: envscaler chat ENV"
                if thread
                else "expected an environment or a thread to talk in; give ENV or --thread ID"
            )
        choice = ModelChoice(
            model=_model_name(model, base_url),
            base_url=base_url,
            api=api.value,
            max_tokens=max_tokens,
            temperature=temperature,
            enable_thinking=thinking,
        )
        record = new_thread(
            catalog, env, task, choice=choice, thread_id=thread, max_steps=max_steps, seed=seed
        )
    elif env not in (None, record.env_id):
        raise UsageError(
            f"expected environment {record.env_id!r}, which thread {thread!r} is about, found {env!r}; "
            "leave ENV out to go on with the thread"
        )
    view = _view(as_json)
    turns: list[dict[str, Any]] = []

    async def work(run: "AgentRun") -> None:
        view.begin(record, None)
        await view.follow(run.resume())
        async for text in _said(message):
            if text.startswith("/"):
                await follow_command(text, run, view)
                continue
            before = len(await run.messages())
            await view.follow(run.send(text))
            turns.append(_turn(text, (await run.messages())[before:]))
        if as_json:
            _print_json({"thread_id": record.thread_id, "episode_id": record.episode_id, "turns": turns})
        view.note(f"Go on: envscaler chat --thread {record.thread_id}")

    _work(AgentRun(folder, catalog, record, data=data or ()), work, "envscaler chat --thread")


@app.command()
def serve(
    env: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="The environment of a stdio server.")
    ] = None,
    task: TaskOption = None,
    http: Annotated[bool, typer.Option("--http", help="Serve all environments over HTTP instead.")] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8000,
    store: Annotated[
        str | None,
        typer.Option(metavar="PATH|URL", help="Where episodes are kept: an SQLite file or a PostgreSQL URL."),
    ] = None,
    episode_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The stdio episode's name; one that the store holds goes on."),
    ] = None,
    seed: SeedOption = None,
    control: Annotated[
        bool, typer.Option("--control", help="Offer the tools start, reset and check.")
    ] = False,
    strict_arguments: Annotated[
        bool, typer.Option("--strict-arguments", help="Refuse arguments that do not fit a tool's schema.")
    ] = False,
    require_isolation: Annotated[
        bool, typer.Option("--require-isolation", help="Refuse to run where environments cannot be confined.")
    ] = False,
    tokens: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The file of bearer tokens (HTTP); an address beyond this machine needs one."
        ),
    ] = None,
    public_url: Annotated[
        str | None, typer.Option(metavar="URL", help="The address that clients see, behind a proxy (HTTP).")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A Host header to serve beside this machine's (HTTP)."),
    ] = None,
    max_episodes: Annotated[
        int | None, typer.Option(min=1, help="How many episodes one principal may have open (HTTP).")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve an environment over stdio (one process, one episode), or all of them over HTTP."""
    catalog = _catalog(data)
    if http:
        if env is not None or task is not None or episode_id is not None or seed is not None:
            raise UsageError(
                "expected no ENV, --task, --episode-id or --seed with --http, which serves all environments; "
                "name them in POST /episodes"
            )
        from langchain_envscaler.environments.service import EpisodeService
        from langchain_envscaler.mcp.http import serve as serve_http

        serve_http(
            EpisodeService(catalog, store=store, require_isolation=require_isolation),
            host=host,
            port=port,
            tokens=tokens,
            public_url=public_url,
            allowed_hosts=allowed_host or (),
            max_episodes_per_principal=max_episodes,
            control=control,
            strict_arguments=strict_arguments,
            on_ready=lambda url: _announce(url, as_json),
        )
        return
    if env is None:
        raise UsageError(
            "expected an environment to serve over stdio, or --http; give ENV (see: envscaler envs list)"
        )
    from langchain_envscaler.mcp.stdio import serve as serve_stdio

    scenarios = catalog.scenarios_of(env)
    serve_stdio(
        env,
        # An environment's state is a task's; without one there would be nothing in it.
        task or (scenarios[0].task_id if scenarios else None),
        catalog=catalog,
        episode_id=episode_id,
        store=store,
        seed=seed,
        control=control,
        strict_arguments=strict_arguments,
        require_isolation=require_isolation,
    )


@app.command()
def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what this machine offers: how far environments are confined, which engines are installed."""
    from importlib.metadata import version
    from importlib.util import find_spec

    from langchain_envscaler.environments.catalog import Catalog
    from langchain_envscaler.environments.service import EpisodeService
    from langchain_envscaler.home import default_home

    with EpisodeService(Catalog()) as service:
        isolation = service.isolation
    record = {
        "version": version("langchain-envscaler"),
        "python": sys.version.split()[0],
        "isolation": {"level": isolation.level, "detail": isolation.detail},
        "engines": {
            name: find_spec(name) is not None for name in ("torch", "transformers", "xgrammar", "vllm")
        },
        "postgres": find_spec("psycopg") is not None,
        "home": str((home or default_home()).absolute()),
    }
    if as_json:
        _print_json(record)
        return
    from langchain_envscaler.console import show_doctor

    show_doctor(_console(), record)


@app.command()
def install(
    client: Annotated[Client, typer.Argument(help="The application to set up.")],
    env: EnvArgument,
    task: StartOption = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The server's name in the application; ENV if left out.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--uninstall", help="Take the server out; its episode is kept.")
    ] = False,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print what would be written, and write nothing.")
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="PATH", help="The configuration file; the user's if left out."),
    ] = None,
    episode_id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The episode to go on with, or a new one's name, to begin anew."),
    ] = None,
    data: DataOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set up an application (Claude Desktop, Claude Code, Cursor, VS Code) to use an environment.

    The episode is kept: each time that the application starts the server, it goes on where it was.
    """
    from langchain_envscaler.home import EPISODES, default_home
    from langchain_envscaler.mcp import install as clients

    if remove and only_print:
        raise UsageError("expected one of --print and --uninstall, found both; leave one out")
    file = config or Path(clients.config_path(client, platform=sys.platform, environ=os.environ))
    name = name or env
    record: dict[str, Any] = {"client": client.value, "name": name}
    if remove:
        change = clients.uninstall(client, name, file.absolute())
        done = "Removed" if change.changed else "Not there:"
    else:
        task = _start_of(_catalog(data), env, task)
        store = (home or default_home()).absolute() / EPISODES
        entry = clients.server_entry(client, env, task, store=store, episode_id=episode_id, data=data or ())
        if only_print:
            print(json.dumps({client.section: {name: entry}}, ensure_ascii=False, indent=2))
            print(f"For {file.absolute()}", file=sys.stderr)
            return
        record["entry"] = entry
        change = clients.install(client, name, entry, file.absolute())
        done = "Wrote" if change.changed else "Already there:"
    if as_json:
        paths = {"config": str(change.config), "backup": str(change.backup) if change.backup else None}
        _print_json({**record, **paths, "changed": change.changed})
        return
    print(f"{done} server {name} in {change.config}")
    if change.backup:
        print(f"Before: {change.backup}")
    if change.changed:
        print("The application sees it when it is started again.")


@app.command()
def bundle(
    env: EnvArgument,
    task: StartOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The file to write; ENV.mcpb if left out.")
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pack an environment into an MCP bundle (.mcpb), which desktop applications install by themselves."""
    from langchain_envscaler.mcp.bundle import write_bundle

    catalog = _catalog(data)
    task = _start_of(catalog, env, task)
    file = (out or Path(f"{env}.mcpb")).absolute()
    write_bundle(catalog, env, task, file)
    if as_json:
        _print_json({"bundle": str(file), "env_id": env, "task_id": task, "bytes": file.stat().st_size})
    else:
        print(f"Wrote {file}; open it with the application.")


def _start_of(catalog: "Catalog", env: str, task: str | None) -> str | None:
    """The task that an episode starts from; the first one, since the state without a task is mostly empty."""
    catalog.environment(env)
    if task is not None:
        return catalog.scenario(env, task).task_id
    return next((scenario.task_id for scenario in catalog.scenarios_of(env)), None)


def _announce(url: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"url": url}), flush=True)
    else:
        print(f"Serving at {url} (POST {url}/episodes starts an episode); Ctrl-C ends.", file=sys.stderr)


def _model_name(model: str, base_url: str | None) -> str:
    if base_url is not None and model == "reference":
        from langchain_envscaler.chat.model import DEFAULT_MODEL

        return DEFAULT_MODEL
    return model


def _view(as_json: bool) -> "RunView":
    from langchain_envscaler.console import RunView

    return RunView(None if as_json else _console())


def _work(run: "AgentRun", work: Callable[["AgentRun"], Awaitable[None]], resume: str) -> None:
    """Run the work; an interruption ends it with the command that goes on."""

    async def inside() -> None:
        async with run:
            await work(run)

    try:
        asyncio.run(inside())
    except KeyboardInterrupt:
        _fail(f"interrupted; go on: {resume} {run.record.thread_id}", "KeyboardInterrupt", 1)


async def _said(messages: list[str] | None) -> AsyncIterator[str]:
    """What the user says: the given messages, or lines of standard input."""
    if messages:
        for text in messages:
            yield text
        return
    while True:
        if sys.stdin.isatty():
            print("\n> ", end="", file=sys.stderr, flush=True)
        line = await asyncio.to_thread(sys.stdin.readline)
        text = line.strip()
        if not text or text in ("/quit", "/exit"):
            return
        yield text


def _turn(text: str, messages: list["BaseMessage"]) -> dict[str, Any]:
    from langchain_core.messages import AIMessage, ToolMessage

    answers = [message for message in messages if isinstance(message, AIMessage)]
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls = [call for answer in answers for call in answer.tool_calls]
    return {
        "user": text,
        "answer": answers[-1].text if answers else "",
        "calls": [
            {
                "name": call["name"],
                "arguments": call["args"],
                "result": results[call["id"]].text if call["id"] in results else None,
            }
            for call in calls
        ],
    }
