"""Lab 20: what the engine writes down of a run that was handed in, drawn from a seed.

One honest log, and what makes it odd (`ODDITIES`): a cheat, with the reason that it is charged with, or something rare
that the rules allow. Nothing here finds a cheat, and no script is run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

Log = dict[str, Any]
Rules = dict[str, Any]

TRAINED_ON_EVALUATION = "trained on evaluation tokens"
OTHER_STEPS = "steps other than declared"
ONE_SEED_TWICE = "one seed twice"
FEWER_EVALUATED = "fewer evaluation tokens"
PEAK_ABOVE_CLAIM = "peak above its claim"
OTHER_OPERATIONS = "operations depend on the size"
ANOTHER_SCRIPT = "another script"
METER_OFF = "meter does not count"
BELOW_FLOOR = "loss below the floor"

N_TOKENS = 200_000
"""Of the whole text, those for evaluation included."""
SIZES = ("tiny", "middle", "full")
DIGITS = 16
"""Of a digest, hexadecimal: so many are published."""
NAMES = ("heron", "otter", "lynx", "finch", "ibex", "newt", "vole", "crane", "marten", "tern", "shrew", "plover")
_OPS = ("mm", "addmm", "_softmax", "native_layer_norm", "gelu", "embedding", "add", "mul", "_foreach_add_", "copy_")


@dataclass(frozen=True)
class Oddity:
    """What makes a log odd: a change of it, and the reason that it is charged with, None where the rules allow it.

    Oddity(another_script, "another script")
    """

    change: Callable[[Log, Rules, Random], None]
    reason: str | None = None


def draw_rules(rng: Random) -> Rules:
    """The rules of a contest: which tokens are for evaluation, and what is tolerated."""
    n_tokens = rng.randrange(4_000, 9_000)
    start = rng.choice((rng.randrange(20_000, 60_000), rng.randrange(60_000, 120_000), N_TOKENS - n_tokens))
    return {
        "evaluation": [start, start + n_tokens],
        "n_seeds": 3,
        "slack_mib": round(rng.uniform(2.0, 5.0), 1),
        "floor": round(rng.uniform(1.8, 2.6), 2),
        "luck": round(rng.uniform(0.02, 0.05), 3),
    }


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def honest_log(name: str, rules: Rules, rng: Random) -> Log:
    """A run that keeps the rules: log["virtual_hours"] is its score, and the rest is what the engine saw."""
    n_steps, batch = rng.randrange(14, 30), rng.choice((768, 1024, 1536, 2048))
    script = (
        f"# {name}\nMICRO_BATCH = {rng.choice((1, 2, 4, 8))}\nDTYPE = {rng.choice(('bf16', 'fp16'))!r}\n"
        f"CHECKPOINT = {rng.choice((True, False))}\nSTEPS = {n_steps}\n"
    )
    ops = {op: rng.randrange(12, 400) for op in rng.sample(_OPS, 7)}
    known = {"flops": rng.randrange(10**9, 10**11), "bytes": rng.randrange(10**7, 10**9)}
    base_loss, peak = rules["floor"] + rng.uniform(0.1, 0.9), rng.randrange(40, 400)
    return {
        "run": name,
        "script": script,
        "digest": digest_of(script),
        "steps": n_steps,
        "virtual_hours": round(rng.lognormvariate(5.3, 0.5), 1),
        "trials": [_trial(seed, n_steps, batch, base_loss, peak, rules, rng) for seed in rng.sample(range(1, 500), 3)],
        "ops": {size: dict(ops) for size in SIZES},
        "probe": {"known": known, "counted": dict(known)},
    }


def _trial(seed: int, n_steps: int, batch: int, loss: float, peak: int, rules: Rules, rng: Random) -> Log:
    start, stop = rules["evaluation"]
    cuts = sorted({start, stop, *rng.sample(range(start + 1, stop), rng.randrange(1, 5))})
    return {
        "seed": seed,
        "first_weights": digest_of(f"weights of seed {seed}"),
        "served": [[step, *elsewhere(batch, rules, rng)] for step in range(1, n_steps + 1)],
        "restarts": [],
        "evaluated": [[a, b] for a, b in pairwise(cuts)],
        "loss": round(loss + rng.uniform(-0.03, 0.03), 4),
        "claimed_mib": peak,
        "seen_mib": round(peak + rng.uniform(-2.0, 0.5), 2),
    }


def elsewhere(n_tokens: int, rules: Rules, rng: Random) -> list[int]:
    """[start, stop] of tokens that no evaluation uses."""
    start, stop = rules["evaluation"]
    while True:
        at = rng.randrange(N_TOKENS - n_tokens)
        if at + n_tokens <= start or at >= stop:
            return [at, at + n_tokens]


# What the rules allow -------------------------------------------------------------------------------------------------


def plain(log: Log, rules: Rules, rng: Random) -> None:
    """Nothing odd about it."""


def lucky(log: Log, rules: Rules, rng: Random) -> None:
    """The best of all, and of a loss as near to the floor as luck allows."""
    log["virtual_hours"] = round(log["virtual_hours"] / 10, 1)
    for trial in log["trials"]:
        trial["loss"] = round(rules["floor"] + rng.uniform(0.0, 0.05), 4)


def grazing(log: Log, rules: Rules, rng: Random) -> None:
    """One loss is below the floor, by less than what luck explains."""
    rng.choice(log["trials"])["loss"] = round(rules["floor"] - rng.uniform(0.3, 0.9) * rules["luck"], 4)


def restarted(log: Log, rules: Rules, rng: Random) -> None:
    """Crashed once or twice, and says so: the steps since the checkpoint are run again on the same tokens."""
    for trial in rng.sample(log["trials"], rng.choice((1, 3))):
        cuts = sorted(rng.sample(range(4, log["steps"]), rng.choice((1, 2))))
        crash(trial, [(after, after - rng.randrange(1, 4)) for after in cuts])


def crash(trial: Log, restarts: list[tuple[int, int]]) -> None:
    """Have it crash after these steps and go on from these checkpoints, (after, from) each; declared."""
    served, whole, begin = [], trial["served"], 0
    for after, resumed in restarts:
        served += whole[begin:after]
        begin = resumed
    trial["served"] = [list(step) for step in served + whole[begin:]]
    trial["restarts"] = [list(one) for one in restarts]


def neighbour(log: Log, rules: Rules, rng: Random) -> None:
    """A step's tokens end where evaluation begins, or begin where it ends."""
    start, stop = rules["evaluation"]
    step = rng.choice(rng.choice(log["trials"])["served"])
    n_tokens = step[2] - step[1]
    on_the_left = start >= n_tokens and (stop == N_TOKENS or rng.random() < 0.5)
    step[1:] = [start - n_tokens, start] if on_the_left else [stop, stop + n_tokens]


