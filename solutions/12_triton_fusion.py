# %% [markdown]
# # Lab 12: Triton, and when to fuse
#
# RMSNorm in a Llama model does four floating-point operations per number. For 4096 tokens of width 4096 in bfloat16, the
# memory of an A100 (2 TB/s) needs 34 µs to read the input and write the output; the arithmetic takes a tenth of that. Yet
# the module of `transformers`, run operation by operation, moves many times as many bytes. **Where do they go, and what
# does it take to move each byte once?**
#
# You will write kernels that do: a masked sum, softmax, RMSNorm and SwiGLU with their backward passes, dropout without
# a stored mask, and the step of an optimizer. You need no GPU: Triton's *interpreter* runs a kernel's Python on the
# CPU. Each kernel is checked for its values, for accesses out of bounds and races, for the bytes that it moves, and by
# compiling it for an A100 and an H100. A kernel that passes is compiled once more at the size of a real model, 4096
# tokens of width 4096. There it has to keep a whole GPU busy, and its blocks have to fit into registers.
#
# [[time]]
#
# You need arithmetic intensity (lab 01), autograd functions with `ctx` (lab 05), and Linux, because there are no builds
# of Triton for other systems.

# %% nbgrader={"grade": false, "grade_id": "12-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, has_gpu, interpreter, progress, track_compile
from labkit.material.kernel_costs import compare_steps, compare_traffic
from labkit.meters import bench, compile_report, guard_launches, track_traffic
from labkit.units import in_bytes

torch.manual_seed(0)
guesses = Predictions("12")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so
# Kernels run in Triton's interpreter on tensors of the CPU, and compiled on those of a GPU, if there is one.
interpreter.enable(beside_gpu=True)
# An access past the end of a tensor raises an error instead of ending the notebook's process.
guard_launches()

import triton
import triton.language as tl

# %% [markdown]
# First the question, measured. `track_traffic` counts the bytes that are read from a GPU's memory (load) and written to
# it (store): each operation reads its inputs once and writes its outputs once. The best possible is to read the input
# and the weight once and to write the output once.

# %% [markdown]
# **Predict:** how many times the best possible does the module of `transformers` move, operation by operation?

# %% nbgrader={"grade": false, "grade_id": "12-predict-eager-norm", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes of LlamaRMSNorm", None, unit="times the ideal")

# %%
from transformers.models.llama.modeling_llama import LlamaRMSNorm

tokens = torch.randn(256, 512).bfloat16()
llama_norm = LlamaRMSNorm(512).bfloat16()
with torch.no_grad(), track_traffic() as eager_norm:
    llama_norm(tokens)
print(eager_norm)
ideal_bytes = 2 * tokens.nbytes + llama_norm.weight.nbytes
print(
    f"ideal: {in_bytes(ideal_bytes)}; moved: {in_bytes(eager_norm.total_bytes)}, "
    f"{eager_norm.total_bytes / ideal_bytes:.1f} times as much"
)
guesses.settle("bytes of LlamaRMSNorm", eager_norm.total_bytes / ideal_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Nine times: 36 bytes per number instead of 4. The cast to float32 moves 6, the square 8, the mean 4, the product with
# $1/\text{rms}$ 8, the cast back 6, and the product with the weight 4.
#
# </details>
#
# Each line of the table that was printed is one **kernel** on a GPU: a function that runs there from start to end. What
# one kernel hands to the next makes a round trip through memory, and all but the last of these results are in float32,
# twice as wide as the input.
#
# An A100 does 9.6 float32 operations in the time that a byte takes (19.5 TFLOP/s over 2039 GB/s, lab 01). None of these
# lines comes near that, so bytes are time.
#
# **Fusing** means to read the input once, keep all intermediate results in registers, and write the output once. An
# A100 has 108 **multiprocessors**, which work side by side. Registers are 256 KiB of memory in each of them, right
# beside its arithmetic units.

# %% tags=["figure"]
labkit.figures.fused_chain()

# %% [markdown]
# ## First rule: don't
#
# A kernel of your own has to be right for every shape, dtype and stride, it has no backward pass unless you write one, and
# it must be maintained for every new GPU. Go through this list first, and stop at the first yes.
#
# | ask | if yes |
# |---|---|
# | 1. Is it fast enough already? | below 5 % of the step in a profile (lab 09): leave it |
# | 2. Does it exist? | use it: `F.scaled_dot_product_attention`, `F.rms_norm`, `AdamW(fused=True)`; Liger Kernel, FlashAttention |
# | 3. Do fewer operations of PyTorch do it? | `torch.addcmul`, in-place operations, `torch._foreach_...`, `out=` |
# | 4. Does `torch.compile` fuse it? | use it; counted below for twelve functions |
# | 5. Does it take an algorithm that no compiler finds? | Triton: softmax in blocks, a loss in place (lab 13), a new layout |
# | 6. Does it take what Triton does not show? | CUDA C++: single threads, asynchronous copies, special instructions |
#
# In practice most of what you write below stops at 2 or 4. You write it here because it shows what these libraries do,
# and because lab 13 begins where they end.
#
# The fourth question needs no GPU either. `track_compile` lets `torch.compile` generate its code, stops before that is
# compiled, and counts the kernels and their bytes.


# %%
def attention(q, k, v):
    return (q @ k.T / q.shape[-1] ** 0.5).softmax(-1) @ v


heads = [torch.randn(512, 64) for _ in range(3)]
gate, up = torch.randn(256, 512), torch.randn(256, 512)
for name, function, inputs in (
    ("RMSNorm", llama_norm, [tokens]),
    ("softmax", lambda x: x.softmax(-1), [gate]),
    ("SwiGLU", lambda gate, up: F.silu(gate) * up, [gate, up]),
    ("attention", attention, heads),
):
    with torch.no_grad(), track_compile() as compiled:
        out = torch.compile(function)(*inputs)
    weights = list(function.parameters()) if isinstance(function, nn.Module) else []
    once_bytes = sum(tensor.nbytes for tensor in (*inputs, *weights, out))
    generated = sum(kernel.generated for kernel in compiled.kernels)
    print(
        f"{name:9}: {generated} generated, {len(compiled.kernels) - generated} of a library, "
        f"{compiled.kernel_bytes / once_bytes:.1f} times the ideal"
    )

# %% [markdown]
# The first three become one kernel each, which moves every byte once: for their forward passes you need no kernel of
# your own. (The last table of lab 11 has such a generated kernel beside two by hand, of one chain of operations. It moves
# 1.00 times the ideal, the kernels in CUDA C++ and in Triton move 1.01 times, and eager mode 11.8 times.) Attention
# stays in pieces, because the compiler fuses operations but does not look for another algorithm, and its matrix of scores
# goes through memory. That is the fifth question.
#
# Is that the rule? Here are twelve functions, each counted with inputs of 32 × 64, 256 × 512 and 1024 × 2048 numbers in
# float32. Eager and compiled bytes are multiples of the ideal, and differ by less than 0.1 between the three sizes: what
# is fused depends on the operations and not on how large they are.
#
# | function | eager | compiled | generated kernels, calls of a library |
# |---|---|---|---|
# | bias and GELU | 2.00 | 1.00 | 1, 0 |
# | SwiGLU | 1.67 | 1.00 | 1, 0 |
# | AdamW step | 4.43 | 1.00 | 1, 0 |
# | rotary embedding | 3.00 | 1.75 | 3, 0 |
# | RMSNorm | 3.50 | 1.00 | 1, 0 |
# | LayerNorm, written out | 5.00 | 1.00 | 1, 0 |
# | softmax, written out | 6.50 | 1.00 | 1, 0 |
# | sum of squares | 3.00 | 1.00 | 1, 0 |
# | columns over their norms | 1.50 | 1.50 | 2, 0 |
# | sum of rows so far | 3.00 | 2.00 | 1, 1 |
# | product, bias, GELU | 2.00 | 1.50 | 1, 1 |
# | attention | 1.75 | 1.50 | 1, 2 |
#
# **Compiled, none of the twelve moves more bytes than in eager mode. Seven reach the ideal, four come closer to it, and one
# gains nothing.** The five that miss it have two reasons. A library's product, a running sum and a `cat` store their
# results, whatever comes next. And where every number has to wait for a sum over all rows, its row has left the registers
# by then: `columns over their norms` reads its input twice, in eager mode as well. (Counted for PyTorch 2.13, from the
# plan that inductor makes for a CPU.)

# %% [markdown]
# ## Write a program for one block
#
# A kernel in Triton is the text of one **program**, and a launch runs it many times: `kernel[(5,)](...)` starts 5
# programs. They differ only in their number, `tl.program_id(0)`, here from 0 to 4. On a GPU, each multiprocessor runs a
# few programs at the same time.
#
# A program works on a **block** of elements at once. `tl.arange(0, 4)` is the block 0, 1, 2, 3, and arithmetic on it is
# elementwise. Each place in a block is a **lane**.
#
# A kernel gets a tensor as a **pointer**, the address of its first element: no shape, no length. A pointer plus a block of
# offsets, counted in elements, is a block of addresses, which `tl.load` reads and `tl.store` writes.
#
# The length of a block is a power of two and fixed when the kernel is compiled, because it decides how many registers
# the program takes. So it is a parameter marked `tl.constexpr`.
#
# The kernel below stores its program's number in every lane of its block. Say what it prints before you run it.


# %%
@triton.jit
def number_kernel(out_ptr, BLOCK_SIZE: tl.constexpr):
    program = tl.program_id(0)
    offs = program * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, program)


