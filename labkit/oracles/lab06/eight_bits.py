"""Lab 06: 8-bit Adam's usual mistakes, played: how far each takes the weights from where exact moments do."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.exercises.lab06.adam8bit import BLOCK, SMALLEST_QUANTIZED, EightBitSteps
from labkit.exercises.lab06.maps import dynamic_map, linear_map
from labkit.exercises.lab06.playing import play
from labkit.oracles.hints import once
from labkit.spec import CaseRun


def rounded(x: Tensor, code_map: Tensor, block_size: int = BLOCK) -> Tensor:
    """x with each number replaced by the nearest value of the map, times the largest magnitude of its block."""
    blocks = F.pad(x.flatten(), (0, -x.numel() % block_size)).view(-1, block_size)
    scales = blocks.abs().amax(1, keepdim=True)
    shares = torch.where(scales > 0, blocks / scales, 0.0)
    values = code_map[torch.bucketize(shares, (code_map[1:] + code_map[:-1]) / 2)]
    return (values * scales).flatten()[: x.numel()].view(x.shape)


MAPS = {
    "linear exp_avg_sq": (dynamic_map(True), linear_map(False)),
    "linear exp_avg": (linear_map(True), dynamic_map(False)),
    "linear": (linear_map(True), linear_map(False)),
    "signed exp_avg_sq": (dynamic_map(True), dynamic_map(True)),
    "unsigned exp_avg": (dynamic_map(False), dynamic_map(False)),
    "maps swapped": (dynamic_map(False), dynamic_map(True)),
}
"""The maps of both moments, where they are the mistake."""
RIGHT_MAPS = (dynamic_map(True), dynamic_map(False))


class Mistaken(torch.optim.Adam):
    """torch's Adam whose moments are rounded after every step, with one mistake: "" is none, "exact" does not round.

    Beside those of MAPS: "rounded first" steps with the rounded moments, "state lost" forgets them when it is loaded.
    """

    def __init__(self, groups: list[dict], mistake: str, **settings: object) -> None:
        super().__init__(groups, foreach=False, **settings)
        self.mistake = mistake

    def load_state_dict(self, saved: dict) -> None:
        if self.mistake != "state lost":
            super().load_state_dict(saved)

    @torch.no_grad()
    def step(self) -> None:
        before = {p: p.clone() for group in self.param_groups for p in group["params"]}
        super().step()
        for group in self.param_groups:
            for parameter in group["params"]:
                if self.mistake == "exact" or parameter.numel() < SMALLEST_QUANTIZED:
                    continue
                state = self.state[parameter]
                for name, code_map in zip(("exp_avg", "exp_avg_sq"), MAPS.get(self.mistake, RIGHT_MAPS), strict=True):
                    state[name].copy_(rounded(state[name], code_map))
                if self.mistake == "rounded first":
                    parameter.copy_(before[parameter] - group["lr"] * direction(state, group))


def direction(state: dict, group: dict) -> Tensor:
    """What Adam's step is in learning rates, from the moments as they are stored."""
    one, two = (1 - beta ** state["step"].item() for beta in group["betas"])
    return state["exp_avg"] / one / ((state["exp_avg_sq"] / two).sqrt() + group["eps"])


@once
def history(run: CaseRun[EightBitSteps], mistake: str = "") -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


def deviation(got: dict, wanted: dict, lr: float) -> float:
    """How far the weights are apart after the last step: the mean over the quantized ones, in shares of a step."""
    last = f"step {len(wanted)}"
    large = [name for name, value in wanted[last].items() if value.numel() >= SMALLEST_QUANTIZED]
    off = torch.cat([(got[last][name] - wanted[last][name]).abs().flatten() for name in large])
    return off.mean().item() / (lr * len(wanted))


def small_off(got: dict, wanted: dict) -> float:
    """The largest error of a weight whose moments are not quantized."""
    return max(
        (got[step][name] - value).abs().max().item()
        for step, weights in wanted.items()
        for name, value in weights.items()
        if value.numel() < SMALLEST_QUANTIZED
    )
