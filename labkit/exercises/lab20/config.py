"""Lab 20: runs whose cost is to be predicted, and the game's script for each.

Nothing is billed here: `labkit.capstone.bill` does that.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.capstone.size import Size
from labkit.spec import Case


@dataclass(frozen=True)
class Config(Case):
    """A run: micro_batch texts at a time, n_micro times a step, on each of n_cards; weights and gradients of
    bytes_per_number (4 is float32, 2 is bfloat16); AdamW with two float32 states a weight, on the card or on the host.

    Config(width=1024, n_heads=8, vocab=8000, seq_len=512, micro_batch=2, n_micro=4, n_steps=100)
    """

    width: int
    n_heads: int
    vocab: int
    seq_len: int
    micro_batch: int
    n_micro: int
    n_steps: int
    bytes_per_number: int = 4
    recompute: bool = False
    states_on_host: bool = False
    n_cards: int = 1
    n_layers: int = 4

    @property
    def size(self) -> Size:
        return Size(self.width, self.n_heads, self.vocab, self.seq_len, self.n_layers)


ON_CARD = """
    optimizer.step()
"""
ON_HOST = """
    for place, weight in enumerate(weights):
        m, v = run.to_device(states[place][0]), run.to_device(states[place][1])
        grad = weight.grad.float()
        m.lerp_(grad, 0.1)
        v.lerp_(grad.mul_(grad), 0.01)
        weight.data.add_(m.div(v.sqrt().add_(1e-8)).to(weight.dtype), alpha=-1e-3)
        states[place] = run.to_host(m), run.to_host(v)
"""
SCRIPT = """
MACHINE = "{machine}"
STEPS = {n_steps}
CHANGED = "a run to predict"

def setup(run):
    model = run.model(torch.{dtype}, attention="fused")
    weights = list(model.parameters())
    {prepare}
    return model, weights, {kept}

def step(run, state, number):
    model, weights, {kept} = state
    for part in range({n_micro}):
        x, y = run.tokens({micro_batch})
        h = model.embed(x)
        for block in model.blocks:
            h = {block}
        loss = kit.loss(F.linear(model.norm(h), model.head), y)
        (loss / {n_micro}).backward()
    for weight in weights:
        run.all_reduce(weight.grad)
{update}
    for weight in weights:
        weight.grad = None
"""
NO_STATES = "states = [(run.to_host(torch.zeros_like(w, dtype=torch.float32)),) * 2 for w in weights]"


def script_of(config: Config) -> str:
    """The text of the run's script."""
    return SCRIPT.format(
        machine="basement" if config.n_cards == 1 else "quad",
        n_steps=config.n_steps,
        dtype={4: "float32", 2: "bfloat16"}[config.bytes_per_number],
        prepare=NO_STATES if config.states_on_host else "optimizer = kit.AdamW(weights, lr=1e-3)",
        kept="states" if config.states_on_host else "optimizer",
        n_micro=config.n_micro,
        micro_batch=config.micro_batch,
        block="kit.checkpoint(block, h)" if config.recompute else "block(h)",
        update=(ON_HOST if config.states_on_host else ON_CARD).strip("\n"),
    ).lstrip("\n")
