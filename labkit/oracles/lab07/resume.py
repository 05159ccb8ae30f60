"""Lab 07: what is true of a stream that was interrupted, and what the usual mistakes look like."""

from __future__ import annotations

from collections import Counter
from typing import Any

from labkit.exercises.lab07.resume import Lines
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

FAR = 0.25
"""Of the buffer's size: a buffer moves a sample by 0.7 times its size on average."""


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


def tails(run: CaseRun[Lines]) -> bool:
    """What was never seen are the last lines of some shards."""
    case = run.case
    absent = {line for line in every_line(case) if line not in counts(run)}
    n_absent = Counter(line.split("/")[0] for line in absent)
    wanted = {f"{shard}/{case.per_shard - 1 - at}" for shard, n in n_absent.items() for at in range(n)}
    return bool(absent) and absent == wanted and max(n_absent.values()) < case.per_shard


def unmixed(run: CaseRun[Lines]) -> object:
    """No line is moved. CANNOT_TELL of a buffer too small to move one far, and of several streams in turns."""
    is_small = run.case.buffer_size <= 4 or run.case.n_streams[0] > 1
    return CANNOT_TELL if is_small else displacement(result(run)["whole"]) == 0


def begins_again(run: CaseRun[Lines]) -> bool:
    """All lines come again, of several streams with the one first whose turn it was."""
    again, whole = result(run)["seen"][result(run)["n_resumed"] :], result(run)["whole"]
    return again == whole if is_one(run.case) else sorted(again) == sorted(whole)


def lost(run: CaseRun[Lines]) -> int:
    return run.case.n - len(counts(run))


def kept(when: Callable[[CaseRun[Lines]], object]) -> Callable[[CaseRun[Lines]], object]:
    """A diagnosis of what a state holds. CANNOT_TELL where states are dealt again, which may go wrong by itself."""
    return lambda run: CANNOT_TELL if is_dealt_again(run.case) and whole_stream(run) is None else when(run)


def dealt(when: Callable[[CaseRun[Lines]], object]) -> Callable[[CaseRun[Lines]], object]:
    """A diagnosis of `deal_again`: all is right but where it is asked."""
    return lambda run: is_dealt_again(run.case) and whole_stream(run) is None and when(run)


def by_each_stream(run: CaseRun[Lines]) -> object:
    """Several streams yield lines that others yield, too. CANNOT_TELL where all goes well."""
    if run.case.n_streams[0] == 1:
        return CANNOT_TELL if whole_stream(run) is None else False
    return len(result(run)["whole"]) > run.case.n


def reads_for_each_stream(run: CaseRun[Lines]) -> object:
    """Several streams open shards that others open, too, and keep their share of the lines."""
    if run.case.n_streams[0] == 1:
        return CANNOT_TELL
    got = result(run)
    return sorted(got["whole"]) == sorted(every_line(run.case)) and len(got["whole_read"]) > run.case.n_shards


def too_few_states(run: CaseRun[Lines]) -> object:
    """Not one for each new stream. CANNOT_TELL where some of many were returned, and what the others had is lost."""
    *_, n_before, n_now = run.case.n_streams
    if result(run)["n_states"] == n_now < n_before and lost(run) > 0:
        return CANNOT_TELL
    return result(run)["n_states"] != n_now


def n_buffered(case: Lines) -> int:
    """The most lines that all buffers hold together when jobs are killed."""
    return sum(case.n_streams[:-1]) * case.buffer_size


