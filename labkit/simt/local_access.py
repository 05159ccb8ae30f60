"""One access of a group of lanes to their own local memory: checked, then done."""

from __future__ import annotations

import numpy as np

from labkit.simt.lane_checks import Machine, aligned, first_lane, n_active, value_at


def load_local(m: Machine, pc: int, offsets: np.ndarray, dtype: np.dtype, width: int) -> list[np.ndarray]:
    """`width` values a lane from its own local memory."""
    safe, inside = _inside_local(m, pc, offsets, dtype.itemsize * width, "reads")
    if inside is not None and not inside.any():
        return [np.zeros((1, 1), dtype) for _ in range(width)]
    return [m.local.load(safe + i * dtype.itemsize, dtype) for i in range(width)]


def store_local(m: Machine, pc: int, offsets: np.ndarray, values: list[np.ndarray]) -> None:
    """Write the lanes' values to their own local memory."""
    item = values[0].dtype.itemsize
    safe, inside = _inside_local(m, pc, offsets, item * len(values), "writes")
    mask = m.mask.full if inside is None else m.mask.full & inside
    if not mask.any():
        return
    for i, value in enumerate(values):
        m.local.store(safe + i * item, value, mask)


def _inside_local(
    m: Machine, pc: int, offsets: np.ndarray, size: int, verb: str
) -> tuple[np.ndarray, np.ndarray | None]:
    valid = aligned(m, pc, offsets, size, verb, "in local memory")
    if int(offsets.min()) >= 0 and int(offsets.max()) + size <= m.local.n_bytes and valid is None:
        return offsets, None
    inside = (offsets >= 0) & (offsets + size <= m.local.n_bytes)
    bad = ~inside & m.mask.needed(offsets.shape)
    if bad.any():
        lane = first_lane(m, bad)
        text = f"{verb} byte {value_at(offsets, lane)} of a thread's {m.local.n_bytes} bytes of local arrays"
        m.fault("out of bounds", pc, text, lane, n_active(m, bad))
    if valid is not None:
        inside &= valid
    return np.where(inside, offsets, 0), inside
