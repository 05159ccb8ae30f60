"""Figures drawn from the student's own results: a result goes in, a matplotlib Figure comes out."""

from inspect import isfunction

from labkit.figures.ablation_matrix import ablation_matrix
from labkit.figures.adapter_shapes import low_rank_update, prompt_or_prefix
from labkit.figures.adapters import bytes_by_method, code_usage, loss_at_equal_bytes, update_spectrum
from labkit.figures.allocator import allocator_trace, segment_map
from labkit.figures.amp_flow import amp_layers, amp_step
from labkit.figures.attention import bytes_against_length, visited_tiles
from labkit.figures.banks import bank_map, bank_player
from labkit.figures.batch_search import predicted_and_found
from labkit.figures.batch_size import accumulation_memory, token_weights
from labkit.figures.batches import packed_mask, padding_pictures, padding_player, shuffle_places, shuffle_player
from labkit.figures.blank import or_a_note
from labkit.figures.break_even import break_even_curves
from labkit.figures.budget import budget_slider, kept_at_budgets
from labkit.figures.causal_deal import causal_deal, deal_player
from labkit.figures.collectives import bytes_by_rank, collective_player, collective_steps
from labkit.figures.compile_calls import call_strip, versions_by_size
from labkit.figures.contest import contest
from labkit.figures.cost_model import Between, between_nodes, between_nodes_bars, cost_map, time_against_size
from labkit.figures.critical_batch import batch_slider, two_batch_sizes
from labkit.figures.cut_logits import cut_logits
from labkit.figures.ddp import ddp_player, ddp_scaling, ddp_timeline, normalization_error
from labkit.figures.expert_load import expert_load, expert_player
from labkit.figures.formats import bit_fields, number_line, quantization_error
from labkit.figures.fused_bytes import fused_bytes
from labkit.figures.gantt import gantt, gantt_player
from labkit.figures.ghost_ladder import ghost_ladder
from labkit.figures.gradient_noise import gradient_noise
from labkit.figures.gradient_ratios import gradient_ratios
from labkit.figures.gradient_sizes import gradient_histogram
from labkit.figures.graph_breaks import graphs_and_breaks
from labkit.figures.heads_for_tokens import heads_for_tokens
from labkit.figures.kept_nodes import kept_and_dropped, who_may_reuse
from labkit.figures.kernel_life import kernel_life, life_of, life_player
from labkit.figures.kernel_sketches import backward_walks, fused_chain, masked_block, query_walk, tile_walk
from labkit.figures.kernels import launch_map, traffic_bars
from labkit.figures.late import late_gradients
from labkit.figures.launch import killed_run
from labkit.figures.launch_times import launch_times
from labkit.figures.layers_in_time import fsdp_timeline, held_through_layers, layer_through_time
from labkit.figures.llama_layer import llama_layer
from labkit.figures.memory import memory_by_category, memory_timeline
from labkit.figures.memory_bars import Plan, memory_bars, memory_sliders
from labkit.figures.memory_lines import depth_line, kept_per_token
from labkit.figures.mixed_precision import amp_memory, dtype_map, loss_scale_trace
from labkit.figures.mlp_flow import mlp_flow
from labkit.figures.occupancy import bytes_on_their_way, occupancy_steps, wave_chart
from labkit.figures.optimizers import (
    bytes_per_parameter,
    code_maps,
    steps_by_gradient_size,
    training_losses,
)
from labkit.figures.overlap import host_waits, overlap_gain
from labkit.figures.pipeline import (
    interleaved_player,
    pipeline_chart,
    pipeline_memory,
    pipeline_player,
    pipeline_sketch,
)
from labkit.figures.plan_plane import plan_explorer, plan_plane
from labkit.figures.predicted_peaks import predicted_peaks
from labkit.figures.profile_trace import device_timeline, kernel_bars
from labkit.figures.program_steps import program_steps
from labkit.figures.prompts import adaptation_losses, attention_map
from labkit.figures.rank_grid import grid_of_ranks, rank_grid
from labkit.figures.recomputation import backpropagation_memory, segment_tradeoff
from labkit.figures.ring_steps import ring_steps_player
from labkit.figures.rings import ring_over_nodes, ring_plan
from labkit.figures.roofline import flops_against_time, roofline
from labkit.figures.rounding import orders_of_adding, rounding_to_even
from labkit.figures.sampler import who_sees_what
from labkit.figures.scaling import scaling_law
from labkit.figures.schedule_game import schedule_game, schedule_strip
from labkit.figures.sharded_start import init_peaks, recut_map
from labkit.figures.sharded_step import sharded_step, sharded_step_player
from labkit.figures.sharding import held_by_stage, sharding_bars, sharding_sliders, tokens_that_hide
from labkit.figures.source_heat import source_heat
from labkit.figures.step_moments import step_moments
from labkit.figures.sums import error_against_n, merging_cost, stalling_sum, tiny_updates
from labkit.figures.tensor_parallel import cut_matrices, cut_matrices_slider, sequence_costs
from labkit.figures.tensor_words import tensor_words
from labkit.figures.thread_grid import thread_grid
from labkit.figures.thread_traces import thread_traces
from labkit.figures.tiles import cache_curve, softmax_on_its_way, tile_order, tile_roofline
from labkit.figures.timing import timing_methods
from labkit.figures.two_halves import two_halves
from labkit.figures.warmup import rms_over_scale
from labkit.figures.warp_accesses import address_player, lane_addresses, warp_player, warp_sectors
from labkit.figures.waves import wave_staircase
from labkit.figures.weight_steps import newton_schulz_player, step_beside_gap, step_player
from labkit.figures.words_game import colour_words

