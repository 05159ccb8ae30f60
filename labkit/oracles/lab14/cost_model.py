"""Lab 14: what the simulated network takes for each all-reduce, and what the usual mistakes look like.

The times of the public cases are stored: they are those of programs that send and receive on the simulator. Students
have this file, so neither the programs nor the formulas stand here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from labkit.exercises.lab14.cost_model import ALGORITHMS, Links
from labkit.exercises.lab14.cost_model import COST_MODEL as EXERCISE
from labkit.oracles.hints import any_of
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance

CLOSE = 1e-9
"""Relative. The simulator adds up the same numbers one by one."""

MEASURED_US = (
    (44_940.0, 19_260.0, 9_630.0, 5_740.0),
    (144.48, 61.92, 30.96, 140.56),
    (409.6, 307.2, 204.8, 145.92),
    (272.8, 99.2, 62.0, 224.4),
    (12_200.0, 12_200.0, 9_150.0, 4_200.0),
    (100.0, 100.0, 50.0, 60.0),
    (0.0, 0.0, 0.0, 0.0),
)
"""Microseconds on the simulator's clock, a row for each public case, in the order of `ALGORITHMS`."""


def expect(run: CaseRun[Links]) -> dict[str, Any]:
    """What was measured in a public case."""
    row = MEASURED_US[EXERCISE.public.index(run.case)]
    return expected(run.case, {name: 1e-6 * time_us for name, time_us in zip(ALGORITHMS, row, strict=True)})


def expected(case: Links, times_s: dict[str, float]) -> dict[str, Any]:
    """The times, and the name of the smallest; a single rank has nothing to choose."""
    return {"times_s": times_s, "fastest": min(times_s, key=times_s.__getitem__) if case.n > 1 else None}


def is_close(a: float, b: float) -> bool:
    """The same time."""
    return math.isclose(a, b, rel_tol=1e-6)


def takes(name: str, formula: Callable[[int, float, float], float]) -> Callable[..., Any]:
    """The answer's time of an algorithm is that of a wrong formula in n, α and Sβ, where that is not the right time."""

    def when(run: CaseRun[Links]) -> Any:
        case = run.case
        wrong_s = formula(case.n, case.alpha_s, case.n_bytes * case.beta_s)
        return CANNOT_TELL if is_close(wrong_s, right_s(run, name)) else is_close(run.got["times_s"][name], wrong_s)

    return when


def any_takes(formula: Callable[[Links, float], float]) -> Callable[..., Any]:
    """A wrong time of the answer is a function of the case and of the rounds of a tree's way up."""

    def when(run: CaseRun[Links]) -> Any:
        wrong = [time_s for name, time_s in run.got["times_s"].items() if not is_close(time_s, right_s(run, name))]
        rounds = {1, 2, run.case.n - 1, 2 * (run.case.n - 1), *_levels(run.case.n)}
        found = any(is_close(time_s, formula(run.case, number)) for time_s in wrong for number in rounds)
        return found if wrong else CANNOT_TELL

    return when


def right_s(run: CaseRun[Links], name: str) -> float:
    """The time of an algorithm on the simulator's clock."""
    return run.expected["times_s"][name]


def one_alpha(n_chunks: int) -> Callable[[Links, float], float]:
    """Many rounds, each with a chunk of the tensor, and the latency of one."""
    return lambda case, rounds: case.alpha_s + rounds * case.n_bytes / n_chunks * case.beta_s


def _levels(n: int) -> set[float]:
    """Counts of rounds that come from halving: rounded down, up, with two more, and back again."""
    down, up = math.floor(math.log2(n)), math.ceil(math.log2(n))
    return {down, up, down + 2, 2 * down, 2 * up}


def is_power_of_two(n: int) -> bool:
    """Whether halving n comes to 1 without a rest."""
    return n & (n - 1) == 0


