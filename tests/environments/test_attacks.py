"""Whatever environment or check code does, it harms neither the host nor other episodes."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.episode import Episode
from langchain_envscaler.environments.limits import Limits
from langchain_envscaler.environments.metadata import Check, EnvironmentSpec, Scenario
from langchain_envscaler.environments.sandbox import host
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import DataError, InfrastructureError


@pytest.fixture(autouse=True)
def bystander(service: EpisodeService) -> Iterator[Episode]:
    """Another episode, which goes on whatever happens."""
    if service.isolation.level != "full":
        pytest.skip(f"skipped: no full isolation here: {service.isolation.detail}")
    episode = service.start("counter")
    episode.call("add", {"amount": 1})
    yield episode
    assert episode.call("add", {"amount": 1}).text == "{'count': 2}"


def _tool(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return f"import os, signal, socket, subprocess, sys\nclass Env:\n    def go(self):\n{lines}\n"


DENIED = {
    "reading a secret": "return open('SECRET').read()",
    "listing a folder": "return os.listdir('/')",
    "listing the home": "return os.listdir(os.path.expanduser('~root'))",
    "writing a file": "open('FOLDER/made', 'w').write('x')",
    "removing a file": "os.remove('SECRET')",
    "renaming a file": "os.rename('SECRET', 'SECRET2')",
    "changing rights": "os.chmod('SECRET', 0o777)",
    "linking": "os.symlink('SECRET', 'FOLDER/link')",
    "making a folder": "os.mkdir('FOLDER/new')",
    "environment of other processes": "return open(f'/proc/{os.getppid()}/environ').read()",
    "memory of itself as a file": "return open('/proc/self/mem', 'rb').read(1)",
    "a program": "return subprocess.run(['/bin/sh', '-c', 'echo hi'])",
    "execve": "os.execv('/bin/sh', ['sh'])",
    "fork": "return os.fork()",
    "fork bomb": "while True: os.fork()",
    "a thread": "import _thread; _thread.start_new_thread(print, ())",
    "a TCP socket": "return socket.create_connection(('127.0.0.1', PORT))",
    "a UDP socket": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "a Unix socket": "socket.socket(socket.AF_UNIX).connect('/run/x')",
    "a socket pair": "return socket.socketpair()",
    "a signal to the parent": "os.kill(os.getppid(), signal.SIGKILL)",
    "a signal to the host": "os.kill(HOST, signal.SIGTERM)",
    "a signal to all": "os.kill(-1, signal.SIGKILL)",
    "a signal to the group": "os.killpg(0, signal.SIGKILL)",
    "a timer that runs code later": "signal.setitimer(signal.ITIMER_REAL, 0.01)",
    "outliving the host": "import ctypes\nif ctypes.CDLL(None).prctl(1, 0): raise OSError('refused')",
    "raw fork by ctypes": "import ctypes\nif ctypes.CDLL(None).syscall(57) < 0: raise OSError('refused')",
    "a higher limit": "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))",
    "tracing": "import ctypes\nif ctypes.CDLL(None).ptrace(16, HOST, 0, 0) < 0: raise OSError('refused')",
    "a shared memory file": "return os.memfd_create('x')",
    "host name change": "socket.sethostname('x')",
    "SystemExit": "sys.exit(3)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "deep recursion": "f = lambda n: f(n + 1)\nreturn f(0)",
    "memory bomb": "return [bytearray(10**8) for _ in range(100)]",
    "a huge object": "return 'x' * 10**11",
    "installed packages": "import pydantic",
}


@pytest.mark.parametrize("attack", DENIED)
def test_what_is_forbidden_is_an_error_for_the_model(
    run: Callable[..., Any], tmp_path: Path, attack: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        body = DENIED[attack]
        for name, value in (("SECRET", secret), ("FOLDER", tmp_path), ("HOST", os.getpid())):
            body = body.replace(name, str(value))
        observation = run(_tool(body.replace("PORT", str(listener.getsockname()[1]))), go="").call("go")
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert observation.is_error, observation.text
    assert "the secret" not in observation.text
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert secret.stat().st_mode & 0o777 != 0o777


FATAL = {
    "os._exit": ("os._exit(5)", "exit code 5"),
    "a crash": ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    "an endless loop": ("while True: pass", "stopped after 1 s"),
    "a loop that swallows all errors": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "stopped after 1 s",
    ),
    "a number that never ends": ("return 10 ** 10 ** 8", "stopped after 1 s"),
    "sleep": ("import time; time.sleep(1000)", "stopped after 1 s"),
    "a regular expression": ("import re; re.match('(a+)+$', 'a' * 64 + 'b')", "stopped after 1 s"),
    "waiting without an answer": ("os.read(3, 1)", "stopped after 1 s"),
    "a forged frame": (
        "import struct\nfor fd in range(3, 10):\n    try: os.write(fd, struct.pack('!II', 2**31, 2**31))\n"
        "    except OSError: pass",
        "failed",
    ),
    "frames of garbage": (
        "for fd in range(3, 10):\n    try: os.write(fd, b'\\0' * 3 + b'\\5' + b'\\0' * 4 + b'abcde')\n"
        "    except OSError: pass",
        "failed",
    ),
    "a closed connection": ("os.closerange(3, 64)", "process ended"),
    "a state that is too large": ("self.big = bytes(80_000_000)", "failed"),
    "a state that cannot be kept": ("self.open = lambda: 0", "state that cannot be kept"),
}


@pytest.mark.parametrize("attack", FATAL)
def test_what_ends_the_process_is_an_error_and_leaves_the_state(run: Callable[..., Any], attack: str) -> None:
    body, told = FATAL[attack]
    code = _tool(body) + (
        "    def __init__(self, config):\n        self.n = 0\n"
        "    def good(self):\n        self.n += 1; return self.n\n"
    )
    episode = run(code, go="", good="")
    episode.call("good")
    observation = episode.call("go")
    assert observation.is_error
    assert told in observation.text
    assert "Nothing that it did was kept." in observation.text
    assert episode.call("good").text == "2"


def test_what_is_printed_stays_out_of_the_protocol(run: Callable[..., Any]) -> None:
    body = (
        "print('x' * 10**6)\nsys.__stdout__.write('y')\nos.write(1, b'z')\nos.write(2, b'z')\nreturn 'fine'"
    )
    assert run(_tool(body), go="").call("go").text == "fine"


def test_a_patched_protocol_does_not_leave_the_episode(run: Callable[..., Any], bystander: Episode) -> None:
    body = "import json, pickle\njson.loads = json.dumps = pickle.dumps = os.read = os.write = None\nreturn 1"
    episode = run(_tool(body), go="")
    episode.call("go")
    assert bystander.call("look").text == "1"


def test_a_huge_result_is_cut_with_a_note(run: Callable[..., Any]) -> None:
    observation = run(_tool("return 'x' * 100_000_000"), go="").call("go")
    assert not observation.is_error
    assert len(observation.text) < 300_000
    assert "cut: 100000000 characters in all" in observation.text


def test_lone_surrogates_and_zero_bytes_come_through(run: Callable[..., Any]) -> None:
    observation = run(_tool("return '\\ud800\\0'"), go="").call("go")
    assert observation.text == "\ud800\0"


def test_a_class_that_is_patched_reaches_no_other_episode(
    run: Callable[..., Any], make_spec: Any, service: Any
) -> None:
    spec = make_spec("patched", _tool("Env.go = lambda self: 'patched'\nreturn 'clean'"), go="")
    service.catalog.environments["patched"] = spec
    first, second = service.start("patched"), service.start("patched")
    assert [first.call("go").text, first.call("go").text] == ["clean", "patched"]
    assert second.call("go").text == "clean"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os\nos.system('true')\nos.fork()\nclass Env: pass", "PermissionError"),
        ("while True: pass\nclass Env: pass", "no answer within"),
        ("class Env:\n    def __init__(self, c):\n        while True: pass", "no answer within"),
        ("import os\nos._exit(4)", "exit code 4"),
        ("class Env:\n    def __init__(self, c): raise KeyError('x')", "KeyError: 'x'"),
        ("class Other: pass", "expected a class 'Env'"),
        ("class Env(", "SyntaxError"),
        ("().__class__.__base__.__subclasses__()\nopen('/etc/passwd')\nclass Env: pass", "PermissionError"),
    ],
)
def test_code_that_cannot_start_is_named(
    make_spec: Callable[..., EnvironmentSpec], code: str, told: str
) -> None:
    catalog = Catalog([make_spec("bad", code, go="")])
    with (
        EpisodeService(catalog, limits=Limits(start_seconds=1)) as service,
        pytest.raises(DataError, match=told),
    ):
        service.start("bad")


CHECKS = {
    "mutates the state": ("final_state['count'] = 3; return final_state['count'] == 3", True, None),
    "mutates the start": ("initial_state['count'] = 9; return True", True, None),
    "patches builtins": ("import builtins; builtins.len = lambda x: 0; return True", False, "it answered"),
    "returns 1": ("return 1", False, "returned 1 (int), not True"),
    "returns None": ("pass", False, "returned None (NoneType), not True"),
    "raises": ("return final_state['nothing']", False, "raised KeyError: 'nothing'"),
    "never returns": ("while True: pass", False, "no answer within 1 s"),
    "ends its process": ("import os; os._exit(0)", False, "exit code 0"),
    "exits": ("raise SystemExit(0)", False, "raised SystemExit: 0"),
    "opens a socket": ("import socket; socket.socket(); return True", False, "PermissionError"),
    "is honest": ("return final_state['count'] == 2 and initial_state['count'] == 0", True, None),
}


def test_each_check_stands_alone(service: EpisodeService) -> None:
    checks = [
        Check(check_item=item, check_func=f"def check_func(final_state):\n    {code}")
        for item, (code, _, _) in CHECKS.items()
    ]
    checks += [
        Check(check_item="no function", check_func="x = 1"),
        Check(check_item="no code", check_func="def"),
    ]
    service.catalog.scenarios.append(
        Scenario(env_id="counter", task_id="attacks", task="-", checklist_with_func=checks)
    )
    episode = service.start("counter", "attacks")
    episode.call("add", {"amount": 2})
    found = {check.item: check for check in episode.evaluate().checks}
    for item, (_, passed, reason) in CHECKS.items():
        assert found[item].passed is passed, item
        assert (reason is None) == (found[item].reason is None), item
        assert reason is None or reason in str(found[item].reason)
    assert "check_func" in str(found["no function"].reason)
    assert "SyntaxError" in str(found["no code"].reason)
    assert episode.state()["count"] == 2


def test_a_score_that_cannot_be_had_is_an_error_and_not_zero(catalog: Catalog) -> None:
    with EpisodeService(catalog) as service:
        episode = service.start("counter", "three")
        service.store._write(lambda cursor: cursor.execute("UPDATE states SET state = ?", (b"broken",)))
        with pytest.raises(InfrastructureError, match="state to load for a check"):
            episode.evaluate()


def test_children_end_with_the_host(catalog: Catalog) -> None:
    service = EpisodeService(catalog)
    pid = service.start("counter")._process.pid
    assert pid is not None
    service.close()
    deadline = time.monotonic() + 5
    while _is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _is_running(pid)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_isolation_below_what_is_required_is_refused(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        host, "_isolation", lambda landlock, seccomp: host.IsolationReport("limited", "no Landlock")
    )
    with pytest.raises(InfrastructureError, match="expected full isolation, found limited: no Landlock"):
        EpisodeService(catalog, require_isolation=True)
    with EpisodeService(catalog) as service:
        assert service.isolation.level == "limited"
        assert service.start("counter").call("look").text == "0"
