"""What a script may use: forms of Python, and names one by one. Whatever is not listed is refused.

The script's operations are counted in its own process, so it must be unable to reach the counter. It gets no module,
no attribute that begins with an underscore, and no function that could find one. These are lists alone; `script` reads
the text.
"""

from __future__ import annotations

import ast
import inspect
import types

import torch
from torch import nn
from torch.nn import functional as F

BUILTINS = (
    *("abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "len", "list", "max", "min", "pow"),
    *("print", "range", "reversed", "round", "set", "sorted", "str", "sum", "super", "tuple", "zip", "isinstance"),
    *("staticmethod", "property", "ValueError", "NotImplementedError"),
)

_DTYPES = "float32 float16 bfloat16 uint8 int8 int16 int32 int64 long bool"
_TORCH = f"""
{_DTYPES}
abs add addcdiv addcmul addmm amax amin arange argmax baddbmm bitwise_and bmm bucketize cat clamp cos cumsum div
empty empty_like enable_grad eq exp full full_like gather ge gt inf is_grad_enabled isfinite le lerp linspace log
log2 logsumexp lt matmul max maximum mean min minimum mm mul ne no_grad norm ones ones_like outer rand rand_like
randint randn rsqrt searchsorted sigmoid sign sin softmax split sqrt square stack sub sum tanh tensor tril triu where
zeros zeros_like
"""
_FUNCTIONAL = """
cross_entropy dropout embedding gelu layer_norm linear log_softmax nll_loss one_hot relu rms_norm
scaled_dot_product_attention silu softmax
"""
_NN = "Parameter Module ModuleList Linear Embedding"
_MATH = "ceil cos exp floor inf log log2 pi prod sin sqrt"

_TENSOR = """
T abs abs_ add add_ addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ all amax amin any argmax backward baddbmm bfloat16
bmm bool chunk clamp clamp_ clamp_max_ clamp_min clamp_min_ clone contiguous copy_ cos cumsum data dequantize detach
detach_ dim div div_ dtype eq exp exp_ expand fill_ flatten float ge gelu grad gt half index_select int isfinite item
is_contiguous itemsize lerp lerp_ log log_ long lt masked_fill masked_fill_ matmul max mean min mm mT mul mul_ ndim
neg neg_ norm numel permute pow pow_ random_ reciprocal reciprocal_ register_hook relu requires_grad requires_grad_
reshape round round_ rsqrt rsqrt_ select shape sigmoid sign size softmax split sqrt sqrt_ square squeeze sub sub_ sum
t tanh to transpose tril triu type_as unbind unsqueeze view view_as where zero_ uniform_ normal_ element_size
register_post_accumulate_grad_hook bitwise_and bitwise_or bitwise_left_shift bitwise_right_shift
"""
_OBJECTS = """
append apply astuple blocks eval extend forward get half index insert items keys load_state_dict lr modules
named_parameters param_groups parameters pop save_for_backward saved_tensors scale set_to_none setdefault state step
train update values weight zero_grad mark_non_differentiable
"""
_RUN = "all_gather all_reduce model rank reduce_scatter to_device to_host tokens world_size"
_MODEL = "attend attention blocks down embed head n_heads norm norm1 norm2 out positions qkv tokens up"

ATTRIBUTES = frozenset(" ".join((_TENSOR, _OBJECTS, _RUN, _MODEL)).split())
"""Of values: tensors, modules, optimizers, lists and dicts, the run, the model. What a script defines comes on top."""

BASES = ("nn.Module", "torch.nn.Module", "torch.autograd.Function")
"""What a class of a script can inherit from, beside other classes of its own."""

MAY_BE_SET = ("data", "grad", "norm", "requires_grad")
"""Of what a tensor has. No other name of a tensor's can be set, because its bytes are counted by asking it."""

IMPORTS = {
    "import torch",
    "import math",
    "from torch import nn",
    "import torch.nn as nn",
    "import torch.nn.functional as F",
    "from torch.nn import functional as F",
    "from labkit.capstone import kit",
}
"""Lines that say what is there in any case."""

REFUSED = (
    *(ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith),
    *(ast.Await, ast.Yield, ast.YieldFrom, ast.Try, ast.TryStar, ast.Match, ast.Delete),
)
"""Forms of Python that a script has no use for. `try` could hide what the engine has to say."""


class Names:
    """A few names of a module, to be read and not to be set. Shown, it lists them with what each is for."""

    def __init__(self, title: str, **names: object) -> None:
        object.__setattr__(self, "_title", title)
        for name, value in names.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self._title}.{name} cannot be set")

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"{self._title}.{name} is not among what a script may use")

    def __repr__(self) -> str:
        return "\n".join(_in_a_line(self._title, name, value) for name, value in vars(self).items() if name[0] != "_")


def _in_a_line(title: str, name: str, value: object) -> str:
    """`kit.loss(logits, y)`, and the first line of what it says of itself."""
    try:
        # Plain, without types: `lr`, not `lr: 'float'`.
        called = [_plain(one) for one in inspect.signature(value).parameters.values()]
    except (TypeError, ValueError):
        return f"{title}.{name}"
    doc = inspect.getdoc(value) or ""
    return f"{title}.{name}({', '.join(called)})" + (f"\n    {doc.splitlines()[0]}" if doc else "")


def _plain(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={parameter.default}"
    return f"{stars}{parameter.name}{default}"


def _of(module: types.ModuleType, names: str) -> dict[str, object]:
    return {name: getattr(module, name) for name in names.split() if hasattr(module, name)}


def namespace(kit: Names) -> dict[str, object]:
    """The names that a script finds."""
    functional = Names("F", **_of(F, _FUNCTIONAL))
    layers = Names("nn", functional=functional, **_of(nn, _NN))
    optimizers = Names("torch.optim", **_of(torch.optim, "SGD AdamW Adafactor Muon"))
    automatic = Names("torch.autograd", Function=torch.autograd.Function, grad=torch.autograd.grad)
    tensors = Names("torch", nn=layers, optim=optimizers, autograd=automatic, **_of(torch, _TORCH))
    import math

    given = {"torch": tensors, "nn": layers, "F": functional, "kit": kit, "math": Names("math", **_of(math, _MATH))}
    import builtins

    return {**given, "__builtins__": {name: getattr(builtins, name) for name in BUILTINS}}


def of_namespaces(kit: Names) -> frozenset[str]:
    """Every name that one of these has, for a reader of text that does not know which it is."""
    found: set[str] = set()

    def look(names: Names) -> None:
        for name, value in vars(names).items():
            found.add(name)
            if isinstance(value, Names):
                look(value)

    for value in namespace(kit).values():
        if isinstance(value, Names):
            look(value)
    return frozenset(name for name in found if not name.startswith("_"))
