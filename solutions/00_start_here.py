# %% [markdown]
# # Lab 00: Start here
#
# A language model with 8 billion parameters is a 16 GB file, and it answers questions on a graphics card with 24 GB.
# Start training it on the same card, and the run dies before the first step ends.
# **What is in the memory that was not in the file?**
#
# You will measure that on your own machine, see whether everything the labs need is installed, and write, check and
# hand in one small function.
#
# [[time]]
#
# You need Python and a little PyTorch. No exercise of the course needs a GPU for its points.

# %% nbgrader={"grade": false, "grade_id": "00-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import torch

import labkit.figures
from labkit import CheckFailed, Predictions, check, progress
from labkit.env import environment, memory_bytes

guesses = Predictions("00")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

# %% [markdown]
# ## What one parameter costs
#
# In the file a parameter takes 2 bytes (bfloat16). Training usually keeps it in float32, which is 4 bytes, and the
# optimizer AdamW needs more than the parameter itself.
#
# **Predict:** after one training step, how many bytes per parameter are kept in memory? And how large a model could
# this machine train at most?
#
# Write a number in place of each `None` and run the cell. Every lab asks for predictions like these, because you
# remember a number that surprised you. They are for you alone: they are not graded, a wrong one costs nothing, and the
# lab also runs if you leave all of them at `None`.

# %% nbgrader={"grade": false, "grade_id": "00-predict-bytes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("bytes per parameter", None, unit="bytes")
guesses.take("largest model here", None, unit="billion parameters")

# %%
layer = torch.nn.Linear(1000, 1000)
optimizer = torch.optim.AdamW(layer.parameters())
layer(torch.ones(1, 1000)).sum().backward()
optimizer.step()

weights = list(layer.parameters())
gradients = [weight.grad for weight in weights]
states = [tensor for state in optimizer.state.values() for tensor in state.values()]
n_parameters = sum(weight.numel() for weight in weights)
bytes_per_parameter = sum(tensor.nbytes for tensor in weights + gradients + states) / n_parameters
largest_model = memory_bytes() / bytes_per_parameter

print(f"kept after one step:        {bytes_per_parameter:.1f} bytes per parameter")
print(f"8 billion parameters keep:  {8 * bytes_per_parameter:.0f} GB")
print(
    f"this machine has:           {memory_bytes() / 1e9:.1f} GB ({memory_bytes() / 2**30:.1f} GiB)"
)
print(f"so it can train at most:    {largest_model / 1e9:.1f} billion parameters")

guesses.settle("bytes per parameter", bytes_per_parameter)
guesses.settle("largest model here", largest_model / 1e9)

# %% [markdown]
# The last lines put your predictions beside the measurement. Within a factor of 2 is a good first guess. If you missed
# by a factor of 10, take a second look. The explanation is folded under the measurement, here and in every lab:
#
# <details><summary>Check your prediction</summary>
#
# Four bytes are the weight, four its gradient, and eight the two running averages that AdamW keeps for it: 16 in all.
# The machine's memory divided by 16 bytes is the largest model. The **activations** come on top: the intermediate
# results that the backward pass needs again. For long texts and large batches they take more than all the rest.
#
# </details>
#
# This course is about such numbers: where the bytes and the milliseconds of training go, how to predict them on paper,
# and how to need fewer. You write the methods yourself, from the bits of a float and a loss scaler to recomputation,
# 4-bit weights, GPU kernels and training on many devices. Each lab measures what you wrote.

# %% [markdown]
# ## Your machine
#
# The next cell looks at this machine. A line marked ✓ is fine. A line marked ○ can wait: something that a later lab
# uses is missing. A line marked ✗ has to be repaired first, and says how. In a terminal, `python -m labkit.env` prints
# the same.

# %%
environment()

# %% [markdown]
# ## What a check tells you
#
# Every exercise has a cell for your answer and, below it, a cell that checks it. A check runs your function on a few
# cases and compares the results with the right ones. Most checks take a second or two. Run them as often as you like,
# because attempts are not counted.
#
# Here is one on somebody else's answer. The task, which will be yours in a moment, is the **root-mean-square**: the
# square root of the mean of the squares. This author thought that the mean of the absolute values is the same.
#
# **Predict:** will the result be too large, too small, or right? Here you write one of the choices, in quotes.

