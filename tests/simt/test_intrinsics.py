"""Every function of CUDA's mathematics, integers and headers for halves becomes instructions that are executed.

That their values are right is tested elsewhere, for some of each kind; here, that none is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from labkit.simt import compile_cuda, nvrtc
from tests.simt.harness import require_nvrtc

pytestmark = pytest.mark.full("kernels")
A_TIME = 40
"""Functions of one source: each a kernel of its own."""

SIMD = "vadd vaddss vaddus vavgs vavgu vcmpeq vcmpges vcmpgeu vcmpgts vcmpgtu vcmples vcmpleu vcmplts vcmpltu vcmpne "
SIMD += "vabsdiffs vabsdiffu vhaddu vmaxs vmaxu vmins vminu vsads vsadu vseteq vsetgts vsetltu vsub vsubss vsubus"
FLOAT = (
    "acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf cospif erfcf erfcinvf erfcxf erff erfinvf exp10f "
)
FLOAT += (
    "exp2f expf expm1f fabsf floorf j0f j1f lgammaf log10f log1pf log2f logbf logf normcdff normcdfinvf rcbrtf rintf "
)
FLOAT += (
    "roundf rsqrtf sinf sinhf sinpif sqrtf tanf tanhf tgammaf truncf y0f y1f cyl_bessel_i0f __cosf __exp10f __expf "
)
FLOAT += (
    "__log10f __log2f __logf __sinf __tanf __saturatef __frcp_rd __frcp_ru __frcp_rz __fsqrt_rd __fsqrt_ru __frsqrt_rn"
)
DOUBLE = "acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi erfc erfcinv erf erfinv exp10 exp2 exp expm1 fabs "
DOUBLE += (
    "floor j0 lgamma log10 log1p log2 logb log normcdf normcdfinv rcbrt rint round rsqrt sin sinh sinpi sqrt tan tanh "
)
DOUBLE += "tgamma trunc __drcp_rn __drcp_rd __drcp_ru __drcp_rz __dsqrt_rn __dsqrt_rd __dsqrt_ru __dsqrt_rz"
TWO_FLOATS = "atan2f copysignf fdimf fdividef fmaxf fminf fmodf hypotf nextafterf powf remainderf rhypotf __fdividef "
TWO_FLOATS += "__powf __fadd_rd __fsub_rz __fmul_ru __fdiv_rd __fdiv_ru __fdiv_rz"
TWO_DOUBLES = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder rhypot __dadd_rd __dsub_ru __dmul_rz "
TWO_DOUBLES += "__ddiv_rn __ddiv_rd __ddiv_ru __ddiv_rz"

Function = tuple[str, str, tuple[str, ...]]
"""Type of the result, name, types of the arguments."""


def functions(result: str, names: str, *types: str) -> list[Function]:
    return [(result, name, types) for name in names.split()]


def of_words(n: int, names: str) -> list[Function]:
    return functions("unsigned", names, *["unsigned"] * n)


INTEGERS = [
    *of_words(2, " ".join(f"__{name}{width}" for name in SIMD.split() for width in (2, 4))),
    *of_words(1, "__vabs2 __vabs4 __vabsss4 __vneg2 __vneg4 __vnegss4 __brev __popc"),
    *of_words(2, "__uhadd __umul24 __umulhi __urhadd umin umax"),
    *of_words(3, "__byte_perm __funnelshift_lc __funnelshift_rc __usad __dp4a __vimax3_u16x2 __viaddmin_u16x2"),
    *functions("int", "__clz __ffs abs", "int"),
    *functions("int", "__hadd __mul24 __mulhi __rhadd min max __vimax_s32_relu", "int", "int"),
    *functions("int", "__sad __dp2a_lo __dp2a_hi __viaddmax_s32 __vimax3_s32 __viaddmin_s32_relu", "int", "int", "int"),
    *functions("long long", "__brevll llabs", "long long"),
    *functions("long long", "__mul64hi llmin llmax", "long long", "long long"),
]
FLOATS = [
    *functions("float", FLOAT, "float"),
    *functions("float", TWO_FLOATS, "float", "float"),
    *functions("float", "fmaf norm3df __fmaf_rd __fmaf_ru __fmaf_rz", "float", "float", "float"),
    *functions("float", "ldexpf scalbnf", "float", "int"),
    *functions("long long", "llrintf llroundf __float2ll_ru ilogbf isnan isinf __float_as_int", "float"),
]
DOUBLES = [
    *functions("double", DOUBLE, "double"),
    *functions("double", TWO_DOUBLES, "double", "double"),
    *functions("double", "fma norm3d __fma_rd __fma_ru __fma_rz", "double", "double", "double"),
    *functions("float", "__double2float_rn __double2float_rd __double2float_ru __double2float_rz", "double"),
    *functions("double", "__ll2double_rn __ll2double_rd __ll2double_ru __ll2double_rz", "long long"),
    *functions("double", "__hiloint2double", "int", "int"),
]


def in_header(name: str) -> list[Function]:
    """What a header of halves declares, but for pointers and shuffles."""
    text = (nvrtc.header_folders()[0] / name).read_text(encoding="utf-8")
    declared = re.findall(r"_DECL__\s+([\w ]+?)\s+(\w+)\s*\(([^)*]*)\)\s*;", text)
    found = set()
    for result, function, arguments in declared:
        types = [re.sub(r"\b(const|volatile)\b", "", one).split() for one in arguments.split(",")]
        if result != "void" and "shfl" not in function:
            found.add((result, function, tuple(" ".join(one[:-1]) for one in types if len(one) > 1)))
    return sorted(found)


def compile_all(chosen: Sequence[Function], header: str = "") -> None:
    for first in range(0, len(chosen), A_TIME):
        kernels = [_kernel(number, one) for number, one in enumerate(chosen[first : first + A_TIME])]
        compile_cuda(header + "".join(kernels))


def _kernel(number: int, one: Function) -> str:
    result, name, types = one
    parameters = ", ".join([*(f"const {kind}* a{i}" for i, kind in enumerate(types)), f"{result}* y"])
    given = ", ".join(f"a{i}[threadIdx.x]" for i in range(len(types)))
    return f"__global__ void k{number}({parameters}) {{ y[threadIdx.x] = {name}({given}); }}\n"


@pytest.mark.parametrize("chosen", [INTEGERS, FLOATS, DOUBLES], ids=["integers", "floats", "doubles"])
def test_every_function_of_numbers(chosen: Sequence[Function]) -> None:
    require_nvrtc()
    compile_all(chosen)


@pytest.mark.parametrize("name", ["cuda_fp16.h", "cuda_bf16.h"])
def test_every_function_of_halves(name: str) -> None:
    require_nvrtc()
    chosen = in_header(name)
    assert len(chosen) > 150
    compile_all(chosen, f"#include <{name}>\n")
