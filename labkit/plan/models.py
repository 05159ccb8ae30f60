"""Models and clusters that the lab plans for, from what has been published of them."""

from __future__ import annotations

from dataclasses import replace

from labkit.plan.things import Cluster, Model

LLAMA_8B = Model(
    "Llama-3-8B",
    n_layers=32,
    hidden=4096,
    n_heads=32,
    n_kv_heads=8,
    mlp_hidden=14336,
    mlp_matrices=3,
    vocab=128256,
    seq_len=8192,
    global_batch=512,
)
"""Its published configuration, with a batch of 4 million tokens."""

LLAMA_8B_LONG = replace(LLAMA_8B, name="Llama-3-8B, long", seq_len=131072, global_batch=32)
"""As many tokens a step in texts 16 times as long."""

LLAMA_8B_SMALL_BATCH = replace(LLAMA_8B, name="Llama-3-8B, small batch", seq_len=2048, global_batch=64)
"""131 thousand tokens a step, as in fine-tuning."""

MIXTRAL = Model(
    "Mixtral-8x7B",
    n_layers=32,
    hidden=4096,
    n_heads=32,
    n_kv_heads=8,
    mlp_hidden=14336,
    mlp_matrices=3,
    vocab=32000,
    seq_len=4096,
    global_batch=1024,
    n_experts=8,
    experts_per_token=2,
)
"""Its published configuration, with a batch of 4 million tokens."""

SIXTEEN_EXPERTS = Model(
    "16 experts, 10 B",
    n_layers=24,
    hidden=2048,
    n_heads=16,
    n_kv_heads=4,
    mlp_hidden=4096,
    mlp_matrices=3,
    vocab=32000,
    seq_len=1024,
    global_batch=256,
    n_experts=16,
    experts_per_token=2,
)
"""10 billion parameters, of which a token uses 1.6 billion; sizes and a fine-tuning batch of our own."""

LLAMA_70B = Model(
    "Llama-3-70B",
    n_layers=80,
    hidden=8192,
    n_heads=64,
    n_kv_heads=8,
    mlp_hidden=28672,
    mlp_matrices=3,
    vocab=128256,
    seq_len=8192,
    global_batch=512,
)
"""Its published configuration, with a batch of 4 million tokens."""

MEGATRON_1T = Model(
    "Megatron 1T",
    n_layers=128,
    hidden=25600,
    n_heads=160,
    n_kv_heads=160,
    mlp_hidden=4 * 25600,
    vocab=51200,
    seq_len=2048,
    global_batch=3072,
)
"""The last row of table 1 in Narayanan and others, Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM (2021), which ran on `SELENE` with t = 8, p = 64, d = 6 at 163 TFLOP/s a GPU."""

SELENE = Cluster(
    "Selene, 384 nodes",
    n_nodes=384,
    devices_per_node=8,
    memory_gb=80,
    flops_per_s=200e12,
    node_bytes_per_s=200e9,
    network_bytes_per_s=200e9,
)
"""Nodes of 8 A100 with 80 GB and 8 ports of 200 Gbit/s. Large products reach about two thirds of the 312 TFLOP/s."""


P4D = Cluster(
    "p4d, 2 nodes",
    n_nodes=2,
    devices_per_node=8,
    memory_gb=40,
    flops_per_s=200e12,
    node_bytes_per_s=200e9,
    network_bytes_per_s=50e9,
)
"""Amazon's p4d.24xlarge: 8 A100 with 40 GB, and 400 Gbit/s to other nodes."""


def leonardo(n_nodes: int) -> Cluster:
    """Nodes of 4 A100 with 64 GB, with 25 GB/s a node."""
    return Cluster(
        f"Leonardo, {n_nodes} nodes",
        n_nodes=n_nodes,
        devices_per_node=4,
        memory_gb=64,
        flops_per_s=200e12,
        node_bytes_per_s=200e9,
        network_bytes_per_s=25e9,
    )
