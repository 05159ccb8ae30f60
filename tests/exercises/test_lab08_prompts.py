"""Lab 08's soft prompts: the numbers in the text come out of peft, and the oracles read whatever comes back."""

from __future__ import annotations

import math

import pytest
import torch

from labkit import exercises, figures
from labkit.check.judge import judge
from labkit.exercises.lab08.p_tuning import P_TUNING
from labkit.exercises.lab08.prefix_tuning import PREFIX_TUNING, Prefix
from labkit.exercises.lab08.prompt_tuning import PROMPT_TUNING, SoftPrompt, config_of, model_of
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of

MINE = (PROMPT_TUNING, PREFIX_TUNING, P_TUNING)
ABSURD = (None, "text", math.nan, {"loss": "small"}, torch.full((2, 3), math.nan), torch.zeros(2, 2, 2, 2, 2))


def llama_8b():
    """Llama 3 8B's shape without its weights, one layer deep: the numbers trained do not depend on the base."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=4096, intermediate_size=64, num_hidden_layers=1, num_attention_heads=32, num_key_value_heads=8
    )
    with torch.device("meta"):
        return LlamaForCausalLM(config)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "options", "n_numbers"),
    [
        ("PromptTuningConfig", {}, 81_920),
        ("PrefixTuningConfig", {"num_layers": 32}, 1_310_720),
        (
            "PrefixTuningConfig",
            {"num_layers": 32, "prefix_projection": True, "encoder_hidden_size": 512},
            34_165_248,
        ),
        ("PromptEncoderConfig", {"encoder_hidden_size": 1024}, 9_525_248),
    ],
    ids=["prompt", "prefix", "prefix network", "p-tuning"],
)
def test_the_numbers_in_the_text_are_pefts(config: str, options: dict[str, int], n_numbers: int) -> None:
    # Not at the head of the file, which is read to collect its quick tests: it takes seconds.
    peft = pytest.importorskip("peft")
    settings = getattr(peft, config)(num_virtual_tokens=20, task_type="CAUSAL_LM", **options)
    with torch.device("meta"):
        model = peft.get_peft_model(llama_8b(), settings)
    assert model.get_nb_trainable_parameters()[0] == n_numbers


@pytest.mark.filterwarnings("ignore")  # of torch, where a hint takes a tensor for a dict
@pytest.mark.slow
@pytest.mark.parametrize("exercise", MINE, ids=lambda exercise: exercise.id)
def test_an_oracle_reads_whatever_comes_back(exercise) -> None:
    """Every top value replaced by something absurd, one after the other: a verdict, never a crash, never points."""
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 0)
    oracle = oracle_of(exercise.id)
    right = oracle.expect(CaseRun(case, tree))
    broken = [{**right, key: value} for key in right for value in ABSURD[1::2]]
    for got in (*ABSURD, *broken):
        verdict = judge(exercise, oracle, [Observation(case, tree, got, tree)])
        assert verdict.outcome == "failed", got
    assert judge(exercise, oracle, [Observation(case, tree, right, tree)]).passed


@pytest.mark.parametrize("exercise", MINE, ids=lambda exercise: exercise.id)
def test_inputs_are_drawn_from_the_seed_alone(exercise) -> None:
    first, again, other = (make_inputs(exercise, exercise.public[0], seed)["weights"] for seed in (1, 1, 2))
    name = "model.embed_tokens.weight" if "model.embed_tokens.weight" in first else "transformer.wte.weight"
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first[name], other[name])


def test_the_cases_are_found_by_their_ids() -> None:
    assert {exercise.id for exercise in MINE} <= exercises.of_lab("08").keys()


def test_a_mask_that_is_too_short_is_taken_for_zeros_at_the_end() -> None:
    """What the hint says of transformers: it fills up and says nothing."""
    case = SoftPrompt("llama", padding="none")
    tree = make_inputs(PROMPT_TUNING, case, 0)
    model = model_of(case, tree["weights"])
    mask = tree["attention_mask"]
    padded = torch.nn.functional.pad(mask[:, :-2], (0, 2))
    with torch.no_grad():
        short, full = (model(tree["input_ids"], attention_mask=given).logits for given in (mask[:, :-2], padded))
    torch.testing.assert_close(short, full)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_prefix_and_checkpointing_do_not_go_together() -> None:
    """What the text says of transformers 5: the cache is switched off, and the mask no longer fits."""
    from transformers import DynamicCache

    case = Prefix()
    model = model_of(case, make_inputs(PREFIX_TUNING, case, 0)["weights"]).train()
    model.gradient_checkpointing_enable()
    config = config_of(case)
    part = torch.zeros(1, config.num_key_value_heads, 3, config.head_dim)
    cache = DynamicCache([(part, part)] * config.num_hidden_layers)
    with pytest.raises(RuntimeError, match="size"):
        model(torch.zeros(1, 5, dtype=torch.long), past_key_values=cache, attention_mask=torch.ones(1, 8))


def test_attention_map_shows_the_mean_of_the_answers_own_attention() -> None:
    answers = answers_in("08-prefix-tuning", solution_of("08-prefix-tuning"))
    case = Prefix(n_prompt=3)
    tree = make_inputs(PREFIX_TUNING, case, 0)
    model = model_of(case, tree["weights"])
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    prefix = answers["PrefixEncoder"](model.config, 3)()
    texts = (tree[name] for name in ("input_ids", "attention_mask", "labels"))
    attentions = answers["with_prefix"](model, prefix, *texts).attentions
    figure = figures.attention_map(attentions, n_prompt=3)
    shown = figure.axes[0].images[0].get_array()
    assert shown.shape == (case.length, case.length + 3)
    torch.testing.assert_close(torch.tensor(shown.tolist()), attentions[0].mean((0, 1)).detach())


def test_adaptation_losses_shows_the_losses_that_it_is_given() -> None:
    runs = {"known": {"a": [1.0, 0.5], "b": [2.0, 0.1]}, "new": {"a": [3.0, 2.0], "b": [3.0, 2.5]}}
    figure = figures.adaptation_losses(runs, {"known": 1.5, "new": 4.0})
    figure.draw_without_rendering()
    for axes, methods in zip(figure.axes, runs.values(), strict=True):
        drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
        assert all(drawn[name] == values for name, values in methods.items())
