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
import torch

import labkit
import labkit.figures
from labkit import Predictions, check, progress
from labkit.simt import compile_cuda

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
# The hardware does not run threads one by one. It takes 32 that follow one another, a **warp** (blue), and executes each
# instruction for all of them at once. Along x the threads of a block follow one another directly, then comes the next
# row of y. This will matter in the next section. Here it only means that idle threads are not free: a warp with one
# working lane takes as many instructions as a full one. The 32 places of a warp are called its **lanes**.

# %% [markdown]
# **Predict:** a matrix of 200 rows and 300 columns is covered by blocks of 32 × 32 threads. How many threads have no
# element?

# %% nbgrader={"grade": false, "grade_id": "10-predict-idle", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("threads without an element", None, unit="threads")

# %% [markdown]
# [[exercise 10-indexing]]
#
# Write the kernel `adjust`, which changes an image of `rows` × `cols` numbers in place: the element in row r and column c
# becomes `gain[r] * image[r, c] + bias[c]`. One thread changes one element, and x runs along the columns. The check
# launches it with blocks of several shapes, on matrices that no block divides, and once with more blocks than needed.
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
# Your kernel on 200 × 300 numbers, with what each of its lines cost. "warp instr." counts an instruction once for each
# warp that executes it. A line of C++ becomes several instructions, and the head of the kernel is where it reads its
# arguments.

# %%
rows, cols = 200, 300
grid, block = (-(-cols // 32), -(-rows // 32)), (32, 32)
image = torch.ones(rows, cols)
adjust_profile = compile_cuda(adjust)["adjust"].launch(
    grid, block, image, torch.ones(rows), torch.ones(cols), rows, cols
)
print(adjust_profile.table())
n_idle = grid[0] * block[0] * grid[1] * block[1] - image.numel()
print(f"{grid[0]} x {grid[1]} blocks, {n_idle:,} threads without an element")
guesses.settle("threads without an element", n_idle)

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
# ## What you have now

# %%
guesses.score()

# %%
progress("10", globals())

# %% [markdown]
# ## Sources
#
# NVIDIA, *CUDA C++ Programming Guide* (grids, blocks, warps). Names of counters: NVIDIA, *Nsight Compute
# Documentation*.