numbers = torch.full((20,), -1, dtype=torch.int32)
number_kernel[(5,)](numbers, BLOCK_SIZE=4)
print(numbers)

# %% [markdown]
# Five blocks of 4 lanes are 20 elements, and program 2 has the elements 8 to 11. The interpreter runs the programs one
# after the other, so a line `print(offs)` in the kernel shows the offsets of each.
#
# You can also look at what one program touches. The next figure draws it, and it draws your own kernels just as well:
# **if a check fails, call `program_steps` on your function and look**.

# %% tags=["figure"]
labkit.figures.program_steps(lambda: number_kernel[(5,)](numbers, BLOCK_SIZE=4), program=2)

# %% [markdown]
# What does a sixth program do?

# %%
try:
    number_kernel[(6,)](numbers, BLOCK_SIZE=4)
except IndexError as error:
    print(error)

# %% [markdown]
# It has no elements left and writes past the end of the vector. Here that is an error. On a GPU these addresses hold
# another tensor's numbers, and you get no message at all.
#
# The same happens wherever a vector's length $n$ is not a multiple of the block's length $B$:
# $\lceil n/B \rceil$ programs, or `triton.cdiv(n, B)`, have more lanes than there are elements. So a load and a store take
# a **mask**, a block of booleans that says which lanes touch memory: `mask=offs < n`.

# %% tags=["figure"]
labkit.figures.masked_block(n=10, block=4, program=2)

# %% [markdown]
# The last of three programs on a vector of 10 elements: two of its four lanes are masked. What a masked lane of a load
# holds is undefined, unless `other=` says what. In this course's interpreter it holds NaN, or the largest integer, so
# that a sum over such lanes is wrong here too and not only on a GPU.

# %% [markdown]
# [[exercise 12-add]]
#
# Write `add(x, y)`, the sum of two contiguous vectors of the same length and dtype (float32, float16 or bfloat16), as a
# kernel under `@triton.jit` and the function that launches it. Each input is read once and the output is written once,
# in a single launch.
#
# A GPU runs a program with 4 **warps** of 32 threads and distributes the lanes of a block among them. A thread should
# move at least two elements at once, so a block needs at least 256 lanes, two for each of 128 threads. A vector of
# millions of elements takes many programs, since each of the 108 multiprocessors of an A100 needs at least one.
#
# The check counts bytes and lanes out of bounds, and compiles the kernel. It also counts **sectors**: a GPU reads and
# writes memory in sectors of 32 bytes, so a program that touches every eighth float32 uses an eighth of what it moves.
# PyTorch may only allocate; all arithmetic happens in the kernel.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The kernel is `number_kernel` with two loads before the store, and a mask on all three. The launcher makes the result
# with `torch.empty_like` and rounds the number of programs up.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `tl.load(x_ptr + offs, mask=offs < n)` is a block of x. The launch passes tensors as they are, `n` as a number, and
# the block's length by its name, `BLOCK_SIZE=`. With 1024 lanes, each of the 128 threads has 8.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)`, then two masked loads and a masked store. The
# launch is `add_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, y, out, n, BLOCK_SIZE=1024)` with `out = torch.empty_like(x)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-add", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)
    ### END SOLUTION


def add(x: Tensor, y: Tensor) -> Tensor:
    """x + y for two contiguous vectors, by one launch of add_kernel."""
    ### BEGIN SOLUTION
    out = torch.empty_like(x)
    n = x.numel()
    block_size = 1024
    add_kernel[(triton.cdiv(n, block_size),)](x, y, out, n, BLOCK_SIZE=block_size)
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-add-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("12-add", add)

# %% tags=["figure"]
n = 2600
labkit.figures.launch_map(lambda: add(torch.ones(n), torch.ones(n)), n)

# %% [markdown]
# Your own launch on 2600 elements: one row for each program, from its first lane to its last. Masked lanes cost next to
# nothing; without the mask they would be writes into other tensors.
#
# **Question:** how many programs does a vector of 1000 elements take in blocks of 256, and in one of 1024? How many lanes
# are masked?
#
# <details><summary>Answer</summary>
#
# Four programs, or one. Both have 1024 lanes, so the last program masks 24 of its own in either case.
#
# </details>

