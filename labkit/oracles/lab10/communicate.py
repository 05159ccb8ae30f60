"""Lab 10: what orders the accesses of a trace, and what remains when one of the rules is taken for another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from labkit.exercises.lab10.communicate import Traces
from labkit.exercises.lab10.traces import Access, Op, Trace, accesses, of_text
from labkit.simt.lanes import WARP
from labkit.spec import CaseRun, Hint, Observation, Oracle


@dataclass(frozen=True)
class Rules:
    """What is true of CUDA; each of the mistakes changes one of them."""

    barriers_order_a_block: bool = True
    barriers_order_blocks: bool = False
    launches_are_ordered: bool = True
    warps_run_in_lockstep: bool = False
    same_thread_is_ordered: bool = True
    threads_have_numbers_alone: bool = False
    atomics_go_together: bool = True
    atomics_excuse_plain_accesses: bool = False
    reads_go_together: bool = True
    writes_go_together: bool = False
    only_writes_race: bool = False
    shared_is_of_a_block: bool = True
    shared_is_not_global: bool = True
    places_are_told_apart: bool = True
    deadlocks_are_seen: bool = True
    races_come_first: bool = False
    blocks_wait_for_blocks: bool = False


def same_place(one: Access, other: Access, rules: Rules) -> bool:
    if (rules.places_are_told_apart and one.place != other.place) or (
        rules.shared_is_not_global and one.space != other.space
    ):
        return False
    own = rules.shared_is_of_a_block and one.space == other.space == "shared"
    return not own or (one.launch, one.block) == (other.launch, other.block)


def conflict(one: Access, other: Access, rules: Rules) -> bool:
    """Whether the two must not happen in any order."""
    kinds = {one.kind, other.kind}
    if rules.only_writes_race:
        return kinds == {"write"}
    if kinds == {"read"}:
        return not rules.reads_go_together
    if kinds == {"atomic"}:
        return not rules.atomics_go_together
    if "atomic" in kinds and rules.atomics_excuse_plain_accesses:
        return False
    return not (kinds == {"write"} and rules.writes_go_together)


def _thread_of(one: Access) -> tuple[int, int, int]:
    return one.launch, one.block, one.thread


def ordered(one: Access, other: Access, rules: Rules) -> bool:
    if rules.same_thread_is_ordered and _thread_of(one) == _thread_of(other):
        return True
    if rules.threads_have_numbers_alone and one.thread == other.thread:
        return True
    if one.launch != other.launch:
        return rules.launches_are_ordered
    if one.block != other.block:
        return rules.barriers_order_blocks and one.epoch != other.epoch
    if rules.warps_run_in_lockstep and one.thread // WARP == other.thread // WARP:
        return True
    return rules.barriers_order_a_block and one.epoch != other.epoch


def has_race(trace: Trace, rules: Rules) -> bool:
    return any(
        same_place(one, other, rules) and conflict(one, other, rules) and not ordered(one, other, rules)
        for one, other in itertools.combinations(accesses(trace), 2)
    )


def has_deadlock(trace: Trace, rules: Rules) -> bool:
    counts = [[[sum(op.kind == "barrier" for op in t) for t in block] for block in launch] for launch in trace]
    if rules.blocks_wait_for_blocks:
        return any(len({n for block in launch for n in block}) > 1 for launch in counts)
    return any(len(set(block)) > 1 for launch in counts for block in launch)


def label(trace: Trace, rules: Rules) -> str:
    deadlock = rules.deadlocks_are_seen and has_deadlock(trace, rules)
    if deadlock and not rules.races_come_first:
        return "deadlock"
    if has_race(trace, rules):
        return "race"
    return "deadlock" if deadlock else "right"


def labels(run: CaseRun[Traces], rules: Rules) -> list[str]:
    return [label(of_text(trace), rules) for trace in run.tree["traces"]]


def expected(run: CaseRun[Traces]) -> dict[str, list[str]]:
    return {"labels": run.memo(labels, Rules())}


def takes(**changes: bool) -> Callable[[CaseRun[Traces]], bool]:
    """Whether all labels are those of somebody who takes these rules for true."""
    return lambda run: run.got["labels"] == run.memo(labels, Rules(**changes))


def every(text: str) -> Callable[[CaseRun[Traces]], bool]:
    return lambda run: set(run.got["labels"]) == {text}


def has_other_words(run: CaseRun[Traces]) -> bool:
    return not {*run.got["labels"]} <= {"right", "race", "deadlock"}


def in_words(trace: Trace) -> str:
    """Its threads, one a line, named and written as in the notebook's figure: thread 1 of block 0 is 0.1, s3 is word 3
    of shared memory.

        0.0: write s0, barrier;
        0.1: barrier, read s0
    """
    return ";\n".join(
        f"{f'launch {number}, ' if len(trace) > 1 and b == t == 0 else ''}{b}.{t}: "
        f"{', '.join(map(_in_words, thread)) or 'nothing'}"
        for number, launch in enumerate(trace)
        for b, block in enumerate(launch)
        for t, thread in enumerate(block)
    )


def _in_words(op: Op) -> str:
    if op.kind == "barrier":
        return op.kind
    return f"{'add' if op.kind == 'atomic' else op.kind} {op.space[0]}{op.place}"


def shown(run: CaseRun[Traces], index: tuple[int, ...] | None) -> str | None:
    """The first trace with a wrong label: the call, to be pasted into a cell, and all that its threads do."""
    wrong = next(
        at for at, pair in enumerate(zip(run.got["labels"], run.expected["labels"], strict=True)) if pair[0] != pair[1]
    )
    return f"classify({run.tree['calls'][wrong]})  # thread by thread:\n{in_words(of_text(run.tree['traces'][wrong]))}"


def asked(run: Observation) -> str:
    return f"classify(trace) for each of {len(run.tree['traces'])} traces"


COMMUNICATE = Oracle(
    id="10-communicate",
    expect=expected,
    diagnose=(
        Hint(has_other_words, 'classify returns "right", "race" or "deadlock", spelled so, and nothing else.'),
        Hint(
            takes(barriers_order_blocks=True),
            "This trusts a barrier across blocks. `__syncthreads()` waits for the threads of one block only; blocks "
            "run in any order, and what one writes, another may read before or after, whatever barriers stand in "
            "between.",
        ),
        Hint(
            takes(atomics_go_together=False, reads_go_together=False),
            "This calls every pair of accesses in no given order a race. Two reads change nothing, and two atomic "
            "updates both take effect, whichever comes first.",
        ),
        Hint(
            takes(places_are_told_apart=False),
            "This takes all words of a memory for one: s0 and s1 are different words, so compare the place as well.",
        ),
        Hint(
            takes(atomics_go_together=False),
            "This calls two atomic updates of one word a race. They are indivisible: in any order both take effect.",
        ),
        Hint(
            takes(atomics_excuse_plain_accesses=True),
            "This lets atomic updates excuse a plain read or write of the same word. Only if both are atomic is the "
            "order of no importance: a plain read may come before or after the update.",
        ),
        Hint(
            takes(shared_is_of_a_block=False),
            "This takes the shared memory of all blocks for one. Each block has its own: shared[3] of block 0 and "
            "shared[3] of block 1 are different words.",
        ),
        Hint(
            takes(shared_is_not_global=False),
            "This takes shared[3] and global[3] for the same word: compare the space as well.",
        ),
        Hint(takes(reads_go_together=False), "This calls two reads of one word a race. One of them has to change it."),
        Hint(
            takes(writes_go_together=True),
            "Two writes of one word in no given order are a race, too: nobody knows which value stays.",
        ),
        Hint(
            takes(only_writes_race=True),
            "This calls only two writes a race. If a read and a write of one word come in no given order, nobody knows "
            "which value is read: one access that changes the word is enough.",
        ),
        Hint(
            takes(barriers_order_a_block=False),
            "Barriers are left out: two accesses of one block that have a different number of barriers before them are "
            "ordered.",
        ),
        Hint(
            takes(launches_are_ordered=False),
            "This takes several launches for one. A launch begins when the one before has ended, so nothing that "
            "happens in different launches races.",
        ),
        Hint(
            takes(warps_run_in_lockstep=True),
            "This trusts threads of one warp to run in step. Since Volta (2017) every thread goes its own way, and "
            "within a warp, too, only a barrier orders a write of one and an access of another.",
        ),
        Hint(
            takes(threads_have_numbers_alone=True),
            "Thread 0 of block 0 and thread 0 of block 1 are two threads: compare launch and block as well.",
        ),
        Hint(
            takes(same_thread_is_ordered=False),
            "What one thread does is ordered: its own write and its own later read do not race.",
        ),
        Hint(
            takes(blocks_wait_for_blocks=True),
            "Blocks do not wait for one another: one may have more barriers than another. Only the threads of one "
            "block have to reach the same ones.",
        ),
        Hint(
            takes(deadlocks_are_seen=False),
            "Deadlocks are missing: in a block, a thread with fewer barriers than the others leaves these waiting.",
        ),
        Hint(
            takes(races_come_first=True),
            'A trace with both a race and a deadlock is to be called "deadlock": look for that first.',
        ),
        Hint(every("right"), "Every trace is called right."),
    ),
    places={f"labels.{at}": "label" for at in range(100)},
    axis="other numbers of blocks and threads, and random programs",
    call=asked,
    show=shown,
)
