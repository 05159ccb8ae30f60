# %% [markdown]
# # Lab 02: Float formats and summation error
#
# Add 0.01 a thousand times. In bfloat16, the format in which most large models are trained, the sum is 4. **Where did
# the other 6 go?** No operation failed, and every single addition was as exact as the format allows.
#
# In 60 to 90 minutes you will have written the decoder and the encoder of every float format that training uses, int8
# quantization, and several ways to add that lose less. You will be able to tell from the number of mantissa bits when
# a weight stops moving. You need tensors and integer operations on bits (`>>`, `&`); lab 00 shows how exercises are
# checked.

# %% nbgrader={"grade": false, "grade_id": "02-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import heapq
import math

import torch
from jaxtyping import BFloat16, Float, Float16, Float32, Float64, Int8, Int64
from torch import Tensor

import labkit.figures
from labkit import check, progress
from labkit.formats import BF16, FORMATS, FP8_E4M3FN, FP8_E5M2, FP16, FP32, TF32, FloatFormat


# %%
def add_many_times(step: float, n: int, dtype: torch.dtype) -> Tensor:
    total, step = torch.zeros((), dtype=dtype), torch.tensor(step, dtype=dtype)
    for _ in range(n):
        total = total + step
    return total


for dtype in (torch.float32, torch.float16, torch.bfloat16):
    print(f"{dtype!s:16} 1000 x 0.01 = {add_many_times(0.01, 1000, dtype).item():.4f}")


# %% [markdown]
# A weight that receives a thousand small updates is such a sum. To see why it stops at 4, we have to look at the bits.

# %% [markdown]
# ## 1. What a bit pattern means
#
# A float is a sign, a power of two, and a position between this power and the next. All formats in use share this plan
# and differ in two numbers: the bits of the exponent field, $E$, and the bits of the mantissa field, $M$.
#
# | format | sign | exponent bits $E$ | mantissa bits $M$ | in all | where |
# |---|---|---|---|---|---|
# | fp32 | 1 | 8 | 23 | 32 | master weights, sums |
# | tf32 | 1 | 8 | 10 | 19 | inputs of fp32 matrix products on tensor cores |
# | bf16 | 1 | 8 | 7 | 16 | training of large models |
# | fp16 | 1 | 5 | 10 | 16 | training with loss scaling, inference |
# | e5m2 | 1 | 5 | 2 | 8 | fp8 gradients |
# | e4m3fn | 1 | 4 | 3 | 8 | fp8 weights and activations |
#
# With $e$ the exponent field and $m$ the mantissa field, both read as whole numbers, $s$ the sign bit and
# $\text{bias} = 2^{E-1} - 1$, IEEE 754 says:
#
# | exponent field | mantissa field | value |
# |---|---|---|
# | neither all zeros nor all ones | any | $(-1)^s \cdot (1 + m / 2^M) \cdot 2^{e - \text{bias}}$, a normal number |
# | all zeros | any | $(-1)^s \cdot (0 + m / 2^M) \cdot 2^{1 - \text{bias}}$, zero or a subnormal number |
# | all ones | 0 | $(-1)^s \cdot \infty$ |
# | all ones | not 0 | NaN, not a number |
#
# In eight bits, a whole power of two for infinity and NaN is expensive. So e4m3fn is "finite only": an exponent field
# of all ones is an ordinary exponent, infinity does not exist, and only the pattern with all exponent *and* mantissa
# bits set is NaN, one for each sign.

