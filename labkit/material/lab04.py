"""Lab 04: the small models and texts on which its notebook measures. Nothing here judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.devices import device
from labkit.exercises.lab04.accumulate import Accumulation, Loader, accumulation_inputs, network
from labkit.exercises.lab04.find_batch import Capped, build, loss_of, make_batch
from labkit.exercises.lab04.memory_format import LAST, Copies, Images, block_of, images
from labkit.exercises.lab04.noise_scale import Noisy, windows
from labkit.meters import bench, track_memory

__all__ = [
    "Capped",
    "copies_of",
    "for_search",
    "gpu_times",
    "gradient_of",
    "needs_of",
    "noisy_windows",
    "peaks_of",
    "random_texts",
    "small_gpt",
    "token_loss",
    "toy_training",
]
CPU = torch.device("cpu")
LARGE_IMAGES = Images(32, 256, 56, 56)


def small_gpt() -> nn.Module:
    """A GPT-2 of 2 layers, 64 wide, without dropout: token numbers below 512 in, logits out."""
    # Loaded here, since the rest of this module needs no more than torch.
    from transformers import GPT2Config, GPT2LMHeadModel

    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    special = {"bos_token_id": None, "eos_token_id": None}
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=512, n_positions=256, **special, **no_dropout)
    )


def random_texts(lengths: Sequence[int]) -> list[Tensor]:
    """A text of random tokens for each length, int64 of shape (1, length)."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randint(512, (1, length), generator=generator) for length in lengths]


def gradient_of(model: nn.Module, texts: Sequence[Tensor], divisor: Callable[[int], float]) -> Tensor:
    """The accumulated gradient of all texts in one vector; divisor: labels of a text -> what its sum is divided by."""
    model.zero_grad()
    for text in texts:
        x, y = text[:, :-1], text[:, 1:]
        loss = F.cross_entropy(model(x).logits.flatten(0, 1), y.flatten(), reduction="sum")
        (loss / divisor(y.numel())).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def toy_training(n_micro: int = 10) -> tuple[nn.Module, torch.optim.Optimizer, Loader]:
    """A network that guesses the next token, gradient descent on it, and micro-batches of two texts, padded."""
    tree = accumulation_inputs(Accumulation(n_micro, 4, longest=24), torch.Generator().manual_seed(4))
    model, mine = network(tree["weights"]), tree["ranks"][0]
    return model, torch.optim.SGD(model.parameters(), lr=0.05), Loader(mine["x"], mine["y"])


def token_loss(model: nn.Module, loader: Loader) -> float:
    """The mean loss of all tokens that count."""
    with torch.no_grad():
        sums = [F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") for x, y in loader]
    return float(sum(sums) / sum((y != -100).sum() for _, y in loader))


def for_search(case: Capped) -> tuple[Callable, Callable, Callable]:
    """build, make_batch and loss_of, as 04-find-batch hands them to an answer."""
    return lambda: build(case, CPU), lambda n_texts, length: make_batch(case, n_texts, length, CPU), loss_of


def peaks_of(case: Capped, size: int) -> dict[str, int]:
    """The peak bytes of two steps of two micro-batches with `size` of the longest texts, by micro-batch."""
    peaks = {}
    with track_memory(sites=False) as profile:
        model, optimizer = build(case, CPU)
        for step in (1, 2):
            for number in (1, 2):
                start = len(profile.tracker.curve)
                loss_of(model, make_batch(case, size, case.longest, CPU)).backward()
                peaks[f"step {step}, micro-batch {number}"] = max(profile.tracker.curve[start:])
            optimizer.step()
            optimizer.zero_grad()
    return peaks


def needs_of(case: Capped) -> dict[str, int]:
    """What a text and the model take, in bytes, under the names that lab 01's largest_batch reads."""
    largest, n_weights = case.n_vocab * case.width, sum(p.numel() for p in build(case, CPU)[0].parameters())
    return {
        "weights": 4 * n_weights,
        "gradients": 4 * n_weights,
        "optimizer": 8 * n_weights,
        # Token numbers and labels, the embeddings, what tanh gives, the logits.
        "activations_per_sequence": case.longest * (2 * 8 + 4 * (case.width + case.n_hidden + case.n_vocab)),
        # Log-probabilities, and the gradient of the logits.
        "loss_per_sequence": case.longest * 2 * 4 * case.n_vocab,
        "update": 2 * 4 * largest,
    }


def noisy_windows(n_micro: int, micro_batch: int, length: float, trace: float) -> Tensor:
    """Gradients of 2000 windows, as 04-noise-scale's check draws them: (windows, n_micro, 24) float64."""
    case = Noisy(n_micro, micro_batch, length, trace, n_draws=2000)
    return windows(case, torch.Generator().manual_seed(1))["gradients"]


def copies_of(run_block: Callable, prepare: Callable) -> str:
    """The copies that run_block makes on images of 2 x 8 x 6 x 5 in channels-last, in words."""
    case = Images(2, 8, 6, 5)
    tree = images(case, torch.Generator().manual_seed(0))
    block, x = prepare(block_of(case, tree["weights"])), tree["x"].contiguous(memory_format=LAST)
    with Copies() as copies:
        y, _ = run_block(block, x)
    layout = "channels-last" if y.is_contiguous(memory_format=LAST) else "the ordinary layout"
    return f"{len(copies.names)} copies, and y is in {layout}"


def gpu_times(
    blocks: dict[str, tuple[Callable, Callable]], case: Images = LARGE_IMAGES, n_repeats: int | None = None
) -> str:
    """The time of each (prepare, run_block) in float16, in words: as cuDNN chooses, after it has tried its algorithms,
    and with those alone that give the same bits every time."""
    tree, lines = images(case, torch.Generator().manual_seed(0)), []
    x = tree["x"].to(device(), torch.float16).contiguous(memory_format=LAST)
    ways = {"by rule": {}, "benchmark": {"benchmark": True}, "deterministic": {"deterministic": True}}
    for name, (prepare, run_block) in blocks.items():
        block = prepare(block_of(case, tree["weights"]).to(device(), torch.float16))
        for way, flags in ways.items():
            with torch.no_grad(), torch.backends.cudnn.flags(**{"benchmark": False, "deterministic": False, **flags}):
                time = bench(lambda block=block, run=run_block: run(block, x), n_repeats=n_repeats)
            lines.append(f"{name:16}{way:16}{1e3 * time.median_ms:10.0f} µs")
    return "\n".join(lines)
