"""A model, a cluster and a plan: the numbers that decide what a device holds and how long a step takes.

Bytes are bytes, GB are 10^9 of them, times are seconds. Nothing is measured here.
"""

from __future__ import annotations

from dataclasses import dataclass

RECOMPUTATIONS = ("none", "selective", "full")
"""What the backward pass computes again: nothing, the attention core (as FlashAttention does), or whole layers."""


@dataclass(frozen=True)
class Model:
    """A decoder, and the batch of one step: `global_batch` sequences of `seq_len` tokens.

        Model("GPT", n_layers=48, hidden=1600, n_heads=25, n_kv_heads=25, mlp_hidden=6400, vocab=50304,
              seq_len=1024, global_batch=512)

    mlp_matrices: 2, or 3 where the MLP has a gate. n_experts: MLPs in a layer, of which each token takes
    `experts_per_token`; a dense model has one expert, which every token takes.
    """

    name: str
    n_layers: int
    hidden: int
    n_heads: int
    n_kv_heads: int
    mlp_hidden: int
    vocab: int
    seq_len: int
    global_batch: int
    mlp_matrices: int = 2
    n_experts: int = 1
    experts_per_token: int = 1

    @property
    def attention_params(self) -> int:
        """Of one layer: queries and output h x h each, keys and values h x (h of the kv heads)."""
        return 2 * self.hidden**2 + 2 * self.hidden**2 * self.n_kv_heads // self.n_heads

    @property
    def expert_params(self) -> int:
        """Of one expert of one layer; norms are left out everywhere, they are too small to matter."""
        return self.mlp_matrices * self.hidden * self.mlp_hidden

    @property
    def embedding_params(self) -> int:
        """Of the embedding; the output matrix has as many."""
        return self.vocab * self.hidden

    @property
    def n_params(self) -> int:
        """Of the whole model.

        >>> from labkit.plan import LLAMA_8B
        >>> f"{LLAMA_8B.n_params / 1e9:.2f}"
        '8.03'
        """
        layer = self.attention_params + self.n_experts * self.expert_params
        return self.n_layers * layer + 2 * self.embedding_params

    def kept_bytes(self, recompute: str) -> int:
        """What one layer keeps of one token for the backward pass, in bytes, before anything is split.

        Korthikanti and others, Reducing Activation Recomputation in Large Transformer Models (2022), table 2: 34 h
        without the attention core where the MLP is 4 h wide, 5 a s more with it, 2 h with full recomputation. For
        other MLPs: 18 h, and 4 bytes per hidden unit and matrix but one, of each expert that the token takes.
        """
        if recompute == "full":
            return 2 * self.hidden
        mlp = 4 * self.mlp_hidden * (self.mlp_matrices - 1) * self.experts_per_token
        scores = 5 * self.n_heads * self.seq_len if recompute == "none" else 0
        return 18 * self.hidden + mlp + scores


@dataclass(frozen=True)
class Cluster:
    """Nodes of devices, with what a device holds and computes and what links carry in one direction.

        Cluster("two nodes", n_nodes=2, devices_per_node=4, memory_gb=64, flops_per_s=190e12, node_bytes_per_s=200e9,
                network_bytes_per_s=25e9)

    flops_per_s: that a device reaches in large matrix products, not its peak. node_bytes_per_s: of one device to the
    others of its node. network_bytes_per_s: of one node to the others, for all of its devices together. layer_start_s:
    what a forward pass of one layer costs however few tokens it has (a dozen kernels that start and end).
    """

    name: str
    n_nodes: int
    devices_per_node: int
    memory_gb: float
    flops_per_s: float
    node_bytes_per_s: float
    network_bytes_per_s: float
    layer_start_s: float = 2e-4

    @property
    def n_devices(self) -> int:
        return self.n_nodes * self.devices_per_node

    @property
    def memory_bytes(self) -> float:
        return self.memory_gb * 1e9


@dataclass(frozen=True)
class Plan:
    """How training is cut up. tensor, pipeline, context and data multiply to the number of devices.

        Plan(tensor=4, pipeline=2, data=8, micro_batch=2, sharding=1, recompute="selective")

    expert: so many ranks of the data-parallel ones share the experts of a layer. micro_batch: sequences that a replica
    has in one forward pass. sharding: what ZeRO cuts among the replicas: 0 nothing, 1 optimizer state, 2 gradients as
    well, 3 weights as well. recompute: one of `RECOMPUTATIONS`.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    context: int = 1
    expert: int = 1
    micro_batch: int = 1
    sharding: int = 0
    recompute: str = "none"

    @property
    def n_devices(self) -> int:
        return self.tensor * self.pipeline * self.data * self.context

    def n_microbatches(self, model: Model) -> int:
        """That each replica has in a step."""
        return model.global_batch // (self.data * self.micro_batch)

    def __str__(self) -> str:
        """ "t 8, p 4, d 2, c 1, e 1, micro-batch 2, ZeRO-1, selective recomputation" """
        return (
            f"t {self.tensor}, p {self.pipeline}, d {self.data}, c {self.context}, e {self.expert}, "
            f"micro-batch {self.micro_batch}, ZeRO-{self.sharding}, "
            f"{'no' if self.recompute == 'none' else self.recompute} recomputation"
        )
