"""The model of the caching allocator against the real one, on random requests. Needs a GPU."""

from __future__ import annotations

import random

import pytest
import torch

from labkit.simdevice import CachingAllocator
from labkit.spec import MiB

pytestmark = pytest.mark.gpu
NAMES = ("allocated_bytes.all.current", "reserved_bytes.all.current", "num_device_alloc", "num_device_free")


def real() -> list[int]:
    stats = torch.cuda.memory_stats()
    return [stats.get(name, 0) for name in NAMES]


@pytest.mark.parametrize("seed", range(5))
def test_every_figure_after_every_event(seed: int) -> None:
    rng = random.Random(seed)
    model, live = CachingAllocator(), []
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    before = real()
    # Cached blocks belong to a stream, so a new one begins with none.
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(150):
            choice = rng.random()
            if live and choice < 0.45:
                ticket, block = live.pop(rng.randrange(len(live)))
                del block
                model.free(ticket)
            elif choice < 0.5:
                torch.cuda.empty_cache()
                model.empty_cache()
            else:
                n_bytes = rng.choice(
                    [rng.randint(1, MiB), rng.randint(MiB + 1, 10 * MiB), rng.randint(10 * MiB, 40 * MiB)]
                )
                live.append((model.malloc(n_bytes), torch.empty(n_bytes, dtype=torch.uint8, device="cuda")))
            one = model.figures
            want = [one.allocated_bytes, one.reserved_bytes, one.n_mallocs, one.n_frees]
            assert [now - then for now, then in zip(real(), before, strict=True)] == want
