"""Lab 01: what the forward pass keeps."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.exercises.lab01.llama import Llama
from labkit.spec import Answer, Exercise


@dataclass(frozen=True)
class Forward(Llama):
    """A forward pass. attention: "sdpa" or "eager", as transformers calls them. dtype: "bfloat16" or "float32"."""

    batch_size: int = 2
    seq_len: int = 64
    attention: str = "sdpa"
    dtype: str = "bfloat16"

    @property
    def dtype_bytes(self) -> int:
        return 2 if self.dtype == "bfloat16" else 4


ACTIVATION_BYTES = Exercise(
    id="01-activation-bytes",
    title="What the forward pass keeps",
    points=5,
    minutes=45,
    difficulty=3,
    answers=(Answer("activation_bytes"),),
    public=(
        Forward(64, 176, 3, 8, 2, 180, batch_size=3, seq_len=60),
        Forward(32, 96, 2, 4, 2, 2000, batch_size=2, seq_len=32),
        Forward(48, 128, 3, 8, 2, 100, batch_size=1, seq_len=128, attention="eager"),
        Forward(64, 224, 3, 4, 4, 300, batch_size=3, seq_len=40, dtype="float32"),
        Forward(32, 64, 3, 4, 1, 300, batch_size=2, seq_len=96, attention="eager", dtype="float32"),
        Forward(64, 128, 2, 4, 2, 300, head_dim=28, batch_size=2, seq_len=44),
        Forward(48, 64, 2, 6, 3, 100, head_dim=18, batch_size=3, seq_len=24, attention="eager"),
        # So flat that what is kept outside of layers weighs enough.
        Forward(128, 32, 2, 4, 1, 50, batch_size=3, seq_len=20),
    ),
    inputs=lambda case, gen: {},
    drive=lambda ans, case, tree, stage: {
        "out": ans.activation_bytes(case.as_config(), case.batch_size, case.seq_len, case.attention, case.dtype_bytes)
    },
    forbids=(
        "labkit.measure_step",
        "labkit.meters.track_memory",
        "torch.autograd.graph.saved_tensors_hooks",
        "transformers.AutoModel.from_config",
        "transformers.AutoModelForCausalLM.from_config",
        "transformers.LlamaForCausalLM",
        "transformers.LlamaModel",
    ),
)
