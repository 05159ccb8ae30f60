# %% [markdown]
# # Lab 07: Keep the GPU fed
#
# You have 1,000 samples, an iterable dataset, and a `DataLoader` with four workers. One epoch yields 4,000 samples. So you
# switch to a dataset with an index, and give it its own random generator for the augmentations. Now 64 samples are augmented
# in only 16 different ways, and the second epoch brings not one new one. Neither prints a warning. **How many runs have
# you trained like that?**
#
# You will write the part of training that fails without a word: batches by length, packed windows, shards for workers
# and ranks, a memory-mapped file of tokens, and a loop that no longer waits for its data.
#
# [[time]]
#
# You need to know what a batch and a gradient are (lab 04), and nothing that you wrote there.

# %% nbgrader={"grade": false, "grade_id": "07-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import math
import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import IterableDataset, Sampler, get_worker_info

import labkit.figures
from labkit import Predictions, VirtualClock, check, progress, written

IGNORED = (
    -100
)  # the label that a loss leaves out: ignore_index of torch.nn.functional.cross_entropy
guesses = Predictions("07")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# ## Put texts of one length into a batch
#
# The texts of a batch have to be of one length, so all but the longest are filled up with **padding**. The GPU computes on
# padding as on anything else. Texts have very different lengths. With lengths as in a corpus of web pages, median 100 and at
# most 1,024 tokens, 86 % of all tokens are padding if everything is padded to 1,024. Padding each batch only to its own
# longest text still leaves 78 %, because there is a long text in nearly every batch.
#
# Sorting all texts by length would leave almost none. But then the model sees all short texts before all long ones, and the
# same texts meet in every epoch. The compromise sorts only a little: shuffle all texts, cut them into pools of 50 batches,
# sort within each pool, cut the batches, and shuffle the batches.
#
# A sampler that training can resume needs a **state**: where in which epoch it is. A run that was killed and begins its
# epoch again sees its first texts twice as often as the last ones.
#
# [[exercise 07-length-buckets]]
#
# Write `LengthBatches` and `collate`.
#
# - Iterating a `LengthBatches` yields the batches of one epoch, each a list of text numbers. Every text comes once. All
#   batches have `batch_size` texts, but for one that may have fewer. At most 20 % of the tokens are padding.
# - The order is random: the batches are not sorted by length, and the next epoch has other batches in another order. It
#   depends on the seed and on the epoch alone, which `set_epoch` sets. Global generators are left alone.
# - `len` is the number of batches of an epoch.
# - `state_dict()` returns a dictionary that says how far the epoch is. A new sampler that loads it with `load_state_dict`
#   yields the rest of the epoch.
# - `collate(texts)` makes a dictionary of three int64 tensors of shape (texts, longest text) from a batch: `input_ids` with
#   0 for padding, `attention_mask` with 1 for a token and 0 for padding, and `labels`, which are the tokens, with `IGNORED`
#   for padding. (Models of `transformers` shift the labels themselves.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Two things are shuffled, at different moments: single texts, and whole batches.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make all batches of the epoch at the start of `__iter__`, with a generator that is seeded from the seed and the epoch. Then
# yield those from `self.n_done` on, and count. When the epoch is over, set the count back to 0.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `pool = sorted(order[start : start + pool_size], key=self.lengths.__getitem__)` for each pool of 50 batches, and
# `pool[at : at + batch_size]` are its batches. Increase `self.n_done` *before* each `yield`: what stands behind a `yield` runs
# only when the next batch is asked for. `torch.nn.utils.rnn.pad_sequence` fills up.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "07-length-buckets", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LengthBatches(Sampler[list[int]]):
    """Batches of texts of about one length, in random order: every text once in an epoch."""

    def __init__(self, lengths: list[int], batch_size: int, seed: int = 0) -> None:
        ### BEGIN SOLUTION
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.epoch, self.n_done = 0, 0
        ### END SOLUTION

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is the whole of this epoch."""
        ### BEGIN SOLUTION
        self.epoch, self.n_done = epoch, 0
        ### END SOLUTION

    def __len__(self) -> int:
        """The batches of an epoch."""
        ### BEGIN SOLUTION
        return math.ceil(len(self.lengths) / self.batch_size)
        ### END SOLUTION

    def __iter__(self) -> Iterator[list[int]]:
        """The batches of the epoch, or, after load_state_dict, those that are left of it."""
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
        for number in shuffled[self.n_done :]:
            self.n_done += 1
            yield batches[number]
        self.n_done = 0
        ### END SOLUTION

    def state_dict(self) -> dict[str, int]:
        """Where in which epoch it is."""
        ### BEGIN SOLUTION
        return {"epoch": self.epoch, "n_done": self.n_done}
        ### END SOLUTION

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where the state was taken."""
        ### BEGIN SOLUTION
        self.epoch, self.n_done = state["epoch"], state["n_done"]
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

