# %% [markdown]
# # Lab 11: torch.compile
#
# Put `@torch.compile` over the forward method of a layer, make 24 layers that differ in one integer, and call each of
# them three times. **Of the 72 calls only 24 run compiled. The other 48 run as if you had written nothing**, and all
# you get is one warning in a log. How would you notice, and what would you change?
#
# `torch.compile` can make a model faster and smaller at the same time, with one line. It does so on a condition: what
# it has seen once must not change. In this lab you look at what it does, by counting instead of timing. You write a
# backend, which gets the graphs that it captures. You put a model with five obstacles into one graph, stop a storm of
# recompilations, turn a chain of operations into one kernel, and work out what a compiled model keeps for its backward
# pass. Optional exercises are about the time that compiling takes, operators of your own, CUDA graphs, lazy tensors and
# export. At the end you know which of your habits cost you the graph, and how you find out.
#
# [[time]]
#
# You should know PyTorch's modules and tensors, and need no earlier lab. Everything is counted on the CPU; no C++
# compiler and no GPU is needed, and no number depends on your machine. Compiling takes some patience: the first graph of
# a process loads Dynamo, and the first generated code loads inductor, about 2 s of CPU time each; from then on a check
# takes one second or two.

# %% nbgrader={"grade": false, "grade_id": "11-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, track_compile
from labkit.exercises.lab11 import native
from labkit.exercises.lab11.lazy_tensor import LazyLoop, lazy_inputs, play
from labkit.material import lab11
from labkit.material.lab11_bytes import (
    Cut,
    cuts_of,
    eager_kept_bytes,
    eager_kernels,
    loop_of,
    storages_of,
)
from labkit.material.lab11_four_ways import four_ways
from labkit.simdevice import Machine, SimDevice
from labkit.units import in_bytes

guesses = Predictions("11")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so
log = lab11.compiler_log()  # what the compiler warns of goes to this list

# %% [markdown]
# First the 72 calls, counted by `track_compile`, which looks over the compiler's shoulder in a block of code.


# %%
class NumberedLayer(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    @torch.compile(backend="eager")
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(x) / self.number


numbered_layers = [NumberedLayer(number) for number in range(2, 26)]
torch._dynamo.reset()  # forget what was compiled before, as in a new process
with track_compile() as storm:
    for _ in range(3):
        x = torch.ones(4)
        for layer in numbered_layers:
            x = layer(x)
print(storm)
print("in the log:", *log, sep="\n  ")

# %% tags=["figure"]
labkit.figures.call_strip({"24 layers, 3 rounds": storm.calls})

# %% [markdown]
# Eight calls compiled something, then the compiler gave up on this function: from the ninth integer on, every call ran
# eagerly. The 16 calls that ran compiled are those of the first eight layers in the second and third round. What it
# means that a layer is compiled "again, because self.number == 2" is the subject of this lab.

# %% [markdown]
# ## What a backend gets
#
# `torch.compile(model)` compiles nothing yet. When you call the result for the first time, three things happen.
#
# 1. **Dynamo** reads the bytecode of `forward` as Python would execute it. Whatever happens to tensors is written down
#    in a **graph**; all other Python, such as loops over layers, attributes and lists, is executed then and there and
#    leaves no trace.
# 2. Whatever this Python depended on becomes a **guard**: this argument is a float32 vector of 4 elements, that
#    attribute is 2.
# 3. The graph goes to a **backend**, which returns a function that does the same.
#
# Later calls check the guards. If all of them hold, this function runs instead of yours. If one fails, Dynamo starts
# again at 1. The default backend is **inductor**, which writes kernels. But a backend is only a function, and here is
# one that prints what it gets.


# %%
def printing_backend(gm: torch.fx.GraphModule, example_inputs: list[Tensor]):
    lab11.print_graph(gm)
    return gm.forward


def small(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
    scales = [2.0**n for n in range(3)]
    total = x + y
    log_total = total.log()
    y.add_(1)
    for scale in scales:
        total = total * scale
    return total, len(scales)


print(torch.compile(small, backend=printing_backend)(torch.ones(3), torch.ones(3)))

# %% [markdown]
# The graph is a `torch.fx.Graph`: a list of nodes, in an order in which they can run. `op` is the kind of a node.
#
# | op | is | target |
# |---|---|---|
# | `placeholder` | an input of the graph, in the order of `example_inputs`; also each parameter that is used | its name |
# | `call_function`, `call_method` | an operation | the function, or the name of the method |
# | `output` | the return of the graph; `args[0]` is a tuple | |
#
# The list `scales`, the loop and `len` are gone: they ran while the graph was written. But two operations are there
# whose results nobody uses. `log` is **dead**: without it, nothing would change. `add_` is not: it writes into `y`, and
# the caller can see that. In the table above, both look the same.

# %% [markdown]
# **Predict:** `gm.graph.eliminate_dead_code()` removes nodes that have no users and, by its own judgement, no effect.
# What does it do with `add_` in the graph above?

# %% nbgrader={"grade": false, "grade_id": "11-predict-dead", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("FX's own clean-up and add_", None, among=("keeps it", "removes it"))


# %%
def cleaning_backend(gm: torch.fx.GraphModule, example_inputs: list[Tensor]):
    gm.graph.eliminate_dead_code()
    gm.recompile()
    kept.extend(node.name for node in gm.graph.nodes if node.op.startswith("call_"))
    return gm.forward


kept: list[str] = []
y = torch.ones(3)
torch._dynamo.reset()
torch.compile(small, backend=cleaning_backend)(torch.ones(3), y)
print(f"kept: {', '.join(kept)}; y is {y.tolist()}, and should be [2.0, 2.0, 2.0]")
guesses.settle("FX's own clean-up and add_", "keeps it" if "add_" in kept else "removes it")

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# In the versions of PyTorch this lab was written for, it removes `add_`, and the result is wrong without an error. FX
# knows of an operator of the lower level, `aten.add_`, that it writes. Dynamo's graphs are of the upper level, where a
# method is only a name. That is why real backends first translate the graph (**AOTAutograd**, in the section on
# memory), and why "nobody uses its result" is not enough to call an operation dead.
#
# </details>

# %% [markdown]
# [[exercise 11-backend]]
#
# Write `CountingBackend.__call__(gm, example_inputs)`. It removes the dead operations from the graph, appends the
# number of those that are left to `self.counts`, and returns a function that computes what is left.
#
# An operation is dead if no operation that is kept uses its result and it writes into no tensor.
# `lab11.writes(node)` says whether a node writes. Inputs (`placeholder`) and `output` are no operations. A function
# may come to the backend in several graphs, each with a call of its own.
#
# The check counts the operations that really run, and compares all results, also what was written into the inputs.
#
# <details><summary>Hint 1: a nudge</summary>
#
# `node.users` is a dict of the nodes that use a node. When a dead node is gone, what it used may be dead too. In which
# order do you have to go through the nodes?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Go from the last node to the first, and erase what is an operation, has no users and does not write:
# `gm.graph.erase_node(node)`. Then count. The Python code of a GraphModule is made from its graph, so after a change
# it has to be made again: `gm.recompile()`.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `for node in reversed(list(gm.graph.nodes)):` and in it `if node.op.startswith("call_") and not node.users and not
# lab11.writes(node):`. After the loop `gm.recompile()`, then
# `sum(node.op.startswith("call_") for node in gm.graph.nodes)`, and `return gm.forward`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-backend", "locked": false, "schema_version": 3, "solution": true, "task": false}
class CountingBackend:
    def __init__(self) -> None:
        self.counts: list[int] = []  # operations of each graph, without the dead ones

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Tensor]):
        """A function that does what the graph does, without its dead operations."""
        ### BEGIN SOLUTION
        for node in reversed(list(gm.graph.nodes)):
            if node.op.startswith("call_") and not node.users and not lab11.writes(node):
                gm.graph.erase_node(node)
        gm.recompile()
        self.counts.append(sum(node.op.startswith("call_") for node in gm.graph.nodes))
        return gm.forward
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-backend-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("11-backend", CountingBackend)

# %% [markdown]
# Now your backend on a real layer, forward and with a loss. Nothing in it is dead, and it is one graph.

# %%
CountingBackend()(torch.fx.symbolic_trace(nn.Identity()), [])  # any graph will do
transformer_layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
backend = CountingBackend()
torch._dynamo.reset()
with track_compile() as compiled:
    step = torch.compile(lambda x: transformer_layer(x).square().mean(), backend=backend)
    step(torch.ones(2, 5, 16)).backward()
print(f"operations by graph: {backend.counts}")
print(", ".join(compiled.graphs[0].operations))

# %% [markdown]
# **In practice** you rarely write a backend. You pass one of PyTorch's own to find out where a mistake comes from:
# `torch.compile(model, backend="eager")` runs Dynamo's graph as it is, and `backend="aot_eager"` adds the translation and
# the backward graph. If the result is wrong with `inductor` and right with these, the generated code is at fault. In
# `transformers`, `TrainingArguments(torch_compile=True, torch_compile_backend="inductor")` compiles the model.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Where a graph ends
#
# Dynamo follows Python with tensors that have no values. It knows dtypes, shapes and devices, and that is enough for most
# models. Where it is not, the graph ends: a **graph break**. The operations so far become one graph, Python executes the
# line in question, and the rest of the function is treated as a function of its own. The result is right, and it costs twice. Python
# runs between the graphs, and nothing is fused or moved across the break.
#
# Here is a model with five obstacles. Can you find all of them?