# %% [markdown]
# A kernel that the interpreter runs has to compile, too. The next cell shows what the compiler makes of one with blocks
# of 1024 and of 128 elements, for an A100 (`sm_80`) and an H100 (`sm_90`). A thread has at most 255 registers of 4
# bytes, and **spilled** bytes are what did not fit into them and went to memory instead. If a long block spills, pass
# `num_warps=8` at the launch: its lanes are then distributed among 256 threads instead of 128.

# %% [markdown]
# **Predict:** with `n=4096` and a block of 1024, each load of a thread has 16 bytes. How many bytes does it have with
# `n=4095`?

# %% nbgrader={"grade": false, "grade_id": "12-predict-width", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes a load with n=4095", None, unit="bytes", exact=True)


# %%
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


for arch in (80, 90):
    for block_size in (1024, 128):
        x = torch.empty(4096)
        report = compile_report(
            scale_kernel, x_ptr=x, out_ptr=x, n=4096, BLOCK_SIZE=block_size, arch=arch
        )
        print(
            f"sm_{arch}, block of {block_size:4}: {report.registers} registers a thread, "
            f"{report.spill_bytes} bytes spilled, {report.load_width_bytes} bytes a load"
        )
report = compile_report(scale_kernel, x_ptr=x, out_ptr=x, n=4095, BLOCK_SIZE=1024, arch=80)
guesses.settle("bytes a load with n=4095", report.load_width_bytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 4 bytes. Of this `n`, the compiler knows only whether it is a multiple of 16. If it is not, four neighbouring lanes
# may not share the same mask, so each is loaded by itself.
#
# </details>
#
# With 8 elements for each thread, a load has 16 bytes, which is the most that a GPU can do. With one element for each
# thread it has 4 bytes, and the same data take four times as many instructions.

# %% [markdown]
# ## Keep a row in registers: softmax in one pass
#
# With a reduction, the order of reading matters. Written as operations, softmax has five steps: (1) find the maximum of
# each row, (2) subtract it, (3) exponentiate, (4) sum up, (5) divide. Every step goes over the whole matrix. But a row
# of a few thousand numbers fits into the registers of one program, and a program that holds its row touches memory only
# twice.
#
# $$\text{softmax}(x)_i = \frac{e^{x_i - m}}{\sum_j e^{x_j - m}}, \qquad m = \max_j x_j$$
#
# The result is the same for any $m$; with $m = \max x$ no exponent is above 0, so nothing overflows. In float32, `exp`
# overflows above 88.7, in float16 above 11.1.
#
# A kernel that gets a matrix as a pointer has to be told where a row begins. `x.stride(0)` is the distance from one row
# to the next, in elements. For a contiguous matrix it is the number of columns; for a slice it is not.

# %%
wide = torch.arange(12).reshape(3, 4)
narrow = wide[:, :3]
print(narrow.shape, narrow.stride(), "row 1 begins with", int(narrow[1, 0]))

# %% [markdown]
# `narrow` has 3 columns, and its row 1 begins 4 elements after its row 0: a slice is a view into the memory of `wide`.

# %% [markdown]
# **Predict:** how many matrices of x's size do the five steps above move, loads and stores together? (One pass moves
# two.)

# %% nbgrader={"grade": false, "grade_id": "12-predict-softmax", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("softmax by operations", None, unit="matrices")

# %% [markdown]
# From here on your kernels also need these:
#
# | in a kernel | what it makes |
# |---|---|
# | `tl.max(x, axis=0)`, `tl.sum(x, axis=0)` | one number from a block |
# | `tl.exp`, `tl.sqrt`, `tl.rsqrt`, `tl.sigmoid`, `tl.erf` | a function of each element |
# | `tl.maximum(x, y)`, `tl.minimum(x, y)`, `tl.where(condition, x, y)` | a choice for each element; also for single numbers |
# | `x.to(tl.float32)` | a cast; `tl.store` casts to the tensor's dtype by itself |
# | `tl.zeros((BLOCK_SIZE,), tl.float32)` | a block of zeros, for sums |
# | `for i in range(first, last):` | a loop, also with bounds that are known only at the launch |
#
# Outside of the kernel, `triton.next_power_of_2(n)` rounds a length up to that of a block.

# %% [markdown]
# [[exercise 12-softmax]]
#
# Write `softmax(x)` over the rows of a matrix `x` of shape (n_rows, n_cols), in float32 or float16. A row has at most
# 4096 elements and fits into a block. Within a row, elements are neighbours; the rows may lie further apart than
# `n_cols`, as in a slice. The result is contiguous and of x's dtype, computed in float32. One launch, every element
# read once and written once, so no `.contiguous()`. The elements lie between $-10^6$ and $10^6$, and a whole row may lie
# near one end. Besides, some elements are $-\infty$, but never all of a row.
#
# <details><summary>Hint 1: a nudge</summary>
#
# One program for each row. The block's length is a power of two, so it is usually longer than the row. Which value must
# the lanes past the row's end have so that they change neither the maximum nor the sum?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `tl.load(..., mask=mask, other=-float("inf"))` gives the lanes past the end a value whose exponential is 0. Row $r$
# begins at `x_ptr + r * stride`, with `x.stride(0)`; the output has a stride of its own. `tl.max(block, axis=0)` and
# `tl.sum(block, axis=0)` reduce a block to a number.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `cols = tl.arange(0, BLOCK_SIZE)`, `mask = cols < n_cols`, load and `.to(tl.float32)`, `e = tl.exp(x - tl.max(x,
# axis=0))`, store `e / tl.sum(e, axis=0)`. The launcher's grid is `(n_rows,)`, its block
# `triton.next_power_of_2(n_cols)`, its output `torch.empty(x.shape, dtype=x.dtype, device=x.device)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def softmax_kernel(out_ptr, x_ptr, stride_out, stride_x, n_cols, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out + cols, e / tl.sum(e, axis=0), mask=mask)
    ### END SOLUTION


def softmax(x: Tensor) -> Tensor:
    """Softmax over the rows of x (n_rows, n_cols), by one launch with a program for each row."""
    ### BEGIN SOLUTION
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block_size = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](out, x, out.stride(0), x.stride(0), n_cols, BLOCK_SIZE=block_size)
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-softmax-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("12-softmax", softmax)

# %% tags=["figure"]
labkit.figures.program_steps(lambda: softmax(torch.randn(6, 24)[:, :20]), program=2)

# %% [markdown]
# What your program for row 2 touches in a matrix of 6 rows of 20 elements, cut out of one with 24 columns. In the list
# below the grids, offsets count the elements from the first one of x, so row 2 begins at 48.


