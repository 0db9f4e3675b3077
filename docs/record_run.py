"""Record the picture of a run that README shows: a real run, its terminal output as an SVG.

python docs/record_run.py
"""

import asyncio
import io
import re
import tempfile
from pathlib import Path

from rich.console import Console

from langchain_envscaler.console import RunView
from langchain_envscaler.environments.catalog import Catalog
from langchain_envscaler.runs import AgentRun, ModelChoice, new_thread

PICTURE = Path(__file__).parent / "run.svg"


async def record() -> Console:
    """Run the demo's task; the console has recorded what a person would have seen."""
    console = Console(record=True, width=110, file=io.StringIO(), force_terminal=True, highlight=False)
    catalog = Catalog.bundled()
    task = "library_desk-06-a-late-return"
    thread = new_thread(catalog, "library_desk", task, choice=ModelChoice(), thread_id="late-return")
    view = RunView(console)
    with tempfile.TemporaryDirectory() as home:
        run = AgentRun(Path(home), catalog, thread)
        view.begin(thread, run.scenario)
        async with run:
            await view.follow(run.solve())
            view.show_result(await run.result())
    return console


if __name__ == "__main__":
    svg = asyncio.run(record()).export_svg(title="envscaler run library_desk")
    # A picture in a README loads nothing from elsewhere: the reader's own monospace font serves.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")
