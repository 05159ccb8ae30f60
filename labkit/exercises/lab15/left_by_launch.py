"""Lab 15: what a launched script and its ranks left in their folders, read back as plain tensors and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from labkit.exercises.lab15.torchrun import N_RANKS


def loaded(path: Path) -> dict[str, Any]:
    """What torch.save wrote there; empty where nothing can be read."""
    try:
        found = torch.load(path, weights_only=True)
    except Exception:
        # Half a file fails in as many ways as there are places to cut it.
        return {}
    return found if isinstance(found, dict) else {}


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Its parts as plain tensors, None for what is missing; "state" says whether there was one that could be read."""
    found = loaded(path)
    optimizer = found.get("optimizer")
    moments = optimizer.get("state") if isinstance(optimizer, dict) else None
    buffers = [one.get("momentum_buffer") for one in moments.values()] if isinstance(moments, dict) else []
    generators = found.get("generators")
    return {
        "state": "whole" if found else "torn" if path.exists() else "none",
        "step": found["step"] if isinstance(found.get("step"), int) else None,
        "model": flat(found.get("model")),
        "names": sorted(map(str, found["model"])) if isinstance(found.get("model"), dict) else [],
        "momentum": flat(dict(enumerate(buffers))),
        "generators": [one for one in generators if isinstance(one, Tensor)]
        if isinstance(generators, list | tuple)
        else [],
        "losses": numbers(found.get("losses")),
    }


def flat(values: object) -> Tensor | None:
    """The tensors of a state dict behind one another, in float32."""
    tensors = [value for value in values.values() if isinstance(value, Tensor)] if isinstance(values, dict) else []
    return torch.cat([value.detach().float().reshape(-1) for value in tensors]) if tensors else None


def numbers(values: object) -> Tensor | None:
    """A list of numbers or of tensors with one element, or a tensor, as one float64 tensor."""
    try:
        return torch.tensor([float(value) for value in values], dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        return None


def steps(notes: Path) -> list[list[int]]:
    """By start, the number of optimizer steps of each rank."""
    n_starts = 1 + max((int(path.name.split("-")[2]) for path in notes.glob("began-*")), default=-1)
    found = []
    for start in range(n_starts):
        paths = [notes / f"steps-{rank}-{start}" for rank in range(N_RANKS)]
        found.append([path.stat().st_size if path.exists() else 0 for path in paths])
    return found


def first_error(notes: Path) -> str | None:
    """The first error of a start in which no rank was killed: those beside a killed rank are the kill's."""
    killed = {path.read_text() for path in notes.glob("killed-*")}
    errors = sorted(notes.glob("error-*"), key=lambda path: (int(path.name.split("-")[2]), path.stat().st_mtime_ns))
    return next((path.read_text() for path in errors if path.name.split("-")[2] not in killed), None)
