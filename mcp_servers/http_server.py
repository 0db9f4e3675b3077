"""All bundled environments over HTTP, configured as containers are: by environment variables.

ENVSCALER_HOST      the address to listen on (127.0.0.1); any other demands tokens
ENVSCALER_PORT      the port (8000)
ENVSCALER_STORE     where episodes are kept: a path or a database URL (episodes.db)
ENVSCALER_TOKENS    a file of tokens: {"tokens": [{"principal": ..., "sha256": ...}]}
ENVSCALER_URL       the address that clients see, behind a proxy
ENVSCALER_DATA      a folder of EnvScaler files to serve as well
"""

import os
import sys

from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.environments.service import EpisodeService
from langchain_envscaler.errors import EnvScalerError, UsageError
from langchain_envscaler.mcp.http import serve


def main() -> None:
    def setting(name: str) -> str | None:
        return os.environ.get(f"ENVSCALER_{name}")

    catalog = Catalog.bundled()
    try:
        if data := setting("DATA"):
            catalog.merge(Catalog.load(data))
        port = setting("PORT") or "8000"
        if not port.isdecimal():
            raise UsageError(f"expected a number as ENVSCALER_PORT, found {port!r}")
        serve(
            EpisodeService(catalog, store=setting("STORE") or "episodes.db"),
            host=setting("HOST") or "127.0.0.1",
            port=int(port),
            tokens=setting("TOKENS"),
            public_url=setting("URL"),
            on_ready=lambda url: print(f"Serving at {url}", flush=True),
        )
    except EnvScalerError as error:
        sys.exit(f"envscaler: {error}")


if __name__ == "__main__":
    main()
