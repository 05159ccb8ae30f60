# %% [markdown]
# # Lab 13: Tiles, and algorithms that need one pass
#
# Multiplying two matrices of 4096 × 4096 in float16 takes 137 GFLOP, 0.44 ms on the tensor cores of an A100. If each
# element of the result has a program of its own, which reads one row and one column, the programs read 275 GB from
# memory: 135 ms at 2,039 GB/s. Yet both matrices and the result together take only 0.1 GB. **Who reads everything
# thousands of times, and how does cuBLAS avoid it?**
#
# And attention over a sequence of 64 Ki (65,536) tokens makes a matrix of scores for each head, 8 GiB in float16, which
# nobody needs once the result is there. In this lab you write a matrix product in tiles, an order of tiles that makes
# use of the cache, a softmax that sees its row piece by piece, a loss that writes its gradient over the logits, and
# from all of these flash attention, forward and (for extra credit) backward.
#
# [[time]]
#
# You need to know kernels with masks and backward passes (lab 12), tf32 (lab 02) and the roofline (lab 01), and you
# need Linux.

# %% nbgrader={"grade": false, "grade_id": "13-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, has_gpu, interpreter, progress
from labkit.material.kernel_costs import compare_traffic
from labkit.meters import bench, guard_launches, measure_compiled, track_memory, track_traffic
from labkit.meters.traffic.cache import product_read_bytes
from labkit.units import in_bytes

torch.manual_seed(0)
guesses = Predictions("13")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so
# Kernels run in Triton's interpreter on tensors of the CPU, and compiled on those of a GPU, if there is one.
interpreter.enable(beside_gpu=True)
# An access past the end of a tensor raises an error instead of ending the notebook's process.
guard_launches()

import triton
import triton.language as tl

# %% [markdown]
# First measure it, with matrices small enough for the interpreter: A has 24 × 64 elements and B has 64 × 24, both in
# float32, and each of the 576 elements of the result has its own program.

# %% [markdown]
# The ideal is to read A and B once and to write the result once. **Predict:** how many times the bytes of this ideal do
# these programs move?

# %% nbgrader={"grade": false, "grade_id": "13-predict-elements", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("a program for each element", None, unit="times the ideal")


# %%
@triton.jit
def element_kernel(a_ptr, b_ptr, c_ptr, n_cols, n_inner: tl.constexpr):
    row, col, k = tl.program_id(0), tl.program_id(1), tl.arange(0, n_inner)
    products = tl.load(a_ptr + row * n_inner + k) * tl.load(b_ptr + k * n_cols + col)
    tl.store(c_ptr + row * n_cols + col, tl.sum(products, axis=0))


a, b, c = torch.randn(24, 64), torch.randn(64, 24), torch.empty(24, 24)
traffic_of_elements = {}
with track_traffic() as traffic_of_elements["each factor once"]:
    torch.matmul(a, b)
with track_traffic() as traffic_of_elements["a program for each element"]:
    element_kernel[(24, 24)](a, b, c, 24, 64)
ideal_bytes = a.nbytes + b.nbytes + c.nbytes
moved = traffic_of_elements["a program for each element"].total_bytes
guesses.settle("a program for each element", moved / ideal_bytes)

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_elements, ideal_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 20 times. A is read once for each of the 24 columns of the result, B once for each of its 24 rows. Only the result
# is written once.
#
# </details>
#
# The factor grows with the matrix: at 4096 it is 4096 for the loads. An algorithm that reuses what it has loaded feeds
# the arithmetic units the same numbers and moves a small fraction of the bytes.

# %% [markdown]
# ## Compute one tile of the result in each program
#
# An element of $C = AB$ needs a row of $A$ and a column of $B$. A tile of $T \times T$ elements needs $T$ rows and
# $T$ columns, and uses each number that it has loaded $T$ times. So for $A$ of $M \times K$ and $B$ of $K \times N$
# numbers of $s$ bytes, each row of tiles reads all of $B$ and each column of tiles all of $A$:
#
# $$\text{bytes} = s \left( M K \left\lceil \frac{N}{T} \right\rceil + K N \left\lceil \frac{M}{T} \right\rceil + M N \right)$$
#
# A row of $A$ is too long for a program's registers, so the program walks along $K$ in steps: load a tile of $A$ and
# a tile of $B$, multiply them, add the product to the sum, go on. Only the sum stays.

# %% tags=["figure"]
labkit.figures.tile_walk()

# %% [markdown]
# `tl.dot(a, b, acc)` multiplies two tiles on the **tensor cores** and adds `acc`. They take float16 factors exactly and
# sum in float32. Of float32 factors they read only the first 10 of 23 bits of the mantissa (tf32, lab 02), and
# `tl.dot` does this **unless told otherwise**. `input_precision="ieee"` asks for all bits, which the tensor cores of an
# A100 cannot give: such products run on the ordinary units.

# %% [markdown]
# **Predict:** two 4096 × 4096 matrices in float16. What is the smallest of these tiles for which the bytes of the formula,
# at 2,039 GB/s, take less time than the 0.44 ms of arithmetic?

# %% nbgrader={"grade": false, "grade_id": "13-predict-tile", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take(
    "smallest tile that is fast enough", None, among=("T = 1", "T = 64", "T = 128", "none")
)

# %% [markdown]
# [[exercise 13-matmul]]
#
# Write `matmul(a, b, precision, tile)` for `a` (M, K) and `b` (K, N), both float32 or both float16, with any strides.
# The result is contiguous and has their dtype. One launch, one program for each tile of `tile` × `tile` elements (a
# power of two, at least 16). No size has to be a multiple of anything. Sum in float32 and round once, at the store.
# Pass `precision` on to `tl.dot`, as its `input_precision`: it is `"ieee"` or `"tf32"`.
#
# The check counts bytes: at most 1.1 × the formula or its value for sizes rounded up to whole tiles, whichever is
# larger. It counts lanes out of bounds, and compiles the kernel for an A100 and an H100: it has to use their tensor
# cores, except for float32 with `"ieee"`, and to spill at most 32 bytes per thread. A kernel that passes is compiled
# again for 4096 × 4096 × 4096, where its tiles have to fit into registers and **shared memory**: on an A100, 164 KiB
# beside the registers of each multiprocessor, where the tiles of `a` and `b` wait for the tensor cores. So a step along
# $K$ must have a constant length such as 32 (at least 16), not $K$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Offsets of a tile are a column of row numbers plus a row of column numbers: `rows[:, None] * stride_0 + cols[None,
# :] * stride_1`. Each factor has two strides of its own; those of a contiguous result are `n_cols` and 1.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Three vectors are enough: `offs_m` and `offs_n` say which tile of C this is, and `k` which step of the inner dimension.
# Every load is masked in both of its dimensions, and what lies outside is 0, so that it does not change the sum. The
# last step along K is often only partly there: it needs its mask, too.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Start with `acc = tl.zeros((TILE, TILE), tl.float32)`. In `for start in range(0, n_inner, STEP):` let `k = start +
# tl.arange(0, STEP)`, load a with `mask=(offs_m[:, None] < n_rows) & (k[None, :] < n_inner), other=0.0`, b likewise,
# and `acc = tl.dot(a, b, acc, input_precision=PRECISION)` with `PRECISION: tl.constexpr`. After the loop store
# `acc.to(c_ptr.dtype.element_ty)`. The grid is `(triton.cdiv(n_rows, tile), triton.cdiv(n_cols, tile))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    n_rows,
    n_cols,
    n_inner,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    TILE: tl.constexpr,
    STEP: tl.constexpr,
    PRECISION: tl.constexpr,
):
    ### BEGIN SOLUTION
    offs_m = tl.program_id(0) * TILE + tl.arange(0, TILE)
    offs_n = tl.program_id(1) * TILE + tl.arange(0, TILE)
    acc = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, n_inner, STEP):
        k = start + tl.arange(0, STEP)
        a_mask = (offs_m[:, None] < n_rows) & (k[None, :] < n_inner)
        b_mask = (k[:, None] < n_inner) & (offs_n[None, :] < n_cols)
        a = tl.load(
            a_ptr + offs_m[:, None] * stride_am + k[None, :] * stride_ak, mask=a_mask, other=0.0
        )
        b = tl.load(
            b_ptr + k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0.0
        )
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    c_mask = (offs_m[:, None] < n_rows) & (offs_n[None, :] < n_cols)
    c_ptrs = c_ptr + offs_m[:, None] * n_cols + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=c_mask)
    ### END SOLUTION


