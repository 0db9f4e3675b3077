"""`python -m langchain_envscaler` is the `envscaler` command."""

from langchain_envscaler.cli import main

if __name__ == "__main__":
    main()
