"""Every measure that a budget can limit, in one table: who counts it, in what unit, and what bears it out.

A measure is counted by a meter (`labkit.meters`, by the same names), and of several ranks by what carries their
messages. It is added up here and nowhere else. What a witness does is the grader's business: here is its name alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from labkit.cut import cut

RANKS = "ranks"
"""The meter of a run of several ranks. No driver opens it: their messages are counted on the way."""

STORE = "store"
"""The meter of a run with a store. No driver opens it: the store's books are kept on the way."""

MARKS = "marks"
"""The meter of what is held at a named moment of a run of several ranks (`Stage.mark`): each moment has a figure of its
own, under the measure's name and the moment's (`at_moment`)."""

FULL_SIZE = "full_size"
"""The meter of what an answer would launch at `Exercise.full_size`. No driver opens it: nothing is run there."""

MOST_NAMES, MOST_TEXTS, MOST_LETTERS = 64, 200, 200
"""What is kept of what figures consist of: so many figures, texts of each, and characters of a text."""

Witness = Literal["outside", "probe", "rerun", "text", "router", "store", "inside"]
"""What bears a measure out when an answer is graded, beside the process that the student's code runs in.

"outside": the figure itself is read from outside of it. "probe": the meter is tried on work of a known size. "rerun":
the answer's kernels run again from their text under the meter. "router": it stands in the books of what the ranks'
messages pass through. "text": the answer is text and no Python, and it is driven where nothing of the student's Python
has run (`Run.cells`). "store": it stands in the books of the store, which alone can reach the files. "inside": nothing
does, and no exercise of the course may rest on it.
"""


@dataclass(frozen=True)
class Measure:
    """One row of the table.

        Measure("flops", meter="ops", unit="FLOP", combine="sum", witness="probe")

    combine: what becomes of the figures of several blocks of one run; of the meter "ranks", of several ranks or nodes.
    """

    name: str
    meter: str
    unit: str
    combine: Literal["sum", "max", "min"]
    witness: Witness


_TABLE = (
    Measure("peak_bytes", "memory", "bytes", "max", "outside"),
    # What is kept is part of the peak: where the one is bounded, so is the other.
    Measure("saved_bytes", "saved", "bytes", "max", "outside"),
    Measure("dispatches", "ops", "operations", "sum", "probe"),
    Measure("flops", "ops", "FLOP", "sum", "probe"),
    Measure("comm_calls", "comm", "calls", "sum", "inside"),
    Measure("comm_bytes", "comm", "bytes", "sum", "inside"),
    Measure("load_bytes", "traffic", "bytes", "sum", "rerun"),
    Measure("store_bytes", "traffic", "bytes", "sum", "rerun"),
    Measure("atomic_bytes", "traffic", "bytes", "sum", "rerun"),
    Measure("launches", "traffic", "launches", "sum", "rerun"),
    Measure("out_of_bounds", "traffic", "lanes", "sum", "rerun"),
    Measure("races", "traffic", "elements", "sum", "rerun"),
    # Reductions and products over lanes that a mask left out and that have no other=.
    Measure("undefined", "traffic", "reductions", "sum", "rerun"),
    Measure("sector_efficiency", "traffic", "of each sector", "min", "rerun"),
    Measure("computed_by_torch", "traffic", "operations", "sum", "rerun"),
    Measure("registers", "compiled", "registers", "max", "rerun"),
    Measure("spills", "compiled", "bytes", "max", "rerun"),
    Measure("shared_bytes", "compiled", "bytes", "max", "rerun"),
    Measure("vector_width", "compiled", "bytes at once", "min", "rerun"),
    Measure("matrix_instructions", "compiled", "matrix instructions", "sum", "rerun"),
    Measure("matrix_flops", "compiled", "FLOPs on tensor cores", "sum", "rerun"),
    # What torch.compile does; the meters are tried on a model of secret size, each on its own.
    Measure("graphs", "compile", "graphs", "sum", "probe"),
    Measure("graph_breaks", "compile", "graph breaks", "sum", "probe"),
    Measure("frames", "compile", "compiled frames", "sum", "probe"),
    Measure("eager_calls", "compile", "calls that ran eagerly", "sum", "probe"),
    Measure("captured_operations", "compile", "operations", "sum", "probe"),
    Measure("generated_kernels", "generated", "generated kernels", "sum", "probe"),
    Measure("library_calls", "generated", "library calls", "sum", "probe"),
    Measure("kernel_bytes", "generated", "bytes", "sum", "probe"),
    # What a compiled forward graph keeps for its backward graph, and what that reads: kept if nothing were recomputed.
    Measure("kept_bytes", "kept", "bytes", "sum", "probe"),
    Measure("kept_without_recomputing_bytes", "kept", "bytes", "sum", "probe"),
    # Of launches that are written down and not run, at the size that a lab is about; the record is the answer's own.
    Measure("programs", FULL_SIZE, "programs", "min", "rerun"),
    Measure("most_programs", FULL_SIZE, "programs", "max", "rerun"),
    Measure("block_bytes", FULL_SIZE, "bytes", "max", "rerun"),
    # Of CUDA C++ that is executed from its PTX, by the names and definitions of `labkit.simt.KernelProfile`.
    Measure("cuda_launches", "cuda", "launches", "sum", "text"),
    Measure("warp_instructions", "cuda", "warp instructions", "sum", "text"),
    Measure("inactive_lanes", "cuda", "idle places in warps", "sum", "text"),
    Measure("divergent_branches", "cuda", "branches at which a warp parts", "sum", "text"),
    Measure("arithmetic", "cuda", "FLOP", "sum", "text"),
    Measure("global_requests", "cuda", "requests", "sum", "text"),
    Measure("global_load_sectors", "cuda", "sectors", "sum", "text"),
    Measure("global_store_sectors", "cuda", "sectors", "sum", "text"),
    Measure("global_sectors", "cuda", "sectors", "sum", "text"),
    Measure("shared_requests", "cuda", "requests", "sum", "text"),
    Measure("shared_wavefronts", "cuda", "passes", "sum", "text"),
    Measure("bank_conflicts", "cuda", "bank conflicts", "sum", "text"),
    Measure("local_requests", "cuda", "requests", "sum", "text"),
    Measure("atomic_lanes", "cuda", "atomic updates", "sum", "text"),
    Measure("atomic_conflicts", "cuda", "atomic updates that wait", "sum", "text"),
    Measure("barriers", "cuda", "warps at barriers", "sum", "text"),
    Measure("mma_instructions", "cuda", "products on tensor cores", "sum", "text"),
    # Of each rank by itself; the rank that holds the most counts.
    Measure("held_bytes", MARKS, "bytes", "max", "outside"),
    Measure("bytes_sent", RANKS, "bytes", "max", "router"),
    Measure("bytes_total", RANKS, "bytes", "sum", "router"),
    Measure("messages", RANKS, "messages", "max", "router"),
    Measure("messages_total", RANKS, "messages", "sum", "router"),
    Measure("collectives", RANKS, "calls", "max", "router"),
    Measure("bytes_across", RANKS, "bytes", "max", "router"),
    Measure("rounds", RANKS, "rounds", "max", "router"),
    Measure("rounds_across", RANKS, "rounds", "max", "router"),
    Measure("seconds", RANKS, "seconds", "max", "router"),
    Measure("opens", STORE, "opened files", "sum", "store"),
    Measure("read_bytes", STORE, "bytes", "sum", "store"),
    Measure("written_bytes", STORE, "bytes", "sum", "store"),
)

