"""ld and st in every space and width. What an access does is in `access`; here is which one an instruction means."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.simt import global_access, lane_checks, local_access, shared_access
from labkit.simt.program import Address, Instruction, Register, Symbol, Vector
from labkit.simt.types import dtype_of
from labkit.simt.values import Step, address_reader, constant, reader, refuse, resize, type_of, writer

SPACES = ("global", "shared", "local", "const", "param")
STRONG = {"volatile", "acquire", "release", "relaxed", "mmio"}
HARMLESS = {
    "nc",
    "ca",
    "cg",
    "cs",
    "cv",
    "lu",
    "wb",
    "wt",
    "gpu",
    "cta",
    "sys",
    "cluster",
    "weak",
    "unified",
    "entry",
    "func",
}
"""Cache hints and scopes: they change no value here."""


def parts_of(one: Instruction) -> tuple[str, int, bool]:
    """(space or "generic", values a lane, whether it is strong)."""
    space, width, strong = "generic", 1, False
    for name in one.modifiers[:-1]:
        if name in SPACES:
            space = name
        elif name in ("v2", "v4"):
            width = int(name[1])
        elif name in STRONG:
            strong = True
        elif name not in HARMLESS and not name.startswith(("L1", "L2", "evict")):
            raise refuse(one)
    return space, width, strong


def base_of(one: Instruction, at: int) -> Any:
    """What an access plan is kept for: the register that the address comes from, or none."""
    address = one.operands[at]
    if isinstance(address, Address) and isinstance(address.base, Register):
        slot = address.base.slot
        return lambda m: m.regs[slot]
    fixed = np.zeros((1, 1), np.int64)
    return lambda m: fixed


def load(one: Instruction, pc: int) -> Step:
    """ld.space.vec.type d, [a]."""
    space, width, strong = parts_of(one)
    if space == "param":
        return _load_param(one)
    dtype, line = type_of(one), one.line
    address, base = address_reader(one.operands[1], one), base_of(one, 1)
    targets = one.operands[0].items if isinstance(one.operands[0], Vector) else (one.operands[0],)
    put = [writer(target, one) for target in targets]
    who = object()

    def deliver(m: Any, values: list[np.ndarray]) -> None:
        for write, value in zip(put, values, strict=True):
            write(m, value)

    def run_global(m: Any) -> None:
        deliver(m, global_access.load_global(m, pc, line, address(m), dtype, width, strong, who))

    def run_shared(m: Any) -> None:
        if strong:
            m.strong = True
        deliver(m, shared_access.load_shared(m, pc, line, address(m), dtype, width, who, base(m)))

    def run_local(m: Any) -> None:
        m.counts[line]["local_load_requests"] += m.mask.n_warps
        deliver(m, local_access.load_local(m, pc, address(m), dtype, width))

    def run_const(m: Any) -> None:
        m.counts[line]["constant_load_requests"] += m.mask.n_warps
        found = global_access.GlobalAccess(m, pc, address(m), dtype.itemsize * width, "ld", who)
        values = [np.zeros(found.addresses.shape, dtype) for _ in range(width)]
        for part in found.parts:
            chosen = slice(None) if part.chosen is None else part.chosen
            index = (found.addresses[chosen] - part.region.base) // dtype.itemsize
            for i, value in enumerate(values):
                value[chosen] = part.region.view(dtype)[index + i]
        deliver(m, values)

    single = {"global": run_global, "shared": run_shared, "local": run_local, "const": run_const}

    def run_generic(m: Any) -> None:
        addresses = address(m)
        parts = lane_checks.by_space(m, addresses)
        if parts == [("global", addresses, m.mask)] or (len(parts) == 1 and parts[0][0] == "global"):
            run_global(m)
            return
        outer = m.mask
        total: list[np.ndarray] | None = None
        for space, inside, mask in parts:
            m.mask = mask
            if space == "global":
                values = global_access.load_global(m, pc, line, inside, dtype, width, strong, who)
            elif space == "shared":
                values = shared_access.load_shared(m, pc, line, inside, dtype, width, object(), inside)
            else:
                values = local_access.load_local(m, pc, inside, dtype, width)
            if total is not None:
                values = [np.where(mask.array, new, old) for new, old in zip(values, total, strict=True)]
            total = values
        m.mask = outer
        deliver(m, total or [])

    return single.get(space, run_generic)


def store(one: Instruction, pc: int) -> Step:
    """st.space.vec.type [a], b."""
    space, width, strong = parts_of(one)
    if space == "param":
        return _store_param(one)
    if space == "const":
        raise refuse(one)
    dtype, line = type_of(one), one.line
    address, base = address_reader(one.operands[0], one), base_of(one, 0)
    sources = one.operands[1].items if isinstance(one.operands[1], Vector) else (one.operands[1],)
    if len(sources) != width:
        raise refuse(one)
    read = [reader(source, dtype, one) for source in sources]
    who = object()

    def run_global(m: Any) -> None:
        global_access.store_global(m, pc, line, address(m), [one_value(m) for one_value in read], strong, who)

    def run_shared(m: Any) -> None:
        if strong:
            m.strong = True
        shared_access.store_shared(m, pc, line, address(m), [one_value(m) for one_value in read], who, base(m))

    def run_local(m: Any) -> None:
        m.counts[line]["local_store_requests"] += m.mask.n_warps
        local_access.store_local(m, pc, address(m), [one_value(m) for one_value in read])

    single = {"global": run_global, "shared": run_shared, "local": run_local}

    def run_generic(m: Any) -> None:
        values = [one_value(m) for one_value in read]
        outer = m.mask
        for space, inside, mask in lane_checks.by_space(m, address(m)):
            m.mask = mask
            if space == "global":
                global_access.store_global(m, pc, line, inside, values, strong, who)
            elif space == "shared":
                shared_access.store_shared(m, pc, line, inside, values, object(), inside)
            else:
                local_access.store_local(m, pc, inside, values)
        m.mask = outer

    return single.get(space, run_generic)


def _load_param(one: Instruction) -> Step:
    """ld.param: of the kernel's arguments, of the function's, or of a call's result."""
    address = one.operands[1]
    dtype = dtype_of(one.type)
    targets = one.operands[0].items if isinstance(one.operands[0], Vector) else (one.operands[0],)
    put = [writer(target, one) for target in targets]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise refuse(one, "a parameter at an address that is computed")
    name, offset = address.base.name, address.offset + address.base.offset

    def run(m: Any) -> None:
        for i, write in enumerate(put):
            at = offset + i * dtype.itemsize
            if name in m.parameters and m.frame.caller is None:
                piece = m.parameters[name][at : at + dtype.itemsize]
                if at < 0 or len(piece) < dtype.itemsize:
                    raise refuse(one, "it reads past the end of a parameter")
                write(m, np.frombuffer(piece, dtype)[None])
            else:
                write(m, _narrow(m.frame.cells.get((name, at), constant(0, dtype)), dtype))

    return run


def _narrow(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return resize(value, dtype)


def _store_param(one: Instruction) -> Step:
    """st.param: an argument of a call, or a function's result."""
    address = one.operands[0]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise refuse(one, "a parameter at an address that is computed")
    name, offset = address.base.name, address.offset + address.base.offset
    dtype = dtype_of(one.type)
    sources = one.operands[1].items if isinstance(one.operands[1], Vector) else (one.operands[1],)
    read = [reader(source, dtype, one) for source in sources]

    def run(m: Any) -> None:
        for i, value in enumerate(read):
            m.frame.set_cell(name, offset + i * dtype.itemsize, value(m), m.mask)

    return run


TABLE = {"ld": load, "st": store}
