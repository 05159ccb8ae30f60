"""Cubins: machine code for one chip, made by NVRTC, and the resources that a kernel of it takes.

What the assembler decided stands in the file itself, an ELF file whose section `.nv.info` lists attributes of each
kernel; it is read here without NVIDIA's tools, and on every system. The instructions in words need Triton's tools
(`labkit.meters.compiled.sass`). Nothing is executed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from labkit.simt.compiler_process import CompilerStopped, compile_apart
from labkit.simt.compiling import FILE, compiler_options
from labkit.simt.diagnostics import CudaCompileError, Diagnostic, errors, parse_log
from labkit.simt.explained import explained
from labkit.simt.prelude import MEMORY_HEADERS
from labkit.simt.signature import plain_name
from labkit.simt.sources import check_source

FRAME_SIZE, REGISTERS = 0x11, 0x2F
"""EIATTR_FRAME_SIZE and EIATTR_REGCOUNT, as `cuobjdump -elf` names them."""
SIZED = 0x04
"""EIFMT_SVAL: what follows the attribute is its size, and then so many bytes."""
SYMBOL_TABLE = 2
"""SHT_SYMTAB."""


@dataclass(frozen=True)
class Resources:
    """What a kernel takes. registers: of a thread; stack_bytes: of a thread, for arrays of its own and for registers
    that did not fit; shared_bytes: of a block, static.

        Resources(registers=32, stack_bytes=0, shared_bytes=4224)

    From sm_90 on, shared_bytes includes the 1,024 that the system reserves.
    """

    registers: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Cubin:
    """A source compiled for one chip. arch: its compute capability times ten; kernels: by name."""

    arch: int
    kernels: dict[str, Resources]
    data: bytes = field(repr=False)


@lru_cache(maxsize=32)
def compile_cubin(source: str, arch: int) -> Cubin:
    """Compile CUDA C++ to machine code for one chip: 80 to 120, and what NVRTC knows beside.

    Raises `CudaCompileError`, `SourceRefused`, `NvrtcMissing`.
    """
    check_source(source)
    options = [f"--gpu-architecture=sm_{arch}", *compiler_options()]
    try:
        compiled = compile_apart(source, FILE, options, cubin=True, headers=MEMORY_HEADERS)
    except CompilerStopped as error:
        raise CudaCompileError([Diagnostic("error", 0, 0, str(error))], source) from None
    if compiled.code is None:
        found = errors(explained(parse_log(compiled.log, FILE), source)) or [
            Diagnostic("error", 0, 0, compiled.log.strip())
        ]
        raise CudaCompileError(found, source)
    return Cubin(arch, resources(compiled.code), compiled.code)


def resources(cubin: bytes) -> dict[str, Resources]:
    """By kernel, as the source calls it. Raises ValueError where this is no cubin."""
    if cubin[:5] != b"\x7fELF\x02":
        raise ValueError("this is no cubin: it does not begin as an ELF file of 64 bits")
    sections = {name: (kind, body) for name, kind, body in _sections(cubin)}
    symbols = _symbols(sections)
    attributes: dict[int, dict[str, int]] = {REGISTERS: {}, FRAME_SIZE: {}}
    for attribute, body in _attributes(sections.get(".nv.info", (0, b""))[1]):
        if attribute in attributes and len(body) == 8:
            symbol, value = struct.unpack("<II", body)
            attributes[attribute][symbols.get(symbol, "")] = value
    found = {}
    for name in sections:
        if name.startswith(".text."):
            kernel = name.removeprefix(".text.")
            shared = _size_of(cubin, f".nv.shared.{kernel}")
            registers, stack = (attributes[one].get(kernel, 0) for one in (REGISTERS, FRAME_SIZE))
            found[plain_name(kernel)] = Resources(registers, stack, shared)
    return found


def _headers(cubin: bytes) -> Iterator[tuple[str, int, int, int]]:
    """(name, kind, offset, size) of each section."""
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    text = rows[names][4]
    for name, kind, _, _, offset, length in rows:
        end = cubin.index(b"\0", text + name)
        yield cubin[text + name : end].decode(), kind, offset, length


def _sections(cubin: bytes) -> Iterator[tuple[str, int, bytes]]:
    for name, kind, offset, length in _headers(cubin):
        yield name, kind, cubin[offset : offset + length]


def _size_of(cubin: bytes, section: str) -> int:
    """Of a section that may take no place in the file, as shared memory does."""
    return next((length for name, _, _, length in _headers(cubin) if name == section), 0)


def _symbols(sections: dict[str, tuple[int, bytes]]) -> dict[int, str]:
    """Names of symbols by their number."""
    table = next((body for kind, body in sections.values() if kind == SYMBOL_TABLE), b"")
    names = sections.get(".strtab", (0, b""))[1]
    found = {}
    for number in range(len(table) // 24):
        (at,) = struct.unpack_from("<I", table, 24 * number)
        found[number] = names[at : names.index(b"\0", at)].decode()
    return found


def _attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """(attribute, what it says) of the records in `.nv.info`."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        body = info[at : at + size] if form == SIZED else b""
        at += len(body)
        yield attribute, body