# %% [markdown]
# ## Pack documents, and no token is wasted
#
# Batches by length still pad a little, and every batch has another shape. Language models are trained on windows of one
# fixed length instead, and several documents share a window. A window of 4,096 tokens may hold an article, two letters
# and a recipe, one behind the other.
#
# Two things have to be decided. First, **which documents share a window**. This is bin packing: find the fewest windows
# that hold all documents, and cut none of them. The best answer takes exponential time, but a simple rule is nearly
# perfect: deal the longest documents first, each into a window that still has room, and open a new window only where there
# is none. What costs time is to *find* the window. A corpus has millions of documents, so nobody can look at all windows
# for each of them.
#
# Second, **what the model is told about the borders**. The recipe has nothing to do with the article, so
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
#   them, uncut. It needs at most 1 % more windows than the tokens would fill, and one more. No document is longer than the
#   window. For 100,000 documents it must not take more than a few seconds.
# - `lay_out(documents, window)` lays some documents out in one window, in the given order, and returns a dictionary of four
#   tensors. The first three have `window` entries of int64, the last one is int32:
#   - `input_ids`: the tokens, then 0 for padding,
#   - `position_ids`: a token's place in its own document, and 0 for padding,
#   - `labels`: for each token the one that follows it in the same document, and `IGNORED` where there is none, and for
#     padding,
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
# `at = bisect_left(rooms, length)`. If `at == len(rooms)`, open a window. Else take one from `windows_by_room[rooms[at]]`, and
# delete `rooms[at]` if that list is now empty. Put the window back under its new room, and `insort` the room if it was not
# there. A document's labels are `torch.cat([document[1:], torch.tensor([IGNORED])])`.
# `accumulate(map(len, documents), initial=0)` yields the borders.
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

# %% [markdown]
# ## Give every worker its own samples
#
# A worker of a `DataLoader` is a process, and it begins as a **copy** of the main one. Nothing in the copy says that it is
# one. An iterable dataset that is copied into four workers yields everything four times. A random generator that is copied
# into four workers draws the same numbers four times. And because the workers are copied again for every epoch, from a main
# process whose generator never drew anything, every epoch draws the same numbers once more.
#
# PyTorch tells a worker apart from the others in two ways. `get_worker_info()` returns its `id` and `num_workers`, or `None`
# in the main process, which loads where `num_workers=0`. And the *global* generators of `torch`, `random` and NumPy are
# seeded differently in each worker of a process. They are not seeded differently on each rank, though: training scripts
# start with the same `torch.manual_seed(0)` everywhere, so the first worker of every GPU draws the same numbers.
#
# With several GPUs there is one more trap. If one rank has a batch more than the others, it calls an all-reduce that nobody
# else calls, and training hangs at the end of the epoch. So all ranks must get equally many samples. There are two ways out:
# repeat a few samples, or leave a few out. Here we leave them out, other ones in each epoch.
#
# [[exercise 07-shard-workers]]
#
# Write `WorkerSamples`. `load(index, generator)` loads a sample and augments it with numbers from a `torch.Generator`.
#
# - Each rank gets `n // world_size` samples of an epoch, and its workers share them evenly: none gets more than one more than
#   another. No sample comes twice, and at most `world_size - 1` are left out. `load` is called for what is yielded, and for
#   nothing else.
# - The order is random. Every epoch has another one and deals other samples to a rank.
# - No two samples are augmented with the same random numbers: not on two workers, not on two ranks, not in two epochs.
# - All that depends on the seed, the epoch, the rank and the worker alone, so a run that is resumed in epoch 2 goes on as it
#   would have. It is epoch 0 until `set_epoch` says otherwise. Global generators are left alone.
#
# The check plays the workers: it copies your dataset for each of them, and `get_worker_info()` says what it would say there.
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
# `order[: n - n % world_size][rank::world_size]` are the rank's samples, and `[worker::n_workers]` of these the worker's. For
# whole numbers `hash((seed, epoch, rank, worker))` is the same in every process, and differs for any other four.
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
# ## Load while the GPU works
#
# A loop that loads a batch, then trains on it, then loads the next one, leaves the GPU idle while it loads. A **prefetcher**
# loads the next batches in a thread of its own. Between the two stands a **queue** of bounded length. It has to be bounded:
# if loading is the faster of the two, a loader without a limit would fill the memory with the whole dataset. With a queue of
# $q$ batches,
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
# How many loaders are enough? **Little's law** says: if a batch takes 320 ms to load, and the GPU takes one every 100 ms,
# then 3.2 batches are being loaded at any moment. That takes four workers.
#
# [[exercise 07-prefetch]]
#
# Write `prefetch` and `loader_plan`.
#
# - `prefetch(load, n, depth, clock)` is a generator that yields `load(0)`, `load(1)`, ... `load(n - 1)`, called one after the
#   other in one thread of the clock. At most `depth` batches wait in the queue. What `load` raises is raised by the generator,
#   after the batches before it. When the generator ends or is closed, its thread has ended.
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
# A generator that is closed raises `GeneratorExit` at its `yield`, so wrap the loop into `try: ... finally:`. In the
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