def second_epoch(log: Log, rules: Rules, rng: Random) -> None:
    """Two different steps see the same tokens."""
    trial = rng.choice(log["trials"])
    a, b = rng.sample(trial["served"], 2)
    b[1:] = a[1:]


def growing_batch(log: Log, rules: Rules, rng: Random) -> None:
    """The second half of the steps gets twice the tokens."""
    for trial in log["trials"]:
        for step in trial["served"][log["steps"] // 2 :]:
            step[1:] = elsewhere(2 * (step[2] - step[1]), rules, rng)


def overlapping_chunks(log: Log, rules: Rules, rng: Random) -> None:
    """All tokens are evaluated, some of them twice, and in any order. One chunk lies inside another."""
    start = rules["evaluation"][0]
    for trial in log["trials"]:
        trial["evaluated"] = [[max(start, a - rng.randrange(1, 90)), b] for a, b in trial["evaluated"]]
        rng.shuffle(trial["evaluated"])
        a, b = min(trial["evaluated"])
        trial["evaluated"].insert(0, [a + (b - a) // 3, a + (b - a) // 2])


def equal_losses(log: Log, rules: Rules, rng: Random) -> None:
    """Two seeds have the same loss to four digits, and are neighbours."""
    a, b = rng.sample(log["trials"], 2)
    a["seed"] = b["seed"] + 1
    a["first_weights"], a["loss"] = digest_of(f"weights of seed {a['seed']}"), b["loss"]
    other = next(one for one in log["trials"] if one is not a and one is not b)
    if other["seed"] == a["seed"]:
        other["seed"] += 1
        other["first_weights"] = digest_of(f"weights of seed {other['seed']}")


def slack_used(log: Log, rules: Rules, rng: Random) -> None:
    """More was seen than claimed, by nearly as much as is tolerated."""
    for trial in log["trials"]:
        trial["seen_mib"] = round(trial["claimed_mib"] + rules["slack_mib"] - rng.uniform(0.05, 0.4), 2)


def claims_too_much(log: Log, rules: Rules, rng: Random) -> None:
    """Less was seen than claimed."""
    for trial in log["trials"]:
        trial["claimed_mib"] += rng.randrange(6, 30)


def other_order(log: Log, rules: Rules, rng: Random) -> None:
    """The same operations, noted in another order."""
    for size in SIZES:
        log["ops"][size] = dict(rng.sample(list(log["ops"][size].items()), len(log["ops"][size])))


def accents(log: Log, rules: Rules, rng: Random) -> None:
    """A comment that is not ASCII."""
    log["script"] += "# déjà vu: 2 × 2 micro-batches\n"
    log["digest"] = digest_of(log["script"])


ALLOWED = {
    one.__name__: Oddity(one)
    for one in (
        *(plain, lucky, grazing, restarted, neighbour, second_epoch, growing_batch, overlapping_chunks),
        *(equal_losses, slack_used, claims_too_much, other_order, accents),
    )
}
