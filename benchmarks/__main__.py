"""Runs the benchmark scripts of this folder and writes each result with the machine it came from.

Each script runs in a process of its own, so that none measures what another left behind; one that
fails does not stop the others. It does not compare with earlier results: the JSON files are committed,
and the difference shows in the history.
"""

import argparse
import ast
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("torch", "triton", "numpy", "nbgrader", "jupyterlab")


def scripts(folder: Path = HERE) -> dict[str, bool]:
    """The names of the scripts, and whether each needs a GPU; read from the text, nothing is imported."""
    return {path.stem: needs_gpu(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")}


def needs_gpu(path: Path) -> bool:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(getattr(to, "id", "") == "GPU" for to in node.targets):
            return bool(ast.literal_eval(node.value))
    return False


def gpus() -> list[str]:
    """The NVIDIA GPUs that the driver lists."""
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.strip().splitlines() if done.returncode == 0 else []


def machine() -> dict:
    """What a time depends on: processor, cores, memory, system, GPUs."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), cpu)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": platform.platform(),
        "gpus": gpus(),
    }


def versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def run_one(name: str, argv: list[str], results: Path) -> Path:
    """Run a script in this process and write its result, whole or not at all."""
    start = time.perf_counter()
    result = importlib.import_module(f"benchmarks.{name}").main(argv)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.perf_counter() - start, 2),
        "machine": machine(),
        "versions": versions(),
        "result": result,
    }
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    results.mkdir(parents=True, exist_ok=True)
    part = results / f".{name}.part"
    part.write_text(text, encoding="utf-8")
    return part.replace(results / f"{name}.json")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list the scripts and stop")
    parser.add_argument("--only", metavar="NAME", help="run this one; what follows -- goes to it")
    parser.add_argument("--gpu", action="store_true", help="run those that need an NVIDIA GPU")
    parser.add_argument("--results", type=Path, default=HERE / "results", help=argparse.SUPPRESS)
    parser.add_argument("args", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    known = scripts()
    if args.list:
        print("\n".join(f"{name}{'  (GPU)' if gpu else ''}" for name, gpu in known.items()))
        return 0
    if args.only and args.only not in known:
        print(f"no benchmark {args.only!r}; there are: {', '.join(known) or 'none'}", file=sys.stderr)
        return 2
    if (args.gpu or (args.only and known[args.only])) and not gpus():
        print("no NVIDIA GPU on this machine: nvidia-smi lists none", file=sys.stderr)
        return 2
    if args.only:
        print(f"wrote {run_one(args.only, args.args, args.results)}")
        return 0
    chosen = [name for name, gpu in known.items() if gpu == args.gpu]
    if not chosen:
        print("no benchmarks to run")
    failed = []
    for name in chosen:
        print(f"== {name}", flush=True)
        command = [sys.executable, "-m", "benchmarks", "--only", name, "--results", str(args.results)]
        if subprocess.run([*command, "--", *args.args], cwd=HERE.parent).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