# %%
def softmax_by_operations(x: Tensor) -> Tensor:
    e = torch.exp(x - x.max(dim=1, keepdim=True).values)
    return e / e.sum(dim=1, keepdim=True)


matrix = torch.randn(32, 1000)
traffic = compare_traffic(
    {
        "operation by operation": lambda: softmax_by_operations(matrix),
        "torch.softmax": lambda: torch.softmax(matrix, dim=1),
        "your kernel": lambda: softmax(matrix),
    }
)
moved_by_operations = traffic["operation by operation"].total_bytes
guesses.settle("softmax by operations", moved_by_operations / matrix.nbytes)

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic, 2 * matrix.nbytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Eight, and in addition one number per row and reduction: maximum and sum read one matrix each, the difference, the
# exponential and the quotient read and write one each.
#
# </details>
#
# `torch.softmax` has been one kernel for many years: question 2 of the list above. Where the bars of two programs differ
# by a factor of four, their times on a GPU do, too, as long as both use the full rate of the memory.
#
# A much longer row no longer fits into registers and has to come in pieces. How to do that without reading it three
# times is the first idea of lab 13.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Write the backward pass of a kernel
#
# PyTorch cannot look inside a kernel, so it cannot differentiate one. `torch.autograd.Function` lets you write the
# `backward` yourself, and you choose what to keep for it: each tensor that it uses can be kept or computed again, and some
# turn out not to be needed.
#
# For RMSNorm, with a row $x$ of $n$ elements and the weight $w$:
#
# $$r = \frac{1}{\sqrt{\frac1n \sum_j x_j^2 + \varepsilon}}, \qquad \hat x = r\,x, \qquad y = w \odot \hat x$$
#
# With $g = w \odot \partial L / \partial y$, the gradients with respect to the row and the weight are
#
# $$\frac{\partial L}{\partial x} = r\left(g - \hat x \cdot \frac1n \sum_j g_j \hat x_j\right), \qquad
# \frac{\partial L}{\partial w} = \sum_{\text{rows}} \frac{\partial L}{\partial y} \odot \hat x$$
#
# $\partial L / \partial x$ has a second term because each $x_i$ is also in $r$, and through it in every output of its row.

# %% [markdown]
# **Predict:** forward and backward together, how many times the ideal does the module of `transformers` move in float32?
# The ideal is five matrices: x in and y out, then x and $\partial L / \partial y$ in and $\partial L / \partial x$ out.

# %% nbgrader={"grade": false, "grade_id": "12-predict-norm-step", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("LlamaRMSNorm with gradients", None, unit="times the ideal")

# %% [markdown]
# [[exercise 12-rmsnorm]]
#
# Write `rmsnorm(x, weight, eps)` for contiguous `x` of shape (n_rows, n_cols) and `weight` of shape (n_cols,) with the
# same dtype, float32 or float16, so that gradients flow to both. A row fits into a block. Compute in float32.
#
# Keep x, the weight and one float32 per row: r, for which the stub has `scale_ptr`. Forward is one launch, backward at
# most two; both passes read each matrix once. The gradient that comes into `backward` may have any strides (after
# `.sum()`, it is one number expanded), so call `dout.contiguous()` first. The limits on bytes allow for this copy.
#
# All rows contribute to the weight's gradient, and two programs must not write the same element. So let each program of
# the backward pass take 4 rows or more, and write a partial sum of its own, once. With 32 rows each, 4096 rows still
# take 128 programs, more than the 108 multiprocessors of an A100. The partial sums are a matrix (n_programs, n_cols),
# which the kernel fills completely: make it with `torch.empty`. PyTorch may add them up: what kernels stored may go
# through `.sum(0)` and `.to`.
#
# (Atomic additions to a single row of zeros are accepted as well. Their order changes from run to run, and with it the
# last bits.)
#
# The check runs forward on one input, forward on another, and then backward of the first. Its report counts all three
# or four launches.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write the forward pass first: softmax's kernel with another formula in the middle, and one float32 per row stored beside
# the result. Lanes past the end of a row have to add 0 to the sums.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In the backward kernel, a program loads the weight once and starts with `dw = tl.zeros((BLOCK_SIZE,), tl.float32)`.
# Then it loops over its rows, `for row in range(first, tl.minimum(first + ROWS, n_rows))`; in each it computes
# $\hat x$ from x and the kept r, stores dx, and adds to dw. After the loop it stores dw as one row of a matrix
# (n_programs, n_cols).
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `r = tl.load(scale_ptr + row)`, `normal = x * r`, `g = dout * w`,
# `dx = r * (g - normal * (tl.sum(g * normal, axis=0) / n_cols))`, `dw += dout * normal`. In `forward`:
# `ctx.save_for_backward(x, weight, scale)`. In `backward`: `partial.sum(0).to(weight.dtype)`, and `None` as the gradient
# of eps.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-rmsnorm", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def rmsnorm_forward_kernel(
    x_ptr, weight_ptr, out_ptr, scale_ptr, n_cols, eps, BLOCK_SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(scale_ptr + row, scale)
    tl.store(out_ptr + row * n_cols + cols, x * scale * weight, mask=mask)
    ### END SOLUTION


@triton.jit
def rmsnorm_backward_kernel(
    x_ptr,
    weight_ptr,
    scale_ptr,
    dout_ptr,
    dx_ptr,
    partial_ptr,
    n_rows,
    n_cols,
    ROWS: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    ### BEGIN SOLUTION
    first = tl.program_id(0) * ROWS
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0).to(tl.float32)
    dweight = tl.zeros((BLOCK_SIZE,), tl.float32)
    for row in range(first, tl.minimum(first + ROWS, n_rows)):
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
        dout = tl.load(dout_ptr + row * n_cols + cols, mask=mask, other=0).to(tl.float32)
        scale = tl.load(scale_ptr + row)
        normal = x * scale
        dnormal = dout * weight
        dx = scale * (dnormal - normal * (tl.sum(dnormal * normal, axis=0) / n_cols))
        tl.store(dx_ptr + row * n_cols + cols, dx, mask=mask)
        dweight += dout * normal
    tl.store(partial_ptr + tl.program_id(0) * n_cols + cols, dweight, mask=mask)
    ### END SOLUTION


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """The normalised rows times the weight; keeps x, the weight and one float32 per row."""
        ### BEGIN SOLUTION
        n_rows, n_cols = x.shape
        out, scale = torch.empty_like(x), x.new_empty(n_rows, dtype=torch.float32)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_forward_kernel[(n_rows,)](x, weight, out, scale, n_cols, eps, BLOCK_SIZE=block_size)
        ctx.save_for_backward(x, weight, scale)
        return out
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        """The gradients of x and weight, and None for eps."""
        ### BEGIN SOLUTION
        x, weight, scale = ctx.saved_tensors
        n_rows, n_cols = x.shape
        # As many programs as an H100 has multiprocessors keep it busy; each has a partial sum to write.
        rows = max(4, triton.cdiv(n_rows, 132))
        n_programs = triton.cdiv(n_rows, rows)
        dx, partial = torch.empty_like(x), x.new_empty(n_programs, n_cols, dtype=torch.float32)
        block_size = triton.next_power_of_2(n_cols)
        rmsnorm_backward_kernel[(n_programs,)](
            *(x, weight, scale, dout.contiguous(), dx, partial, n_rows, n_cols),
            ROWS=rows,
            BLOCK_SIZE=block_size,
        )
        return dx, partial.sum(0).to(weight.dtype), None
        ### END SOLUTION


