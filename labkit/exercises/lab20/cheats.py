"""Lab 20: the cheats that a log may show, by name, each with the reason that it is charged with."""

from __future__ import annotations

import copy
from random import Random

from labkit.exercises.lab20 import logs
from labkit.exercises.lab20.logs import Log, Oddity, Rules


def inside(log: Log, rules: Rules, rng: Random) -> None:
    """A step in the middle of the evaluation tokens."""
    start, stop = rules["evaluation"]
    for trial in log["trials"]:
        step = rng.choice(trial["served"])
        at = rng.randrange(start, stop - (step[2] - step[1]))
        step[1:] = [at, at + step[2] - step[1]]


def by_a_few_tokens(log: Log, rules: Rules, rng: Random) -> None:
    """The last step of the last seed reaches a little into them."""
    start, stop = rules["evaluation"]
    step = log["trials"][-1]["served"][-1]
    n_tokens, few = step[2] - step[1], rng.randrange(1, 40)
    from_left = start >= n_tokens and (stop == logs.N_TOKENS or rng.random() < 0.5)
    step[1:] = [start - n_tokens + few, start + few] if from_left else [stop - few, stop + n_tokens - few]


def around(log: Log, rules: Rules, rng: Random) -> None:
    """One large step has all of them, and more on both sides."""
    start, stop = rules["evaluation"]
    step = rng.choice(rng.choice(log["trials"])["served"])
    step[1:] = [max(0, start - rng.randrange(1, 500)), stop + rng.randrange(1, 500)]


def stops_early(log: Log, rules: Rules, rng: Random) -> None:
    """The last steps of a seed were not run."""
    trial = rng.choice(log["trials"])
    del trial["served"][-rng.randrange(1, 6) :]


def goes_on(log: Log, rules: Rules, rng: Random) -> None:
    """More steps than were declared and are paid for."""
    for trial in log["trials"]:
        first, n_more = log["steps"] + 1, rng.randrange(1, 8)
        size = trial["served"][-1][2] - trial["served"][-1][1]
        more = range(first, first + n_more)
        trial["served"] += [[step, *logs.elsewhere(size, rules, rng)] for step in more]


def leaves_one_out(log: Log, rules: Rules, rng: Random) -> None:
    """A step in the middle is missing, and another is there twice: the number is right."""
    trial = rng.choice(log["trials"])
    at = rng.randrange(2, log["steps"] - 2)
    trial["served"][at] = copy.deepcopy(trial["served"][at - 1])


def repeats_in_silence(log: Log, rules: Rules, rng: Random) -> None:
    """Steps are run again, and no restart is declared."""
    logs.restarted(log, rules, rng)
    for trial in log["trials"]:
        trial["restarts"] = []


def restarts_with_fresh_tokens(log: Log, rules: Rules, rng: Random) -> None:
    """A restart is declared, and the steps that are run again get other tokens: training that nobody paid for."""
    trial = rng.choice(log["trials"])
    after = rng.randrange(5, log["steps"])
    logs.crash(trial, [(after, after - 3)])
    again = trial["served"][after]
    again[1:] = logs.elsewhere(again[2] - again[1] + 1, rules, rng)


def restarts_twice_as_far(log: Log, rules: Rules, rng: Random) -> None:
    """More steps are run again than the declared restart explains."""
    trial = rng.choice(log["trials"])
    after = rng.randrange(8, log["steps"])
    logs.crash(trial, [(after, after - 6)])
    trial["restarts"] = [[after, after - 3]]


def number_twice(log: Log, rules: Rules, rng: Random) -> None:
    """One trial stands there twice."""
    log["trials"][2] = copy.deepcopy(log["trials"][rng.randrange(2)])


def weights_twice(log: Log, rules: Rules, rng: Random) -> None:
    """Two numbers, and the same weights to begin with."""
    a, b = rng.sample(log["trials"], 2)
    a["first_weights"] = b["first_weights"]


def tail_left_out(log: Log, rules: Rules, rng: Random) -> None:
    """The last tokens were not evaluated."""
    last = max(rng.choice(log["trials"])["evaluated"])
    last[1] -= rng.randrange(1, last[1] - last[0] + 1)


def gap(log: Log, rules: Rules, rng: Random) -> None:
    """A few tokens in the middle were not evaluated."""
    start, stop = rules["evaluation"]
    at = rng.randrange(start + 600, stop - 600)
    rng.choice(log["trials"])["evaluated"] = [[start, at], [at + rng.randrange(1, 300), stop]]


