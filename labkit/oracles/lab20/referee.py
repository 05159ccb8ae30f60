"""Lab 20: what is true of a referee: whom it accuses. Of hidden runs only the grader knows it (`grading.hidden`).

What is odd about a run that was judged wrongly is asked in `judged_wrongly`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from labkit.compare import inputs_untouched
from labkit.exercises.lab20.cheats import ODDITIES, REASONS
from labkit.exercises.lab20.logs import (
    ANOTHER_SCRIPT,
    BELOW_FLOOR,
    FEWER_EVALUATED,
    METER_OFF,
    ONE_SEED_TWICE,
    OTHER_OPERATIONS,
    OTHER_STEPS,
    PEAK_ABOVE_CLAIM,
    TRAINED_ON_EVALUATION,
    Log,
)
from labkit.exercises.lab20.referee import HONEST, Hearing
from labkit.oracles.hints import Condition
from labkit.oracles.lab20.judged_wrongly import (
    above_at_all,
    accused,
    any_trial,
    as_many_as_due,
    below_floor,
    chunks_meet,
    enough_in_sum,
    every_number_there,
    far_below,
    fine_in_first,
    losses_repeat,
    missed,
    no_step_inside,
    not_too_few,
    probe_agrees,
    repeats_tokens,
    restarts_in_order,
    same_at,
    same_counts,
    same_total,
    seeds_differ,
    touches_evaluation,
    up_to_the_end,
    up_to_the_last,
    wrong,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Observation, Oracle

TRIES = (TRAINED_ON_EVALUATION, OTHER_STEPS, FEWER_EVALUATED, PEAK_ABOVE_CLAIM, BELOW_FLOOR)
"""Reasons that may hold for one trial of a run alone."""


def expected(run: CaseRun[Hearing]) -> dict[str, str]:
    """What the case says. ValueError where it says nothing."""
    if not run.case.runs:
        raise ValueError("what is odd about these runs is not known here")
    logs = zip(run.tree["logs"], run.case.runs, strict=True)
    return {log["run"]: ODDITIES[name].reason or HONEST for log, name in logs}


# What an answer does to all runs --------------------------------------------------------------------------------------


def accuses_by(score: Callable[[Log], float]) -> Condition:
    """Whoever is accused is better than everybody who is not. CANNOT_TELL where few are accused, all, or cheats alone:
    that happens by chance.
    """

    def when(run: CaseRun[Hearing]) -> Any:
        logs = run.tree["logs"]
        better = [score(log) for log in logs if run.got[log["run"]] != HONEST]
        others = [score(log) for log in logs if run.got[log["run"]] == HONEST]
        if better and others and max(better) > min(others):
            return False
        honest_too = any(run.got[name] != HONEST for name, true in run.expected.items() if true == HONEST)
        return True if len(better) > 1 and others and honest_too else CANNOT_TELL

    return when


def everybody(run: CaseRun[Hearing]) -> bool:
    return all(run.got[log["run"]] != HONEST for log in run.tree["logs"]) and HONEST in run.expected.values()


def every_script(run: CaseRun[Hearing]) -> Any:
    """Every honest run is accused of being another script. CANNOT_TELL where there is none."""
    honest = [run.got[name] for name, true in run.expected.items() if true == HONEST]
    return set(honest) == {ANOTHER_SCRIPT} if honest else CANNOT_TELL


def nobody(run: CaseRun[Hearing]) -> bool:
    return all(run.got[log["run"]] == HONEST for log in run.tree["logs"])


def several_missed_in_a_trial(run: CaseRun[Hearing]) -> Any:
    """Cheats of one trial were missed, and nothing else is wrong. CANNOT_TELL where they are of one kind."""
    found = wrong(run)
    kinds = {one.true for one in found}
    if not found or not kinds <= set(TRIES) or not all(one.said == HONEST and fine_in_first(one) for one in found):
        return False
    return True if len(kinds) > 1 else CANNOT_TELL


def in_words(run: Observation) -> str:
    rules = ", ".join(f"{name}: {value}" for name, value in run.tree["rules"].items())
    return f"referee(logs, rules) of {len(run.tree['logs'])} runs; {rules}"


def fact(run: CaseRun[Hearing]) -> str | None:
    """How many of each kind were judged wrongly."""
    kinds = Counter((one.true, one.said) for one in wrong(run))
    parts = [f"{n} run{'s'[: n > 1]} ({true}): you say {said}" for (true, said), n in kinds.items()]
    return "; ".join(parts) or None


DEFINITIONS = {
    TRAINED_ON_EVALUATION: "A run was trained on evaluation tokens if any step of any trial was served one of them.",
    OTHER_STEPS: "Each trial has to be served the steps 1 to log['steps'] in order. Only a declared restart explains a "
    "step that comes again.",
    ONE_SEED_TWICE: "The trials need as many different seeds as rules['n_seeds'], and different first weights: it is "
    "the weights that tell whether a seed was really used.",
    FEWER_EVALUATED: "Every evaluation token has to be in a chunk of trial['evaluated'], in every trial.",
    PEAK_ABOVE_CLAIM: "No trial may be seen with more memory than its claim and rules['slack_mib'].",
    OTHER_OPERATIONS: "log['ops'] has to be the same at every size: the same names, each as often.",
    ANOTHER_SCRIPT: "log['digest'] is the first 16 hexadecimal digits of the SHA-256 of log['script']. Compute it, and "
    "compare.",
    METER_OFF: "The engine ran work of known cost under the run's own meter: log['probe'] holds what it costs and what "
    "was counted. The two have to agree in FLOPs and in bytes.",
    BELOW_FLOOR: "No trial can have a loss below rules['floor'] by more than rules['luck'].",
}

REFEREE = Oracle(
    id="20-referee",
    expect=expected,
    judge=(inputs_untouched,),
    call=in_words,
    fact=fact,
    axis="every cheat in another place of the log, and everything that the rules allow",
    errors={"KeyError": "A log has the keys that the table lists; print one of example_logs(), and look."},
    diagnose=(
        Hint(
            lambda run: any(said == "None" for said in run.got.values()),
            "An honest run is in the result, with None. Return only the runs that you accuse.",
        ),
        Hint(
            lambda run: bool(said := set(run.got.values()) - {HONEST}) and not said & set(REASONS),
            "None of these is a reason of the table. Write the reasons letter by letter.",
        ),
        Hint(
            nobody,
            "Nobody was accused. Write one charge of the table after the other, and run the check in between.",
        ),
        Hint(
            every_script,
            "Every script was called another one. The log has the first 16 hexadecimal digits of its SHA-256, which "
            "has 64.",
        ),
        Hint(
            everybody,
            "Everybody was accused, honest runs too. Accuse only where the log proves it.",
        ),
        Hint(
            accuses_by(lambda log: log["virtual_hours"]),
            "The runs that were accused are those with the fewest virtual hours. A good score proves nothing: an "
            "honest run may be the best of all, and a cheat may be slow. Look at what was served, seen and counted.",
        ),
        Hint(
            accuses_by(lambda log: min(trial["loss"] for trial in log["trials"])),
            "The runs that were accused are those with the lowest loss. A low loss proves nothing as long as it is not "
            "below the floor by more than luck.",
        ),
        Hint(
            accused(TRAINED_ON_EVALUATION, touches_evaluation),
            "Tokens [a, b) end before b. A step may end where evaluation begins, and begin where it ends.",
        ),
        Hint(
            missed(TRAINED_ON_EVALUATION, no_step_inside),
            "A step that has evaluation tokens may begin before them, end after them, or both. [a, b) and [c, d) have "
            "a token in common if a < d and c < b.",
        ),
        Hint(
            accused(OTHER_STEPS, any_trial(lambda trial, one: bool(trial["restarts"]))),
            "A run with a declared restart was accused. [after, checkpoint] in trial['restarts'] allows the steps "
            "after the checkpoint, up to `after`, to come again, with the same tokens.",
        ),
        Hint(
            accused(OTHER_STEPS, repeats_tokens),
            "Two steps of different numbers may have the same tokens: the rules allow a second epoch.",
        ),
        Hint(
            missed(OTHER_STEPS, restarts_in_order),
            "A restart was declared, and its numbers are in order. But a step that is run again has to be served the "
            "tokens that it had before: with others, it is training that nobody declared.",
        ),
        Hint(
            missed(OTHER_STEPS, as_many_as_due),
            "The number of steps is right, the steps are not: one is missing and another comes twice, or a repeated "
            "one has other tokens. Compare the steps themselves.",
        ),
        Hint(
            missed(OTHER_STEPS, every_number_there),
            "Every number from 1 to the last is there, but some come again without a declared restart. A set hides "
            "that.",
        ),
        Hint(
            missed(OTHER_STEPS, up_to_the_last),
            "The last step has the right number. What comes before it was not looked at: steps may be missing or come "
            "again.",
        ),
        Hint(
            missed(OTHER_STEPS, not_too_few),
            "Too many steps are a cheat as well as too few: the score is paid for the declared ones.",
        ),
        Hint(
            missed(ONE_SEED_TWICE, seeds_differ),
            "The numbers of the seeds differ, but two trials began with the same weights: the seed was claimed and "
            "not used. Compare first_weights.",
        ),
        Hint(
            accused(ONE_SEED_TWICE, losses_repeat),
            "Two seeds may end with the same loss to four digits. It is seeds and first weights that have to differ.",
        ),
        Hint(
            accused(FEWER_EVALUATED, chunks_meet),
            "Chunks may overlap, stand in any order, and lie inside one another: after a short one you have come no "
            "less far than before it. What counts is that every evaluation token is in one of them.",
        ),
        Hint(
            missed(FEWER_EVALUATED, enough_in_sum),
            "The chunks have enough tokens in sum, but not the right ones: a chunk may be there twice, or elsewhere. "
            "Count each evaluation token once.",
        ),
        Hint(
            missed(FEWER_EVALUATED, up_to_the_end),
            "The last chunk ends where it should, but the chunks leave out tokens before it, at the start or in "
            "between.",
        ),
        Hint(
            accused(PEAK_ABOVE_CLAIM, far_below),
            "A run that claims more memory than was seen is honest: it pays for what it claims.",
        ),
        Hint(
            accused(PEAK_ABOVE_CLAIM, above_at_all),
            "A claim is rounded to 1 MiB, and the allocator takes a little more than the tensors. The rules allow "
            "rules['slack_mib'] above it.",
        ),
        Hint(accused(OTHER_OPERATIONS), "A dict is the same in any order: these runs do the same at all sizes."),
        Hint(
            missed(OTHER_OPERATIONS, same_counts),
            "The counts are the same at all sizes, the names are not. Compare name by name.",
        ),
        Hint(
            missed(OTHER_OPERATIONS, same_total),
            "The total is the same at all sizes, and yet the operations differ. Compare name by name.",
        ),
        Hint(
            missed(OTHER_OPERATIONS, same_at("tiny", "full")),
            "The tiny and the full size agree, and the hidden one in the middle does not. Compare all three.",
        ),
        Hint(
            missed(OTHER_OPERATIONS, same_at("tiny", "middle")),
            "The tiny and the middle size agree, and the full one does not. Compare all three.",
        ),
        Hint(
            missed(OTHER_OPERATIONS, same_at("middle", "full")),
            "The middle and the full size agree, and the tiny one does not. Compare all three.",
        ),
        Hint(
            accused(ANOTHER_SCRIPT, lambda one: not one.log["script"].isascii()),
            "The digest is of the script's UTF-8 bytes: script.encode().",
        ),
        Hint(missed(METER_OFF, probe_agrees("flops")), "The FLOPs of the probe agree, the bytes do not: compare both."),
        Hint(missed(METER_OFF, probe_agrees("bytes")), "The bytes of the probe agree, the FLOPs do not: compare both."),
        Hint(
            accused(BELOW_FLOOR, below_floor),
            "This loss is below the floor by less than rules['luck'], as a mean over so few tokens may be. That is no "
            "proof.",
        ),
        Hint(accused(BELOW_FLOOR), "A loss above the floor is possible, however good it is."),
        Hint(
            several_missed_in_a_trial,
            "What one trial of a run did was missed. A run is as honest as its worst trial: look at all of them, and "
            "at all their steps.",
        ),
        *(Hint(missed(reason), text) for reason, text in DEFINITIONS.items()),
        *(Hint(accused(reason), text) for reason, text in DEFINITIONS.items()),
    ),
)
