"""One try of the game: read a script, bill it, hold it to the rules, train it on every seed.

`play` returns a plain tree, and runs where the script may run; `entry_of` makes an entry of it, and is for whoever
judges. `enter` does both. What a script may not do ends the try with a problem in words; nothing is ranked here.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from labkit.capstone.bill import Bill, bill
from labkit.capstone.cost import Step
from labkit.capstone.entry import Entry
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.run import RuleBroken
from labkit.capstone.score import TARGET_LOSS, virtual_hours
from labkit.capstone.script import ScriptRefused, read
from labkit.capstone.size import BILLION, TINY, between
from labkit.capstone.tiny import Trained, loss_of, train_tiny
from labkit.units import in_bytes

PUBLIC_SEEDS = (11, 12, 13)
FLOPS_OF_TRAINING = 6
"""For each weight and token: 2 in the forward pass, 4 in the backward pass."""

Done = TypeVar("Done")


@dataclass(frozen=True)
class Stopped(Exception):
    """A try ended early. kind: "refused", "raised", "rule", "dtype", "memory", "size", "data", "work", "tokens"."""

    kind: str
    text: str


def play(text: str, seeds: Sequence[int] = PUBLIC_SEEDS, secret: int = 0, machine: Machine | None = None) -> dict:
    """What a script comes to, as a tree: {"kind", "problem", "bill", "seeds", "weights", "script"}.

    secret: draws the size in between, and the card that is billed again. kind is "" where nothing ended the try.
    Nothing is trained where the bill has ended it already.
    """
    found: dict[str, Any] = {"kind": "", "problem": "", "bill": None, "seeds": list(seeds), "weights": []}
    try:
        script = read(text)
        machine = machine or MACHINES[script.machine]
        found["script"] = {"steps": script.steps, "changed": script.changed, "digest": script.digest}
        full = _run(lambda: bill(script, BILLION, machine))
        found["bill"] = _as_tree(full)
        _check_bill(full, machine)
        small = _run(lambda: bill(script, TINY, machine))
        rng = random.Random(secret)
        size, rank = between(rng), rng.randrange(machine.n_cards)
        other = _run(lambda: bill(script, size, machine, rank))
        _check_sizes(full, small, "at the tiny size")
        _check_sizes(full, other, f"with width {size.width}" + (f", on card {rank}" if rank else ""))
        for seed in seeds:
            trained = _run(lambda seed=seed: train_tiny(script, seed, machine))
            _check_steps(trained, small, machine)
            # Only now: what works without data alone has been told so.
            for billed in (full, small, other):
                _check_work(billed)
            found["weights"].append(dict(trained.weights))
    except ScriptRefused as error:
        found |= {"kind": "refused", "problem": str(error)}
    except Stopped as end:
        found |= {"kind": end.kind, "problem": end.text}
    return found


def entry_of(found: Mapping[str, Any], machine: Machine | None = None) -> Entry | None:
    """The entry that a try came to, with losses worked out here; None where there is no bill.

    A try that trained on fewer seeds than it was given, or twice on one, has reached nothing.
    """
    if found.get("bill") is None:
        return None
    billed, script = found["bill"], found["script"]
    machine = machine or MACHINES[billed["machine"]]
    seeds = found["seeds"]
    losses = {str(seed): loss_of(weights, seed) for seed, weights in zip(seeds, found["weights"], strict=False)}
    whole = not found["kind"] and len(losses) == len(seeds) == len(set(seeds)) > 0
    peak = {name: int(n_bytes) for name, n_bytes in billed["peak_bytes"].items()}
    return Entry(
        machine.name,
        virtual_hours(billed["setup_s"], billed["step_s"], script["steps"]),
        script["steps"],
        round(billed["step_s"] * 1e3, 3),
        round(billed["setup_s"] * 1e3, 3),
        peak,
        losses,
        script["digest"],
        script["changed"],
        fits=sum(peak.values()) <= machine.memory_bytes and not billed["unsupported"],
        reached=whole and all(loss <= TARGET_LOSS for loss in losses.values()),
        facts={
            "flops": sum(billed["flops"].values()),
            "bytes": billed["n_bytes"],
            "host_bytes": billed["host_bytes"],
            "link_bytes": billed["link_bytes"],
            "sequences": billed["sequences"],
        },
    )


def enter(text: str, seeds: Sequence[int] = PUBLIC_SEEDS, secret: int = 0, machine: Machine | None = None) -> Entry:
    """Play and judge. Raises Stopped where a rule was broken, or where the script does not fit its machine."""
    found = play(text, seeds, secret, machine)
    if found["kind"]:
        raise Stopped(found["kind"], found["problem"])
    return entry_of(found, machine)


def _run(work: Callable[[], Done]) -> Done:
    """Call what runs the script; what it raises is told with the script's own line."""
    try:
        return work()
    except RuleBroken as error:
        raise Stopped("rule", f"{_line(error)}{error}") from None
    except (KeyboardInterrupt, TimeoutError):
        raise
    except Exception as error:
        cause = error.__cause__ if error.__cause__ is not None else error
        if isinstance(cause, RuleBroken):
            raise Stopped("rule", f"{_line(cause)}{cause}") from None
        text = str(error).split("\n")[0][:300]
        raise Stopped("raised", f"{_line(error)}{type(error).__name__}: {text}") from None