def matmul(a: Tensor, b: Tensor, precision: str = "ieee", tile: int = 64) -> Tensor:
    """The product of a (M, K) and b (K, N), by one launch with a program for each tile of the result."""
    ### BEGIN SOLUTION
    (n_rows, n_inner), n_cols = a.shape, b.shape[1]
    c = torch.empty((n_rows, n_cols), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(n_rows, tile), triton.cdiv(n_cols, tile))
    matmul_kernel[grid](
        *(a, b, c, n_rows, n_cols, n_inner, *a.stride(), *b.stride()),
        TILE=tile,
        STEP=32,
        PRECISION=precision,
    )
    return c
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-matmul-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("13-matmul", matmul)

# %% [markdown]
# The next figure draws what program (1, 1) of your launch loads and stores, later steps darker, for $A$ of 40 × 70 and
# $B$ of 70 × 24 in tiles of 16. It also draws a kernel that does not pass: **if the check fails, look here**.

# %% tags=["figure"]
labkit.figures.program_steps(
    lambda: matmul(torch.randn(40, 70), torch.randn(70, 24), "ieee", 16), program=(1, 1)
)

# %%
a, b = torch.randn(256, 128).half(), torch.randn(128, 256).half()
calls = {tile: partial(matmul, a, b, "ieee", tile) for tile in (16, 32, 64, 128)}
traffic_of_tiles = compare_traffic(calls)
if traffic_of_tiles:
    off = (matmul(a, b, "ieee", 64).float() - a.float() @ b.float()).abs().max()
    print(f"largest difference from the product in float32: {off:.2g}")