# %% nbgrader={"grade": false, "grade_id": "00-predict-first-try", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("first try", None, among=("too large", "too small", "right"))


# %%
def first_try(x, dim):
    return x.abs().mean(dim)


try:
    check("00-warm-up", first_try)
except CheckFailed:
    print("A failed check stops the notebook. Here it was caught, so that you can go on.")
guesses.settle("first try", "too small")

# %% [markdown]
# Read it from the top:
#
# - The first line says how many of the cases pass. What follows is about the first one that does not.
# - **case** is the call: here `rms` of a float32 tensor of shape (4, 8) along its last axis.
# - **problem** says what is different and where: the first wrong element has the index [0].
# - **expected** and **got** are the two values at that place, with the dtype.
# - **tolerance** is how far they may be apart. Where there is none, the two must be equal.
# - **Hint** names the mistake that explains every case that fails, if the check recognizes one. Where it recognizes
#   none, a **note** may say how far off you are.
#
# <details><summary>Check your prediction</summary>
#
# Too small. The mean of the absolute values is never larger than the root-mean-square, because squaring gives the
# larger values more weight. The two are equal only where all values have the same magnitude.
#
# </details>
#
# If your code raises an error instead, you see the error and your own line. An endless loop is stopped after 10
# seconds. Exercises of later labs that compile kernels or start processes get more time. A blank answer is not a
# failure, as the next cell shows.


# %%
def blank(x, dim):
    raise NotImplementedError("Write your answer here.")


try:
    check("00-warm-up", blank)
except CheckFailed:
    print("This stops the notebook, too: 'Run All Cells' takes you to the first blank exercise.")

# %% [markdown]
# When all cases pass, you see one green line. Some exercises set a **budget**: an upper limit on the bytes or
# operations that your function may use. Then the line also says how much of it you used.

# %% [markdown]
# ## Hints
#
# Under every exercise there are three hints, folded so that you see one only when you want it: a nudge, then the idea,
# then nearly the answer. They cost no points. Try for a few minutes first, because you remember what you found yourself.

# %% [markdown]
# ## Warm-up: the root-mean-square
#
# $$\operatorname{rms}(x) = \sqrt{\frac{1}{n}\sum_{i=1}^{n} x_i^2}$$
#
# Language models of the Llama family divide by it before every layer (RMSNorm). Its close relative, the norm, decides
# whether gradients are clipped. So a training step computes it many times, in whatever precision the activations have.
# In float16 that can go wrong: its largest number is 65504, and its smallest above zero is about 6e-8.
#
# **Predict:** what are the squares of 300 and of 0.0001 in float16?

# %% nbgrader={"grade": false, "grade_id": "00-predict-squares", "locked": false, "schema_version": 3, "solution": false, "task": false}
squares = ("right", "zero", "infinity")
guesses.take("300 squared", None, among=squares)
guesses.take("0.0001 squared", None, among=squares)

# %%
print(torch.tensor(300.0, dtype=torch.float16).square())
print(torch.tensor(0.0001, dtype=torch.float16).square())
guesses.settle("300 squared", "infinity")
guesses.settle("0.0001 squared", "zero")

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Neither 300 nor 0.0001 is an unusual activation, and float16 holds both. But 90000 is beyond its largest number, and
# 1e-8 is below its smallest. So the intermediate square destroys a result that would have fit.
#
# </details>
#
# [[exercise 00-warm-up]]
#
# Write `rms(x, dim)`. It returns the root-mean-square of `x` along the axis `dim`. The result does not have that axis
# any more, and it has the dtype of `x`. `x` is float32, float16 or bfloat16 and must not be changed. `dim` may be
# negative. In float16 the result must be right even where the squares overflow or become zero.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The formula has three steps. Which of them can leave the range of float16, although its input and the final result
# are both inside?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Do all three steps in float32, whose largest number is about 3e38, and go back to the dtype of `x` at the very end.
# Most reductions in PyTorch take the axis as an argument, negative or not.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `x.float()` is a float32 version of `x`. Tensors have the methods `.square()`, `.mean(dim)` and `.sqrt()`, and
# `.to(x.dtype)` goes back. Now put them in order.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "00-warm-up", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rms(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The root-mean-square of `x` along the axis `dim`, in the dtype of `x`: (b, n), -1 -> (b,)."""
    ### BEGIN SOLUTION
    return x.float().square().mean(dim).sqrt().to(x.dtype)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "00-warm-up-check", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("00-warm-up", rms)

