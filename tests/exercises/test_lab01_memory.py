"""What lab 01's sums of bytes promise beyond the answers in tests/wrong and tests/right: quoted figures, safe cases."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import pytest

from grading.hidden import Secret, hidden_of
from labkit import exercises
from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.exercises.lab01.llama import moments
from labkit.observe import make_inputs
from labkit.oracles import oracle_of
from labkit.spec import GiB, Observation
from labkit.tree import plain
from tests.exercises.harness import TESTS, answers_in, hidden_verdict, public_verdict, solution_of

IDS = ("01-param-count", "01-model-state-bytes", "01-activation-bytes", "01-extrapolate", "01-largest-batch")
LLAMA_3_8B = SimpleNamespace(
    model_type="llama",
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    vocab_size=128256,
    tie_word_embeddings=False,
)
T5_3B = SimpleNamespace(
    model_type="t5",
    d_model=1024,
    d_kv=128,
    d_ff=16384,
    num_layers=24,
    num_decoder_layers=24,
    num_heads=32,
    relative_attention_num_buckets=32,
    is_gated_act=False,
    vocab_size=32128,
)


@pytest.fixture(scope="module")
def ours() -> SimpleNamespace:
    found: dict[str, object] = {}
    for exercise_id in IDS:
        found |= answers_in(exercise_id, solution_of(exercise_id))
    return SimpleNamespace(**found)


def test_the_parameters_of_known_models(ours) -> None:
    assert ours.param_count(LLAMA_3_8B) == 8_030_261_248
    assert ours.param_count(T5_3B) == 2_851_598_336
    gpt2 = SimpleNamespace(
        model_type="gpt2", n_embd=768, n_inner=None, n_layer=12, n_head=12, n_positions=1024, vocab_size=50257
    )
    assert ours.param_count(gpt2) == 124_439_808


@pytest.mark.parametrize(
    ("recipe", "per_parameter", "in_gib"),
    [
        ("fp32", 16, 14.90),
        ("amp", 16, 14.90),
        ("fp16_master", 16, 14.90),
        ("huggingface", 18, 16.76),
        ("bf16", 8, 7.45),
    ],
)
def test_bytes_a_parameter_with_adamw(ours, recipe: str, per_parameter: int, in_gib: float) -> None:
    total = sum(ours.model_state_bytes([(10**9,)], recipe, "adamw").values())
    assert total == per_parameter * 10**9
    assert round(ours.gb_and_gib(total)[1], 2) == in_gib


def test_the_figures_of_the_slides(ours) -> None:
    assert sum(ours.model_state_bytes([(10**8,)], "fp32", "adamw").values()) == 1.6e9
    weights = ours.model_state_bytes([(175 * 10**9,)], "fp32", "sgd")["weights"]
    # The slide's 651.92 is what is left of this after the second digit.
    assert round(weights / GiB, 2) == 651.93 and math.floor(100 * weights / GiB) / 100 == 651.92


def test_the_optimizers_of_t5_3b(ours) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    config = transformers.T5Config(d_model=1024, d_kv=128, d_ff=16384, num_layers=24, num_heads=32)
    with torch.device("meta"):
        shapes = [tuple(p.shape) for p in transformers.T5ForConditionalGeneration(config).parameters()]

    def gb(optimizer: str) -> float:
        return ours.model_state_bytes(shapes, "fp32", optimizer)["optimizer"] / 1e9

    found = {name: round(gb(name), 3) for name in ("adamw", "adam8bit", "adafactor", "adafactor_momentum")}
    assert found == {"adamw": 22.813, "adam8bit": 5.703, "adafactor": 0.013, "adafactor_momentum": 11.42}


def test_the_activations_of_llama_at_the_lectures_batch(ours) -> None:
    kept = ours.activation_bytes(LLAMA_3_8B, 100, 1024, "sdpa", 2)
    assert round(kept / 1e12, 2) == 0.71
    layer_inputs = 32 * 100 * 1024 * 4096 * 2
    no_layers = ours.activation_bytes(
        SimpleNamespace(**vars(LLAMA_3_8B) | {"num_hidden_layers": 0}), 100, 1024, "sdpa", 2
    )
    assert round((layer_inputs + no_layers) / 1e12, 2) == 0.08
    states = ours.model_state_bytes([(ours.param_count(LLAMA_3_8B),)], "bf16", "adamw")
    before_backward = states["weights"] + states["optimizer"] + 8 * 100 * 1024 * 128256
    assert round((before_backward + kept) / 1e12, 2) == 0.87
    assert round((before_backward + layer_inputs + no_layers) / 1e12, 2) == 0.24


def test_the_lectures_own_sum_gives_the_lectures_figure() -> None:
    (source,) = (TESTS.parent / "solutions").glob("01_*.py")
    function = re.search(r"^def lecture_activation_bytes.*?(?=^\S)", source.read_text(), re.DOTALL | re.MULTILINE)[0]
    namespace: dict = {}
    exec(function, namespace)
    found = namespace["lecture_activation_bytes"](b=100, s=1024, h=4096, h_ff=16384, L=32, a=32, V=32000)
    assert round(found / 2**40, 2) == 2.09


@pytest.mark.slow
@pytest.mark.parametrize("student", [None, "a", "b", "c"])
def test_no_card_is_so_nearly_full_that_a_right_sum_could_be_off_by_one(ours, student: str | None) -> None:
    """The sum leaves out some tables of cosines: a hundredth of a sequence, where a tenth is the least that is left."""
    name = "01-largest-batch"
    # Drawn here and not while tests are collected, because it takes a second.
    hidden = hidden_of(name).cases(Secret(b"k", "01", student, "1").draw(name)) if student else ()
    for case in hidden or exercises.find(name).public:
        needs = make_inputs(exercises.find(name), case, 0)["needs"]
        batch = ours.largest_batch(needs, case.card_bytes)
        a_tenth = 0.1 * (needs["activations_per_sequence"] + needs["loss_per_sequence"])
        if batch:
            fits = moments(case.shape(), batch, case.seq_len)
            assert fits.at_backward + a_tenth < case.card_bytes and fits.at_update <= case.card_bytes, case
        assert moments(case.shape(), batch + 1, case.seq_len).peak - 0.5 * a_tenth > case.card_bytes, case


@pytest.mark.parametrize("exercise_id", IDS)
@pytest.mark.parametrize(
    "value", [None, "much", float("nan"), float("inf"), -1, 10**30, [1, 2], {"weights": "x"}, {"bytes": None}, True]
)
def test_whatever_comes_back_is_judged_and_is_wrong(exercise_id: str, value: object) -> None:
    exercise, oracle = exercises.find(exercise_id), oracle_of(exercise_id)
    case = exercise.public[0]
    tree = make_inputs(exercise, case, 0)
    for got in (plain(value), {"out": plain(value)}, {"bytes": plain(value), "gb": None, "gib": plain(value)}):
        verdict = judge(exercise, oracle, [Observation(case, tree, got, tree)])
        assert verdict.score == 0 and verdict.outcome in ("failed", "suspected")


MEASURED_BY_HOOKS = """
def activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):
    kept = []
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x):
        llama_of(config, attention, dtype_bytes)(tokens, labels=tokens)
    return sum(tensor.nbytes for tensor in kept)