# %%
class BrokenModel(nn.Module):  # the same as lab11.BrokenModel
    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(n_layers))
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: Tensor, generator: torch.Generator) -> Tensor:
        x = x / x.abs().max().item()
        x = x + 0.1 * torch.randn(x.shape, generator=generator)
        for layer in self.layers:
            y = layer(x)
            if y.norm() > x.norm():
                y = y * (x.norm() / y.norm())
            x = x + torch.relu(y)
        print("mean", x.mean().item())
        return x / x[x > 0].mean()


# %% [markdown]
# **Predict:** into how many graphs is one call of this model cut, if it has two layers?

# %% nbgrader={"grade": false, "grade_id": "11-predict-graphs", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("graphs of BrokenModel", None, exact=True)

# %%
broken_model = BrokenModel(8, 2)
torch._dynamo.reset()
with track_compile() as broken:
    compiled_model = torch.compile(broken_model, backend="eager")
    compiled_model(torch.ones(4, 8), torch.Generator().manual_seed(0))
guesses.settle("graphs of BrokenModel", len(broken.graphs))

# %% tags=["figure"]
labkit.figures.graphs_and_breaks({"BrokenModel": broken.profile})

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Two, and that is the smaller part of the loss: they hold 3 operations, and the other 20 or so run eagerly. `.item()` ends
# the first graph, behind `abs` and `max`. The division is the second graph, which ends at the generator. In the rest of
# the function Dynamo meets the `if`, inside of a loop. It can resume behind a line, but not in the middle of a loop, so
# the whole rest runs eagerly. It never came to `print` and to the mask: they are reported when the first ones are mended.
#
# </details>
#
# Most obstacles disappear if you say the same in operations on tensors.
#
# | obstacle | in its place |
# |---|---|
# | `.item()`, `float(t)`, `int(t)` | a tensor of 0 dimensions: it divides and multiplies like a number |
# | `if`, `while` on values | `torch.where`, `torch.clamp`, `torch.minimum`; `torch.cond` where both ways are expensive |
# | `x[mask]`, `torch.nonzero`: the shape depends on values | `torch.where` with a neutral element, and counts by `mask.sum()` |
# | `print`, a log | a buffer (of `t.detach()`) or a further result, printed by the caller |
# | an object that Dynamo does not know, such as a `torch.Generator` | its result as an argument |
# | a library on numbers | the same in torch, or an operator of your own (below, optional) |
#
# `torch.compiler.disable` is not on the list. It makes Dynamo leave a function alone, and so it *makes* a break. To have
# none, ask for it: `torch.compile(model, fullgraph=True)` raises at the first break, with the line.
#
# [[exercise 11-graph-breaks]]
#
# Write `OneGraph.forward(x, noise)`, which has the results of `BrokenModel` in one graph without a break. The numbers that
# came from the generator are now given as `noise`. What was printed is, after each call, in the buffer `self.mean`. It
# is a number to look at, as it was with `.item()`: the buffer takes part in no backward pass.
#
# The check compiles it with `backend="eager"` and Dynamo's default settings, and calls it as training does. It compares
# the results of several batches, with small and with large results of the layers, and counts graphs, breaks and the
# operations in the graph.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Copy the forward method from above and go through the table. Which of its lines stand in the loop?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# The `if` multiplies y by a factor: `x.norm() / y.norm()` where that is less than 1, and otherwise by 1. The mean of
# the positive values is a sum over all places, with 0 where x is not positive, divided by a count.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `y * torch.clamp(x.norm() / y.norm(), max=1.0)` in the loop, `self.mean.copy_(x.mean().detach())` in place of `print`,
# and at the end `positive = x > 0` with `torch.where(positive, x, 0.0).sum() / positive.sum()`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-graph-breaks", "locked": false, "schema_version": 3, "solution": true, "task": false}
class OneGraph(lab11.BrokenModel):
    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """BrokenModel's result in one graph, with this noise; its mean is in self.mean."""
        ### BEGIN SOLUTION
        x = x / x.abs().max()
        x = x + 0.1 * noise
        for layer in self.layers:
            y = layer(x)
            x = x + torch.relu(y * torch.clamp(x.norm() / y.norm(), max=1.0))
        self.mean.copy_(x.mean().detach())
        positive = x > 0
        return x / (torch.where(positive, x, 0.0).sum() / positive.sum())
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-graph-breaks-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("11-graph-breaks", OneGraph)

# %%
one_graph_model = OneGraph(8, 2)
one_graph_model(torch.ones(4, 8), torch.randn(4, 8))  # it runs without a compiler, too
torch._dynamo.reset()
with track_compile() as one_graph:
    compiled_model = torch.compile(one_graph_model, backend="eager", fullgraph=True)
    compiled_model(torch.ones(4, 8), torch.randn(4, 8))
print(f"mean {one_graph_model.mean.item():.3f}, printed by the caller")

# %% tags=["figure"]
labkit.figures.graphs_and_breaks({"BrokenModel": broken.profile, "yours": one_graph.profile})

# %% [markdown]
# One box. Its width is the number of operations that a compiler can now see together: which of them become one kernel,
# you will count below. Without `detach`, the second call would have found a buffer that requires a gradient, and would
# have been compiled again. In eager mode nobody would have noticed that the buffer also keeps the autograd graphs of all
# calls in memory, one behind the other.
#
# **In practice** run once with `TORCH_LOGS=graph_breaks`, or use `torch._dynamo.explain(model)(x)`, which lists graphs and
# reasons. Two settings help where you cannot rewrite: `torch._dynamo.config.capture_scalar_outputs = True` takes `.item()`
# into the graph as a number that is not known yet, and `reorderable_logging_functions` moves prints to the end of the graph.
# `torch.export` accepts no break at all.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## Guards that fail
#
# Batches come in all sizes: the last one of an epoch, prompts of different lengths. Below, five batches of 2, 3, 5, 8 and
# 9 rows go through a compiled layer, and then one of a single row.

# %% [markdown]
# **Predict:** how often does `torch.compile`, with its default settings, compile the layer for the six batches of 2, 3, 5,
# 8, 9 and 1 rows?

# %% nbgrader={"grade": false, "grade_id": "11-predict-sizes", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("versions for six sizes", None, exact=True)

# %%
batch_sizes = (2, 3, 5, 8, 9, 1)


def calls_over_sizes(marked: bool = False, **settings):
    """What track_compile sees of a layer that is called with batches of these sizes."""
    torch._dynamo.reset()
    layer = torch.compile(nn.Linear(16, 16), backend="eager", **settings)
    with track_compile() as compiled:
        for size in batch_sizes:
            batch = torch.ones(size, 16)
            if marked:
                torch._dynamo.mark_dynamic(batch, 0)
            layer(batch)
    return compiled.profile


over_sizes = {
    "default": calls_over_sizes(),
    "dynamic=False": calls_over_sizes(dynamic=False),
    "axis 0 marked": calls_over_sizes(marked=True),
}
for name, profile in over_sizes.items():
    print(f"{name}: {profile.frames} versions")
    for recompile in profile.recompiles:
        print(f"    again, because {recompile.guard}")
guesses.settle("versions for six sizes", over_sizes["default"].frames)

