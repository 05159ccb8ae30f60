"""`optimizers` on an NVIDIA GPU: a larger GPT, and the kernels of a step. Compares the same and says as little."""

from __future__ import annotations

import argparse

import torch

from benchmarks.optimizers import Shapes, gpt, measured

GPU = True
MODELS: dict[str, Shapes] = {"GPT, 124 M parameters": gpt(768, 12, 50257), "4000 tensors of 64 x 64": 4000 * [(64, 64)]}


def main(argv: list[str]) -> dict:
    """Prints a table for each model and returns the rows, as `optimizers` does, with the number of kernels."""
    parser = argparse.ArgumentParser(prog="benchmarks optimizers_gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="steps of each optimizer that are timed")
    told = parser.parse_args(argv)
    return {"device": torch.cuda.get_device_name(), "rows": measured(MODELS, torch.device("cuda"), told.repeats)}
