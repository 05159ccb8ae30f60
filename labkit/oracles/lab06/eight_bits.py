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


class Mistaken(torch.optim.Adam):
    """torch's Adam whose moments are rounded after every step, with one mistake: "" is none, "exact" does not round."""

    def __init__(self, groups: list[dict], mistake: str, **settings: object) -> None:
        super().__init__(groups, foreach=False, **settings)
        self.mistake = mistake

    def load_state_dict(self, saved: dict) -> None:
        if self.mistake != "state lost":
            super().load_state_dict(saved)

    @torch.no_grad()
    def step(self) -> None:
        super().step()
        for parameter, state in self.state.items():
            if self.mistake == "exact" or parameter.numel() < SMALLEST_QUANTIZED:
                continue
            for name, signed in (("exp_avg", True), ("exp_avg_sq", False)):
                linear = self.mistake in (f"linear {name}", "linear")
                code_map = (linear_map if linear else dynamic_map)(signed)
                size = parameter.numel() if self.mistake == "one block" else BLOCK
                state[name].copy_(rounded(state[name], code_map, size))


@once
def history(run: CaseRun[EightBitSteps], mistake: str = "") -> dict:
    return play(lambda groups: Mistaken(groups, mistake, **run.case.settings()), run.case, run.tree)


def deviation(got: dict, wanted: dict, lr: float) -> float:
    """How far the weights are apart after the last step: the mean over the quantized ones, in shares of a step."""
    last = f"after step {len(wanted)}"
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