# %% [markdown]
# Below is your function on 1024 random float16 values, of sizes from $2^{-18}$ to $2^{14}$, beside one that squares in
# float16. In the grey region the square of a value of that size is a normal float16 number. Look at both ends of the
# red line. On the right it leaves 1 well before the grey region ends: one value that is four times as large as usual is
# enough to spoil the mean of all 1024.

# %% tags=["figure"]
labkit.figures.rms_over_scale(rms)

# %% [markdown]
# **In practice** you would call the library. `torch.nn.functional.rms_norm` divides by the root-mean-square and, like
# your function, computes in float32 when it is given float16. Lab 02 is about what the formats can hold. Lab 03 is about
# training in float16 although the gradients do not fit.

# %%
x = torch.tensor([[300.0, 600.0, 900.0]], dtype=torch.float16)
print("yours:  ", x / rms(x, -1).unsqueeze(-1))
print("PyTorch:", torch.nn.functional.rms_norm(x, (3,), eps=0.0))

# %% [markdown]
# ## How to hand in
#
# 1. Save the notebook.
# 2. Press **Validate** in the toolbar, if your JupyterLab has it: it runs all cells in a fresh kernel and lists the
#    checks that do not pass. Without the button, use *Restart Kernel and Run All Cells*.
# 3. Submit in the **Assignments** tab, or put the file into the folder that your instructor names.
#
# Keep the name of the file, and do not delete, copy or rename the cells that are there. Add as many cells of your own
# as you like. Only your answers, your predictions and the cells that you added are taken from your file. All other
# cells come from our copy.

# %% [markdown]
# ## How it is graded
#
# - Your answers run again, on other cases of the same kind, drawn anew for every student. A function that only knows
#   the cases of this notebook does not pass.
# - They run in a sandbox: no network, no files except the libraries and a temporary folder, limits on time and memory.
#   What you download or read in from elsewhere is not there.
# - Memory is also measured from outside the sandbox, so nothing is gained by changing the notebook's own measurement.
# - An exercise that fails, crashes or never ends costs its own points and no others.
# - Speed earns no points, and time limits leave a wide margin. Where efficiency counts, bytes and operations are counted.
# - Optional exercises earn extra points. A wrong or blank one costs nothing.
# - The feedback shows each exercise with the mistake that was recognized and its hint. You can correct it and hand in
#   again for as long as your instructor allows.

# %% [markdown]
# ## What you measured


# %%
def largest_size(function):
    """The largest power of two at which float16 values of this size still give a finite result."""
    sizes = [2.0**exponent for exponent in range(16)]
    return max(
        size
        for size in sizes
        if function(torch.full((1, 8), size, dtype=torch.float16), 1).isfinite()
    )


print(f"kept per parameter by AdamW in float32      {bytes_per_parameter:.1f} bytes")
print(
    f"largest model that this machine can train   {largest_model / 1e9:.1f} billion parameters, without activations"
)
print(
    f"rms in float16 is finite up to values of    {largest_size(lambda x, dim: x.square().mean(dim).sqrt()):.0f}"
)
print(f"the same with your function                 {largest_size(rms):.0f}")

# %% [markdown]
# And these are your predictions. A dot in the green band is within a factor of 2 of what was measured.

# %%
guesses.score()

# %%
progress("00", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.
# `labkit.feature_table()` shows it again.

# %% tags=["figure"]
labkit.feature_row(
    "00",
    "AdamW in float32",
    memory=lambda: f"{bytes_per_parameter:.0f} bytes per parameter, before activations",
)

# %% [markdown]
# ## Where to read on
#
# - S. Rajbhandari, J. Rasley, O. Ruwase, Y. He: *ZeRO: Memory Optimizations Toward Training Trillion Parameter Models*
#   (2020), section 3, for the 16 bytes of a parameter.
# - P. Micikevicius and others: *Mixed Precision Training* (2018), for the range of float16 in practice.
#
# **Sources.** RMSNorm: B. Zhang, R. Sennrich, *Root Mean Square Layer Normalization* (2019). The limits of float16:
# `torch.finfo(torch.float16)` and IEEE 754-2019. Submitting and validating: the documentation of nbgrader.
