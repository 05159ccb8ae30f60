"""What the compiler made of a kernel, weighed by what its launches did: code that never runs says nothing.

A wide copy that no program comes to, or one that moves a few bytes beside a narrow one, does not make a kernel's
accesses wide; nor does a product of matrices that is compiled and not carried out put any work on the tensor cores.
Registers and spills need no such care: code that never runs can only make them more.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections import Counter
from collections.abc import Mapping

from labkit.meters.compiled import ptx
from labkit.meters.compiled.ptx import Placed
from labkit.meters.compiled.report import CompileReport
from labkit.meters.launches_work import LaunchWork, Site

NEARLY_ALL = 0.9
"""Of the bytes that loads move, and of those that stores move: the part that counts as how the kernel moves them."""


def weighed(report: CompileReport, work: LaunchWork) -> dict[str, float]:
    """The report's figures, with these by what ran; work: of all launches that this code stands for.

    vector_width: bytes; nearly all bytes are moved by accesses that are at least so wide. matrix_instructions: those of
    products that were carried out. matrix_flops: FLOPs of these products, masked lanes included.
    """
    made = _merged(ptx.placed(report.ptx))
    loads = {site: min(one.loads) for site, one in made.items() if one.loads}
    stores = {site: min(one.stores) for site, one in made.items() if one.stores}
    widths = [_width(_renamed(work.loads), loads), _width(_renamed(work.stores), stores)]
    products = _renamed(work.products)
    counts = {site: made.get(site, Placed()).n_matrix_instructions for site in products}
    return {
        **report.figures(),
        "vector_width": min((width for width in widths if width), default=0),
        "matrix_instructions": sum(counts.values()),
        "matrix_flops": sum(products[site] for site, count in counts.items() if count),
    }


def _width(moved: Counter[Site], made: Mapping[Site, int]) -> int:
    """The width that nearly all bytes have at least; 0 where nothing was moved, or by no instruction that is known."""
    # What cannot be found counts as the least that there is.
    least = min(made.values(), default=0)
    by_width: Counter[int] = Counter()
    for site, n_bytes in moved.items():
        by_width[made.get(site, least)] += n_bytes
    so_far = 0
    for width, n_bytes in sorted(by_width.items(), reverse=True):
        so_far += n_bytes
        if n_bytes and so_far >= NEARLY_ALL * by_width.total():
            return width
    return 0


def _renamed(done: Counter[Site]) -> Counter[Site]:
    """What was done by site, these as compiled code calls them: it counts columns from 1."""
    found: Counter[Site] = Counter()
    for (place, above), amount in done.items():
        (file, line, column) = place
        site = (file, line, column + 1), above and (*above[:2], above[2] + 1)
        found[site if _has_columns() else _line_of(site)] += amount
    return found


def _merged(made: Mapping[Site, Placed]) -> dict[Site, Placed]:
    """What compiled code has by site; by line, where it tells no more."""
    if _has_columns():
        return dict(made)
    found: dict[Site, Placed] = {}
    for site, one in made.items():
        known = found.setdefault(_line_of(site), Placed())
        known.loads.update(one.loads)
        known.stores.update(one.stores)
        known.n_matrix_instructions += one.n_matrix_instructions
    return found


def _line_of(site: Site) -> Site:
    return (*site[0][:2], 0), None


@functools.cache
def _has_columns() -> bool:
    """Before 3.8, Triton's columns are those of an argument, and nothing says where a helper was called from."""
    return tuple(map(int, importlib.metadata.version("triton").split(".")[:2])) >= (3, 8)