__all__ = [
    "Between",
    "Plan",
    "ablation_matrix",
    "accumulation_memory",
    "adaptation_losses",
    "address_player",
    "allocator_trace",
    "amp_layers",
    "amp_memory",
    "amp_step",
    "attention_map",
    "backpropagation_memory",
    "backward_walks",
    "bank_map",
    "bank_player",
    "batch_slider",
    "between_nodes",
    "between_nodes_bars",
    "bit_fields",
    "break_even_curves",
    "budget_slider",
    "bytes_against_length",
    "bytes_by_method",
    "bytes_by_rank",
    "bytes_on_their_way",
    "bytes_per_parameter",
    "cache_curve",
    "call_strip",
    "causal_deal",
    "code_maps",
    "code_usage",
    "collective_player",
    "collective_steps",
    "colour_words",
    "contest",
    "cost_map",
    "cut_logits",
    "cut_matrices",
    "cut_matrices_slider",
    "ddp_player",
    "ddp_scaling",
    "ddp_timeline",
    "deal_player",
    "depth_line",
    "device_timeline",
    "dtype_map",
    "error_against_n",
    "expert_load",
    "expert_player",
    "flops_against_time",
    "fsdp_timeline",
    "fused_bytes",
    "fused_chain",
    "gantt",
    "gantt_player",
    "ghost_ladder",
    "gradient_histogram",
    "gradient_noise",
    "gradient_ratios",
    "graphs_and_breaks",
    "grid_of_ranks",
    "heads_for_tokens",
    "held_by_stage",
    "held_through_layers",
    "host_waits",
    "init_peaks",
    "interleaved_player",
    "kept_and_dropped",
    "kept_at_budgets",
    "kept_per_token",
    "kernel_bars",
    "kernel_life",
    "killed_run",
    "lane_addresses",
    "late_gradients",
    "launch_map",
    "launch_times",
    "layer_through_time",
    "life_of",
    "life_player",
    "llama_layer",
    "loss_at_equal_bytes",
    "loss_scale_trace",
    "low_rank_update",
    "masked_block",
    "memory_bars",
    "memory_by_category",
    "memory_sliders",
    "memory_timeline",
    "merging_cost",
    "mlp_flow",
    "newton_schulz_player",
    "normalization_error",
    "number_line",
    "occupancy_steps",
    "orders_of_adding",
    "overlap_gain",
    "packed_mask",
    "padding_pictures",
    "padding_player",
    "pipeline_chart",
    "pipeline_memory",
    "pipeline_player",
    "pipeline_sketch",
    "plan_explorer",
    "plan_plane",
    "predicted_and_found",
    "predicted_peaks",
    "program_steps",
    "prompt_or_prefix",
    "quantization_error",
    "query_walk",
    "rank_grid",
    "recut_map",
    "ring_over_nodes",
    "ring_plan",
    "ring_steps_player",
    "rms_over_scale",
    "roofline",
    "rounding_to_even",
    "scaling_law",
    "schedule_game",
    "schedule_strip",
    "segment_map",
    "segment_tradeoff",
    "sequence_costs",
    "sharded_step",
    "sharded_step_player",
    "sharding_bars",
    "sharding_sliders",
    "shuffle_places",
    "shuffle_player",
    "softmax_on_its_way",
    "source_heat",
    "stalling_sum",
    "step_beside_gap",
    "step_moments",
    "step_player",
    "steps_by_gradient_size",
    "tensor_words",
    "thread_grid",
    "thread_traces",
    "tile_order",
    "tile_roofline",
    "tile_walk",
    "time_against_size",
    "timing_methods",
    "tiny_updates",
    "token_weights",
    "tokens_that_hide",
    "traffic_bars",
    "training_losses",
    "two_batch_sizes",
    "two_halves",
    "update_spectrum",
    "versions_by_size",
    "visited_tiles",
    "warp_player",
    "warp_sectors",
    "wave_chart",
    "wave_staircase",
    "who_may_reuse",
    "who_sees_what",
]

for _name in __all__:
    if isfunction(_draw := globals()[_name]):
        globals()[_name] = or_a_note(_draw)
del _name, _draw
