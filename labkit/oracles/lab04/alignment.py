"""Lab 04: what is true of tiles and waves, counted, and what the usual mistakes make of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from labkit.exercises.lab01.function_calls import Call
from labkit.exercises.lab04.alignment import A100_SMS, ARGUMENTS, H100_SMS, V100_SMS
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab01.function_calls import is_blank
from labkit.oracles.lab04.named_calls import call_by_names
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle, Tolerance


def pieces(n: int, size: int) -> int:
    """Into how many parts of at most this size torch splits n elements."""
    return len(torch.empty(n, device="meta").split(size))


def tiles(rows: int, cols: int, tile_rows: int, tile_cols: int) -> int:
    return pieces(rows, tile_rows) * pieces(cols, tile_cols)


def true_result(run: CaseRun[Call]) -> dict[str, object]:
    if run.case.function == "padded":
        n, itemsize, multiple_bytes = run.case.arguments
        multiple = multiple_bytes // itemsize
        return {"out": pieces(n, multiple) * multiple}
    rows, cols, tile_rows, tile_cols, n_sms = run.case.arguments
    n_tiles = tiles(rows, cols, tile_rows, tile_cols)
    n_waves = pieces(n_tiles, n_sms)
    return {"out": [n_tiles, n_waves, rows * cols / (n_waves * n_sms * tile_rows * tile_cols)]}


def waves(when: Callable[[tuple, list, list], object]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of tiles_and_waves: `when` gets (arguments, right, got).

    Its cases come first, so it may be shown whatever is wrong with `padded`.
    """

    def diagnose(run: CaseRun[Call]) -> object:
        if run.case.function != "tiles_and_waves":
            return CANNOT_TELL
        return when(run.case.arguments, run.expected["out"], [float(value) for value in run.got["out"]])

    return diagnose


def near(found: float, wanted: float) -> bool:
    return math.isclose(found, wanted, rel_tol=1e-6)


def swapped(args: tuple, right: list, got: list) -> object:
    rows, cols, tile_rows, tile_cols, _ = args
    other = tiles(rows, cols, tile_cols, tile_rows)
    return CANNOT_TELL if other == right[0] else got[0] == other