def rmsnorm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean of x's squares + eps) * weight, row by row, with gradients for x and weight."""
    ### BEGIN SOLUTION
    return RMSNorm.apply(x, weight, eps)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-rmsnorm-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("12-rmsnorm", rmsnorm)

# %% [markdown]
# Now forward and backward beside the module from the beginning of the lab.


# %%
def llama_rmsnorm(x: Tensor, weight: Tensor) -> Tensor:
    return torch.func.functional_call(LlamaRMSNorm(512, eps=1e-6), {"weight": weight}, x)


norm_costs = compare_steps(
    {
        "LlamaRMSNorm": llama_rmsnorm,
        "your kernels": lambda x, weight: rmsnorm(x, weight, 1e-6),
    },
    inputs=(tokens.float(), torch.full((512,), 1.5)),
)
traffic_of_norm = {name: cost.traffic for name, cost in norm_costs.items()}
if "your kernels" in norm_costs:
    difference = (norm_costs["your kernels"].out - norm_costs["LlamaRMSNorm"].out).abs().max()
    print(f"largest difference from LlamaRMSNorm: {difference:.1e}")
ideal_bytes = 5 * 4 * tokens.numel()
guesses.settle(
    "LlamaRMSNorm with gradients", traffic_of_norm["LlamaRMSNorm"].total_bytes / ideal_bytes
)

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_norm, 5 * 4 * tokens.numel())

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Six times. The backward pass of each operation reads what was kept and the incoming gradient, and writes another
# gradient as wide as x.
#
# </details>
#
# Your kernels read the weight once for each row of the forward pass: together that is one more matrix, 0.2 of the ideal,
# which counts here but which a GPU serves from its cache. The rest above 1.2 is the partial sums, written and read
# once, and the weight, read once by each program of the backward pass.
#
# **Question:** your kernel keeps x, which is alive anyway, and 4 bytes per row. How many more would it keep in bfloat16,
# with rows of 4096, if it kept $\hat x$ as well?
#
# <details><summary>Answer</summary>
#
# 8192 bytes per row, 2048 times as much as $r$. And $\hat x = r\,x$ takes one multiplication to compute again.
#
# </details>
#
# Libraries do the same: Liger Kernel's RMSNorm keeps x and the same 4 bytes per row, gives each multiprocessor
# one program in the backward pass, and lets PyTorch add the partial sums. `F.rms_norm` is one kernel on a GPU in recent
# versions of PyTorch, and the same chain as the module's on a CPU.

# %% [markdown]
# ## Choose what not to keep
#
# In a Llama model, the feed-forward layer is $W_\text{down}\,(\text{silu}(W_\text{gate}\,x) \odot W_\text{up}\,x)$ with
# $\text{silu}(a) = a\,\sigma(a)$, where $\sigma$ is the sigmoid. Its inner width is 3.5 times the model's in Llama-3-8B,
# so these are the largest activations of the layer. Operation by operation, PyTorch keeps three of them for the
# expression in parentheses: both inputs, and the silu of the first, because the product's backward pass needs it.
#
# Computing the third one again costs one `exp` and a few operations per element. An A100 does about 20 operations in the
# time in which it loads one bfloat16 number. With $s = \sigma(a)$ for gate $a$, up $b$ and the incoming gradient $g$:
#
# $$\text{out} = a\,s\,b, \qquad \frac{\partial L}{\partial a} = g\,b\,\bigl(s + a\,s\,(1 - s)\bigr), \qquad
# \frac{\partial L}{\partial b} = g\,a\,s$$

# %% [markdown]
# **Predict:** in the best case, the forward and the backward pass together move eight matrices: three and five. How many
# do PyTorch's two operations and their backward passes move?

# %% nbgrader={"grade": false, "grade_id": "12-predict-swiglu", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("SwiGLU by operations", None, unit="matrices")

# %% [markdown]
# [[exercise 12-swiglu]]
#
# Write `swiglu(gate, up)`, that is `silu(gate) * up`, for two contiguous tensors of the same shape and dtype, float32
# or float16, with gradients for both. One launch forward and one backward. Keep the two inputs and nothing else.
# Compute in float32 and round once, at the store. The incoming gradient may have any strides, here and in the next
# exercise. The check runs forward on two inputs, forward on others, and then backward of the first: its report counts
# three launches.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Rows play no role here: it is the vector sum with another formula. Look at the last formula above for what the
# backward pass loads, and count the stores.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A forward kernel with two loads and a store, a backward kernel with three loads and two stores, both over blocks of
# `gate.numel()` elements. The incoming gradient may be of any layout: `dout.contiguous()` costs nothing if it is
# contiguous already.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `s = tl.sigmoid(gate)` after `.to(tl.float32)`; the backward kernel stores `dout * up * (s + gate * s * (1 - s))` and
# `dout * gate * s`. `ctx.save_for_backward(gate, up)` in `forward`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-swiglu", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def swiglu_forward_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, gate * tl.sigmoid(gate) * up, mask=mask)
    ### END SOLUTION


@triton.jit
def swiglu_backward_kernel(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, n, BLOCK_SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)
    dout = tl.load(dout_ptr + offs, mask=mask).to(tl.float32)
    s = tl.sigmoid(gate)
    tl.store(dgate_ptr + offs, dout * up * (s + gate * s * (1 - s)), mask=mask)
    tl.store(dup_ptr + offs, dout * gate * s, mask=mask)
    ### END SOLUTION


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:
        """silu(gate) * up; keeps the two inputs."""
        ### BEGIN SOLUTION
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        n, block_size = gate.numel(), 512
        swiglu_forward_kernel[(triton.cdiv(n, block_size),)](
            gate, up, out, n, BLOCK_SIZE=block_size
        )
        return out
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of gate and up."""
        ### BEGIN SOLUTION
        gate, up = ctx.saved_tensors
        dgate, dup = torch.empty_like(gate), torch.empty_like(up)
        n, block_size = gate.numel(), 512
        swiglu_backward_kernel[(triton.cdiv(n, block_size),)](
            gate, up, dout.contiguous(), dgate, dup, n, BLOCK_SIZE=block_size
        )
        return dgate, dup
        ### END SOLUTION


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, with gradients for both; keeps gate and up alone."""
    ### BEGIN SOLUTION
    return SwiGLU.apply(gate, up)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-swiglu-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("12-swiglu", swiglu)