def _line(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<script>"]
    return f"line {frames[-1].lineno}: " if frames else ""


def _check_bill(full: Bill, machine: Machine) -> None:
    if full.unsupported:
        have = ", ".join(machine.flops_per_s)
        raise Stopped("dtype", f"{machine.title}: it multiplies {have}, and not {', '.join(full.unsupported)}")
    peak = full.total_peak_bytes
    if peak > machine.memory_bytes:
        parts = sorted(full.peak_bytes.items(), key=lambda part: -part[1])
        text = ", ".join(f"{name} {in_bytes(n_bytes)}" for name, n_bytes in parts if n_bytes > peak / 100)
        raise Stopped("memory", f"the peak is {in_bytes(peak)}, a card has {in_bytes(machine.memory_bytes)}: {text}")
    if not full.sequences:
        raise Stopped("tokens", "a step of the bill asks for no tokens")


def _check_work(bill: Bill) -> None:
    """A step multiplies every token by every weight, there and back twice, and writes every weight."""
    least = FLOPS_OF_TRAINING * bill.size.n_multiplied * bill.sequences * bill.size.seq_len
    if bill.matrix_flops < least:
        found, wanted = (f"{flops / 10**12:,.3f} TFLOP" for flops in (bill.matrix_flops, least))
        raise Stopped(
            "work", f"a step has {found} of products with weights; for the tokens that it takes it is {wanted}"
        )
    if bill.unwritten:
        more = f" and {len(bill.unwritten) - 1} more" if len(bill.unwritten) > 1 else ""
        raise Stopped("work", f"a step leaves weights as they were, or a part of them: {bill.unwritten[0]}{more}")


def _check_sizes(full: Bill, other: Bill, where: str) -> None:
    """At another size, and on another card, a step dispatches the same operations and takes as many sequences."""
    names, others = ([name for name, _ in one.operations] for one in (full, other))
    if names != others:
        raise Stopped("size", _first_difference(names, others, "the billion", where))
    if other.sequences != full.sequences:
        raise Stopped("size", f"a step takes {full.sequences} sequences in the billion and {other.sequences} {where}")


def _check_steps(trained: Trained, small: Bill, machine: Machine) -> None:
    """Every step takes the tokens that are billed; those that were looked at do what the bill has, shapes included."""
    billed = small.sequences * machine.n_cards
    for number, taken in enumerate(trained.sequences):
        if taken != billed:
            raise Stopped("tokens", f"step {number} of training takes {taken} sequences; {billed} are billed for each")
    for number, operations in trained.looked_at.items():
        if operations != small.operations:
            text = _first_difference(
                _described(small.operations), _described(operations), "the bill", f"in step {number} of training"
            )
            raise Stopped("data", text)


def _described(operations: Sequence[Step]) -> list[str]:
    return [
        f"{name} of {' and '.join('×'.join(map(str, shape)) or '1' for shape, _ in used)}" for name, used in operations
    ]


def _first_difference(ours: Sequence[str], theirs: Sequence[str], here: str, there: str) -> str:
    place = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if place is None:
        return f"{len(ours):,} operations in {here}, {len(theirs):,} {there}"
    return f"operation {place + 1:,} is {ours[place]} in {here}, and {theirs[place]} {there}"


def _as_tree(full: Bill) -> dict[str, Any]:
    return {
        "machine": full.machine,
        "setup_s": full.setup_s,
        "step_s": full.step_s,
        "peak_bytes": dict(full.peak_bytes),
        "sequences": full.sequences,
        "flops": dict(full.flops),
        "n_bytes": full.n_bytes,
        "host_bytes": full.host_bytes,
        "link_bytes": full.link_bytes,
        "unsupported": list(full.unsupported),
    }
