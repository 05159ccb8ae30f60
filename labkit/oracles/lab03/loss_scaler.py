"""Lab 03: the oracle of the loss scaler: what torch.amp.GradScaler does with the same gradients."""

from __future__ import annotations

import torch

from labkit.compare import inputs_untouched
from labkit.exercises.lab03.loss_scaler import LOSS, RARE, SCALE, SCALED, STATE, UNSCALED, WEIGHTS, ScaledTraining, play
from labkit.oracles.calls import as_call
from labkit.oracles.lab03.scaler_hints import HINTS
from labkit.spec import CaseRun, Observation, Oracle, Tolerance


def by_pytorch(run: CaseRun[ScaledTraining]) -> dict[str, object]:
    case = run.case
    scaler = torch.amp.GradScaler(
        "cpu",
        init_scale=case.init_scale,
        growth_factor=case.growth_factor,
        backoff_factor=case.backoff_factor,
        growth_interval=case.growth_interval,
    )
    return play(scaler, case, run.tree)


TOLERANCES = {
    SCALE: Tolerance(rtol=1e-6),
    SCALED: Tolerance(rtol=1e-5),
    LOSS: Tolerance(rtol=1e-5),
    UNSCALED: Tolerance(rtol=1e-5),
    WEIGHTS: Tolerance(atol=1e-6, rtol=1e-5),
    STATE: Tolerance(atol=1e-7, rtol=1e-4),
    RARE: Tolerance(atol=1e-6, rtol=1e-4),
}
"""A few roundings of float32: the factors are powers of two, so that dividing and multiplying by 1 / scale agree."""


def in_words(run: Observation) -> str:
    """ "LossScaler(init_scale=4.0, ...); 4 steps of AdamW, infinity in steps 0, 1" """
    case = run.case
    settings = ("init_scale", "growth_factor", "backoff_factor", "growth_interval")
    made = as_call("LossScaler", **{name: getattr(case, name) for name in settings})
    groups = " with 2 groups of parameters" if case.n_param_groups > 1 else ""
    steps = {
        "an infinite gradient": case.infinity_in_steps,
        "NaN": case.nan_in_steps,
        "unscale_ called": case.unscale_in_steps,
    }
    events = (f"{what} in {_numbered(which)}" for what, which in steps.items() if which)
    optimizer = {"sgd": "SGD", "adamw": "AdamW"}[case.optimizer]
    return ", ".join([f"{made}; {case.n_steps} steps of {optimizer}{groups}", *events])


def _numbered(steps: tuple[int, ...]) -> str:
    return f"step{'s' * (len(steps) > 1)} {', '.join(map(str, steps))}"


MOST_STEPS = 32
"""As many as a case may have, at least: places are named for each."""

LOSS_SCALER = Oracle(
    id="03-loss-scaler",
    expect=by_pytorch,
    tolerance=lambda run: TOLERANCES,
    judge=(inputs_untouched,),
    call=in_words,
    places={f"{SCALE}.after step {step}": f"{SCALE} after step {step}" for step in range(MOST_STEPS)},
    errors={
        "'NoneType'": (
            "If that is a gradient: a parameter that takes no part in the loss has none, and its p.grad is None. Leave "
            "it out."
        ),
    },
    diagnose=HINTS,
)
