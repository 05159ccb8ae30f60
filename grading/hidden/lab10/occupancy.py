"""Lab 10: hidden kernels and chips."""

from __future__ import annotations

import random

from grading.hidden import Hidden
from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab10.chips import CHIPS, Chip
from labkit.oracles.lab10.occupancy import (
    bandwidth_share,
    chosen_by,
    first_largest,
    on_sm,
    shares,
    shares_of_lanes,
)
from labkit.oracles.lab10.sm import Rules, resident_blocks

RULES = (
    Rules(register_unit=1),
    Rules(schedulers=1),
    Rules(reserved_bytes=0),
    Rules(shared_unit=1),
    Rules(limits_blocks=False),
    Rules(limits_warps=False),
    Rules(limits_registers=False),
    Rules(limits_shared=False),
)
A_THOUSAND = Rules(reserved_bytes=1000)
USUAL = ("occupancy", "bytes", "last", "block", "full")
"""Of the mistaken choices those that each choice tells apart."""
BUSY = (1, 0.05)
"""The share of the bandwidth that the kernels of a choice reach: all of it, or at most all but this."""


def kernels(rng: random.Random) -> tuple[Call, ...]:
    """Kernels for which one rule counts each; grids beside the end of a wave; choices that tell mistakes apart."""
    names = list(CHIPS)
    return (
        *(Call("resident", limited(rng, rng.choice(names), rule)) for rule in RULES),
        *(Call("resident", (rng.choice((128, 160, 256, 384)), rng.randint(33, 160), 0, name)) for name in names),
        Call("resident", (32 * rng.randint(2, 9) - rng.randint(1, 30), rng.randint(33, 60), 2048, rng.choice(names))),
        Call("resident", partly_filled(rng, name := rng.choice(names))),
        Call("resident", with_few_registers(rng, name := rng.choice(names))),
        Call("resident", (1024, rng.randint(65, 255), 0, rng.choice(names))),
        Call("resident", (64, 32, just_past_a_unit(rng, CHIPS[name := rng.choice(names)]), name)),
        *(grid(rng, name, more) for name, more in zip(rng.sample(names, 3), (0, 1, rng.randint(2, 60)), strict=True)),
        *(flight(rng, name, busy) for name, busy in zip(rng.sample(names, 4), (True, False) * 2, strict=True)),
        *(Call("fastest", (choice(rng, CHIPS[name]), name)) for name in rng.sample(names, 3)),
        *(Call("fastest", (pair, rng.choice(names))) for pair in told_apart(rng)),
        Call("fastest", (with_idle_lanes(rng, CHIPS[name := rng.choice(names)]), name)),
    )


def limited(rng: random.Random, name: str, rule: Rules) -> tuple[int, int, int, str]:
    """A kernel of which another number of blocks would fit under this rule, and under no two rules the same."""
    while True:
        threads = 32 * (rng.randint(1, 4) if rule.shared_unit == 1 or not rule.limits_blocks else rng.randint(1, 16))
        # Just below what lets so many blocks fit, where units of 128 bytes count.
        tight = CHIPS[name].shared_bytes // rng.randint(5, 20) - 1024 - rng.randint(0, 40)
        registers = rng.randint(16, 40 if rule.shared_unit == 1 else 180)
        resources = threads, registers, rng.choice((0, tight, rng.randint(900, 40000)))
        right, wrong = (resident_blocks(*resources, CHIPS[name], one) for one in (Rules(), rule))
        others = [resident_blocks(*resources, CHIPS[name], one) for one in (*RULES, A_THOUSAND) if one != rule]
        if right and wrong not in (right, *others):
            return (*resources, name)


def with_few_registers(rng: random.Random, name: str) -> tuple[int, int, int, str]:
    """A kernel of which more blocks would fit if an SM had room for so many threads, and not for so many warps."""
    while True:
        resources = 32 * rng.randint(3, 8) - rng.randint(10, 28), rng.randint(16, 32), 0
        by_threads = CHIPS[name].max_warps * 32 // resources[0]
        others = resident_blocks(*resources, CHIPS[name], Rules(limits_warps=False))
        if resident_blocks(*resources, CHIPS[name]) < min(by_threads, others):
            return (*resources, name)