# %% tags=["figure"]
labkit.figures.versions_by_size(
    {name: profile.calls for name, profile in over_sizes.items()}, batch_sizes
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Three times. The first version is for exactly 2 rows: its guard says so, and the kernels of a fixed size are the fastest.
# When the size changes, Dynamo takes axis 0 for **dynamic** and compiles a second version, in which the number of rows is
# a symbol. That one serves 3, 5, 8 and 9. The batch of one row needs a third.
#
# </details>
#
# If you know that an axis will change, say so before the first call: `torch._dynamo.mark_dynamic(batch, 0)` saves the first
# version. `torch.compile(model, dynamic=True)` takes every axis for dynamic from the first call on. `dynamic=False`
# compiles each size for itself, which pays for a few fixed sizes and nothing else.
#
# The sizes 0 and 1 are always compiled for themselves, also when they are marked. An axis of size 1 broadcasts against
# any other, and a tensor with one is contiguous whatever its strides, so a graph for one row takes other decisions than
# one for many. With 0 elements there is often nothing to do at all. The symbolic version has the guard that you see above:
# the size is at least 2.
#
# **Numbers of Python** are guarded as well. It depends on where they come from.
#
# | number | what Dynamo does |
# |---|---|
# | an int or a float that is an argument | compiles its first value; once it changes, it becomes an input of the graph: 2 versions |
# | a float attribute of a module | the same |
# | an **int attribute of a module** | compiles each value, up to the limit |
# | a string or a bool | compiles each value, up to the limit |
# | a tensor | is an input; its value is never looked at |
#
# The limit is `torch._dynamo.config.recompile_limit`, 8 versions of a function. Behind it, every call whose guards do not
# hold **runs eagerly**. This is what became of the 24 layers. In a model that counts its own steps in an int, it happens
# to all steps behind the eighth.

# %% [markdown]
# **Predict:** a model has the line `self.n_calls += 1` in its `forward` and works with the result. Of 20 calls, how many
# run eagerly?

# %% nbgrader={"grade": false, "grade_id": "11-predict-counting", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("calls that run eagerly", None, exact=True)

# %%
torch._dynamo.reset()
served = torch.compile(lab11.ServedModel(16, 2), backend="eager")
with track_compile() as counting:
    for _ in range(20):
        served(torch.ones(4, 16), 1.0)
guesses.settle("calls that run eagerly", counting.eager_calls)

# %% tags=["figure"]
labkit.figures.call_strip({"n_calls is an int": counting.calls})

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 12. Each of the first 8 calls compiles a version that no later call can use, because the count has moved on. Then the
# limit is reached. Not one call of the 20 is faster than without a compiler, and 8 are much slower.
#
# </details>
#
# A warning was printed, once. Two things make the compiler raise an error in its place: `fullgraph=True`, which asks for one
# graph and no eager calls, and `torch._dynamo.config.fail_on_recompile_limit_hit = True`. To see the guards that fail,
# set `TORCH_LOGS=recompiles` before Python starts, or use `track_compile`.

# %% [markdown]
# [[exercise 11-recompiles]]
#
# `lab11.ServedModel`, which you have just seen, is made to be hard to compile: an int counts the calls, a share grows
# with them until a warm-up ends, a temperature comes with each call, and the batches have any number of rows.
# (`lab11.ServedModel??` shows its text.) Write two things.
#
# - `SteadyModel(width, n_layers)`, with the same parameters and results. Its `n_calls` still counts the calls. You choose
#   what kind of thing it is, and what `forward` is given as temperature. The loop over the layers is there already.
# - `make_step(model, backend)` returns a function `step(x, temperature)` with x of any number of rows and the temperature a
#   float. The whole model is compiled, **once** for all numbers of rows from 2 on, and once more for each of 0 and 1. It
#   works on the rows that there are, so do not pad. If the model that it is given hits the limit, `step` raises
#   PyTorch's error.
#
# The check counts versions, looks at the rows that the graph is given, and hands `make_step` a hopeless model.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through everything that differs from call to call: the count, the share, the temperature, the number of rows. Which
# line of the table above is it on, and on which should it be?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A buffer is a tensor that belongs to a module, `self.register_buffer("n_calls", torch.tensor(0))`, and `self.n_calls += 1`
# changes it in place. `torch.clamp(t, max=1.0)` is Python's `min(1.0, t)` as one operation. `step` runs before the
# graph: there you can turn the temperature into a tensor and mark the batch.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# In `__init__`: `del self.n_calls` (the int), then the buffer. In `forward`: `share = torch.clamp(self.n_calls /
# lab11.WARM_UP, max=1.0)`. `compiled = torch.compile(model, backend=backend, fullgraph=True)`, and in
# `step`: `torch._dynamo.mark_dynamic(x, 0)`, then `return compiled(x, torch.tensor(temperature))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-recompiles", "locked": false, "schema_version": 3, "solution": true, "task": false}
class SteadyModel(lab11.ServedModel):
    def __init__(self, width: int, n_layers: int) -> None:
        super().__init__(width, n_layers)
        ### BEGIN SOLUTION
        del self.n_calls
        self.register_buffer("n_calls", torch.tensor(0))
        ### END SOLUTION

    def forward(self, x: Tensor, temperature: Tensor) -> Tensor:
        """The same values as ServedModel, in a graph that all calls can use."""
        # Count this call, and work out `share`, as ServedModel does.
        ### BEGIN SOLUTION
        self.n_calls += 1
        share = torch.clamp(self.n_calls / lab11.WARM_UP, max=1.0)
        ### END SOLUTION
        for number, layer in enumerate(self.layers, 1):
            x = x + share * torch.tanh(layer(x)) / number
        return x / temperature


def make_step(model: nn.Module, backend) -> Callable[[Tensor, float], Tensor]:
    """step(x, temperature): the model's result, compiled with this backend once for all sizes from 2 on."""
    ### BEGIN SOLUTION
    compiled = torch.compile(model, backend=backend, fullgraph=True)

    def step(x: Tensor, temperature: float) -> Tensor:
        torch._dynamo.mark_dynamic(x, 0)
        return compiled(x, torch.tensor(temperature))

    return step
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-recompiles-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
check("11-recompiles", SteadyModel, make_step)

# %% [markdown]
# Twenty calls of the model before and after, with batches of changing sizes and temperatures. Both rows are the same
# calls.

# %%
served_calls = [(4 + n % 5, 0.5 + 0.1 * (n % 3)) for n in range(20)]
torch._dynamo.reset()
served = torch.compile(lab11.ServedModel(16, 2), backend="eager")
with track_compile() as storm_of_20:
    for size, temperature in served_calls:
        served(torch.ones(size, 16), temperature)

torch._dynamo.reset()
with track_compile() as steady:
    step = make_step(SteadyModel(16, 2), backend="eager")
    for size, temperature in served_calls:
        step(torch.ones(size, 16), temperature)

# %% tags=["figure"]
labkit.figures.call_strip({"before": storm_of_20.calls, "yours": steady.calls})

# %% [markdown]
# And the 24 layers of the opening? Their number is an int attribute, and it never changes. Here the remedy is another
# one: **compile the model, not the layer**. The loop over the layers is Python that runs while the graph is written, so
# each layer puts its own number into the one graph.

# %%
torch._dynamo.reset()
with track_compile() as whole:
    stack = nn.Sequential(*(lab11.Numbered(number) for number in range(2, 26)))
    stack = torch.compile(stack, backend="eager")
    for _ in range(3):
        stack(torch.ones(4))
print(whole)

# %% [markdown]
# One graph with 72 operations, and no guard fails. With the decorator on the layer, a float would do as well:
# `self.number = float(number)` makes 2 versions instead of 8, and the 48 eager calls disappear. Compiling layer by layer
# (**regional compilation**) is useful for deep models, because 24 equal layers need one compile and not 24 times the
# graph. It works only if they are equal for the guards.
#
# **In practice** `generate(cache_implementation="static")` in `transformers` keeps the shapes of generation fixed, so that
# its step is compiled once. For training, `TrainingArguments(torch_compile=True)` together with a collator that has
# `pad_to_multiple_of=64` leaves few sizes. On several GPUs the order counts. `DistributedDataParallel` comes first and
# `torch.compile` goes around it: Dynamo then cuts the graph where a bucket of gradients is full, so that all-reduces still
# overlap with the backward pass. With `fully_shard`, compile each block and shard it then: the hooks that gather the
# weights stay between the graphs.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## One kernel for a chain
#
# In eager mode every operation is a kernel of its own. It reads its arguments from memory and writes its result back,
# and the next one reads that again. For elementwise operations nearly all of the time goes into these bytes. A
# compiler that sees the whole chain can **fuse** it: one loop reads the inputs, keeps everything in between in
# registers, and writes the result. Then only the inputs and the result move.
#
# One graph does not have to become one kernel, though. Here is a function $z = h(f(x), g(y))$ as four people wrote it,
# each of them with the call that came to mind first. There is nothing wrong with its values.


# %%
def chain(x: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    """z = h(f(x), g(y)), where x and y have a row for each token and `scale` a number for each column."""
    a = x * torch.sigmoid(x)  # f
    b = y.clone()  # g: negative values are multiplied by 0.1
    b[y < 0] = 0.1 * y[y < 0]
    size = torch.complex(a, b).abs()  # h: the size of the pair (a, b) ...
    size = torch.stack([size, torch.full_like(size, 4.0)]).amin(0)  # ... but at most 4 ...
    return size @ torch.diag(scale)  # ... times the scale of its column


x, y, scale = 3 * torch.randn(48, 64), 3 * torch.randn(48, 64), torch.rand(64) + 0.5
ideal_bytes = 3 * x.nbytes + scale.nbytes  # x, y and scale are read, z is written

# %% [markdown]
# **Predict:** eager mode runs 15 kernels for this. How many kernels are left once `torch.compile` has compiled it?

# %% nbgrader={"grade": false, "grade_id": "11-predict-kernels", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("kernels of the compiled chain", None)

# %% [markdown]
# `track_compile` has inductor, the default backend, generate its code and stops before that would be compiled. So it
# can list the kernels without a C++ compiler, and add up from inductor's own plan what each of them reads and writes.

# %%
torch.compiler.reset()
with torch.no_grad(), track_compile() as chain_compiled:
    torch.compile(chain)(x, y, scale)
print(chain_compiled)
guesses.settle("kernels of the compiled chain", len(chain_compiled.kernels))

# %% tags=["figure"]
labkit.figures.fused_bytes(
    {"eager": eager_kernels(chain, x, y, scale), "compiled": chain_compiled.kernels},
    ideal_bytes,
    eager=["eager"],
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# 12, and they move more than eight times the ideal. Compiling removed three kernels of fifteen. One line even cut the
# graph in two. What inductor does not generate itself it calls from a library (red), and a call into a library shares
# nothing with its neighbours.
#
# </details>
#
# [[exercise 11-fuse]]
#
# Write `fused(x, y, scale)` with the values of `chain` that `torch.compile` turns into **one** kernel. It reads `x`,
# `y` and `scale` once and writes the result once, and no call into a library is left. `x` and `y` may have more than
# two dimensions; `scale` always belongs to the last one. Write plain PyTorch, no decorator: the check compiles it.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Go through `chain` line by line and ask of each line: does element (i, j) of its result depend on element (i, j) of
# its arguments alone, and does the code say so?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Four calls have to go. How many values a mask selects depends on the data; complex numbers have no generated code;
# stacking stores its parts before it chooses; a product with a diagonal matrix is still a matrix product. Each of them
# has an elementwise form.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `torch.where(y < 0, 0.1 * y, y)` for the mask, `torch.hypot(f, g)` for the complex size, `.clamp(max=4.0)` for the
# stack, and `* scale` for the diagonal matrix.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-fuse", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fused(x: Tensor, y: Tensor, scale: Tensor) -> Tensor:
    """The values of `chain`, in a form that compiles into one kernel."""
    ### BEGIN SOLUTION
    f = x * torch.sigmoid(x)
    g = torch.where(y < 0, 0.1 * y, y)
    return torch.hypot(f, g).clamp(max=4.0) * scale
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-fuse-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("11-fuse", fused)

# %% [markdown]
# Here is your function beside the chain. The bars have one scale; the dashed line is the ideal.

# %%
fused(x, y, scale)  # it runs without a compiler, too
torch.compiler.reset()
with torch.no_grad(), track_compile(source=True) as fused_compiled:
    torch.compile(fused)(x, y, scale)
ways = {"chain, eager": eager_kernels(chain, x, y, scale)}
try:
    ways["fused, eager"] = eager_kernels(fused, x, y, scale)
except TypeError as error:
    print("fused, eager   : not without a compiler on a GPU:", error)
ways |= {"chain, compiled": chain_compiled.kernels, "fused, compiled": fused_compiled.kernels}
for name, kernels in ways.items():
    moved_bytes = sum(kernel.total_bytes for kernel in kernels)
    print(
        f"{name:15}: kernels {len(kernels):2}, bytes {in_bytes(moved_bytes):>9}, {moved_bytes / ideal_bytes:.1f} x the ideal"
    )

# %% tags=["figure"]
labkit.figures.fused_bytes(
    {name: kernels for name, kernels in ways.items() if name != "chain, eager"},
    ideal_bytes,
    eager=["fused, eager"],
)

# %% [markdown]
# In eager mode your function still moves several times the ideal, because each of its operations is a kernel of its own.
# Compiled it reaches the ideal. And here is the loop that inductor wrote for it, as it would be handed to the C++
# compiler. On a GPU it writes a Triton kernel instead, with the same plan.

# %%
print(loop_of(fused_compiled.codes[0].source))

# %% [markdown]
# **In practice**, set `TORCH_LOGS="fusion,output_code"` to read what was fused and what was generated, and
# `TORCH_LOGS="graph_breaks"` to see where a graph ended. Three things stay apart in every model: calls into a library
# (matrix products, convolutions, sorts, your own operators), whatever `cat` and `stack` have to store, and what lies
# on two sides of a graph break. In lab 12 you write such kernels yourself, in Triton, and count their bytes the same
# way.

# %% [markdown]
# [[stop]]

# %% [markdown]
# ## What compilation keeps for the backward pass
#
# Two widely copied slides about making training cheaper disagree. By one of them `torch.compile` saves time *and*
# memory; by the other it saves time and does nothing for memory. Who is right?
#
# In eager mode each operation decides alone what it keeps for its backward pass, usually its input or its output. The
# compiler sees the forward and the backward pass together, as one **joint graph**, which AOTAutograd makes. A
# **partitioner** then cuts it in two. Whatever crosses the cut is kept in memory until the backward pass runs. What it
# does not keep, the backward graph computes again from what it has.
#
# That sounds like checkpointing, which pays in time for memory. Here it often costs nothing. The backward kernel of
# an elementwise chain reads the chain's input anyway, and repeating the chain happens in registers. Fewer bytes move,
# so it is even faster. The partitioner looks for the cut over which the fewest bytes go (a minimum cut of the graph).
# It never repeats what is expensive, such as matrix products.

# %%
torch.manual_seed(0)
N_ROWS, WIDTH = 64, 96


def gelu_by_hand(x: Tensor, w: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978846 * (x + 0.044715 * x**3)))


def cut_graphs(function, budget: float = 1.0) -> list[Cut]:
    """The forward and backward graphs that the function is cut into, with x of 64 x 96 and w of 96 x 96."""
    x, w = (
        torch.randn(N_ROWS, WIDTH, requires_grad=True),
        torch.randn(WIDTH, WIDTH, requires_grad=True),
    )
    return cuts_of(function, x, w, budget=budget)


gelu_forward = cut_graphs(gelu_by_hand)[0].forward
print(gelu_forward.graph)

# %% [markdown]
# That is the forward graph of a GELU written out. It returns two things: first the model's own result, then what is
# kept. Kept is `primals_1`, which is `x`, an input of the graph, so the function keeps nothing that would not be there
# anyway.
#
# **Predict:** in eager mode, how many tensors as large as `x` does this function keep beside `x` itself?

# %% nbgrader={"grade": false, "grade_id": "11-predict-kept", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("tensors that an eager GELU by hand keeps", None)

# %%
x = torch.randn(N_ROWS, WIDTH, requires_grad=True)
gelu_eager_bytes = eager_kept_bytes(gelu_by_hand, x, torch.zeros(()))
print(f"eager keeps {in_bytes(gelu_eager_bytes)}, {gelu_eager_bytes / x.nbytes:.0f} times x")
guesses.settle("tensors that an eager GELU by hand keeps", gelu_eager_bytes / x.nbytes)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# Three: `0.5 * x`, the result of the `tanh`, and 1 plus that. Each operation keeps what its own formula needs, and none
# of them knows that all three can be computed again from `x`.
#
# </details>
#
# Now the other slide. You decide who is right when, with a function for each of them. First you need a meter.
#
# [[exercise 11-memory]]
#
# Write three functions.
#
# - `kept_bytes(forward, n_outputs)`: the bytes that a forward graph keeps for its backward graph. `forward` is a
#   `torch.fx.GraphModule` like the one above. The argument of its node `output` is a tuple: first the `n_outputs`
#   results of the model, then everything that the backward graph needs. A parameter or a batch (`placeholder`) is in
#   memory anyway and does not count, neither does a view of it. `storages_of(node)` gives the bytes of the memory that
#   a node's tensors lie in, by storage: `{storage: bytes}`, the same storage for a tensor and its views, and `{}` for
#   what is no tensor.
# - `saves(x, w)`: a function for which the first slide is right. Without recomputing, it would keep at least 3 tensors
#   as large as `x`; compiled, it keeps **at most half** of that. `x` is (rows, width), `w` is (width, width).
# - `saves_nothing(x, w)`: a function for which the second slide is right. It keeps at least 2 tensors as large as `x`,
#   and compiled it keeps **no byte less**.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What is kept is memory, not nodes: think in storages. For the two functions, ask which operations a kernel can repeat
# in registers from something it reads anyway, and which it cannot.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Collect the storages of the results after `n_outputs` in one dict, and remove those of the placeholders. A chain of
# elementwise operations saves, a chain of matrix products does not.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `results = list(forward.graph.nodes)[-1].args[0]`; for each node in `results[n_outputs:]` `kept.update(storages_of(node))`;
# for each placeholder and each of its storages `kept.pop(storage, None)`; return `sum(kept.values())`. A GELU written by
# hand saves, of `x @ w` as well as of `x`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def kept_bytes(forward: torch.fx.GraphModule, n_outputs: int) -> int:
    """Bytes that this forward graph keeps for its backward graph, beyond its own inputs."""
    ### BEGIN SOLUTION
    *nodes, output = forward.graph.nodes
    kept = {}
    for node in output.args[0][n_outputs:]:
        kept.update(storages_of(node))
    for node in nodes:
        if node.op == "placeholder":
            for storage in storages_of(node):
                kept.pop(storage, None)
    return sum(kept.values())
    ### END SOLUTION


def saves(x: Tensor, w: Tensor) -> Tensor:
    """A function that keeps at most half as much if it is compiled."""
    ### BEGIN SOLUTION
    h = x @ w
    return 0.5 * h * (1 + torch.tanh(0.8 * (h + 0.04 * h**3)))
    ### END SOLUTION


def saves_nothing(x: Tensor, w: Tensor) -> Tensor:
    """A function that keeps no byte less if it is compiled."""
    ### BEGIN SOLUTION
    return x @ w @ w @ w
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-memory-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("11-memory", kept_bytes, saves, saves_nothing)

# %% [markdown]
# With your meter you can settle the matter for parts of real models. Each line of the table shows what eager mode
# keeps, and what your `kept_bytes` finds in the compiled forward graph, in tensors as large as `x`.


# %%
def rms_norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rotated(x: Tensor, w: Tensor) -> Tensor:
    """Rotary embedding of half the columns by the other half, with angles w."""
    (left, right), angle = (x @ w).chunk(2, -1), w[:N_ROWS, : WIDTH // 2]
    return torch.cat(
        [left * angle.cos() - right * angle.sin(), right * angle.cos() + left * angle.sin()], -1
    )


PARTS = {
    "F.gelu": lambda x, w: F.gelu(x),
    "GELU by hand": gelu_by_hand,
    "x w w w": lambda x, w: x @ w @ w @ w,
    "MLP, F.gelu": lambda x, w: F.gelu(x @ w) @ w.t(),
    "MLP, GELU by hand": lambda x, w: gelu_by_hand(x @ w, w) @ w.t(),
    "MLP, SwiGLU": lambda x, w: (F.silu(x @ w) * (x @ w.t())) @ w,
    "rotary embedding": rotated,
    "transformer MLP": lambda x, w: x + gelu_by_hand(rms_norm(x) @ w, w) @ w.t(),
}
kept_rows = {}
for name, function in PARTS.items():
    w = torch.randn(WIDTH, WIDTH, requires_grad=True)
    by_eager = eager_kept_bytes(function, x, w)
    compiled = sum(kept_bytes(cut.forward, cut.n_outputs) for cut in cut_graphs(function))
    kept_rows[name] = (by_eager / x.nbytes, compiled / x.nbytes)
    print(f"{name:18}: eager {kept_rows[name][0]:.2f}, compiled {kept_rows[name][1]:.2f}")

# %% [markdown]
# Both slides are right, each about its own model. What the compiler saves lies *between* the matrix products: of a GELU
# written by hand between two products it keeps one tensor where eager mode keeps four, its input among them. `F.gelu`
# keeps only its input to begin with, so there is nothing left to save. What goes into a matrix product stays either way. A model of large products, fused
# attention and library calls keeps what it kept before; one that writes out its gates, rotary embeddings, norms and
# losses keeps half.
#
# The partitioner has a setting, `torch._functorch.config.activation_memory_budget`. 1.0 is the default: repeat nothing
# that is expensive. Below that it repeats matrix products as well, down to 0.0, where it repeats all that it can. That is
# checkpointing again, with the compiler choosing what to repeat, and now it does cost time. Here is a stack of four
# transformer MLPs; move the slider.


# %%
def four_mlps(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(4):
        x = x + gelu_by_hand(rms_norm(x) @ w, w) @ w.t()
    return x


def kept_by_four(budget: float) -> int:
    return sum(kept_bytes(cut.forward, cut.n_outputs) for cut in cut_graphs(four_mlps, budget))


eager_bytes = eager_kept_bytes(four_mlps, x, torch.randn(WIDTH, WIDTH, requires_grad=True))
kept_at_budget = {step / 10: kept_by_four(step / 10) for step in range(11)}
limit_bytes = eager_bytes // 4
chosen = max(budget for budget, kept in kept_at_budget.items() if kept <= limit_bytes)
print(
    f"eager keeps {in_bytes(eager_bytes)}; at most a quarter of that is kept up to a budget of {chosen}"
)

# %% tags=["figure"]
labkit.figures.budget_slider(eager_bytes, kept_at_budget, limit_bytes=limit_bytes, chosen=chosen)

# %% [markdown]
# The staircase is coarse, because the partitioner keeps or repeats whole tensors. A budget of 0.9 already keeps less
# than half of what 1.0 keeps, because it lets the partitioner repeat what it would never repeat by default. So a budget
# is not a share of the bytes: ask what it keeps.
#
# **In practice** compile first, and checkpoint only if the memory still does not suffice. Compiled,
# `torch.utils.checkpoint` keeps its meaning: what lies inside is repeated. The budget is a setting of the process, set
# before the first call: `torch._functorch.config.activation_memory_budget = 0.5`. One thing makes a compiled model need
# *more* memory: `mode="reduce-overhead"` captures CUDA graphs, whose buffers stay allocated between steps.

# %% [markdown]
# ## When compiling pays
#
# The first compile of a real model with inductor takes seconds to minutes, because kernels are generated and compiled. Each
# call after it is a little faster. So there is a **break-even point**: the call from which on the time that was won is more
# than the time that was spent. Four things move it.
#
# - **Recompilations** cost as much as the first time, whenever they come.
# - **A restart** forgets everything that was compiled in memory. Jobs are preempted, and notebooks are restarted.
# - **A cache on disk** keeps inductor's result from process to process. A version that is found there is not compiled, but
#   it is not free either: Dynamo traces the function again, and the code is loaded. That is a **warm** start, and the first
#   one is a **cold** start.
# - **A change** of the code, of PyTorch or of the machine makes the cache useless.

# %% [markdown]
# **Predict:** a step takes 300 ms eagerly and 240 ms compiled. A cold compile takes 90 s, a warm one 15 s, and the job is
# preempted every 400 steps. From which step on has compiling paid for good?

# %% nbgrader={"grade": false, "grade_id": "11-predict-break-even", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("step at which compiling has paid", None, unit="steps")

# %% [markdown]
# [[exercise 11-break-even]]
#
# A log is a list. `"start"` is the start of a process, `"change"` a change that makes the cache on disk useless, and a number
# is a call with a batch of that many rows. `costs` has `eager_ms` and `compiled_ms` for a call, and `cold_ms` and `warm_ms`
# for what comes on top for each version that a process needs: cold if it has to be compiled, warm if it is on disk.
#
# - `compiled_totals(log, costs)`: the milliseconds spent after each call if the model is compiled, with Dynamo's default
#   settings. You know its rules: in each process the first size gets a version of its own, the next other one a version for
#   all sizes from 2 on, and size 1 always its own. What is on disk is found by version.
# - `break_even(log, costs)`: the first call, counted from 1, from which on the total is at most the eager one, until the end
#   of the log. None if there is no such call.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Two sets hold versions: one for this process, one for the disk. Which event empties which?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# A call needs a version: its size, if that is 1, or if this process has a version of that size or none at all; otherwise
# "dynamic". If the process does not have it, add the cold or the warm time and put it into both sets. Then the call runs.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `version = event if event == 1 or event in in_memory or not in_memory else "dynamic"`. For the break-even point go through
# the totals: behind, forget the call that you had found; ahead and none found, take this one.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-break-even", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compiled_totals(log: list[str | int], costs: lab11.Costs) -> list[int]:
    """Milliseconds spent after each call of the log, if the model is compiled."""
    ### BEGIN SOLUTION
    in_memory, on_disk = set(), set()
    spent_ms, totals_ms = 0, []
    for event in log:
        if event == "start":
            in_memory = set()
        elif event == "change":
            on_disk = set()
        else:
            version = event if event == 1 or event in in_memory or not in_memory else "dynamic"
            if version not in in_memory:
                spent_ms += costs.warm_ms if version in on_disk else costs.cold_ms
                in_memory.add(version)
                on_disk.add(version)
            spent_ms += costs.compiled_ms
            totals_ms.append(spent_ms)
    return totals_ms
    ### END SOLUTION


def break_even(log: list[str | int], costs: lab11.Costs) -> int | None:
    """The first call, counted from 1, from which on compiling stays ahead; None if there is none."""
    ### BEGIN SOLUTION
    found = None
    for n, total_ms in enumerate(compiled_totals(log, costs), 1):
        if total_ms > n * costs.eager_ms:
            found = None
        elif found is None:
            found = n
    return found
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-break-even-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("11-break-even", compiled_totals, break_even)

# %% [markdown]
# The job of the prediction, for 4000 steps. The teeth are its restarts.

# %%
job_costs = lab11.Costs(eager_ms=300, compiled_ms=240, cold_ms=90_000, warm_ms=15_000)
job_log = ["start", *[32] * 400] * 10
job_totals, job_break_even = compiled_totals(job_log, job_costs), break_even(job_log, job_costs)
guesses.settle("step at which compiling has paid", job_break_even)

# %% tags=["figure"]
labkit.figures.break_even_curves(
    {
        "cache on disk": job_totals,
        "no cache": compiled_totals(job_log, lab11.Costs(300, 240, 90_000, 90_000)),
    },
    job_costs.eager_ms,
    job_break_even,
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# From step 3,750 on. A process of 400 steps wins 24 s, and the warm start takes 15 s of them. So the 90 s of the cold start
# come back 9 s at a time. Without a cache on disk each process loses 66 s, and compiling never pays.
#
# </details>
#
# **In practice** the cache lies in `TORCHINDUCTOR_CACHE_DIR`, by default in a folder under `/tmp` that does not outlive a
# container: put it onto a disk that does. `torch.compiler.save_cache_artifacts()` hands it from one machine to the next.
# For a test run of ten steps, leave `torch.compile` out.

# %% [markdown]
# ## An operator of your own in the graph
#
# Sooner or later a model calls something that the compiler cannot look into: a quantizer in C++, a kernel of your own.
# Dynamo ends the graph there and begins a new one behind it. For the compiler to go on, the call has to be an
# **operator**: one node, about which it knows enough without looking inside. There are two things it has to know.
#
# - **What comes out?** Compiling runs on **fake tensors**: shape, strides, dtype, no data. For your operator you write a
#   fake implementation, which makes empty results of the right form.
# - **What is changed?** The compiler moves, drops and repeats nodes. That is only right if a node's results are all it
#   does. If it writes into an argument, the schema has to say so: otherwise a call whose result nobody uses is dead
#   code.
#
# The module `native` stands for such a library.


# %%
def quantized_model(x: Tensor, peak: Tensor) -> Tensor:
    values, scale = native.quantize_blocks(torch.tanh(x), 4)
    native.note_peak(peak, x)
    return values.sum() * scale.sum() + peak.sum()


torch._dynamo.reset()
with track_compile() as compiled:
    torch.compile(quantized_model, backend="aot_eager")(torch.randn(6, 10), torch.zeros(10))
print(compiled)

# %% [markdown]
# [[exercise 11-custom-op]]
#
# Write `make_ops()`, which registers two operators with `torch.library.custom_op` and returns them,
# `(quantize, note_peak)`.
#
# - `quantize(x: Tensor, block: int) -> tuple[Tensor, Tensor]` is `native.quantize_blocks(x, block)`. It returns int8
#   values of x's shape and float32 scales, one for each `block` values of a row; the last block of a row may be
#   shorter. `x` may have two dimensions or more, float32 or bfloat16, and any strides. Both results are contiguous.
# - `note_peak(peak: Tensor, x: Tensor) -> None` is `native.note_peak(peak, x)`. It writes into `peak`.
#
# The check calls them alone, on fake tensors, and in a compiled function, and runs `torch.library.opcheck`.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What can the fake implementation know? Only `x.shape`, `x.dtype`, `x.device` and `block`.
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# `@torch.library.custom_op("lab11::quantize", mutates_args=())` above a function with annotations makes the operator,
# and `@quantize.register_fake` above a function with the same arguments gives it its fake implementation. What returns
# nothing needs none, but it has to name what it writes.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# The fake results: `x.new_empty(x.shape, dtype=torch.int8)` and
# `x.new_empty((*x.shape[:-1], -(-x.shape[-1] // block)), dtype=torch.float32)`. For the other operator
# `mutates_args=("peak",)`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-custom-op", "locked": false, "schema_version": 3, "solution": true, "task": false}
def make_ops():
    """(quantize, note_peak): the functions of `native` as operators that the compiler can put into a graph."""

    ### BEGIN SOLUTION
    @torch.library.custom_op("lab11::quantize", mutates_args=())
    def quantize(x: Tensor, block: int) -> tuple[Tensor, Tensor]:
        return native.quantize_blocks(x, block)

    @quantize.register_fake
    def _(x, block):
        n_blocks = -(-x.shape[-1] // block)
        values = x.new_empty(x.shape, dtype=torch.int8)
        return values, x.new_empty((*x.shape[:-1], n_blocks), dtype=torch.float32)

    @torch.library.custom_op("lab11::note_peak", mutates_args=("peak",))
    def note_peak(peak: Tensor, x: Tensor) -> None:
        native.note_peak(peak, x)

    return quantize, note_peak
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-custom-op-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("11-custom-op", make_ops)

# %% [markdown]
# The same model with your operators:

# %%
quantize, note_peak = make_ops()


def model_with_operators(x: Tensor, peak: Tensor) -> Tensor:
    values, scale = quantize(torch.tanh(x), 4)
    note_peak(peak, x)
    return values.sum() * scale.sum() + peak.sum()


torch._dynamo.reset()
with track_compile() as compiled:
    torch.compile(model_with_operators, backend="aot_eager")(torch.randn(6, 10), torch.zeros(10))
print(compiled)
print(lab11.schema_of(quantize))
print(lab11.schema_of(note_peak))

# %% [markdown]
# One graph. In the second schema, `Tensor(a0!) peak` says that the argument is written. The price is what you saw in
# the section on fusion: an operator is a call of its own, and nothing is fused into it.
#
# **In practice** Triton kernels need no such wrapper (Dynamo knows them), or take `torch.library.triton_op`, which
# lets the compiler look inside. An operator that is to be trained through also needs its backward formula:
# `quantize.register_autograd`.

# %% [markdown]
# ## Capture a step once, and launch it whole
#
# Fusion makes kernels fewer. What if there are still 200 of them, each so short that the GPU waits for the next
# launch? A launch costs the host some microseconds, however little the kernel does. Host and device work at the same
# time, so a step takes the longer of two times: the host's launches, or the device's work. If the launches take
# longer, the GPU idles between any two kernels.
#
# A **CUDA graph** removes the launches. You let the step run once while CUDA only writes down what it would launch:
# that is the **capture**. Afterwards `replay()` starts all of it by a single launch. What is written down are kernels
# with *addresses*. A replay reads the input where it was at the capture, and writes the output where it was then. It
# runs no Python, sees no new tensor, and may not wait for anything.
#
# Without a GPU, the simulated device of lab 09 does the same: a capture runs nothing and fills its results with NaN, a
# replay is one launch, and `sim.stale` names replays that read memory which is gone or input that is old.

# %%
KERNELS_PER_STEP = 40


def short_kernels(x: Tensor) -> Tensor:
    for _ in range(KERNELS_PER_STEP):
        x = x + 1
    return x


with SimDevice(Machine(launch_s=5e-6, kernel_s=2e-6)) as sim:
    x = torch.zeros(256, device=sim.device)
    for _ in range(3):
        short_kernels(x)
    sim.synchronize()
print(f"{len(sim.launches) // 3} launches, {1e6 * sim.now_s / 3:.0f} us a step")

# %% [markdown]
# **Predict:** each of the 40 kernels runs for 2 µs, and a launch takes 5 µs. By what factor does a graph speed up the
# step?

# %% nbgrader={"grade": false, "grade_id": "11-predict-graph", "locked": false, "schema_version": 3, "solution": false, "task": false}
guesses.take("speed-up by a graph of 40 short kernels", None)

# %% [markdown]
# [[exercise 11-cuda-graph]]
#
# Write `graphed(cuda, step, example)`. It captures `step` once and returns a function `run(batch)` that computes
# `step` on a new batch.
#
# - `cuda` is `torch.cuda` or the simulated device. `example` is a tensor of the device, of the shape of a batch; the
#   caller lets go of it after `graphed` returns.
# - `step(x)` returns a new tensor and changes nothing. Its first call sets things up: it copies its weights to the
#   device, which must not happen in a capture.
# - `batch` lies in pinned memory of the host. A call makes one copy and **one launch of the graph**, nothing else, and
#   the host does not wait. It returns the graph's own output, which is valid until the next call.
#
# Also write `pays_from_s(kernels_s, copy_s)`: the time of one launch (of a kernel, a copy or a graph) above which the
# graph is faster than launching every kernel, in a long loop of steps. `kernels_s` are the times of the step's kernels
# on the device (at least two), `copy_s` is that of the batch's copy; all of it runs on one stream, one after the other.
#
# <details><summary>Hint 1: a nudge</summary>
#
# Which tensors have to stay where they are? And when did `step` do what it does only the first time?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# Make a static input, call `step` on it once as a warm-up, and capture the second call. In `run`, copy the batch into
# the static input, replay, and return the output of the capture. For the launch time: without a graph, the host
# launches every kernel and the copy, and that takes longer than the device from which launch time on?
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `static_x = torch.empty_like(example)`, `step(static_x)`, `g = cuda.CUDAGraph()`, `with cuda.graph(g): static_y =
# step(static_x)`. In `run`: `static_x.copy_(batch, non_blocking=True)`, `g.replay()`, `return static_y`. There are
# `len(kernels_s) + 1` launches.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-cuda-graph", "locked": false, "schema_version": 3, "solution": true, "task": false}
def graphed(cuda, step, example: Tensor):
    """run(batch): step on a batch of the host, by one copy and one launch of a graph."""
    ### BEGIN SOLUTION
    static_x = torch.zeros_like(example)
    step(static_x)  # what happens only the first time is not to be captured
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        static_y = step(static_x)

    def run(batch: Tensor) -> Tensor:
        static_x.copy_(batch, non_blocking=True)
        g.replay()
        return static_y

    return run
    ### END SOLUTION


def pays_from_s(kernels_s: list[float], copy_s: float) -> float:
    """The launch time above which a graph of these kernels is faster than launching each of them."""
    ### BEGIN SOLUTION
    return (sum(kernels_s) + copy_s) / (len(kernels_s) + 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-cuda-graph-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("11-cuda-graph", graphed, pays_from_s)

# %% [markdown]
# Now the 40 kernels with your function, over launch times from 0.5 µs to 10 µs.


# %%
def step_times_us(launch_s: float, n_steps: int = 6) -> tuple[float, float]:
    """Microseconds of one step of a loop, eager and graphed, on a device whose launches take this long."""
    times = []
    for is_graphed in (False, True):
        with SimDevice(Machine(launch_s=launch_s, kernel_s=2e-6, copy_s=2e-6)) as sim:
            example = torch.zeros(256, device=sim.device)
            eager = lambda batch, example=example: short_kernels(
                example.copy_(batch, non_blocking=True)
            )
            run = graphed(sim, short_kernels, example) if is_graphed else eager
            batches = [torch.zeros(256).pin_memory() for _ in range(n_steps)]
            sim.synchronize()
            start_s = sim.now_s
            for batch in batches:
                run(batch)
            sim.synchronize()
            times.append(1e6 * (sim.now_s - start_s) / n_steps)
    return times[0], times[1]


launch_times_us = [0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]
measured_us = {launch_us: step_times_us(1e-6 * launch_us) for launch_us in launch_times_us}
eager_us, graphed_us = measured_us[5]
print(
    f"at 5 us a launch: {eager_us:.0f} us eager, {graphed_us:.0f} us graphed, {eager_us / graphed_us:.1f} times as fast"
)
guesses.settle("speed-up by a graph of 40 short kernels", eager_us / graphed_us)

# %% tags=["figure"]
labkit.figures.launch_times(
    measured_us, pays_from_us=1e6 * pays_from_s([2e-6] * KERNELS_PER_STEP, 2e-6)
)

# %% [markdown]
# <details><summary>Check your prediction</summary>
#
# About 2.5, not 40: the device still needs 2 µs for each kernel. Where a kernel runs longer than a launch takes, the
# graph gains nothing at all, because the launches were hidden already. That is why graphs help inference at batch 1,
# small models and optimizers with thousands of small kernels, and hardly show in the training of a large model.
#
# </details>
#
# **In practice** `torch.compile(model, mode="reduce-overhead")` captures the compiled kernels in CUDA graphs and
# takes care of static inputs and outputs, and `torch.cuda.make_graphed_callables` does it for an eager module. Both
# keep the buffers of the graphs in memory, and both return outputs that the next call overwrites: clone what you want
# to keep. What a graph cannot hold is what you met above: waits (`.item()`), copies from memory that is not pinned,
# shapes that change, and Python that decides anew each time.

# %% [markdown]
# ## Record first, compile at a mark
#
# Dynamo reads Python's bytecode to get a graph. There is an older way, by which PyTorch runs on TPUs: **lazy
# tensors**, the front end of **XLA**. An operation computes nothing. It is written down, and its result is only a
# handle. At a mark, usually the end of a training step, everything on the record becomes one graph, is compiled and
# runs. The next step writes down the same operations again, so its graph is found in a cache.
#
# Such a tracer needs no guards: it sees each step anew. What it pays instead is the recording, in every step, and two
# traps. A graph is compiled for fixed shapes, so a shorter last batch is another graph. And whoever looks at a value
# in the middle of a step (`print(loss)`) forces everything recorded so far to be cut off, compiled and run.
#
# | Python | record | compiled | runs |
# |---|---|---|---|
# | `h = x @ w` | matmul | | |
# | `h = tanh(h)` | matmul, tanh | | |
# | `print(h)` | *(cut)* | matmul, tanh | 2 operations |
# | `g = x.T @ h` | transpose, matmul | | |
# | `mark_step()` | *(cut)* | transpose, matmul | 2 operations |

# %% [markdown]
# [[exercise 11-lazy-tensor]]
#
# Write `LazyDevice(compile_graph)` with four methods. A handle is whatever you like.
#
# - `tensor(value)` returns a handle for a known tensor.
# - `apply(op, *handles)` writes down an operation (`"matmul"`, `"tanh"`, ...) and returns a handle for its result.
#   Nothing is computed.
# - `mark_step()` cuts: all that is on the record becomes one graph and runs. With an empty record it does nothing.
# - `value(handle)` returns the tensor. If it is not known yet, it cuts first.
#
# To run a graph, call `run = compile_graph(shapes, operations)` once, and then `results = run(inputs)` as often as the
# same graph comes again. `inputs` is a list of tensors that were known before the cut, each once, and `shapes` are
# their shapes. `operations` has `(op, numbers)` for each operation in the order of the record: an argument is the number
# of an input (from 0), or of an operation before it, counted on behind the inputs. `results` has the result of each
# operation. Compile a graph only if its shapes or its operations are new.
#
# <details><summary>Hint 1: a nudge</summary>
#
# The second step has other handles than the first. What do the two have in common, so that a dict finds it?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# At a cut, the graph's inputs are the arguments that are not results of recorded operations. Number them in the order in
# which they are used, then the operations. In these numbers two steps look alike, and `(shapes, operations)` as tuples
# is the key.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# Keep `values` (handle → tensor), `record` (a list of `(handle, op, handles)`) and `cache`. At a cut, collect the
# handles that were used and are in `values`, each once (`dict.fromkeys`): these are the `inputs`. With
# `number = {handle: i for i, handle in enumerate([*inputs, *results])}` write the operations in numbers. Look the graph
# up, run it, store the results in `values`, and clear the record.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-lazy-tensor", "locked": false, "schema_version": 3, "solution": true, "task": false}
class LazyDevice:
    """Writes operations down, and compiles and runs them at a mark or when a value is needed."""

    def __init__(self, compile_graph) -> None:
        """compile_graph(shapes, operations): a function from the inputs to the results of all operations."""
        ### BEGIN SOLUTION
        self.compile_graph = compile_graph
        self.values: dict[int, Tensor] = {}
        self.record: list[tuple[int, str, tuple[int, ...]]] = []
        self.cache = {}
        self.n_handles = 0
        ### END SOLUTION

    def tensor(self, value: Tensor) -> int:
        """A handle for a known tensor."""
        ### BEGIN SOLUTION
        self.n_handles += 1
        self.values[self.n_handles] = value
        return self.n_handles
        ### END SOLUTION

    def apply(self, op: str, *handles: int) -> int:
        """A handle for the result of an operation, which is written down."""
        ### BEGIN SOLUTION
        self.n_handles += 1
        self.record.append((self.n_handles, op, handles))
        return self.n_handles
        ### END SOLUTION

    def mark_step(self) -> None:
        """Run what is on the record, as one graph."""
        ### BEGIN SOLUTION
        if not self.record:
            return
        own = [handle for handle, _, _ in self.record]
        used = [handle for _, _, handles in self.record for handle in handles]
        inputs = list(dict.fromkeys(handle for handle in used if handle in self.values))
        number = {handle: i for i, handle in enumerate([*inputs, *own])}
        operations = tuple(
            (op, tuple(number[one] for one in handles)) for _, op, handles in self.record
        )
        key = tuple(tuple(self.values[one].shape) for one in inputs), operations
        if key not in self.cache:
            self.cache[key] = self.compile_graph(*key)
        results = self.cache[key]([self.values[one] for one in inputs])
        self.values.update(zip(own, results))
        self.record.clear()
        ### END SOLUTION

    def value(self, handle: int) -> Tensor:
        """The tensor behind a handle; cuts if it is not known yet."""
        ### BEGIN SOLUTION
        if handle not in self.values:
            self.mark_step()
        return self.values[handle]
        ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-lazy-tensor-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("11-lazy-tensor", LazyDevice)

# %% [markdown]
# Here are four loops of twelve steps on your device.

# %%
LOOPS = {
    "plain": LazyLoop(12),
    "short last batch": LazyLoop(12, last_rows=2),
    "print in every step": LazyLoop(12, print_every=1),
    "print in every 4th step": LazyLoop(12, print_every=4),
}
for name, loop in LOOPS.items():
    values = lazy_inputs(loop, torch.Generator().manual_seed(0))["values"]
    _, counts = play(LazyDevice, loop.program(), values)
    n_compiled, n_runs = len(counts.compiled), len(counts.runs)
    print(
        f"{name:24}: graphs launched {n_runs:2}, found in the cache {n_runs - n_compiled:2}, compiled {n_compiled}"
    )

# %% [markdown]
# The print in every step does not compile much more, but it cuts every step in two: nothing is fused across the cut,
# and the device waits for Python twice a step. A print in every fourth step is the worst
# for the compiler: it meets the whole step and both halves.
#
# **In practice**, `torch_xla.sync()` is the mark (`xm.mark_step()` in older code, and its data loader calls it for
# you), and `torch_xla.debug.metrics` counts what you just counted. XLA itself stands behind JAX as well, where
# `jax.jit` traces a function once for each combination of shapes. PyTorch's own answer is Dynamo, whose guards let a
# compiled graph run without recording again.

# %% [markdown]
# ## What tracing and scripting lose
#
# Before Dynamo, PyTorch had two ways to a graph, and you still meet both. `torch.jit.trace` runs a function once, with an
# example, and writes down the operations. `torch.jit.script` reads the function's source and translates a part of Python.
# Both are deprecated. Widely copied slides say of them that tracing works "during training", and that scripting gives
# "static guarantees". XLA, which compiles the graphs of JAX and of PyTorch on TPUs, gets its graphs by tracing as well.
#
# | | what decides which operations are in the graph | if it does not hold later |
# |---|---|---|
# | `torch.jit.trace` | the example | nothing is noticed: **the result is wrong** |
# | `torch.jit.script` | the source, with types but no shapes | an error while it runs |
# | `torch.compile` | this call, with guards | compiles again, or runs eagerly |
# | `torch.export` | the example, with guards and without Python | an error before it runs |
#
# `torch.export` gives one graph that runs without Python, so there is nothing to fall back to. An `if` on values must be
# said as an operation: `torch.cond(predicate, if_true, if_false, operands)` keeps both ways in the graph.

# %% [markdown]
# [[exercise 11-trace-or-script]]
#
# A claim is refuted by one example. Write three of them and an export that does it right.
#
# - `branch_lost()` returns a function and two inputs of the same shape. The function's trace on the first is right there and
#   wrong on the second.
# - `mode_lost()` returns a module and an input. Traced in training mode and then switched to eval mode, it gives another
#   result than the module in eval mode.
# - `fails_late()` returns a function and two tuples of tensors. `torch.jit.script` accepts the function, it is right for the
#   first tuple, and it raises for the second one.
# - `export_gate(gate, example)` exports a `lab11.Gate`, whose `forward` is `up(x)` if the sum of x is positive and `down(x)`
#   if not. The program has both ways, by `torch.cond`, and takes any number of rows from 2 on.
#
# <details><summary>Hint 1: a nudge</summary>
#
# What does Python decide, and only once, while a trace is written? For the third: what does the annotation `Tensor` not say?
#
# </details>
#
# <details><summary>Hint 2: the idea</summary>
#
# An `if x.sum() > 0`; dropout; a product of matrices whose shapes do not fit. For the export, a module of your own has a
# `forward` with `torch.cond` in it, and `dynamic_shapes` names the axis that may change.
#
# </details>
#
# <details><summary>Hint 3: nearly the answer</summary>
#
# `torch.cond(x.sum() > 0, gate.up, gate.down, (x,))`, in a module that has the gate as an attribute. Then
# `torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("rows")},))`.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "11-trace-or-script", "locked": false, "schema_version": 3, "solution": true, "task": false}
def branch_lost() -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor]:
    """(function, example, other): its trace on `example` is right there and wrong on `other`, of the same shape."""
    ### BEGIN SOLUTION
    return lambda x: x * 2 if x.sum() > 0 else x * 3, torch.ones(3), -torch.ones(3)
    ### END SOLUTION


def mode_lost() -> tuple[nn.Module, Tensor]:
    """(module, x): traced in training mode and then switched to eval, it gives another result than the module in eval."""
    ### BEGIN SOLUTION
    return nn.Dropout(0.5), torch.ones(100)
    ### END SOLUTION


def fails_late() -> tuple[Callable[..., Tensor], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """(function, good, bad): scripts without a complaint, is right for `good`, and raises for `bad`."""

    ### BEGIN SOLUTION
    def product(a: Tensor, b: Tensor) -> Tensor:
        return a @ b

    return product, (torch.ones(2, 3), torch.ones(3, 2)), (torch.ones(2, 3), torch.ones(2, 3))
    ### END SOLUTION


def export_gate(gate: lab11.Gate, example: Tensor) -> torch.export.ExportedProgram:
    """The gate as an exported program that keeps both ways and takes any number of rows."""

    ### BEGIN SOLUTION
    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = gate

        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, self.gate.up, self.gate.down, (x,))

    rows = torch.export.Dim("rows")
    return torch.export.export(Kept(), (example,), dynamic_shapes=({0: rows},))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "11-trace-or-script-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
check("11-trace-or-script", branch_lost, mode_lost, fails_late, export_gate)

# %%
torch._dynamo.reset()
print(export_gate(lab11.Gate(4), torch.ones(3, 4)).graph_module.code)

# %% [markdown]
# Both layers are in the program, as functions that `cond` calls, and the number of rows appears nowhere.
#
# **In practice** export is for deployment: `torch.export.save` writes the program to a file, and AOTInductor makes a library of
# it that needs no Python. For training, use `torch.compile`, and `torch.cond` only where computing both ways and
# `torch.where` is too expensive.

# %% [markdown]
# ## What to take away
#
# What you measured, before and after your change. A row that needs an answer you have not written is left out.

# %%
summary = labkit.each_written(
    {
        "graphs of a call of BrokenModel": lambda: (len(broken.graphs), len(one_graph.graphs)),
        "operations in graphs": lambda: (broken.operations, one_graph.operations),
        "calls of 20 that run compiled": lambda: (
            storm_of_20.calls.count("compiled"),
            steady.calls.count("compiled"),
        ),
        "kernels of z = h(f(x), g(y)), compiled": lambda: (
            len(chain_compiled.kernels),
            len(fused_compiled.kernels),
        ),
        "bytes of z = h(f(x), g(y)), x the ideal": lambda: (
            f"{chain_compiled.kernel_bytes / ideal_bytes:.1f}",
            f"{fused_compiled.kernel_bytes / ideal_bytes:.1f}",
        ),
        "kept by four MLPs (eager, compiled)": lambda: (
            in_bytes(eager_bytes),
            in_bytes(kept_at_budget[1.0]),
        ),
    }
)
for name, (before, after) in {"": ("before", "yours"), **summary}.items():
    print(f"{name:40} {before!s:>9} {after!s:>9}")

# %% [markdown]
# A compiled function is a contract. The guards say what will not change, and the graph is fast as long as you keep it:
# **performance comes from keeping the contract**. A break says that a line needs more than the contract gives. A
# recompilation says that something has changed which you had promised to keep, and past the limit the compiler stops
# asking. None of it changes a result, so no test notices. Count it.
#
# Could you do better by hand? Here is z = h(f(x), g(y)) once more, four times: `chain` in eager mode, your `fused`
# compiled, and two kernels that were written for it, one in CUDA C++ (the language of lab 10) and one in Triton (that of
# lab 12). Both are in `labkit/material/lab11_four_ways.py`, if you want to read them.

# %%
print(four_ways(chain, fused))

# %% [markdown]
# (The table has an x and a y of its own, so in its first row the mask selects a few more or fewer elements than above.)
# The last three run one kernel and move what has to be moved. The kernels by hand read `scale` once for each of their three
# blocks, which is all that they lose, and a cache would give it back. **For a chain like this one there is nothing left to
# win by hand**: the compiled version took one line. Where writing a kernel pays is the subject of lab 12.
#
# And here are your predictions beside what you measured:

# %%
guesses.score()

# %%
progress("11", globals())

# %% [markdown]
# This cell adds what you measured to your feature table, which collects one row from every lab. It is never graded.

# %% tags=["figure"]
labkit.feature_row(
    "11",
    "one compiled graph",
    speed=lambda: (
        f"{steady.calls.count('compiled')} of {len(steady.calls)} calls run compiled, "
        f"{storm_of_20.calls.count('compiled')} before"
    ),
    memory=lambda: f"{kept_at_budget[1.0] / eager_bytes:.0%} of what eager mode keeps",
)

# %% [markdown]
# ## Open questions
#
# There are two questions, worth 2 and 3 points. A person reads your answers, so no check responds at once, and
# `progress` does not count them. Write a few sentences for each; numbers count more than words.
#
# **A.** (2 points) A size of 1 is always compiled for itself. Write a line of PyTorch for tensors of shapes (n, 4) and
# (m, 4) that runs for m = n and for m = 1. A graph compiled for m = n would expect a result of shape (m, 4), which is
# wrong at m = 1. What would a compiler have to do in each call to serve both with one graph?

# %% [markdown] nbgrader={"grade": true, "grade_id": "11-open-one", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# `a + b` (or `a * b`, `torch.where`): for n = m each row meets its own, for m = 1 the one row of b meets all rows of a. The
# graph for n = m reads row i of b, which does not exist for m = 1 and n > 1; with m = 1 first, a graph that broadcasts would
# be wrong for m = n. Serving both takes a decision in each call: a branch on m, or strides that are data (stride 0 for a
# broadcast axis), so that no loop over this axis can be vectorized or fused under the assumption of contiguous rows.
#
# Marks: 1 for a line that broadcasts, with both results. 1 for a decision while the graph runs (branch, or stride as data) and
# what it costs.
# ### END SOLUTION

# %% [markdown]
# **B.** (3 points) A colleague has put `torch.compile` around a model, and a training of 3,000 steps takes as long as
# before. Which four counts do you take, in which order, and which result of each would explain it?

# %% [markdown] nbgrader={"grade": true, "grade_id": "11-open-no-faster", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# In the order in which a cause hides the next ones:
# 1. Calls that run eagerly, and why guards fail (TORCH_LOGS=recompiles, track_compile): an int attribute or many strings use
#    up the 8 versions, and the rest is eager. Also: a dispatch mode or a lost frame, so that nothing was ever compiled.
# 2. Graph breaks and operations in graphs: many small graphs, or a loop that is lost as a whole, leave Python in between.
# 3. Kernels and bytes against the ideal: the time is in matrix products and fused attention, library calls that compiling
#    does not change, or little elementwise work is left.
# 4. Compile time against what is won: versions times seconds, restarts, cache on disk; 3,000 steps may lie before the
#    break-even point.
#
# Marks: 1/2 for each count with the result that would explain it, 1 for an order with a reason (an eager call makes the other
# counts meaningless).
# ### END SOLUTION

# %% [markdown]
# ## Where to read on
#
# - PyTorch's documentation of `torch.compiler`: *Troubleshooting* for breaks and recompilations, *Dynamo overview* for
#   how bytecode becomes a graph.
# - Jason Ansel and others, *PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph
#   Compilation* (ASPLOS 2024). Dynamo and inductor, with what they gain on 180 models.
# - Horace He and Shangdi Yu, *Transcending Runtime-Memory Tradeoffs in Checkpointing by being Fusion Aware* (MLSys 2023).
#   The partitioner that decides what is kept.
# - Alex Suhan and others, *LazyTensor: combining eager execution with domain-specific compilers* (2021).
#
# ## Sources
#
# The texts above, and PyTorch's documentation of `torch.compile`, `torch.fx`, `torch.library`, `torch.export` and
# `torch.jit`. That tracing works during training and that scripting gives static guarantees is said on slides of courses on
# efficient training.
