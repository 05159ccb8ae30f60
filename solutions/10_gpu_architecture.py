# %% [markdown]
# # Lab 10: Grids, memory, and a kernel's life
#
# Two kernels read the same matrix of 256 × 256 numbers and write it again, one as it is, the other transposed. Both
# ask for the same bytes. But the second one moves **4.5 times** as much memory. You repair that with shared memory, and
# now the kernel makes **67,584** passes over shared memory where 4,096 would do. You have no GPU. **How can you know
# this, line by line, and get both to the minimum?**
#
# In this lab you write kernels in CUDA C++, the language in which most of PyTorch's own kernels are written. You will
# index a grid of threads, predict what an access costs before it runs, rewrite a kernel so that it moves no byte too
# many, let threads of a block work together without a race, and work out how many of them fit on a chip. At the end you
# can read a kernel as what it is: a plan for which thread touches which byte when.
#
# [[time]]
#
# You should have met C: its `for`, `if` and pointers are all that you need of it. No earlier lab is needed.
#
# **No GPU is needed either.** NVIDIA's own compiler, NVRTC, translates your kernel to PTX, the assembly language of
# NVIDIA's GPUs. The lab executes this PTX on the CPU, every thread of the whole grid, and counts what a profiler on a
# GPU would count. It also finds what a GPU would not tell you: accesses past the end, races, barriers that not all
# threads reach. It does not tell times. NVRTC comes with the labs on Linux and Windows; for macOS there is none, so this
# lab needs another machine there.

# %% nbgrader={"grade": false, "grade_id": "10-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import itertools
import math
import textwrap

import torch

import labkit
import labkit.figures
from labkit import Predictions, check, progress
from labkit.exercises.lab10.chips import A100, B200, H100, RTX_4090, RTX_5090, Chip
from labkit.exercises.lab10.traces import PROGRAMS, Trace, accesses, random_trace
from labkit.material import lab10
from labkit.simt import compile_cuda
from labkit.simt.cubin import compile_cubin

guesses = Predictions("10")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# First the two kernels of the question. They are explained below. A **sector** is an aligned piece of 32 bytes, the least
# that a GPU moves to or from its memory.

# %%
two_kernels = r"""
__global__ void copy(const float* x, float* y) {  // a block for each row, a thread for each column
  y[blockIdx.x * 256 + threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
}

__global__ void naive_transpose(const float* x, float* y) {
  y[threadIdx.x * 256 + blockIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
}
"""
kernels = compile_cuda(two_kernels)
x = torch.randn(256, 256)
copied, transposed = torch.empty(256, 256), torch.empty(256, 256)
copy_profile = kernels["copy"].launch(256, 256, x, copied)
naive_profile = kernels["naive_transpose"].launch(256, 256, x, transposed)
assert torch.equal(copied, x) and torch.equal(transposed, x.T)
for profile in (copy_profile, naive_profile):
    asked = profile.global_load_bytes + profile.global_store_bytes
    print(
        f"{profile.name:16} asks for {asked:,} bytes and touches {profile.global_sectors:,} sectors, "
        f"{32 * profile.global_sectors:,} bytes"
    )
print(f"{naive_profile.global_sectors / copy_profile.global_sectors:.1f} times as many")

# %% [markdown]
# ## A thread for each element
#
# A kernel is a function that many threads execute, each with a number of its own. The call chooses how many:
# `kernel<<<grid, block>>>(...)` in C++, and `kernel.launch(grid, block, ...)` here. A **block** is a group of up to
# 1024 threads that run on the same processor of the GPU, and the **grid** is all the blocks. Both have up to three
# dimensions, so that threads can be numbered as the data is. Within the kernel,
#
# - `threadIdx.x` and `threadIdx.y` are the thread's place in its block, and begin at 0 in every block,
# - `blockIdx.x` and `blockIdx.y` are the block's place in the grid,
# - `blockDim.x` and `blockDim.y` are the size of a block, `gridDim.x` and `gridDim.y` of the grid.
#
# So `blockIdx.x * blockDim.x + threadIdx.x` numbers the threads of the whole grid along x. The grid consists of whole
# blocks, and a matrix rarely does: along each axis the number of blocks is rounded up, in Python `-(-cols // 32)`. **The
# threads past the edge run like all others.** Nothing keeps them from reading and writing memory that is not theirs, so
# the kernel has to.
#
# A kernel is given a pointer to the first element, and no shape. PyTorch stores a matrix row by row, so the element in
# row `r` and column `c` lies at index `r * cols + c`.

# %% tags=["figure"]
labkit.figures.thread_grid(rows=11, cols=40, block=(16, 4))

# %% [markdown]
# The hardware does not run threads one by one. It takes 32 that follow one another, a **warp** (blue), and executes
# each instruction for all of them at once. Along x the threads of a block follow one another directly, then comes the
# next row of y. The 32 places of a warp are called its **lanes**. This will matter in the next section. Here it only
# means that idle threads are not free: a warp with one working lane takes as many instructions as a full one.

# %% [markdown]
# **Predict:** a matrix of 200 rows and 300 columns is covered by blocks of 32 × 32 threads. How many threads have no
# element?

# %% nbgrader={"grade": false, "grade_id": "10-predict-idle", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("threads without an element", None, unit="threads")

# %% [markdown]
# [[exercise 10-indexing]]
#
# Write the kernel `adjust`, which changes an image of `rows` × `cols` numbers in place: the element in row r and column c
# becomes `gain[r] * image[r, c] + bias[c]`. One thread changes one element, stores it once, and x runs along the
# columns. The check launches it with blocks of several shapes, on matrices that no block divides, and once with more
# blocks than needed.
#
# Write the C++ between the braces, within the string. (The grader takes the string from the cell's text, so leave it one
# plain string.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Work out two numbers first, the thread's column and its row. What do you have to know about them before you may touch
# the image, `gain` or `bias`?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The column comes from x, the row from y, both as `blockIdx * blockDim + threadIdx`. A thread whose column is not below
# `cols`, or whose row is not below `rows`, has nothing to do: `return`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `int c = blockIdx.x * blockDim.x + threadIdx.x;`, the same with y for `r`, then
# `if (r >= rows || c >= cols) return;`, then one assignment to `image[r * cols + c]`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-indexing", "locked": false, "schema_version": 3, "solution": true, "task": false}
adjust = r"""
__global__ void adjust(float* image, const float* gain, const float* bias, int rows, int cols) {
  // ### BEGIN SOLUTION
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  int r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= rows || c >= cols) return;
  image[r * cols + c] = gain[r] * image[r * cols + c] + bias[c];
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-indexing-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("10-indexing", adjust)

# %% [markdown]
# Your kernel on 200 × 300 numbers, and under it what each of its lines cost. "warp instr." counts an instruction once for
# each warp that executes it. A line of C++ becomes several instructions, and the head of the kernel is where it reads its
# arguments. "passes" belong to shared memory and "divergent" to branches; both come later.

# %%
rows, cols = 200, 300
grid, block = (-(-cols // 32), -(-rows // 32)), (32, 32)
image = torch.ones(rows, cols)
adjust_profile = compile_cuda(adjust)["adjust"].launch(
    grid, block, image, torch.ones(rows), torch.ones(cols), rows, cols
)
n_idle = grid[0] * block[0] * grid[1] * block[1] - image.numel()
print(f"{grid[0]} x {grid[1]} blocks, {n_idle:,} threads without an element")
guesses.settle("threads without an element", n_idle)

# %% tags=["figure"]
labkit.figures.source_heat(adjust_profile, "sectors")

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The grid has 10 × 7 = 70 blocks of 1024 threads, which is 71,680 threads for 60,000 elements. 11,680 threads have none,
# one in six. With blocks of 32 × 8 threads there are 10 × 25 blocks and 4,000 idle threads: only columns are rounded up.
#
# </details>
#
# **In practice** this launch is `adjust<<<dim3(10, 7), dim3(32, 32)>>>(image, gain, bias, 200, 300);`, compiled by `nvcc`
# or, within Python, by `torch.utils.cpp_extension.load_inline` or `torch.cuda._compile_kernel`. On a machine with a GPU
# `launch` runs there if the tensors do, by the same call.

# %% [markdown]
# ## What an access costs
#
# When a warp executes a load, its 32 lanes name 32 addresses. This is one **request**. The memory does not answer lane
# by lane: it fetches whole sectors of 32 bytes, each of them once for the request, however many lanes want a part of it.
# So the price of a request is the number of different sectors that its lanes touch:
#
# $$\text{sectors of a request} = \Big|\Big\{ \lfloor \text{address}_\ell / 32 \rfloor : \ell \text{ a lane that reads}
# \Big\}\Big|$$
#
# 32 lanes that read 32 neighbouring floats touch 128 bytes, 4 sectors, and every byte that is moved is used. Such an
# access is **coalesced**. 32 lanes that read every 8th float touch 32 sectors, and 7 of 8 bytes are moved for nothing. Stores
# are counted the same way. Nothing in the source shows this: `x[i]` and `x[8 * i]` look alike.
#
# Three more rules, and you can predict every access of this lab. A lane that does not take part, because of an `if` or
# because it is past the end, touches nothing; a warp in which no lane takes part makes no request. A tensor begins at a
# multiple of 256 bytes, but a slice of it, `x[1:]`, begins in the middle of a sector. And **a warp never holds threads of
# two blocks**: a block of 48 threads is a warp of 32 lanes and one of 16.

# %% tags=["figure"]
labkit.figures.warp_player()

# %% [markdown]
# **Predict:** a float is 4 bytes, and 32 lanes read 32 neighbouring floats of `x[1:]`. How many sectors does the request
# touch?

# %% nbgrader={"grade": false, "grade_id": "10-predict-misaligned", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sectors of 32 floats of x[1:]", None, unit="sectors")

# %% [markdown]
# [[exercise 10-sectors]]
#
# Write `load_cost(n, block, size, stride, offset, every)`, in Python this time. It returns two numbers, the requests and
# the sectors that this load costs in the whole launch:
#
#     int i = blockIdx.x * blockDim.x + threadIdx.x;
#     if (i < n && i % every == 0) value = x[i * stride];
#
# Blocks have `block` threads, and the grid has as many blocks as it takes. An element of `x` has `size` bytes (4, 8 or
# 16), and `x[0]` lies `offset` bytes past a multiple of 32. With `every` = 1 each thread below n reads.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What are the numbers i of the threads in one warp? Do it for a single warp first, then go over the warps of a block, and
# over the blocks.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# For each warp, collect the sectors of its lanes in a set: lane i's element begins at byte `offset + i * stride * size`,
# and never straddles two sectors. An empty set is no request.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Two loops, `for first in range(0, n, block)` and `for warp in range(first, first + block, 32)`. The lanes are
# `range(warp, min(warp + 32, first + block, n))`, of which those with `i % every == 0` go into the set.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "10-sectors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def load_cost(
    n: int, block: int, size: int, stride: int, offset: int, every: int
) -> tuple[int, int]:
    """The requests and the sectors of `if (i < n && i % every == 0) value = x[i * stride];` in a whole launch."""
    ### BEGIN SOLUTION
    requests = sectors = 0
    for first in range(0, n, block):
        for warp in range(first, first + block, 32):
            lanes = range(warp, min(warp + 32, first + block, n))
            touched = {(offset + i * stride * size) // 32 for i in lanes if i % every == 0}
            requests += bool(touched)
            sectors += len(touched)
    return requests, sectors
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-sectors-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("10-sectors", load_cost)

# %% [markdown]
# Is it true? Here is the load as a kernel, launched on 65,536 floats, beside what you predict. All rows but the last ask
# for the same 262,144 bytes; only where they lie is different.

# %%
probe = compile_cuda(r"""
__global__ void probe(const float* x, float* y, int n, int stride, int every) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 0;
  if (i < n && i % every == 0) value = x[i * stride];
  if (value == 12345.0f) *y = value;  // so that the compiler keeps the load; it is never true
}
""")["probe"]
n, memory = 65_536, torch.zeros(8 * 65_536 + 1)
print(f"{'':26}{'predicted':>10}{'counted':>10}{'bytes used':>12}")
for stride, offset, every in ((1, 0, 1), (1, 1, 1), (2, 0, 1), (4, 0, 1), (8, 0, 1), (1, 0, 8)):
    counted = probe.launch(n // 256, 256, memory[offset:], torch.zeros(1), n, stride, every)
    predicted = tuple(load_cost(n, 256, 4, stride, 4 * offset, every))
    is_right = predicted == (counted.global_load_requests, counted.global_load_sectors)
    used = counted.global_load_bytes / (32 * counted.global_load_sectors)
    name = f"stride {stride}, offset {offset}, every {every}"
    mark = "" if is_right else "  not as predicted"
    print(f"{name:26}{predicted[1]:10,}{counted.global_load_sectors:10,}{used:12.0%}{mark}")
guesses.settle("sectors of 32 floats of x[1:]", load_cost(32, 32, 4, 1, 4, 1)[1])

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Five. 128 bytes from byte 4 on end in byte 131, so they lie in the sectors 0 to 4. A misaligned access costs a quarter
# more, and even that may be free where the cache still holds the sector that the next warp shares with this one.
# Strides are the expensive ones.
#
# </details>
#
# **Why 128 bytes stand in so many texts.** A line of the cache has 128 bytes, four sectors, and old GPUs fetched whole
# lines. Since Pascal (2016) each sector of a line is fetched on its own.
#
# Now an example of how memory is lost by a good habit. `axpy` computes y = a·x + y. It is launched with fewer threads
# than there are elements, so each thread has several. Whoever comes from the CPU gives each thread a piece of its own,
# one element after the other: on a CPU, that is what the cache wants.

# %%
pieces = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  int n_threads = gridDim.x * blockDim.x;
  int per_thread = (n + n_threads - 1) / n_threads;
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * per_thread;
  for (int i = first; i < min(first + per_thread, n); i++) y[i] = a * x[i] + y[i];
}
"""