# %%
swiglu_costs = compare_steps(
    {"operation by operation": lambda gate, up: F.silu(gate) * up, "your kernels": swiglu},
    inputs=(torch.randn(64, 512), torch.randn(64, 512)),
)
for name, cost in swiglu_costs.items():
    print(f"{name:24} keeps {in_bytes(cost.kept_bytes)}")
traffic_of_swiglu = {name: cost.traffic for name, cost in swiglu_costs.items()}
moved_by_operations = traffic_of_swiglu["operation by operation"].total_bytes
guesses.settle("SwiGLU by operations", moved_by_operations / (4 * 64 * 512))

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_swiglu, 8 * 4 * 64 * 512)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Fourteen: five forward (silu reads one and writes one, the product reads two and writes one), and three for each of the
# three kernels of the backward pass.
#
# </details>
#
# What PyTorch keeps beyond yours is a third of the largest activations in a transformer layer. With an inner width of
# 14336 and 32 layers in bfloat16, it is 0.9 MB for each token.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Draw random numbers again instead of storing them
#
# A transformer layer has an activation, dropout and a residual sum in a row:
#
# $$z = y + \frac{k \odot \text{gelu}(x + b)}{1 - p}, \qquad k_i = 1 \text{ with probability } 1 - p, \text{ else } 0$$
#
# On a GPU, PyTorch's dropout writes the mask $k$ to memory, one byte per element, and reads it in the backward pass. A
# kernel does not have to. Triton's `tl.rand(seed, offset)` is a **counter-based** generator (Philox): it has no state
# that changes from call to call, and returns a number of at least 0 and below 1 that depends only on its two arguments.
# A block of offsets gives a block of numbers. If you know the seed you can compute the mask again, element by element
# and in any order.

# %% [markdown]
# **Question:** the best case moves six float32 numbers per element in both passes together. By how much does the mask's
# byte increase that, if it is written once and read once?
#
# <details><summary>Answer</summary>
#
# By a twelfth: 2 bytes on top of 24. Until the backward pass, PyTorch keeps 5 bytes per element: 4 for the argument of
# the GELU and 1 for the mask.
#
# </details>

# %% [markdown]
# [[exercise 12-bias-gelu-dropout]]
#
# Write `bias_gelu_dropout(x, bias, y, p, seed)`, that is z as above, for contiguous float32 tensors: `x` and `y` of
# shape (n_rows, n_cols), `bias` of shape (n_cols,). GELU is the exact one, $\text{gelu}(a) = a\,\Phi(a)$ with
# $\Phi(a) = \frac12\bigl(1 + \text{erf}(a/\sqrt2)\bigr)$ and the derivative $\Phi(a) + a\,e^{-a^2/2}/\sqrt{2\pi}$.
# Gradients flow to x, bias and y.
#
# One launch forward and one backward. Read x, y and the incoming gradient once; the bias may be read for each element.
# Keep only x, bias, p and seed, where p is below 1. You choose the random numbers, as long as every element has its own,
# the seed decides, and masks of neighbouring seeds have nothing to do with each other, not even in a part of the matrix.
# The gradient of the bias is the sum of that of x over the rows; PyTorch may do this sum. The check runs forward with
# three seeds, and then backward of the first.
#
# <details><summary>Hint 1: a nudge</summary>
#
# An element needs a number that no other element has, and that both passes can compute. It already has one.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# With blocks over all `x.numel()` elements, `offs` numbers the elements through the whole matrix, and the bias of an
# element is at `bias_ptr + offs % n_cols`. `keep = tl.rand(seed, offs) >= p` is the same line in both kernels.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `a = x + bias`, `phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))`, store `y + tl.where(keep, a * phi / (1 - p), 0)`.
# Backward: `dout * (phi + a * 0.3989422804014327 * tl.exp(-a * a / 2)) / (1 - p)` where kept. `backward` returns `dx,
# dx.sum(0), dout, None, None`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-bias-gelu-dropout", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def bias_gelu_dropout_forward_kernel(
    x_ptr, y_ptr, bias_ptr, out_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    y = tl.load(y_ptr + offs, mask=mask)
    a = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs % n_cols, mask=mask)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    gelu = a * phi
    keep = tl.rand(seed, offs) >= p
    tl.store(out_ptr + offs, y + tl.where(keep, gelu / (1 - p), 0), mask=mask)
    ### END SOLUTION


@triton.jit
def bias_gelu_dropout_backward_kernel(
    x_ptr, dout_ptr, bias_ptr, dx_ptr, n, n_cols, p, seed, BLOCK_SIZE: tl.constexpr
):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    dout = tl.load(dout_ptr + offs, mask=mask)
    a = tl.load(x_ptr + offs, mask=mask) + tl.load(bias_ptr + offs % n_cols, mask=mask)
    phi = 0.5 * (1 + tl.erf(a * 0.7071067811865476))
    slope = phi + a * 0.3989422804014327 * tl.exp(-a * a / 2)
    keep = tl.rand(seed, offs) >= p
    tl.store(dx_ptr + offs, tl.where(keep, dout * slope / (1 - p), 0), mask=mask)
    ### END SOLUTION


class BiasGeluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
        """y + dropout(gelu(x + bias)); keeps x, bias, p and seed."""
        ### BEGIN SOLUTION
        ctx.save_for_backward(x, bias)
        ctx.p, ctx.seed = p, seed
        out = torch.empty_like(x)
        n, block_size = x.numel(), 512
        bias_gelu_dropout_forward_kernel[(triton.cdiv(n, block_size),)](
            x, y, bias, out, n, x.shape[1], p, seed, BLOCK_SIZE=block_size
        )
        return out
        ### END SOLUTION

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple:
        """The gradients of x, bias and y, and None for p and seed."""
        ### BEGIN SOLUTION
        x, bias = ctx.saved_tensors
        dx = torch.empty_like(x)
        n, block_size = x.numel(), 512
        bias_gelu_dropout_backward_kernel[(triton.cdiv(n, block_size),)](
            x, dout.contiguous(), bias, dx, n, x.shape[1], ctx.p, ctx.seed, BLOCK_SIZE=block_size
        )
        return dx, dx.sum(0), dout, None, None
        ### END SOLUTION


def bias_gelu_dropout(x: Tensor, bias: Tensor, y: Tensor, p: float, seed: int) -> Tensor:
    """y + dropout(gelu(x + bias), p), the mask drawn from seed; gradients for x, bias and y."""
    ### BEGIN SOLUTION
    return BiasGeluDropout.apply(x, bias, y, p, seed)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-bias-gelu-dropout-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("12-bias-gelu-dropout", bias_gelu_dropout)

