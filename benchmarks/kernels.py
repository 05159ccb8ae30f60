"""The reference kernels beside eager PyTorch, torch.compile and Liger Kernel, as parts of what the machine can do.

Each row has the times of all ways, taken in turns, and the ratio to a device-to-device copy of the least bytes that the
operation can move, or to the fastest large matrix product, measured in the same turns. It needs one NVIDIA GPU and no
network. An operation that fails is recorded with its error, and one that takes too long is ended; what was measured
until then is kept, also when the whole is interrupted.

    python -m benchmarks --only kernels                    all operations, within 8 minutes
    python -m benchmarks --only kernels -- --quick         one size each
    python -m benchmarks.kernels --dry                     on a CPU: every step but the timing; prints, writes nothing

It says nothing about accuracy beyond "not far from eager", and does not lock the clocks: they are in the result.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks._kernels_ops import OPS

GPU = True
ROOT = Path(__file__).resolve().parents[1]
LIMIT_S, PART_LIMIT_S = 460.0, 150.0
PACKAGES = ("torch", "triton", "liger-kernel")


class Stopped(Exception):
    """Somebody asked for the end; what was measured is kept."""


def main(argv: Sequence[str]) -> dict[str, Any]:
    """Measure, and return what the result's file holds; earlier than asked for where it is stopped."""
    parser = argparse.ArgumentParser(prog="kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one size of each operation, fewer turns")
    parser.add_argument("--dry", action="store_true", help="on a CPU, tiny sizes: the times say nothing")
    parser.add_argument("--ops", metavar="NAMES", help=f"only these, with commas between: {','.join(OPS)}")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="begin nothing after so many seconds")
    parser.add_argument("--part-limit-s", type=float, default=PART_LIMIT_S, help="end an operation after so many")
    parser.add_argument("--out", type=Path, help="write what there is to this file as well, after each operation")
    args = parser.parse_args(list(argv))
    names = args.ops.split(",") if args.ops else list(OPS)
    unknown = [name for name in names if name not in OPS]
    if unknown:
        parser.error(f"no operation {', '.join(unknown)}; there are: {', '.join(OPS)}")
    result: dict[str, Any] = {
        "dry": args.dry,
        "quick": args.quick,
        "device": "Triton's interpreter on a CPU: no time here means anything" if args.dry else _device(),
        "packages": {name: _version(name) for name in PACKAGES},
        "stopped": None,
        "parts": {},
    }
    flags = [flag for flag, on in (("--quick", args.quick), ("--dry", args.dry)) if on]
    ends = time.monotonic() + args.limit_s
    with tempfile.TemporaryDirectory() as folder, _stoppable():
        try:
            for name in names:
                left_s = ends - time.monotonic()
                if left_s < 5:
                    result["parts"][name] = {"error": f"not begun: {args.limit_s:.0f} s were over", "rows": []}
                    continue
                file = Path(folder) / f"{name}.json"
                # Known before it runs, so that it is in the result however the run ends.
                result["parts"][name] = {"error": "stopped before its end", "rows": []}
                print(f"   {name}", file=sys.stderr, flush=True)
                try:
                    error = _run(name, file, flags, min(left_s, args.part_limit_s))
                    result["parts"][name]["error"] = error
                finally:
                    if file.exists():
                        result["parts"][name] |= json.loads(file.read_text(encoding="utf-8"))
                    _keep(result, args.out)
        except (Stopped, KeyboardInterrupt):
            result["stopped"] = "interrupted: the operations after the last one here were not measured"
    result["summary"] = summary(result["parts"])
    _keep(result, args.out)
    for line in result["summary"]:
        print(line, file=sys.stderr)
    return result


def _run(name: str, file: Path, flags: Sequence[str], limit_s: float) -> str | None:
    """Measure one operation in a process of its own; what went wrong, in words."""
    command = [sys.executable, "-m", "benchmarks._kernels_part", name, str(file), *flags]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, **quiet)
    try:
        _, stderr = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return f"ended after {limit_s:.0f} s"
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    lines = stderr.decode(errors="replace").strip().splitlines()
    return None if process.returncode == 0 else f"exit code {process.returncode}: {' | '.join(lines[-3:])}"[:800]


def summary(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each row: the ratio, its aim, and what is not as it should be."""
    lines = []
    for name, part in parts.items():
        if part["error"]:
            lines.append(f"{name}: {part['error']}")
        for row in part["rows"]:
            what = f"{name} {row['pass']} {'×'.join(map(str, row['shape']))}"
            if "right" not in row:
                lines.append(f"{what}: FAILED, {row.get('error') or row['errors'].get('ours')}")
                continue
            others = ", ".join(f"{way} {ratio:.2f}" for way, ratio in row["ratio"].items() if way != "ours")
            timed = f"{row['ratio']['ours']:.2f} of {row['yardstick']} (aim {row['aim']:.2f}; {others})"
            line = f"{what}: {timed if 'aim_met' in row else 'ran, without a time that means anything'}"
            line += "" if row.get("aim_met", True) else ", BELOW THE AIM"
            line += "" if row["right"] else ", WRONG"
            line += "" if row.get("no_slower_than_compile", True) else ", SLOWER THAN torch.compile"
            lines.append(line)
    return lines


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """A request to terminate ends the measuring, not the process: its file is still to be written."""

    def stop(signum: int, frame: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _device() -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "processors": properties.multi_processor_count,
        "cache_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "cuda": torch.version.cuda,
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _keep(result: Mapping[str, Any], file: Path | None) -> None:
    if file is not None:
        file.write_text(json.dumps(result, indent=2, allow_nan=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--dry" not in sys.argv[1:]:
        sys.exit("without --dry it is started by: python -m benchmarks --only kernels")
    print(json.dumps(main(sys.argv[1:]), indent=2, allow_nan=False))
