"""The parameters of a kernel as its C++ source writes them: names for messages, types to check tensors against.

It reads text, not C++: a kernel whose head it does not find simply has no names ("argument 1").
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

_POINTED: dict[str, tuple[torch.dtype, ...]] = {
    "float": (torch.float32,),
    "float2": (torch.float32,),
    "float3": (torch.float32,),
    "float4": (torch.float32,),
    "double": (torch.float64,),
    "double2": (torch.float64,),
    "int": (torch.int32, torch.uint32),
    "int2": (torch.int32,),
    "int4": (torch.int32,),
    "int32_t": (torch.int32,),
    "unsigned": (torch.uint32, torch.int32),
    "unsigned int": (torch.uint32, torch.int32),
    "uint32_t": (torch.uint32, torch.int32),
    "long long": (torch.int64, torch.uint64),
    "long long int": (torch.int64,),
    "int64_t": (torch.int64,),
    "uint64_t": (torch.uint64, torch.int64),
    "uint": (torch.uint32, torch.int32),
    "int16_t": (torch.int16,),
    "uint16_t": (torch.uint16, torch.int16),
    "int8_t": (torch.int8,),
    "unsigned long long": (torch.uint64, torch.int64),
    "unsigned long long int": (torch.uint64, torch.int64),
    "short": (torch.int16, torch.uint16),
    "unsigned short": (torch.uint16, torch.int16),
    "char": (torch.int8, torch.uint8),
    "signed char": (torch.int8,),
    "unsigned char": (torch.uint8, torch.bool),
    "uint8_t": (torch.uint8,),
    "bool": (torch.bool, torch.uint8),
    "half": (torch.float16,),
    "__half": (torch.float16,),
    "half2": (torch.float16,),
    "__half2": (torch.float16,),
    "__nv_bfloat16": (torch.bfloat16,),
    "__nv_bfloat162": (torch.bfloat16,),
    "nv_bfloat16": (torch.bfloat16,),
}


@dataclass(frozen=True)
class CParameter:
    """One parameter: `const float* x` has name "x", type "float", pointer True."""

    name: str
    type: str
    pointer: bool

    def takes(self, dtype: torch.dtype) -> bool:
        """Whether a tensor of this dtype may be passed; a type that is not known takes any."""
        return dtype in _POINTED.get(self.type, (dtype,))


def parameters(source: str, kernel: str) -> list[CParameter]:
    """The parameters of a kernel; [] where its head is not found."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", source, flags=re.DOTALL)
    found = re.search(rf"__global__[^;{{}}]*?\b{re.escape(kernel)}\s*\(([^{{;]*)\)\s*\{{", text)
    if not found or not found[1].strip():
        return []
    return [_parameter(one) for one in found[1].split(",")]


def _parameter(text: str) -> CParameter:
    words = re.findall(r"[A-Za-z_][\w:]*|\*|&|\[", text.split("=")[0])
    pointer = "*" in words or "[" in words
    named = [word for word in words if word not in ("*", "&", "[")]
    plain = [
        word
        for word in named[:-1]
        if word not in ("const", "volatile", "__restrict__", "restrict", "__grid_constant__")
    ]
    return CParameter(named[-1] if named else "", " ".join(plain), pointer)


def plain_name(mangled: str) -> str:
    """The name of a function or variable as the source writes it: "_Z9transposePKfPf" -> "transpose"."""
    inner = re.search(r"E(\d+)([A-Za-z_]\w*)$", mangled)
    if mangled.startswith("_ZZ") and inner:
        return inner[2][: int(inner[1])]
    nested = re.match(r"_ZN(?:\d+\w*?)?E", mangled)
    found = re.match(r"_Z(?:L|N)?(\d+)(\w+)", mangled)
    if not found or nested:
        return mangled
    return found[2][: int(found[1])]