MEASURES: Mapping[str, Measure] = {measure.name: measure for measure in _TABLE}


def find_measure(name: str) -> Measure:
    """The measure of this name. Raises ValueError where there is none."""
    if name not in MEASURES:
        raise ValueError(
            f'there is no measure "{name}": take one of {", ".join(sorted(MEASURES))}, or give it a row in '
            "labkit/measures.py and a meter that counts it"
        )
    return MEASURES[name]


def at_moment(name: str, label: str) -> str:
    """What a figure of a named moment is called: "held_bytes, between layers"."""
    return f"{name}, {label}" if label else name


def measure_of(key: str) -> Measure:
    """The measure of a figure that is called so, of the whole run or of a moment. Raises ValueError."""
    return find_measure(key.partition(", ")[0])


def without_moments(measured: Mapping[str, float]) -> dict[str, float]:
    """The figures less those of named moments."""
    of_moments = {measure.name for measure in _TABLE if measure.meter == MARKS}
    return {key: value for key, value in measured.items() if key.partition(", ")[0] not in of_moments}


def combined(name: str, values: Iterable[float]) -> float:
    """One figure of several, as the table has it; 0 where there are none."""
    parts = tuple(values)
    return {"sum": sum, "max": max, "min": min}[MEASURES[name].combine](parts) if parts else 0


def add_to(measured: dict[str, float], name: str, value: float) -> None:
    """Put the figure of one more block of a run beside those before it."""
    measured[name] = combined(name, (measured[name], value)) if name in measured else value


def add_moment(measured: dict[str, float], name: str, label: str, value: float) -> None:
    """The same of a named moment: however often a run comes by it, the worst counts."""
    key = at_moment(name, label)
    measured[key] = combined(name, (measured[key], value)) if key in measured else value


def is_measured(key: str) -> bool:
    """Whether a figure of a measure in the table can be called so."""
    return key.partition(", ")[0] in MEASURES


def in_short(held: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """What figures consist of, by their names, cut to what an observation keeps of it."""
    known = ((name, texts) for name, texts in held.items() if is_measured(name))
    return {name: [cut(text, MOST_LETTERS) for text in texts[:MOST_TEXTS]] for name, texts in islice(known, MOST_NAMES)}


def held_of_ranks(found: Sequence[tuple[Mapping[str, float], Mapping[str, Sequence[str]]]]) -> dict[str, Sequence[str]]:
    """Of what each rank measured and held, that of the rank with the worst figure; the first of several such."""
    worst = of_ranks(measured for measured, _ in found)
    held: dict[str, Sequence[str]] = {}
    for measured, own in found:
        for name, texts in own.items():
            if name not in held and measured.get(name) == worst.get(name):
                held[name] = texts
    return held


def of_ranks(measured: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Of what each rank measured for itself, the worst: the most, or the least of what has a least.

    A rank may send names of its own, of which the most is kept.
    """
    worst: dict[str, float] = {}
    for one in measured:
        for name, value in one.items():
            pick = min if name in MEASURES and MEASURES[name].combine == "min" else max
            worst[name] = pick(value, worst.get(name, value))
    return worst
