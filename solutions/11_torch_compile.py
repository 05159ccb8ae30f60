# %% [markdown]
# # Lab 11: torch.compile
#
# Put `@torch.compile` over the forward method of a layer, make 24 layers that differ in one integer, and call each of
# them three times. **Of the 72 calls only 24 run compiled. The other 48 run as if you had written nothing**, and all
# you get is one warning in a log. How would you notice, and what would you change?
#
# `torch.compile` can make a model faster and smaller at the same time, with one line. It does so on a condition: what
# it has seen once must not change. In this lab you look at what it does, by counting instead of timing. You write a
# backend, which gets the graphs that it captures. You put a model with five obstacles into one graph, and you stop a
# storm of recompilations. At the end you know which of your habits cost you the graph, and how you find out.
#
# [[time]]
#
# You should know PyTorch's modules and tensors, and need no earlier lab. Everything is counted on the CPU; no C++
# compiler and no GPU is needed, and no number depends on your machine.

# %% nbgrader={"grade": false, "grade_id": "11-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import labkit.figures
from labkit import Predictions, check, progress, track_compile
from labkit.material import lab11
from labkit.material.lab11_bytes import eager_kernels, loop_of
from labkit.units import in_bytes

guesses = Predictions("11")
labkit.leave_out_blanks()  # a cell that needs an answer you have not written yet says so

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
torch.compiler.reset()
with torch.no_grad(), track_compile(source=True) as fused_compiled:
    torch.compile(fused)(x, y, scale)
for name, kernels in {
    "chain, eager": eager_kernels(chain, x, y, scale),
    "fused, eager": eager_kernels(fused, x, y, scale),
    "chain, compiled": chain_compiled.kernels,
    "fused, compiled": fused_compiled.kernels,
}.items():
    moved_bytes = sum(kernel.total_bytes for kernel in kernels)
    print(
        f"{name:15}: {len(kernels):2} kernels, {in_bytes(moved_bytes):>9}, {moved_bytes / ideal_bytes:.1f} x the ideal"
    )

# %% tags=["figure"]
labkit.figures.fused_bytes(
    {
        "eager": eager_kernels(fused, x, y, scale),
        "chain, compiled": chain_compiled.kernels,
        "fused, compiled": fused_compiled.kernels,
    },
    ideal_bytes,
    eager=["eager"],
)

# %% [markdown]
# Your function in eager mode already moves less than the compiled chain, and compiled it reaches the ideal. And here
# is the loop that inductor wrote for it, as it would be handed to the C++ compiler. On a GPU it writes a Triton kernel
# instead, with the same plan.

# %%
print(loop_of(fused_compiled.codes[0].source))

# %% [markdown]
# **In practice**, set `TORCH_LOGS="fusion,output_code"` to read what was fused and what was generated, and
# `TORCH_LOGS="graph_breaks"` to see where a graph ended. Three things stay apart in every model: calls into a library
# (matrix products, convolutions, sorts, your own operators), whatever `cat` and `stack` have to store, and what lies
# on two sides of a graph break. In lab 12 you write such kernels yourself, in Triton, and count their bytes the same
# way.

# %% [markdown]
# ## What to take away
#
# A compiled function is a contract: the guards say what will not change, and the graph is fast as long as you keep it.
# Performance comes from keeping it.
#
# And here are your predictions beside what you measured:

# %%
guesses.score()

# %%
progress("11", globals())

# %% [markdown]
# ## Where to read on
#
# - PyTorch's documentation of `torch.compiler`: *Troubleshooting* for breaks and recompilations, *Dynamo overview* for
#   how bytecode becomes a graph.
# - Jason Ansel and others, *PyTorch 2: Faster Machine Learning Through Dynamic Python Bytecode Transformation and Graph
#   Compilation* (ASPLOS 2024). Dynamo and inductor, with what they gain on 180 models.
#
# ## Sources
#
# The texts above, and PyTorch's documentation of `torch.compile` and of `torch.fx`.
