"""Lab 10: what the usual mistakes make of the blocks that an SM has room for, and of its occupancy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab10.chips import Chip
from labkit.exercises.lab10.occupancy import arguments_of
from labkit.oracles.lab10.occupancy_answers import ALL
from labkit.oracles.lab10.sm import resident_blocks
from labkit.simt.lanes import WARP
from labkit.spec import CANNOT_TELL, CaseRun, Hint


def near(found: float, wanted: float) -> bool:
    return math.isclose(found, wanted, rel_tol=1e-6)


def of(function: str, when: Callable[[tuple, object, object], object]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of one function: `when` gets (arguments, right, got).

    `fastest` calls two of the others, as a rule, so that a mistake of theirs may show in it.
    """

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function == "fastest" and function in ("resident", "in_flight"):
            return CANNOT_TELL
        return run.case.function == function and when(arguments_of(run.case), run.expected["out"], run.got["out"])

    return diagnose


def filled_by(text: str, **changed: object) -> Hint:
    """A hint on blocks that fit where a rule is forgotten."""
    rules = replace(ALL, **changed)

    def when(args: tuple, right: list, got: list) -> object:
        return right[0] != got[0] == resident_blocks(*args, rules)

    return Hint(of("resident", when), text)


def part_of_a_warp(args: tuple, right: list, got: list) -> object:
    """A warp that is only partly filled was left out, or counted as a part."""
    threads, *others = args
    warps = resident_blocks(WARP, *others, replace(ALL, limits_blocks=False, limits_shared=False))
    played = resident_blocks(threads - threads % WARP, *others), int(warps * WARP / threads)
    if threads % WARP != 0 and got[0] == right[0]:
        return near(float(got[1]), right[0] * (threads // WARP) / args[3].max_warps)
    return threads % WARP != 0 and got[0] in played


def limited_by(resource: str, formula: Callable[[int, int, int, Chip], int]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of a limit by "registers" or "shared" memory that this computes.

    It is called with (threads, registers, shared_bytes, chip). The other limits are right.
    """

    def when(args: tuple, right: list, got: list) -> object:
        others = resident_blocks(*args, replace(ALL, **{f"limits_{resource}": False}))
        return right[0] != got[0] == min(others, formula(*args))

    return of("resident", when)


def warps_of(threads: int) -> int:
    return math.ceil(threads / WARP)


def units(registers: int) -> int:
    """Registers of a warp, in units of 256."""
    return math.ceil(WARP * registers / ALL.register_unit) * ALL.register_unit


def the_loosest(args: tuple, right: list, got: list) -> object:
    """max in place of min."""
    threads, registers, shared_bytes, chip = args
    limits = (
        chip.max_warps // warps_of(threads),
        chip.max_blocks,
        chip.registers // 4 // units(registers) * 4 // warps_of(threads),
        chip.shared_bytes // (math.ceil((shared_bytes + 1024) / 128) * 128),
    )
    return got[0] == max(limits) > right[0]


def rounded_up(args: tuple, right: list, got: list) -> object:
    """min of the limits, the tightest of them rounded up."""
    return got[0] == right[0] + 1 and all(
        resident_blocks(*args, replace(ALL, **{f"limits_{one}": False})) >= right[0] for one in ("registers", "shared")
    )


def occupancy_is(*wrong: Callable[[tuple, list], float]) -> Callable[[CaseRun[Call]], object]:
    """The occupancy is what one of these makes it, of the right number of blocks."""

    def when(args: tuple, right: list, got: list) -> object:
        return got[0] == right[0] and any(near(float(got[1]), one(args, right)) for one in wrong)

    return of("resident", when)


RESIDENT_HINTS = (
    Hint(
        of("resident", lambda args, right, got: tuple(got) == (right[1], right[0])),
        "The two numbers are in the wrong order: return (blocks, occupancy).",
    ),
    Hint(
        of("resident", lambda args, right, got: got[0] == right[0] * warps_of(args[0])),
        "That is the number of warps on the SM: return the number of blocks, and the occupancy.",
    ),
    Hint(
        of("resident", lambda args, right, got: got[0] == right[0] * args[3].n_sms),
        "That is the number of blocks on the whole chip; asked for is one SM.",
    ),
    Hint(
        of("resident", lambda args, right, got: right[0] == 0 < got[0] == 1),
        "A block that takes more of one resource than an SM has never fits: return (0, 0.0) then.",
    ),
    Hint(
        of("resident", the_loosest),
        "All four resources must have room for a block, so the tightest of them decides: take the smallest of the "
        "four numbers.",
    ),
    filled_by(
        "Registers are handed out to a warp in units of 256: 65 registers for each of 32 threads are 2,080, so the "
        "warp takes 2,304. Round the warp's registers up.",
        register_unit=1,
    ),
    filled_by(
        "Each of the SM's four schedulers has its own quarter of the registers, and a warp lives on one scheduler: "
        "count how many whole warps fit into a quarter, times four.",
        schedulers=1,
    ),
    filled_by(
        "The system reserves 1,024 bytes of shared memory for each block, on top of what the kernel asks for.",
        reserved_bytes=0,
    ),
    filled_by("Shared memory is handed out to a block in units of 128 bytes: round up.", shared_unit=1),
    filled_by("The 1 KiB that the system reserves for each block is 1,024 bytes, not 1,000.", reserved_bytes=1000),
    Hint(
        limited_by(
            "shared",
            lambda threads, registers, shared, chip: chip.shared_bytes // max(128, (shared + 1024) // 128 * 128),
        ),
        "Shared memory is handed out to a block in units of 128 bytes: round up, not down.",
    ),
    Hint(
        limited_by(
            "shared",
            lambda threads, registers, shared, chip: (
                (chip.shared_bytes - 1024) // max(1, math.ceil(shared / 128) * 128)
            ),
        ),
        "The system reserves 1,024 bytes of shared memory for each block, not once for the SM.",
    ),
    filled_by(
        "An SM has room for `max_blocks` blocks, however small they are.",
        limits_blocks=False,
    ),
    filled_by("An SM has room for `max_warps` warps, however few registers they need.", limits_warps=False),
    Hint(
        limited_by("registers", lambda threads, registers, shared, chip: chip.registers // 4 // units(registers) * 4),
        "That is how many warps the registers have room for: divide it by the warps of a block.",
    ),
    filled_by(
        "The registers of an SM limit its blocks, too. A warp takes 32 times the registers of a thread, and the SM has "
        "`chip.registers` of them in all.",
        limits_registers=False,
    ),
    Hint(
        limited_by(
            "registers",
            lambda threads, registers, shared, chip: chip.registers * 4 // units(registers) // warps_of(threads),
        ),
        "`chip.registers` are those of the SM: each of its four schedulers has a quarter of them.",
    ),
    filled_by("The shared memory of an SM limits its blocks, too.", limits_shared=False),
    Hint(
        of("resident", part_of_a_warp),
        "A warp that is only partly filled takes the room of a whole one: 100 threads are 4 warps. Round the number of "
        "warps up.",
    ),
    *(
        Hint(
            limited_by("registers", formula),
            "Registers are not handed out one by one: each warp of a block takes 32 times `registers`, rounded up to a "
            "multiple of 256, and has to find them in the quarter of one scheduler. Count the warps that fit into a "
            "quarter.",
        )
        for formula in (
            lambda threads, registers, shared, chip: chip.registers // (registers * threads),
            lambda threads, registers, shared, chip: chip.registers // (registers * WARP * warps_of(threads)),
            lambda threads, registers, shared, chip: chip.registers // (256 * math.ceil(registers * threads / 256)),
        )
    ),
    *(
        Hint(
            limited_by("registers", formula),
            "A block's warps are spread over the four schedulers, and no scheduler needs a whole block or an equal "
            "part of each. Count the warps that fit into a quarter of the registers, times four; only then divide by "
            "the warps of a block.",
        )
        for formula in (
            lambda threads, registers, shared, chip: chip.registers // 4 // (units(registers) * warps_of(threads)) * 4,
            lambda threads, registers, shared, chip: (
                chip.registers // 4 // units(registers) // math.ceil(warps_of(threads) / 4)
            ),
        )
    ),
    Hint(
        limited_by(
            "registers",
            lambda threads, registers, shared, chip: chip.registers // 4 // units(registers) // warps_of(threads),
        ),
        "That is what one of the SM's four schedulers has room for: its registers are a quarter of the SM's.",
    ),
    Hint(
        limited_by(
            "registers",
            lambda threads, registers, shared, chip: (
                chip.registers // 4 // max(256, WARP * registers // 256 * 256) * 4 // warps_of(threads)
            ),
        ),
        "A warp's registers are rounded up to a multiple of 256, not down.",
    ),
    Hint(
        limited_by(
            "registers",
            lambda threads, registers, shared, chip: (
                chip.registers // 4 // (WARP * math.ceil(registers / 256) * 256) * 4 // warps_of(threads)
            ),
        ),
        "Registers come in units of 256 for a warp, not for a thread: round `32 * registers` up.",
    ),
    Hint(
        of("resident", rounded_up),
        "A block of which only a part fits does not start: round the number of blocks down.",
    ),
    Hint(
        occupancy_is(lambda args, right: 100 * right[1]),
        "The occupancy is a fraction between 0 and 1, not a percentage.",
    ),
    Hint(
        occupancy_is(
            lambda args, right: right[0] / args[3].max_blocks,
            lambda args, right: right[0] / args[3].max_warps,
        ),
        "The occupancy counts warps, not blocks: warps on the SM over `max_warps`.",
    ),
    Hint(
        occupancy_is(lambda args, right: 1 / right[1] if right[1] else 0.0),
        "The occupancy is upside down: the warps on the SM, over `max_warps`.",
    ),
    Hint(
        occupancy_is(lambda args, right: right[0] * args[0] / (WARP * args[3].max_warps)),
        "The occupancy counts warps: a warp that is only partly filled with threads takes the room of a whole one.",
    ),
    Hint(
        occupancy_is(
            lambda args, right: right[0] * warps_of(args[0]) / 64,
            lambda args, right: right[0] * args[0] / 2048,
        ),
        "Not every chip has room for 64 warps, or 2048 threads, on an SM: `chip.max_warps` says how many.",
    ),
)
