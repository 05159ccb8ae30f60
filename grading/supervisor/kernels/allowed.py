"""What a kernel's text may hold so that it may be run again: Triton's language, and nothing that could leave it.

In Triton's interpreter a kernel's body is Python, run by Python. So names, attributes and forms of syntax are allowed
one by one, and whatever is not listed is refused. These are lists alone; `extract` reads the text.
"""

from __future__ import annotations

import ast

MODULES = frozenset(
    {"math", "triton", "triton.language", "triton.language.math", "triton.language.extra"}
    | {f"triton.language.extra.{name}" for name in ("libdevice", "cuda", "cuda.libdevice")}
)
"""Modules that a kernel may look into."""

_LANGUAGE = """
abs add arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min
atomic_or atomic_store atomic_xchg atomic_xor bfloat16 broadcast broadcast_to cast cat cdiv ceil clamp const constexpr
cos cumprod cumsum debug_barrier div_rn dot dot_scaled erf exp exp2 expand_dims fdiv flip float16 float32 float64
float8e4b15 float8e4b8 float8e4nv float8e5 float8e5b16 floor fma full gather histogram int1 int16 int32 int64 int8
interleave join load load_tensor_descriptor log log2 make_block_ptr advance make_tensor_descriptor max max_constancy
max_contiguous maximum min minimum mul multiple_of num_programs permute philox pointer_type program_id rand rand4x
randint randint4x randn randn4x range ravel reduce reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn squeeze
static_assert static_range store store_tensor_descriptor sub sum swizzle2d topk trans tuple uint16 uint32 uint64 uint8
uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros zeros_like
"""
_LIBDEVICE = """
abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 fabs floor fma
fmod hypot isinf isinfd isnan isnand ffs fdiv finitef isfinited lgamma llrint log log10 log1p log2 nearbyint pow rint
rsqrt sin sinh sqrt tan tanh tgamma trunc div_rn div_rz div_rd div_ru mulhi normcdf normcdfinv rcp64h saturatef sinpi
cospi exp10 fast_expf fast_logf fast_powf fast_sinf fast_cosf fast_tanf fast_dividef fast_exp10f fast_log2f fast_log10f
"""
_LANGUAGE_MATH = "abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi"
_MATH = "pi e tau inf nan sqrt log log2 log10 exp exp2 pow ceil floor cdiv prod isqrt gcd"
OF_MODULE = {
    "math": frozenset(_MATH.split()),
    "triton": frozenset({"language", "cdiv", "next_power_of_2"}),
    "triton.language": frozenset({*_LANGUAGE.split(), "math", "extra"}),
    "triton.language.math": frozenset(_LANGUAGE_MATH.split()),
    "triton.language.extra": frozenset({"libdevice", "cuda"}),
    "triton.language.extra.cuda": frozenset({"libdevice"}),
    "triton.language.extra.libdevice": frozenset(_LIBDEVICE.split()),
    "triton.language.extra.cuda.libdevice": frozenset(_LIBDEVICE.split()),
}
"""What may be named of each module."""

_METHODS = """
T abs advance argmax argmin associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or
atomic_xchg atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype element_ty erf exp exp2 expand_dims flip
floor gather histogram is_bf16 is_block is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int is_ptr load log log2
logical_and logical_or max min numel permute primitive_bitwidth ravel reduce reshape rsqrt scalar shape sigmoid sin
softmax sort split sqrt sqrt_rn store sum to trans type value view xor_sum
"""
METHODS = frozenset(_METHODS.split())
"""Attributes of values: what Triton's tensors, types and constants have, less what leads to Python's own objects."""

BUILTINS = frozenset({"range", "min", "max", "abs", "int", "float", "bool", "len"})

PRINTS = frozenset({"print", "triton.language.device_print", "triton.language.static_print"})
CHECKS = frozenset({"triton.language.device_assert", "triton.language.static_assert"})
"""Calls that are left out, because nothing hangs on them."""
MAX_POWER = 64
"""Base and exponent of a power in a constant, at the most: 9**9**9 would take for ever."""

HANDED = frozenset({"_semantic", "_builder", "_generator", "member"})
"""Arguments that the interpreter itself hands to Triton's functions."""

LOOPS = frozenset({"range", "triton.language.range", "triton.language.static_range"})
"""What a `for` may go over."""

STATEMENTS = (
    *(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.While),
    *(ast.Pass, ast.Return, ast.Break, ast.Continue),
)
EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Call, ast.Attribute),
    *(ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.keyword),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop),
)
"""The forms of syntax in a kernel's body: no definitions, no imports, no comprehensions, no texts with fields."""
CONSTANTS = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute, ast.Tuple, ast.List),
    *(ast.expr_context, ast.operator, ast.unaryop, ast.keyword),
)
"""The same for the value of a constant."""