# %%
dropout_costs = compare_steps(
    {
        "operation by operation": lambda x, bias, y: y + F.dropout(F.gelu(x + bias), 0.1),
        "your kernels": lambda x, bias, y: bias_gelu_dropout(x, bias, y, 0.1, 0),
    },
    inputs=(torch.randn(64, 512), torch.randn(512), torch.randn(64, 512)),
    count_inputs=False,
)
for name, cost in dropout_costs.items():
    print(f"{name:24} keeps {in_bytes(cost.kept_bytes)} beside its inputs")
traffic_of_dropout = {name: cost.traffic for name, cost in dropout_costs.items()}

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_dropout, 6 * 4 * 64 * 512)

# %% [markdown]
# The ideal is six matrices: x and y in, z out; x and $\partial L / \partial z$ in, $\partial L / \partial x$ out. The
# gradient of y is that of z, unchanged. Your kernels also read the bias for each element, which a cache serves on a GPU,
# and dx once more for the sum.
#
# Beside their inputs, the operations keep 256 KiB and your kernels nothing. On a GPU the operations would keep 160 KiB:
# 128 for the argument of the GELU, and 32 for the mask. On a CPU, PyTorch keeps the mask in float32, so it takes 128,
# too.
#
# Two more things matter in practice. Philox takes about a hundred integer operations and makes four numbers, of which
# `tl.rand` uses one; `tl.rand4x` returns all four. And a training loop draws a fresh seed for each call from PyTorch's
# generator. With a fixed seed every step would drop the same elements.

# %% [markdown]
# ## Repair a kernel: an optimizer's step
#
# After the backward pass, AdamW goes over every parameter $\theta$ with its gradient $g$ and two moments. There is no
# matrix product in it, so it only moves memory: for a model of 8 billion parameters in float32, reading the gradients
# alone means 32 GB.
#
# $$\theta \leftarrow (1 - \eta\lambda)\,\theta, \quad m \leftarrow \beta_1 m + (1-\beta_1)\,g, \quad
# v \leftarrow \beta_2 v + (1-\beta_2)\,g^2, \quad
# \theta \leftarrow \theta - \eta\,\frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \varepsilon}$$
#
# Here $\eta$ is the learning rate (`lr`), $\lambda$ the decay (`weight_decay`), and step $t$ counts from 1. Nothing on
# the right comes from another element. So one kernel can do it: four reads and three writes for each parameter.

# %% [markdown]
# **Predict:** how many times the ideal does `torch.optim.AdamW(foreach=False)` move, operation by operation?

# %% nbgrader={"grade": false, "grade_id": "12-predict-adamw", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("AdamW by operations", None, unit="times the ideal")

# %% [markdown]
# [[exercise 12-adamw]]
#
# Write `adamw_step(param, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay)`, which takes the step
# in place. The four tensors are contiguous float32 vectors of the same length; `step` is an int, the others are floats.
# One launch: four reads and three writes per element. The gradient stays as it is.
#
# You need not start from nothing. A colleague has written the kernel below. It compiles and it runs, but it has four
# mistakes: find them in the code before you let the check find them.
#
# ```python
# @triton.jit
# def adamw_kernel(param_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, n, lr, beta1, beta2, eps,
#                  weight_decay, correction1, correction2, BLOCK_SIZE: tl.constexpr):
#     offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
#     mask = offs < n
#     param = tl.load(param_ptr + offs, mask=mask)
#     grad = tl.load(grad_ptr + offs, mask=mask)
#     exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)
#     exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask)
#     exp_avg = (beta1 * exp_avg + (1 - beta1) * grad) / correction1
#     exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
#     grad = grad + weight_decay * param
#     param = param - lr * exp_avg / tl.sqrt(exp_avg_sq / correction2 + eps)
#     tl.store(param_ptr + offs, param, mask=mask)
#     tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
#     tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
#
# # in adamw_step, where the corrections are 1 - beta1**step and 1 - beta2**step:
# adamw_kernel[(param.numel() // 512,)](..., BLOCK_SIZE=512)
# ```
#
# <details><summary>Hint 1: a nudge</summary>
#
# Compare the code with the formulas line by line. What does the *next* step read? What does the last block of a tensor
# with 700 elements get?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Look at what is stored in `exp_avg`, at what the weight decay changes, at where $\varepsilon$ is added, and at how the
# number of programs is rounded. A kernel may store where it has loaded: no other program touches these elements.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Store the moments before their correction. Decay the parameter itself, by `1 - lr * weight_decay`, before the update.
# `denominator = tl.sqrt(exp_avg_sq) / tl.sqrt(correction2) + eps`, and the parameter loses `lr / correction1 * exp_avg /
# denominator`. The grid is `(triton.cdiv(n, 512),)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "12-adamw", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def adamw_kernel(
    param_ptr,
    grad_ptr,
    exp_avg_ptr,
    exp_avg_sq_ptr,
    n,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    correction1,
    correction2,
    BLOCK_SIZE: tl.constexpr,
):
    ### BEGIN SOLUTION
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    param = tl.load(param_ptr + offs, mask=mask)
    grad = tl.load(grad_ptr + offs, mask=mask)
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask)
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    param = param * (1 - lr * weight_decay)
    param = param - lr / correction1 * exp_avg / (tl.sqrt(exp_avg_sq) / tl.sqrt(correction2) + eps)
    tl.store(param_ptr + offs, param, mask=mask)
    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)
    ### END SOLUTION


