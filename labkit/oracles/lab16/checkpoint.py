"""Lab 16: what is true of checkpoints of shards: what was saved last and whole comes back, cut anew."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from labkit.compare import compare
from labkit.exercises.lab16.checkpoint import MARKER, Jobs, shard_of, state_at
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, EXACT, CaseRun, Hint, KiB, Oracle
from labkit.units import in_bytes


@once
def last_finished(run: CaseRun[Jobs]) -> int:
    """The last step that a job before the last one has finished."""
    last_job = len(run.case.n_ranks) - 1
    markers = [call.name for call in run.books.calls if call.name.startswith(MARKER) and call.job < last_job]
    return max((int(name.removeprefix(MARKER)) for name in markers), default=0)


def result(run: CaseRun[Jobs]) -> dict[str, Any]:
    """What came of the last job."""
    return run.got["jobs"][-1]


def problem_of(run: CaseRun[Jobs], loaded: list, n: int, steps: tuple[int, ...]) -> str | None:
    """What is wrong with what n ranks have loaded: each of them the same one of these steps, where 0 is nothing."""
    found = [None if one is None else one[0] for one in loaded]
    if len({str(step) for step in found}) > 1:
        return f"the {n} ranks loaded different steps: {', '.join(map(str, found))}"
    step = found[0] or 0
    if step not in steps:
        told = "no step" if found[0] is None else f"step {step!r}"
        return f"{n} ranks loaded {told}, and the last one that was saved whole is step {steps[0]}"
    if step:
        state = state_at(run.case, step, run.tree["seed"])
        for rank, one in enumerate(loaded):
            if mismatch := compare(shard_of(state, rank, n), one[1], EXACT):
                place = mismatch.path or "the state"
                expected, got = mismatch.expected, mismatch.got
                return f"rank {rank} of {n}, {place} of step {step}: expected {expected}, got {got}"
    return None


def goes_on(run: CaseRun[Jobs]) -> str | None:
    """The last job begins with what was saved last and whole."""
    finished = last_finished(run)
    # A job may be killed in finish, after it has done what makes the step whole.
    return problem_of(run, result(run)["loaded"], run.case.n_ranks[-1], (finished, finished + 1))


def ends_right(run: CaseRun[Jobs]) -> str | None:
    """After the last step, ranks of yet another number have all of it."""
    return problem_of(run, result(run)["end"], run.case.n_end, (run.case.n_steps,))


@once
def groups(run: CaseRun[Jobs]) -> list[tuple[int, list[tuple[int, dict[str, Tensor]]]]]:
    """(ranks, what each of them has loaded), where they have loaded anything."""
    both = ((run.case.n_ranks[-1], result(run)["loaded"]), (run.case.n_end, result(run)["end"]))
    return [(n, loaded) for n, loaded in both if None not in loaded]


def mixes_steps(run: CaseRun[Jobs]) -> bool:
    """Some of what was loaded is of another step than the one that was returned."""
    return any(
        (part // 10_000 != step).any() for _, loaded in groups(run) for step, state in loaded for part in state.values()
    )


def finds_nothing(run: CaseRun[Jobs]) -> bool:
    """After the last step there is nothing to load."""
    return all(one is None for one in result(run)["end"])


def forgets_the_moments(run: CaseRun[Jobs]) -> bool:
    states = [state for _, loaded in groups(run) for _, state in loaded]
    return bool(states) and all("weight" in state and "exp_avg" not in state for state in states)


def same_on_all_ranks(run: CaseRun[Jobs]) -> object:
    """Every rank of several has loaded the same elements. CANNOT_TELL where they are all: one rank has saved them."""
    found = [[state["weight"] for _, state in loaded] for n, loaded in groups(run) if n > 1]
    if not all(torch.equal(part, parts[0]) for parts in found for part in parts):
        return False
    return any(len(parts[0]) < run.case.n_elements for parts in found) or CANNOT_TELL


def whole_on_all_ranks(run: CaseRun[Jobs]) -> bool:
    """Every rank of several has loaded whole tensors."""
    states = [state for n, loaded in groups(run) if n > 1 for _, state in loaded]
    return bool(states) and all(len(part) == run.case.sizes[name] for one in states for name, part in one.items())


def cut_as_saved(run: CaseRun[Jobs]) -> bool:
    """The parts are those of the ranks that have saved."""
    n, state = run.case.n_ranks[-1], state_at(run.case, run.case.n_steps, run.tree["seed"])
    return n != run.case.n_end and all(
        compare(shard_of(state, rank, n), one[1], EXACT) is None for rank, one in enumerate(result(run)["end"][:n])
    )


def keeps_less(run: CaseRun[Jobs]) -> bool:
    """All that is left in the store is smaller than one state."""
    own = [data for name, data in run.books.files.items() if not name.startswith(MARKER)]
    return sum(map(len, own)) < 4 * sum(run.case.sizes.values())


def reads_little(run: CaseRun[Jobs]) -> str | None:
    """The ranks of the last job together read at most twice the state, each time that they load something, and 2 KiB
    each to find out where it is.
    """
    state_bytes = 4 * sum(run.case.sizes.values())
    n_ranks = run.case.n_ranks[-1] + run.case.n_end
    most = 2 * state_bytes * len(groups(run)) + 2 * KiB * n_ranks
    read = sum(call.n_bytes for call in run.books.of(len(run.case.n_ranks) - 1) if call.op == "read")
    if read > most:
        return (
            f"the ranks read {in_bytes(read)} to load a state of {in_bytes(state_bytes)}; {in_bytes(most)} are allowed"
        )
    return None


reads_little.hint = (
    "Every rank reads far more than its part. Read of each old file the range that you need: "
    "store.read(name, start, size), four bytes an element."
)


def in_words(run: CaseRun[Jobs]) -> str:
    case = run.case
    jobs = ", then ".join(f"{n} ranks" for n in case.n_ranks[:4]) + (", ..." if len(case.n_ranks) > 4 else "")
    killed = f", killed at a write ({', '.join(map(str, case.kills[:4]))}{', ...' if len(case.kills) > 4 else ''})"
    return f"{jobs}{killed if case.kills else ''}, loaded by {case.n_end} ranks; weight has {case.n_elements} elements"


HALF_WRITTEN = (
    "A job was killed while it wrote the file that says which checkpoint is whole, so half of it is there. Write it "
    "under another name, then rename it: a rename is done whole or not at all."
)

CHECKPOINT = Oracle(
    id="16-checkpoint",
    judge=(goes_on, ends_right, reads_little),
    call=in_words,
    axis="other numbers of ranks, empty shards, and kills at every write",
    errors={
        "JSONDecodeError": HALF_WRITTEN,
        "invalid literal for int": HALF_WRITTEN,
        "FileNotFoundError": "load asked for a file that is not there. Before finish has declared any step whole, "
        "there is nothing to load: return None. Declare a step whole in finish, when all ranks have saved it, and load "
        "no other: a killed job leaves some ranks' files alone. And the files are those of the ranks that saved, which "
        "may be fewer than those that load.",
        "buffer size must be a multiple": "What load has read is no whole number of elements, which have four bytes "
        "each. Either start and size were counted in elements, and store.read wants bytes; or a file is there by half, "
        "since a job was killed while it was written. Declare a step whole in finish, when all ranks have saved it, "
        "load no other, and write nothing of a whole step again.",
    },
    diagnose=(
        Hint(
            forgets_the_moments,
            "The optimizer's moments are missing: save every tensor of the state, not the weights alone.",
        ),
        Hint(
            same_on_all_ranks,
            "All ranks loaded the same part: when saving, each has written over the file of the one before. Put the "
            "rank into the file's name.",
        ),
        Hint(
            whole_on_all_ranks,
            "Every rank loaded whole tensors. Rank r of m keeps elements r·k to (r+1)·k, where k is the size divided "
            "by m, rounded up.",
        ),
        Hint(
            cut_as_saved,
            "These are the parts of the ranks that have saved. There are other ranks now: cut the whole tensors anew, "
            "each part from the old files that it overlaps.",
        ),
        Hint(
            finds_nothing,
            "load finds nothing, though all steps were saved. What finish leaves behind is what load has to look for, "
            "by the same name.",
        ),
        Hint(
            mixes_steps,
            "Part of what was loaded is of another step: a job was killed when some files had been written over and "
            "others had not. Write every step to files of its own, and load one that finish has declared whole.",
        ),
        Hint(
            keeps_less,
            "What is in the store is smaller than the state. Every element of every tensor has to be in one of the "
            "files, four bytes each: nothing of a state can be worked out again.",
        ),
    ),
)
