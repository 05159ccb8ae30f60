# %% [markdown]
# # Lab 02: Float formats and summation error
#
# Add 0.01 a thousand times. In bfloat16, the format in which most large models are trained, the sum is 4. **Where did
# the other 6 go?** No operation failed, and every single addition is as exact as the format allows.
#
# In this lab you write a decoder and an encoder for every float format that training uses, int8 quantization, and
# several ways to add that lose less. At the end you can tell from the number of mantissa bits when a weight stops
# moving.
#
# [[time]]
#
# You need tensors and integer operations on bits (`>>`, `&`); lab 00 shows how exercises are checked.
#
# Type hints such as `Int64[Tensor, "*shape"]` say what goes in and what comes out: the dtype, then the shape. `*shape`
# stands for any number of axes, and for the same ones wherever the name appears again. The hints are only there to be
# read: nothing enforces them.

# %% nbgrader={"grade": false, "grade_id": "02-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import heapq
import math

import torch
from jaxtyping import BFloat16, Float, Float16, Float32, Float64, Int8, Int64
from torch import Tensor

import labkit.figures
from labkit import Predictions, check, progress
from labkit.formats import BF16, FORMATS, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32, FloatFormat
from labkit.material import lab02

guesses = Predictions("02")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so


# %%
def add_many_times(step: float, n: int, dtype: torch.dtype) -> Tensor:
    total, step = torch.zeros((), dtype=dtype), torch.tensor(step, dtype=dtype)
    for _ in range(n):
        total = total + step
    return total


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    print(f"{dtype!s:16} 1000 x 0.01 = {add_many_times(0.01, 1000, dtype).item():.4f}")


# %% [markdown]
# A weight that receives a thousand small updates is such a sum. To see why it stops at 4, look at the bits.

# %% [markdown]
# ## What a bit pattern means
#
# A float consists of a sign, a power of two, and a position between this power and the next. The **exponent** field
# holds the power, and the **mantissa** field holds the position. All formats share this plan. They differ in two
# numbers: the width of the exponent field, $E$ bits, and the width of the mantissa field, $M$ bits.
#
# | format | sign bits | exponent bits $E$ | mantissa bits $M$ | total bits | used for |
# |---|---|---|---|---|---|
# | fp32 | 1 | 8 | 23 | 32 | master weights (lab 03), sums |
# | tf32 | 1 | 8 | 10 | 19 | inputs of fp32 products on tensor cores, a GPU's units for matrix products |
# | bf16 | 1 | 8 | 7 | 16 | training of large models |
# | fp16 | 1 | 5 | 10 | 16 | training with loss scaling (lab 03), inference |
# | e5m2 | 1 | 5 | 2 | 8 | gradients in fp8, that is, in 8 bits |
# | e4m3fn | 1 | 4 | 3 | 8 | weights and activations in fp8 |
#
# The short names say this: e5m2 has 5 exponent bits and 2 mantissa bits. The "fn" in e4m3fn means *finite* and *NaN
# only*, because this format has no infinities.

# %% [markdown]
# Exponents have to be negative too, but a field of bits is a whole number from 0 up. So a constant is subtracted from
# it, the **bias**, $2^{E-1} - 1$. Let $e$ be the exponent field and $m$ the mantissa field, both read as whole numbers,
# and $s$ the sign bit. The IEEE 754 standard says what they mean:
#
# | exponent field | mantissa field | value |
# |---|---|---|
# | neither all zeros nor all ones | any | $(-1)^s \cdot (1 + m / 2^M) \cdot 2^{e - \text{bias}}$, a normal number |
# | all zeros | any | $(-1)^s \cdot (0 + m / 2^M) \cdot 2^{1 - \text{bias}}$, zero or a subnormal number |
# | all ones | 0 | $(-1)^s \cdot \infty$ |
# | all ones | not 0 | NaN, not a number |
#
# The 1 in front of $m / 2^M$ is not stored: it is the **implicit leading 1** of a normal number, and a **subnormal**
# number has a 0 there. If e4m3 gave infinity and NaN a whole exponent field, one of its 16, that would be 16 of its 256
# patterns. In a finite-only format such as e4m3fn, an exponent field of all ones is therefore an ordinary exponent.
# Only the pattern with all exponent *and* all mantissa bits set is NaN, one for each sign.

# %% [markdown]
# **Predict:** e4m3fn has 256 patterns. How many of them lie strictly between −1 and 1?

# %% nbgrader={"grade": false, "grade_id": "02-predict-inside", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("patterns between -1 and 1", None, unit="patterns")

# %% [markdown]
# [[exercise 02-decode]]
#
# Write `decode(bits, fmt)`, which returns the values of bit patterns. `bits` is an int64 tensor of any shape with
# numbers from 0 to $2^{1+E+M} - 1$. `fmt` is a `FloatFormat` with the fields `exponent_bits`, `mantissa_bits`,
# `finite_only` and `total_bits`. Return float64, which holds all of these values exactly. The sign of a zero counts:
# the pattern 100…0 is −0.0. Here and in the next exercises the check uses the formats of the table and made-up ones,
# with $2 \le E \le 8$ and $M \ge 1$.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Three whole numbers can be cut out of a pattern with `>>` and `&`. Do that first, and look at them for the pattern of
# 1.0 in fp16, which is 15360. Then take the four lines of the table one after the other.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Compute the normal value and the subnormal value for *all* patterns, and let `torch.where` choose by the exponent
# field. Then overwrite the values with the top exponent, depending on `fmt.finite_only`. Apply the sign last, as a
# factor of −1.0, so that you get −0.0.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `exponent = (bits >> fmt.mantissa_bits) & (2**fmt.exponent_bits - 1)` and `mantissa = bits & (2**fmt.mantissa_bits -
# 1)`. The two values differ only in the implicit bit, which is 0 or 1, and in the exponent: `exponent.clamp(min=1) -
# bias` serves both. Raise 2.0 to it in float64 (`2.0 ** power.double()`). With `finite_only`, NaN is where both fields
# are full.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-decode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def decode(bits: Int64[Tensor, "*shape"], fmt: FloatFormat) -> Float64[Tensor, "*shape"]:
    """The values of bit patterns 0 <= bits < 2**fmt.total_bits, as float64."""
    ### BEGIN SOLUTION
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    top_exponent, full_mantissa = 2**fmt.exponent_bits - 1, 2**fmt.mantissa_bits - 1
    negative = bits >> (fmt.total_bits - 1) == 1
    exponent = bits >> fmt.mantissa_bits & top_exponent
    mantissa = bits & full_mantissa

    implicit = torch.where(exponent == 0, 0.0, 1.0).double()
    power = exponent.clamp(min=1).double() - bias
    size = (implicit + mantissa / 2.0**fmt.mantissa_bits) * 2.0**power

    top = exponent == top_exponent
    if fmt.finite_only:
        size[top & (mantissa == full_mantissa)] = torch.nan
    else:
        size[top] = torch.where(mantissa[top] == 0, torch.inf, torch.nan).double()
    return torch.where(negative, -size, size)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-decode-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("02-decode", decode)

