"""What lab 04 promises beyond the answers in tests/wrong and tests/right, and the figures of its text."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from grading.hidden.lab04.find_batch import caps
from grading.hidden.lab04.noise_scale import distributions
from labkit import exercises, limit_memory
from labkit.exercises.lab04.accumulate import IGNORED, Accumulation, network
from labkit.exercises.lab04.find_batch import FIND_BATCH, Capped
from labkit.exercises.lab04.memory_format import Images
from labkit.material import lab04
from labkit.observe import make_inputs
from labkit.oracles.lab04 import accumulate_hints, find_batch, noise_scale, throughput
from labkit.oracles.lab04.accumulate_mistakes import Loop, flat, play
from labkit.spec import CaseRun
from tests.exercises.harness import answers_in, solution_of

A100, V100 = (312e12, 2039e9), (125e12, 900e9)


def inputs(exercise_id: str, case) -> CaseRun:
    return CaseRun(case, make_inputs(exercises.find(exercise_id), case, 1))


def test_the_first_step_is_that_of_all_tokens_of_all_ranks_in_one_batch() -> None:
    run = inputs("04-accumulate", Accumulation(3, 3, n_ranks=2))
    model, losses = network(run.tree["weights"]), []
    for part in run.tree["ranks"]:
        for x, y in zip(part["x"], part["y"], strict=True):
            losses.append(
                F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="none")[y.flatten() != IGNORED]
            )
    torch.cat(losses).mean().backward()
    torch.testing.assert_close(
        play(run, Loop())["ranks"][1]["gradients"][0], flat([parameter.grad for parameter in model.parameters()])
    )


def test_texts_of_equal_length_hide_a_mean_of_means() -> None:
    run = inputs("04-accumulate", Accumulation(4, 2))
    window = run.tree["ranks"][0]
    run.tree["ranks"][0] = {name: [window[name][0], *window[name][:1] * 3] for name in "xy"}
    means = play(run, Loop(divisor=accumulate_hints.means("window")))
    torch.testing.assert_close(means["ranks"][0]["weights"], play(run, Loop())["ranks"][0]["weights"])


def test_the_peak_of_training_is_in_the_second_micro_batch_of_the_second_step() -> None:
    case = Capped(2_520_000)
    peaks = lab04.peaks_of(case, 17)
    assert list(peaks.values()) == sorted(peaks.values())
    assert max(peaks.values()) == find_batch.peak_bytes(case, 17)


@pytest.mark.parametrize("size, fits", [(17, True), (18, False)])
def test_what_the_oracle_says_fits_is_what_the_cap_lets_through(size: int, fits: bool) -> None:
    case = FIND_BATCH.public[0]
    assert (find_batch.largest(case) >= size) is fits
    build, make_batch, loss_of = lab04.for_search(case)

    def train() -> None:
        with limit_memory(case.cap_bytes):
            model, optimizer = build()
            for _ in range(3):
                for _ in range(3):
                    loss_of(model, make_batch(size, case.longest)).backward()
                optimizer.step()
                optimizer.zero_grad()

    if fits:
        train()
    else:
        with pytest.raises(torch.OutOfMemoryError):
            train()


@pytest.mark.slow
def test_the_known_trials_find_other_sizes_on_every_cap_that_can_tell() -> None:
    wrong = (find_batch.Trial(n_steps=1), find_batch.Trial(n_micro=1), find_batch.Trial(backward=False, steps=False))
    for case in (*FIND_BATCH.public[:2], *caps(random.Random(1))[:2]):
        found = [find_batch.largest(case, trial) for trial in wrong]
        assert len({find_batch.largest(case), *found}) == 4, case


@pytest.mark.slow
def test_hidden_caps_leave_half_a_text_of_room() -> None:
    case = caps(random.Random(2))[0]
    size = find_batch.largest(case)
    below, above = (find_batch.peak_bytes(case, n) for n in (size, size + 1))
    assert case.cap_bytes == (below + above) // 2


def test_the_figures_of_the_text_about_rows() -> None:
    rows = answers_in("04-throughput", solution_of("04-throughput"))["compute_bound_rows"]
    assert [round(rows(n, *A100, 2)) for n in (512, 4096)] == [380, 165]
    assert round(rows(4096, *V100, 2)) == 149 and rows(256, *A100, 2) == float("inf")
    assert throughput.bound_rows(4096, *A100, 2) == pytest.approx(165.37, abs=0.01)


def test_the_figures_of_the_text_about_tiles() -> None:
    answers = answers_in("04-alignment", solution_of("04-alignment"))
    waves, padded = answers["tiles_and_waves"], answers["padded"]
    assert [waves(2304, *shape, 108)[:2] for shape in ((1536, 256, 128), (1537, 256, 128), (1537, 128, 256))] == [
        (108, 1),
        (117, 2),
        (126, 2),
    ]
    assert padded(50257, 2, 128) == 50304
    assert waves(4096, 50257, 256, 128, 108)[:2] == waves(4096, 50304, 256, 128, 108)[:2]


def test_our_own_estimates_are_near_the_truth_and_often_negative() -> None:
    for case in (*exercises.find("04-noise-scale").public, *distributions(random.Random(3))):
        run = inputs("04-noise-scale", replace(case, n_draws=4000))
        for own, true in zip(noise_scale.estimates(run), noise_scale.truth(case), strict=True):
            assert abs(float(own.mean()) - true) < 5 * float(own.std()) / 4000**0.5
    windows = lab04.noisy_windows(4, 8, 0.5, 40.0)
    run = CaseRun(exercises.find("04-noise-scale").public[0], {"gradients": windows})
    assert 1 / 3 < float((noise_scale.estimates(run)[0] < 0).double().mean()) < 1 / 2


def test_one_text_in_eight_is_seventeen_times_lighter() -> None:
    texts, model = lab04.random_texts([256, *[16] * 7]), lab04.small_gpt()
    n = sum(text.numel() - 1 for text in texts)
    cosine = F.cosine_similarity(
        lab04.gradient_of(model, texts, lambda own: 8 * own), lab04.gradient_of(model, texts, lambda own: n), dim=0
    )
    assert float(cosine) == pytest.approx(0.56, abs=0.03)


def test_blocks_are_timed_in_each_of_cudnns_ways() -> None:
    answers = answers_in("04-memory-format", solution_of("04-memory-format"))
    blocks = {"yours": (answers["prepare"], answers["run_block"])}
    said = lab04.gpu_times(blocks, Images(1, 4, 5, 6), n_repeats=2).splitlines()
    assert len(said) == 3 and all(line.startswith("yours") and line.endswith(" µs") for line in said)


@pytest.mark.slow
def test_counting_copies_does_not_load_the_compiler() -> None:
    """Which takes seconds, on a busy machine more than the whole answer may take."""
    counted = (
        "import sys, torch; from labkit.exercises.lab04.memory_format import Copies\n"
        "with Copies() as copies: torch.nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2)).clone()\n"
        "print(copies.names, 'torch._dynamo' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["['clone']", "False"]


@pytest.mark.slow
def test_the_sum_of_lab_01_leaves_out_the_gradients_of_the_micro_batch_before() -> None:
    case = Capped(12_800_000, longest=48)
    needs = lab04.needs_of(case)
    each = needs["activations_per_sequence"] + needs["loss_per_sequence"]
    assert (case.cap_bytes - needs["weights"] - needs["optimizer"]) // each == 37
    assert find_batch.largest(case) == 36
    for size in (36, 37):
        of_one = needs["weights"] + needs["optimizer"] + size * each
        alone = find_batch.peak_bytes(case, size, find_batch.Trial(n_micro=1))
        assert abs(alone - of_one) < 100
        assert find_batch.peak_bytes(case, size) == alone + needs["gradients"]
