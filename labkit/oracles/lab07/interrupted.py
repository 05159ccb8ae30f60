"""Lab 07: what is true of a stream that was interrupted. What the usual mistakes look like stands beside the oracle."""

from __future__ import annotations

from collections import Counter
from typing import Any

from labkit.exercises.lab07.resume import Lines
from labkit.oracles.hints import once
from labkit.spec import CaseRun

FAR = 0.1
"""Of the buffer's size: a buffer moves a line by 0.6 times its size on average. One that holds all lines moves them by
0.15 to 0.4 of their number.
"""


def result(run: CaseRun[Lines]) -> dict[str, Any]:
    """What the last job returned, which nobody killed."""
    return run.got["jobs"][-1]


@once
def counts(run: CaseRun[Lines]) -> Counter:
    return Counter(result(run)["seen"])


def every_line(case: Lines) -> list[str]:
    return [f"{shard}/{line}" for shard in range(case.n_shards) for line in range(case.per_shard)]


def is_dealt_again(case: Lines) -> bool:
    """Whether the number of streams changes from one job to another."""
    return len(set(case.n_streams)) > 1


def uninterrupted(case: Lines) -> str:
    return "uninterrupted, a stream" if case.n_streams[0] == 1 else f"uninterrupted, {case.n_streams[0]} streams"


def whole_stream(run: CaseRun[Lines]) -> str | None:
    """Without any kill, each line comes once, in random order, and each shard is opened once."""
    whole, case = result(run)["whole"], run.case
    if strange := sorted(set(whole) - set(every_line(case))):
        return f"{uninterrupted(case)}: {strange[0]!r} is yielded, which is no line of any file"
    if sorted(whole) != sorted(every_line(case)):
        return f"{uninterrupted(case)}: {len(set(whole))} different lines of {case.n} are yielded, {len(whole)} in all"
    n_read = len(result(run)["whole_read"])
    if n_read > case.n_shards:
        return f"{uninterrupted(case)}: the {case.n_shards} shards are opened {n_read} times"
    if result(run)["again"] != whole:
        return "two streams with the same seed have different orders"
    if [line.split("/")[0] for line in whole] == sorted(line.split("/")[0] for line in whole):
        return "uninterrupted, a stream reads the shards in the order of their names"
    if is_one(case) and case.buffer_size > 4 and displacement(whole) < FAR * min(case.buffer_size, case.n):
        return f"lines are moved by {displacement(whole):.1f} places on average, with a buffer of {case.buffer_size}"
    return None


def touches_nothing(run: CaseRun[Lines]) -> str | None:
    """The list of names and the global generators are as they were."""
    got = result(run)
    if not got["names_left"]:
        return "the list `names` that a stream was given was changed in place"
    if got["changed"]:
        return f"after a stream the global random numbers of {got['changed'][0]} go on from another state"
    return None


def with_newlines(run: CaseRun[Lines]) -> bool:
    return (
        {line.removesuffix("\n") for line in result(run)["whole"]}
        == set(every_line(run.case))
        != set(result(run)["whole"])
    )


def displacement(whole: list[str]) -> float:
    """How far a line lies from its place in shards that are read in the order of their first lines."""
    shards = list(dict.fromkeys(line.split("/")[0] for line in whole))
    in_order = sorted(whole, key=lambda line: (shards.index(line.split("/")[0]), int(line.split("/")[1])))
    place = {line: at for at, line in enumerate(in_order)}
    return sum(abs(place[line] - at) for at, line in enumerate(whole)) / len(whole)


def is_one(case: Lines) -> bool:
    """Whether all jobs have a single stream."""
    return set(case.n_streams) == {1}


def goes_on(run: CaseRun[Lines]) -> str | None:
    """After all kills the jobs have seen what an uninterrupted one sees, in the same order."""
    got, case = result(run), run.case
    twice = [line for line, count in counts(run).items() if count > 1]
    absent = [line for line in every_line(case) if line not in counts(run)]
    n_before, n_now = case.n_streams[-2:]
    streams = "" if is_one(case) else f" with {n_now} streams after {n_before}"
    where = f"the last job goes on{streams} after step {got['n_resumed']}"
    if got["n_states"] not in (None, n_now):
        return f"deal_again returns {got['n_states']} states for {n_now} streams"
    if twice:
        return f"{where}; in the end {len(twice)} lines were seen more than once"
    if absent:
        return f"{where}; in the end {len(absent)} of {case.n} lines were never seen"
    if not is_dealt_again(case) and got["seen"] != got["whole"]:
        return f"{where}; from there on the lines come in another order than without a kill"
    return None


def most_reads(run: CaseRun[Lines]) -> int:
    """The shards that were not read to their end when the last state was saved; of several streams, those of which
    lines had not been seen.
    """
    case, done = run.case, result(run)["n_resumed"]
    if not is_one(case):
        shards = Counter(line.split("/")[0] for line in result(run)["seen"][:done])
        n_done = sum(n == case.per_shard for n in shards.values())
        # Of each stream the last one may be opened to see that nothing is left of it.
        return min(case.n_shards, case.n_shards - n_done + case.n_streams[-2])
    if done == 0:
        return case.n_shards
    # A buffer that yields as soon as it is full has taken in buffer_size - 1 lines that it has not yielded.
    taken = min(done + case.buffer_size - 1, case.n)
    # One whose last line was the last to be taken may be opened to see that.
    return case.n_shards - taken // case.per_shard + (taken % case.per_shard == 0)


def reads_what_is_left(run: CaseRun[Lines]) -> str | None:
    """Shards that were done are not read again."""
    n, most = len(result(run)["read"]), most_reads(run)
    if n <= most:
        return None
    place = f"after step {result(run)['n_resumed']}"
    return f"going on {place}, the last job opens shards {n} times; {most} were not read to their end before"
