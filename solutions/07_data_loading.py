# %% [markdown]
# # Lab 07: Keep the GPU fed
#
# You have 1,000 samples, an iterable dataset, and a `DataLoader` with four workers. One epoch yields 4,000 samples. So
# you switch to a dataset with an index, and give it its own random generator for the augmentations. Now 64 samples are
# augmented in only 16 different ways, and the second epoch does not add a single new one. Neither prints a warning.
# **How many runs have you trained like that?**
#
# In this lab you write what feeds a training run: batches by length, packed windows, datasets that workers and ranks share
# out, and a loop whose GPU does not wait. At the end you can count what a loader yields, how much of it is padding, and who
# waits for whom.
#
# [[time]]
#
# You need to know what a batch and a gradient are (lab 04), and nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "07-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import io
import math
import random
import tarfile
import warnings
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, islice

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

import labkit.figures
from labkit import Predictions, VirtualClock, check, progress
from labkit.material import lab07, lab07_files, lab07_gpu
from labkit.store import Store

# The label that a loss leaves out: ignore_index of torch.nn.functional.cross_entropy.
IGNORED = -100
guesses = Predictions("07")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so


# %% [markdown]
# These are the two runs. (`fork` is how Linux starts workers by default in most versions of Python; it is named here
# because a class that is defined in a notebook cannot be sent to workers that start as new processes.)


# %% tags=["figure"]
class Numbers(IterableDataset):
    """1,000 samples."""

    def __iter__(self):
        yield from range(1000)


class Augmented(Dataset):
    """64 samples; a random number stands for the augmentation of one."""

    def __init__(self):
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.randint(10**9, (), generator=self.generator).item()


warnings.filterwarnings("ignore", message="This DataLoader will create")  # on fewer cores
WORKERS = {"batch_size": None, "num_workers": 4, "multiprocessing_context": "fork"}
print(f"the iterable of 1,000 yields {len(list(DataLoader(Numbers(), **WORKERS))):,} samples")
augmented = DataLoader(Augmented(), **WORKERS)
first, second = set(augmented), set(augmented)
print(
    f"64 samples get {len(first)} different augmentations, and epoch 1 adds {len(second - first)}"
)

# %% [markdown]
# You will mend both. But first, what is in a batch?

# %% [markdown]
# ## Put texts of similar length into a batch
#
# The rows of a batch must have one length, so all but the longest text are filled up with **padding**. The GPU computes
# on padding as on anything else. Texts have very different lengths: those of the 20,000 below are as in a corpus of web
# pages, with a median of 88 tokens, a mean of 143, and at most 1,024. If every text is padded to 1,024, 86 % of what
# the GPU computes on is padding.
#
# **Predict:** Each batch of 32 texts is padded only to its own longest text. How much of it is padding then, in percent?

# %% nbgrader={"grade": false, "grade_id": "07-predict-padding", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("padding of random batches", None, unit="%")

# %%
lengths = lab07.text_lengths(20_000)
ways = {
    "padded to 1,024": lab07.in_random_batches(lengths, 32, 1024),
    "padded to the batch's longest": lab07.in_random_batches(lengths, 32),
}
for name, batches in ways.items():
    print(f"{name:32}{100 * batches.padding:7.2f} % padding")
guesses.settle("padding of random batches", 100 * ways["padded to the batch's longest"].padding)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 80 %. A batch is as wide as its longest text, and the longest of 32 texts has 712 tokens on average, five times the mean of
# 143. The larger the batch, the worse.
#
# </details>
#
# Who pads? A `DataLoader` asks its dataset for single samples, and hands the list of a batch's samples to a **collate
# function**, which makes tensors of it. The default one stacks them, and raises an error where they differ in length. So you
# pass one of your own as `collate_fn`. In a worker process it runs there, too, so the main process gets finished batches.
#
# Sorting all texts by length would leave almost no padding. But then the model sees all short texts before all long ones, and
# the same texts meet in every epoch. The compromise sorts only a little: shuffle all texts, cut them into pools of 50 batches,
# sort within each pool, cut the batches, and shuffle the batches.
#
# If training is to resume after an interruption, its sampler needs a **state**: which epoch it is in, and how far. A
# run that was killed and begins its epoch again sees its first texts twice as often as the last ones.
#
# [[exercise 07-length-buckets]]
#
# Write `LengthBatches` and `collate`.
#
# - Iterating a `LengthBatches` yields the batches of one epoch, each a list of indices into `lengths`. Every text comes
#   once. All batches have `batch_size` texts, except one, which may have fewer. Over the whole epoch, at most 20 % of
#   what the batches hold is padding.
# - The order is random. The batches are not sorted by length. Every epoch has them in another order, and puts most texts
#   into a batch with other texts than before. The order depends only on the seed and the epoch. Do not use or seed the
#   global generators.
# - `set_epoch` chooses the epoch, and without it the epoch stays the same. Every iteration yields the whole epoch, even if
#   the iteration before it was left early. (People look at `next(iter(loader))` before they train.) There is one
#   exception:
# - `state_dict()` returns a dictionary that says how far the epoch is at that moment. `load_state_dict` loads it into a new
#   sampler, and the iteration right after that yields only the rest of the epoch. That iteration may be interrupted
#   again. Once an epoch is over, its rest is empty.
# - `len` is the number of batches of an epoch.
# - `collate(texts)` makes a dictionary of three int64 tensors of shape (texts, longest text) from a batch: `input_ids`
#   with 0 for padding, `attention_mask` with 1 for a token and 0 for padding, and `labels`, which hold the tokens, with
#   `IGNORED` in the place of padding. (Models of `transformers` shift the labels themselves.) Token 0 may occur in the
#   texts as well.
#
# <details><summary>Hint 1: a nudge</summary>
#
# If all random numbers of an epoch come from a seed, the whole list of its batches can be made again at any time. What is
# then left to remember?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make all batches of the epoch at the start of `__iter__`, with a generator that is seeded from the seed and the epoch. Then
# yield them, and count. `load_state_dict` keeps the place to go on from in an attribute of its own. The next iteration starts
# there, and sets that attribute back to 0.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `pool = sorted(order[start : start + pool_size], key=self.lengths.__getitem__)` for each pool of 50 batches, and
# `pool[at : at + batch_size]` are its batches. `self.n_done, self.resume_at = self.resume_at, 0` before the loop over the
# batches. Increase `self.n_done` *before* each `yield`: code after a `yield` runs only when the next batch is asked for.
# `torch.nn.utils.rnn.pad_sequence` does the padding.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-length-buckets", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LengthBatches(Sampler[list[int]]):
    """Batches of texts of about one length, in random order: every text once in an epoch."""

    def __init__(self, lengths: list[int], batch_size: int, seed: int = 0) -> None:
        ### BEGIN SOLUTION
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.epoch, self.n_done, self.resume_at = 0, 0, 0
        ### END SOLUTION

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is the whole of this epoch."""
        ### BEGIN SOLUTION
        self.epoch, self.n_done, self.resume_at = epoch, 0, 0
        ### END SOLUTION

    def __len__(self) -> int:
        """The batches of an epoch."""
        ### BEGIN SOLUTION
        return math.ceil(len(self.lengths) / self.batch_size)
        ### END SOLUTION

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the epoch; right after load_state_dict, those that are left of it."""
        ### BEGIN SOLUTION
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        pool_size = 50 * self.batch_size
        batches = []
        for start in range(0, len(order), pool_size):
            pool = sorted(order[start : start + pool_size], key=self.lengths.__getitem__)
            batches += [
                pool[at : at + self.batch_size] for at in range(0, len(pool), self.batch_size)
            ]
        shuffled = torch.randperm(len(batches), generator=generator).tolist()
        self.n_done, self.resume_at = self.resume_at, 0
        for number in shuffled[self.n_done :]:
            self.n_done += 1
            yield batches[number]
        ### END SOLUTION

    def state_dict(self) -> dict[str, int]:
        """Where in which epoch it is."""
        ### BEGIN SOLUTION
        return {"epoch": self.epoch, "n_done": self.n_done}
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, int]) -> None:
        """The next iteration goes on where the state was taken."""
        ### BEGIN SOLUTION
        self.epoch, self.n_done = state["epoch"], state["n_done"]
        self.resume_at = self.n_done
        ### END SOLUTION