# %% [markdown]
# **Predict:** e4m3fn has 256 patterns. How many of them lie strictly between −1 and 1: about a tenth, a quarter, or
# half?
#
# [[exercise 02-decode]]
#
# Write `decode(bits, fmt)`, the values of bit patterns. `bits` is an int64 tensor of any shape with numbers from 0 to
# $2^{1+E+M} - 1$. `fmt` is a `FloatFormat` with the fields `exponent_bits`, `mantissa_bits`, `finite_only` and
# `total_bits`. The values are float64, which holds all of them exactly. The sign of a zero counts. The check uses the
# formats of the table and others that nobody has built.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Three whole numbers can be cut out of a pattern with `>>` and `&`. Do that first and look at them for the pattern of
# 1.0 in fp16, which is 15360. Then take the four lines of the table one after the other.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Compute the normal value and the subnormal value for *all* patterns, and let `torch.where` choose by the exponent
# field. Overwrite the top exponent at the end, depending on `fmt.finite_only`. Apply the sign last, as a factor of
# −1.0, so that −0.0 comes out.
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
print(
    f"e4m3fn: {(everything.abs() < 1).sum()} of 256 patterns lie between -1 and 1, {everything.isnan().sum()} are NaN"
)

# %% [markdown]
# Nearly half: every power of two, however small, gets the same number of patterns. The figure decodes all of them with
# your function.

# %% tags=["figure"]
labkit.figures.number_line(decode)

# %% [markdown]
# Above: the gaps double at every power of two, and e4m3fn has twice as many strokes as e5m2 everywhere except next to
# zero. The orange subnormals of e3m2, a format small enough to see, continue the last gap evenly down to zero; without
# them there would be a hole from 0 to ¼. Below: exponent bits buy reach, and bf16 reaches as far as fp32. What it paid
# for that, you see next.
#
# **In practice** nobody decodes by hand: `bits.to(torch.int16).view(torch.float16)` reinterprets the bits without
# touching them. It can do this only for formats that the hardware has.

# %%
bits = torch.arange(2**16)
by_torch = bits.to(torch.int16).view(torch.bfloat16).double()
print(
    "bf16, same as PyTorch:", torch.equal(decode(bits, BF16).nan_to_num(), by_torch.nan_to_num()), "for 65536 patterns"
)

# %% [markdown]
# ## 2. Rounding: from a value to a pattern
#
# Nearly every result of an operation falls between two strokes of that figure. Hardware then takes the nearer one, and
# half-way between two it takes the one whose last bit is 0. This is called *round to nearest, ties to even*. Always
# rounding ties up would push every sum upwards; taking the even one errs up as often as down.
#
# What is too large follows the rule of the format. An IEEE format has infinity: it behaves as if there were one more
# stroke above the largest number, and whatever rounds to that becomes infinity. So fp16, whose largest number is
# 65504, takes 65519 to 65504 and 65520, which is half-way, to infinity. A finite-only format has nowhere to go:
# PyTorch (from version 2.13 on) saturates, so that everything above 448, even infinity, becomes 448 in e4m3fn. NaN
# stays NaN.
#
# **Predict:** what do 2049, 2051 and 4097 become in fp16? What does 1.01 become in bf16, and 17 in e4m3fn?
#
# [[exercise 02-encode]]
#
# Write `encode(x, fmt)`, the bit patterns of the nearest values. `x` is a float32 tensor of any shape, with zeros of
# both signs, subnormals, infinities and NaN among its values; the patterns are int64, with the sign as the top bit.
# Any NaN pattern will do for NaN. The check compares bit for bit with PyTorch's casts, on every tie of fp16 and bf16.
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
# `size` to, say, $2^{-200}$ and $2^{200}$ before.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "02-encode", "locked": false, "schema_version": 3, "solution": true, "task": false}
def encode(x: Float32[Tensor, "*shape"], fmt: FloatFormat) -> Int64[Tensor, "*shape"]:
    """The bit patterns of the nearest values of fmt, ties to even, with overflow by the rule of the format."""
    ### BEGIN SOLUTION
    bias = 2 ** (fmt.exponent_bits - 1) - 1
    all_ones = 2 ** (fmt.total_bits - 1) - 1  # below the sign bit
    infinity = all_ones - (2**fmt.mantissa_bits - 1)

    # Clamped so that 0 and infinity have an exponent, too small and too large for any format.
    size = x.double().abs().nan_to_num(nan=0.0).clamp(2.0**-200, 2.0**200)
    power = (torch.frexp(size).exponent - 1).clamp(min=1 - bias)  # frexp's fraction lies in [0.5, 1)
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
for value, fmt in ((2049, FP16), (2051, FP16), (4097, FP16), (1.01, BF16), (17, FP8_E4M3FN)):
    nearest = decode(encode(torch.tensor([float(value)]), fmt), fmt).item()
    print(f"{value:>6} in {fmt.name:7} becomes {nearest:g}")