# %%
everything = decode(torch.arange(256), FP8_E4M3FN)
inside = (everything.abs() < 1).sum()
print(f"e4m3fn: {inside} of 256 patterns lie between -1 and 1, {everything.isnan().sum()} are NaN")
guesses.settle("patterns between -1 and 1", inside)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 112, nearly half of them: the exponent fields 0 to 6, with 8 mantissas and two signs each (the two patterns of zero
# among them). Every power of two, however small, gets the same number of patterns.
#
# </details>
#
# The figure draws the values that your function returns. If the check fails, run this cell anyway and look.

# %% tags=["figure"]
labkit.figures.number_line(decode)

# %% [markdown]
# In the upper half, the gaps double at every power of two, and e4m3fn has twice as many strokes as e5m2 everywhere
# except next to zero. The made-up format e3m2 is small enough to see each value. Its subnormals, in orange, continue
# the last gap evenly down to zero. Without them there would be a hole from 0 to ¼. The lower half shows that exponent
# bits buy range: bf16 reaches as far as fp32. The next section shows the price.
#
# **In practice** nobody decodes by hand: `bits.to(torch.int16).view(torch.float16)` reinterprets the bits without
# changing them. This works only for formats that PyTorch has.

# %%
bits = torch.arange(2**16)
by_torch = bits.to(torch.int16).view(torch.bfloat16).double()
print(
    "bf16, same as PyTorch:",
    torch.equal(decode(bits, BF16).nan_to_num(), by_torch.nan_to_num()),
    "for 65536 patterns",
)

# %% [markdown]
# ## Rounding: from a value to a pattern
#
# Nearly every result of an operation falls between two strokes of that figure. Hardware then takes the nearer one. A
# number half-way between two is a **tie**, and there hardware takes the one whose last bit is 0. The rule is called
# **round to nearest, ties to even**. If ties were always rounded up, every sum would drift upwards. The even neighbour
# lies above as often as below, so nothing drifts.

# %% [markdown]
# For numbers that are too large, each kind of format has its own rule. An IEEE format has infinity. It rounds as if
# there were one more stroke above the largest number, and whatever rounds to that stroke becomes infinity. The largest
# number of fp16 is 65504, and the next stroke would be 65536. So 65519 becomes 65504. 65520 is half-way, and becomes
# infinity because 65536 would have the even mantissa.
#
# A finite-only format has no infinity to round to. This lab follows PyTorch 2.13, which **saturates**: in e4m3fn
# everything above 448, even infinity, becomes 448. NaN stays NaN. (An older PyTorch makes NaN of what is too large. The
# check asks for 448 with every version.)

# %% [markdown]
# The picture shows five numbers between the values 4 and 8 of e3m2. Three of them are ties.

# %% tags=["figure"]
labkit.figures.rounding_to_even()

# %% [markdown]
# **Predict:** which value of fp16 does 4102 become?

# %% nbgrader={"grade": false, "grade_id": "02-predict-rounding", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("4102 in fp16", None, exact=True)

# %% [markdown]
# [[exercise 02-encode]]
#
# Write `encode(x, fmt)`, which returns the bit patterns of the nearest values. `x` is a float32 tensor of any shape.
# Zeros of both signs, subnormals, infinities and NaN are among its values. The patterns are int64, with the sign as the
# top bit. For NaN, any NaN pattern will do. The check compares bit for bit with PyTorch's casts, on every tie of fp16
# and bf16.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Within one power of two the values of a format lie on a grid with even gaps. Divided by the gap, a number becomes a
# count of steps, and rounding to the nearest whole number, ties to even, is what `torch.round` does.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The gap is $2^{p - M}$ for a number between $2^p$ and $2^{p+1}$, and `torch.frexp` finds $p$. Below the smallest
# normal number the gap does not shrink any further, so $p$ must not go below $1 - \text{bias}$. Then count the steps.
# Patterns of positive numbers are in order, one pattern a step: a carry into the next power of two needs no special
# case, and overflow is a `clamp` of the pattern.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In float64: `p = (torch.frexp(size).exponent - 1).clamp(min=1 - bias)`, `steps = torch.round(size / 2.0 ** (p -
# M).double())`, and the pattern is `steps + ((p + bias - 1) << M)`, because a normal number has $2^M$ steps more than
# its mantissa field says. Clamp to the pattern of infinity, or to all ones minus 1 with `finite_only`; put NaN in with
# `torch.where`, and the sign with `torch.signbit`. `frexp` finds no sensible exponent in 0 and in infinity: clamp
# `size` to, say, $2^{-200}$ and $2^{200}$ before, which are out of reach of every format with $E \le 8$.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-encode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(x: Float32[Tensor, "*shape"], fmt: FloatFormat) -> Int64[Tensor, "*shape"]:
    """The bit patterns of the nearest values of fmt, ties to even, overflow by the format's rule."""
    ### BEGIN SOLUTION
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    all_ones = 2 ** (fmt.total_bits - 1) - 1  # below the sign bit
    infinity = all_ones - (2**fmt.mantissa_bits - 1)

    # Clamped so that 0 and infinity have an exponent, too small and too large for any format.
    size = x.double().abs().nan_to_num(nan=0.0).clamp(2.0**-200, 2.0**200)
    power = (torch.frexp(size).exponent - 1).clamp(
        min=1 - bias
    )  # frexp's fraction lies in [0.5, 1)
    ulp = 2.0 ** (power - fmt.mantissa_bits).double()
    steps = torch.round(size / ulp).long()  # to even; below 2**mantissa_bits it is subnormal

    # A normal number holds 2**mantissa_bits more steps than its mantissa field; a carry moves into the exponent.
    pattern = steps + ((power + bias - 1).long() << fmt.mantissa_bits)
    pattern = pattern.clamp(max=all_ones - 1 if fmt.finite_only else infinity)
    pattern = torch.where(x.isnan(), all_ones, pattern)
    return pattern + (torch.signbit(x).long() << (fmt.total_bits - 1))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-encode-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("02-encode", encode)

# %%
for value, fmt in ((4098, FP16), (4102, FP16), (8193, FP16), (1.01, BF16), (17, FP8_E4M3FN)):
    nearest = decode(encode(torch.tensor([float(value)]), fmt), fmt).item()
    print(f"{value:>6} in {fmt.name:7} becomes {nearest:g}")
    if (value, fmt) == (4102, FP16):
        guesses.settle("4102 in fp16", nearest)


# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Above 4096 the gap in fp16 is 4. So 4098 lies half-way between 4096 and 4100, and 4102 half-way between 4100 and 4104.
# The first goes down and the second goes up, because 4096 and 4104 have the even mantissas. Above 8192 the gap is
# already 8, so 8193 goes back to 8192. The gap of bf16 above 1 is $2^{-7}$ = 0.0078. So 1.01 has the neighbours 1.0078
# and 1.0156, and the first is nearer. In e4m3fn the gap above 16 is 2. So 17 is a tie between 16 and 18, and 16 has the
# even mantissa.
#
# </details>
#
# Now one number in every format, encoded and decoded by your functions (only the pattern of fp32 is read from memory).
# Change it and run the cell again: 1e6 becomes infinity in fp16 and e5m2, and 448 in e4m3fn.

# %% tags=["figure"]
labkit.figures.bit_fields(0.1, encode, decode)

# %% [markdown]
# The error is measured against the number as you wrote it, which fp32 has to round too. Compare the rows of fp32, tf32
# and bf16: the exponent bits are the same, and the mantissa gets shorter from row to row, with its last bit rounded.
# tf32 is the format to which a tensor core rounds the inputs of an fp32 matrix product. It has the range of bf16 and
# the precision of fp16, whose row has the same ten mantissa bits.
#
# **In practice** you write `x.to(torch.bfloat16)`, which is one instruction. PyTorch has no cast to tf32. But tf32 has
# the exponent bits of fp32, so you can round with whole numbers, on the fp32 pattern. Of its 23 mantissa bits 13 are
# dropped, so one step of tf32 is $2^{13}$ steps of fp32. Add half a step less one, which is `0xFFF`, and add the lowest
# bit that stays. Then shift the 13 bits out. A carry runs into the exponent by itself, as in your function.

# %%
x = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
pattern = x.view(torch.int32).long() & 0xFFFFFFFF
by_integers = (pattern + 0xFFF + (pattern >> 13 & 1)) >> 13
print("tf32, same as rounding at bit 13:", torch.equal(encode(x, TF32), by_integers))
print(
    "bf16, same as PyTorch's cast:    ",
    torch.equal(encode(x, BF16), x.bfloat16().view(torch.int16).long() & 0xFFFF),
)

# %% [markdown]
# ## The limits of a format
#
# Four numbers tell what a format can do. All four follow from $E$, $M$ and the rule for the top exponent:
#
# - **eps**: the gap between 1 and the next larger number. The relative error of one rounding is at most half of it.
# - **max**: the largest finite number. fp16 gradients that are half a gap or more beyond it become infinity (lab 03).
# - **smallest normal**: below it each further power of two costs one bit of precision.
# - **smallest subnormal**: half of it, or less, is rounded to zero. In fp16 this happens to small gradients.
#
# **Predict:** count 1, 2, 3, … in fp16, always adding 1. At which number does counting stop?

# %% nbgrader={"grade": false, "grade_id": "02-predict-counting", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("counting in fp16 stops", None, exact=True)

# %% [markdown]
# [[exercise 02-format-table]]
#
# Write `format_limits(fmt)`. It returns a dict of Python floats with the keys `"eps"`, `"max"`, `"smallest_normal"` and
# `"smallest_subnormal"`. The largest number depends on the kind of format: in an IEEE format infinity and NaN take the
# whole top exponent, and in a finite-only one NaN takes only its last pattern.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Each of the four is the value of one pattern, or the difference of two. Which patterns are they?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# eps is the weight of the last mantissa bit at $2^0$. The smallest normal number has exponent field 1 and mantissa 0;
# the smallest subnormal is that number times eps. The largest number has the largest usable exponent and the largest
# usable mantissa.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# With `eps = 2.0**-M`, a full mantissa is worth `2 - eps` and one with its last bit missing `2 - 2 * eps`. The largest
# exponent is `bias` in an IEEE format and `bias + 1` in a finite-only one. The smallest normal number is `2.0 ** (1 -
# bias)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-format-table", "locked": false, "schema_version": 3, "solution": true, "task": false}
def format_limits(fmt: FloatFormat) -> dict[str, float]:
    """The numbers "eps", "max", "smallest_normal" and "smallest_subnormal" of a format."""
    ### BEGIN SOLUTION
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    eps = 2.0**-fmt.mantissa_bits
    if fmt.finite_only:
        largest = (2 - 2 * eps) * 2.0 ** (bias + 1)  # all ones is NaN: the last mantissa bit is 0
    else:
        largest = (2 - eps) * 2.0**bias
    smallest_normal = 2.0 ** (1 - bias)
    return {
        "eps": eps,
        "max": largest,
        "smallest_normal": smallest_normal,
        "smallest_subnormal": smallest_normal * eps,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-format-table-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("02-format-table", format_limits)


# %%
def count_until_stuck(fmt: FloatFormat, most: float = 5000) -> float:
    """The number at which adding 1 changes nothing any more, with your encoder doing the rounding."""
    n = 1.0
    while n < most and decode(encode(torch.tensor([n + 1]), fmt), fmt).item() != n:
        n += 1
    return n


print(
    f"{'format':8} {'eps':>10} {'max':>10} {'smallest normal':>16} {'smallest subnormal':>19} {'2 / eps':>10}"
)
for fmt in FORMATS:
    eps, largest, normal, subnormal = (
        format_limits(fmt)[key] for key in ("eps", "max", "smallest_normal", "smallest_subnormal")
    )
    print(
        f"{fmt.name:8} {eps:10.3g} {largest:10.5g} {normal:16.3g} {subnormal:19.3g} {2 / eps:10.0f}"
    )
for fmt in (FP16, BF16):
    print(f"counting in {fmt.name} stops at {count_until_stuck(fmt):g}")
guesses.settle("counting in fp16 stops", count_until_stuck(FP16))


# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Counting stops at 2 / eps, the last column: 2048 in fp16 and 256 in bf16. From there on the gap is 2, so adding 1
# gives a tie, which is rounded back to the even neighbour.
#
# </details>
#
# This is also what happened to the missing 6. Between 4 and 8 the gap in bf16 is 4 · eps = 1/32, and 0.01 is less than
# half of it. In the same way a bf16 weight of 1.0 never changes by an update of 0.001, however often it is added.
#
# **In practice** `torch.finfo(dtype)` has these numbers as `eps`, `max` and `smallest_normal`. Some texts call half of
# eps "machine epsilon", so check which one they mean before you compare.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## int8: one scale for many numbers
#
# Every float carries its own scale, the exponent. Integers share one scale among many numbers: a whole number $q$, the
# **code**, stands for
#
# $$x \approx (q - z) \cdot \text{scale}$$
#
# where the **zero point** $z$ is the code of 0. With 8 bits there are 256 evenly spaced values, so everything depends
# on the range over which they are spread.
#
# - **Symmetric** (absmax): $z = 0$. The codes go from −127 to 127, and the scale is max|x| / 127. The code −128 is not
#   used, because with it the range would reach further on one side than on the other.
# - **Affine**: the codes from −128 to 127 stretch from the smallest to the largest value, and the scale is (max −
#   min) / 255. The range is extended to include 0, and $z$ is rounded to a whole number, so that **0 comes back as
#   exactly 0**. Zeros are common (padding, pruned weights, the output of a ReLU), and the same error in each of them
#   would add up.
#
# The range is taken over the whole tensor, or over one **channel** at a time, for instance one row of a weight matrix.

# %% [markdown]
# **Predict:** 31 channels of a matrix have ordinary weights, and one is 50 times larger. With one scale for the
# tensor, what is the relative error of an ordinary channel, that is, the norm of its errors divided by the norm of its
# weights?

# %% nbgrader={"grade": false, "grade_id": "02-predict-outlier", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("error of an ordinary channel", None, among=("0.4 %", "3 %", "30 %"))

# %% [markdown]
# [[exercise 02-int8-quantize]]
#
# Write `quantize_int8(x, symmetric, channel_dim)`, which returns `(q, scale, zero_point)`, and `dequantize_int8`, which
# turns codes back into values.
#
# - `x` is float32 of any shape. `q` is int8 in that shape, `scale` float32, `zero_point` int32 (all zeros if symmetric).
# - With `channel_dim=None`, scale and zero point have no axes. Otherwise x has two or more axes, `channel_dim` is one
#   of them, counted from 0, and scale and zero point keep all axes of `x`, of size 1 except for that one.
# - No value may come back more than half a scale from where it was. Every scale is above 0, even that of a channel of
#   zeros. Channels that are not all zeros have a weight whose magnitude is above $10^{-6}$, so you may raise every
#   scale to at least $10^{-7}$, as PyTorch's own observers do.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Per tensor and per channel differ only in the axes over which the smallest and the largest value are taken. Then ask
# what happens if a channel holds nothing but zeros, or only values above zero.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Reduce with `amin` and `amax` over all axes but `channel_dim`, with `keepdim=True`, and everything broadcasts. Clamp
# the minimum to at most 0 and the maximum to at least 0. Where the scale is 0, put 1 in its place. Round before the
# cast to int8, which cuts the fraction off, and clamp before it too.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Affine: `zero_point = torch.round(-128 - low / scale)`, the code that makes the smallest value −128, and `q =
# torch.round(x / scale + zero_point).clamp(-128, 127)`. Symmetric: the same with zero point 0 and −127 as the smallest
# code. To go back, convert `q` to float32 *before* you subtract: 100 − (−100) does not fit into int8.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-int8-quantize", "locked": false, "schema_version": 3, "solution": true, "task": false}
def quantize_int8(
    x: Float32[Tensor, "*shape"], symmetric: bool, channel_dim: int | None = None
) -> tuple[Int8[Tensor, "*shape"], Tensor, Tensor]:
    """(q, scale, zero_point): int8 codes of x's shape, float32 steps and int32 zero points.

    Per tensor (channel_dim None) scale and zero_point have no axes; per channel they have x's axes, all of size 1
    except channel_dim.
    """
    ### BEGIN SOLUTION
    if channel_dim is None:
        low, high = torch.aminmax(x)
    else:
        others = [axis for axis in range(x.dim()) if axis != channel_dim % x.dim()]
        low, high = x.amin(others, keepdim=True), x.amax(others, keepdim=True)
    low, high = low.clamp(max=0), high.clamp(min=0)  # zero must have a code
    if symmetric:
        first_code, scale = -127, torch.maximum(-low, high) / 127
    else:
        first_code, scale = -128, (high - low) / 255
    scale = torch.where(scale == 0, 1.0, scale)  # nothing but zeros: any step will do
    zero_point = torch.zeros_like(scale) if symmetric else torch.round(first_code - low / scale)
    q = torch.round(x / scale + zero_point).clamp(first_code, 127)
    return q.to(torch.int8), scale, zero_point.to(torch.int32)
    ### END SOLUTION


def dequantize_int8(
    q: Int8[Tensor, "*shape"], scale: Tensor, zero_point: Tensor
) -> Float32[Tensor, "*shape"]:
    """The float32 values that the codes stand for."""
    ### BEGIN SOLUTION
    return (q.float() - zero_point) * scale
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-int8-quantize-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("02-int8-quantize", quantize_int8, dequantize_int8)

# %% [markdown]
# The figure shows the errors of your functions on the matrix of the prediction, once with one scale and once with 32.
# As in the prediction, the relative error of a channel is $\lVert \hat{x} - x \rVert / \lVert x \rVert$, where
# $\hat{x}$ are the values that came back.

# %% tags=["figure"]
labkit.figures.quantization_error(quantize_int8, dequantize_int8)

# %%
if labkit.written(quantize_int8, dequantize_int8):
    x = torch.randn(32, 512, generator=torch.Generator().manual_seed(0)) * 0.02
    x[20] *= 50
    back = dequantize_int8(*quantize_int8(x, symmetric=True, channel_dim=None))
    percent = 100 * ((back - x).norm(dim=1) / x.norm(dim=1)).median().item()
    print(f"an ordinary channel, one scale for the tensor: {percent:.0f} %")
    nearest = min((0.4, 3, 30), key=lambda choice: abs(math.log(percent / choice)))
    guesses.settle("error of an ordinary channel", f"{nearest:g} %")

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The red squares are the answer, about 30 %. The outlier makes the step so wide that the ordinary weights share a
# handful of codes.
#
# </details>
#
# With a scale per channel the outlier affects only its own channel, and 31 more scales cost 124 bytes. Trained language
# models do have such channels, above all in their activations.
#
# **In practice** weights are quantized per channel, or in blocks of 32 to 128 values, each with its own scale
# (`torchao`, `bitsandbytes`). PyTorch can round a tensor to your grid and back in one call, which is used to train
# networks that tolerate it.

# %%
if labkit.written(quantize_int8, dequantize_int8):
    x = torch.randn(32, 512, generator=torch.Generator().manual_seed(1))
    q, scale, zero_point = quantize_int8(x, symmetric=False, channel_dim=0)
    yours = dequantize_int8(q, scale, zero_point)
    by_torch = torch.fake_quantize_per_channel_affine(
        x, scale.flatten(), zero_point.flatten(), 0, -128, 127
    )
    print(f"{x.nbytes} bytes became {q.nbytes + scale.nbytes + zero_point.nbytes}")
    for name, back in (("yours", yours), ("PyTorch", by_torch)):
        print(f"{name:8} largest error {((back - x).abs() / scale).max():.3f} steps")

# %% [markdown]
# ## Four ways to add numbers
#
# Back to the sum that stopped at 4, where 0.01 is less than half a gap. The **accumulator**, the variable that holds
# the running sum, is at fault, not the terms: it has grown too large for them.
#
# Let $u$ be the **unit roundoff**, half the distance from 1 to the next number: $2^{-24}$ in float32, $2^{-11}$ in
# float16, $2^{-8}$ in bfloat16. Rounding multiplies the result of an addition by a factor between $1 - u$ and $1 + u$.
# So what matters is how many additions a term goes through. For $x_1, \dots, x_n$ with the exact sum $S$, and small
# $n u$:
#
# | method | each term goes through | error is at most about |
# |---|---|---|
# | naive, first to last | up to $n - 1$ additions | $(n - 1)\,u \sum \lvert x_i \rvert$ |
# | sorted, smallest magnitude first | the same, but the large terms through few | the same, often less |
# | pairwise, half by half | $\lceil \log_2 n \rceil$ additions | $\log_2(n)\,u \sum \lvert x_i \rvert$ |
# | Neumaier, with a compensation | as naive, but what is lost is kept | $u\,\lvert S \rvert + n^2 u^2 \sum \lvert x_i \rvert$ |

# %% [markdown]
# The last method rests on a surprising fact: what the rounding of one addition loses is itself a float, and two more
# operations find it. Let $s$ be the running sum, $v$ the next term, $t$ the rounded sum of the two, and $\lvert s
# \rvert \ge \lvert v \rvert$. Then the loss is exactly $(s - t) + v$, *in this order of operations*. Neumaier's method
# gathers these losses in a second accumulator, the **compensation**, and adds it to the sum at the end.
#
# The picture shows the naive and the pairwise sum of eight terms. Each dot is an addition, and so a rounding.

# %% tags=["figure"]
labkit.figures.orders_of_adding(8)

# %% [markdown]
# **Predict:** the naive sum of 1000 × 0.01 in bfloat16 is 4. What is the sum with Neumaier's compensation?

# %% nbgrader={"grade": false, "grade_id": "02-predict-sums", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("neumaier sum in bfloat16", None)

# %% [markdown]
# [[exercise 02-sums]]
#
# Write the four functions. `x` is one-dimensional, has at least one element, and must not be changed. **Compute
# everything in `x.dtype`**, accumulators included: no float64 on the way, no `sum` of PyTorch or NumPy. Write and check
# them one after the other: as long as some are blank, the check says which of the others are right.
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
# Sorted: `argsort` of the magnitudes gives the order, and the rest is the naive sum. Pairwise: the function calls
# itself on the two halves, and one of them is longer when n is odd. Neumaier: keep a second accumulator for what is
# lost. If the new term is larger than the running sum, it is the running sum that loses its low bits, so the two swap
# roles.
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
    """The pairwise sum of one half plus that of the other; any two halves, the longer one first or second."""
    ### BEGIN SOLUTION
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return pairwise_sum(x[:middle]) + pairwise_sum(x[middle:])
    ### END SOLUTION


def neumaier_sum(x: Float[Tensor, "n"]) -> Float[Tensor, ""]:
    """The elements added from first to last, plus what the additions lost, gathered on the way."""
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
four_sums = {
    "naive": naive_sum,
    "sorted": sorted_sum,
    "pairwise": pairwise_sum,
    "neumaier": neumaier_sum,
}


def number(function, *arguments) -> float | None:
    """What a function of yours returns, as a Python number; None while it is not written."""
    try:
        return float(function(*arguments))
    except NotImplementedError:
        return None


def in_words(value: float | None) -> str:
    return "not written" if value is None else f"{value:.4g}"


for dtype in (torch.bfloat16, torch.float16, torch.float32):
    hundredths = torch.full((1000,), 0.01, dtype=dtype)
    sums = "  ".join(
        f"{name} {in_words(number(add, hundredths)):8}" for name, add in four_sums.items()
    )
    print(f"{dtype!s:16} {sums}")
hundredths = torch.full((1000,), 0.01, dtype=torch.bfloat16)
guesses.settle("neumaier sum in bfloat16", number(neumaier_sum, hundredths))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Sorting equal numbers cannot help. In bfloat16 Neumaier's method gets only 8. Once the sum stands at 4, each 0.01 goes
# to the compensation, which is an accumulator too and also stalls at 4: 4 + 4 = 8. The bound warns of this: it promises
# nothing once $n u$ exceeds 1, and $1000 \cdot 2^{-8}$ is about 4.
#
# </details>
#
# Now the partial sums of the naive method one by one.

# %% tags=["figure"]
labkit.figures.stalling_sum(naive_sum)

# %% [markdown]
# Look at the kinks: the slope changes at powers of two, because from there on each addition is rounded to a different
# step. Between 2 and 4 a step is 0.0156, so each 0.01 is rounded up to a whole step and the red line is too *fast*. At
# 4 it stops. Float16 does the same past the right edge: it stalls at 32, after some 2,800 additions, because there its
# step is 0.03125 too.
#
# The next figure adds random numbers from 0 to 1 in float32. Each point is the mean relative error of 16 draws.
#
# **Predict:** by what factor does the naive sum of 4096 numbers stay below its bound?

# %% nbgrader={"grade": false, "grade_id": "02-predict-bound", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("naive sum below its bound", None, unit="times")

# %% tags=["figure"]
labkit.figures.error_against_n(four_sums)

# %%
u = torch.finfo(torch.float32).eps / 2
errors = []
for seed in range(16):
    x = torch.rand(4096, generator=torch.Generator().manual_seed(seed))
    exact = math.fsum(x.tolist())
    errors.append(abs(naive_sum(x).item() - exact) / exact)
guesses.settle("naive sum below its bound", 4095 * u / (sum(errors) / len(errors)))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# By a factor of about 300. Some roundings go up and others down, so they mostly cancel. On average the error grows
# parallel to the dotted line, $\sqrt{n}\,u$, and stays below it. (In the stalling sum all errors have the same sign,
# which is why that sum is a disaster.)
#
# </details>
#
# Pairwise and Neumaier stay below $u$, the most that storing the result alone can cost.
#
# Sorting helps less than its reputation suggests. These numbers are all of about the same size, so there are no small
# ones that a large one could swallow. At best it about halves the error, and at small $n$, where both errors are near
# $u$, it may even be the worse one.
#
# **In practice** you use such sums all the time. `numpy.sum` is pairwise along the fastest axis, in blocks of up to
# 128. `torch.sum` on a CPU is a cascade of partial sums. On a GPU a sum is a tree anyway, because thousands of threads
# share the work. Python's own `sum` of floats is Neumaier's from version 3.12 on. Kahan's compensation, the older form
# without the swap, is an option in some optimizers: they keep bfloat16 weights and one more bfloat16 for what the
# updates lose. Of these sums, Python's and Kahan's add first to last.
#
# Each of these orders is the same in every run. Two things can change it from run to run. Threads that add into one
# number with *atomic* operations do so in the order in which they arrive. And a library that times several kernels and
# keeps the fastest may keep a different one next time.

# %% [markdown]
# ## Always add the two smallest
#
# If no number is negative, one order keeps the partial sums as small as possible: take the two smallest numbers, put
# their sum back among the rest, and repeat. Huffman builds his code in this way. The error is bounded by $u$ times the
# sum of all partial sums, and this order makes that sum as small as possible.
#
# A lecture deck shows it like this:
#
# ```python
# while len(values) > 1:
#     bisect.insort(values, values.pop(0) + values.pop(0))
# ```
#
# Two things are wrong with it. On most lists it returns a different sum than the method does. And 500,000 values take
# more than ten seconds. Each turn of the loop makes one addition, searches for the sum's place (about 18 comparisons),
# and moves entries, because it takes two out of the list and puts one in.
#
# **Predict:** which of these three takes most of the time?

# %% nbgrader={"grade": false, "grade_id": "02-predict-merging", "locked": false, "schema_version": 3, "solution": false, "task": false}
among = ("adding", "searching", "moving entries")
guesses.take("where the time goes", None, among=among)

# %% [markdown]
# [[exercise 02-merge-smallest]]
#
# Write `merge_smallest(values)`, the sum of a list of Python floats, none negative, in no particular order. The list
# has at least one element. Do not change it. The result must agree with this method in every bit, rounded after each
# addition (an exact sum such as `math.fsum` may differ in the last bits). 500,000 values must take less than 10 s of CPU
# time.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does the loop assume about the list in its first turn? And what must happen to the 499,999 other entries of a
# list when its first one is removed?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# You never need the whole order, only the two smallest of what is left. A **heap** keeps the smallest in its first
# place and inserts a new value in about $\log_2 n$ steps, without moving the rest. Python's is `heapq`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Copy the list, `heapq.heapify` the copy, and while it has more than one entry: `heappop` twice and `heappush` the sum.
# (`heapreplace` does a pop and a push in one go, which leaves the heap as long as it was: one more pop is needed.)
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-merge-smallest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge_smallest(values: list[float]) -> float:
    """The sum of numbers >= 0: the two smallest are replaced by their sum until one is left."""
    ### BEGIN SOLUTION
    parts = list(values)
    heapq.heapify(parts)
    while len(parts) > 1:
        smallest = heapq.heappop(parts)
        heapq.heapreplace(parts, smallest + parts[0])
    return parts[0]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-merge-smallest-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("02-merge-smallest", merge_smallest)

# %% tags=["figure"]
labkit.figures.merging_cost(merge_smallest)

# %% [markdown]
# The red line is the deck's loop, on a list that was sorted beforehand. Both axes are logarithmic, so a slope of 1
# means time proportional to n, and a slope of 2 means time proportional to n². The next cell takes that loop apart.

# %% tags=["varies"]
times_s = lab02.merging_times_s(2**16)
for part, time_s in times_s.items():
    print(f"{part:16}{time_s / sum(times_s.values()):5.0%}")
guesses.settle("where the time goes", max(times_s, key=times_s.get))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Moving entries. On a list sorted beforehand, the loop even makes *fewer* comparisons than a heap. What bends its line
# upward is memory: every `pop(0)` and every `insort` moves the rest of the list by one place. Counting comparisons, or
# FLOPs, does not replace measuring.
#
# </details>

# %% [markdown]
# ## Half-precision numbers, single-precision sum
#
# The simplest cure is a wider accumulator. A tensor core multiplies float16 numbers and adds in float32. `torch.sum` of
# a float16 tensor adds in float32 and rounds once at the end. Converting the whole tensor first would work too, but the
# copy needs twice the tensor's memory, often when there is none left. So work in blocks: convert a few slices, sum
# them, add the result to a float32 accumulator, and free the block.
#
# Blocks also reduce the error. With $b$ terms in a block, a term goes through at most $b$ additions inside its block
# and $n / b$ outside. So the error is at most about $(b + n/b)\,u \sum \lvert x_i \rvert$ instead of $n u \sum \lvert
# x_i \rvert$.

# %% tags=["figure"]
labkit.figures.orders_of_adding(12, block=4)

# %% [markdown]
# Which $b$ makes this bound smallest for $n = 4096$? The answer is folded below the next measurement.

# %% [markdown]
# [[exercise 02-blocked-sum]]
#
# Write `blocked_sum(x, dim, block_size)`, the float32 sum of a float16 tensor over one axis, which may be counted from
# the end. Use PyTorch, and a Python loop with one turn for each block, not for each slice or element.
#
# The check counts operations, and the peak of the bytes that are allocated besides `x` itself. Two blocks in float32
# and eight tensors of the result's size are allowed. One block at a time is all you need. If your loop gives the
# converted block a name, two are alive for a moment, and that is allowed. A copy of all of `x` is far more.
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
# The order matters: `block.sum(dim).float()` rounds to float16 first, and what that loses does not come back.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-blocked-sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blocked_sum(x: Float16[Tensor, "..."], dim: int, block_size: int) -> Float32[Tensor, "..."]:
    """The sum over axis `dim`, which is gone afterwards, block_size slices in float32 at a time."""
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
print(
    f"x.sum(0, dtype=torch.float32)  {peak_mib(lambda x: x.sum(0, dtype=torch.float32), x):.0f} MiB"
)

# %% [markdown]
# <details><summary>Which block makes the bound smallest?</summary>
#
# The sum $b + n/b$ is smallest where its terms are equal: $b = \sqrt{n} = 64$ gives $128\,u$ in place of $4095\,u$.
#
# </details>
#
# The last line is how you would write it in practice: PyTorch converts inside its own loop, in pieces that fit into
# registers.
#
# **In practice** every matrix product is a sum over blocks, and the accumulator is not always as wide as it seems. The
# fp8 tensor cores of an H100 keep about 14 bits of a running sum. So DeepSeek-V3 moves the sum to float32 after every
# 128 terms: a blocked sum, for exactly the reason that you have just seen.

# %% [markdown]
# ## Round up or down by chance
#
# A *weight* is an accumulator too: it is a sum of updates. A bfloat16 weight near 1 has neighbours $2^{-7}$ apart, so
# an update of 0.001 is lost every time, however many there are. The usual cure is a float32 copy of all weights, which
# costs 4 bytes per weight for the whole training.
#
# Another cure is to stop rounding every case the same way. If $x$ lies between the neighbours $a < b$, round to $b$
# with probability $p = (x - a) / (b - a)$, and to $a$ otherwise. This is **stochastic rounding**. The *expected* result
# is $a + p\,(b - a) = x$. Each single rounding is worse, because it can be off by nearly a whole step instead of half a
# step. But the errors have no preferred direction, so they cancel over many updates.
#
# **Predict:** 1 + 0.001 is rounded to bfloat16 in this way. In how many percent of the draws is it rounded up?

# %% nbgrader={"grade": false, "grade_id": "02-predict-chance", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("rounded up", None, unit="%")

# %% [markdown]
# [[exercise 02-stochastic-rounding]]
#
# Write `stochastic_round(x, generator)`, which rounds float32 to bfloat16. A value that bfloat16 can represent stays as
# it is, and so do infinity and NaN. A finite number beyond the largest finite bfloat16 becomes that one, never
# infinity. Every element that is rounded needs a draw of its own, always from `generator`. (Draws for elements that
# stay as they are do no harm.) Do not change x.
#
# <details><summary>Hint 1: a nudge</summary>
#
# A bfloat16 is the upper half of a float32. Cutting off the lower 16 bits always gives the neighbour toward zero. What
# could you add to the bits before the cut, so that there is a carry only by chance?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The lower 16 bits, as a whole number $l$, are the fraction $l / 2^{16}$ of a step. If $r$ is drawn evenly from $0$ to
# $2^{16} - 1$, then $l + r \ge 2^{16}$, which carries into the upper half, happens with probability exactly $l /
# 2^{16}$. A carry leads away from 0. For $x < 0$ that neighbour is $a$, and $l / 2^{16} = 1 - p$ is its probability:
# the sign bit is not touched, and negative numbers need nothing extra. Infinity and the usual NaN have an empty lower
# half, so they survive too. Other NaNs and the largest numbers need extra care.
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
def stochastic_round(
    x: Float32[Tensor, "*shape"], generator: torch.Generator
) -> BFloat16[Tensor, "*shape"]:
    """Each element rounded to a bfloat16 neighbour: up with the fraction of the step as probability."""
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
guesses.settle("rounded up", 100 * counts[-1] / len(draws))

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# The neighbour above 1 is $1 + 2^{-7}$ = 1.0078125, and it should get 0.001 / 0.0078125 = 12.8 % of the draws. With
# 100,000 draws the share scatters around that by 0.1 %, sometimes by 0.2 %.
#
# </details>
#
# Now 500 such updates, on 400 weights.

# %% tags=["figure"]
labkit.figures.tiny_updates(stochastic_round)

# %% [markdown]
# Each weight wanders like a random walk, here by about 7 steps of 0.0078, and their mean stays on the line. The red
# weight, rounded to nearest, never moves.
#
# **In practice** stochastic rounding made it possible to train networks with 16-bit fixed-point weights (Gupta and
# others, 2015). Accelerators such as Trainium do it in hardware, and `torchao` offers optimizers with bfloat16 weights
# that round in this way. The alternatives are a float32 master copy (lab 03) and Kahan's compensation.

# %% [markdown]
# ## What you measured
#
# The table uses only your functions. The first column of numbers answers the opening question, and the second compares
# the sum of 4096 random numbers in float32 with the exact sum. A function that is not written yet has no number.

# %%
hundredths = torch.full((1000,), 0.01, dtype=torch.bfloat16)
uniform = torch.rand(4096, generator=torch.Generator().manual_seed(0))
exact = math.fsum(uniform.tolist())
print(f"{'sum':22}{'1000 x 0.01, bf16':>20}{'relative error, n = 4096':>26}")
for name, add in four_sums.items():
    total = number(add, uniform)
    error = None if total is None else abs(total - exact) / exact
    print(f"{name:22}{in_words(number(add, hundredths)):>20}{in_words(error):>26}")
blocked = number(blocked_sum, hundredths.half(), 0, 32)
print(f"{'blocked, fp32 inside':22}{in_words(blocked):>20}")


def mean_by_chance() -> Tensor:
    generator, weights = torch.Generator().manual_seed(0), torch.zeros(200, dtype=torch.bfloat16)
    for _ in range(1000):
        weights = stochastic_round(weights.float() + 0.01, generator)
    return weights.float().mean()


by_chance = number(mean_by_chance)
print(f"{'by chance, mean of 200':22}{in_words(by_chance):>20}")

# %% [markdown]
# The row "blocked, fp32 inside" adds float16 copies of bfloat16's 0.01, which is 0.010009765625, so 10.01 is the right
# sum.
#
# Pairwise and Neumaier may show a relative error far below $u \approx 6 \cdot 10^{-8}$. This is luck: both return the
# float32 that is nearest to the exact sum, and the exact sum of these 4096 numbers happens to lie very close to one.
# Storing a result costs *at most* $u$, and can cost nothing. That is why the figure of the errors averages over 16
# draws.
#
# And here are your predictions beside what you measured:

# %%
guesses.score()

# %%
progress("02", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "02",
    "stochastic rounding to bfloat16",
    memory=lambda: f"2 bytes per number; 1000 × 0.01 gives {by_chance:.3g}",
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) Two runs of the same training script, with the same seeds, on the same GPU, print losses that agree
# in five digits in step 1 and in two in step 1000. A colleague says that there must be a bug. Name two places in a
# training step where the order of a sum may differ from run to run, say why that changes the result at all, and
# describe one experiment that would tell such an effect from a bug.

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
# **B.** (3 points) You train 7 billion parameters in pure bfloat16, and the loss stops falling when the learning rate
# has decayed to $10^{-5}$. Explain it with numbers from this lab. Compare three cures: a float32 master copy, a
# bfloat16 compensation beside each weight, stochastic rounding. How many gigabytes does each add, and what does each
# cost besides?

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
#   23, 1991). The classic. Read it up to guard digits and Kahan's sum.
# - Nicholas Higham, *Accuracy and Stability of Numerical Algorithms* (2nd edition, SIAM, 2002), chapter 4: every bound on a sum in this lab, and the order that adds the two smallest.
# - Paulius Micikevicius and others, *FP8 Formats for Deep Learning* (2022): e4m3 and e5m2, and why there are two.
# - Matteo Croci and others, *Stochastic rounding: implementation, error analysis and applications* (Royal Society Open
#   Science 9, 2022).
#
# **Sources.** IEEE 754-2019 and the texts above. Neumaier's sum: Arnold Neumaier, *Rundungsfehleranalyse einiger
# Verfahren zur Summation endlicher Summen* (ZAMM 54, 1974); its bound in the form used by the check: Takeshi Ogita,
# Siegfried Rump and Shin'ichi Oishi, *Accurate Sum and Dot Product* (SIAM Journal on Scientific Computing 26, 2005).
# Blocks: Pierre Blanchard, Nicholas Higham and Theo Mary, *A Class of Fast and Accurate Summation Algorithms* (SIAM
# Journal on Scientific Computing 42, 2020). Training with stochastic rounding: Suyog Gupta and others, *Deep Learning
# with Limited Numerical Precision* (ICML 2015). The loop that adds the two smallest: a deck called *Efficiency*.
# Accumulation in fp8 products: *DeepSeek-V3 Technical Report* (2024), section 3.3.