def rounded_down(args: tuple, right: list, got: list) -> bool:
    rows, cols, tile_rows, tile_cols, _ = args
    down, up = (rows // tile_rows, cols // tile_cols), (-(-rows // tile_rows), -(-cols // tile_cols))
    ways = (down[0] * down[1], down[0] * up[1], up[0] * down[1], rows * cols // (tile_rows * tile_cols))
    unrounded = rows * cols / (tile_rows * tile_cols)
    return got[0] != right[0] and got[0] in (*ways, max(1, ways[0]), ways[0] + 1, unrounded)


def one_tile_more(args: tuple, right: list, got: list) -> bool:
    rows, cols, tile_rows, tile_cols, _ = args
    high, wide = (rows // tile_rows + 1, cols // tile_cols + 1)
    up = -(-rows // tile_rows), -(-cols // tile_cols)
    return right[0] != got[0] and got[0] in (high * wide, high * up[1], up[0] * wide)


def added(args: tuple, right: list, got: list) -> bool:
    rows, cols, tile_rows, tile_cols, _ = args
    return got[0] == -(-rows // tile_rows) + -(-cols // tile_cols) != right[0]


def by_area(args: tuple, right: list, got: list) -> bool:
    rows, cols, tile_rows, tile_cols, _ = args
    return got[0] == math.ceil(rows * cols / (tile_rows * tile_cols)) != right[0]


def waves_by_area(args: tuple, right: list, got: list) -> bool:
    rows, cols, tile_rows, tile_cols, n_sms = args
    by_outputs = math.ceil(rows * cols / (tile_rows * tile_cols * n_sms))
    return got[0] == right[0] and got[1] == by_outputs != right[1]


def waves_of_another_chip(args: tuple, right: list, got: list) -> bool:
    fixed = {-(-right[0] // n_sms) for n_sms in (A100_SMS, V100_SMS, H100_SMS)}
    return got[0] == right[0] and right[1] != got[1] and got[1] in fixed


def efficiency(when: Callable[[tuple, list, float], bool]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of tiles_and_waves where tiles and waves are right: `when` gets (arguments, right, efficiency)."""
    return waves(lambda args, right, got: got[:2] == right[:2] and when(args, right, got[2]))


def busy_in_one_wave(args: tuple, right: list, got: float) -> bool:
    n_tiles, n_sms = right[0], args[4]
    ways = (n_tiles % n_sms / n_sms, (n_tiles % n_sms or n_sms) / n_sms, min(1, n_tiles / n_sms))
    return any(near(got, share) for share in ways)


def times_a_factor(args: tuple, right: list, got: float) -> bool:
    """A factor of the denominator is missing, or Python multiplied by what follows a division."""
    _, _, tile_rows, tile_cols, n_sms = args
    area = tile_rows * tile_cols
    factors = (right[1], n_sms, area, n_sms * area, n_sms**2, area**2, (n_sms * area) ** 2)
    return not near(got, right[2]) and any(near(got, right[2] * factor) for factor in factors)


def up_to(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def padding(when: Callable[[int, int, int, float], object]) -> Callable[[CaseRun[Call]], object]:
    """A diagnosis of padded: `when` gets (n, bytes of one, bytes of the multiple, got)."""
    return lambda run: run.case.function == "padded" and when(*run.case.arguments, float(run.got["out"]))


FIXED = (8, 16, 32, 64, 128)
"""Multiples that one reads of, in numbers or in bytes."""


def fixed_number(multiple: int) -> Callable[[int, int, int, float], bool]:
    """Padded to this many numbers, whatever the arguments are."""
    return lambda n, itemsize, n_bytes, got: got == up_to(n, multiple)


def fixed_bytes(multiple_bytes: int) -> Callable[[int, int, int, float], bool]:
    """Padded to this many bytes."""
    return lambda n, itemsize, n_bytes, got: got == up_to(n, max(1, multiple_bytes // itemsize))


ALIGNMENT = Oracle(
    id="04-alignment",
    expect=true_result,
    tolerance=Tolerance(rtol=1e-6),
    call=call_by_names(ARGUMENTS),
    places={"out.0": "number of tiles", "out.1": "number of waves", "out.2": "efficiency"},
    diagnose=(
        *not_written_yet(ARGUMENTS, is_blank),
        Hint(
            waves(lambda args, right, got: got == [right[1], right[0], right[2]]),
            "The order is another: first the tiles, then the waves, then the efficiency.",
        ),
        Hint(
            waves(added),
            "Tiles lie in a grid: multiply how many lie along the rows by how many lie along the columns.",
        ),
        Hint(
            waves(swapped),
            "Rows and columns of the tile are swapped: 256 × 128 means 256 rows and 128 columns.",
        ),
        Hint(
            waves(one_tile_more),
            "One tile is added even where the tiles fit exactly: round up instead of adding 1, in rows and in columns"
            " each.",
        ),
        Hint(
            waves(rounded_down),
            "A tile that is only partly used counts whole: round up, in rows and in columns each.",
        ),
        Hint(
            waves(by_area),
            "The area was divided by a tile's. Tiles lie in a grid: round up the rows and the columns separately.",
        ),
        Hint(
            waves(lambda args, right, got: got[0] == right[0] and near(got[1], right[0] / args[4])),
            "A wave that is only partly filled takes as long as a full one: round the number of waves up.",
        ),
        Hint(
            waves(waves_by_area),
            "The waves come from the outputs alone. A tile that is only partly used keeps a multiprocessor as long as "
            "a full one: divide the number of tiles by n_sms.",
        ),
        Hint(
            waves(lambda args, right, got: got[0] == right[0] and right[1] != got[1] == right[0] // args[4]),
            "The last, partly filled wave is missing: round the number of waves up.",
        ),
        Hint(
            waves(lambda args, right, got: got[0] == right[0] and right[1] != got[1] == right[0] // args[4] + 1),
            "One wave is added even where the last one is exactly full: round up instead of adding 1.",
        ),
        Hint(
            waves(waves_of_another_chip),
            "The number of multiprocessors is fixed in your answer: n_sms says how many there are.",
        ),
        Hint(
            efficiency(lambda args, right, got: near(got, 1 / right[2])),
            "The efficiency is upside down: what is used, divided by what is paid for.",
        ),
        Hint(
            efficiency(lambda args, right, got: near(got, 100 * right[2])),
            "That is the efficiency in percent: return the quotient itself, at most 1.",
        ),
        Hint(
            efficiency(lambda args, right, got: near(got, right[0] / (right[1] * args[4]))),
            "The efficiency counts tiles as if all were full: outputs that are needed, divided by the outputs that "
            "n_waves · n_sms tiles have room for.",
        ),
        Hint(
            efficiency(lambda args, right, got: near(got, args[0] * args[1] / (right[0] * args[2] * args[3]))),
            "The efficiency leaves out the idle multiprocessors of the last wave: divide by the room in "
            "n_waves · n_sms tiles.",
        ),
        Hint(
            efficiency(busy_in_one_wave),
            "That is how much of one wave is filled. The efficiency counts outputs and all waves: rows · cols, divided "
            "by the outputs that n_waves · n_sms tiles have room for.",
        ),
        Hint(
            efficiency(times_a_factor),
            "The outputs are divided by all of n_waves · n_sms · tile_rows · tile_cols. A factor is missing, or Python "
            "multiplies by it: a / b * c is (a / b) * c.",
        ),
        Hint(
            efficiency(lambda args, right, got: near(got, 1 - right[2])),
            "That is the part that is wasted. The efficiency is the part that is used.",
        ),
        Hint(
            efficiency(lambda args, right, got: any(got == round(right[2], digits) for digits in range(6))),
            "The efficiency was rounded. Return it as it comes out.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == -(-n * itemsize // n_bytes) * n_bytes),
            "That is in bytes. Return how many numbers there are: divide by itemsize.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got in (up_to(n, n_bytes), up_to(n, n_bytes * itemsize))),
            "The multiple is given in bytes: divide it by itemsize to get numbers.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == n // (n_bytes // itemsize) * (n_bytes // itemsize)),
            "Padding rounds up: nothing may be cut off.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == (n // (n_bytes // itemsize) + 1) * (n_bytes // itemsize)),
            "What is a multiple already needs no padding.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == up_to(n, n_bytes // itemsize) - n),
            "That is how many numbers are added. Return the padded number itself.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == n + n % (n_bytes // itemsize)),
            "n % multiple is how far n lies above a multiple. Add what is missing up to the next one.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == n + n_bytes // itemsize),
            "A whole multiple was added to n. Add only what is missing up to the next one.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == -(-n * itemsize // n_bytes)),
            "That is how many multiples it takes. Return how many numbers they hold.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == 2 ** math.ceil(math.log2(n))),
            "That is the next power of two; the next multiple is much closer.",
        ),
        Hint(
            padding(lambda n, itemsize, n_bytes, got: got == up_to(n, 2 * n_bytes // itemsize)),
            "That is the next multiple of twice multiple_bytes: it takes multiple_bytes // itemsize numbers.",
        ),
        *(
            Hint(
                padding(is_fixed),
                "The multiple is fixed in your answer: it is multiple_bytes, and takes itemsize bytes for each number.",
            )
            for is_fixed in (*map(fixed_number, FIXED), *map(fixed_bytes, FIXED))
        ),
    ),
)