def adamw_step(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> None:
    """One step of AdamW in place, the step-th from 1 on, by one launch."""
    ### BEGIN SOLUTION
    n, block_size = param.numel(), 512
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    adamw_kernel[(triton.cdiv(n, block_size),)](
        *(param, grad, exp_avg, exp_avg_sq, n, lr, beta1, beta2, eps, weight_decay),
        *(correction1, correction2),
        BLOCK_SIZE=block_size,
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "12-adamw-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("12-adamw", adamw_step)


# %%
def step_of_pytorch(**options):
    param = nn.Parameter(torch.randn(8192))
    optimizer = torch.optim.AdamW([param], **options)
    param.grad = torch.randn(8192)
    optimizer.step()  # makes the moments
    return optimizer.step


state = [torch.randn(8192).abs() for _ in range(4)]
traffic_of_adamw = compare_traffic(
    {
        "AdamW(foreach=False)": step_of_pytorch(foreach=False),
        "AdamW(fused=True)": step_of_pytorch(fused=True),
        "your kernel": lambda: adamw_step(*state, 2, 1e-3, 0.9, 0.999, 1e-8, 0.01),
    }
)
moved_by_operations = traffic_of_adamw["AdamW(foreach=False)"].total_bytes
guesses.settle("AdamW by operations", moved_by_operations / (7 * 4 * 8192))

# %% tags=["figure"]
labkit.figures.traffic_bars(traffic_of_adamw, 7 * 4 * 8192)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Nearly three times. The ideal is 28 bytes per parameter, four reads and three writes of 4 bytes: 14 ms for a billion
# parameters at 2 TB/s.
#
# </details>
#
# `AdamW(fused=True)` is question 2 of the list: it exists. Its signature lets it write the gradient too (to undo a loss
# scale), and the meter counts that. It also takes all tensors of a model in a few launches, which for a thousand small
# tensors matters more than the bytes.

# %% [markdown]
# ## What remains for speed
#
# Without a GPU, bytes are the measure of a memory-bound kernel. Two more things are decided on the card.
#
# **Autotuning.** The best block and number of warps depend on the GPU and on the size. `@triton.autotune(configs=[
# triton.Config({"BLOCK_SIZE": 512}, num_warps=4), ...], key=["n"])` above `@triton.jit` times each configuration once
# for each new `n` and keeps the fastest. The first call is therefore slow. And it runs the kernel several times, so a
# kernel that works in place takes several steps instead of one unless `restore_value=["param_ptr", ...]` names all that
# it writes. The interpreter times nothing: it runs each configuration once, as a GPU would, and keeps the first.
#
# **libdevice.** `tl.exp`, `tl.sqrt` and `tl.erf` are Triton's own. `triton.language.extra.libdevice` has NVIDIA's whole
# library, `tanh`, `log1p`, `erfinv` or `pow`, each in a precise and some in a fast version. A memory-bound kernel waits
# for memory anyway, so take the precise one.

# %% tags=["varies"]
if has_gpu():
    n = 2**26
    x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
    copied_ms = bench(lambda: y.copy_(x)).median_ms
    added_ms = bench(lambda: add(x, y)).median_ms
    print(f"copy: {8 * n / copied_ms / 1e6:,.0f} GB/s, add: {12 * n / added_ms / 1e6:,.0f} GB/s")
else:
    print("No GPU here, so nothing is timed: bytes against the ideal are the measure.")

# %% [markdown]
# ## What you measured
#
# Bytes as multiples of the ideal, and how many kernels a GPU would launch.


# %%
def summary_row(name: str, moved, ideal: float) -> None:
    kernels = len(moved.launches) + len(moved.operations)
    print(f"{name:44}{kernels:>8}{moved.total_bytes / ideal:>9.2f}x")


print(f"{'':44}{'kernels':>8}{'bytes':>10}")
for title, found, ideal in (
    ("softmax", traffic, 2 * matrix.nbytes),
    ("RMSNorm with gradients", traffic_of_norm, 5 * 4 * tokens.numel()),
    ("SwiGLU with gradients", traffic_of_swiglu, 8 * 4 * 64 * 512),
    ("bias, GELU, dropout", traffic_of_dropout, 6 * 4 * 64 * 512),
    ("step of AdamW", traffic_of_adamw, 7 * 4 * 8192),
):
    for name, moved in found.items():
        summary_row(f"{title}, {name}", moved, ideal)

# %%
guesses.score()

# %%
progress("12", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "12",
    "RMSNorm in one kernel each way",
    speed=lambda: " moved instead of ".join(
        f"{traffic_of_norm[name].total_bytes / 2**20:.1f} MiB"
        for name in ("your kernels", "LlamaRMSNorm")
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 points each. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) If the activation is fused into the matrix product before it, one write and one read of the
# product's result are saved. Why does nobody fuse a whole transformer layer into one kernel? Name two things that set a
# limit, and say for one of them at which size it does.

# %% [markdown] nbgrader={"grade": true, "grade_id": "12-open-one-kernel", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Registers and shared memory: a program can keep what fits on one multiprocessor, 64 Ki registers of 4 bytes (256 KiB)
# and up to 227 KiB of shared memory on an H100. A row of 4096 float32 is 16 KiB and fits; the inner row of a feed-forward
# layer for a tile of 128 tokens, 128 x 14336 x 2 bytes = 3.7 MB, does not. More live values also mean fewer programs on
# a multiprocessor, or spills.
# Dependence between programs: a matrix product needs whole rows, which many programs compute; they can wait for one
# another only at the end of a launch (or through atomics on global memory). So a kernel ends where every output needs
# all inputs.
# Also right: what is computed again by each program that needs it grows; products are compute-bound, so there is little to gain; a kernel for each shape and dtype must be maintained.
#
# Marks: 1/2 for each of two limits; 1 for a number with its unit (a factor of 2 is fine).
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points) `softmax` of this lab reads each element once as long as a row fits into a block. A colleague
# measures on an A100 and finds your kernel at 90 % of the memory's rate for rows of 4096, at 20 % for rows of 64, and
# slow again for rows of 100,000. Explain both ends, and say what you would change for each.

# %% [markdown] nbgrader={"grade": true, "grade_id": "12-open-both-ends", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Rows of 64: a program with 4 warps has 128 threads for 64 elements, half of them idle, and each loads 4 bytes; the cost
# of starting a program and of its two reductions is spread over 256 bytes. Change: several rows a program (a block of
# rows x 64), or one warp a program.
# Rows of 100,000: the block is 131,072 lanes, 24 % of them masked; in float32 it is 512 KiB, more than the 256 KiB of
# registers of a multiprocessor, so that values spill to memory and are read again. Change: more warps up to some size,
# then a loop over pieces of the row with a running maximum and sum (two reads instead of one), or several programs a
# row that combine their statistics.
#
# Marks: 1/2 for each explanation, 1/2 for each change. "Cache misses" alone explains neither.
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Triton's own tutorials: *Vector Addition*, *Fused Softmax*, *Low-Memory Dropout* and *Layer Normalization*.
# - Sasha Rush's *Triton Puzzles*, twelve small kernels with pictures.
# - Horace He, *Making Deep Learning Go Brrrr From First Principles* (2022): compute, memory and overhead.
# - Liger Kernel's folder `ops`, for RMSNorm, SwiGLU and more as they are used in training.
#
# **Sources.** The texts above and PyTorch's documentation of `torch.autograd.Function`. Triton: Philippe Tillet, H. T.
# Kung and David Cox, *Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations* (2019).
# RMSNorm: Biao Zhang and Rico Sennrich (2019). GLU variants: Noam Shazeer (2020). Philox: John Salmon and others,
# *Parallel Random Numbers: As Easy as 1, 2, 3* (2011). AdamW: Ilya Loshchilov and Frank Hutter (2019). Pin-Lun Hsu and
# others, *Liger Kernel: Efficient Triton Kernels for LLM Training* (2024). Rates: NVIDIA's data sheet of the A100 (80 GB).