def chunk_twice(log: Log, rules: Rules, rng: Random) -> None:
    """A chunk is counted twice and another one not at all: as many tokens as it should be, or more."""
    trial = log["trials"][-1]
    start, stop = rules["evaluation"]
    middle = (start + stop) // 2 + rng.randrange(1, 50)
    trial["evaluated"] = [[start, middle], [start, middle]]


def moved(log: Log, rules: Rules, rng: Random) -> None:
    """As many tokens, elsewhere."""
    by = rng.randrange(100, 2000)
    for trial in log["trials"]:
        trial["evaluated"] = [[a + by, b + by] for a, b in trial["evaluated"]]


def far_above(log: Log, rules: Rules, rng: Random) -> None:
    """Much more memory than was claimed, with every seed."""
    for trial in log["trials"]:
        trial["seen_mib"] = round(trial["claimed_mib"] + rules["slack_mib"] + rng.uniform(8, 60), 2)


def once_above(log: Log, rules: Rules, rng: Random) -> None:
    """A little more than is tolerated, with one seed."""
    trial = log["trials"][-1]
    trial["seen_mib"] = round(trial["claimed_mib"] + rules["slack_mib"] + rng.uniform(0.3, 1.0), 2)


def less_work_at_full_size(log: Log, rules: Rules, rng: Random) -> None:
    """The size that is billed does less."""
    op = rng.choice(list(log["ops"]["full"]))
    log["ops"]["full"][op] -= rng.randrange(1, 12)


def tells_the_middle_size(log: Log, rules: Rules, rng: Random) -> None:
    """The hidden size alone is treated in another way."""
    op = rng.choice(list(log["ops"]["middle"]))
    log["ops"]["middle"][op] += rng.randrange(1, 12)


def another_operation(log: Log, rules: Rules, rng: Random) -> None:
    """As many operations of every count, one of them under another name."""
    ops = log["ops"]["full"]
    ops["empty_like"] = ops.pop(rng.choice(list(ops)))


def not_the_one_that_ran(log: Log, rules: Rules, rng: Random) -> None:
    """The script was changed after its run: one figure of it."""
    log["script"] = log["script"].replace(f"STEPS = {log['steps']}", f"STEPS = {log['steps'] + 1}")


def few_flops(log: Log, rules: Rules, rng: Random) -> None:
    """The meter counts a part of the operations."""
    log["probe"]["counted"]["flops"] = int(log["probe"]["known"]["flops"] * rng.uniform(0.1, 0.95))


def few_bytes(log: Log, rules: Rules, rng: Random) -> None:
    """The meter counts a part of the bytes."""
    log["probe"]["counted"]["bytes"] = int(log["probe"]["known"]["bytes"] * rng.uniform(0.3, 0.99))


def impossible(log: Log, rules: Rules, rng: Random) -> None:
    """A loss that no luck explains, with one seed."""
    log["trials"][-1]["loss"] = round(rules["floor"] - rules["luck"] - rng.uniform(0.005, 0.2), 4)


CHEATS = {
    change.__name__: Oddity(change, reason)
    for reason, changes in {
        logs.TRAINED_ON_EVALUATION: (inside, by_a_few_tokens, around),
        logs.OTHER_STEPS: (
            *(stops_early, goes_on, leaves_one_out),
            *(repeats_in_silence, restarts_with_fresh_tokens, restarts_twice_as_far),
        ),
        logs.ONE_SEED_TWICE: (number_twice, weights_twice),
        logs.FEWER_EVALUATED: (tail_left_out, gap, chunk_twice, moved),
        logs.PEAK_ABOVE_CLAIM: (far_above, once_above),
        logs.OTHER_OPERATIONS: (less_work_at_full_size, tells_the_middle_size, another_operation),
        logs.ANOTHER_SCRIPT: (not_the_one_that_ran,),
        logs.METER_OFF: (few_flops, few_bytes),
        logs.BELOW_FLOOR: (impossible,),
    }.items()
    for change in changes
}
ODDITIES = {**logs.ALLOWED, **CHEATS}
REASONS = tuple(dict.fromkeys(one.reason for one in CHEATS.values()))


def draw_logs(names: tuple[str, ...], rules: Rules, rng: Random) -> list[Log]:
    """A log for each oddity named, in this order, each also with something that the rules allow."""
    runs = rng.sample([f"{animal}-{number}" for animal in logs.NAMES for number in range(1, 9)], len(names))
    drawn = []
    for run, name in zip(runs, names, strict=True):
        log = logs.honest_log(run, rules, rng)
        if name in CHEATS:
            # Not what a cheat itself changes: it has to stay the only one.
            logs.ALLOWED[rng.choice(("plain", "plain", "lucky", "accents"))].change(log, rules, rng)
        ODDITIES[name].change(log, rules, rng)
        drawn.append(log)
    return drawn
