"""What MCP costs here: ours against a trivial tool on the bare SDK's `MCPServer`, side by side in one run.

Both servers are processes of their own on this machine. Latency: one client of the SDK on a held connection
to each, calls alternating, so that both see the same weather. Throughput: as many connections at once as
there are episodes, driven by a plain HTTP loop that costs less than either server. Start: from starting the
process to the first answer to `tools/list`. Ours runs its tool in the sandbox and journals each call.

    python benchmarks/mcp_http.py [--calls 300] [--episodes 64] [--json FILE]
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

LEGACY, MODERN = "2025-11-25", "2026-07-28"

PEER = """
import sys
from mcp.server import MCPServer
server = MCPServer("peer", log_level="ERROR")
@server.tool()
def add(amount: int) -> int:
    "Add."
    return amount
if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", port=int(sys.argv[1]))
"""

ENVIRONMENT = {
    "env_id": "counter",
    "env_class_name": "Counter",
    "env_class_code": """
class Counter:
    def __init__(self, init_config):
        self.value = 0
    def add(self, amount):
        self.value += amount
        return self.value
""",
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": "Add.",
                "parameters": {
                    "type": "object",
                    "properties": {"amount": {"type": "integer"}},
                    "required": ["amount"],
                },
            },
        }
    ],
}

OURS = """
import sys
from langchain_envscaler.environments.catalog import Catalog
catalog = Catalog.load(sys.argv[2])
if sys.argv[1] == "stdio":
    from langchain_envscaler.mcp.stdio import serve
    serve("counter", catalog=catalog)
else:
    from langchain_envscaler.environments.service import EpisodeService
    from langchain_envscaler.mcp.http import serve
    serve(EpisodeService(catalog, store=sys.argv[3]), port=int(sys.argv[1]))
"""


@dataclass(frozen=True)
class Row:
    """One comparison; a ratio at or below (for throughput: at or above) the bound is good."""

    what: str
    unit: str
    peer: float
    ours: float
    bound: float
    higher_is_better: bool = False

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def good(self) -> bool:
        return self.ratio >= self.bound if self.higher_is_better else self.ratio <= self.bound


def mode(version: str) -> str:
    return "legacy" if version == LEGACY else version


@asynccontextmanager
async def running(code: str, port: int, *arguments: str) -> AsyncIterator[str]:
    """A server process; gives its address once it answers."""
    command = [sys.executable, "-c", code, str(port), *arguments]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(30), httpx2.AsyncClient() as http:
            while True:
                try:
                    await http.get(url)
                    break
                except httpx2.TransportError:
                    await asyncio.sleep(0.05)
        yield url
    finally:
        process.terminate()
        async with asyncio.timeout(20):
            await process.wait()


async def start_episode(http: httpx2.AsyncClient, url: str) -> str:
    response = await http.post(f"{url}/episodes", json={"env_id": "counter"})
    response.raise_for_status()
    return str(response.json()["url"])


async def latency(peer: str, ours: str, version: str, calls: int) -> tuple[float, float]:
    """The median milliseconds of a call, of the peer's and of ours."""
    times: dict[str, list[float]] = {peer: [], ours: []}
    async with Client(peer, mode=mode(version)) as a, Client(ours, mode=mode(version)) as b:
        clients = {peer: a, ours: b}
        for client in clients.values():
            await client.list_tools()
        for number in range(calls + 20):
            for url, client in clients.items():
                began = time.perf_counter()
                await client.call_tool("add", {"amount": 1})
                if number >= 20:
                    times[url].append(time.perf_counter() - began)
    return statistics.median(times[peer]) * 1e3, statistics.median(times[ours]) * 1e3


