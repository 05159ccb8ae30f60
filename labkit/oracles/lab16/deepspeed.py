"""Lab 16: a configuration for DeepSpeed, read as DeepSpeed reads it. DeepSpeed itself is not needed for it.

Only what 16-volume asks for is read: the batch sizes, the ZeRO stage, the precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.exercises.lab16.volume import Volume
from labkit.spec import CANNOT_TELL, CaseRun

STAGES = {"ddp": 0, "zero1": 1, "zero2": 2, "zero3": 3}
BATCH, MICRO, STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


def batch_fault(config: dict, case: Volume) -> str | None:
    """What is wrong with the three batch sizes, of which one may be left out; None where nothing is."""
    given = {name: config[name] for name in (BATCH, MICRO, STEPS) if config.get(name) is not None}
    for name, size in given.items():
        if type(size) is not int or size < 1:
            return f"{name} is {size!r}, and must be a whole number of 1 or more"
    wanted = {BATCH: case.n_ranks * case.n_micro * case.micro_batch, MICRO: case.micro_batch, STEPS: case.n_micro}
    if len(given) < 2:
        return f"of {BATCH}, {MICRO} and {STEPS} at least two have to be given"
    for name, size in given.items():
        if size != wanted[name]:
            return f"{name} is {size}, and this run has {wanted[name]}"
    return None


def stage_fault(config: dict, case: Volume) -> str | None:
    """What is wrong with the ZeRO stage."""
    section = config.get("zero_optimization", {"stage": 0})
    if not isinstance(section, dict):
        return f'"zero_optimization" is {section!r}, and must be a dictionary with a "stage"'
    stage = section.get("stage", 0)
    if type(stage) is not int or stage != STAGES[case.method]:
        return f'the stage of "zero_optimization" is {stage!r}, and "{case.method}" is another one'
    return None


def precision_fault(config: dict, case: Volume) -> str | None:
    """What is wrong with the 16-bit format: one of two has to be switched on."""
    sections = [config.get(name) for name in ("bf16", "fp16")]
    on = [one.get("enabled") is True for one in sections if isinstance(one, dict)]
    return None if sum(on) == 1 else 'exactly one of "bf16" and "fp16" has to be {"enabled": True}'


FAULTS: tuple[Callable[[dict, Volume], str | None], ...] = (stage_fault, batch_fault, precision_fault)


def config_fits(run: CaseRun[Volume]) -> str | None:
    """A property: DeepSpeed would do what the case says. It is not asked for hybrid sharding."""
    config: Any = run.got["config"]
    if run.case.method not in STAGES:
        return None
    if not isinstance(config, dict):
        return f"deepspeed_config returned {type(config).__name__}, and a configuration is a dictionary"
    found = (fault(config, run.case) for fault in FAULTS)
    return next((f"deepspeed_config: {text}" for text in found if text), None)


def has_fault(fault: Callable[[dict, Volume], str | None]) -> Callable[[CaseRun[Volume]], Any]:
    """A hint's condition: the configuration has this fault, and it is the only kind that it has."""

    def when(run: CaseRun[Volume]) -> Any:
        if run.case.method not in STAGES:
            return CANNOT_TELL
        return [one for one in FAULTS if one(run.got["config"], run.case)] == [fault]

    return when
