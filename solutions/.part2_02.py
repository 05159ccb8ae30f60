# %% [markdown]
# ## 5. Four ways to add numbers
#
# Back to the sum that stopped at 4. From 4 on, the values of bfloat16 are $2^{-5} = 0.03125$ apart. Adding 0.01 reaches
# less than half of that step, so the result is rounded back to 4, each time. The *accumulator* is at fault and not the
# terms: it has grown so large that a term falls below its last bit.
#
# Let $u$ be the *unit roundoff*, half the distance from 1 to the next number: $2^{-24}$ in float32, $2^{-11}$ in
# float16, $2^{-8}$ in bfloat16. Every addition is off by at most the factor $1 \pm u$, so what matters is how many
# additions a term goes through. For the sum $s$ of $x_1, \dots, x_n$ and small $n u$:
#
# | method | each term goes through | error is at most about |
# |---|---|---|
# | naive, first to last | up to $n - 1$ additions | $(n - 1)\,u \sum \lvert x_i \rvert$ |
# | sorted, smallest magnitude first | the same, but the large terms through few | the same, often less |
# | pairwise, half by half | $\lceil \log_2 n \rceil$ additions | $\log_2(n)\,u \sum \lvert x_i \rvert$ |
# | Neumaier, with a compensation | as naive, but what is lost is kept | $u\,\lvert s \rvert + n^2 u^2 \sum \lvert x_i \rvert$ |
#
# The last one rests on a small miracle: what the rounding of one addition loses is itself a float, and two more
# operations find it. With $t$ the rounded sum of $s$ and $v$, and $\lvert s \rvert \ge \lvert v \rvert$, the loss is
# $(s - t) + v$, exactly, *in this order of operations*.
#
# **Predict:** what does each of the four make of 1000 × 0.01 when every number is a bfloat16? Write down four numbers.
#
# [[exercise 02-sums]]
#
# Write the four functions. `x` is one-dimensional, has at least one element, and stays as it is. **Everything is
# computed in `x.dtype`**, accumulators included: no float64 on the way, no `sum` of PyTorch or numpy. You may write and
# check them one after the other.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `for value in x:` hands you tensors without dimensions that have x's dtype, and so has the sum of two of them. Start
# from `torch.zeros((), dtype=x.dtype)`. The other three are easier once the first is done. What is the pairwise sum of
# a single element?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Sorted: `argsort` of the magnitudes gives the order, and then it is the naive sum. Pairwise: the function calls itself
# on the two halves, of which one is longer when n is odd. Neumaier: keep a second accumulator for what is lost. If the
# new term is the larger of the two, the running sum is what loses its low bits: swap their roles.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Sorted: `naive_sum(x[x.abs().argsort()])`. Pairwise: `if len(x) == 1: return x[0]`, else split at `len(x) // 2`.
# Neumaier, for each value: `t = s + v`, then add to the compensation `(s - t) + v` where `s.abs() >= v.abs()` and
# `(v - t) + s` elsewhere, then `s = t`. Return the sum *plus the compensation*. Mind the brackets.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-sums", "locked": false, "schema_version": 3, "solution": true, "task": false}
def naive_sum(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """The elements added from first to last."""
    ### BEGIN SOLUTION
    total = torch.zeros((), dtype=x.dtype)
    for value in x:
        total = total + value
    return total
    ### END SOLUTION


def sorted_sum(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """The elements added from the smallest magnitude to the largest."""
    ### BEGIN SOLUTION
    return naive_sum(x[x.abs().argsort()])
    ### END SOLUTION


def pairwise_sum(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """The pairwise sum of one half plus the pairwise sum of the other."""
    ### BEGIN SOLUTION
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return pairwise_sum(x[:middle]) + pairwise_sum(x[middle:])
    ### END SOLUTION


def neumaier_sum(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """The elements added from first to last, plus one compensation that has gathered what each addition lost."""
    ### BEGIN SOLUTION
    total = torch.zeros((), dtype=x.dtype)
    compensation = torch.zeros((), dtype=x.dtype)
    for value in x:
        new_total = total + value
        if total.abs() >= value.abs():
            compensation = compensation + ((total - new_total) + value)
        else:
            compensation = compensation + ((value - new_total) + total)
        total = new_total
    return total + compensation
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-sums-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("02-sums", naive_sum, sorted_sum, pairwise_sum, neumaier_sum)

# %%
four_sums = {"naive": naive_sum, "sorted": sorted_sum, "pairwise": pairwise_sum, "neumaier": neumaier_sum}
for dtype in (torch.bfloat16, torch.float16, torch.float32):
    hundredths = torch.full((1000,), 0.01, dtype=dtype)
    sums = "  ".join(f"{name} {add(hundredths).item():<8.6g}" for name, add in four_sums.items())
    print(f"{dtype!s:16} {sums}")

# %% [markdown]
# Sorting equal numbers cannot help. Neumaier's method helps by half in bfloat16: its compensation is an accumulator as
# well, and stalls at 4 like the first one. The bound had said so: it promises nothing once $n u$ passes 1, and
# $1000 \cdot 2^{-8}$ is about 4. Now the partial sums one by one.

# %% tags=["figure"]
labkit.figures.stalling_sum(naive_sum)

# %% [markdown]
# Look at the kinks: the slope changes at every power of two, because 0.01 is rounded to another number of steps there.
# Between 2 and 4 a step is 0.0156 and the red line is too *fast*; at 4 it stops. Float16 does the same, eight times
# later.
#
# The next figure adds random numbers from 0 to 1 in float32. **Predict:** how close does the naive sum come to its
# bound?

# %% tags=["figure"]
labkit.figures.error_against_n(four_sums)

# %% [markdown]
# The naive error stays far below $(n - 1)\,u$: roundings go up and down and mostly cancel, so that it grows more like
# $\sqrt{n}\,u$. (In the stalling sum they all had the same sign, which is why that one was a disaster.) Pairwise and
# Neumaier stay near $u$, the error of merely storing the result.
#
# **In practice** you have been using such sums all the time. `numpy.sum` is pairwise, in blocks of up to 128, along the
# fastest axis; `torch.sum` on a CPU is a cascade of partial sums; on a GPU a sum is a tree by nature, because thousands
# of threads share the work. Python's own `sum` of floats is Neumaier's from version 3.12 on. Kahan's compensation, the
# older form without the swap, is an option in some optimizers, which keep bfloat16 weights and one more bfloat16 for
# what their updates lose. And all of them let go of the order of your terms.

# %% [markdown]
# ## 6. Always add the two smallest
#
# For numbers that are not negative there is an order that keeps the partial sums as small as they can be: take the two
# smallest numbers, put their sum back among the rest, and repeat. It is how Huffman builds his code, and the sum of all
# partial sums, which bounds the error, is the smallest possible.
#
# A lecture shows it like this:
#
# ```python
# while len(values) > 1:
#     bisect.insort(values, values.pop(0) + values.pop(0))
# ```
#
# Two things are wrong with it. On most lists the result is not what was promised; and 300,000 values take it more than
# ten seconds, although `insort` needs only about 18 comparisons to find a place.
#
# **Predict:** where does the time go, if not into comparisons?
#
# [[exercise 02-merge-smallest]]
#
# Write `merge_smallest(values)`: the sum of a list of Python floats, none negative, in no particular order. The list
# stays as it is. The result must have the very bits of this method, and 300,000 values must take less than 4 s of CPU
# time.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does the loop take for granted about the list in its first turn? And what must happen to the 299,999 other
# entries of a list when its first one is taken away?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# You never need the whole order, only the two smallest of what is left. A heap keeps the smallest at hand and takes a
# new value in about $\log_2 n$ steps, without moving the rest. Python's is `heapq`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Copy the list, `heapq.heapify` the copy, and while it has more than one entry: `heappop` twice and `heappush` the sum.
# (`heapreplace` does a pop and a push in one go.)
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-merge-smallest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_smallest(values: list[float]) -> float:
    """The sum of one or more numbers >= 0: the two smallest are replaced by their sum until one is left."""
    ### BEGIN SOLUTION
    parts = list(values)
    heapq.heapify(parts)
    while len(parts) > 1:
        smallest = heapq.heappop(parts)
        heapq.heapreplace(parts, smallest + parts[0])
    return parts[0]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-merge-smallest-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("02-merge-smallest", merge_smallest)

# %% tags=["figure"]
labkit.figures.merging_cost(merge_smallest)

# %% [markdown]
# Both axes are logarithmic, so a slope of 1 is time in proportion to n, and a slope of 2 to n². The lecture's loop, on a
# list sorted beforehand, even makes *fewer* comparisons than a heap. What bends its line upward is memory: every `pop(0)`
# and every `insort` moves the rest of the list by one place. Counting comparisons, or FLOPs, is not measuring.

# %% [markdown]
# ## 7. Half-precision numbers, single-precision sum
#
# The plainest cure is a wider accumulator. A tensor core multiplies float16 numbers and adds in float32; `torch.sum` of
# a float16 tensor adds in float32 and rounds once at the end. Converting the tensor first would do as well, and would
# need twice its memory again, often when there is none left. So the work is done in blocks: convert a few slices, sum
# them, add the result to a float32 accumulator, and let the block go.
#
# Blocks do even more. With $b$ terms in a block, a term goes through at most $b$ additions inside its block and $n / b$
# outside, so the error is at most about $(b + n/b)\,u \sum \lvert x_i \rvert$, and not $n u \sum \lvert x_i \rvert$.
#
# **Predict:** which $b$ makes this bound smallest for $n = 4096$, and how much smaller than the naive one is it?
#
# [[exercise 02-blocked-sum]]
#
# Write `blocked_sum(x, dim, block_size)`: the float32 sum of a float16 tensor over one axis, which may be counted from
# the end. At no time may more than one block exist in float32 (the result and the accumulator are free), and Python
# loops over blocks, not over slices or elements. Use PyTorch, whose memory and operations can be counted.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `x[i:j]` cuts the first axis. Which operation cuts an axis that you name, without copying anything? The last block may
# be shorter.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `x.split(block_size, dim)` gives views of all blocks, the short one included; `x.narrow(dim, start, length)` gives one.
# Each view is converted, summed over `dim`, and added to a float32 tensor that has x's shape without that axis.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Accumulator: `torch.zeros_like(x.select(dim, 0), dtype=torch.float32)`. In the loop: `total += block.float().sum(dim)`.
# The order counts: `block.sum(dim).float()` rounds to float16 first, and has lost the race already.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-blocked-sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blocked_sum(x: Float16[Tensor, "..."], dim: int, block_size: int) -> Float32[Tensor, "..."]:
    """The sum over axis `dim`, which is gone afterwards, with at most block_size slices in float32 at a time."""
    ### BEGIN SOLUTION
    total = torch.zeros_like(x.select(dim, 0), dtype=torch.float32)
    for block in x.split(block_size, dim):
        total += block.float().sum(dim)
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-blocked-sum-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("02-blocked-sum", blocked_sum)

# %%
from labkit.meters import measure_memory


def peak_mib(add, *arguments) -> float:
    measured = {}
    with measure_memory(measured):
        add(*arguments)
    return measured["peak_bytes"] / 2**20


x = torch.rand(4096, 4096, generator=torch.Generator().manual_seed(0)).half()
print(f"the float16 tensor itself      {x.nbytes / 2**20:.0f} MiB")
print(f"x.float().sum(0) adds          {peak_mib(lambda x: x.float().sum(0), x):.0f} MiB")
print(f"blocked_sum(x, 0, 128) adds    {peak_mib(blocked_sum, x, 0, 128):.0f} MiB")
print(f"x.sum(0, dtype=torch.float32)  {peak_mib(lambda x: x.sum(0, dtype=torch.float32), x):.0f} MiB")

# %% [markdown]
# $b = \sqrt{n} = 64$ gives $128\,u$ in place of $4095\,u$. The last line is how you would write it tomorrow: PyTorch
# converts inside its own loop, in pieces that fit into registers.
#
# **In practice** matrix products are sums over blocks all the time, and the accumulator is not always as wide as it
# seems. The fp8 tensor cores of an H100 keep about 14 bits of a running sum, so DeepSeek-V3 moves it to float32 after
# every 128 terms: a blocked sum, for exactly the reason that you have just measured.

# %% [markdown]
# ## 8. Round up or down by chance
#
# A wide accumulator costs memory that lasts if it is a *weight*. A bfloat16 weight near 1 has neighbours $2^{-7}$ apart,
# and an update of 0.001 is lost every time, however many of them come. The usual cure is a float32 copy of all weights,
# 4 bytes each.
#
# Another cure is to stop deciding every case alike. If $x$ lies between the neighbours $a < b$, round to $b$ with
# probability $p = (x - a) / (b - a)$ and to $a$ otherwise. Then the *expected* result is $a + p\,(b - a) = x$: each
# single rounding is worse, up to a whole step and not half of one, but the errors have no direction and cancel over
# many updates.
#
# **Predict:** 1 + 0.001 is rounded to bfloat16 this way. Which two values can come out, and how often is it the upper
# one?
#
# [[exercise 02-stochastic-rounding]]
#
# Write `stochastic_round(x, generator)`: float32 to bfloat16. What bfloat16 has stays as it is; so do infinity and NaN;
# a finite number beyond the largest finite bfloat16 becomes that one and never infinity. Every element has a draw of its
# own, all from `generator`, and x stays as it is.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A bfloat16 is the upper half of a float32. Cutting off the lower 16 bits always gives the neighbour toward zero. What
# could you add to the bits before the cut, so that the carry comes by chance?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The lower 16 bits, as a whole number $l$, are the fraction $p = l / 2^{16}$ of a step. If $r$ is drawn evenly from $0$
# to $2^{16} - 1$, then $l + r \ge 2^{16}$, which carries into the upper half, happens with probability exactly $p$. The
# sign bit is not touched, so negative numbers need nothing extra. Infinity, NaN and the largest numbers do.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `bits = x.view(torch.int32)` and `noise = torch.randint(2**16, x.shape, generator=generator, dtype=torch.int32)`; then
# `((bits + noise) & -(2**16)).view(torch.float32)`. Where that is not finite, take `bits & -(2**16)` instead. Where x
# itself is not finite, take x. Convert at the end, and do not write `bits += noise`: a view shares its memory with x.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-stochastic-rounding", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stochastic_round(x: Float32[Tensor, "*shape"], generator: torch.Generator) -> BFloat16[Tensor, "*shape"]:
    """Each element rounded to a neighbour in bfloat16, up with the fraction of the step as probability."""
    ### BEGIN SOLUTION
    bits = x.view(torch.int32)
    noise = torch.randint(2**16, x.shape, generator=generator, device=x.device, dtype=torch.int32)
    toward_zero = (bits & -(2**16)).view(torch.float32)
    rounded = ((bits + noise) & -(2**16)).view(torch.float32)
    rounded = torch.where(rounded.isfinite(), rounded, toward_zero)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-stochastic-rounding-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("02-stochastic-rounding", stochastic_round)

# %%
draws = stochastic_round(torch.full((100_000,), 1.001), torch.Generator().manual_seed(0))
values, counts = draws.unique(return_counts=True)
for value, count in zip(values.tolist(), counts.tolist()):
    print(f"{value:<9} {count / len(draws):.1%}")
print(f"mean {draws.double().mean():.5f}")

# %% [markdown]
# The upper neighbour has 0.001 / 0.0078125 = 12.8 % of the draws. Now 500 such updates, on 400 weights.

# %% tags=["figure"]
labkit.figures.tiny_updates(stochastic_round)

# %% [markdown]
# The single weights stray like a random walk, here by about 7 steps of 0.0078, and their mean stays on the line. The red
# weight has never moved.
#
# **In practice** stochastic rounding is how networks were first trained with 16-bit fixed-point weights (Gupta and
# others, 2015), accelerators such as Trainium do it in hardware, and `torchao` offers optimizers with bfloat16 weights
# that round this way. The other choices are a float32 master copy (lab 03) and Kahan's compensation.

# %% [markdown]
# ## What you measured
#
# The table uses your functions only. First the opening question, then 4096 random numbers in float32 against the exact
# sum, then the way of rounding.

# %%
hundredths = torch.full((1000,), 0.01, dtype=torch.bfloat16)
uniform = torch.rand(4096, generator=torch.Generator().manual_seed(0))
exact = math.fsum(uniform.tolist())
print(f"{'sum':22}{'1000 x 0.01, bf16':>20}{'error, n = 4096, fp32':>26}")
for name, add in four_sums.items():
    error = abs(add(uniform).item() - exact) / exact
    print(f"{name:22}{add(hundredths).item():>20.4g}{error:>26.1e}")
blocked = blocked_sum(hundredths.half(), 0, 32).item()
print(f"{'blocked, fp32 inside':22}{blocked:>20.4g}")

generator = torch.Generator().manual_seed(0)
by_chance = torch.zeros(200, dtype=torch.bfloat16)
for _ in range(1000):
    by_chance = stochastic_round(by_chance.float() + 0.01, generator)
print(f"{'by chance, mean of 200':22}{by_chance.float().mean().item():>20.4g}")

# %% [markdown]
# The line of blocked sums starts from float16 copies of bfloat16's 0.01, which is 0.010009765625: its sum is 10.01, as
# it should be.

# %%
progress("02", globals())

# %% [markdown]
# ## Open questions
#
# Your instructor reads these. A few sentences each; numbers count more than words.
#
# **A.** Two runs of the same training script, with the same seeds, on the same GPU, print losses that agree in five
# digits in step 1 and in two in step 1000. A colleague says that there must be a bug. Name two places in a training step
# where the order of a sum may differ from run to run, say why that changes the result at all, and describe one
# experiment that would tell such an effect from a bug.

# %% [markdown] nbgrader={"grade": true, "grade_id": "02-open-order", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Float addition is not associative: another order rounds differently. The order varies where threads or devices add into
# one place as they arrive (atomic additions in scatter, index_add, embedding backward and some attention backward
# kernels), where an algorithm is chosen at run time (split-K products, cuDNN autotuning), and in an all-reduce whose
# order depends on arrival. Training then amplifies differences of about 1e-7 step by step. Experiments: run with
# `torch.use_deterministic_algorithms(True)` and compare bits; run in float64, where the gap must shrink by about 1e9;
# compare the gradients of the *first* step, where the gap must be near u and not larger.
#
# Marks: 1/2 for each of two places (no more than 1). 1/2 for non-associative rounding as the reason. 1/2 for an
# experiment whose two outcomes are told apart. "Random seeds" alone earns nothing: they are equal.
# ### END SOLUTION

# %% [markdown]
# **B.** You train 7 billion parameters in pure bfloat16, and the loss stops falling when the learning rate has decayed
# to $10^{-5}$. Explain it with numbers from this lab. Compare three cures: a float32 master copy, a bfloat16
# compensation beside each weight, stochastic rounding. How many gigabytes does each add, and what does each cost besides?

# %% [markdown] nbgrader={"grade": true, "grade_id": "02-open-small-updates", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# A bfloat16 weight w moves only if the update is at least about 2^-9 |w| = 0.002 |w| (half a step, and a step is 2^-8 to
# 2^-7 of w). AdamW's update is about the learning rate, 1e-5, so weights larger than about 0.005 no longer move at all.
#
# Master copy: 4 bytes each, 28 GB; exact to float32; one more cast per step. Compensation: 2 bytes each, 14 GB; about
# 16 bits of mantissa in effect, a few more operations per element, no randomness. Stochastic rounding: 0 GB; unbiased,
# but every update adds noise of up to one step to the weight, which has to be drawn (reproducibly, and alike on all
# replicas).
#
# Marks: 1 for the threshold with a number (0.2 % to 0.4 % of the weight, or a weight size for lr = 1e-5). 1 for the three
# memory figures (1/2 for two of them). 1 for one true cost or limit of each (1/2 for two).
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - David Goldberg, *What Every Computer Scientist Should Know About Floating-Point Arithmetic* (ACM Computing Surveys
#   23, 1991). The classic; read it up to guard digits and Kahan's sum.
# - Nicholas Higham, *Accuracy and Stability of Numerical Algorithms* (2nd edition, SIAM, 2002), chapter 4: every bound of
#   section 5, and the order of section 6.
# - Paulius Micikevicius and others, *FP8 Formats for Deep Learning* (2022): e4m3 and e5m2, and why there are two.
# - Matteo Croci and others, *Stochastic rounding: implementation, error analysis and applications* (Royal Society Open
#   Science 9, 2022).
#
# **Sources.** IEEE 754-2019 and the texts above. Neumaier's sum: Arnold Neumaier, *Rundungsfehleranalyse einiger
# Verfahren zur Summation endlicher Summen* (ZAMM 54, 1974); its bound in the form used by the check: Takeshi Ogita,
# Siegfried Rump and Shin'ichi Oishi, *Accurate Sum and Dot Product* (SIAM Journal on Scientific Computing 26, 2005).
# Blocks: Pierre Blanchard, Nicholas Higham and Theo Mary, *A Class of Fast and Accurate Summation Algorithms* (SIAM
# Journal on Scientific Computing 42, 2020). Training with stochastic rounding: Suyog Gupta and others, *Deep Learning
# with Limited Numerical Precision* (ICML 2015). Accumulation in fp8 products: *DeepSeek-V3 Technical Report* (2024),
# section 3.3.
