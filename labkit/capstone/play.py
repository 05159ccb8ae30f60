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

from labkit.capstone.alike import check_growth, check_sizes
from labkit.capstone.bill import Bill, bill, set_aside
from labkit.capstone.broken import RuleBroken
from labkit.capstone.entry import Entry
from labkit.capstone.machine import MACHINES, Machine
from labkit.capstone.score import TARGET_LOSS, virtual_hours
from labkit.capstone.script import ScriptRefused, read
from labkit.capstone.size import BILLION, TINY, between
from labkit.capstone.tiny import loss_of, train_tiny
from labkit.units import in_bytes

PUBLIC_SEEDS = (11, 12, 13)
FLOPS_OF_TRAINING = 6
"""For each weight and token: 2 in the forward pass, 4 in the backward pass."""

Done = TypeVar("Done")


@dataclass(frozen=True)
class Stopped(Exception):
    """A try ended early. kind: "refused", "raised", "rule", "dtype", "memory", "size", "data", "work", "tokens",
    "parked"."""

    kind: str
    text: str


def play(text: str, seeds: Sequence[int] = PUBLIC_SEEDS, secret: int = 0, machine: Machine | None = None) -> dict:
    """What a script comes to, as a tree: {"kind", "problem", "bill", "seeds", "weights", "script"}.

    secret: draws the size in between, and the card that is billed again. kind is "" where nothing ended the try.
    Nothing is trained where the bill has ended it already.
    """
    found: dict[str, Any] = {"kind": "", "problem": "", "bill": None, "seeds": list(seeds), "weights": []}
    with set_aside():
        try:
            _play(found, text, machine, secret)
        except ScriptRefused as error:
            found |= {"kind": "refused", "problem": str(error)}
        except Stopped as end:
            found |= {"kind": end.kind, "problem": end.text}
    return found


def _play(found: dict[str, Any], text: str, machine: Machine | None, secret: int) -> None:
    """Fill in what the tree has beyond what ended the try. Raises ScriptRefused and Stopped."""
    script = read(text)
    machine = machine or MACHINES[script.machine]
    found["script"] = {"steps": script.steps, "changed": script.changed, "digest": script.digest}
    found["script"]["uses"] = script.uses
    full = _run(lambda: bill(script, BILLION, machine))
    found["bill"] = _as_tree(full)
    _check_bill(full, machine)
    small = _run(lambda: bill(script, TINY, machine))
    rng = random.Random(secret)
    size, rank = between(rng), rng.randrange(machine.n_cards)
    other = _run(lambda: bill(script, size, machine, rank))
    on_card = f", on card {rank}" if rank else ""
    _run(lambda: check_sizes(full, small, "at the tiny size"))
    _run(lambda: check_sizes(full, other, f"with width {size.width}{on_card}"))
    for billed in (full, small, other):
        _check_work(billed)
    _run(lambda: check_growth(small, other, full))
    for seed in found["seeds"]:
        trained = _run(lambda seed=seed: train_tiny(script, seed, small, machine))
        found["weights"].append(dict(trained.weights))


def entry_of(found: Mapping[str, Any], machine: Machine | None = None) -> Entry | None:
    """The entry that a try came to, with losses worked out here; None where there is no bill.

    A try that trained on fewer seeds than it was given, or twice on one, or another model, has reached nothing.
    """
    if found.get("bill") is None:
        return None
    billed, script = found["bill"], found["script"]
    machine = machine or MACHINES[billed["machine"]]
    seeds = found["seeds"]
    try:
        losses = {str(seed): loss_of(weights, seed) for seed, weights in zip(seeds, found["weights"], strict=False)}
    except ValueError:
        losses = {}
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
        raise Stopped(error.kind, f"{_line(error)}{error}") from None
    except (KeyboardInterrupt, TimeoutError):
        raise
    except Exception as error:
        cause = error.__cause__ if error.__cause__ is not None else error
        if isinstance(cause, RuleBroken):
            raise Stopped(cause.kind, f"{_line(cause)}{cause}") from None
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
    """A step multiplies every token by every weight, there and back twice, attends to all that came before, and writes
    every weight."""
    size = bill.size
    n_tokens = bill.sequences * size.seq_len
    # Of the scores, each product with which is 2 FLOPs for each number of a head, half are of tokens that come later.
    of_scores = FLOPS_OF_TRAINING * size.n_layers * size.width * size.seq_len * n_tokens
    others = sum(bill.flops.values()) - bill.matrix_flops
    for found, least, what in (
        (bill.matrix_flops, FLOPS_OF_TRAINING * size.n_multiplied * n_tokens, "with weights"),
        (others, of_scores, "in attention"),
    ):
        if found < least:
            done, wanted = (f"{flops / 10**12:,.3f} TFLOP" for flops in (found, least))
            raise Stopped("work", f"a step has {done} of products {what}; for the tokens that it takes it is {wanted}")
    if bill.unwritten:
        more = f" and {len(bill.unwritten) - 1} more" if len(bill.unwritten) > 1 else ""
        raise Stopped("work", f"a step leaves weights as they were, or a part of them: {bill.unwritten[0]}{more}")


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
