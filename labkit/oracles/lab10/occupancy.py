"""Lab 10: what is true of occupancy, waves and bytes in flight, and what the usual mistakes make of them."""

from __future__ import annotations

from collections.abc import Callable

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab10.chips import Chip
from labkit.exercises.lab10.occupancy import OCCUPANCY_FUNCTIONS, arguments_of
from labkit.oracles.calls import as_call
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab01.function_calls import is_blank
from labkit.oracles.lab10.occupancy_answers import (
    bandwidth_share,
    first_largest,
    on_sm,
    shares,
    true_result,
)
from labkit.oracles.lab10.occupancy_resident import RESIDENT_HINTS, near, of
from labkit.oracles.lab10.sm import in_use, resident_blocks
from labkit.simt.lanes import WARP
from labkit.spec import CaseRun, Hint, Observation, Oracle, Rivals, Tolerance


def pair_is(function: str, place: int, wrong: Callable[[tuple, list], float]) -> Callable[[CaseRun[Call]], object]:
    """One number of two is what this mistake makes, and differs from what is right."""

    def when(args: tuple, right: list, got: list) -> object:
        made = wrong(args, right)
        return near(float(got[place]), made) and not near(made, right[place])

    return of(function, when)


def room_in_one_wave(args: tuple, right: list, got: list) -> bool:
    """The blocks over the room in one wave, or at most 1, beside the right number of waves."""
    found = args[0] / (args[1] * args[2].n_sms)
    return (
        got[0] == right[0] and not near(got[1], right[1]) and any(near(got[1], one) for one in (found, min(1.0, found)))
    )


def needed(chip: Chip) -> float:
    return chip.bytes_per_s * chip.latency_s / chip.n_sms