"""
MEASURED_IN_AN_OPTIMIZER = """
from torch.optim import Adafactor as Optimizer

def model_state_bytes(shapes, recipe, optimizer):
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    return Optimizer(parameters)

def gb_and_gib(n_bytes):
    return n_bytes / 1e9, n_bytes / 2**30
"""


@pytest.mark.parametrize(
    ("n_bytes", "off"),
    [(-300, "300 bytes too few per token and layer: some"), (300, "300 bytes too many per token and")],
)
def test_a_sum_that_no_mistake_explains_is_told_by_how_much_it_is_off(n_bytes: int, off: str) -> None:
    more = f"config.num_hidden_layers * batch_size * seq_len * {n_bytes}"
    source = solution_of("01-activation-bytes").replace("def activation_bytes", "def kept")
    source += "\ndef activation_bytes(config, batch_size, seq_len, attention, dtype_bytes=2):"
    source += f"\n    return kept(config, batch_size, seq_len, attention, dtype_bytes) + {more}\n"
    verdict = public_verdict("01-activation-bytes", source)
    assert verdict.hint is None
    assert [text.startswith(off) for label, text in verdict.rows if label == "note"] == [True]


@pytest.mark.parametrize(
    ("exercise_id", "source"),
    [("01-activation-bytes", MEASURED_BY_HOOKS), ("01-model-state-bytes", MEASURED_IN_AN_OPTIMIZER)],
)
def test_a_measurement_is_no_sum(exercise_id: str, source: str) -> None:
    for verdict in (public_verdict(exercise_id, source), hidden_verdict(exercise_id, source)):
        assert verdict.score == 0 and "does the whole job" in as_text(verdict)