def just_past_a_unit(rng: random.Random, chip: Chip) -> int:
    """Bytes of a block with which one more would fit if the system reserved 1,000 bytes and not 1,024; two, if none."""
    while True:
        n_blocks, over = rng.randint(5, 14), rng.randint(1, 24)
        units = chip.shared_bytes // n_blocks // 128 * 128
        if (units + over) * n_blocks > chip.shared_bytes >= (units + 128 - 1024) * (n_blocks + 1):
            return units + over - 1024


def partly_filled(rng: random.Random, name: str) -> tuple[int, int, int, str]:
    """A kernel of which another number of blocks would fit if a block's last warp took only what its threads take."""
    while True:
        threads, registers = 32 * rng.randint(2, 4) - rng.randint(8, 28), rng.randint(64, 168)
        right = resident_blocks(threads, registers, 0, CHIPS[name])
        without, full = (resident_blocks(32 * n, registers, 0, CHIPS[name]) for n in (threads // 32, 1))
        if right < min(without, int(full * 32 / threads)):
            return threads, registers, 0, name


def grid(rng: random.Random, name: str, more: int) -> Call:
    """So many blocks beyond some full waves."""
    n_resident = rng.randint(2, 8)
    return Call("waves", (rng.randint(2, 5) * n_resident * CHIPS[name].n_sms + more, n_resident, name))


def flight(rng: random.Random, name: str, busy: bool) -> Call:
    """Loads that do or do not keep the memory busy."""
    while True:
        n_threads, loads, load_bytes = 32 * rng.randint(2, 48), rng.randint(2, 6), rng.choice((2, 4, 8, 16))
        if (bandwidth_share(n_threads, loads, load_bytes, CHIPS[name]) == 1) == busy:
            return Call("in_flight", (n_threads, loads, load_bytes, name))


def choice(rng: random.Random, chip: Chip) -> tuple[tuple[int, ...], ...]:
    """Kernels of which each of the usual mistakes chooses another one."""
    while True:
        drawn = [
            (256, 32, 0, 1, rng.choice((1, 2))),
            (32 * rng.randint(16, 24), rng.randint(41, 64), 0, 1, rng.choice((2, 4, 8))),
            (32, 64, rng.randint(50, 99) * 1024, 8, 16),
            (32, rng.randint(32, 64), 0, 1, 1),
            *((64 * rng.randint(1, 2), rng.randint(64, 168), 0, rng.randint(1, 5), 16) for _ in range(3)),
        ]
        rng.shuffle(drawn)
        found = tuple(drawn)
        reached = shares(found, chip)
        chosen = {chosen_by(mistake, found, chip) for mistake in USUAL}
        top = [on_sm(one, chip) * one[3] * one[4] for one, share in zip(found, reached, strict=True) if share == 1]
        clear = all(share == 1 or share < 0.97 for share in reached) and len(set(top)) > 1
        if clear and len(chosen) == len(USUAL) and first_largest(reached) not in chosen:
            return found


def told_apart(rng: random.Random) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Two kernels each, of which few mistakes choose the second: one load a thread, or blocks taken for threads."""
    n_bytes = rng.choice((1, 2))
    registers = rng.randint(20, 32)
    return (
        ((256, registers, 0, 3, n_bytes), (256, registers, 0, 1, 2 * n_bytes)),
        ((512, registers, 0, 1, 2 * n_bytes), (64, registers, 0, 1, n_bytes)),
    )


def with_idle_lanes(rng: random.Random, chip: Chip) -> tuple[tuple[int, ...], ...]:
    """Two kernels, of which the first would be ahead if its idle lanes had loads in flight, too."""
    while True:
        # Shared memory limits the blocks, so that no mistake about warps and registers shows.
        shared_bytes = chip.shared_bytes // rng.randint(3, 6) - 2048
        odd = (32 * rng.randint(2, 4) - rng.randint(8, 24), 32, shared_bytes, 2, 4)
        found = (odd, (64, rng.randint(40, 128), 0, rng.randint(1, 2), 4))
        (odd_share, share), (odd_lanes, lanes) = shares(found, chip), shares_of_lanes(found, chip)
        if odd_share < 0.97 * share and lanes < 0.97 * odd_lanes:
            return found


OCCUPANCY = Hidden("10-occupancy", kernels)
