"""Lab 07: what goes wrong where streams are interrupted and dealt again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from labkit.exercises.lab07.resume import Lines
from labkit.oracles.lab07.interrupted import (
    counts,
    displacement,
    every_line,
    goes_on,
    is_dealt_again,
    is_one,
    reads_what_is_left,
    result,
    touches_nothing,
    whole_stream,
    with_newlines,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


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


def reads_twice(run: CaseRun[Lines]) -> bool:
    """Every stream opens its own shards more than once, and yields each line once."""
    got = result(run)
    opened = Counter(got["whole_read"])
    return (
        sorted(got["whole"]) == sorted(every_line(run.case))
        and len(set(opened.values())) == 1
        and opened.total() == 2 * run.case.n_shards
    )


def own_orders(run: CaseRun[Lines]) -> object:
    """Right numbers of lines, and some shards twice. CANNOT_TELL of a single stream."""
    if run.case.n_streams[0] == 1:
        return CANNOT_TELL if whole_stream(run) is None else False
    whole = Counter(result(run)["whole"])
    return whole_stream(run) is not None and set(whole) < set(every_line(run.case)) and max(whole.values()) > 1


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
    judge=(whole_stream, goes_on, reads_what_is_left, touches_nothing),
    errors={
        "is not JSON serializable": "The state is written as JSON: numbers, texts, lists and dictionaries. Turn "
        "tensors, arrays and sets into lists.",
        "state vector must be a tuple": "JSON has lists only: turn those of the generator's state into tuples before "
        "setstate().",
    },
    diagnose=(
        Hint(
            with_newlines,
            "The lines end in a line break, which splitlines(keepends=True), readline() and a loop over a file leave "
            "there. Yield them without it: splitlines().",
        ),
        Hint(
            lambda run: result(run)["again"] != result(run)["whole"],
            "The order depends on what was drawn before, by this stream or by others. Make a generator from the seed "
            "in __init__, and draw from nothing else.",
        ),
        Hint(
            unmixed,
            "The lines come as they stand in their files. Put them into the buffer, and yield a random one of it, also "
            "when the files are over.",
        ),
        Hint(
            by_each_stream,
            "Every stream yields lines that others yield as well. The shuffled shards are dealt to the streams: "
            "names[number::n_streams].",
        ),
        Hint(
            own_orders,
            "Some shards are read by two streams, and others by none: each stream deals from an order of its own. The "
            "order of the shards depends on the seed alone, so that it is the same in all of them.",
        ),
        Hint(
            reads_twice,
            "Every shard is opened twice. Read one where its first line is needed, and nowhere else.",
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
            "Every line is seen once, but in another order. What decides about the next line belongs to the state, as "
            "it is when the state is asked for: the generator's, random.Random.getstate(), and the buffer's lines in "
            "their order.",
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
            lambda run: goes_on(run) is None and not result(run)["names_left"],
            "The list of names is shuffled in place, and all streams may have been given the same list. Shuffle a "
            "copy: random.Random(seed).sample(names, len(names)).",
        ),
        Hint(
            lambda run: goes_on(run) is None and bool(result(run)["changed"]),
            "The order comes from a global generator, whose state belongs to all streams and to the model's dropout. "
            "Use a random.Random of the stream's own.",
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