RESUME = Oracle(
    id="07-resume",
    judge=(whole_stream, goes_on, reads_what_is_left),
    errors={
        "is not JSON serializable": "The state is written as JSON: numbers, texts, lists and dictionaries. Turn "
        "tensors, arrays and sets into lists.",
        "state vector must be a tuple": "JSON has lists only: turn those of the generator's state into tuples before "
        "setstate().",
    },
    diagnose=(
        Hint(
            lambda run: result(run)["again"] != result(run)["whole"],
            "The order depends on what was drawn before, by this stream or by others. Make a generator from the seed "
            "in __init__, and draw from nothing else.",
        ),
        Hint(
            unmixed,
            "The lines come as they stand in their files. Put them into the buffer, and yield a random one of it.",
        ),
        Hint(
            by_each_stream,
            "Every stream yields lines that others yield as well. The shuffled shards are dealt to the streams: "
            "names[number::n_streams].",
        ),
        Hint(
            reads_for_each_stream,
            "Each stream reads all shards and keeps its share of the lines, so everything is read as often as there "
            "are streams. Deal whole shards.",
        ),
        Hint(
            kept(lambda run: whole_stream(run) is None and begins_again(run)),
            "The epoch begins again. load_state_dict has to remember where the stream was, and __iter__ goes on there.",
        ),
        Hint(
            kept(lambda run: CANNOT_TELL if goes_on(run) is None else max(counts(run).values()) == 1 and tails(run)),
            "Lines are lost: the shard in which the job was killed had more of them. Keep in the state how many were "
            "taken, and go on within the shard.",
        ),
        Hint(
            kept(
                lambda run: (
                    whole_stream(run) is None
                    and max(counts(run).values()) == 1
                    and 0 < lost(run) <= n_buffered(run.case)
                )
            ),
            "Lines are lost: those that were in the buffer when the job was killed had been read, and were never "
            "yielded. They belong to the state.",
        ),
        Hint(
            kept(
                lambda run: (
                    CANNOT_TELL if goes_on(run) is None else whole_stream(run) is None and max(counts(run).values()) > 1
                )
            ),
            "Lines are seen twice. The state has to be that of the moment at which it is asked for: copy the buffer, "
            "count a line before it is yielded, and remove it from the buffer before that.",
        ),
        Hint(
            kept(
                lambda run: (
                    CANNOT_TELL
                    if goes_on(run) is None
                    else whole_stream(run) is None and set(counts(run).values()) == {1} and lost(run) == 0
                )
            ),
            "Every line is seen once, but in another order: the generator begins anew. Its state belongs to the state, "
            "random.Random.getstate().",
        ),
        Hint(
            kept(
                lambda run: (
                    CANNOT_TELL
                    if reads_what_is_left(run) is None
                    else goes_on(run) is None and len(result(run)["read"]) >= run.case.n_shards
                )
            ),
            "The stream reads from the start and throws away what was seen. With a corpus of terabytes that takes "
            "hours: keep in the state which shard it was in and how many of its lines it had taken.",
        ),
        Hint(
            kept(lambda run: goes_on(run) is None and reads_what_is_left(run) is not None),
            "Shards are read again whose lines had all been taken. Put the buffer's lines themselves into the state.",
        ),
        Hint(
            dealt(too_few_states),
            "deal_again makes a state for each of the new streams, however many the old ones were: none of the old "
            "states can stay as it is.",
        ),
        Hint(
            dealt(lambda run: max(counts(run).values()) > 1),
            "After deal_again lines come twice. Each shard that is left, with the number of its lines that were taken, "
            "and each line of a buffer goes to one new stream only.",
        ),
        Hint(
            dealt(tails),
            "deal_again loses what is left of the shards of which lines had been taken. Deal them like the others, "
            "with the number of their lines that were taken.",
        ),
        Hint(
            dealt(lambda run: 0 < lost(run) <= n_buffered(run.case)),
            "deal_again loses lines that were in the buffers of the old streams. Deal them to the new ones, as the "
            "shards.",
        ),
        Hint(
            dealt(lambda run: lost(run) > 0),
            "deal_again loses shards. Collect what is left from the states of all old streams, then deal that.",
        ),
    ),
    call=lambda run: (
        f"ResumableStream(store, <{run.case.n_shards} shards of {run.case.per_shard} lines>, "
        f"buffer_size={run.case.buffer_size}, seed={run.case.seed}, number, n_streams), in jobs with "
        f"{', then '.join(map(str, run.case.n_streams))} streams"
    ),
    axis="other sizes of shards and buffers, other moments at which a job is killed, and more streams than shards",
)