def collate(texts: list[Tensor]) -> dict[str, Tensor]:
    """A batch of these texts, each an int64 tensor of tokens: input_ids, attention_mask, labels."""
    ### BEGIN SOLUTION
    ones = [torch.ones_like(text) for text in texts]
    return {
        "input_ids": pad_sequence(texts, batch_first=True),
        "attention_mask": pad_sequence(ones, batch_first=True),
        "labels": pad_sequence(texts, batch_first=True, padding_value=IGNORED),
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-length-buckets-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("07-length-buckets", LengthBatches, collate)

# %%
ways["batches by length"] = lab07.batches_of(lengths, list(LengthBatches(lengths, 32)))
print(f"batches by length: {100 * ways['batches by length'].padding:.2f} % padding")

# %% [markdown]
# **In practice:** `TrainingArguments(train_sampling_strategy="group_by_length")` sorts pools of 50 batches, as you did, but
# does not shuffle their batches: in each pool the long ones come first. (In `transformers` before version 5 it is
# `group_by_length=True`.) `DataCollatorForSeq2Seq` pads labels with -100; `DataCollatorWithPadding` pads everything but the
# labels. A `DataLoader` with workers asks its sampler for batches ahead of training, so the sampler's own count is ahead as
# well: save the number of batches that were trained on, or use `StatefulDataLoader` (last section). In the loop over the
# epochs, do not call `set_epoch` for the epoch that you resume: it would begin that epoch again. When an epoch is over, save
# with the next epoch's number and a count of 0.

# %% [markdown]
# ## Pack documents, and no token is wasted
#
# Batches by length still pad a little, and every batch has another shape. Language models are trained on windows of one
# fixed length instead, and several documents share a window. A window of 4,096 tokens may hold an article, two letters
# and a recipe, one after the other.
#
# Two things have to be decided. First, **which documents share a window**. This is bin packing: find the fewest windows
# that hold all documents, and cut none of them. All known ways to find the best answer take exponential time, but a
# simple rule is nearly perfect: place the longest documents first, each into a window that still has room, and open a
# new window only where there is none. What costs time is to *find* the window. A corpus has millions of documents, so
# nobody can look at all windows for each of them.
#
# Second, **what the model is told about the boundaries**. The recipe has nothing to do with the article, so
#
# - its positions start again at 0,
# - its tokens must not attend to the article's tokens,
# - and the article's last token must not be asked to predict the recipe's first one.
#
# A mask could say which token may attend to which, but for 4,096 tokens it has 16.8 million entries. Attention kernels for
# sequences of varying length take a list instead, **`cu_seqlens`** (cumulative sequence lengths): where each document
# begins, and where the last one ends. Documents of 5, 7 and 3 tokens have `cu_seqlens` of 0, 5, 12, 15.
#
# [[exercise 07-packing]]
#
# Write `pack` and `lay_out`.
#
# - `pack(lengths, window)` returns a list of windows, each a list of document numbers. Every document is in exactly one of
#   them, uncut, and no window is empty. No document is longer than a window, and most are far shorter, so the windows can be filled almost
#   completely. Let $k$ be the number of all tokens divided by `window`, rounded up: no packing needs fewer windows. `pack`
#   opens at most $1.01\,k + 1$ windows, rounded up. With 100,000 documents it may take a few seconds.
# - `lay_out(documents, window)` lays some documents out in one window, in the given order, and returns a dictionary of four
#   tensors. The first three have `window` entries of int64, the last one is int32:
#   - `input_ids`: the tokens, then 0 for padding (0 may be a token as well),
#   - `position_ids`: a token's place in its own document, and 0 for padding,
#   - `labels`: for each token the one that follows it in the same document, and `IGNORED` where there is none, and for
#     padding. (Here you shift the labels yourself, because only you know the boundaries: a model that shifts the whole
#     window would ask each document's last token for the next document's first one.)
#   - `cu_seqlens`: where each document begins, and where the last one ends. Padding belongs to no document.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How many different values can the room in a window have? Far fewer than there are windows.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Sort the documents by length, longest first. For each room from 0 to `window`, keep a list of the windows that have just
# this room left, and a sorted list of the rooms that some window has. The best window for a document is one with the
# smallest room that is at least its length: `bisect_left` finds it. For `lay_out`, make each document's part of the three
# long tensors, and join them.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `at = bisect_left(rooms, length)`. If `at == len(rooms)`, open a window. Else take one from
# `windows_by_room[rooms[at]]`, and delete `rooms[at]` if that list is now empty. Put the window back under its new
# room, and `insort` the room if it was not there. A document's labels are `torch.cat([document[1:],
# torch.tensor([IGNORED])])`. `accumulate(map(len, documents), initial=0)` yields the boundaries.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-packing", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack(lengths: list[int], window: int) -> list[list[int]]:
    """The numbers of the documents in each window of `window` tokens: each document in one window, and none cut."""
    ### BEGIN SOLUTION
    windows: list[list[int]] = []
    windows_by_room: list[list[int]] = [[] for _ in range(window + 1)]
    rooms: list[int] = []  # those that some window has, sorted
    for number in sorted(range(len(lengths)), key=lambda n: -lengths[n]):
        at = bisect_left(rooms, lengths[number])
        if at == len(rooms):
            windows.append([])
            index, room = len(windows) - 1, window
        else:
            room = rooms[at]
            index = windows_by_room[room].pop()
            if not windows_by_room[room]:
                del rooms[at]
        windows[index].append(number)
        room -= lengths[number]
        if not windows_by_room[room]:
            insort(rooms, room)
        windows_by_room[room].append(index)
    return windows
    ### END SOLUTION


def lay_out(documents: list[Tensor], window: int) -> dict[str, Tensor]:
    """One window of these documents, each an int64 tensor of tokens: input_ids, position_ids, labels, cu_seqlens."""
    ### BEGIN SOLUTION
    borders = list(accumulate(map(len, documents), initial=0))
    padding = torch.zeros(window - borders[-1], dtype=torch.int64)
    nothing = torch.tensor([IGNORED])
    labels = [part for document in documents for part in (document[1:], nothing)]
    return {
        "input_ids": torch.cat([*documents, padding]),
        "position_ids": torch.cat([*(torch.arange(len(one)) for one in documents), padding]),
        "labels": torch.cat([*labels, padding + IGNORED]),
        "cu_seqlens": torch.tensor(borders, dtype=torch.int32),
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-packing-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("07-packing", pack, lay_out)

# %%
ways["packed into windows"] = lab07.in_windows(lengths, pack(lengths, 1024), 1024, 32)
print(f"packed into windows: {100 * ways['packed into windows'].padding:.2f} % padding")

# %% [markdown]
# The slider goes through the four ways. Each picture shows one batch, and each of its rows a row of the batch.

# %% tags=["figure"]
labkit.figures.padding_player(ways)

# %% [markdown]
# The price of packing is that attention must not leak. This is the mask that your `cu_seqlens` stand for, with a window of
# 24 tokens that holds documents of 7, 9 and 5.

# %% tags=["figure"]
documents = [torch.arange(1, length + 1) for length in (7, 9, 5)]
labkit.figures.packed_mask((7, 9, 5), lay_out(documents, 24)["cu_seqlens"].tolist(), 24)

# %% [markdown]
# And this is what a plain causal mask would allow in the same window. A red square is a token that attends to another
# document. In the last three rows, padding attends to everything. That costs time but changes no loss, because padding
# has no label.

# %% tags=["figure"]
labkit.figures.packed_mask((7, 9, 5), (0, 24), 24)

# %% [markdown]
# **In practice:** `DataCollatorWithFlattening(return_flash_attn_kwargs=True)` of `transformers` lays the texts of a
# batch out one after the other and hands `cu_seq_lens_q` and `cu_seq_lens_k` to FlashAttention;
# `SFTConfig(packing=True)` of TRL also chooses which texts share a window. `torch.nn.attention.varlen.varlen_attn` and
# FlexAttention of PyTorch take such boundaries, too.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Give every worker its own samples
#
# A worker of a `DataLoader` is a process, and it begins as a **copy** of the main one. Unless the copied dataset asks, it
# does not know that it runs in a worker. An iterable dataset that is copied into four workers yields everything four times. A random generator that is copied
# into four workers draws the same numbers four times. And because the workers are copied again for every epoch, from a main
# process whose generator never drew anything, every epoch draws the same numbers once more.
#
# Two things differ from worker to worker. `get_worker_info()` returns the worker's `id`, and `num_workers`. And `DataLoader`
# seeds the *global* generators of `torch`, `random` and NumPy differently in each of its workers. With `num_workers=0` there
# is no worker: the main process loads, and `get_worker_info()` returns `None` there. Your dataset has to work in both.
#
# With several GPUs, each has a process of its own, with its own `DataLoader`. The processes are numbered: a process's number
# is its **rank**, and their number is the `world_size`. Now there are two more traps. Training scripts begin with the same
# `torch.manual_seed(0)` on every rank, so the global generators are the same in worker 0 of all ranks. And after each step,
# the ranks average their gradients in an **all-reduce**, a call that waits until every rank has made it. If one rank has a
# batch more than the others, it waits forever at the end of the epoch. So all ranks must get equally many samples: either a
# few samples are repeated, or a few are left out. Here we leave them out, other ones in each epoch.
#
# [[exercise 07-shard-workers]]
#
# Write `WorkerSamples`. `load(index, generator)` loads a sample and augments it with numbers from a `torch.Generator`.
#
# - Each rank gets `n // world_size` samples of an epoch, and its workers share them evenly: their shares differ by at
#   most one sample. No sample comes twice, and at most `world_size - 1` are left out. `load` is called for what is
#   yielded, and for nothing else. It is called when the sample is asked for: a worker's whole share may not fit into memory.
# - The order is random. Every epoch has a different order, deals different samples to a rank, and leaves different
#   samples out.
# - No two samples are augmented with the same random numbers: not on two workers, not on two ranks, not in two epochs, and
#   not with two seeds.
# - All of this depends only on the seed, the epoch, the rank and the worker, so a run that is resumed in epoch 2 goes
#   on as it would have. It is epoch 0 until `set_epoch` says otherwise. Do not use or seed the global generators.
#
# The check simulates the workers: it copies your dataset for each of them, and `get_worker_info()` returns what it
# would return there.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Two things are random, the order and the augmentations. One of them has to be the same everywhere, the other nowhere.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make two generators at the start of `__iter__`. The first is seeded from seed and epoch, and shuffles all samples: every
# worker of every rank makes this same order and takes its own part of it. The second is seeded from seed, epoch, rank and
# worker.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `order[: n - n % world_size][rank::world_size]` are the rank's samples, and `[worker::n_workers]` of these the
# worker's. `hash((seed, epoch, rank, worker))` of whole numbers is the same in every process. For numbers from 0 on,
# two different tuples practically never have the same hash. (Negative ones may: -1 and -2 do.)
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-shard-workers", "locked": false, "schema_version": 3, "solution": true, "task": false}
class WorkerSamples(IterableDataset):
    """load(index, generator) for the samples of this worker, in random order."""

    def __init__(
        self,
        load: Callable[[int, torch.Generator], object],
        n: int,
        rank: int,
        world_size: int,
        seed: int = 0,
    ) -> None:
        ### BEGIN SOLUTION
        self.load, self.n, self.seed = load, n, seed
        self.rank, self.world_size = rank, world_size
        self.epoch = 0
        ### END SOLUTION

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is this epoch."""
        ### BEGIN SOLUTION
        self.epoch = epoch
        ### END SOLUTION

    def __iter__(self) -> Iterator[object]:
        """What load returns for each of this worker's samples of the epoch."""
        ### BEGIN SOLUTION
        info = get_worker_info()
        worker, n_workers = (info.id, info.num_workers) if info else (0, 1)
        shared = torch.Generator().manual_seed(hash((self.seed, self.epoch)))
        order = torch.randperm(self.n, generator=shared).tolist()
        of_rank = order[: self.n - self.n % self.world_size][self.rank :: self.world_size]
        own = torch.Generator().manual_seed(hash((self.seed, self.epoch, self.rank, worker)))
        for index in of_rank[worker::n_workers]:
            yield self.load(index, own)
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-shard-workers-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("07-shard-workers", WorkerSamples)

# %% [markdown]
# Here are the runs of the opening again, with real workers and your dataset. A sample is its number and the random
# number of its augmentation.


# %% tags=["figure"]
def draw(index, generator):
    return index, torch.randint(10**9, (), generator=generator).item()


mended = WorkerSamples(draw, 1000, rank=0, world_size=1)
seen = []
for epoch in range(2):
    mended.set_epoch(epoch)
    seen += DataLoader(mended, **WORKERS)
print(f"two epochs of 1,000 yield {len(seen):,} samples")
print(f"with {len({number for _, number in seen}):,} different augmentations")

# %% [markdown]
# **In practice:** `split_dataset_by_node(dataset, rank, world_size)` of `datasets` deals shards to ranks, and its iterable
# datasets deal them to workers by themselves. With a map-style dataset, the sampler of the main process deals (lab 15), and
# only the random numbers are your business: take them from a generator that is seeded in `worker_init_fn`, or per sample.

# %% [markdown]
# ## Read a corpus that does not fit into memory
#
# The tokens of a language model's corpus are one long row of numbers. A Python list stores a pointer of 8 bytes for each
# token, and each number above 256 is an object of its own, which takes up to 32 bytes more. Worse, **a worker that only reads
# a Python list makes its own copy of it**. After a fork all processes share their memory, page by page, until one of them
# writes to a page. But Python counts in every object how many references there are to it, so reading a list writes to each
# object in it. A worker that has gone through a list of two million strings owns a copy of all of them.
#
# A file of plain numbers has neither problem. **Memory-mapping** makes the file look like an array. Nothing is read until an
# element is used, and then only its page of 4 KiB, together with some of its neighbours. The pages belong to the operating
# system, which shares them among all processes and drops them if memory is short. Two bytes per token are enough as long as
# the vocabulary has at most 65,536 tokens, as GPT-2's has; Llama 3's 128,256 take four.
#
# [[exercise 07-memory-map]]
#
# Write `write_tokens` and `TokenWindows`.
#
# - `write_tokens(documents, vocab_size, path)` writes two files, and replaces those of an earlier run. `path + ".bin"` holds
#   the tokens of all documents, one after the other, as `uint16` if that is enough for `vocab_size` tokens, and as `uint32`
#   otherwise. `path + ".idx"` holds as `int64` where each document begins, and, at the end, how many tokens there are.
#   `documents` yields lists of numbers, which may not fit into memory together, so write each document as it comes.
# - `TokenWindows(path, vocab_size, window)` is a dataset of windows: item $i$ are the tokens from $i \cdot$ `window` on, as an
#   int64 tensor. Every token is in one window, so the last one may be shorter. An index past the last window raises an
#   `IndexError`: that is how a `for` loop over a dataset ends. A negative index raises one as well, or counts from the end
#   as in a list. `document(number)` returns a document, also as int64.
# - However large the file is, the object keeps no token in memory, and at most 8 bytes per document. It can be copied into
#   workers by a fork, so it holds no open file: all workers would share the file's one position.
#
# The check reads from a file of 96 MiB. When you submit, the file is larger than the memory that your program may use.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `np.memmap` takes a path and a dtype, and gives an array whose elements stay in the file.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Map both files in `__init__`, with `mode="r"`. Cut out of the map first, and convert what was cut out: the other order
# converts the whole file. A slice past the end of an array is empty and raises nothing, so compare the index yourself.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `torch.from_numpy(self.tokens[start:end].astype(np.int64))`. A slice past the end is cut short by itself. For the file,
# `file.write(np.array(document, dtype=dtype).tobytes())`, one document at a time.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-memory-map", "locked": false, "schema_version": 3, "solution": true, "task": false}
def write_tokens(documents: Iterable[list[int]], vocab_size: int, path: str) -> None:
    """path + ".bin": all tokens, uint16 or uint32; path + ".idx": where documents begin, and the end, int64."""
    ### BEGIN SOLUTION
    dtype = np.uint16 if vocab_size <= 2**16 else np.uint32
    borders = [0]
    with open(path + ".bin", "wb") as file:
        for document in documents:
            file.write(np.array(document, dtype=dtype).tobytes())
            borders.append(borders[-1] + len(document))
    np.array(borders, dtype=np.int64).tofile(path + ".idx")
    ### END SOLUTION


class TokenWindows(Dataset):
    """The windows of a file of tokens: item i has the tokens from i * window on, int64, fewer at the end."""

    def __init__(self, path: str, vocab_size: int, window: int) -> None:
        ### BEGIN SOLUTION
        dtype = np.uint16 if vocab_size <= 2**16 else np.uint32
        self.tokens = np.memmap(path + ".bin", dtype=dtype, mode="r")
        self.borders = np.memmap(path + ".idx", dtype=np.int64, mode="r")
        self.window = window
        ### END SOLUTION

    def __len__(self) -> int:
        """How many windows there are."""
        ### BEGIN SOLUTION
        return math.ceil(len(self.tokens) / self.window)
        ### END SOLUTION

    def __getitem__(self, index: int) -> Tensor:
        """The tokens of a window, int64."""
        ### BEGIN SOLUTION
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = index * self.window
        return torch.from_numpy(self.tokens[start : start + self.window].astype(np.int64))
        ### END SOLUTION

    def document(self, number: int) -> Tensor:
        """The tokens of a document, int64."""
        ### BEGIN SOLUTION
        start, end = self.borders[number : number + 2]
        return torch.from_numpy(self.tokens[start:end].astype(np.int64))
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-memory-map-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("07-memory-map", write_tokens, TokenWindows)

# %% [markdown]
# Linux tells how much of a process is memory of its own, and how much are pages of files: `RssAnon` and `RssFile` in
# `/proc/self/status`. (Other systems do not, and the cell says so.) Here 100 random windows are read from a file of 16 MiB.

# %% tags=["figure", "varies"]
resident = lab07.resident_after(write_tokens, TokenWindows)
for name, one in resident.items():
    print(f"{name:20}{one.own_mib:6.1f} MiB of its own{one.file_mib:7.1f} MiB of the file")

# %% [markdown]
# `np.fromfile` copies the whole file into your process's own memory. With a map, the pages belong to the system. It may map
# far more than you have read, in blocks of up to 2 MiB, if these are in its cache anyway. But they do not count as your
# process's own memory: every process that maps the file uses the same pages, and the system takes them back when memory
# is short.
#
# And this is what workers do to a Python list. One worker goes through half a million strings, which the main process made
# before the fork. It only reads them. The same strings then stand in one NumPy array.

# %% tags=["figure", "varies"]
private = lab07_files.private_memory(500_000)
for name, mib in private.items():
    print(f"{name:14}the worker owns " + ", ".join(f"{one:5.1f}" for one in mib) + " MiB")
if private:
    print(f"{'':14}(after the first read, a quarter, half and all of the strings)")

# %% [markdown]
# Every string that is read has its reference count written, so its page is copied. An array has one count for all of its
# numbers. Once four workers have read the whole list, it is in memory five times, although nobody changed it.
#
# **In practice:** Hugging Face's `datasets` keeps every dataset as a memory-mapped Arrow file, and Megatron-LM its corpora as
# a `.bin` and an `.idx` like yours. **HDF5** is a file of named arrays, in chunks that may be compressed. **LMDB** is a file of
# records, each of any size under a key of its own, which is mapped as well. Both have to be opened in the worker, not before
# the fork. This cell compares your file with both, if they are installed. It is optional, and never graded.

# %% tags=["figure", "varies"]
lab07_files.compare_formats(write_tokens, TokenWindows)

# %% [markdown]
# A window of your file is one slice. HDF5 looks the chunk up and copies (and decompresses) it; LMDB walks down a tree
# of keys to a record, which is as fast for records that differ in size. If LMDB is ahead of your file, that is only
# because of NumPy: cutting a window out of an `np.memmap` takes some microseconds. `np.asarray(np.memmap(...))` makes a
# plain array of the same map, without reading it, and cutting a window out of that takes only one microsecond. Take
# HDF5 for arrays of many dimensions that the tools of other fields have to read, LMDB for millions of small records,
# and a plain file if a plain file is enough.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Find what the GPU waits for
#
# A loader that is too slow is as silent as one that is wrong: the loop works, and the GPU idles. This is the data side of a
# training loop, as it stands in many tutorials. Four things in it cost time for nothing.


# %% nbgrader={"grade": false, "grade_id": "07-slow-train", "locked": true, "schema_version": 3, "solution": false, "task": false}
def slow_train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores):
    """The sum of all losses."""
    model = model.to(device, non_blocking=True)
    total = torch.zeros((), device=device)
    for _ in range(n_epochs):
        loader = DataLoader(dataset, batch_size)
        for images in loader:  # uint8, 0 to 255
            x = images / 255
            total += model(x.to(device))  # forward, backward, optimizer; the loss
    return total.item()


# %% [markdown]
# The loop runs on the simulated device of lab 09: `device` stands for a GPU, and `DataLoader` for PyTorch's, with the same
# arguments. Both work on a virtual clock. You need to know five things about them:
#
# - **Loading** a sample takes time on one core. With `num_workers=0` the main process does it, and can do nothing else
#   meanwhile. Workers load beside it, each a whole batch, two batches ahead.
# - **Starting** workers takes time, too. A `DataLoader` starts them each time that it is iterated, and ends them after the
#   epoch, unless `persistent_workers=True`.
# - **Kernels** are only launched by the host, which goes on at once. In each step the host spends some time in Python before
#   the first kernel starts.
# - A **copy** to the device takes time in proportion to its bytes. Usually the host waits until it is done, and before that
#   until all kernels launched so far are done. It does not wait if two things are true: the batch lies in **pinned memory**
#   (`pin_memory=True`), from where the device can fetch it by itself, and the copy is asked for with `non_blocking=True`.
# - **Converting** on the way depends on that, too, as on a real GPU. `x.to(device, torch.float32)` converts on the host and
#   then copies float32. With `non_blocking=True` it copies `x` as it is, and converts on the device.
#
# **Predict:** On the machine below, loading a batch takes 32 ms on one of four cores, and copying it as float32 8 ms. Each
# step takes 6 ms of Python and 12 ms of kernels. Starting the workers takes 20 ms, and so does copying the model. How many
# times faster will an epoch of 16 batches be in a loop that wastes nothing?

# %% nbgrader={"grade": false, "grade_id": "07-predict-slow-loop", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("speed-up of the loop", None)

# %% [markdown]
# [[exercise 07-slow-loop]]
#
# Write `train`. It has the arguments of `slow_train` and returns the same sum, but does not let the GPU wait. It may
# take 10 % longer than the fastest loop there is. The check tries several machines, and on each of them a different one
# of the four things costs most.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through the loop line by line, and ask of each line who waits for whom, and how many bytes it moves.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The loader is made once, with as many workers as there are cores, which stay. The batch goes to the device as bytes, from
# pinned memory, while the host goes on. It is divided there.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `DataLoader(dataset, batch_size, num_workers=n_cores, pin_memory=True, persistent_workers=True)` before both loops, and
# `images.to(device, non_blocking=True) / 255` inside.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-slow-loop", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(DataLoader, dataset, model, device, n_epochs, batch_size, n_cores) -> float:
    """The sum of all losses, as slow_train returns it."""
    ### BEGIN SOLUTION
    model = model.to(device)
    total = torch.zeros((), device=device)
    loader = DataLoader(
        dataset, batch_size, num_workers=n_cores, pin_memory=True, persistent_workers=True
    )
    for _ in range(n_epochs):
        for images in loader:
            total += model(images.to(device, non_blocking=True) / 255)
    return total.item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-slow-loop-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("07-slow-loop", train)

# %% [markdown]
# The next cells run both loops on the machine of the prediction, for one epoch of 16 batches.

# %%
loops = {name: lab07.timed(loop) for name, loop in {"slow": slow_train, "yours": train}.items()}
for name, run in loops.items():
    print(f"{name:6}{1e3 * run.seconds:5.0f} ms, {run.busy:.0%} of it the GPU computes")
guesses.settle("speed-up of the loop", loops["slow"].seconds / loops["yours"].seconds)

# %% tags=["figure"]
labkit.figures.gantt_player(
    lambda n_cores: {
        name: lab07.timed(loop, replace(lab07.LOOP, n_cores=n_cores)).spans
        for name, loop in {"slow": slow_train, "yours": train}.items()
    },
    "cores",
    values=(1, 2, 4, 8),
    start=4,
    least_lanes={"yours": 10},  # the device, eight workers and the host: the chart keeps its height
)

# %% [markdown]
# In your loop the GPU computes for 192 of 300 ms. Before its first kernel, 78 ms pass: the model is copied, the workers start
# and load the first batch, and Python takes 6 ms. The other 30 ms are copies, 2 ms for each batch after the first.
#
# Move the slider: with one core, loading sets the time of your loop, 570 ms. With two it costs little (328 ms), and with four
# nothing (300 ms): eight are no faster. The slow loop starts no workers, so more cores change nothing.

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 2.6 times. In the slow loop nearly everything happens in turns: 32 + 8 + 6 = 46 ms a batch. (Its kernels run while the next
# batch is loaded, since a launch returns at once.) In yours three things work side by side, and the slowest is the device,
# with 2 ms for the copy and 12 ms for the kernels; four cores yield a batch every 8 ms, and Python takes 6. That makes
# 46 / 14 = 3.3 in the long run, and less in so short an epoch, which begins with starting the workers and waiting for the first
# batch.
#
# </details>
#
# **In practice** you set `TrainingArguments(dataloader_num_workers=4, dataloader_persistent_workers=True)`.
# `dataloader_pin_memory` is on by default, but the `Trainer` copies with `non_blocking` only if you ask for it:
# `accelerator_config={"non_blocking": True}`. A `set_epoch` in the main process does not reach workers that stay, since
# they hold copies: pass the epoch on in shared memory, or let the sampler of the main process decide the order.

# %% [markdown]
# On a machine with a GPU, the next cell runs both loops on that, with PyTorch's own `DataLoader`, real processes, and a
# small convolutional network. Images are decompressed as they are loaded.

# %% tags=["figure", "varies"]
if labkit.has_gpu():
    print(lab07_gpu.times_of({"slow": slow_train, "yours": train}))
else:
    print("there is no GPU here, so nothing is timed")

# %% [markdown]
# ## Load while the GPU works
#
# The core of this lab ends here. The next four sections are optional, and *What you measured* comes after them.
#
# A loop that loads a batch, then trains on it, then loads the next one, leaves the GPU idle while it loads. A **prefetcher**
# loads the next batches in a thread of its own. Between the two stands a **queue** of bounded length. It has to be bounded:
# if loading is the faster of the two, a loader without a limit would fill the memory with the whole dataset. With a queue of
# $q$ batches, let $\text{load}_i$ be the time that loading batch $i$ takes, and $\text{step}_i$ the time that training on it
# takes. Then $\text{put}_i$, the moment at which batch $i$ is in the queue, and $\text{take}_i$, the moment at which the loop
# takes it out, are
#
# $$\text{put}_i = \max(\text{put}_{i-1} + \text{load}_i,\ \text{take}_{i-q}), \qquad
# \text{take}_i = \max(\text{put}_i,\ \text{take}_{i-1} + \text{step}_{i-1}).$$
#
# Your threads and your queue come from a virtual clock: `clock.Thread(target=...)`, `clock.Queue(maxsize=...)` and
# `clock.Event()` do what those of `threading` and `queue` do, and a minute of loading takes no time. So the times can be
# compared exactly.
#
# Three things go wrong in nearly every prefetcher that is written for the first time. It has no bound. An error in the
# loader ends the loader, and the loop waits forever. And a loop that stops early, with `break`, leaves the loader behind,
# waiting for room in a queue that nobody empties.
#
# **Predict:** Loading a batch takes one second on average, and so does a step, but the times vary at random
# (exponentially, as those of a busy network disk). The queue holds one batch. What percentage of the time does the GPU
# wait?

# %% nbgrader={"grade": false, "grade_id": "07-predict-waiting", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("GPU waits, queue of one", None, unit="%")

# %% [markdown]
# How many loaders are enough? **Little's law** says how many things are under way at any moment, on average: as many as
# arrive in a second, times the seconds that each of them takes. If the GPU takes ten batches per second, and each takes
# 0.32 s to load, then 3.2 batches are being loaded at any moment. That takes four workers.
#
# [[exercise 07-prefetch]]
#
# Write `prefetch` and `loader_plan`.
#
# - `prefetch(load, n, depth, clock)` is a generator that yields `load(0)`, `load(1)`, ... `load(n - 1)`, called one
#   after the other in one thread of the clock. At most `depth` batches wait in the queue. What `load` raises is raised
#   by the generator, after the batches before it. When the generator ends or is closed, its thread has ended. A loop
#   that stops early does not wait for the rest to be loaded: at most one more batch is loaded.
# - `loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes)` returns two whole numbers: the fewest workers
#   with which the GPU never waits once they are all under way, and the bytes of the batches that they load ahead. As in a
#   `DataLoader`, a worker loads a whole batch, sample by sample, and `prefetch_factor` of them ahead.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The queue is the only way from the loader to the loop, so errors have to go through it as well.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Put pairs into the queue: (batch, None), or (None, error). To end the loader early, set an event that it looks at after
# each `put`. It may be waiting in a `put` at that moment, so make room for it.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# A generator that is closed raises `GeneratorExit` at its `yield`, so put the loop into a `try: ... finally:`. In the
# `finally`: `stop.set()`, then `if items.full(): items.get_nowait()`, then `loader.join()`.
# `math.ceil(batch_size * sample_ms / step_ms)` workers.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-prefetch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prefetch(
    load: Callable[[int], object], n: int, depth: int, clock: VirtualClock
) -> Iterator[object]:
    """load(0) to load(n - 1), loaded ahead by a thread through a queue of `depth`."""
    ### BEGIN SOLUTION
    items, stop = clock.Queue(maxsize=depth), clock.Event()

    def work() -> None:
        try:
            for index in range(n):
                items.put((load(index), None))
                if stop.is_set():
                    return
        except Exception as error:
            items.put((None, error))

    loader = clock.Thread(target=work)
    loader.start()
    try:
        for _ in range(n):
            item, error = items.get()
            if error is not None:
                raise error
            yield item
    finally:
        stop.set()
        if items.full():
            items.get_nowait()
        loader.join()
    ### END SOLUTION


def loader_plan(
    sample_ms: int, batch_size: int, step_ms: int, prefetch_factor: int, sample_bytes: int
) -> tuple[int, int]:
    """The fewest workers with which the GPU never waits, and the bytes that they load ahead."""
    ### BEGIN SOLUTION
    n_workers = math.ceil(batch_size * sample_ms / step_ms)
    return n_workers, n_workers * prefetch_factor * batch_size * sample_bytes
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-prefetch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("07-prefetch", prefetch, loader_plan)

# %%
waits = {depth: lab07.share_of_waiting(prefetch, depth) for depth in (1, 2, 4, 8, 16)}
for depth, share in waits.items():
    print(f"queue of {depth:2}: the GPU waits for {100 * share:4.1f} % of the time")
guesses.settle("GPU waits, queue of one", 100 * waits[1])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About a quarter, although loading is as fast as the GPU on average. A slow batch makes the GPU wait, and after a fast one the
# loader soon waits itself, because the queue is full. A deeper queue evens that out, but slowly: with 16 batches the GPU
# still waits for 5 %. What helps is a loader that is faster than the GPU on average.
#
# </details>
#
# **In practice** you set `TrainingArguments(dataloader_num_workers=4, dataloader_prefetch_factor=2)`. A `DataLoader`
# holds up to `num_workers * prefetch_factor` batches in shared memory.

# %% [markdown]
# ## Read a few large files, not a million small ones
#
# This section is optional. Opening a file on a network disk takes a few milliseconds, however small the file is. A
# dataset of a million images is a million files, and a shuffled epoch opens all of them in random order. **Shards** are
# the way out: a thousand samples share one `tar` file, which is read from its start to its end. In the layout of
# WebDataset, the files of a sample follow one another and have one **key**: `000007.jpg` is the part `jpg` of the
# sample `000007`, and `000007.seg.png` its part `seg.png`. The key ends at the first dot.
#
# What is read from start to end cannot be shuffled freely. Instead, the order of the shards is shuffled, and a **shuffle
# buffer** mixes what comes out of them: it is filled with, say, 1,000 samples, then a random one leaves it for each that
# comes in. A sample can come any number of places late, but at most 1,000 places early.
#
# **Predict:** A buffer of 1,000 mixes 30,000 samples. By how many places does it move a sample, on average? (A full
# shuffle moves it by 10,000.)

# %% nbgrader={"grade": false, "grade_id": "07-predict-buffer", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("places moved by a buffer", None, unit="places")

# %% [markdown]
# [[exercise 07-tar-shards]]
#
# Write `write_shards` and `read_shards`. The files lie in a **store**, which counts what is opened: `store.write(name, data)`
# and `store.read(name)` work on whole files as `bytes`.
#
# - `write_shards(store, samples, per_shard)` writes `per_shard` samples into each shard, in order, and returns the shards'
#   names. The last one may hold fewer. `samples` yields pairs of a key and a dictionary from extension to bytes, such as
#   `("000007", {"jpg": b"...", "cls": b"3"})`.
# - `read_shards(store, names, buffer_size, seed)` is a generator of such pairs. The shards come in random order, and the
#   samples of all of them go through one buffer, which never holds more than `buffer_size`. A shard is opened once, and only
#   when the buffer needs it. The order depends on the seed alone. Global generators and the list `names` are left as they are.
# - If `tarfile` cannot read a shard, the error that you raise names it. (A shard that was cut off exactly between two of its
#   files goes unnoticed, because `tarfile` takes it for complete. To notice that, you would count samples.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Python's `tarfile` writes into and reads from an `io.BytesIO`, which behaves like a file.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Two loops, one in the other: over the shuffled names, and over the samples of a shard. Append each sample to the buffer, and
# once that is full, `pop` a random one. After the loops the buffer still holds samples.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `info = tarfile.TarInfo(f"{key}.{extension}")`, `info.size = len(data)`, `tar.addfile(info, io.BytesIO(data))` within
# `tarfile.open(fileobj=content, mode="w")`. To read: `for member in tar`, with `member.name.partition(".")` and
# `tar.extractfile(member).read()`. Put it into a `try` with `except tarfile.TarError as error: raise
# ValueError(f"{name}: {error}")`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-tar-shards", "locked": false, "schema_version": 3, "solution": true, "task": false}
def write_shards(
    store: Store, samples: Iterable[tuple[str, dict[str, bytes]]], per_shard: int
) -> list[str]:
    """Write tar files of `per_shard` samples each; their names."""
    ### BEGIN SOLUTION
    names = []
    samples = iter(samples)
    while of_shard := list(islice(samples, per_shard)):
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w") as tar:
            for key, parts in of_shard:
                for extension, data in parts.items():
                    info = tarfile.TarInfo(f"{key}.{extension}")
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        names.append(f"shard-{len(names):06d}.tar")
        store.write(names[-1], content.getvalue())
    return names
    ### END SOLUTION


def read_shards(
    store: Store, names: Sequence[str], buffer_size: int, seed: int
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """The samples of all shards, in random order, through a buffer of `buffer_size`."""
    ### BEGIN SOLUTION
    rng = random.Random(seed)
    buffer = []
    for name in rng.sample(names, len(names)):
        parts_by_key = {}
        try:
            with tarfile.open(fileobj=io.BytesIO(store.read(name))) as tar:
                for member in tar:
                    key, _, extension = member.name.partition(".")
                    parts_by_key.setdefault(key, {})[extension] = tar.extractfile(member).read()
        except tarfile.TarError as error:
            raise ValueError(f"{name}: {error}") from error
        for sample in parts_by_key.items():
            buffer.append(sample)
            if len(buffer) >= buffer_size:
                yield buffer.pop(rng.randrange(len(buffer)))
    rng.shuffle(buffer)
    yield from buffer
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-tar-shards-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("07-tar-shards", write_shards, read_shards)

# %% [markdown]
# The next cell takes your buffer alone, with one shard of 30,000 samples, and shows how far it moves them.

# %%
order = lab07.through_buffer(write_shards, read_shards, 30_000, 1000)
guesses.settle("places moved by a buffer", lab07.places_moved(order))

# %% tags=["figure"]
labkit.figures.shuffle_player(
    lambda n, size: lab07.through_buffer(write_shards, read_shards, n, size),
    10_000,
    (1, 10, 100, 1000, 10_000),
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 720. The first sample comes out when 1,000 have gone in, and every sample waits in the buffer while 1,000 others come
# out, on average. So its place changes only by how much its own wait differs from 1,000. The buffer cannot bring a sample
# forward by more than its own size: that is the grey part of the picture. So shuffle the shards, too, and do not write a
# dataset that is sorted by class.
#
# </details>
#
# Your shards are ordinary WebDataset files. If the library `webdataset` is installed, it reads them here. (The cell is
# optional, and never graded.)

# %% tags=["figure", "varies"]
lab07_files.read_by_webdataset(write_shards)

# %% [markdown]
# **In practice:** `webdataset.WebDataset(urls, shardshuffle=100).shuffle(1000)` is your `read_shards`, and
# `nodesplitter=webdataset.split_by_node` deals shards to ranks. `load_dataset("webdataset", data_files=..., streaming=True)` of
# `datasets` reads the same files.

# %% [markdown]
# ## Keep what was expensive to load
#
# This section is optional. Decoding an image takes milliseconds, and reading it once more from memory takes
# microseconds. **Lazy loading** decodes an image only when it is asked for, so the first step does not wait for the
# whole dataset. **Caching** keeps the decoded image for the next epoch. Three questions decide whether a cache is
# right:
#
# - **What is kept?** The decoded image, before any augmentation. A cache of augmented images shows each of them in the same
#   way in every epoch.
# - **How much?** Decoded images are several times as large as their files. A cache needs a limit in bytes.
# - **What is thrown out when it is full?** Operating systems and web servers throw out what has not been used for the
#   longest time (least recently used, LRU). They serve requests in which a few files come again and again.
#
# **Predict:** A cache holds half of the images. Every epoch asks for each image once, in a new random order, and LRU
# decides what is thrown out. What percentage of an epoch's images does the cache still have?

# %% nbgrader={"grade": false, "grade_id": "07-predict-lru", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("images that LRU finds", None, unit="%")

# %% [markdown]
# A cache with a limit is a compromise. If the whole dataset fits into the GPU's memory, copy it there once, and no step ever
# waits for a loader or a copy again. Small datasets such as CIFAR-10 (150 MB as bytes) are trained like that. Filling the
# memory takes time before the first step, so it pays only from some epoch on.
#
# [[exercise 07-cache]]
#
# Write `CachedImages`, `train_resident` and `pays_from`.
#
# - `CachedImages(files, decode, augment, max_bytes)` is a dataset. Item $i$ is `augment(decode(files[i]))`, a uint8 tensor.
#   `decode` is called only if the image is asked for and was not kept. `augment` is called every time, and may change the
#   image that it is given. The decoded images that are kept have at most `max_bytes` together. Every image that still fits is
#   kept, and is still there in the next epoch.
# - `train_resident(images, model, device, n_epochs, batch_size)` returns the sum of all losses, as `slow_train` above does.
#   `images` is one uint8 tensor of shape (images, pixels), 0 to 255. Nothing is copied to the device but the model and, once, the
#   images, which stay bytes there: as float32 they would take four times the memory. The batches come in order. It may take
#   10 % longer than the fastest loop there is.
# - `pays_from(fill_ms, resident_ms, loader_ms, data_bytes, free_bytes)`: filling the device's memory takes `fill_ms`, and then
#   each epoch takes `resident_ms`. With a loader each epoch takes `loader_ms`. Return the first epoch, counted from 1, at whose
#   end the run from the device's memory is ahead. If that is never so, or the data do not fit into `free_bytes`, return `None`.
#   All numbers are whole.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Every image is asked for once in each epoch. Is there any order in which it makes sense to throw one out for another?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A dictionary from number to decoded image, and a count of its bytes. An image is put in if it still fits, and nothing is ever
# taken out. What goes to `augment` is a copy.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `if self.n_bytes + image.nbytes <= self.max_bytes:` keep it. Return `self.augment(image.clone())`. On the device,
# `images.to(device).split(batch_size)` are views of one tensor. After $e$ epochs the run from the device's memory is ahead if
# `fill_ms + e * resident_ms < e * loader_ms`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-cache", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CachedImages(Dataset):
    """Images that are decoded when they are asked for, and kept as long as max_bytes has room for them."""

    def __init__(
        self,
        files: Sequence[bytes],
        decode: Callable[[bytes], Tensor],
        augment: Callable[[Tensor], Tensor],
        max_bytes: int,
    ) -> None:
        ### BEGIN SOLUTION
        self.files, self.decode, self.augment = files, decode, augment
        self.max_bytes = max_bytes
        self.kept: dict[int, Tensor] = {}
        self.n_bytes = 0
        ### END SOLUTION

    def __len__(self) -> int:
        """How many images there are."""
        ### BEGIN SOLUTION
        return len(self.files)
        ### END SOLUTION

    def __getitem__(self, index: int) -> Tensor:
        """An image, decoded at most once if it is kept, and augmented anew."""
        ### BEGIN SOLUTION
        image = self.kept.get(index)
        if image is None:
            image = self.decode(self.files[index])
            if self.n_bytes + image.nbytes <= self.max_bytes:
                self.kept[index] = image
                self.n_bytes += image.nbytes
        return self.augment(image.clone())
        ### END SOLUTION


def train_resident(images: Tensor, model, device, n_epochs: int, batch_size: int) -> float:
    """The sum of all losses, with all images on the device."""
    ### BEGIN SOLUTION
    model = model.to(device)
    total = torch.zeros((), device=device)
    batches = images.to(device).split(batch_size)
    for _ in range(n_epochs):
        for batch in batches:
            total += model(batch / 255)
    return total.item()
    ### END SOLUTION


def pays_from(
    fill_ms: int, resident_ms: int, loader_ms: int, data_bytes: int, free_bytes: int
) -> int | None:
    """The first epoch, from 1 on, after which the run from the device's memory is ahead; None for never."""
    ### BEGIN SOLUTION
    if data_bytes > free_bytes or resident_ms >= loader_ms:
        return None
    return fill_ms // (loader_ms - resident_ms) + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-cache-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("07-cache", CachedImages, train_resident, pays_from)

# %% [markdown]
# Here is your cache beside one that throws out what was used least recently, for 2,000 images of one size.

# %%
shares = (0.25, 0.5, 0.75, 0.95)
found = {share: lab07.images_found(CachedImages, share) for share in shares}
print("the cache holds   LRU finds   yours finds")
for share, (by_lru, by_yours) in found.items():
    print(f"{share:>15.0%}{by_lru:>12.0%}{by_yours:>14.0%}")
guesses.settle("images that LRU finds", 100 * found[0.5][0])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 15 %. An image that was used early in one epoch is thrown out long before its turn in the next one. A cache that has room
# for the share $c$ of the images and never throws anything out finds the share $c$. LRU finds only $c + (1 - c) \ln(1 - c)$.
#
# </details>
#
# A dataset with workers has one such cache in each worker. Together they take up to `max_bytes` times the number of
# workers, and each of them may decode the same image. Without `persistent_workers=True`, all caches are empty again in
# every epoch. There are two ways out: keep the decoded images in a memory-mapped file, which all processes share, or
# in one tensor in shared memory (`tensor.share_memory_()`), which has room for every image from the start.
#
# **In practice:** the operating system caches *files* in free memory by itself (the page cache), and throws them out much like
# LRU. `datasets` keeps what `map` made in an Arrow file, and `set_transform` decodes lazily, at each access. CoorDL's MinIO
# cache never throws anything out, like yours.

# %% [markdown]
# ## Go on in the middle of an epoch
#
# This section is optional. A run over a corpus may take one epoch of three weeks, and it is killed once a day. Your
# sampler by length kept two numbers as its state. A stream with a shuffle buffer needs more: the samples in the buffer
# have been read and not yet seen. If the state leaves them out, each restart loses 1,000 samples. If the stream starts
# over and throws away what was seen, a restart in the third week reads two weeks of data first.
#
# A run has not one stream but one for each worker of each rank, so 8 ranks with 4 workers have 32 states. If the run goes
# on with 4 ranks, because a machine has failed, 16 streams have to share what the 32 have left.
#
# [[exercise 07-resume]]
#
# Write `ResumableStream` and `deal_again`. The samples are the lines of text files in the store, which hold a whole number
# of lines each. The streams are numbered from 0 over all workers of all ranks.
#
# - The files come in random order and are dealt to the `n_streams` streams. Iterating stream `number` yields each line of its
#   own files once, as text without the line break, through a buffer of `buffer_size`: once it is full, a random line leaves it
#   for each that comes in, and when the files are over, what is left leaves in random order. The order depends on `seed`,
#   `number` and `n_streams` alone. Global generators and the list `names` are left as they are. No file is opened by two
#   streams.
# - `state_dict()` may be asked for after any line. It returns what JSON can hold, and the check writes it to the store. The
#   job is killed at some step that you do not know.
# - A new stream that loads the state with `load_state_dict` yields just the lines that the old one would have yielded next, in
#   the same order. It opens no file whose lines had all been taken into the buffer; of each stream one may be opened to see
#   that nothing is left of it.
# - `deal_again(states, n_streams)` takes the states of all old streams and returns a list of `n_streams` states for new ones,
#   which may be fewer or more. Together these yield every line that was not yet yielded, each exactly once, in any order. (A
#   new stream's buffer may be fuller than `buffer_size` at first.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# What decides about the next line? All of that is state, and nothing else is.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The files that are left, each with the number of its lines that were taken, the lines in the buffer, and the state of the
# random generator. Keep all three as attributes, and change them *before* each `yield`. Then `deal_again` has little to do: it
# collects the files and the lines of all states, and deals both like cards.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `random.Random.getstate()` returns a tuple of a number, a tuple of numbers, and `None`. JSON turns tuples into lists, so
# `load_state_dict` calls `setstate((version, tuple(numbers), gauss))`. Put `list(self.buffer)` into the state, not the list
# itself. `deal_again` gives new stream `k` `shards[k::n_streams]`, `lines[k::n_streams]` and the state of a
# `random.Random(k)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-resume", "locked": false, "schema_version": 3, "solution": true, "task": false}
class ResumableStream:
    """The lines of one stream's text files in a store, in random order, through a buffer: one epoch of them."""

    def __init__(
        self,
        store: Store,
        names: list[str],
        buffer_size: int,
        seed: int = 0,
        number: int = 0,
        n_streams: int = 1,
    ) -> None:
        ### BEGIN SOLUTION
        self.store, self.buffer_size, self.buffer = store, buffer_size, []
        order = random.Random(seed).sample(names, len(names))
        self.shards = [[name, 0] for name in order[number::n_streams]]  # with the lines taken
        self.random = random.Random(f"{seed}, {number}")
        ### END SOLUTION

    def __iter__(self) -> Iterator[str]:
        """The lines, or, after load_state_dict, those that are left."""
        ### BEGIN SOLUTION
        while self.shards:
            name, n_taken = self.shards[0]
            for line in self.store.read(name).decode().splitlines()[n_taken:]:
                self.shards[0][1] += 1
                self.buffer.append(line)
                if len(self.buffer) >= self.buffer_size:
                    yield self.buffer.pop(self.random.randrange(len(self.buffer)))
            del self.shards[0]
        while self.buffer:
            yield self.buffer.pop(self.random.randrange(len(self.buffer)))
        ### END SOLUTION

    def state_dict(self) -> dict:
        """What decides about the lines to come, as JSON can hold it."""
        ### BEGIN SOLUTION
        return {
            "shards": [list(shard) for shard in self.shards],
            "buffer": list(self.buffer),
            "random": self.random.getstate(),
        }
        ### END SOLUTION

    def load_state_dict(self, state: dict) -> None:
        """Go on where the state was taken."""
        ### BEGIN SOLUTION
        version, numbers, gauss = state["random"]
        self.random.setstate((version, tuple(numbers), gauss))
        self.shards = [list(shard) for shard in state["shards"]]
        self.buffer = list(state["buffer"])
        ### END SOLUTION


def deal_again(states: list[dict], n_streams: int) -> list[dict]:
    """States of n_streams new streams, for what the old ones have left."""
    ### BEGIN SOLUTION
    shards = [shard for state in states for shard in state["shards"]]
    lines = [line for state in states for line in state["buffer"]]
    return [
        {
            "shards": shards[number::n_streams],
            "buffer": lines[number::n_streams],
            "random": random.Random(number).getstate(),
        }
        for number in range(n_streams)
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "07-resume-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("07-resume", ResumableStream, deal_again)

# %% [markdown]
# **In practice:** `StatefulDataLoader` of `torchdata` gives a `DataLoader` this protocol: it asks the dataset of each worker
# for its `state_dict()`, and saves where the round among the workers was. It knows the workers of its own rank only, so dealing
# states again is left to you. MosaicML's `streaming` can go on with another number of GPUs. The `Trainer` without any of these
# does what you were asked to avoid: it reads and throws away what was seen, unless `TrainingArguments(ignore_data_skip=True)`
# makes it start the epoch again.

# %% [markdown]
# ## What you measured

# %%
print(f"{'20,000 texts in batches of 32':36}{'padding':>10}{'rows of 1,024':>16}")
n_tokens = sum(lengths)
for name, batches in ways.items():
    rows = n_tokens / (1 - batches.padding) / 1024
    print(f"{name:36}{100 * batches.padding:>8.2f} %{rows:>16,.0f}")
if "packed into windows" in ways:
    in_packed, in_random = (
        1 - ways[name].padding for name in ("packed into windows", "padded to the batch's longest")
    )
    gain = in_packed / in_random
    print(f"a packed row holds {gain:.1f} times the tokens of one in a random batch")

# %%
print(f"{'one epoch of 16 batches':36}{'time':>10}{'GPU computes':>16}")
for name, run in loops.items():
    print(f"{name:36}{1e3 * run.seconds:>7.0f} ms{run.busy:>16.0%}")

# %% [markdown]
# | technique | speed | memory | where it ends |
# |---|---|---|---|
# | batches by length | most of the padding is gone | the longest batch decides | order and length are no longer independent |
# | packing | almost no padding, every batch of one shape | every window is full | attention has to respect boundaries |
# | workers | load beside the GPU | workers × prefetch factor × batch | cores; the processes' own memory |
# | workers that stay | no start in each epoch | as above, all the time | `set_epoch` does not reach their copies |
# | pinned memory, `non_blocking` | the host goes on during a copy | pinned pages cannot be swapped out | the host must have something else to do |
# | bytes over the link, floats on the device | a quarter of the copy | a quarter of the queue | the conversion takes a kernel |
# | a memory-mapped file | a window is one slice | pages that all processes share | a random place may have to wait for the disk |
# | shards and a shuffle buffer | a file is opened once for a thousand samples | the buffer | samples move only so far |
# | a cache that throws nothing out | the share that fits is decoded once | its limit, in every worker | what does not fit |
# | the dataset on the device | no loader and no copy | the device's own | small datasets only |
#
# Neither a wrong loader nor a slow one prints a warning. So count its samples, its padding and its bytes. Little's law
# then says how many workers it takes.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("07", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "07",
    "packed windows, and a loop that does not wait",
    speed=lambda: (
        f"{gain:.1f} x the tokens a row, {loops['slow'].seconds / loops['yours'].seconds:.1f} x the steps"
    ),
    memory=lambda: f"{100 * ways['packed into windows'].padding:.2f} % padding",
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A colleague trains with 8 GPUs and 4 workers each, on an iterable dataset that yields
# every sample in every worker. He says: "It is only a larger epoch. I train for a third of the epochs and get the same
# loss." What does one of his epochs contain, and what is different from a run with a right loader and the same number of
# steps? Name two numbers that his log could have printed to show the mistake in the first minute.

# %% [markdown] nbgrader={"grade": true, "grade_id": "07-open-larger-epoch", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# One epoch contains each sample 8 x 4 = 32 times. If all workers go through the data in the same order, the 8 ranks (and the
# 4 workers of each, whose batches follow one another) work on the same batches: a step averages 8 equal gradients, so the
# effective batch is that of one rank, and four steps in a row repeat one batch. Eight GPUs do the work of one. If each worker
# shuffles for itself, batches differ, but samples repeat at random: some come twice in a step. Validation and the schedule by
# epochs are off by 32.
#
# Numbers: samples per epoch over all ranks divided by the dataset's size; steps per epoch; the share of sample numbers in a
# global batch that are different; the difference of the ranks' losses in one step (zero).
#
# Marks: 1 for 32 and what follows for the effective batch (or repeated batches). 1/2 for each useful number.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) Your model takes 250 ms for a step with a batch of 256 images, on one GPU. An image is
# a file of 110 KB, takes 8 ms to decode and augment on one core, and is 150 KB as bytes and 600 KB as float32. The disk reads
# 100 MB/s, the link to the GPU carries 12 GB/s, and the machine has 16 cores. The loop is `slow_train` as it stands above.
# Which part is too slow, and by how much? What do you change, in which order, and what is the throughput after each change?

# %% [markdown] nbgrader={"grade": true, "grade_id": "07-open-too-slow", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# The GPU could take 256 / 0.25 s = 1,024 images/s. The disk yields 100 MB/s / 110 KB = 909 images/s, if it reads large files
# from start to end; with small files in random order far fewer. The cores: 16 / 8 ms = 2,000 images/s; by Little's law 1,024
# images/s x 8 ms = 8.2, so nine workers are enough. The copy: 256 x 150 KB = 38 MB (as float32 154 MB) per step, at 12 GB/s
# 3 ms (13 ms).
#
# Order: workers (nine or more; without them 125 images/s, an eighth of what the GPU takes); then the disk: shards, so that it
# reaches its 909 images/s (89 % of the GPU); smaller files (resized once, stored smaller) or a cache of the files in memory or
# on a local disk to get past 1,024; bytes over the link and pinned memory last (a few percent).
#
# Marks: 1 for the three rates in images/s (a factor of 1.3 is fine). 1 for Little's law and the number of workers. 1 for the
# disk as the bottleneck that is left, with a change that helps and its rate.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - PyTorch's documentation of `torch.utils.data`, in particular the sections on iterable datasets with workers, on
#   randomness in workers, and on memory pinning.
# - Mario Michael Krell and others, *Efficient Sequence Packing without Cross-contamination* (2021). Packing as a problem of
#   its own, and what leaks if it is done carelessly.
# - Alex Aizman, Gavin Maltby and Thomas Breuel, *High Performance I/O For Large Scale Deep Learning* (2019). Tar shards, as
#   in WebDataset.
# - Jayashree Mohan and others, *Analyzing and Mitigating Data Stalls in DNN Training* (2021). How often the GPU waits, and
#   for whom.
# - Tanel Pärnamaa, *Using PyTorch + NumPy? You're making a mistake* (2021). The generators that are copied into workers, and
#   how many public repositories have them.
#
# **Sources.** The texts above, the documentation of `transformers.Trainer`, `DataCollatorWithFlattening` and `torchdata`'s
# `StatefulDataLoader`. First fit decreasing: David Johnson, *Near-Optimal Bin Packing Algorithms* (1973). Offsets of
# sequences: Tri Dao and others, *FlashAttention* (2022), the functions for sequences of varying length. Little's law: John
# Little, *A Proof for the Queuing Formula L = λW* (1961). The layout of tar shards: the WebDataset format of NVIDIA's
# *AIStore* and of the `webdataset` library.
