"""One bundled environment as a stdio server, for clients that start a Python file.

python mcp_servers/stdio_server.py [ENV [TASK]]
"""

import sys

from langchain_envscaler.errors import EnvScalerError
from langchain_envscaler.mcp.stdio import serve


def main() -> None:
    arguments = sys.argv[1:]
    try:
        serve(arguments[0] if arguments else "library_desk", arguments[1] if len(arguments) > 1 else None)
    except EnvScalerError as error:
        sys.exit(f"envscaler: {error}")


if __name__ == "__main__":
    main()
