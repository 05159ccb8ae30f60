"""Lab 10: hidden kernels and chips."""

from __future__ import annotations

import itertools
import random

from grading.hidden import Hidden, drawn
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
from labkit.oracles.lab10.occupancy_answers import ALL
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
RESERVED = (ALL, Rules(shared_unit=1), A_THOUSAND, Rules(reserved_bytes=0))
USUAL = ("occupancy", "bytes", "last", "block", "full")
"""Of the mistaken choices those that each choice tells apart."""
Kernel = tuple[int, int, int, str]
"""Threads of a block, registers of a thread, bytes of shared memory of a block, name of the chip."""


def blocks(kernel: Kernel, rule: Rules = ALL) -> int:
    """As many of its blocks fit on an SM under this rule."""
    *resources, name = kernel
    return resident_blocks(*resources, CHIPS[name], rule)


def kernels(rng: random.Random) -> tuple[Call, ...]:
    """Kernels for which one rule counts each; grids beside the end of a wave; choices that tell mistakes apart."""
    names = list(CHIPS)
    return (
        *(Call("resident", limited(rng, rng.choice(names), rule)) for rule in RULES),
        *(Call("resident", with_registers_between_units(rng, name)) for name in names),
        Call("resident", (32 * rng.randint(2, 9) - rng.randint(1, 30), rng.randint(33, 60), 2048, rng.choice(names))),
        Call("resident", partly_filled(rng, rng.choice(names))),
        Call("resident", with_few_registers(rng, rng.choice(names))),
        Call("resident", (1024, rng.randint(65, 255), 0, rng.choice(names))),
        # Registers have room for fewer warps than the chip has for blocks.
        Call("resident", (64, rng.randint(136, 168), 0, rng.choice(names))),
        Call("resident", just_past_a_unit(rng, rng.choice(names))),
        *(grid(rng, name, more) for name, more in zip(rng.sample(names, 3), (0, 1, rng.randint(2, 60)), strict=True)),
        *(flight(rng, name, busy) for name, busy in zip(rng.sample(names, 4), (True, False) * 2, strict=True)),
        *(Call("fastest", (choice(rng, CHIPS[name]), name)) for name in rng.sample(names, 3)),
        *(Call("fastest", (pair, rng.choice(names))) for pair in told_apart(rng)),
        Call("fastest", (with_idle_lanes(rng, CHIPS[name := rng.choice(names)]), name)),
    )


def limited(rng: random.Random, name: str, rule: Rules) -> Kernel:
    """A kernel of which another number of blocks would fit under this rule, and under no two rules the same."""

    def draw() -> Kernel:
        threads = 32 * (rng.randint(1, 4) if rule.shared_unit == 1 or not rule.limits_blocks else rng.randint(1, 16))
        # Just below what lets so many blocks fit, where units of 128 bytes count.
        tight = CHIPS[name].shared_bytes // rng.randint(5, 20) - 1024 - rng.randint(0, 40)
        registers = rng.randint(16, 40 if rule.shared_unit == 1 else 180)
        return threads, registers, rng.choice((0, tight, rng.randint(900, 40000))), name

    def tells(kernel: Kernel) -> bool:
        right, wrong = blocks(kernel), blocks(kernel, rule)
        return right > 0 and wrong not in (right, *(blocks(kernel, one) for one in (*RULES, A_THOUSAND) if one != rule))

    return drawn(draw, tells)


def with_few_registers(rng: random.Random, name: str) -> Kernel:
    """A kernel of which more blocks would fit if an SM had room for so many threads, and not for so many warps."""

    def tells(kernel: Kernel) -> bool:
        by_threads = CHIPS[name].max_warps * 32 // kernel[0]
        by_registers = blocks(kernel, Rules(limits_warps=False))
        return blocks(kernel) < min(by_threads, by_registers) and by_threads != by_registers

    return drawn(lambda: (32 * rng.randint(3, 8) - rng.randint(10, 28), rng.randint(16, 32), 0, name), tells)