# %% [markdown]
# 2049 lies half-way between 2048 and 2050, and 2051 half-way between 2050 and 2052: one goes down, the other up.
# Around 4096 the gap in fp16 is already 4.
#
# Now the same number in every format, encoded and decoded by you. Change it and run the cell again.

# %% tags=["figure"]
labkit.figures.bit_fields(0.1, encode, decode)

# %% [markdown]
# Compare the rows of fp32, tf32 and bf16: the exponent bits are the same, and the mantissa is cut shorter, with the
# last bit rounded. tf32 is what a tensor core makes of the inputs of an fp32 matrix product; it has the reach of bf16
# and the precision of fp16, whose row has the same ten mantissa bits.
#
# **In practice** this is `x.to(torch.bfloat16)`, one instruction. For tf32 there is no cast, but since the exponent
# bits are those of fp32, rounding is an addition of whole numbers on the fp32 pattern: add just under half of the 13
# bits that go, plus the lowest bit that stays, and cut. A carry runs into the exponent by itself, as in your function.

# %%
x = torch.randn(100_000, generator=torch.Generator().manual_seed(0))
pattern = x.view(torch.int32).long() & 0xFFFFFFFF
by_integers = (pattern + 0xFFF + (pattern >> 13 & 1)) >> 13
print("tf32, same as rounding at bit 13:", torch.equal(encode(x, TF32), by_integers))
print("bf16, same as PyTorch's cast:    ", torch.equal(encode(x, BF16), x.bfloat16().view(torch.int16).long() & 0xFFFF))

# %% [markdown]
# ## 3. The limits of a format
#
# Four numbers tell what a format can do, and all four follow from $E$, $M$ and the rule for the top exponent:
#
# - **eps**: the gap between 1 and the next larger number. The relative error of one rounding is at most half of it.
# - **max**: the largest finite number. fp16 gradients beyond it become infinity (lab 03).
# - **smallest normal**: below it the relative precision is lost bit by bit.
# - **smallest subnormal**: less than half of it is rounded to zero. In fp16 this happens to small gradients.
#
# **Predict:** count 1, 2, 3, … in fp16, always adding 1. At which number does counting stop? And in bf16?
#
# [[exercise 02-format-table]]
#
# Write `format_limits(fmt)`. It returns a dict of Python floats with the keys `"eps"`, `"max"`, `"smallest_normal"`
# and `"smallest_subnormal"`. Take the two kinds of largest number seriously: in an IEEE format the top exponent is
# taken, in a finite-only one just its last pattern.
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
def count_until_stuck(fmt: FloatFormat) -> float:
    """The number at which adding 1 changes nothing any more, with your encoder doing the rounding."""
    n = 1.0
    while decode(encode(torch.tensor([n + 1]), fmt), fmt).item() != n:
        n += 1
    return n


print(f"{'format':8} {'eps':>10} {'max':>10} {'smallest normal':>16} {'smallest subnormal':>19} {'2 / eps':>10}")
for fmt in FORMATS:
    eps, largest, normal, subnormal = (
        format_limits(fmt)[key] for key in ("eps", "max", "smallest_normal", "smallest_subnormal")
    )
    print(f"{fmt.name:8} {eps:10.3g} {largest:10.5g} {normal:16.3g} {subnormal:19.3g} {2 / eps:10.0f}")
for fmt in (FP16, BF16, FP8_E4M3FN):
    print(f"counting by ones in {fmt.name} stops at {count_until_stuck(fmt):g}")


