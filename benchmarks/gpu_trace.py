"""Record a small trace of a training step on a GPU, for lab 09 to read: what PyTorch's profiler says, cut to size.

A transformer of two layers in bfloat16 (its output head in float32 on purpose) is trained for five steps, the next
batch copied on a second stream meanwhile. Kept are names, times, streams and correlations; the result says which steps
are steady, which machine it was and which versions. It needs one NVIDIA GPU and no network, and compares nothing.

    python -m benchmarks --only gpu_trace                  writes what is in it to results/gpu_trace.json
    python -m benchmarks --only gpu_trace -- --ship        and the trace itself to the file that the lab loads
"""

from __future__ import annotations

import argparse
import gzip
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from benchmarks._trace import events_of
from labkit.material.lab09 import SHIPPED

GPU = True
N_STEPS, FIRST_STEADY = 5, 2
BATCH, LENGTH, WIDTH, N_HEADS, N_LAYERS, N_WORDS = 8, 512, 1024, 16, 2, 32_000
KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver", "user_annotation", "gpu_user_annotation")
KEPT_ARGS = ("stream", "correlation", "device")


class Layer(nn.Module):
    """Attention and a feed-forward part, as in GPT-2."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, width)."""
        heads = self.qkv(self.norms[0](x)).unflatten(-1, (3, N_HEADS, WIDTH // N_HEADS)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Net(nn.Module):
    """Words in, the loss of the next word out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(N_WORDS, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(N_LAYERS)))
        self.head = nn.Linear(WIDTH, N_WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """words: (batch, length + 1)."""
        with torch.autocast(words.device.type, torch.bfloat16):
            x = self.layers(self.embedding(words[:, :-1]))
        logits = self.head(x.float())
        return F.cross_entropy(logits.flatten(0, 1), words[:, 1:].flatten())


def main(argv: list[str]) -> dict[str, Any]:
    """Record and cut the trace, and say what is in it; with --ship also write it where the lab looks for it."""
    parser = argparse.ArgumentParser(prog="gpu_trace", description=__doc__.splitlines()[0])
    parser.add_argument("--ship", action="store_true", help=f"write {SHIPPED.name} beside the lab's other material")
    args = parser.parse_args(argv)
    trace = shaped(recorded_events(), torch.cuda.get_device_name(), torch.__version__)
    if args.ship:
        SHIPPED.write_bytes(packed(trace))
    return summary(trace)


def packed(trace: Mapping[str, Any]) -> bytes:
    """As the lab loads it; the same trace always gives the same bytes."""
    return gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), mtime=0)


def summary(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Where the trace comes from, how many events of which category it has, and how long its steps were."""
    events = trace["traceEvents"]
    steps = [event for event in events if event["cat"] == "user_annotation" and "ProfilerStep" in event["name"]]
    return {
        "origin": trace["origin"],
        "first_step": trace["first_step"],
        "events": dict(Counter(event["cat"] for event in events).most_common()),
        "step_ms": [round(event["dur"] / 1e3, 3) for event in steps],
    }


def recorded_events() -> list[dict[str, Any]]:
    """All events of N_STEPS training steps, the first ones included."""
    torch.manual_seed(0)
    net = Net().cuda()
    optimizer = torch.optim.AdamW(net.parameters(), fused=False, foreach=True)
    batches = [torch.randint(0, N_WORDS, (BATCH, LENGTH + 1)).pin_memory() for _ in range(N_STEPS + 1)]
    side, here = torch.cuda.Stream(), torch.cuda.current_stream()
    words = batches[0].cuda()
    # Only with a schedule are steps labelled; without warm-up, for the lab wants to see the first ones too.
    with warnings.catch_warnings(action="ignore"):
        schedule = torch.profiler.schedule(wait=0, warmup=0, active=N_STEPS, repeat=1)
    with torch.profiler.profile(schedule=schedule, acc_events=True) as profiler:
        for step in range(N_STEPS):
            with torch.cuda.stream(side):
                coming = batches[step + 1].cuda(non_blocking=True)
            optimizer.zero_grad()
            loss = net(words)
            loss.backward()
            optimizer.step()
            loss.item()
            here.wait_stream(side)
            coming.record_stream(here)
            words = coming
            profiler.step()
    return events_of(profiler)


def shaped(events: Iterable[Mapping[str, Any]], device: str, version: str) -> dict[str, Any]:
    """The trace as the lab loads it: the kept categories and fields, times from 0 on, where it comes from in words."""
    kept = [event for event in events if event.get("ph") == "X" and event.get("cat") in KEPT]
    if not any(event["cat"] == "kernel" for event in kept):
        raise RuntimeError("the profiler saw no kernel: is CUPTI at hand, and is another profiler using the GPU?")
    first_us = min(event["ts"] for event in kept)
    return {
        "origin": (
            f"A real GPU: {N_STEPS} training steps of a transformer with {N_LAYERS} layers of width {WIDTH} on one "
            f"{device}, recorded by torch.profiler of PyTorch {version} with `python -m benchmarks --only gpu_trace`. "
            f"The first {FIRST_STEADY} steps are not steady."
        ),
        "first_step": FIRST_STEADY,
        "traceEvents": [
            {
                **{key: event[key] for key in ("ph", "cat", "name", "pid", "tid")},
                "ts": round(event["ts"] - first_us, 3),
                "dur": round(event["dur"], 3),
                "args": {key: event["args"][key] for key in KEPT_ARGS if key in event.get("args", {})},
            }
            for event in kept
        ],
    }