class RawClient:
    """A client that does no more than HTTP: the same bytes again and again on one connection."""

    def __init__(self, http: httpx2.AsyncClient, url: str, version: str) -> None:
        self._http = http
        self._url = url
        self._headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-protocol-version": version,
        }
        self._version = version

    async def open(self) -> None:
        if self._version == MODERN:
            self._headers |= {"mcp-method": "tools/call", "mcp-name": "add"}
            return
        client = {"name": "bench", "version": "1"}
        greeting = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client}
        headers = {key: value for key, value in self._headers.items() if key != "mcp-protocol-version"}
        response = await self._post("initialize", greeting, headers)
        self._headers["mcp-session-id"] = response.headers["mcp-session-id"]
        notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._http.post(self._url, json=notification, headers=self._headers)

    async def call(self) -> None:
        params: dict[str, Any] = {"name": "add", "arguments": {"amount": 1}}
        if self._version == MODERN:
            params["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        response = await self._post("tools/call", params, self._headers)
        assert '"isError":true' not in response.text
        assert '"result"' in response.text

    async def _post(self, method: str, params: dict[str, Any], headers: dict[str, str]) -> httpx2.Response:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self._http.post(self._url, json=request, headers=headers)
        response.raise_for_status()
        return response


async def throughput(urls: list[str], version: str, calls: int) -> float:
    """Calls a second over all addresses at once, each with its calls one after another."""
    limits = httpx2.Limits(max_connections=len(urls), max_keepalive_connections=len(urls))
    async with httpx2.AsyncClient(limits=limits, timeout=60) as http:
        clients = [RawClient(http, url, version) for url in urls]
        for client in clients:
            await client.open()
            await client.call()

        async def drive(client: RawClient) -> None:
            for _ in range(calls):
                await client.call()

        began = time.perf_counter()
        await asyncio.gather(*map(drive, clients))
        return len(clients) * calls / (time.perf_counter() - began)


async def startup(code: str, *arguments: str) -> float:
    """Seconds until the first answer to `tools/list` over stdio: the best of a few starts."""
    seconds = []
    for _ in range(5):
        server = StdioServerParameters(command=sys.executable, args=["-c", code, "stdio", *arguments])
        began = time.perf_counter()
        async with Client(stdio_client(server), mode="legacy") as client:
            await client.list_tools()
            seconds.append(time.perf_counter() - began)
    return min(seconds)


async def measure(calls: int, episodes: int, folder: Path) -> list[Row]:
    (folder / "env_metadata.json").write_text(json.dumps([ENVIRONMENT]))
    rows = [
        Row("first tools/list over stdio", "s", await startup(PEER), await startup(OURS, str(folder)), 1.5)
    ]
    store = str(folder / "episodes.db")
    async with (
        running(PEER, 18765) as peer,
        running(OURS, 18766, str(folder), store) as ours,
        httpx2.AsyncClient(timeout=60) as http,
    ):
        addresses = [await start_episode(http, ours) for _ in range(episodes)]
        for version in (LEGACY, MODERN):
            one, other = await latency(f"{peer}/mcp", addresses[0], version, calls)
            rows.append(Row(f"a call, held connection, {version}", "ms", one, other, 1.3))
        for version in (LEGACY, MODERN):
            # Alternating, and the best of each: what else runs on the machine only ever slows down.
            peers, ourss = [], []
            for _ in range(3):
                peers.append(await throughput([f"{peer}/mcp"] * episodes, version, max(1, calls // 10)))
                ourss.append(await throughput(addresses, version, max(1, calls // 10)))
            what = f"{episodes} episodes at once, {version}"
            rows.append(Row(what, "calls/s", max(peers), max(ourss), 1.0, higher_is_better=True))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=300, help="calls for each latency")
    parser.add_argument("--episodes", type=int, default=64, help="episodes at once")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(measure(options.calls, options.episodes, Path(folder)))
    print(f"{'':42} {'peer':>10} {'ours':>10} {'ratio':>7} {'bound':>7}")
    for row in rows:
        bound = f"{'>=' if row.higher_is_better else '<='}{row.bound}"
        print(
            f"{row.what:34} {row.unit:>7} {row.peer:10.3f} {row.ours:10.3f} {row.ratio:7.2f} {bound:>7}"
            f"  {'good' if row.good else 'MISSED'}"
        )
    if options.json:
        records = [asdict(row) | {"ratio": row.ratio, "good": row.good} for row in rows]
        options.json.write_text(json.dumps(records, indent=2))
    sys.exit(0 if all(row.good for row in rows) else 1)


if __name__ == "__main__":
    main()