def shares_of_lanes(kernels: tuple, chip: Chip) -> list[float]:
    """The shares if lanes without a thread had loads in flight, too."""
    lanes = [resident_blocks(*one[:3], chip) * WARP * -(-one[0] // WARP) for one in kernels]
    return [bandwidth_share(n, *one[3:], chip) for n, one in zip(lanes, kernels, strict=True)]


def chosen_by(mistake: str, kernels: tuple, chip: Chip) -> int:
    """The index that one of `MISTAKEN_CHOICES` returns."""
    values = [round(value, 12) for value in MISTAKEN_CHOICES[mistake](kernels, chip)]
    best = [i for i, value in enumerate(values) if value == max(values)]
    return best[-1 if mistake == "last" else 0]


MISTAKEN_CHOICES: dict[str, Callable[[tuple, Chip], list[float]]] = {
    "occupancy": lambda kernels, chip: [resident_blocks(*one[:3], chip) * -(-one[0] // 32) for one in kernels],
    "bytes": lambda kernels, chip: [on_sm(one, chip) * one[3] * one[4] for one in kernels],
    "last": shares,
    "block": lambda kernels, chip: [one[0] * one[3] * one[4] for one in kernels],
    "full": lambda kernels, chip: [one[3] * one[4] for one in kernels],
    "least": lambda kernels, chip: [-share for share in shares(kernels, chip)],
    "blocks": lambda kernels, chip: [
        bandwidth_share(resident_blocks(*one[:3], chip), *one[3:], chip) for one in kernels
    ],
    "one load": lambda kernels, chip: [bandwidth_share(on_sm(one, chip), 1, one[4], chip) for one in kernels],
}
"""What is compared instead of the shares of the bandwidth."""


def choice_is(mistake: str) -> Callable[[CaseRun[Call]], object]:
    return of("fastest", lambda args, right, got: got == chosen_by(mistake, *args) and is_index(got))


def is_index(got: object) -> bool:
    return isinstance(got, int)


def one_case(run: Observation) -> str:
    """The call that the case makes, a chip by its name and a list of kernels as a list."""
    given = [list(one) if isinstance(one, tuple) else one for one in arguments_of(run.case)]
    return as_call(run.case.function, *given)


def what_it_takes(run: CaseRun[Call]) -> str | None:
    """Of a wrong number of blocks: what these would take of the SM."""
    if (
        run.case.function != "resident"
        or not 0 <= run.got["out"][0] < 10**6
        or run.got["out"][0] == int(run.expected["out"][0])
    ):
        return None
    n_blocks, right = int(run.got["out"][0]), int(run.expected["out"][0])
    if n_blocks < right:
        return f"there is room for more: {right} of these blocks take {in_use(right, *arguments_of(run.case))}"
    return f"{n_blocks} of these blocks take {in_use(n_blocks, *arguments_of(run.case))}"


WAVES_HINTS = (
    Hint(
        pair_is("waves", 1, lambda args, right: 100 * right[1]),
        "The efficiency is a fraction between 0 and 1, not a percentage.",
    ),
    Hint(
        pair_is("waves", 1, lambda args, right: right[1] * args[2].n_sms),
        "That is the room on one SM: all of the chip's SMs take part in a wave.",
    ),
    Hint(
        of("waves", room_in_one_wave),
        "This divides by the room in one wave. The efficiency is the blocks, over the room in all waves together.",
    ),
    Hint(
        pair_is("waves", 1, lambda args, right: 1 - right[1]),
        "That is the part of the room that stays empty. The efficiency is the part that is filled.",
    ),
    Hint(
        pair_is("waves", 0, lambda args, right: args[0] // (args[1] * args[2].n_sms)),
        "The last wave, which is only partly filled, is missing: round the number of waves up.",
    ),
    Hint(
        pair_is("waves", 0, lambda args, right: args[0] / (args[1] * args[2].n_sms)),
        "A wave that is only partly filled takes as long as a full one: round the number of waves up.",
    ),
    Hint(
        pair_is("waves", 0, lambda args, right: args[0] // (args[1] * args[2].n_sms) + 1),
        "A grid that fills its last wave exactly needs no further one.",
    ),
    Rivals(
        (
            Hint(
                pair_is("waves", 0, lambda args, right: -(-args[0] // args[2].n_sms)),
                "Every SM runs `n_resident` blocks at the same time, not one.",
            ),
            Hint(
                pair_is("waves", 0, lambda args, right: -(-args[0] // args[1])),
                "All SMs of the chip work at the same time: a wave has `n_resident` blocks on each of them.",
            ),
        )
    ),
    Hint(
        pair_is("waves", 1, lambda args, right: 1 / right[1]),
        "The efficiency is upside down: the blocks that there are, over those that the waves have room for.",
    ),
    *(
        Hint(
            pair_is("waves", 1, full),
            "That is how full the last wave is. The efficiency is about all of them: blocks over room in all waves.",
        )
        for full in (
            lambda args, right: ((args[0] - 1) % (args[1] * args[2].n_sms) + 1) / (args[1] * args[2].n_sms),
            lambda args, right: args[0] % (args[1] * args[2].n_sms) / (args[1] * args[2].n_sms),
        )
    ),
)
IN_FLIGHT_HINTS = (
    Rivals(
        (
            Hint(
                pair_is("in_flight", 0, lambda args, right: args[0] * args[2]),
                "A thread has `loads` loads in flight, not one.",
            ),
            Hint(
                pair_is("in_flight", 0, lambda args, right: args[0] * args[1]),
                "That is the number of loads: each is of `load_bytes` bytes.",
            ),
            Hint(
                pair_is("in_flight", 0, lambda args, right: right[0] / 32),
                "This counts a load for each warp: `load_bytes` is what one thread loads, and `n_threads` are threads.",
            ),
            Hint(
                pair_is("in_flight", 0, lambda args, right: right[0] * args[3].n_sms),
                "That is what the whole chip has in flight; asked for is one SM.",
            ),
        )
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: 100 * right[1]),
        "The share is a fraction between 0 and 1, not a percentage.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: right[0] / args[3].latency_s),
        "Those are the bytes that one SM gets in a second. The share compares them with the SM's part of "
        "`bytes_per_s`.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: max(1.0, right[0] / needed(args[3]))),
        "The share is at most 1: take the smaller of the two, not the larger.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: min(1.0, args[0] / (WARP * args[3].max_warps))),
        "That is the occupancy. The share is the bytes in flight, over those that the memory needs in flight.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: min(1.0, right[0] * args[3].latency_s ** 2 / needed(args[3]))),
        "The bytes that have to be in flight are bandwidth times latency, not bandwidth divided by latency.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: min(1.0, right[0] / needed(args[3]) / args[3].n_sms ** 2)),
        "bandwidth · latency is what the whole chip needs in flight: divide it among its SMs, where this multiplies.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: right[0] / needed(args[3])),
        "No more arrives than the memory delivers: the share is at most 1.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: min(1.0, right[0] / (needed(args[3]) * args[3].n_sms))),
        "bandwidth · latency is what the whole chip needs in flight: divide it among its SMs.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: min(1.0, right[0] / (args[3].bytes_per_s / args[3].n_sms))),
        "The latency is missing: what has to be in flight is bandwidth · latency, the bytes that arrive while a load "
        "is on its way.",
    ),
    Hint(
        pair_is("in_flight", 1, lambda args, right: needed(args[3]) / right[0]),
        "The share is upside down: the bytes in flight, over those that it takes.",
    ),
)
FASTEST_HINTS = (
    Hint(
        of("fastest", lambda args, right, got: not is_index(got) and near(float(got), max(shares(*args)))),
        "That is the share that the fastest kernel reaches: return the kernel's index.",
    ),
    # Not one of the rivals: whoever makes one of their mistakes fails the other choices as well.
    Hint(
        of("fastest", lambda args, right, got: int(got) == first_largest(shares_of_lanes(*args))),
        "Only threads have loads in flight: a block of 100 threads takes the room of 128, but the 28 idle "
        "lanes load nothing.",
    ),
    Rivals(
        (
            Hint(
                choice_is("occupancy"),
                "That is the kernel with the highest occupancy. What counts is how many bytes are in flight: fewer "
                "threads with more or wider loads each may have more.",
            ),
            Hint(
                choice_is("bytes"),
                "Once the memory delivers all it can, more bytes in flight gain nothing: of kernels with equal shares, "
                "return the first.",
            ),
            Hint(choice_is("last"), "Of kernels with equal shares, return the first one, not the last."),
            Hint(
                choice_is("block"),
                "Those are the bytes in flight of one block: an SM holds as many blocks as `resident` says.",
            ),
            Hint(
                choice_is("full"),
                "An SM is not full of threads of each kernel: take as many blocks as `resident` says.",
            ),
        )
    ),
    # These may choose as one of the rivals do, except where the two kernels are drawn that tell them apart.
    Hint(
        choice_is("blocks"),
        "`in_flight` takes threads: those of all blocks on an SM, and not the number of blocks.",
    ),
    Hint(choice_is("one load"), "Each thread has as many loads in flight as its kernel's `loads` says."),
    Hint(
        choice_is("least"),
        "That is the kernel with the smallest share of the bandwidth: return the one with the largest.",
    ),
)

OCCUPANCY = Oracle(
    id="10-occupancy",
    expect=true_result,
    tolerance=Tolerance(rtol=1e-6),
    call=one_case,
    places={"out.0": "first number", "out.1": "second number"},
    diagnose=(
        *not_written_yet(OCCUPANCY_FUNCTIONS, is_blank),
        *RESIDENT_HINTS,
        *WAVES_HINTS,
        *IN_FLIGHT_HINTS,
        *FASTEST_HINTS,
    ),
    errors={
        "division or modulo by zero": "The system reserves 1,024 bytes of shared memory for each block, also where its "
        "kernel asks for none.",
    },
    fact=what_it_takes,
    axis="other chips, and kernels that something else limits",
)