def run_axpy(source: str, n: int = 65_536):
    x, y = torch.arange(n).float(), torch.ones(n)
    profile = compile_cuda(source)["axpy"].launch(16, 256, 2.0, x, y, n)
    assert torch.equal(y, 2 * torch.arange(n) + 1), (
        "the result is wrong: what does the check above say?"
    )
    return profile


pieces_profile = run_axpy(pieces)
least = 3 * 65_536 * 4 // 32
print(
    f"{pieces_profile.global_sectors:,} sectors, where {least:,} hold all the bytes: "
    f"{pieces_profile.global_sectors / least:.0f} times as many"
)

# %% [markdown]
# [[exercise 10-coalescing]]
#
# Rewrite `axpy` so that it touches as few sectors as its bytes fill; the check allows 5 % more. It is launched with blocks
# of any multiple of 32 threads, with fewer threads than elements, and n is any number.
#
# <details><summary>Hint 1: a nudge</summary>
#
# In the first round of the loop, which elements do lanes 0, 1 and 2 of a warp have? Which should they have?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In each round, all threads of the grid take neighbouring elements, and in the next round they all move on together, by as
# many elements as there are threads. This is called a **grid-stride loop**.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Start at the thread's number in the grid, go on while `i < n`, and step by `gridDim.x * blockDim.x`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-coalescing", "locked": false, "schema_version": 3, "solution": true, "task": false}
axpy = r"""
__global__ void axpy(float a, const float* x, float* y, int n) {
  // ### BEGIN SOLUTION
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-coalescing-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("10-coalescing", axpy)

# %%
axpy_profile = run_axpy(axpy)
for name, profile in {"a piece for each thread": pieces_profile, "yours": axpy_profile}.items():
    print(
        f"{name:24}{profile.global_requests:8,} requests {profile.global_sectors:8,} sectors, "
        f"{profile.global_sectors / profile.global_requests:.0f} a request"
    )

# %% [markdown]
# Both kernels make the same requests. On a GPU the cache would catch some of the difference, because the next round of
# the loop wants the same sectors again, if they are still there. Do not count on it: each processor of an A100 holds up
# to 2048 threads, and two sectors for each of them, one of x and one of y, are 131 KB. That is two thirds of the 192 KB
# that its cache and its shared memory have together.
#
# **In practice** this is the first thing to look at in Nsight Compute: "Memory Workload Analysis" says "on average, only
# 4.0 of the 32 bytes transmitted per sector are utilized by each thread", and the source view names the line.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## A detour through shared memory
#
# Back to the transpose. `y[c * rows + r] = x[r * cols + c]`: neighbouring threads differ in c, so they read
# neighbouring elements, and write elements that are a whole row of y apart. Let neighbouring threads differ in r
# instead, and the loads are a row apart. **One of the two is strided whatever you do**, as long as a thread writes the
# element that it has read.
#
# So let it write another one. The threads of a block share a small memory of their own, on the processor itself, some 100
# to 228 KB. It is called **shared memory**, and has no sectors: any 32 words can be read in one go, with one exception that
# comes later. In CUDA C++ it is declared within the kernel:
#
#     __shared__ float tile[32][32];
#
# A block copies a tile of x to shared memory, row by row as it lies in x. Then it writes the tile to y, row by row as it
# lies in y. Rows of y are columns of the tile, so this is where the matrix is turned: in the memory where it does not
# matter.
#
# Between the two steps a thread needs what other threads have written. `__syncthreads()` is a **barrier**: no thread of
# the block goes on before all of them have come to it. Warps run in any order, so without the barrier a warp may read places
# that no other has filled yet. All threads of the block have to reach the barrier, so it never stands in a branch that
# some of them skip, and no thread returns before it.

# %% [markdown]
# [[exercise 10-tile]]
#
# Write the kernel `tiled_transpose`: y, with `cols` rows and `rows` columns, is the transpose of x. It is launched with
# blocks of (32, 8) threads, one block for each tile of 32 × 32 elements of x, with `blockIdx.x` along the columns of x. So
# each thread has four elements, 8 rows apart. Sides may be any numbers.
#
# The check counts the sectors of both the loads and the stores, and allows no more than the rows of the tiles fill, 32 elements each.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A warp is one row of the block: 32 threads with `threadIdx.x` from 0 to 31. Both when x is read and when y is written,
# `threadIdx.x` has to be added to the last index, the one that is not multiplied by anything.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Two loops over the rows of a tile, `for (int i = threadIdx.y; i < 32; i += 8)`, with the barrier between them. The first
# fills row i of the tile. The second writes row i of the tile's place in y, which is column i of the tile. The guards
# differ: in the first, rows count up to `rows`, in the second up to `cols`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Read `x[(top + i) * cols + left + threadIdx.x]` into
# `tile[i][threadIdx.x]`, then write `tile[threadIdx.x][i]` to `y[(left + i) * rows + top + threadIdx.x]`, each where its
# row and column exist.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-tile", "locked": false, "schema_version": 3, "solution": true, "task": false}
tiled_transpose = r"""
__global__ void tiled_transpose(const float* x, float* y, int rows, int cols) {
  __shared__ float tile[32][32];
  int left = blockIdx.x * 32, top = blockIdx.y * 32;  // where the tile begins in x
  // ### BEGIN SOLUTION
  for (int i = threadIdx.y; i < 32; i += 8)
    if (top + i < rows && left + threadIdx.x < cols)
      tile[i][threadIdx.x] = x[(top + i) * cols + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (left + i < cols && top + threadIdx.x < rows)
      y[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-tile-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("10-tile", tiled_transpose)


# %%
def run_transpose(source: str, name: str):
    x, y = torch.randn(256, 256), torch.empty(256, 256)
    profile = compile_cuda(source)[name].launch((8, 8), (32, 8), x, y, 256, 256)
    assert torch.equal(y, x.T), "the result is wrong: what does the check above say?"
    return profile


tiled_profile = run_transpose(tiled_transpose, "tiled_transpose")
for profile in (copy_profile, naive_profile, tiled_profile):
    print(f"{profile.name:16}{profile.global_sectors:8,} sectors")

# %% [markdown]
# The sectors are those of a plain copy. But there is a second number in the profile, and the figure shows the lines of
# your own kernel that pay it.

# %%
print(
    f"{tiled_profile.shared_requests:,} requests to shared memory, which take "
    f"{tiled_profile.shared_wavefronts:,} passes"
)

# %% tags=["figure"]
labkit.figures.source_heat(tiled_profile, "passes")

# %% [markdown]
# ## Thirty-two banks
#
# Shared memory consists of 32 **banks**. Word number w (of 4 bytes) lies in bank w mod 32, and a bank hands out one word at
# a time. If the 32 lanes of a warp want words of 32 different banks, all are served in one **pass** (Nsight Compute calls it a
# wavefront). If k lanes want different words of one bank, these take k passes: a **bank conflict**. Lanes that want the
# same word share it, so reading one word by all lanes is one pass, too.
#
# A row of the tile has 32 neighbouring words, one in each bank. A column has words that are a row's length apart. Move the
# slider and look at the columns.

# %% tags=["figure"]
labkit.figures.bank_player()

# %% [markdown]
# **Predict:** the rows of the tile have 40 words in place of 32. How many passes does it take to read a column of 32
# words?

# %% nbgrader={"grade": false, "grade_id": "10-predict-forty", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("passes for a column, rows of 40 words", None, unit="passes")

# %% [markdown]
# [[exercise 10-transpose]]
#
# Write the kernel `transpose`: the same as before, launched in the same way, with the same sectors, and **no bank conflicts
# at all**. There are two well-known ways, and both are a change of a few characters to your tile.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The words of a column are in the same bank because a row has 32 words. Who says that it must?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Either make the rows longer than the matrix needs, so that each begins one bank further on (**padding**), or keep them and
# store row i in a different order, which is undone when it is read (**swizzling**).
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `tile[32][33]`. Or: column j of row i is stored at `tile[i][j ^ i]`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-transpose", "locked": false, "schema_version": 3, "solution": true, "task": false}
transpose = r"""
__global__ void transpose(const float* x, float* y, int rows, int cols) {
  int left = blockIdx.x * 32, top = blockIdx.y * 32;
  // ### BEGIN SOLUTION
  __shared__ float tile[32][33];
  for (int i = threadIdx.y; i < 32; i += 8)
    if (top + i < rows && left + threadIdx.x < cols)
      tile[i][threadIdx.x] = x[(top + i) * cols + left + threadIdx.x];
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8)
    if (left + i < cols && top + threadIdx.x < rows)
      y[(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-transpose-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("10-transpose", transpose)

# %%
column_reader = r"""
__global__ void column(float* y) {
  __shared__ float tile[32][LENGTH];
  for (int i = 0; i < 32; i++) tile[i][threadIdx.x] = i;
  __syncwarp();
  y[threadIdx.x] = tile[threadIdx.x][0];
}
"""
for length in (32, 33, 34, 36, 40):
    kernel = compile_cuda(column_reader.replace("LENGTH", str(length)))["column"]
    passes = kernel.launch(1, 32, torch.zeros(32)).shared_load_wavefronts
    print(f"rows of {length} words: a column takes {passes:2} passes")
guesses.settle("passes for a column, rows of 40 words", passes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Eight. Rows begin 40 words apart, which is 8 banks further on each time, so after four rows the banks repeat: 32 words lie
# in 4 banks, 8 in each. Only the common divisor with 32 counts: rows of 33, 35 or 37 words have none.
#
# </details>

# %%
transpose_profile = run_transpose(transpose, "transpose")
print(f"{'':20}{'sectors':>10}{'passes':>10}")
for profile in (copy_profile, naive_profile, tiled_profile, transpose_profile):
    print(f"{profile.name:20}{profile.global_sectors:10,}{profile.shared_wavefronts:10,}")

# %% tags=["figure"]
labkit.figures.source_heat(transpose_profile, "passes")

# %% [markdown]
# And one warp at work, access by access: move the slider to see which byte each of its lanes touches.

# %% tags=["figure"]
labkit.figures.address_player(
    compile_cuda(transpose)["transpose"].launch(
        (8, 8), (32, 8), torch.randn(256, 256), torch.empty(256, 256), 256, 256, watch=(9, 1)
    )
)

# %% [markdown]
# This answers the question of the opening: both numbers are at their minimum, and each was found by counting, line by line,
# without a stopwatch. Padding costs 128 bytes of shared memory a tile, swizzling some arithmetic.
#
# **In practice** you rarely write a transpose: in `x.T @ y` nothing is moved, because the library's product takes an operand
# in either layout. But it does so with such a tile: the same padding or swizzle is inside every fast matrix product and every
# attention kernel. Triton chooses the swizzle itself (labs 12 and 13); the TMA unit of an H100 swizzles in hardware
# (`CU_TENSOR_MAP_SWIZZLE_128B`).

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Thirty-two threads and one sum
#
# A sum needs every element, and each thread has only its own. The simplest way, `atomicAdd(&sum, x[i])`, is right: an
# **atomic** update is indivisible. But updates of one place are carried out one after the other, all 1024 of a block.
#
# Better: a **tree**. All threads write their elements to shared memory. Then the lower half of the threads adds the upper
# half's elements to its own, then the lower half of these, and after ten steps place 0 holds the sum of 1024. Each step reads
# what other threads wrote in the step before, so after each step there is a barrier, for all threads, also those that
# have nothing more to add.
#
# Which threads add is up to you, and it matters. In both pictures 8 threads add 8 elements in three steps:
#
#     s[t] += s[t + d],  t < d                    s[t] += s[t + d],  t % (2 * d) == 0
#     0 1 2 3 4 5 6 7   d = 4: t = 0 1 2 3        0 1 2 3 4 5 6 7   d = 1: t = 0 2 4 6
#     0 1 2 3           d = 2: t = 0 1            0   2   4   6     d = 2: t = 0 4
#     0 1               d = 1: t = 0              0       4         d = 4: t = 0
#
# Both make the same number of additions. But a warp is busy as long as one of its lanes is. On the left whole warps drop out at each
# step. On the right every warp stays busy for a long time, with fewer and fewer lanes at work: its lanes take different ways at
# the `if`, which is called **divergence**.

# %% [markdown]
# **Predict:** a block has 1024 threads, in 32 warps. In the tree on the right, in how many of the ten steps is every
# warp still busy?

# %% nbgrader={"grade": false, "grade_id": "10-predict-divergent", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("steps with all 32 warps busy", None, unit="steps")

# %% [markdown]
# Within a warp there is a shorter way, without shared memory: a **shuffle** hands a register from lane to lane.
#
#     float theirs = __shfl_down_sync(0xffffffff, mine, 8);  // lane l gets `mine` of lane l + 8
#
# The first argument is a mask with a bit for each lane that takes part, 0xffffffff for all 32. **Every lane that the mask
# names has to execute the shuffle**, and nobody else: so it does not belong in an `if` that parts a warp. Lanes whose partner
# would lie past lane 31 get their own value back; what they compute with it is never used.
#
# Five shuffles add up a warp. Each warp's first lane puts its sum into shared memory, and after **one** barrier the first
# warp adds up these.

# %% [markdown]
# [[exercise 10-block-reduce]]
#
# Write two kernels. Both write to `out[b]` the sum of block b's elements, one for each thread: `x[i]` with
# `i = blockIdx.x * blockDim.x + threadIdx.x`, as far as it is below n.
#
# - `block_sum` adds in a tree in shared memory. Blocks have 64 to 1024 threads, always a power of two.
# - `shuffle_sum` adds with shuffles, and uses shared memory for one number per warp. Blocks have any number of whole warps,
#   from 1 to 32.
#
# The check looks for races and for barriers that not all threads reach, and limits the passes over shared memory and the
# number of barriers to what these two ways take. No atomics.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What should a thread bring whose index is not below n? It cannot simply leave, because the others wait for it.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The tree is a loop over d, from half a block down to 1. The addition stands in an `if`, the barrier after it, outside. With
# shuffles, d runs from 16 down to 1 and there is no `if`. For the second round, the first warp reads the sums of the warps,
# and its lanes that have none bring 0.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `if (t < d) s[t] += s[t + d]; __syncthreads();` in the one, `sum += __shfl_down_sync(0xffffffff, sum, d);` in the other. Then
# `if (t % 32 == 0) of_warp[t / 32] = sum;`, the barrier, and in the branch `t < 32`, which holds a whole warp,
# `sum = t < blockDim.x / 32 ? of_warp[t] : 0;` and the five shuffles again.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-block-reduce", "locked": false, "schema_version": 3, "solution": true, "task": false}
block_sum = r"""
__global__ void block_sum(const float* x, float* out, int n) {
  __shared__ float s[1024];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  // ### BEGIN SOLUTION
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (t < d) s[t] += s[t + d];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
  // ### END SOLUTION
}
"""

shuffle_sum = r"""
__global__ void shuffle_sum(const float* x, float* out, int n) {
  __shared__ float of_warp[32];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  // ### BEGIN SOLUTION
  float sum = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (t % 32 == 0) of_warp[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    sum = t < blockDim.x / 32 ? of_warp[t] : 0;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (t == 0) out[blockIdx.x] = sum;
  }
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-block-reduce-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("10-block-reduce", block_sum, shuffle_sum)

# %% [markdown]
# Four ways to add 65,536 numbers, in blocks of 1024. The atomic kernel and the tree on the right of the picture are in
# `lab10.SUMS`, if you want to read them.


# %%
def profile_sums(source: str, name: str):
    x, sums = torch.ones(65_536), torch.zeros(64)
    profile = compile_cuda(source)[name].launch(64, 1024, x, sums, 65_536)
    assert sums.eq(1024).all(), "the result is wrong: what does the check above say?"
    return profile


kernels_of_sums = {**lab10.SUMS, "block_sum": block_sum, "shuffle_sum": shuffle_sum}
sum_profiles = {name: profile_sums(source, name) for name, source in kernels_of_sums.items()}
print(f"{'':16}{'warp instr.':>12}{'idle lanes':>12}{'passes':>8}{'barriers':>10}{'waiting':>9}")
for name, profile in sum_profiles.items():
    idle = profile.inactive_lanes / (32 * profile.warp_instructions)
    print(
        f"{name:16}{profile.warp_instructions:12,}{idle:12.0%}{profile.shared_wavefronts:8,}"
        f"{profile.barriers:10,}{profile.atomic_conflicts:9,}"
    )
distances = [2**k for k in range(10)]
left = [len({t // 32 for t in range(d)}) for d in reversed(distances)]
right = [len({t // 32 for t in range(0, 1024, 2 * d)}) for d in distances]
print(f"busy warps in each step: left {left}, right {right}")
guesses.settle("steps with all 32 warps busy", right.count(32))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# In five. The threads that add are 2·d apart. As long as 2·d ≤ 32, each warp holds at least one of them, and that is so for
# d = 1, 2, 4, 8 and 16.
#
# </details>
#
# "Waiting" counts atomic updates that wait for another lane of their warp. The atomic kernel executes the fewest
# instructions, but in each warp 31 of 32 updates wait for another one, and warps wait for one another. The shuffles take
# fewer instructions than the tree, a quarter of its passes and a tenth of its barriers, and each barrier makes all 32
# warps of the block wait for the slowest.
#
# **In practice** PyTorch's `block_reduce.cuh` is your `shuffle_sum`, and so are the norms and softmaxes of most
# libraries. CUB's `cub::BlockReduce` adds by warps, too, unless you ask for another algorithm. In Triton it is
# `tl.sum(x, axis=0)`, and the compiler writes the shuffles (lab 12). In a launch of several blocks a second launch adds
# up `out`, or one atomic update per block.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## What orders two accesses
#
# A program of many threads can be right on your machine and wrong on the next one, or wrong once a week. Running it more often
# proves nothing. What helps is to ask of each pair of accesses: **does anything say which comes first?** Two accesses of
# the same word by different threads, at least one of which changes it, are a **race** if nothing does. In CUDA, very little
# does:
#
# | two accesses | ordered by |
# |---|---|
# | of one thread | the program |
# | of two threads of one block | a barrier between them: the one thread makes its access before it, the other after |
# | of two blocks of one launch | nothing: blocks run in any order, at the same time or one after the other |
# | in two launches | the launches: the second begins when the first has ended |
#
# Two **atomic** updates of one word may come in any order, because each is indivisible, so they are no race. An atomic
# update and a plain read are. And each block has a shared memory of its own.
#
# Two plain writes of one word are a race, because nothing says which comes last. One case is harmless: if all threads of a
# block store the *same* value by the same instruction, such as `count = 0`, the word holds it whichever was last. Our executor
# says nothing then, nor does NVIDIA's `compute-sanitizer --tool racecheck` unless you ask for its lowest level, INFO. The
# traces below do not tell what is written, so count every pair of plain writes that nothing orders as a race.
#
# A barrier has a danger of its own: a thread that comes to it waits for all others of its block. If one of them never comes,
# they wait forever: a **deadlock**. (CUDA calls it undefined. Some GPUs go on, some hang. Both are wrong.)
#
# Here is what the threads of nine small programs do, from left to right. A row is a thread, "1.0" is thread 0 of block 1;
# s3 is word 3 of shared memory, g3 of global memory. "add" is an atomic update, and dark bars are barriers. The dotted line
# separates two launches.

# %% tags=["figure"]
labkit.figures.thread_traces(
    {
        letter: PROGRAMS[name](2, 2)
        for letter, name in zip(
            "ABCDEFGHI",
            (
                "without_barrier",
                "with_barrier",
                "atomic_total_read_at_once",
                "from_the_next_block",
                "tile_used_again",
                "in_two_launches",
                "in_a_branch",
                "atomic_total",
                "blocks_with_loops_of_their_own",
            ),
        )
    }
)

# %% [markdown]
# **Predict:** how many of the nine are right, with neither a race nor a deadlock?

# %% nbgrader={"grade": false, "grade_id": "10-predict-right", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("programs that are right", None, exact=True)

# %% [markdown]
# [[exercise 10-communicate]]
#
# Write `classify(trace)`, in Python: it returns `"right"`, `"race"` or `"deadlock"`. A trace is a list of launches, a launch a
# list of blocks, a block a list of threads, and a thread the list of what it does, each an `Op(kind, space, place)`. `kind`
# is `"read"`, `"write"`, `"atomic"` or `"barrier"`, `space` is `"shared"` or `"global"`, and `place` is the number of a word.
# A barrier has neither space nor place.
#
# `accesses(trace)` is there already. It lists all reads, writes and atomic updates, each with its `launch`, `block`,
# `thread`, `kind`, `space` and `place`, and with its **epoch**: how many barriers its thread has passed before it. So
# `itertools.combinations(accesses(trace), 2)` goes over all pairs.
#
# A trace is a deadlock if in some block not all threads make the same number of barriers, whatever else happens. Of the
# others, it is a race if two accesses are one by the table above. Threads of one warp get no special treatment: nothing
# orders them by itself either.
#
# The check runs `classify` on programs like those above and on random ones. It shows the first wrong one as a call that you
# can paste into a cell, such as `classify(PROGRAMS["with_barrier"](2, 3))` (2 blocks of 3 threads), and
# `labkit.figures.thread_traces({"it": PROGRAMS["with_barrier"](2, 3)})` draws it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Take the two questions one after the other. For the deadlock you need only a count for each thread. For the race, ask three
# things of a pair: is it the same word, does anything order the two, and would the order matter?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The same place of shared memory is the same word only within one block. Two accesses are ordered if their launches differ,
# or if they are of one block and either of the same thread or of different epochs. The order does not matter where both only
# read, or both are atomic.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1` is a deadlock of one block. For a pair,
# `same_word = one.space == other.space and one.place == other.place and (one.space == "global" or same_block)`, with
# `same_block` for an equal launch and block; the rest of the sentence above is two more lines like it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "10-communicate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def classify(trace: Trace) -> str:
    """ "right", "race" or "deadlock" """
    ### BEGIN SOLUTION
    for launch in trace:
        for block in launch:
            if len({sum(op.kind == "barrier" for op in thread) for thread in block}) > 1:
                return "deadlock"
    for one, other in itertools.combinations(accesses(trace), 2):
        same_block = (one.launch, one.block) == (other.launch, other.block)
        same_thread = same_block and one.thread == other.thread
        same_word = (one.space, one.place) == (other.space, other.place)
        if one.space == "shared":
            same_word = same_word and same_block
        ordered = same_thread or (same_block and one.epoch != other.epoch)
        if one.launch != other.launch:
            ordered = True
        harmless = one.kind == other.kind and one.kind in ("read", "atomic")
        if same_word and not ordered and not harmless:
            return "race"
    return "right"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-communicate-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("10-communicate", classify)

# %% tags=["figure"]
labkit.figures.thread_traces(
    {name.replace("_", " "): program(2, 2) for name, program in PROGRAMS.items()}, classify
)

# %%
names = (
    "without_barrier with_barrier atomic_total_read_at_once from_the_next_block tile_used_again "
    "in_two_launches in_a_branch atomic_total blocks_with_loops_of_their_own"
)
found = [classify(PROGRAMS[name](2, 2)) for name in names.split()]
print(found)
guesses.settle("programs that are right", float(found.count("right")))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Four: B, F, H and I. A has no barrier. C reads a total that others still add to. D trusts a barrier across blocks. E has a
# barrier between writing the tile and reading it, but none between reading it and writing it again, so a fast thread overwrites
# what a slow one has not read yet: this is why a loop over tiles has **two** barriers. G has its barrier in a branch. In I the
# blocks make different numbers of barriers, and may.
#
# </details>
#
# This is how the executor finds races, too: it keeps a **shadow** of every word of shared memory, with the thread and the
# epoch of the last accesses. So one run finds a race that a thousand runs on a GPU might not show. `compute-sanitizer
# --tool racecheck` does the same on a GPU.
#
# Here is a kernel for you to mend. It counts how often each of 64 values occurs. Each block counts in shared memory first and
# then adds its counts to those of all blocks.

# %%
print(lab10.BROKEN_HISTOGRAM)
values = torch.arange(1000, dtype=torch.int32) % 64
counts = torch.zeros(64, dtype=torch.int32)
kernel = compile_cuda(lab10.BROKEN_HISTOGRAM)["histogram"]
broken_profile = kernel.launch(8, 128, values, counts, 1000, check=False)
for fault in broken_profile.faults:
    print(textwrap.fill(str(fault), 100, subsequent_indent="    "))

# %% [markdown]
# [[exercise 10-histogram]]
#
# Mend it: there are four mistakes. The counts are added to what is in `counts` already. Blocks have 64 threads or more, n is
# any number. (`atomicAdd(&place, 1)` adds 1 to an int, in shared memory as well as in global memory.)
#
# <details><summary>Hint 1: a nudge</summary>
#
# Two of the mistakes are about barriers, two about `++` and `+=`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# There are three phases: set to zero, count, add to the total. Between them all threads of the block have to wait, also
# those past n. And `++` is a read, an addition and a write.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# A `__syncthreads()` after setting to zero; `if (i < n) atomicAdd(&mine[x[i]], 1);` with the barrier after the branch; and
# `atomicAdd(&counts[t], mine[t])`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-histogram", "locked": false, "schema_version": 3, "solution": true, "task": false}
histogram = r"""
__global__ void histogram(const int* x, int* counts, int n) {
  __shared__ int mine[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  // ### BEGIN SOLUTION
  if (t < 64) mine[t] = 0;
  __syncthreads();
  if (i < n) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  if (t < 64) atomicAdd(&counts[t], mine[t]);
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-histogram-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("10-histogram", histogram)

# %%
kernel = compile_cuda(histogram)["histogram"]
for name, values in {
    "all different": torch.arange(8192, dtype=torch.int32) % 64,
    "all the same": torch.full((8192,), 7, dtype=torch.int32),
}.items():
    profile = kernel.launch(32, 256, values, counts.zero_(), 8192)
    print(f"{name:14} {profile.atomic_lanes:,} updates, {profile.atomic_conflicts:,} of them wait")

# %% [markdown]
# An atomic update is right whatever happens, but its price depends on the data: if all values are the same, 31 of 32 lanes wait
# for one another. This is why histograms of images with a black background are slow, and why each warp is sometimes given
# counts of its own.
#
# **In practice** `torch.bincount` and `torch.histc` are kernels like this one. `atomicAdd` on floats adds in any order,
# so the last bits differ from run to run: this is why `torch.use_deterministic_algorithms(True)` refuses
# `torch.bincount` with weights on a GPU, and takes a slower way for `index_add_`.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## How many threads is enough?
#
# A load from a busy memory takes about 600 ns on an H100 (an assumption that we keep for all chips here: an idle one
# answers in about half of that, and the more it has to do, the longer it takes). In that time its memory could deliver
# 3.35 TB/s · 600 ns = 2 MB. So **2 MB of loads must be on their way at any moment**, 15 KB on each of its 132
# **streaming multiprocessors** (SMs), or the memory waits for the kernel instead of the kernel for the memory. This is
# **Little's law**: what is in flight is rate times latency.
#
# A GPU does not predict or reorder much to keep loads in flight. It takes many threads: while one warp waits, the SM
# runs another. How many warps an SM holds is limited by four resources, and the tightest one decides.
#
# | resource of an SM | A100 | H100, B200 | RTX 4090, 5090 | how it is given away |
# |---|---|---|---|---|
# | warps | 64 | 64 | 48 | whole warps: 100 threads take 4 |
# | blocks | 32 | 32 | 24 | |
# | registers | 65,536 | 65,536 | 65,536 | to a warp, in units of 256; a quarter of them belongs to each of four schedulers, and a warp lives on one scheduler |
# | shared memory | 164 KiB | 228 KiB | 100 KiB | to a block, in units of 128 bytes; the system takes 1 KiB more for each block |
#
# A block starts only when all of it fits. **Occupancy** is the warps that an SM holds, divided by the most that it can
# hold. When the grid has more blocks than fit on the chip at once, it runs in **waves**, and the last one, the
# **tail**, is rarely full.

# %% [markdown]
# **Predict:** all 2048 threads of an H100's SM wait for a load of 4 bytes each: occupancy 100 %. What share of the
# memory's bandwidth can that reach, in percent?

# %% nbgrader={"grade": false, "grade_id": "10-predict-full-sm", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bandwidth of a full SM", None, unit="%")

# %% [markdown]
# **Predict:** a kernel with blocks of 512 threads and 64 registers for each thread has an occupancy of 50 % on an H100.
# You add a variable, and it takes 65 registers. What is the occupancy now, in percent?

# %% nbgrader={"grade": false, "grade_id": "10-predict-one-register", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("occupancy at 65 registers", None, unit="%")

# %% [markdown]
# [[exercise 10-occupancy]]
#
# Write four functions in Python. A `chip` has the fields `n_sms`, `max_warps`, `max_blocks`, `registers` and
# `shared_bytes` (of one SM), `bytes_per_s` (of the whole chip) and `latency_s`.
#
# - `resident(threads, registers, shared_bytes, chip)` returns how many blocks an SM holds at once, and the occupancy as
#   a fraction. `threads` and `shared_bytes` are those of a block, `registers` those of a thread. A block that never fits
#   gives `(0, 0.0)`.
# - `waves(n_blocks, n_resident, chip)` returns the number of waves of a grid of `n_blocks` blocks, with `n_resident` at
#   once on each SM, and the efficiency: the blocks, divided by the blocks that these waves have room for.
# - `in_flight(n_threads, loads, load_bytes, chip)` returns the bytes in flight on an SM that holds `n_threads` threads,
#   each waiting for `loads` loads of `load_bytes` bytes, and the share of the bandwidth that they reach, at most 1.
# - `fastest(kernels, chip)` returns the index of the kernel that reaches the largest share of the bandwidth, the first
#   of those that reach it. Each kernel is `(threads, registers, shared_bytes, loads, load_bytes)`, and its grid is large.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What is given away in units is rounded up; how many blocks fit is rounded down. For each of the four resources, work
# out how many blocks it has room for.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A warp takes `32 * registers`, rounded up to a multiple of 256. `chip.registers // 4` divided by that, rounded down, is
# the number of warps on one scheduler. An SM needs `bytes_per_s * latency_s / n_sms` bytes in flight.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `warps = math.ceil(threads / 32)`; by registers `chip.registers // 4 // per_warp * 4 // warps` blocks fit, by shared
# memory `chip.shared_bytes // per_block` with `per_block = 128 * math.ceil((shared_bytes + 1024) / 128)`; take the
# smallest of these two, `chip.max_warps // warps` and `chip.max_blocks`. In `fastest`, ask `resident` for the blocks,
# and give `in_flight` the threads of all of them.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "10-occupancy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def resident(threads: int, registers: int, shared_bytes: int, chip: Chip) -> tuple[int, float]:
    """(blocks that an SM holds at once, occupancy from 0 to 1)."""
    ### BEGIN SOLUTION
    warps = math.ceil(threads / 32)
    per_warp = 256 * math.ceil(32 * registers / 256)
    by_registers = chip.registers // 4 // per_warp * 4 // warps
    per_block = 128 * math.ceil((shared_bytes + 1024) / 128)
    by_shared = chip.shared_bytes // per_block
    n_blocks = min(chip.max_warps // warps, chip.max_blocks, by_registers, by_shared)
    return n_blocks, n_blocks * warps / chip.max_warps
    ### END SOLUTION


def waves(n_blocks: int, n_resident: int, chip: Chip) -> tuple[int, float]:
    """(waves of the grid, its blocks over the room in all of these waves)."""
    ### BEGIN SOLUTION
    room = n_resident * chip.n_sms
    n_waves = math.ceil(n_blocks / room)
    return n_waves, n_blocks / (n_waves * room)
    ### END SOLUTION


def in_flight(n_threads: int, loads: int, load_bytes: int, chip: Chip) -> tuple[float, float]:
    """(bytes in flight on an SM, share of the bandwidth from 0 to 1)."""
    ### BEGIN SOLUTION
    n_bytes = n_threads * loads * load_bytes
    needed = chip.bytes_per_s * chip.latency_s / chip.n_sms
    return n_bytes, min(1.0, n_bytes / needed)
    ### END SOLUTION


def fastest(kernels: list[tuple[int, int, int, int, int]], chip: Chip) -> int:
    """Index of the first kernel with the largest share of the bandwidth."""
    ### BEGIN SOLUTION
    shares = []
    for threads, registers, shared_bytes, loads, load_bytes in kernels:
        n_blocks, _ = resident(threads, registers, shared_bytes, chip)
        shares.append(in_flight(n_blocks * threads, loads, load_bytes, chip)[1])
    return shares.index(max(shares))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-occupancy-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("10-occupancy", resident, waves, in_flight, fastest)

# %% [markdown]
# Four ways to write one copying kernel for an H100. The first fills the SM with threads, each with one load of 4 bytes.
# The last one holds a quarter of the threads; each of them has four loads of 16 bytes in flight, and 128 registers to
# put them in.

# %% tags=["figure"]
copies = {
    "one load of 4 bytes": (256, 32, 0, 1, 4),
    "two of 4 bytes": (256, 40, 0, 2, 4),
    "two of 16 bytes": (128, 64, 0, 2, 16),
    "four of 16 bytes": (128, 128, 0, 4, 16),
}
labkit.figures.bytes_on_their_way(resident, in_flight, copies, H100)

# %%
full_sm = 100 * in_flight(2048, 1, 4, H100)[1]
one_more = 100 * resident(512, 65, 0, H100)[1]
guesses.settle("bandwidth of a full SM", full_sm)
guesses.settle("occupancy at 65 registers", one_more)
for chip in (A100, H100, B200, RTX_4090, RTX_5090):
    n_bytes, share = in_flight(32 * chip.max_warps, 1, 4, chip)
    needed = chip.bytes_per_s * chip.latency_s / chip.n_sms
    print(
        f"{chip.name:9} needs {needed / 1e3:4.1f} KB in flight on an SM; all its threads with 4 bytes each: {share:.0%}"
    )

# %% [markdown]
# <details><summary>Check your predictions</summary>
#
# 54 %: 2048 · 4 bytes are 8.2 KB in flight, of the 15.2 KB that an H100 needs. On a B200 it is only 25 %. Full occupancy
# is neither necessary nor enough. Vasily Volkov showed in 2010 that **fewer threads with more independent loads each
# reach the bandwidth too**, and often sooner, because they have registers to spare. This is why fast kernels load 16
# bytes at a time, and why `cp.async` and TMA, which need no registers for what is in flight, matter so much.
#
# 25 %: a warp now takes 2,304 registers and not 2,048. Seven warps fit on a scheduler in place of eight, 28 on the SM,
# and a block has 16. One register costs half of the threads, because a block starts whole or not at all.
#
# </details>

# %% tags=["figure"]
labkit.figures.occupancy_steps(resident, H100)

# %% [markdown]
# Left, each step down is a block that fits no more: large blocks have high steps. Right, a size that does not divide
# the room of the SM leaves some of it empty. Blocks of 128 or 256 threads are the usual start, because their steps are
# small.

# %% tags=["figure"]
labkit.figures.wave_chart(waves, 4, H100, 1100)

# %% [markdown]
# 1,100 blocks take three waves where 1,056 take two. The tail matters less the more waves there are, so a grid is either
# of many waves, or of exactly as many blocks as fit, with a loop in which each block goes on to the next piece of work
# (a **grid-stride loop**, or a **persistent kernel**).
#
# **In practice:** `nvcc -Xptxas -v` prints registers and shared memory of a kernel, `cudaOccupancyMaxActiveBlocksPerMultiprocessor`
# computes what your `resident` does, and `__launch_bounds__(256, 4)` makes the compiler use so few registers that four
# blocks of 256 threads fit. Nsight Compute shows all of it under "Occupancy" and "Launch Statistics".

# %% [markdown]
# ## Where the bytes live
#
# Everything in this lab happened between four places. On real chips they have these sizes. The last column is what a load
# takes on an H100 that does nothing else, after the measurements of Luo and others on its PCIe model. Take it as an order
# of magnitude: it depends on the chip, on its clock and on what else is going on.
#
# | | A100 | H100 (SXM) | B200 | shared by | a load takes |
# |---|---|---|---|---|---|
# | registers, an SM | 256 KiB | 256 KiB | 256 KiB | nobody: up to 255 words for a thread | 0 |
# | shared memory and L1 cache, an SM | 192 KiB | 256 KiB | 256 KiB | a block; the SM | about 30 and 40 cycles |
# | L2 cache | 40 MB | 50 MB | 126 MB | all SMs | about 260 cycles |
# | memory (HBM) | 80 GB, 2.0 TB/s | 80 GB, 3.35 TB/s | 192 GB, 8 TB/s | the whole chip | about 480 cycles |
# | SMs | 108 | 132 | 148 | | |
#
# Slides that give an SM "16 KB of shared memory" and "8 K registers" show the first CUDA GPU, of 2006. Both are off by a factor
# of eight and more today.
#
# Multiply the H100's column by its 132 SMs and compare. All its registers together are 33 MiB, as much as all its
# shared memories with their L1 caches, and two thirds of its L2 cache. A **CPU** is built the other way round: its levels
# grow by a factor of 16 or more at each step, as a core sees them.
#
# <details><summary>The same table for a CPU with 96 cores</summary>
#
# An EPYC 9654 has 96 cores, and in each of them what follows. The cycles of the caches are AMD's; those of its memory
# are an order of magnitude, and depend on the clock and on where the memory is plugged in.
#
# | | a core | all 96 cores | a load takes |
# |---|---|---|---|
# | registers (32 vector registers of 64 bytes) | 2 KiB | 0.2 MiB | 0 |
# | L1 cache | 32 KiB | 3 MiB | 4 to 5 cycles |
# | L2 cache | 1 MiB | 96 MiB | 14 cycles |
# | L3 cache | 32 MiB for 8 cores | 384 MiB | about 50 cycles |
# | memory | | 0.46 TB/s | some 400 cycles |
#
# </details>
#
# The CPU wants the one or two threads of a core to wait as little as possible: it guesses branches, reorders
# instructions, and fetches early. The GPU spends the same area on registers for 2048 threads an SM, and lets them wait. It
# does not make a load faster; it has something else to do meanwhile.
#
# So the rules of this lab are not the CPU's. Both fetch more than you ask for, 64 bytes there and 32 here, so neighbours in
# memory should be used at about the same time: by the *next* iteration of one thread there, by the *neighbouring* thread in
# the same instruction here. The cache decides by itself what stays; shared memory holds what your kernel puts there.

# %% [markdown]
# **What this lab leaves out.** *Tensor cores* multiply small matrices whose elements are spread over the registers of a warp
# (`mma.sync`) or lie in shared memory (`wgmma` on an H100): who holds which element is again a map from lanes to places, and the
# swizzle of this lab is what feeds them without conflicts. *Asynchronous copies* (`cp.async`, and TMA from the H100 on) move a
# tile from memory to shared memory without going through registers, while the warps compute on the tile before. Nearly
# nobody writes all this by hand: *cuBLAS* and *cuDNN* hold the kernels, and Triton (labs 12 and 13) writes them from a description
# of tiles. All of them are judged by the numbers that you have counted here.

# %% [markdown]
# ## Extra credit: the life of a kernel
#
# What happens to your C++ on its way to a GPU? The compiler turns it into **PTX**, an assembly language with any number
# of registers, and the assembler turns PTX into a **cubin**: machine code (SASS) for one generation of chips. PTX for
# compute capability 8.0 can be assembled for that chip and all later ones, by the driver when the program starts. A cubin
# for sm_80 runs on chips of the same major version from that minor version on, so on sm_86 and not on sm_90. A program
# usually carries cubins for the chips it knows, and PTX for those to come.

# %% [markdown]
# [[exercise 10-image]]
#
# A program carries a kernel in several forms. Write `image_for(images, chip)`, which returns the index of the form that
# the driver uses on a chip, or −1 where none fits ("no kernel image is available for execution on the device").
# `images` are names such as `"sm_86"` (a cubin) and `"compute_90"` (PTX), `chip` is `(9, 0)` for an H100. The last digit
# of a name is the minor version, so `"sm_120"` is for 12.0. A cubin that fits goes before PTX, and of several cubins, or
# of several PTX, the latest. Names that end with `a` use instructions of one chip alone, and fit exactly that one.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Write first whether one form fits one chip. The choice among those that fit is a `max`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Compare versions as pairs: `(8, 9) < (9, 0) < (12, 0)`. PTX fits if its pair is at most the chip's; a cubin if, beyond
# that, the major versions are equal; with an `a` only if the pairs are equal.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `kind, version = name.split("_")`, `special = version.endswith("a")`, `digits = version.rstrip("a")`, and
# `built = int(digits[:-1]), int(digits[-1])`. Collect `(kind == "sm", built, i)` of all that fit and take the largest.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "10-image", "locked": false, "schema_version": 3, "solution": true, "task": false}
def image_for(images: list[str], chip: tuple[int, int]) -> int:
    """The index of the form of a kernel that a chip uses, -1 where it can use none."""
    ### BEGIN SOLUTION
    usable = []
    for i, name in enumerate(images):
        kind, version = name.split("_")
        digits = version.rstrip("a")
        built = int(digits[:-1]), int(digits[-1])
        fits = built <= chip
        if kind == "sm":
            fits = fits and built[0] == chip[0]
        if version.endswith("a"):
            fits = built == chip
        if fits:
            usable.append((kind == "sm", built, i))
    return max(usable)[-1] if usable else -1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "10-image-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("10-image", image_for)

# %%
forms = ["compute_80", "compute_100", "sm_80", "sm_86", "sm_90"]
usable = [form for form in forms if image_for([form], (9, 0)) >= 0]
print(f"an H100 can run {', '.join(usable)}, and takes {forms[image_for(forms, (9, 0))]}")

# %% [markdown]
# Of the five, the H100 can run two: the PTX for 8.0, which the driver assembles for it, and the cubin for sm_90. PTX for
# a later chip may use instructions that this one lacks, and cubins are tied to the major version.
#
# **In practice:** `TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"` decides what an extension of PyTorch carries. A first call that
# takes seconds means that the driver had to assemble PTX.

# %% [markdown]
# The next kernel is a chain of functions in one, z = h(f(x), g(y)): two reads and a write, and nothing in between goes
# through memory. Such a kernel lives from its bytes, so it should ask for many at a time. A thread can read 16 bytes with
# one instruction, as a `float4`, if the address is a multiple of 16. That takes a quarter of the instructions and, with
# four elements in flight for every thread, a quarter of the threads. But a pointer tells nothing of its alignment:
# `x[1:]` is a tensor as well. (Lab 11 counts such a chain four times: eager, compiled, in CUDA C++ and in Triton.)
#
# [[exercise 10-kernel-life-cycle]]
#
# Write the kernel `fused`: z[i] = max(f(x[i]), g(y[i])) with f(x) = x · x and g(y) = 3 y + 1. It is launched with blocks of
# 256 threads, and a thread for every four elements. Where x, y and z all begin at a multiple of 16 bytes, it uses accesses
# of 16 bytes, and single elements elsewhere and for the end. The check also compiles it for sm_80, sm_90 and sm_100, where
# nothing may be kept in memory that fits into registers.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Three things may keep a thread from taking four elements at once. The address is one; which of them concerns the last
# thread alone?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `reinterpret_cast<const float4*>(x)[t]` are the elements 4 t to 4 t + 3. `(uintptr_t)x % 16 == 0` asks for the alignment;
# `|` joins the three addresses. Otherwise loop over the elements from 4 t that are below n, at most four.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `bool aligned = ((unsigned long long)x | (unsigned long long)y | (unsigned long long)z) % 16 == 0;`, then
# `if (aligned && i + 4 <= n)` with `i = 4 * t`: `float4 a = ...[t], b = ...[t];` and one store of
# `make_float4(combine(a.x, b.x), ...)`; else `for (int k = i; k < i + 4 && k < n; ++k) z[k] = combine(x[k], y[k]);`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-kernel-life-cycle", "locked": false, "schema_version": 3, "solution": true, "task": false}
fused = r"""
__device__ float combine(float x, float y) { return fmaxf(x * x, 3 * y + 1); }

__global__ void fused(const float* x, const float* y, float* z, int n) {
  // ### BEGIN SOLUTION
  int t = blockIdx.x * blockDim.x + threadIdx.x, i = 4 * t;
  bool aligned = ((unsigned long long)x | (unsigned long long)y | (unsigned long long)z) % 16 == 0;
  if (aligned && i + 4 <= n) {
    float4 a = reinterpret_cast<const float4*>(x)[t], b = reinterpret_cast<const float4*>(y)[t];
    reinterpret_cast<float4*>(z)[t] =
        make_float4(combine(a.x, b.x), combine(a.y, b.y), combine(a.z, b.z), combine(a.w, b.w));
  } else {
    for (int k = i; k < i + 4 && k < n; ++k) z[k] = combine(x[k], y[k]);
  }
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-kernel-life-cycle-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("10-kernel-life-cycle", fused)

# %% [markdown]
# Your kernel in its three forms: the C++, the PTX that NVRTC makes of it, and the machine code of an A100, where NVIDIA's
# disassembler is at hand (it comes with Triton). Move the slider from line to line; accesses to memory are bold.
# `ld.global.v4.f32` in PTX and `LDG.E.128` in machine code are loads of 16 bytes. The assembler writes everything anew, in
# real registers and in another order, sometimes with more instructions than the PTX and sometimes with fewer: that for
# sm_100, a B200, may write out a loop over single elements many times. So the last cell counts what stands in the code,
# and not what runs.

# %% tags=["figure"]
labkit.figures.life_player(fused, "fused")

# %%
for arch in (80, 90, 100):
    cubin = compile_cubin(fused, arch)
    found = lab10.memory_instructions(cubin.data)
    wide = sum(".128" in line for line in found)
    print(f"sm_{arch}: {cubin.kernels['fused']}")
    if found:
        print(f"    {wide} accesses of 16 bytes, {len(found) - wide} of single elements")

# %% [markdown]
# ## Extra credit: a product in tiles
#
# One thread for each element of C = A · B reads a row of A and a column of B: 2k numbers for 2k FLOPs. But the threads of
# a block want the same numbers: 16 threads of a row of C read the same row of A. A block of 16 × 16 threads therefore
# copies a **tile** of 16 × 16 elements of A and one of B into shared memory, each thread one element of each, multiplies
# them from there, and goes on to the next tiles along k. Every element of A and B then comes from memory once for each
# tile of C that needs it, 16 times less often.
#
# **Predict:** a product of two 128 × 128 matrices, by blocks of 16 × 16 threads that read everything directly from
# memory, and by blocks that use tiles. How many times fewer sectors do the loads with tiles touch?

# %% nbgrader={"grade": false, "grade_id": "10-predict-tiles", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("sectors saved by tiles", None, unit="times")

# %% [markdown]
# [[exercise 10-tiled-matmul]]
#
# Write the kernel `matmul`, for `a` of m × k, `b` of k × n and `c` of m × n elements, stored row by row. It is launched
# with blocks of 16 × 16 threads, x along the columns of C, and as many blocks as cover C. Sizes need not be multiples of
# 16. Loads may touch at most 1.1 times the sectors that the tiles take, without bank conflicts.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which threads may return before the loop over tiles? None: each of them fills a place of every tile.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# In round t, thread (x, y) copies `a[row][16 t + x]` and `b[16 t + y][col]`, or 0 where there is no such element. Barrier.
# Then 16 products of row y of the one and column x of the other tile. Barrier, because the next round overwrites both.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `ta[y][x] = row < m && 16 * t + x < k ? a[row * k + 16 * t + x] : 0;`, the same for `tb` with `16 * t + y < k` and
# `col < n`, then `sum += ta[y][i] * tb[i][x]` for i from 0 to 15. After the loop store where `row < m && col < n`.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-tiled-matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
matmul = r"""
__global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
  // ### BEGIN SOLUTION
  __shared__ float ta[16][16], tb[16][16];
  int x = threadIdx.x, y = threadIdx.y, col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int t = 0; t < (k + 15) / 16; ++t) {
    ta[y][x] = row < m && 16 * t + x < k ? a[row * k + 16 * t + x] : 0;
    tb[y][x] = 16 * t + y < k && col < n ? b[(16 * t + y) * n + col] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += ta[y][i] * tb[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-tiled-matmul-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("10-tiled-matmul", matmul)

# %%
a, b, sizes = torch.randn(128, 128), torch.randn(128, 128), (128, 128, 128)
tiles, direct = (
    compile_cuda(source)["matmul"].launch((8, 8), (16, 16), a, b, torch.empty(128, 128), *sizes)
    for source in (matmul, lab10.DIRECT_PRODUCT)
)
for name, profile in (("direct", direct), ("tiles", tiles)):
    print(
        f"{name:7} {profile.global_load_sectors:9,} sectors of loads, {profile.shared_wavefronts:9,} passes over shared "
        f"memory, {profile.flops / (32 * profile.global_load_sectors):5.2f} FLOP a byte"
    )
guesses.settle("sectors saved by tiles", direct.global_load_sectors / tiles.global_load_sectors)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 8 times. A warp covers two rows of 16 columns. In each step along k, the direct version reads one number in each of two
# rows of A, two sectors, and 16 neighbours of B, two more: 4 sectors for a step. With tiles, a warp copies 4 + 4 sectors
# and then takes 16 steps from shared memory: half a sector for a step. Every element of A is read 16 times less often, but
# the direct version has already saved half of it, because lanes that read the same address share a sector. (Caches are
# not counted here. On a GPU the L1 cache repairs part of the direct version.)
#
# </details>

# %% tags=["figure"]
labkit.figures.source_heat(tiles, "passes")

# %% [markdown]
# Now the line with the products is the hot one: two loads from shared memory for one fused multiply-add. This is the next
# limit. Fast products let each thread compute 8 × 8 elements of C from registers, and the fastest leave the
# multiplication to **tensor cores**: `mma.sync` multiplies 16 × 16 by 16 × 8 in one instruction of a warp, in which each
# lane holds eight elements of A. Lab 13 takes the tiles further, in Triton.

# %% [markdown]
# ## Extra credit: prefix sums
#
# A **prefix sum** (or scan) replaces each element by the sum of all elements up to it. It looks hopelessly serial, and
# yet it is how GPUs compact lists, sort, and build the offsets of packed sequences. With one thread an element, log₂ n
# rounds do it: in the round with step s, every thread adds the number that lies s places to its left.
#
# | round | 3 | 1 | 4 | 1 | 5 | 9 | 2 | 6 |
# |---|---|---|---|---|---|---|---|---|
# | s = 1 | 3 | 4 | 5 | 5 | 6 | 14 | 11 | 8 |
# | s = 2 | 3 | 4 | 8 | 9 | 11 | 19 | 17 | 22 |
# | s = 4 | 3 | 4 | 8 | 9 | 14 | 23 | 25 | 31 |
#
# This is Hillis and Steele's scan. It takes n log₂ n additions where a loop takes n. It has a trap as well: in each
# round a thread reads a number that its neighbour is about to overwrite.
#
# [[exercise 10-scan]]
#
# Write the kernel `scan`: each block of `blockDim.x` threads computes the prefix sums of its own `8 * blockDim.x`
# elements, beginning at 0 in every block. Thread t of a block has 8 elements that follow one another. n is any number,
# so the last block may have fewer. `blockDim.x` is a power of two from 32 to 256. At most 3.25 additions an element are
# allowed, so rounds over all elements are too many.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A thread can add up its own 8 elements on its own, in registers. What does it have to know of the threads before it?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Put the total of each thread into shared memory, do the rounds over these `blockDim.x` totals, then add the total of
# all threads before to each of your 8 prefix sums. In each round: read, barrier, write, barrier.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `for (int step = 1; step < blockDim.x; step *= 2)`: each thread t ≥ step reads `totals[t - step]` into a variable, all
# threads come to a barrier, each thread t ≥ step adds its variable to `totals[t]`, and all come to a second barrier. What
# comes before thread t in the end is `totals[t - 1]`, and 0 for the first.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-scan", "locked": false, "schema_version": 3, "solution": true, "task": false}
scan = r"""
__global__ void scan(const float* x, float* y, int n) {
  // ### BEGIN SOLUTION
  __shared__ float totals[256];
  int t = threadIdx.x, first = 8 * (blockIdx.x * blockDim.x + t);
  float own[8], sum = 0;
  for (int i = 0; i < 8; ++i) {
    if (first + i < n) sum += x[first + i];
    own[i] = sum;
  }
  totals[t] = sum;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    float left = t >= step ? totals[t - step] : 0;
    __syncthreads();
    if (t >= step) totals[t] += left;
    __syncthreads();
  }
  float before = t > 0 ? totals[t - 1] : 0;
  for (int i = 0; i < 8; ++i)
    if (first + i < n) y[first + i] = before + own[i];
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-scan-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("10-scan", scan)

# %% [markdown]
# Your scan beside two classics: Hillis and Steele's rounds over all elements, and Blelloch's tree, which goes up and down
# again with 2n additions. Which of the three would you expect to be fastest?

# %%
for name, source in {"yours": scan, **lab10.SCANS}.items():
    x, y = torch.randint(1, 10, (4096,)).float(), torch.empty(4096)
    profile = compile_cuda(source)["scan"].launch(2, 256, x, y, 4096)
    assert torch.equal(y, torch.cat([piece.cumsum(0) for piece in x.split(2048)])), (
        "the result is wrong: what does the check above say?"
    )
    print(
        f"{name:18} {profile.flops / 4096:5.2f} additions an element, {profile.warp_instructions:6,} warp instructions, "
        f"{profile.barriers / 16:3.0f} barriers, {profile.bank_conflicts:5,} bank conflicts"
    )

# %% [markdown]
# Fewest additions is not least work. Blelloch's tree needs 2 additions an element, but most of its rounds keep only a few
# threads busy, its strides of powers of two run into bank conflicts, and it has twice as many rounds as Hillis and
# Steele's scan (with one barrier each, where that needs two). Adding up in registers first takes a few additions more and
# a third of the instructions. n log n additions are the better choice only for so few elements that all of them have a
# lane anyway: within a warp, where the rounds are five shuffles.
#
# **In practice:** `torch.cumsum`, or `cub::BlockScan`, which does what you did, with shuffles for the totals.

# %% [markdown]
# ## Extra credit: a branch that few threads take
#
# The 32 lanes of a warp execute one instruction at a time. Where they disagree at a branch, the warp **diverges**: it runs
# one side with some lanes, then the other side with the rest. So an expensive branch costs the whole warp as soon as one
# lane takes it. Suppose one element in 16 is expensive, at random. Then 1 − (15/16)³² = 87 % of all warps have at least
# one of them, and pay in full.

# %% [markdown]
# [[exercise 10-divergence]]
#
# Rewrite `mix` so that `y[i]` is `hard(x[i])` where `x[i]` is negative, and `x[i]` otherwise, in few warp instructions: 70
# for each warp, and 280 more for every 32 negative elements of a block (or what is left of 32). It is launched with one
# thread for each element, in blocks of at most 256. `hard` stays as it is.
#
# <details><summary>Hint 1: a nudge</summary>
#
# No thread has to compute its own element. Who else could, and how would they know?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# First every thread copies its element or puts its index on a list in shared memory. Then the threads t below the list's
# length take the element at place t. These are full warps, but for the last one.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `atomicAdd(&count, 1)` on an `int` in shared memory returns the old value: a free place of the list. One thread sets
# `count` to 0 before, and all threads pass `__syncthreads()` after that and after the list is filled.
#
# </details>

# %% nbgrader={"grade": false, "grade_id": "10-divergence", "locked": false, "schema_version": 3, "solution": true, "task": false}
mix = r"""
__device__ unsigned hard(unsigned v) {  // 32 rounds of Marsaglia's xorshift
  for (int i = 0; i < 32; ++i) {
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
  }
  return v;
}

__global__ void mix(const int* x, int* y, int n) {
  // ### BEGIN SOLUTION
  __shared__ int list[256], count;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (i < n) {
    if (x[i] >= 0) y[i] = x[i];
    else list[atomicAdd(&count, 1)] = i;
  }
  __syncthreads();
  if (threadIdx.x < count) y[list[threadIdx.x]] = hard(x[list[threadIdx.x]]);
  // ### END SOLUTION
}
"""

# %% nbgrader={"grade": true, "grade_id": "10-divergence-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("10-divergence", mix)

# %%
n, share = 4096, 1 / 16
x = torch.randint(1, 2**20, (n,), dtype=torch.int32, generator=torch.Generator().manual_seed(1))
x[torch.rand(n, generator=torch.Generator().manual_seed(2)) < share] *= -1
for name, source in (("each its own", lab10.OWN_BRANCH), ("yours", mix)):
    profile = compile_cuda(source)["mix"].launch(n // 256, 256, x, torch.empty_like(x), n)
    print(
        f"{name:13} {profile.warp_instructions:7,} warp instructions, {profile.inactive_lanes / 32:6,.0f} of them idle, "
        f"{profile.divergent_branches} branches at which a warp parts"
    )

# %% [markdown]
# With the list, the 16 expensive elements that a block of 256 has on average fit into half a warp, where before 7 of its 8
# warps had one of them. The list costs every warp some instructions, and pays as soon as the branch is longer than that.
#
# This is called **stream compaction**. With few threads the order of the list does not matter, so an atomic counter in
# shared memory does. Mixture-of-experts layers do the same on a large scale: they sort tokens by expert, so that each
# expert's product has full tiles. A short branch needs none of this: the compiler turns it into selected instructions
# without any jump.

# %% [markdown]
# ## What you measured
#
# Each row is one plan for the same bytes against another.


# %%
summary = {
    "a strided transpose, of yours": lambda: (
        f"{naive_profile.global_sectors / transpose_profile.global_sectors:.1f} times the sectors"
    ),
    "a tile without padding, of yours": lambda: (
        f"{tiled_profile.shared_wavefronts / transpose_profile.shared_wavefronts:.1f} times the passes"
    ),
    "a piece for each thread, of yours": lambda: (
        f"{pieces_profile.global_sectors / axpy_profile.global_sectors:.1f} times the sectors"
    ),
    "a divergent tree, of your tree": lambda: (
        f"{sum_profiles['divergent_sum'].shared_wavefronts / sum_profiles['block_sum'].shared_wavefronts:.1f} "
        "times the passes"
    ),
    "your tree, of your shuffles": lambda: (
        f"{sum_profiles['block_sum'].barriers / sum_profiles['shuffle_sum'].barriers:.1f} times the barriers"
    ),
}
for name, text in labkit.each_written(summary).items():
    print(f"{name:36}{text}")

# %% [markdown]
# **A GPU computes almost for free and reads expensively. A kernel is a plan for which lane touches which byte when**, and you
# can read its price off the plan, without a GPU and without a clock.
#
# And this is how well you guessed:

# %%
guesses.score()

# %%
progress("10", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "10",
    "a tile in shared memory",
    memory=lambda: (
        f"{transpose_profile.global_sectors / naive_profile.global_sectors:.0%} of the sectors"
    ),
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 points each. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A colleague ports a C program to CUDA line by line: each thread gets a piece of the array, as each
# core did before. Which rule of the CPU's memory hierarchy was the old program built for, which rule of the GPU's does
# the new one break, and what do the two rules have in common? Give the cost as a number.

# %% [markdown] nbgrader={"grade": true, "grade_id": "10-open-hierarchy", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# In common: memory moves in pieces larger than an element (64 bytes to a CPU's cache, 32-byte sectors here), so every piece
# should be used fully while it is there. On a CPU one thread uses a cache line in its next iterations, so it should walk through
# neighbouring elements (and its own piece avoids sharing lines with other cores). On a GPU the 32 lanes of a warp ask in the same
# instruction, so neighbours in memory belong to neighbouring lanes. With a piece for each thread a request of floats touches 32
# sectors in place of 4: 8 times the traffic, unless the cache holds 2048 threads' sectors until their next round (64 KB per array
# and SM), which it often cannot. Cure: a grid-stride loop.
#
# Marks: 1/2 for what is common (pieces are moved, use them whole). 1/2 for the CPU's rule (same thread, next iteration). 1/2 for the
# GPU's (neighbouring lanes, same instruction). 1/2 for 8 times, or 32 sectors against 4.
# ### END SOLUTION

# %% [markdown]
# **B.** (2 points) Why is the fastest kernel often not the one with 100 % occupancy? Name what occupancy is for, what
# it costs, and one kernel for which 25 % is enough, with a number.

# %% [markdown] nbgrader={"grade": true, "grade_id": "10-open-occupancy", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Occupancy is a means: enough loads in flight (or enough independent instructions) to hide latency. By Little's law an H100 needs
# about 15 KB in flight on an SM (3.35 TB/s times 600 ns over 132 SMs). 2048 threads with one 4-byte load each give 8 KB, which is not
# enough at 100 %; 512 threads (25 %) with two loads of 16 bytes each give 16 KB, which is. It costs registers and shared memory: at
# 100 % a thread has 32 registers, so tiles are small, values are read again or spilled. Matrix products keep large tiles in registers
# (128 to 255 a thread) and run at 12 to 25 % occupancy with the tensor cores busy.
#
# Marks: 1/2 for hiding latency as the purpose. 1/2 for registers or shared memory as the price. 1 for an example with numbers that
# works out (1/2 without numbers).
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - Mark Harris, *An Efficient Matrix Transpose in CUDA C/C++* (NVIDIA technical blog, 2013), and *Optimizing Parallel Reduction in
#   CUDA* (2007): the two classics that this lab follows.
# - Vasily Volkov, *Better Performance at Lower Occupancy* (GTC 2010).
# - Simon Boehm, *How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance* (2022): from 1 % to 94 % of cuBLAS.
# - Wen-mei Hwu, David Kirk and Izzat El Hajj, *Programming Massively Parallel Processors* (4th edition, 2022).
#
# ## Sources
#
# NVIDIA: *CUDA C++ Programming Guide* (grids, blocks, warps, memory spaces, limits by compute capability), *PTX ISA*
# (what each instruction does), *Nsight Compute Documentation* (names and definitions of counters), the tuning guides
# and white papers of Ampere, Hopper and Blackwell (sizes). Latencies: Weile Luo and others, *Benchmarking and
# Dissecting the Nvidia Hopper GPU Architecture* (2024, arXiv:2402.13499), on an H100 PCIe. Other measurements of the
# same card: Chips and Cheese, *Nvidia's H100: Funny L2, and Tons of Bandwidth* (2023). Of the CPU's caches: AMD,
# *Software Optimization Guide for the AMD Zen4 Microarchitecture*. The four mistakes of the histogram and the naive
# transpose are everybody's.