def with_registers_between_units(rng: random.Random, name: str) -> Kernel:
    """A kernel of which more blocks would fit if registers were rounded down, and not as many as if none were."""

    def tells(kernel: Kernel) -> bool:
        warps, registers, of_all = kernel[0] // 32, kernel[1], CHIPS[name].registers
        others = blocks(kernel, Rules(limits_registers=False))
        down = min(others, of_all // 4 // (32 * registers // 256 * 256) * 4 // warps)
        return blocks(kernel) < down != min(others, of_all // (32 * registers * warps))

    return drawn(lambda: (rng.choice((128, 160, 256, 384)), rng.randint(33, 160), 0, name), tells)


def just_past_a_unit(rng: random.Random, name: str) -> Kernel:
    """A kernel of which one more would fit if the system reserved 1,000 bytes and not 1,024, two or more if none or
    1,024 once for all, and not one if memory came byte by byte.
    """
    told = []
    for n_blocks, over in itertools.product(range(5, CHIPS[name].max_blocks), range(1, 25)):
        kernel = 64, 32, CHIPS[name].shared_bytes // n_blocks // 128 * 128 + over - 1024, name
        right, by_bytes, thousand, none = (blocks(kernel, rule) for rule in RESERVED)
        # The formula of whoever sets the system's part aside once for all blocks.
        once = (CHIPS[name].shared_bytes - 1024) // (-(-kernel[2] // 128) * 128)
        if right == by_bytes < thousand < min(once, none):
            told.append(kernel)
    return rng.choice(told)


def partly_filled(rng: random.Random, name: str) -> Kernel:
    """A kernel of which more blocks would fit if a block's last warp took only what its threads take.

    Nobody gets as many who leaves it out, who does not round registers, or who counts warps in place of blocks.
    """

    def tells(kernel: Kernel) -> bool:
        threads, registers, *_ = kernel
        rounded = {blocks(kernel, rule) for rule in (ALL, Rules(schedulers=1), Rules(register_unit=1))}
        without = blocks((threads // 32 * 32, registers, 0, name))
        n_warps = blocks((32, registers, 0, name), Rules(limits_blocks=False))
        parts, whole = (min(CHIPS[name].max_blocks, n) for n in (int(n_warps * 32 / threads), n_warps))
        return len(rounded) == 1 and blocks(kernel) < min(without, parts) and parts < whole

    return drawn(lambda: (32 * rng.randint(2, 4) - rng.randint(8, 28), rng.randint(64, 168), 0, name), tells)


def grid(rng: random.Random, name: str, more: int) -> Call:
    """So many blocks beyond some full waves."""
    n_resident = rng.randint(2, 8)
    return Call("waves", (rng.randint(2, 5) * n_resident * CHIPS[name].n_sms + more, n_resident, name))


def flight(rng: random.Random, name: str, busy: bool) -> Call:
    """Loads that do or do not keep the memory busy."""
    loads = drawn(
        lambda: (32 * rng.randint(2, 48), rng.randint(2, 6), rng.choice((2, 4, 8, 16))),
        lambda loads: (bandwidth_share(*loads, CHIPS[name]) == 1) == busy,
    )
    return Call("in_flight", (*loads, name))


def choice(rng: random.Random, chip: Chip) -> tuple[tuple[int, ...], ...]:
    """Kernels of which each of the usual mistakes chooses another one."""

    def draw() -> tuple[tuple[int, ...], ...]:
        some = [
            (256, 32, 0, 1, rng.choice((1, 2))),
            (32 * rng.randint(16, 24), rng.randint(41, 64), 0, 1, rng.choice((2, 4, 8))),
            (32, 64, rng.randint(50, 99) * 1024, 8, 16),
            (32, rng.randint(32, 64), 0, 1, 1),
            *((64 * rng.randint(1, 2), rng.randint(40, 96), 0, rng.randint(1, 4), 16) for _ in range(3)),
        ]
        rng.shuffle(some)
        return tuple(some)

    def tells(some: tuple[tuple[int, ...], ...]) -> bool:
        reached = shares(some, chip)
        chosen = {chosen_by(mistake, some, chip) for mistake in USUAL}
        top = [on_sm(one, chip) * one[3] * one[4] for one, share in zip(some, reached, strict=True) if share == 1]
        clear = all(share == 1 or share < 0.97 for share in reached) and len(set(top)) > 1
        return clear and len(chosen) == len(USUAL) and first_largest(reached) not in chosen

    return drawn(draw, tells)


def told_apart(rng: random.Random) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Two kernels each, of which few mistakes choose the second: one load a thread, or blocks taken for threads.

    Loads of one or two bytes, with which no chip's memory is busy: then the first one would be right, too.
    """
    registers = rng.randint(20, 32)
    return (
        ((256, registers, 0, 3, 1), (256, registers, 0, 1, 2)),
        ((512, registers, 0, 1, 2), (64, registers, 0, 1, 1)),
    )


def with_idle_lanes(rng: random.Random, chip: Chip) -> tuple[tuple[int, ...], ...]:
    """Two kernels, of which the first would be ahead if its idle lanes had loads in flight, too."""

    def draw() -> tuple[tuple[int, ...], ...]:
        # Shared memory limits the blocks, so that no mistake about warps and registers shows.
        shared_bytes = chip.shared_bytes // rng.randint(3, 6) - 2048
        odd = (32 * rng.randint(2, 4) - rng.randint(8, 24), 32, shared_bytes, 2, 4)
        return odd, (64, rng.randint(40, 128), 0, rng.randint(1, 2), 4)

    def tells(pair: tuple[tuple[int, ...], ...]) -> bool:
        (odd_share, share), (odd_lanes, lanes) = shares(pair, chip), shares_of_lanes(pair, chip)
        return odd_share < 0.97 * share and lanes < 0.97 * odd_lanes

    return drawn(draw, tells)


OCCUPANCY = Hidden("10-occupancy", kernels)