def other_rounds(run: CaseRun[Links]) -> bool:
    """Each time is that of a whole number of the algorithm's messages, and the fastest is the one by these times. So
    what is wrong is a number of rounds."""
    case = run.case
    chunk_s = case.alpha_s + case.n_bytes / case.n * case.beta_s
    rounds = [time_s / (chunk_s if name == "ring" else message_s(case)) for name, time_s in run.got["times_s"].items()]
    return all(abs(number - round(number)) < 1e-6 for number in rounds) and chosen(run, min)


def chosen(run: CaseRun[Links], which: Callable) -> bool:
    """The name is the one that `which` (min or max) finds by the answer's own times."""
    return run.got["fastest"] == which(run.got["times_s"], key=run.got["times_s"].__getitem__)


COST_MODEL = Oracle(
    id="14-cost-model",
    places={f"times_s.{name}": f'all_reduce_time("{name}", ...)' for name in ALGORITHMS} | {"fastest": "fastest(...)"},
    expect=expect,
    tolerance=Tolerance(rtol=CLOSE),
    diagnose=(
        Hint(
            lambda run: None in run.got["times_s"].values(),
            "For some algorithm nothing is returned: there are four names, and a time for each.",
        ),
        Hint(
            any_takes(lambda case, rounds: rounds * (case.alpha_s + case.n_bytes / max(case.beta_s, 1e-30))),
            "β is in seconds per byte: multiply the bytes by it. A bandwidth, in bytes per second, would divide.",
        ),
        Hint(
            any_takes(lambda case, rounds: rounds * (case.alpha_s + 4 * case.n_bytes * case.beta_s)),
            "n_bytes are bytes already: there is no size of an element to multiply with.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) * (alpha + bytes_s)),
            "In a round of the ring a rank sends one of n chunks, not the whole tensor.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) * (alpha + bytes_s / max(n - 1, 1))),
            "The tensor is cut into n chunks, one for every rank, and not into n - 1.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: (n - 1) * (alpha + bytes_s / n)),
            "The ring goes round twice: once to add up, once to pass the sums on.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) / n * (alpha + bytes_s)),
            "Cutting the tensor makes the messages smaller, not fewer: only the bytes are divided by n, and α is paid "
            "in full in every round.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * alpha + 2 * (n - 1) / n * bytes_s),
            "α is paid for every message, so in every round, and not once for each way round the ring.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) * (alpha + 2 * bytes_s / n)),
            "In a round of the ring a rank sends one chunk, S/n. That there are two halves is counted in the rounds.",
        ),
        Hint(
            any_of(
                takes("tree", lambda n, alpha, bytes_s: 2 * math.ceil(math.log2(n)) * (alpha + bytes_s / n)),
                takes("butterfly", lambda n, alpha, bytes_s: math.ceil(math.log2(n)) * (alpha + bytes_s / n)),
            ),
            "Only the ring cuts the tensor into chunks. In a tree and in a butterfly each message is the whole tensor.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) * (alpha + 2 * (n - 1) / n * bytes_s)),
            "2(n-1)/n S is what a rank of the ring sends in all rounds together. In one round it sends a chunk.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * (n - 1) * (alpha + (n - 1) / n * bytes_s)),
            "(n-1)/n S is what a rank of the ring sends in all rounds of one half together. In one round it sends a "
            "chunk.",
        ),
        Hint(
            takes("ring", lambda n, alpha, bytes_s: 2 * n * (alpha + bytes_s / n)),
            "After n - 1 steps each chunk has visited every rank: each half takes n - 1 rounds, not n.",
        ),
        Hint(
            takes("naive", lambda n, alpha, bytes_s: 2 * alpha + 2 * (n - 1) * bytes_s),
            "Rank 0 exchanges n - 1 messages each way, one after the other, and α is paid for every one of them.",
        ),
        Hint(
            lambda run: any_takes(one_alpha(1))(run) or any_takes(one_alpha(run.case.n))(run),
            "α is paid for every message, so in every round, and not once for the whole all-reduce.",
        ),
        Hint(
            takes("naive", lambda n, alpha, bytes_s: (n - 1) * (alpha + bytes_s)),
            "In the naive way rank 0 receives from all others and then sends to all others: it is a round for each.",
        ),
        Hint(
            takes("naive", lambda n, alpha, bytes_s: 2 * (alpha + bytes_s)),
            "Rank 0 has one port in and one port out: the messages of the others queue there, one after the other.",
        ),
        Hint(
            takes("naive", lambda n, alpha, bytes_s: 2 * n * (alpha + bytes_s)),
            "Rank 0 does not send to itself: the others are n - 1.",
        ),
        Hint(
            takes("tree", lambda n, alpha, bytes_s: math.ceil(math.log2(n)) * (alpha + bytes_s)),
            "A tree is gone up to add and down again to tell everybody: its height counts twice.",
        ),
        Hint(
            lambda run: (
                not is_power_of_two(run.case.n)
                and is_close(run.got["times_s"]["tree"], 2 * math.floor(math.log2(run.case.n)) * message_s(run.case))
            ),
            "A tree over a number of ranks that is no power of two has one level more, not less: round log2(n) up.",
        ),
        Hint(
            lambda run: (
                not is_power_of_two(run.case.n)
                and any_takes(lambda case, rounds: rounds * math.log2(case.n) * message_s(case))(run)
            ),
            "Rounds are whole numbers, and log2(n) is not whole for every n. Is it rounded up or down?",
        ),
        Hint(
            lambda run: (
                not is_power_of_two(run.case.n)
                and any(
                    is_close(run.got["times_s"]["butterfly"], rounds * message_s(run.case))
                    for rounds in (math.floor(math.log2(run.case.n)), math.ceil(math.log2(run.case.n)))
                )
            ),
            "Where n is no power of two, some ranks have no partner. They send their tensors before the exchanges and "
            "get the sum after them, one round each.",
        ),
        Hint(
            lambda run: (
                is_power_of_two(run.case.n)
                and is_close(run.got["times_s"]["butterfly"], (math.log2(run.case.n) + 2) * message_s(run.case))
            ),
            "Where n is a power of two every rank has a partner in every round, and nobody is left over: no more "
            "rounds than log2(n).",
        ),
        Hint(
            takes("butterfly", lambda n, alpha, bytes_s: 2 * math.ceil(math.log2(n)) * (alpha + bytes_s)),
            "Both partners add, so after the last exchange every rank has the sum: a butterfly has no way down.",
        ),
        Hint(
            lambda run: (
                run.case.alpha_s > 0 and any_takes(lambda case, rounds: rounds * case.n_bytes * case.beta_s)(run)
            ),
            "Where is α? Every message costs it before its first byte arrives.",
        ),
        Hint(
            any_takes(lambda case, rounds: rounds * case.alpha_s * case.n_bytes * case.beta_s),
            "A message of k bytes takes α + kβ: its latency is added to the time of its bytes.",
        ),
        Hint(
            any_takes(
                lambda case, rounds: rounds * case.alpha_s + case.n_bytes * case.beta_s if rounds != 1 else math.nan
            ),
            "A message takes α + kβ, and in every round there is one: the number of rounds multiplies both.",
        ),
        Hint(
            lambda run: max(run.got["times_s"].values()) > 100 * 2 * run.case.n * message_s(run.case),
            "That is far too long. α is in seconds, β in seconds per byte, and the time is asked for in seconds.",
        ),
        Hint(
            other_rounds,
            "For some algorithm the number of rounds is wrong. Divide its time by that of one message, and compare "
            "with the rounds in the figure of your own function.",
        ),
        Hint(
            lambda run: chosen(run, max),
            "That is the slowest. The times are right: take the name of the smallest.",
        ),
        Hint(
            lambda run: run.got["fastest"] not in ALGORITHMS and run.case.n > 1,
            'fastest returns one of the four names: "naive", "tree", "butterfly" or "ring".',
        ),
        Hint(
            lambda run: run.case.n > 1 and not chosen(run, min),
            "By the times that your own all_reduce_time returns another one is faster here. There is no size of tensor "
            "from which one always wins: it depends on n, α and β. Compare the four times.",
        ),
    ),
)


def message_s(case: Links) -> float:
    """The time of a message with the whole tensor."""
    return case.alpha_s + case.n_bytes * case.beta_s
