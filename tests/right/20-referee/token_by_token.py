# Sets of single tokens, a walk along the steps, and a generator of reasons.
import hashlib


def steps_are_right(trial, n_steps):
    crashes = [tuple(one) for one in trial["restarts"]]
    seen, before = {}, 0
    for step, *tokens in trial["served"]:
        if step != before + 1:
            if not crashes or crashes.pop(0) != (before, step - 1):
                return False
        if seen.setdefault(step, tokens) != tokens:
            return False
        before = step
    return before == n_steps and not crashes


def reasons(log, rules):
    secret = set(range(*rules["evaluation"]))
    for trial in log["trials"]:
        if any(secret & set(range(a, b)) for _, a, b in trial["served"]):
            yield "trained on evaluation tokens"
        if not steps_are_right(trial, log["steps"]):
            yield "steps other than declared"
        if secret - set().union(*(range(a, b) for a, b in trial["evaluated"])):
            yield "fewer evaluation tokens"
        if trial["seen_mib"] - trial["claimed_mib"] > rules["slack_mib"]:
            yield "peak above its claim"
        if rules["floor"] - trial["loss"] > rules["luck"]:
            yield "loss below the floor"
    if any(len({trial[key] for trial in log["trials"]}) != rules["n_seeds"] for key in ("seed", "first_weights")):
        yield "one seed twice"
    if len({tuple(sorted(ops.items())) for ops in log["ops"].values()}) > 1:
        yield "operations depend on the size"
    if not hashlib.sha256(bytes(log["script"], "utf-8")).hexdigest().startswith(log["digest"]):
        yield "another script"
    if any(log["probe"]["known"][what] != log["probe"]["counted"][what] for what in ("flops", "bytes")):
        yield "meter does not count"


def referee(logs, rules):
    found = ((log["run"], list(reasons(log, rules))) for log in logs)
    return {run: said[0] for run, said in found if said}
