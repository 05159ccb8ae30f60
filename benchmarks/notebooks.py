"""What a student waits for: each solved notebook from its first cell to its last, one at a time.

Wall and CPU time of the kernel with all that it starts, and the cell that takes longest. No test asks for these times:
they are a machine's. Whether a notebook runs at all is tests/notebooks's.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from datetime import datetime
from pathlib import Path

from nbformat import NotebookNode

from benchmarks._meter import REPO
from grading.build import build
from grading.site.kernel import run_notebook
from grading.terminal import say, table

HANG_S = 600


def main(argv: list[str]) -> dict:
    """Prints the table and returns its rows, in seconds."""
    parser = argparse.ArgumentParser(prog="benchmarks notebooks", description=__doc__.splitlines()[0])
    parser.add_argument("--labs", nargs="+", metavar="LAB", help="numbers of labs, as 00 08; all without it")
    args = parser.parse_args(argv)
    sources = {path.stem[:2]: path for path in sorted((REPO / "solutions").glob("[0-9][0-9]_*.py"))}
    if unknown := set(args.labs or ()) - set(sources):
        parser.error(f"no lab {min(unknown)}; there are: {' '.join(sources)}")
    rows = []
    for number in args.labs or sources:
        source = sources[number]
        rows.append({"lab": source.stem, **seconds_of(build(source).solution)})
        print(*rows[-1].values(), sep=" · ", flush=True)
    say(*table(tuple(rows[0]), [tuple(map(str, row.values())) for row in rows]))
    return {"rows": rows}


def seconds_of(notebook: NotebookNode) -> dict[str, float | str]:
    """Run it: wall and CPU time, and the longest cell with its own. Raises nbclient's errors."""
    with tempfile.TemporaryDirectory() as folder:
        began, began_cpu = time.perf_counter(), children_cpu_s()
        ran = run_notebook(notebook, Path(folder), HANG_S)
        wall_s, cpu_s = time.perf_counter() - began, children_cpu_s() - began_cpu
    slowest = max((cell for cell in ran.cells if cell.cell_type == "code"), key=cell_s)
    return {
        "wall_s": round(wall_s, 1),
        "cpu_s": round(cpu_s, 1),
        "longest_cell": slowest.id,
        "longest_cell_s": round(cell_s(slowest), 1),
    }


def cell_s(cell: NotebookNode) -> float:
    """From the kernel's word that it begins to its word that it is done."""
    said = [cell.metadata.get("execution", {}).get(f"iopub.status.{state}") for state in ("busy", "idle")]
    if None in said:
        return 0.0
    begin, end = (datetime.fromisoformat(text.replace("Z", "+00:00")) for text in said)
    return (end - begin).total_seconds()


def children_cpu_s() -> float:
    """Of every process that this one has started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