# %% [markdown]
# Counting stops at 2 / eps: from there on the gap is 2, and adding 1 lands on a tie that goes back to the even number.
# This is also what happened to the 6. Between 4 and 8 the gap in bf16 is 4 · eps = 1/32, and 0.01 is less than half of
# it. A bf16 weight of 1.0 does not notice an update of 0.001, however often it comes.
#
# **In practice** `torch.finfo(dtype)` has these numbers as `eps`, `max` and `smallest_normal`. Many texts call half of
# eps "machine epsilon", so look before you compare.

# %% [markdown]
# ## 4. int8: one scale for many numbers
#
# A float carries its own scale in every number. An integer format shares one among many numbers: the code $q$ stands
# for
#
# $$x \approx (q - z) \cdot \text{scale}$$
#
# with the *zero point* $z$, the code of 0. In 8 bits this gives 256 evenly spaced values, and everything depends on
# the range over which they are spread.
#
# - **Symmetric** (absmax): $z = 0$, codes from −127 to 127, scale = max|x| / 127. The code −128 is left out, or the
#   range would reach further on one side than on the other.
# - **Affine**: codes from −128 to 127 stretch from the smallest to the largest value, scale = (max − min) / 255. The
#   range is extended to include 0, and $z$ is rounded to a whole number, so that **0 comes back as exactly 0**.
#   Padding, pruned weights and the zeros after a ReLU are common, and an error in all of them adds up.
#
# The range is that of the whole tensor, or that of one channel (one row of a weight matrix, say) at a time.
#
# **Predict:** 31 channels of a matrix have ordinary weights, and one is 50 times larger. With one scale for the
# tensor, how large is the error of an ordinary weight, relative to its size: 0.4 %, 3 %, or 30 %?
#
# [[exercise 02-int8-quantize]]
#
# Write `quantize_int8(x, symmetric, channel_dim)`, which returns `(q, scale, zero_point)`, and `dequantize_int8`,
# which goes back. `x` is float32 of any shape. `q` is int8 in that shape, `scale` float32, `zero_point` int32 (all
# zeros if symmetric). With `channel_dim=None`, scale and zero point have no axes; otherwise they keep all axes of `x`,
# of size 1 except for `channel_dim`. No value may come back further than half a step from where it was, and a channel
# of zeros must not become NaN.
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


def dequantize_int8(q: Int8[Tensor, "*shape"], scale: Tensor, zero_point: Tensor) -> Float32[Tensor, "*shape"]:
    """The float32 values that the codes stand for."""
    ### BEGIN SOLUTION
    return (q.float() - zero_point) * scale
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "02-int8-quantize-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("02-int8-quantize", quantize_int8, dequantize_int8)

# %% [markdown]
# Your function on the matrix of the prediction, once with one scale and once with 32.

# %% tags=["figure"]
labkit.figures.quantization_error(quantize_int8, dequantize_int8)

# %% [markdown]
# The red squares are the answer: the step is as wide as the outlier demands, and the ordinary weights have just a
# handful of codes left. With a scale per channel the outlier costs nobody but itself, and 31 more scales are 124
# bytes. Trained language models do have such channels, in their activations above all.
#
# **In practice** weights are quantized per channel, or in blocks of 32 to 128 values, each with a scale of its own
# (`torchao`, `bitsandbytes`); lab 06 does it to the states of an optimizer. PyTorch can round a tensor to your grid
# and back in one call, which is how networks are trained to live with it.

# %%
x = torch.randn(32, 512, generator=torch.Generator().manual_seed(1))
q, scale, zero_point = quantize_int8(x, symmetric=False, channel_dim=0)
yours = dequantize_int8(q, scale, zero_point)
by_torch = torch.fake_quantize_per_channel_affine(x, scale.flatten(), zero_point.flatten(), 0, -128, 127)
print(f"{x.nbytes} bytes became {q.nbytes + scale.nbytes + zero_point.nbytes}")
for name, back in (("yours", yours), ("PyTorch", by_torch)):
    print(f"{name:8} largest error {((back - x).abs() / scale).max():.3f} steps")
