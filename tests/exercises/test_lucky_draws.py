"""Wrong answers whose hint some draws of the hidden cases once took away, or replaced by another.

One draw is tried of every wrong answer in test_answers.py. Each of these was told otherwise on the draw that stands
beside it: by rounding, by a case in which the mistake does not show, or by a scale that comes out as another mistake
would have it.
"""

from __future__ import annotations

import pytest

from grading.demo.examples import example
from grading.hidden import Secret
from tests.exercises.harness import hidden_verdict

DRAWS = (
    ("01-activation-bytes/forgets_the_logits", 3),
    ("01-activation-bytes/fused_keeps_scores", 2),
    ("01-scaling-law/straight_line_without_logs", 0),
    ("02-blocked-sum/accumulator_without_the_wrong_axis", 3),
    ("02-blocked-sum/always_the_first_axis", 3),
    ("02-merge-smallest/level_by_level", 1),
    ("02-merge-smallest/level_by_level_sorted_once", 0),
    ("03-loss-scaler/remembers_the_bad_step", 1),
    ("03-loss-scaler/scales_the_loss_in_place", 2),
    ("03-train-step/clips_first", 0),
    ("03-train-step/divides_by_hand_as_well", 0),
    ("03-underflow/never_below_one", 4),
    ("03-underflow/scales_for_most_of_them", 8),
    ("04-alignment/multiprocessors_of_an_a100", 2),
    ("05-chunked-loss/dw_made_anew_for_each_chunk", 8),
    ("06-muon/in_bfloat16", 14),
    ("07-length-buckets/mask_of_ones", 1),
    ("07-length-buckets/padding_has_labels", 2),
    ("07-length-buckets/pads_tokens_with_ignored", 3),
    ("07-shard-workers/blocks_rounded_up", 8),
    ("07-shard-workers/loads_and_throws_away", 57),
    ("07-tar-shards/empties_the_buffer_for_each_shard", 10),
    ("08-frozen-nf4/copies_the_transpose", 2),
    ("08-nf4/compares_with_the_codes", 2),
    ("08-prefix-tuning/a_table_as_wide_as_the_hidden_state", 0),
    ("08-prefix-tuning/layers_kept_between_calls", 5),
    ("09-allocator/allocated_is_what_was_asked_for", 1),
    ("09-allocator/empties_the_small_pool_alone", 7),
    ("09-bench/the_call_in_the_middle", 13),
    ("10-occupancy/chooses_by_one_load", 7),
    ("10-occupancy/forgets_the_registers", 6),
    ("10-occupancy/parts_of_warps", 2),
    ("10-occupancy/registers_rounded_down", 2),
    ("10-occupancy/reserved_once", 1),
    ("10-occupancy/room_for_threads", 17),
    ("12-rmsnorm/keeps_r_in_half", 8),
    ("12-rmsnorm/partial_sums_in_half", 27),
    ("12-softmax/no_mask", 2),
    ("13-flash-attention/divides_by_the_last_blocks_sum", 0),
    ("13-flash-backward/keys_in_programs_of_queries", 4),
    ("13-flash-backward/keys_start_at_block_m", 4),
    ("13-grouped-order/groups_of_columns", 0),
    ("15-amp-clip/the_largest_table_only", 4),
    ("14-ring/half_the_way", 3),
    ("14-ring/list_entries_bound_anew", 3),
    ("20-flags/accumulates_with_the_whole_batch", 1),
)
"""The answer, and the number of the student for whom the cases are drawn."""
pytestmark = [pytest.mark.full("answers"), pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    ("name", "student"), [pytest.param(*draw, marks=pytest.mark.lab(draw[0][:2])) for draw in DRAWS]
)
def test_a_mistake_is_named_on_this_draw_too(name: str, student: int) -> None:
    wrong = example("wrong", name)
    secret = Secret(b"another course key", "lab", f"student {student}", "first")
    verdict = hidden_verdict(wrong.exercise, wrong.source, secret)
    assert verdict.score == 0
    assert wrong.hint in verdict.hint