n, fast_enough = 4096, "none"
for tile in (128, 64, 1):
    n_bytes = 2 * (2 * n * n * n // tile + n * n)
    print(f"T = {tile:3}: {n_bytes / 1e9:6.1f} GB by the formula, {1e3 * n_bytes / 2039e9:6.2f} ms")
    if n_bytes / 2039e9 < 2 * n**3 / 312e12:
        fast_enough = f"T = {tile}"
guesses.settle("smallest tile that is fast enough", fast_enough)

# %% tags=["figure"]
labkit.figures.tile_roofline(
    traffic_of_tiles, flops=2 * 256 * 256 * 128, peak_flops=312e12, bandwidth=2039e9
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# None. The formula says 275 GB for $T = 1$, 4.3 GB for 64 and 2.2 GB for 128, and even that takes 1.1 ms. Doubling the
# tile halves the bytes and doubles the FLOPs per byte, to about $T/2$ in float16.
#
# </details>
#
# The figure places your own launches under the roof of an A100, by the bytes that were counted. None of them reaches the
# bend at 153 FLOP/B, and still cuBLAS comes to 80 % of the roof. What is missing is the cache: the next section.
#
# The largest difference from the product in float32, 0.016, is half a unit in the last place of a float16 between 32
# and 64: the sums are rounded only once.
#
# Why not larger tiles? The next cell shows what the compiler makes of your kernel. It compiles for an A100 and for an
# H100, and prints the worse figure of the two.


# %%
def compiled_product(dtype: torch.dtype, precision: str, tile: int) -> dict[str, float]:
    x, figures = torch.randn(64, 64).to(dtype), {}
    with measure_compiled(figures):
        matmul(x, x, precision, tile)
    return figures


kinds = (
    (torch.float16, "ieee", 64),
    (torch.float16, "ieee", 128),
    (torch.float32, "tf32", 64),
    (torch.float32, "ieee", 64),
)
for dtype, precision, tile in kinds if traffic_of_tiles else ():
    made = compiled_product(dtype, precision, tile)
    print(
        f"{dtype!s:14} {precision}, tile {tile:3}: {made['registers']:3} registers a thread, "
        f"{made['spills']} bytes spilled, tensor cores: {made['matrix_instructions'] > 0}"
    )

# %% [markdown]
# For a tile of 128 × 128, the sums alone take 128 registers of each of 128 threads, and 255 is the most that a thread
# can have. Libraries let more warps share a tile of this size (`num_warps=8`). And for float32 with `"ieee"` there is
# no tensor-core instruction at all: exact float32 products run at 19.5 instead of 156 TFLOP/s on an A100. Choose
# `"ieee"` where you need the bits, and remember that tf32 is the default of `tl.dot`.

# %% tags=["varies"]
if has_gpu() and traffic_of_tiles:
    n = 4096
    x = torch.randn(n, n, device="cuda", dtype=torch.float16)
    for name, call in {
        "yours": lambda: matmul(x, x, "ieee", 64),
        "torch.matmul": lambda: x @ x,
    }.items():
        print(f"{name}: {2 * n**3 / bench(call).median_ms / 1e9:,.0f} TFLOP/s")
else:
    print("No GPU here, so nothing is timed: bytes and instructions are the measure.")

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Choose which tile comes next
#
# The formula counts as if each program read all that it needs from memory. On an A100, 108 programs or more run at the
# same time, and what one of them reads is in the cache of 40 MB when its neighbours ask for it a moment later. Call the
# rows of A that a tile needs a **strip** of A, and its columns of B a strip of B. What counts is how many *different*
# strips the running programs need. The result is the same in any order of the tiles, and a program knows only its
# number, so you may map numbers to tiles as you like.
#
# Programs start in the order of their numbers. Row by row, 16 programs of a result with 16 columns of tiles need 1
# strip of A and 16 of B. As a square of 4 × 4 tiles they need 4 + 4.
#
# So let `group` rows of tiles belong together, and go through a group column after column. With `group = 2`, the
# programs 0, 1, 2, 3 take the tiles (0, 0), (1, 0), (0, 1), (1, 1), and so on to the end of both rows. Then come the next
# two rows.

# %% [markdown]
# **Predict:** a product of 8192 × 8192 matrices in tiles of 128 on an A100. By what factor does it read more bytes from
# memory row by row than in groups of 8 rows of tiles?

# %% nbgrader={"grade": false, "grade_id": "13-predict-order", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("row by row / in groups", None, unit="times")

# %% [markdown]
# [[exercise 13-grouped-order]]
#
# Write `tile_of(pid, n_tiles_m, n_tiles_n, group)`, the tile of program `pid` as a pair `(row of tiles, column of
# tiles)` of whole numbers, for `pid` from 0 to `n_tiles_m * n_tiles_n - 1`. Where `group` does not divide `n_tiles_m`,
# the last group has fewer rows. Every program computes this for itself when it starts, so use arithmetic that Triton
# knows (`//`, `%`, `min`, but not `divmod`) and no list of tiles.
#
# The check goes through all programs and wants each tile exactly once. Then it runs their reads through a model of a
# cache that evicts what has not been read for longest, for chips of several sizes. Any order is right that reads at
# most 10 % more from memory than groups of rows do.
#
# <details><summary>Hint 1: a nudge</summary>
#
# How many programs does a whole group have? Then `pid // that` is the number of the group, and `pid % that` counts
# within it.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Within a group of `height` rows, the count goes down a column first: its remainder by `height` is the row within the
# group, its quotient the column. Only the last group's `height` is less than `group`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `first = pid // (group * n_tiles_n) * group`, `height = min(group, n_tiles_m - first)`, `rest = pid % (group *
# n_tiles_n)`. The tile is `(first + rest % height, rest // height)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-grouped-order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tile_of(pid: int, n_tiles_m: int, n_tiles_n: int, group: int) -> tuple[int, int]:
    """The tile (row, column) of program `pid`, where `group` rows of tiles are gone through column after column."""
    ### BEGIN SOLUTION
    first = pid // (group * n_tiles_n) * group
    height = min(group, n_tiles_m - first)
    rest = pid % (group * n_tiles_n)
    return first + rest % height, rest // height
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-grouped-order-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("13-grouped-order", tile_of)

# %% tags=["figure"]
labkit.figures.tile_order(tile_of, 14, 16, group=4, at_once=16)

# %% [markdown]
# The colours show what 16 programs compute at the same moment, and the strips of A and B that they need for it. Both
# orders compute 16 tiles. Look at the lengths of the strips: of all rectangles with the same area, a square has the
# shortest edges.
#
# **Question:** now one program runs at a time, and the cache holds $g + 2$ strips: the $g$ strips of A of a group, and
# 2 others. How many strips of B are read for $R$ rows and $S > 2$ columns of tiles, row by row and in groups of $g$
# rows?
#
# <details><summary>Answer</summary>
#
# Row by row, all $S$ strips for each of the $R$ rows: $R S$. In groups, all $S$ strips once for each group: $\lceil R/g
# \rceil S$.
#
# </details>
#
# Now the same in bytes. 8192 × 8192 matrices in float16 have 64 × 64 tiles of 128 × 128, and an A100 runs 108 programs at
# once. The model takes steps of 1024 along the inner dimension to be quick: 8 steps, blocks of 256 KiB.

# %%
a100_product = {"n_steps": 8, "at_once": 108, "block_bytes": 128 * 1024 * 2}

# %% tags=["figure"]
labkit.figures.cache_curve(tile_of, 64, 64, group=8, cache_bytes=40e6, **a100_product)

# %%
orders = {"row by row": lambda pid, m, n, group: (pid // n, pid % n)}
if labkit.written(tile_of):
    orders["your order"] = tile_of
read_bytes = {"no cache (the formula)": 2 * 8192**3 * 2 // 128}
for name, order in orders.items():
    tiles = [order(pid, 64, 64, 8) for pid in range(64 * 64)]
    # 40 MB of cache are 152 blocks.
    read_bytes[name] = product_read_bytes(tiles, n_kept=152, **a100_product)
for name, n_bytes in read_bytes.items():
    print(f"{name}: {in_bytes(n_bytes)} from memory, {1e3 * n_bytes / 2039e9:.2f} ms at 2039 GB/s")
print(f"arithmetic: {1e3 * 2 * 8192**3 / 312e12:.2f} ms at 312 TFLOP/s")
in_groups = read_bytes.get("your order")
guesses.settle("row by row / in groups", in_groups and read_bytes["row by row"] / in_groups)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Nearly three times. Row by row, 108 running programs cover 2 rows and all 64 columns of tiles, 66 strips; in groups of 8
# they cover 8 rows and 14 columns, 22 strips.
#
# </details>
#
# Once the cache holds the blocks of one step, more of it changes little until it holds all of B. What matters is how
# many different strips the running programs ask for. That answers the question at the top: tiles of width $T$ divide
# the bytes by $T$, and the cache serves the neighbours. Here even row by row takes less time than the arithmetic. The
# order still matters, for four reasons: memory and arithmetic overlap only in part, the bytes cost energy, the programs
# of a real chip are not in step, and a chip with more FLOP/s per byte (an H100 has nearly twice that of an A100) or a
# smaller cache reaches the limit earlier.
#
# In a kernel the same lines stand at the top, with `tl.program_id(0)` for `pid`, and the grid has a single axis.
# Triton takes `//`, `%` and `min` as they are, so your function works in a kernel, unchanged.


# %%
tile_of_program = triton.jit(tile_of)


@triton.jit
def order_kernel(out_ptr, n_tiles_m, n_tiles_n, group):
    pid = tl.program_id(0)
    row, col = tile_of_program(pid, n_tiles_m, n_tiles_n, group)
    tl.store(out_ptr + row * n_tiles_n + col, pid)


if "your order" in orders:
    order = torch.full((5, 6), -1)
    try:
        order_kernel[(30,)](order, 5, 6, 2)
        print(order)
    except triton.runtime.errors.InterpreterError as error:
        print(error)

# %% [markdown]
# Each number is the program that takes this tile. If you have a GPU, put the body of your `tile_of` at the top of a
# copy of your `matmul` kernel, launch it with one axis, and time both for 8192 × 8192. Expect a smaller gain than in
# the model.

# %% [markdown]
# ## Take a softmax without ever holding its row
#
# The softmax of lab 12 has its whole row in registers. For longer rows it would read them three times: for the
# maximum, for the sum, for the result. And attention, at the end of this lab, cannot wait for a row of scores to be
# complete, because it wants to avoid storing that row. Can the maximum and the sum come out of one pass?
#
# The sum depends on the maximum, which is known only at the end. But changing the maximum only rescales the sum:
#
# $$\sum_j e^{x_j - m'} = e^{m - m'} \sum_j e^{x_j - m}$$
#
# So keep a maximum $m$ and a sum $\ell = \sum_j e^{x_j - m}$ of what you have seen so far. When a block brings a larger
# maximum, multiply the old sum by $e^{m_\text{old} - m_\text{new}}$, then add the block's own exponentials, which are
# taken with the new maximum. Two parts of a row that different programs have seen are merged in the same way.
#
# Before the first block, $m = -\infty$ and $\ell = 0$. That is also the state after a block that holds only $-\infty$, as
# in a masked part of the scores, and there you have to be careful: $-\infty - (-\infty)$ is NaN.

# %% [markdown]
# **Question:** the blocks of a row are [1, 2], [5, 0] and [3, 3]. What are $m$ and $\ell$ after each? Work it out
# before you write code; a cell after the exercise prints what your function says.
#
# <details><summary>Answer</summary>
#
# $m = 2$, $\ell = e^{-1} + 1 = 1.368$. Then $m = 5$, $\ell = 1.368\,e^{-3} + 1 + e^{-5} = 1.075$. Then $m = 5$,
# $\ell = 1.075 + 2e^{-2} = 1.346$.
#
# </details>

# %% [markdown]
# [[exercise 13-online-softmax]]
#
# Write `softmax_stats(blocks)`. `blocks` is an iterator over tensors (n_rows, some columns), all float32 or all
# float16, which you can go through only once; there is at least one. It returns the pair `(top, total)` of float32
# tensors (n_rows,): the maximum of each row, and its sum of exponentials relative to that. Do not collect blocks and do
# not write into them: there is memory for only a few.
#
# Then write `merge_stats(first, second)`, which takes two such pairs, of two parts of the same rows, and returns the
# pair for both parts together. In both functions, a row that consists of $-\infty$ alone has `top` $-\infty$ and `total`
# 0.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A block by itself has statistics, too: its maximum and its sum. What would be left to do if you had `merge_stats`?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Both sums of a merge move to the larger maximum, each by its own factor `exp(own - larger)`, at most 1. Where the
# larger maximum is $-\infty$, subtract 0 in its place: `exp(-inf - 0)` is 0, as it should be.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In `merge_stats`: `top = torch.maximum(top_a, top_b)`, `base = torch.where(top == -torch.inf, 0.0, top)`, `total =
# total_a * torch.exp(top_a - base) + total_b * torch.exp(top_b - base)`. In `softmax_stats`, for each block in
# float32: `top = block.amax(1)`, `base` as above, `total = torch.exp(block - base[:, None]).sum(1)`, and merge with
# what was there.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-online-softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_stats(
    first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """(top, total) of rows, from the pairs of two parts of these rows; all tensors (n_rows,), float32."""
    ### BEGIN SOLUTION
    (top_a, total_a), (top_b, total_b) = first, second
    top = torch.maximum(top_a, top_b)
    base = torch.where(top == -torch.inf, 0.0, top)
    return top, total_a * torch.exp(top_a - base) + total_b * torch.exp(top_b - base)
    ### END SOLUTION


def softmax_stats(blocks: Iterator[Tensor]) -> tuple[Tensor, Tensor]:
    """(top, total), (n_rows,) each and in float32, of rows that come in blocks (n_rows, some columns), in one pass."""
    ### BEGIN SOLUTION
    stats = None
    for block in blocks:
        block = block.float()
        top = block.amax(1)
        base = torch.where(top == -torch.inf, 0.0, top)
        of_block = top, torch.exp(block - base[:, None]).sum(1)
        stats = of_block if stats is None else merge_stats(stats, of_block)
    return stats
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-online-softmax-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("13-online-softmax", softmax_stats, merge_stats)

# %%
blocks = [torch.tensor([pair]) for pair in ([1.0, 2.0], [5.0, 0.0], [3.0, 3.0])]
has_stats = labkit.written(softmax_stats, merge_stats)
for n in range(1, 4) if has_stats else ():
    top, total = softmax_stats(iter(blocks[:n]))
    print(f"after block {n}: m = {top.item():.0f}, ℓ = {total.item():.3f}")

# %% tags=["figure"]
row = torch.randn(400) + torch.cat([torch.linspace(-4, 4, 200), torch.linspace(4, 0, 200)])
labkit.figures.softmax_on_its_way(softmax_stats, row, 25)

# %% [markdown]
# As long as the maximum grows, the sum is scaled down again and again; once the maximum stays, the sum only grows. The
# crosses add up each block's own sum and ignore that these were taken with different maxima.
#
# PyTorch has both numbers in one: `torch.logsumexp` is $m + \ln \ell$. Flash attention stores just this number
# for each row, for the backward pass. And `torch.logaddexp` merges two of them, as `merge_stats` does. If several
# GPUs hold parts of one long sequence, this is how their attentions are joined.

# %%
x = 3 * torch.randn(4, 1000)
if has_stats:
    top, total = softmax_stats(iter(x.split(128, dim=1)))
    off = (top + total.log() - torch.logsumexp(x, 1)).abs().max()
    print(f"largest difference from torch.logsumexp: {off:.1e}")

long_row_traffic = {}
with track_traffic() as long_row_traffic["three passes"]:
    # One read each for the maximum and the sum, and one for the result with its write.
    _ = x.amax(1), x.sum(1), x.exp()
with track_traffic() as long_row_traffic["two passes"]:
    # One read for both statistics, and one for the result with its write.
    _ = x.logsumexp(1), x.exp()
for name, one in long_row_traffic.items():
    print(f"{name}: {in_bytes(one.total_bytes)}, {one.total_bytes / x.nbytes:.0f} matrices")

# %% [markdown]
# For a row that does not fit into registers, statistics in one pass save one of three reads. Attention saves more: it
# multiplies the exponentials by the values while it has them, rescales that sum like $\ell$, and never writes the
# row at all.

# %% [markdown]
# ## Write the loss's gradient over its logits
#
# Llama 3 has a vocabulary of 128,256 tokens. For a batch of 8192 tokens the logits are 2.1 GB in bfloat16, and 4.2
# GB in float32, in which the loss is computed: more than the activations of several layers, for one number.

# %% [markdown]
# **Predict:** how high is the peak of memory of `F.cross_entropy` with its backward pass, as a multiple of the logits?

# %% nbgrader={"grade": false, "grade_id": "13-predict-loss-peak", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("peak of F.cross_entropy", None, unit="times the logits")


# %%
def loss_peak(call) -> float:
    """Peak memory of a loss and its gradient, in times the logits."""
    logits, targets = torch.randn(16, 8192, requires_grad=True), torch.arange(16)
    with track_memory(batch=[logits, targets]) as profile:
        torch.autograd.grad(call(logits, targets), logits)
    return profile.peak_bytes / logits.nbytes


peak = loss_peak(F.cross_entropy)
print(f"peak of F.cross_entropy: {peak:.2f} times the logits")
guesses.settle("peak of F.cross_entropy", peak)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Four matrices are alive at once: the logits, their logarithmic softmax, which is kept for the backward pass, the
# gradient of that, and the gradient of the logits.
#
# </details>
#
# Lab 05 cut the tokens into chunks. A kernel can do better, because the loss is where the forward pass ends: the gradient
# of the logits $x$ of a token needs nothing that comes later.
#
# $$\mathcal{L} = \log \sum_j e^{x_j} - x_t, \qquad \frac{\partial \mathcal{L}}{\partial x_j} = p_j - [j = t], \qquad
# p_j = \frac{e^{x_j - m}}{\sum_i e^{x_i - m}}$$
#
# Here $t$ is the target, $m$ is the row's maximum, and $[j = t]$ is 1 where $j = t$, else 0. So compute the gradient at
# once, in the forward pass, and write it over the logits, which are not needed any more. `backward` only has to
# multiply by the incoming gradient, and that is 1 wherever `loss.backward()` is called on the loss itself.
#
# **Question:** the forward pass has to know the maximum and the sum of a row before it can write the first gradient,
# and a row does not fit into registers. How often does it read each logit, and how often does it write it? The
# operations of PyTorch move eight matrices of this size by our meter, and about six on a GPU, where `nll_loss` and its
# backward pass read only one number per row.
#
# <details><summary>Answer</summary>
#
# It reads each logit twice, once for the statistics and once for the gradient, and writes it once: three matrices.
#
# </details>

# %% [markdown]
# [[exercise 13-cross-entropy]]
#
# Write `cross_entropy(logits, targets, ignore_index)`: the mean loss as one float32 number, for contiguous `logits`
# of shape (n_tokens, vocab) in float32 or bfloat16 and `targets` of int64. Compute in float32. Tokens whose target
# is `ignore_index` do not count in the mean, and their gradient is 0; at least one token counts. Some logits are
# $-\infty$, even whole blocks of a row, but never the target's.
#
# After the forward pass the gradient of the logits, divided by the number of tokens that count, lies in their
# memory, and there is no other matrix of this size. Forward reads the logits at most twice and writes them once.
# Backward reads and writes them once; if the incoming gradient is 1, not at all. At most three launches in all.
#
# The kernels have to find out how many tokens count, and whether the incoming gradient is 1. Outside of a kernel,
# `.item()` or an `if` on a tensor's value would stop the host until the GPU is done (lab 09). Inside, an `if` on a
# single number is allowed, and a program then skips the loads and stores below it:
#
# ```python
# number = tl.load(number_ptr)
# if number != 0.0:
#     tl.store(out_ptr + offs, number * tl.load(x_ptr + offs))
# ```
#
# PyTorch may add up what kernels stored. The check also compiles your kernels for 8192 tokens and a vocabulary of
# 128,256. There a row as a single block is larger than all registers of a multiprocessor, so blocks need a fixed
# length.
#
# <details><summary>Hint 1: a nudge</summary>
#
# One program for each token, with two loops over the blocks of its row. The first one is the online softmax from
# above, without a result; the second one computes $p_j$ from the final maximum and sum. When must the target's logit
# be read?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A first launch of a single program counts the targets other than `ignore_index` and stores the count as one
# float32. The kernel over rows loads it, and stores a loss for each row, which `losses.sum()` adds up. A row that
# does not count is a loop of stores of 0. The last kernel loads the incoming gradient as a number and has its loads
# and stores under `if factor != 1.0:`. While a row's maximum is still $-\infty$, subtract 0.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# First loop: `new_top = tl.maximum(top, tl.max(x, axis=0))`, `safe = tl.where(new_top == -float("inf"), 0.0,
# new_top)`, `total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe), axis=0)`. Then the loss, `(top +
# tl.log(total) - tl.load(logits_ptr + target)) / count`, and the second loop, which stores `(tl.exp(x - top) / total
# - tl.where(cols == target, 1.0, 0.0)) / count`. `ctx.gradient = logits.detach()` keeps the memory without a copy.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-cross-entropy", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def count_targets_kernel(targets_ptr, count_ptr, n_tokens, ignore_index, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    found = tl.zeros((BLOCK_SIZE,), tl.float32)
    for start in range(0, n_tokens, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        targets = tl.load(targets_ptr + offs, mask=offs < n_tokens, other=ignore_index)
        found += tl.where(targets != ignore_index, 1.0, 0.0)
    tl.store(count_ptr, tl.sum(found, axis=0))
    ### END SOLUTION


@triton.jit
def cross_entropy_kernel(
    logits_ptr, targets_ptr, count_ptr, loss_ptr, vocab, ignore_index, BLOCK_SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    # Rows times columns may be more than 2**31.
    logits_ptr += row.to(tl.int64) * vocab
    target = tl.load(targets_ptr + row)
    if target == ignore_index:
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + tl.arange(0, BLOCK_SIZE)
            tl.store(logits_ptr + cols, 0.0, mask=cols < vocab)
        tl.store(loss_ptr + row, 0.0)
    else:
        top, total = -float("inf"), 0.0
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + tl.arange(0, BLOCK_SIZE)
            x = tl.load(logits_ptr + cols, mask=cols < vocab, other=-float("inf")).to(tl.float32)
            new_top = tl.maximum(top, tl.max(x, axis=0))
            safe = tl.where(new_top == -float("inf"), 0.0, new_top)
            total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe), axis=0)
            top = new_top
        count = tl.load(count_ptr)
        at_target = tl.load(logits_ptr + target).to(tl.float32)
        tl.store(loss_ptr + row, (top + tl.log(total) - at_target) / count)
        for start in range(0, vocab, BLOCK_SIZE):
            cols = start + tl.arange(0, BLOCK_SIZE)
            x = tl.load(logits_ptr + cols, mask=cols < vocab).to(tl.float32)
            gradient = tl.exp(x - top) / total - tl.where(cols == target, 1.0, 0.0)
            tl.store(logits_ptr + cols, gradient / count, mask=cols < vocab)
    ### END SOLUTION


@triton.jit
def scale_in_place_kernel(x_ptr, factor_ptr, n, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    factor = tl.load(factor_ptr)
    if factor != 1.0:
        offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
        tl.store(x_ptr + offs, x * factor, mask=offs < n)
    ### END SOLUTION


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, ignore_index: int) -> Tensor:
        """The mean loss; on the way, the logits become their own gradient."""
        ### BEGIN SOLUTION
        n_tokens, vocab = logits.shape
        count = logits.new_empty(1, dtype=torch.float32)
        losses = logits.new_empty(n_tokens, dtype=torch.float32)
        count_targets_kernel[(1,)](targets, count, n_tokens, ignore_index, BLOCK_SIZE=1024)
        cross_entropy_kernel[(n_tokens,)](
            logits, targets, count, losses, vocab, ignore_index, BLOCK_SIZE=2048
        )
        ctx.gradient = logits.detach()
        return losses.sum()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dloss: Tensor) -> tuple:
        """What lies in the logits' memory, times dloss, and None for the rest."""
        ### BEGIN SOLUTION
        gradient = ctx.gradient
        n, block_size = gradient.numel(), 2048
        scale_in_place_kernel[(triton.cdiv(n, block_size),)](
            gradient, dloss, n, BLOCK_SIZE=block_size
        )
        return gradient, None, None
        ### END SOLUTION


def cross_entropy(logits: Tensor, targets: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean cross-entropy of logits (n_tokens, vocab) in float32; their gradient takes their place."""
    ### BEGIN SOLUTION
    return CrossEntropy.apply(logits, targets, ignore_index)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-cross-entropy-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("13-cross-entropy", cross_entropy)


# %%
def loss_and_gradient(call, logits: Tensor, targets: Tensor) -> Tensor:
    return torch.autograd.grad(call(logits, targets), logits)[0]


calls = {"F.cross_entropy": F.cross_entropy, "yours": cross_entropy}
# Each has logits of its own, made before the bytes are counted.
traffic_of_loss = compare_traffic(
    {
        name: partial(
            loss_and_gradient, call, torch.randn(16, 8192, requires_grad=True), torch.arange(16)
        )
        for name, call in calls.items()
    }
)
if "yours" in traffic_of_loss:
    print(f"peak of your cross_entropy: {loss_peak(cross_entropy):.2f} times the logits")

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_loss, 3 * 4 * 16 * 8192)

# %% [markdown]
# Two reads and one write are three matrices, the ideal of the figure, and that is all: no probability is ever written.
# (For PyTorch the figure counts eight matrices, of which a GPU moves about six.) The peak of memory is a quarter of
# PyTorch's.
#
# The price is that the logits are gone. Take the accuracy or a sample from them *before* the loss. A second backward
# pass over the same graph would scale a gradient that is scaled already. And the operation before the loss must not
# need its own result: a linear layer needs its input and weight, but an activation such as `torch.tanh` keeps its
# output. It would then compute with a gradient in place of its output, without any error, because autograd does not see
# what kernels write.

# %% [markdown]
# **In practice** this kernel exists already (question 2 of lab 12's list). Liger Kernel's `LigerCrossEntropyLoss`
# writes the gradient over the logits as you do. Its `LigerFusedLinearCrossEntropyLoss` also takes in the output layer,
# chunk by chunk, so that not even the logits exist as a whole at any time; newer versions of PyTorch have
# `F.linear_cross_entropy` for the same purpose. `torch.compile` fuses the operations of the loss as well, but it does
# not invent the gradient in place.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Compute attention without storing its scores
#
# With 32 heads of size 128 and 8192 tokens, the scores of one layer are $32 \cdot 8192^2$ numbers: 4.3 GB in float16.
# The result that they are computed for takes 67 MB, a sixty-fourth of that. Most of the memory and of the bytes of
# eager attention go into a matrix that one kernel writes and the next ones read. **Can you get the result without it?**

# %% [markdown]
# **Predict:** causal attention of one head of size 64 over 512 tokens in float32. How many times the bytes of q, k, v and
# the result does it move, operation by operation?

# %% nbgrader={"grade": false, "grade_id": "13-predict-eager", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("eager attention, 512 tokens", None, unit="times the ideal")


# %%
def eager_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention, operation by operation."""
    later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).triu(1)
    scores = q @ k.transpose(1, 2) * q.shape[2] ** -0.5
    return scores.masked_fill(later, -float("inf")).softmax(-1) @ v


q, k, v = (torch.randn(1, 512, 64) for _ in range(3))
with track_traffic() as eager_512:
    eager_attention(q, k, v)
print(eager_512)
ideal_bytes = 4 * q.nbytes
print(f"{eager_512.total_bytes / ideal_bytes:.0f} times the bytes of q, k, v and the result")
guesses.settle("eager attention, 512 tokens", eager_512.total_bytes / ideal_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 19 times. One matrix of scores is twice as large as q, k, v and the result together, and it is read or written eight
# times: once by the product, twice each by the scale, the mask and the softmax, and once by the second product. That
# makes 16 of the 19. One is q, k, v and the result themselves, and two are the mask, which is made and read on top.
#
# </details>
#
# The one-pass softmax avoids it. A program takes a block of $B_M$ queries and goes over the keys in blocks of $B_N$. Of
# each tile of scores $S = Q K^\top / \sqrt d$ it needs a maximum, a sum, and the product with the values, and it can
# carry all three on from tile to tile. For every query it holds a maximum $m$, a sum $\ell$ and a row of the output
# $o$, and for each tile
#
# $$m' = \max(m, \max_j S_j), \quad P_j = e^{S_j - m'}, \quad
# \ell \leftarrow \ell\, e^{m - m'} + \sum_j P_j, \quad o \leftarrow o\, e^{m - m'} + \sum_j P_j V_j .$$
#
# At the end the result is $o / \ell$. The rescaling by $e^{m - m'}$ is the one of the online softmax: numbers that were
# added with the old maximum are too large by a factor of $e^{m' - m}$. A tile of 64 × 64 scores in float32 is 16 KiB
# and never leaves the multiprocessor.

# %% tags=["figure"]
labkit.figures.query_walk()

# %% [markdown]
# One program of a causal attention, for the block of queries Q3. It has done the tile of K0 and works on that of K1. Its
# loop ends at the tile on the diagonal, and only there are some of the keys masked.
#
# **Question:** a query sees only keys up to its own. For 8 blocks of queries and 8 of keys, how many of the 64 tiles
# have to be computed? And how does the number of loads of a key change if blocks of queries become twice as high?
#
# <details><summary>Answer</summary>
#
# 1 + 2 + … + 8 = 36 tiles. Each key is loaded once by each block of queries that sees it, so half as often.
#
# </details>

# %% [markdown]
# [[exercise 13-flash-attention]]
#
# Write `attention(q, k, v, block_m, block_n)`: causal attention for contiguous tensors of shape (n_heads, seq, d_head)
# in float32 or float16, with a head size of 16, 32 or 64 and any length. The result has q's shape and dtype. One
# launch, with a program for each block of `block_m` queries of each head, which goes over the keys in blocks of
# `block_n`. Both are powers of two, at least 16, and the check sees from your loads and blocks whether you use both.
#
# Queries are loaded once and the result is written once. Never write anything of seq × seq. A program does not load
# keys of blocks in which none of its queries sees anything. Float32 products are exact, `input_precision="ieee"`, and
# float16 ones run on the tensor cores; maximum, sum and output are held in float32. Scores are multiplied by
# $1 / \sqrt{d_\text{head}}$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Begin without causality and with a length that the blocks divide. The program's state is two vectors of `block_m`
# numbers and a block of (`block_m`, `d_head`), all of them changed in a loop over the keys.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `rows[:, None] * D_HEAD + dims[None, :]` are the offsets of a tile; the loads are masked by rows alone.
# After `tl.dot(q, tl.trans(k), input_precision="ieee")` comes the scale, then `tl.where(rows[:, None] >= cols[None,
# :], scores, -float("inf"))`. The loop ends at `tl.minimum((block + 1) * BLOCK_M, seq)`: past that, all is masked.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In the loop: `new_top = tl.maximum(top, tl.max(scores, axis=1))`, `weights = tl.exp(scores - new_top[:, None])`,
# `shrink = tl.exp(top - new_top)`, `total = total * shrink + tl.sum(weights, axis=1)`, `out = out * shrink[:, None] +
# tl.dot(weights.to(v.dtype), v, input_precision="ieee")` and `top = new_top`. After it: store `out / total[:, None]`.
# The grid is `(triton.cdiv(seq, block_m), n_heads)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-flash-attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    seq,
    scale,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    ### BEGIN SOLUTION
    block, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * seq * D_HEAD
    rows, dims = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D_HEAD)
    own = base + rows[:, None] * D_HEAD + dims[None, :]
    q = tl.load(q_ptr + own, mask=rows[:, None] < seq, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    out = tl.zeros((BLOCK_M, D_HEAD), tl.float32)
    for start in range(0, tl.minimum((block + 1) * BLOCK_M, seq), BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        keys = base + cols[:, None] * D_HEAD + dims[None, :]
        k = tl.load(k_ptr + keys, mask=cols[:, None] < seq, other=0.0)
        v = tl.load(v_ptr + keys, mask=cols[:, None] < seq, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        weights = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, axis=1)
        out = out * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + own, out / total[:, None], mask=rows[:, None] < seq)
    ### END SOLUTION


def attention(q: Tensor, k: Tensor, v: Tensor, block_m: int = 32, block_n: int = 32) -> Tensor:
    """Causal attention of q, k, v (n_heads, seq, d_head) in tiles of block_m queries and block_n keys."""
    ### BEGIN SOLUTION
    n_heads, seq, d_head = q.shape
    out = torch.empty_like(q)
    attention_kernel[(triton.cdiv(seq, block_m), n_heads)](
        *(q, k, v, out, seq, d_head**-0.5), D_HEAD=d_head, BLOCK_M=block_m, BLOCK_N=block_n
    )
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-flash-attention-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("13-flash-attention", attention)

# %% tags=["figure"]
labkit.figures.visited_tiles(lambda q, k, v: attention(q, k, v, 32, 16), 250, 32, 16)

# %% [markdown]
# The tiles that your own launch computes, read off its loads. Blue ones hold a score that counts; a red one would be
# unnecessary work. Along the dashed diagonal tiles are cut in two, and only there is the mask needed. That is why fast
# kernels have one loop without a mask and a second one for the diagonal.
#
# And this is what one program of yours touches, for 75 queries in blocks of 32 and keys in blocks of 16:

# %% tags=["figure"]
labkit.figures.program_steps(
    lambda: attention(*(torch.randn(1, 75, 16) for _ in range(3)), 32, 16), program=(1, 0)
)

# %%
lengths = (64, 128, 256, 512)
names = ("eager", "yours, tiles of 64 × 64", "each tensor once")
moved_by_attention = {name: [] for name in names}
for seq in lengths:
    qkv = [torch.randn(1, seq, 64) for _ in range(3)]
    calls = (eager_attention, partial(attention, block_m=64, block_n=64))
    found = compare_traffic({name: partial(call, *qkv) for name, call in zip(names, calls)})
    for name, moved in found.items():
        moved_by_attention[name].append(moved.total_bytes)
    moved_by_attention[names[2]].append(4 * qkv[0].nbytes)
has_attention = bool(moved_by_attention[names[1]])
if not has_attention:
    del moved_by_attention[names[1]]

# %% tags=["figure"]
labkit.figures.bytes_against_length(lengths, moved_by_attention)

# %% [markdown]
# The upper two lines bend up to the slope of $s^2$, but yours lies far below eager attention's. Not one of the $s^2$
# scores moves; only the keys and values are loaded again for each block of queries, $s / B_M$ times and half of that
# with causality. So a higher block saves bytes, until the output's $B_M \cdot d$ numbers no longer fit into the
# registers. And what several programs read comes from the cache after the first time.
#
# The difference is largest in memory.

# %%
q, k, v = (torch.randn(1, 512, 64) for _ in range(3))
calls = {"eager": eager_attention}
if has_attention:
    calls["yours"] = lambda q, k, v: attention(q, k, v, 64, 64)
for name, call in calls.items():
    with track_memory(batch=[q, k, v]) as profile:
        call(q, k, v)
    print(f"{name}: peak {in_bytes(profile.peak_bytes)}, of it inputs {in_bytes(3 * q.nbytes)}")

# %% [markdown]
# Beside its inputs your function holds only the result. The scores of eager attention grow with the square of the
# length: for 32 heads of 8192 tokens in float16 they are the 4.3 GB from above, where yours has a tile of 16 KiB for
# each program that runs. Now the compiler's view: does the product run on the tensor cores?

# %%
# The check's shapes, whose kernels are compiled already.
cases = ((torch.zeros(1, 75, 32), (32, 16)), (torch.zeros(1, 93, 64).half(), (16, 32)))
for x, tile in cases if has_attention else ():
    made = {}
    with measure_compiled(made):
        attention(x, x, x, *tile)
    print(
        f"{x.dtype!s:14} {made['matrix_instructions']:3} tensor-core instructions, "
        f"{made['registers']:3} registers a thread, {made['spills']} bytes spilled"
    )

# %% [markdown]
# An A100 has no tensor-core instruction for exact float32, so these products run on the ordinary units, sixteen times
# slower than float16 (lab 01). This is one reason why attention is trained in float16 or bfloat16; the memory of its
# activations is another.

# %% [markdown]
# ## Recompute the scores in the backward pass
#
# The gradients need the probabilities $P$ again, and nobody kept them. Eager attention keeps them for this purpose: a
# number for each pair of a query and a key, the 4.3 GB from above. FlashAttention keeps q, k, v, the result, and one
# float32 for each query: the **log-sum-exp** $L_i = m_i + \ln \ell_i$ of its scores, 1 MB for 32 heads of 8192 tokens.
# (In your forward kernel it would be one line more: store `top + tl.log(total)`.)
#
# That is enough, because $L$ holds the whole row. A program that has any block of queries and any block of keys gets
# their probabilities with one product and no running maximum:
#
# $$S = \frac{Q K^\top}{\sqrt d}, \qquad P = e^{S - L}$$
#
# It even takes less time than reading them. A tile of 64 × 64 probabilities in float16 is 8 KiB, which the forward pass
# would write and the backward pass read: 8 ns at 2,039 GB/s. With heads of size 128, the product takes 1 MFLOP: 3.4
# ns at 312 TFLOP/s. This is checkpointing (lab 05) at its best.
#
# Let $dO$ be the incoming gradient. The result is $O = P V$, and both factors get their gradients as in any product. The
# gradient of a softmax then takes the sum of its row:
#
# $$dV = P^\top dO, \qquad dP = dO\, V^\top, \qquad dS_{ij} = P_{ij} \Big( dP_{ij} - \sum_k P_{ik}\, dP_{ik} \Big)$$
#
# That sum goes over all keys of a query, and no tile has them all. But you can compute it from the result. Substitute
# $dP$:
#
# $$D_i = \sum_k P_{ik}\, dP_{ik} = \sum_k P_{ik} \sum_c dO_{ic} V_{kc} = \sum_c dO_{ic} \sum_k P_{ik} V_{kc}
# = \sum_c dO_{ic}\, O_{ic}$$
#
# So the **row sum** $D$ is one number for each query, and it needs only that query's rows of $dO$ and $O$. And since
# $S$ is a product times $1 / \sqrt d$,
#
# $$dS = P \odot (dP - D), \qquad dQ = \frac{dS\, K}{\sqrt d}, \qquad dK = \frac{dS^\top Q}{\sqrt d} .$$
#
# These are five products where the forward pass has two, and one of the five only recomputes $S$: a quarter more
# operations than with $P$ at hand.
#
# Now, which program writes what? A key's gradients $dK$ and $dV$ are sums over queries, and a query's gradient $dQ$ is a
# sum over keys.

# %% tags=["figure"]
labkit.figures.backward_walks()

# %% [markdown]
# On the left, a program that has a block of keys. It passes over the queries that see them, from the diagonal down, and
# holds $dK$ and $dV$ until it is done. Each of its tiles also contributes to some $dQ$, but so does every other tile in
# that row of tiles, and each of those belongs to another program. They would all add to the same rows in memory, so
# they would need atomics, and the rounding of $dQ$ would change from run to run with their order.
#
# On the right, a program that has a block of queries. It passes over the keys as in the forward pass and holds $dQ$.
# So with two kernels each block of a gradient has one program that writes it, once. The price is to compute $S$ and
# $dP$ twice.
#
# **Question:** how many products of tiles do the two kernels compute in all, and how many times the operations of the
# forward pass is that?
#
# <details><summary>Answer</summary>
#
# Three for $dQ$ ($S$, $dP$, $dS\,K$) and four for $dK$ and $dV$ ($S$, $dP$, $P^\top dO$, $dS^\top Q$): seven, 3.5 times
# the two of the forward pass. With atomics it would be five, 2.5 times. FlashAttention-2 has one kernel with atomics for
# $dQ$, and Triton's tutorial two loops without.
#
# </details>

# %% [markdown]
# [[exercise 13-flash-backward]]
#
# Write `attention_backward(q, k, v, out, lse, dout, causal, block_m, block_n)`, which returns `dq`, `dk`, `dv`. All
# tensors are contiguous and have the shape (n_heads, seq, d_head) and one dtype, float32 or float16, except for `lse`,
# the $L$ from above: (n_heads, seq), float32. The head size is 16, 32 or 64, and the length is any. If `causal` is
# False, every query sees every key. Programs have `block_m` queries or `block_n` keys and go over the others in blocks
# of `block_n` or `block_m`. At most three launches.
#
# All of it is computed in kernels, $D$ too: compute it once and store it, one float32 for each query. Never write
# anything of seq × seq. A program loads its own rows once, and of the other rows only the tiles that causality leaves
# it. Products, sums and dtypes are as in the forward pass: `input_precision="ieee"`, sums in float32, and `p` and `ds`
# are cast to the dtype of the other factor before `tl.dot`.
#
# The check accepts other layouts, such as a kernel of its own for $D$, or one kernel with `tl.atomic_add` into a float32
# `dq` of zeros. **A program must not add to what others add to without atomics**: the interpreter runs one program after
# the other, so the values come out right here, but the check sees the race.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write the kernel for `dq` first. It is the loop of your forward kernel with no maximum and no rescaling, since `lse`
# is known. It has the rows of `out` and `dout` that $D$ needs, so it can store $D$ for the other kernel. For `dk` and
# `dv`, exchange the roles: a block of keys stays, queries pass by.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Lanes past the last key have a score of 0, and if `lse` is -150, `tl.exp` of 0 + 150 is infinite. So set them to
# $-\infty$ *before* the exponential, with `tl.where`, together with the causal mask. Lanes past the last query need no
# care if all their loads have `other=0.0`: a `dout` of 0 adds nothing. The first block of queries that sees the keys
# from `block * BLOCK_N` on begins at `block * BLOCK_N // BLOCK_M * BLOCK_M`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In both loops: `p = tl.exp(tl.where(seen, scores - lse[:, None], -float("inf")))`, `dp = tl.dot(dout, tl.trans(v),
# input_precision="ieee")`, `ds = p * (dp - row_sums[:, None])`. In one: `dq = tl.dot(ds.to(k.dtype), k, dq,
# input_precision="ieee")`. In the other: `dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, dv, …)` and `dk =
# tl.dot(tl.trans(ds.to(q.dtype)), q, dk, …)`. Multiply `dq` and `dk` by the scale when you store them. The grids are
# `(triton.cdiv(seq, block_m), n_heads)` and `(triton.cdiv(seq, block_n), n_heads)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "13-flash-backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def backward_queries_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    lse_ptr,
    dout_ptr,
    row_sums_ptr,
    dq_ptr,
    seq,
    scale,
    CAUSAL: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    ### BEGIN SOLUTION
    block, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * seq
    rows, dims = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D_HEAD)
    own, inside = (base + rows)[:, None] * D_HEAD + dims[None, :], rows[:, None] < seq
    q = tl.load(q_ptr + own, mask=inside, other=0.0)
    dout = tl.load(dout_ptr + own, mask=inside, other=0.0)
    out = tl.load(out_ptr + own, mask=inside, other=0.0)
    lse = tl.load(lse_ptr + base + rows, mask=rows < seq, other=0.0)
    row_sums = tl.sum(out.to(tl.float32) * dout.to(tl.float32), axis=1)
    tl.store(row_sums_ptr + base + rows, row_sums, mask=rows < seq)
    dq = tl.zeros((BLOCK_M, D_HEAD), tl.float32)
    end = tl.minimum((block + 1) * BLOCK_M, seq) if CAUSAL else seq
    for start in range(0, end, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        keys = (base + cols)[:, None] * D_HEAD + dims[None, :]
        k = tl.load(k_ptr + keys, mask=cols[:, None] < seq, other=0.0)
        v = tl.load(v_ptr + keys, mask=cols[:, None] < seq, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= cols[None, :])
        p = tl.exp(tl.where(seen, scores - lse[:, None], -float("inf")))
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = p * (dp - row_sums[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + own, dq * scale, mask=inside)
    ### END SOLUTION


@triton.jit
def backward_keys_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    lse_ptr,
    dout_ptr,
    row_sums_ptr,
    dk_ptr,
    dv_ptr,
    seq,
    scale,
    CAUSAL: tl.constexpr,
    D_HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    ### BEGIN SOLUTION
    block, head = tl.program_id(0), tl.program_id(1)
    base = head.to(tl.int64) * seq
    cols, dims = block * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, D_HEAD)
    own, inside = (base + cols)[:, None] * D_HEAD + dims[None, :], cols[:, None] < seq
    k = tl.load(k_ptr + own, mask=inside, other=0.0)
    v = tl.load(v_ptr + own, mask=inside, other=0.0)
    dk = tl.zeros((BLOCK_N, D_HEAD), tl.float32)
    dv = tl.zeros((BLOCK_N, D_HEAD), tl.float32)
    first = block * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(first, seq, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        queries = (base + rows)[:, None] * D_HEAD + dims[None, :]
        q = tl.load(q_ptr + queries, mask=rows[:, None] < seq, other=0.0)
        dout = tl.load(dout_ptr + queries, mask=rows[:, None] < seq, other=0.0)
        lse = tl.load(lse_ptr + base + rows, mask=rows < seq, other=0.0)
        row_sums = tl.load(row_sums_ptr + base + rows, mask=rows < seq, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = (cols < seq)[None, :]
        if CAUSAL:
            seen = seen & (rows[:, None] >= cols[None, :])
        p = tl.exp(tl.where(seen, scores - lse[:, None], -float("inf")))
        dv = tl.dot(tl.trans(p.to(dout.dtype)), dout, dv, input_precision="ieee")
        dp = tl.dot(dout, tl.trans(v), input_precision="ieee")
        ds = p * (dp - row_sums[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="ieee")
    tl.store(dk_ptr + own, dk * scale, mask=inside)
    tl.store(dv_ptr + own, dv, mask=inside)
    ### END SOLUTION


def attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    dout: Tensor,
    causal: bool = True,
    block_m: int = 32,
    block_n: int = 32,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients (dq, dk, dv) of attention, from its inputs, its result `out`, `lse` and the gradient `dout`."""
    ### BEGIN SOLUTION
    n_heads, seq, d_head = q.shape
    dq, dk, dv = (torch.empty_like(one) for one in (q, k, v))
    row_sums = torch.empty_like(lse)
    sizes = {"CAUSAL": causal, "D_HEAD": d_head, "BLOCK_M": block_m, "BLOCK_N": block_n}
    scale = d_head**-0.5
    backward_queries_kernel[(triton.cdiv(seq, block_m), n_heads)](
        *(q, k, v, out, lse, dout, row_sums, dq, seq, scale), **sizes
    )
    backward_keys_kernel[(triton.cdiv(seq, block_n), n_heads)](
        *(q, k, v, lse, dout, row_sums, dk, dv, seq, scale), **sizes
    )
    return dq, dk, dv
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "13-flash-backward-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("13-flash-backward", attention_backward)


# %%
def kept_by_flash(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The result of causal attention, and the log-sum-exp of each query's scores."""
    later = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(1, 2) * q.shape[2] ** -0.5).masked_fill(later, -float("inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


q, k, v = (torch.randn(1, 512, 64, requires_grad=True) for _ in range(3))
dout, eager_out = torch.randn(1, 512, 64), eager_attention(q, k, v)
given = [one.detach() for one in (q, k, v, *kept_by_flash(q, k, v))]
calls = {
    "eager": lambda: torch.autograd.grad(eager_out, (q, k, v), dout, retain_graph=True),
    "yours": lambda: attention_backward(*given, dout, True, 64, 64),
}
traffic_of_gradients = compare_traffic(calls)
given_bytes = sum(one.nbytes for one in (*given, dout))
for name in traffic_of_gradients:
    with track_memory(batch=[*given, dout]) as profile:
        gradients = calls[name]()
    made = in_bytes(profile.peak_bytes - given_bytes)
    print(f"{name}: peak of {made} in the backward pass, gradients {in_bytes(3 * q.nbytes)}")
if "yours" in traffic_of_gradients:
    pairs = zip(calls["eager"](), gradients)
    print(f"largest difference: {max((one - two).abs().max().item() for one, two in pairs):.1e}")

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_gradients, 8 * dout.nbytes)

# %% [markdown]
# The ideal reads q, k, v, the result and the incoming gradient once and writes three gradients. Eager attention moves
# 12 times as much, your kernels a little more than three times with tiles of 64 × 64, and the difference grows with the
# length. Eager attention has also kept the probabilities and the mask since the forward pass, 1.25 MiB here, where $L$
# takes 2 KiB. For 8192 tokens that is 320 MiB for each head against 32 KiB. So memory grows with the length, not with
# its square.

# %% tags=["varies"]
if has_gpu() and "yours" in traffic_of_gradients:
    q, k, v, dout = (torch.randn(32, 4096, 64, device="cuda").half() for _ in range(4))
    out, lse = kept_by_flash(q.float(), k.float(), v.float())
    leaves = [one[None].requires_grad_() for one in (q, k, v)]
    theirs = F.scaled_dot_product_attention(*leaves, is_causal=True)
    kept = [one.detach() for one in (q, k, v, out.half(), lse, dout)]
    for name, call in {
        "yours": lambda: attention_backward(*kept, True, 64, 32),
        "SDPA": lambda: torch.autograd.grad(theirs, leaves, dout[None], retain_graph=True),
    }.items():
        print(f"{name:6} {bench(call).median_ms:.2f} ms for the backward pass")
else:
    print("No GPU here, so nothing is timed: bytes are the measure.")

# %% [markdown]
# ## First rule: don't write it
#
# `F.scaled_dot_product_attention` is this algorithm with its backward pass, in several versions from which PyTorch
# chooses. Use it, and check that you get the fast one.

# %%
q, k, v = (torch.randn(2, 200, 64) for _ in range(3))
theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
if has_attention:
    off = (attention(q, k, v, 32, 32) - theirs).abs().max().item()
    print(f"largest difference: {off:.1e}")

# %% [markdown]
# | where | what it is | use it when |
# |---|---|---|
# | `F.scaled_dot_product_attention(..., is_causal=True)` | FlashAttention, cuDNN's or a memory-efficient kernel | always first |
# | `with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION):` | that one, or an error and warnings that say why not | to find out what you get |
# | `torch.nn.attention.flex_attention` | a mask or score of your own, compiled into such a kernel | windows, documents, biases |
# | package `flash-attn` | the authors' kernels | sequences of different lengths without padding, new GPUs early |
# | your own kernel | this lab | a mechanism that none of these has |
#
# The most frequent way to lose the fast one is to pass the causal mask as a tensor. FlashAttention's kernel does not
# take masks, so you get a slower one; pass `is_causal=True` instead. It also needs float16 or bfloat16 and a head size
# of at most 256. If no fused version fits, PyTorch takes the plain one with all its scores, without a warning: only the
# memory shows it.

# %% tags=["varies"]
if has_gpu() and has_attention:
    q, k, v = (torch.randn(32, 4096, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    later = torch.ones(4096, 4096, dtype=torch.bool, device="cuda").triu(1)
    for name, call in {
        "eager": lambda: (q @ k.mT * 0.125).masked_fill(later, -float("inf")).softmax(-1) @ v,
        "yours": lambda: attention(q, k, v, 64, 64),
        "SDPA": lambda: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True),
    }.items():
        print(f"{name:6} {bench(call).median_ms:.2f} ms")
else:
    print("No GPU here, so nothing is timed: bytes are the measure.")

# %% [markdown]
# ## What you measured
#
# Each row is one idea of this lab, before and after.


# %%
def summary_row(name: str, found) -> None:
    """A line for the first and the last of these bytes; none where an exercise in between is not solved."""
    if len(found) > 1:
        before, after = found[0], found[-1]
        print(f"{name:56}{before / 2**20:12,.2f}{after / 2**20:12,.2f}{before / after:8.1f} x")


print(f"{'moved, MiB':56}{'before':>12}{'after':>12}{'less':>10}")
summary_row(
    "256 x 128 x 256 product, tile 16, tile 128",
    [one.total_bytes for one in traffic_of_tiles.values()],
)
summary_row("8192 x 8192 x 8192 product, row by row, your order", list(read_bytes.values())[1:])
summary_row(
    "loss and gradient, F.cross_entropy, yours",
    [one.total_bytes for one in traffic_of_loss.values()],
)
summary_row(
    f"attention over {lengths[-1]} tokens, eager, yours",
    [moved_by_attention[name][-1] for name in names[:2] if name in moved_by_attention],
)
summary_row(
    "its backward pass, eager, yours",
    [one.total_bytes for one in traffic_of_gradients.values()],
)

# %%
guesses.score()

# %%
progress("13", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "13",
    "flash attention, 512 tokens",
    speed=lambda: " moved instead of ".join(
        f"{moved_by_attention[name][lengths.index(512)] / 2**20:.1f} MiB"
        for name in ("yours, tiles of 64 × 64", "eager")
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 points each. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) Tiles of 128 × 128 move half the bytes that tiles of 64 × 64 move. A colleague measures both on an
# A100 (108 multiprocessors, 256 KiB of registers each) and finds the smaller tile faster for a product of 1024 × 1024 ×
# 1024. Name two reasons, with a number for each.

# %% [markdown] nbgrader={"grade": true, "grade_id": "13-open-tile-size", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Too few programs: 1024 / 128 = 8, so there are 64 tiles for 108 multiprocessors, and 44 of them have nothing to do.
# Tiles of 64 are 256 programs.
# Registers: the sums of a 128 x 128 tile are 64 KiB in float32, a quarter of a multiprocessor's, before any tile of A
# or B. So at most two or three programs are there at a time (with 4 warps, 128 registers of each thread are sums
# alone, of at most 255), and there is less to do while one waits for memory.
# Also right: the bytes do not matter at this size, since both factors (4 MiB) fit into the cache of 40 MB; where a
# size is not a multiple, more of a large tile is masked; shared memory for the stages of a pipeline doubles with the
# tile.
#
# Marks: 1/2 for each of two reasons, 1/2 for a right number with each. "It is too large for the cache" alone earns
# nothing.
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points) A sequence of 1,048,576 tokens is too long for one GPU. Each of eight GPUs holds the keys and values
# of 131,072 tokens, and all queries are needed everywhere. Each GPU computes attention of all queries over its own
# keys. What must it hand over for each query and head of size 128, so that the result is exact, and how are the eight
# parts put together? How many bytes does each GPU hand over for all queries and 32 heads in float32, and what else
# could the GPUs send to one another?

# %% [markdown] nbgrader={"grade": true, "grade_id": "13-open-long-sequence", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# For each query and head: the result over its own keys (128 numbers), and the statistics m and l of its scores, or m
# + ln l in one number. The parts are merged as in `merge_stats`: with the largest maximum m, each part weighs l_i
# exp(m_i - m), and the result is the weighted mean of the eight results, the sum of weights being l. That is exact
# but for rounding, and the parts may come in any order, since a merge is associative and commutative. Parts that see
# nothing of a query (causal mask) have m = -inf and l = 0 and weigh nothing.
# Bytes: 1,048,576 x 32 x (128 + 2) x 4 = 17.4 GB from each GPU (129 numbers: 17.3 GB).
# Else: send the keys and values around instead (ring attention). An eighth of them has 131,072 x 32 x 128 x 2 numbers,
# 2.1 GB in float16 for each of 7 steps, less with fewer key heads, and the queries stay where they are.
#
# Marks: 1/2 for the three quantities, 1/2 for the merge with its weights, 1/2 for the bytes (a factor of 2 is fine),
# 1/2 for keys and values instead, or another way that works.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Triton's own tutorials: *Matrix Multiplication* (with the order of tiles) and *Fused Attention* (with its backward
#   pass).
# - Simon Boehm, *How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance* (2022): tiles within tiles.
# - Tri Dao, *FlashAttention-2* (2023) and Jay Shah and others, *FlashAttention-3* (2024): what was left to speed up.
# - Hao Liu, Matei Zaharia and Pieter Abbeel, *Ring Attention with Blockwise Transformers* (2023): question B.
#
# **Sources.** The texts above and PyTorch's documentation. Online softmax: Maxim Milakov and Natalia Gimelshein,
# *Online normalizer calculation for softmax* (2018). Attention in pieces: Markus Rabe and Charles Staats,
# *Self-attention Does Not Need O(n²) Memory* (2021); Tri Dao, Daniel Fu and others, *FlashAttention* (2022), whose
# appendix derives the backward pass with its row sum $D$; Tri Dao, *FlashAttention-2* (2023), for the log-sum-exp and
# the loops over blocks of keys with atomics for $dQ$. Loss: Pin-Lun Hsu and others, *Liger Kernel* (2024). Rates:
# NVIDIA's data sheet of the A100 (80 GB).
