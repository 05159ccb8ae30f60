"""`optimizers` on an NVIDIA GPU: a larger GPT, many small tensors, and the kernels of a step. Compares the same, and
says as little of what is learned. A model whose optimizers do not fit into the free memory side by side is left out.

    python -m benchmarks --only optimizers_gpu             the larger model needs 24 GB
    python -m benchmarks.optimizers_gpu --dry              on a CPU: tiny models, to try the script; writes nothing
"""

from __future__ import annotations

import argparse
import math
import sys

import torch

from benchmarks.optimizers import Shapes, gpt, measured, ways

GPU = True
MODELS: dict[str, Shapes] = {"GPT, 124 M parameters": gpt(768, 12, 50257), "4000 tensors of 64 x 64": 4000 * [(64, 64)]}
DRY_MODELS: dict[str, Shapes] = {"a tiny GPT": gpt(16, 1, 20), "4 tensors of 64 x 64": 4 * [(64, 64)]}
TEMPORARY = 2e9
"""Bytes that the hungriest step takes beside weights, gradients and states: six float32 numbers of the largest matrix,
and what the libraries need."""


def main(argv: list[str]) -> dict:
    """Prints a table for each model and returns the rows, as `optimizers` does, with the number of kernels."""
    parser = argparse.ArgumentParser(prog="benchmarks optimizers_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="steps of each optimizer that are timed")
    parser.add_argument("--dry", action="store_true", help="on a CPU, tiny models: the times say nothing")
    args = parser.parse_args(argv)
    if args.dry:
        return {"device": "cpu", "rows": measured(DRY_MODELS, torch.device("cpu"), args.repeats), "left_out": {}}
    free, _ = torch.cuda.mem_get_info()
    left_out = {name: needed for name, shapes in MODELS.items() if (needed := bytes_needed(shapes)) > free}
    for name, needed in left_out.items():
        print(f"{name}: left out, because it needs {needed / 1e9:.0f} GB and {free / 1e9:.0f} GB are free")
    models = {name: shapes for name, shapes in MODELS.items() if name not in left_out}
    return {
        "device": torch.cuda.get_device_name(),
        "rows": measured(models, torch.device("cuda"), args.repeats),
        "left_out": left_out,
    }


def bytes_needed(shapes: Shapes) -> int:
    """At most, for weights, gradients and two moments of every optimizer, which all stand side by side."""
    n_parameters = sum(map(math.prod, shapes))
    return int(sum(4 * dtype.itemsize * n_parameters for _, dtype in ways().values()) + TEMPORARY)


if __name__ == "__main__":
    if "--dry" not in sys.argv[1:]:
        sys.exit("without --dry it is started by: python -m benchmarks --only optimizers_gpu")
    main(sys.argv[1:])
