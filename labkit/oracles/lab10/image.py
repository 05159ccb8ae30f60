"""Lab 10: which compiled form of a kernel a GPU uses, and what the usual mistakes choose.

CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and "Architecture-Specific Features".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.exercises.lab01.function_calls import Call
from labkit.oracles.lab01.function_calls import call_of
from labkit.spec import CaseRun, Hint, Oracle

Chip = tuple[int, int]
NONE_FITS = -1


@dataclass(frozen=True)
class Form:
    """One compiled form, read: "sm_90a" -> Form(False, (9, 0), True)."""

    ptx: bool
    built: Chip
    specific: bool


def read(name: str, n_minor: int = 1) -> Form:
    """n_minor: how many of the digits are taken for the minor version."""
    kind, digits, suffix = re.fullmatch(r"(sm|compute)_(\d+)(a?)", name).groups()
    return Form(kind == "compute", (int(digits[:-n_minor]), int(digits[-n_minor:])), bool(suffix))


def major_of_one_digit(name: str) -> Form:
    return read(name, len(re.sub(r"\D", "", name)) - 1)


def fits(form: Form, chip: Chip) -> bool:
    """Whether the chip can use it at all."""
    if form.specific:
        return form.built == chip
    return form.built <= chip if form.ptx else form.built[0] == chip[0] and form.built <= chip


def choose(
    names: Sequence[str],
    chip: Chip,
    fits: Callable[[Form, Chip], bool] = fits,
    rank: Callable[[Form], tuple] = lambda form: (not form.ptx, form.built),
    read: Callable[[str], Form] = read,
) -> int:
    """The index of the best of those that fit."""
    found = [(rank(read(name)), -i) for i, name in enumerate(names) if fits(read(name), chip)]
    return -max(found)[1] if found else NONE_FITS


def is_choice(**changed: Callable) -> Callable[[CaseRun[Call]], bool]:
    """Whether this is what is chosen under another rule."""
    return lambda run: run.got["out"] == choose(*run.case.arguments, **changed) != run.expected["out"]


def any_older(form: Form, chip: Chip) -> bool:
    return form.built == chip if form.specific else form.built <= chip


def same_major(form: Form, chip: Chip) -> bool:
    if form.specific or form.ptx:
        return fits(form, chip)
    return form.built[0] == chip[0]


def exact(form: Form, chip: Chip) -> bool:
    return fits(form, chip) if form.ptx else form.built == chip


def ptx_exact(form: Form, chip: Chip) -> bool:
    if form.ptx and not form.specific:
        return form.built[0] == chip[0] and form.built <= chip
    return fits(form, chip)


def newer_ptx(form: Form, chip: Chip) -> bool:
    return (form.ptx and not form.specific) or fits(form, chip)


def all_plain(form: Form, chip: Chip) -> bool:
    return fits(Form(form.ptx, form.built, False), chip)


def plain_in_its_major(form: Form, chip: Chip) -> bool:
    return form.built[0] == chip[0] if form.specific else fits(form, chip)


def not_before_it(form: Form, chip: Chip) -> bool:
    return form.built[0] == chip[0] and form.built <= chip if form.specific else fits(form, chip)


def equal(form: Form, chip: Chip) -> bool:
    return form.built == chip


def cubins_only(form: Form, chip: Chip) -> bool:
    return not form.ptx and fits(form, chip)


IMAGE = Oracle(
    id="10-image",
    expect=lambda run: {"out": choose(*run.case.arguments)},
    call=call_of,
    diagnose=(
        # Some mistakes choose differently only where another does so, too: those stand before it.
        Hint(
            is_choice(rank=lambda form: (not form.ptx, f"{form.built[0]}{form.built[1]}")),
            'Versions are compared as text here, and "90" comes after "100". Compare them as numbers, or as pairs.',
        ),
        Hint(
            is_choice(read=major_of_one_digit),
            "Only the last digit is the minor version, however many there are: sm_120 is for 12.0, and sm_90 for 9.0.",
        ),
        Hint(
            is_choice(rank=lambda form: (form.built, not form.ptx)),
            "A cubin that fits goes before PTX, however new the PTX is: nothing has to be assembled.",
        ),
        Hint(
            is_choice(rank=lambda form: (form.ptx, form.built)),
            "A cubin that fits goes before PTX, however new the PTX is: nothing has to be assembled.",
        ),
        Hint(
            is_choice(rank=lambda form: (not form.ptx, 0)),
            "Of several that fit, the driver takes the latest, wherever it stands in the list.",
        ),
        Hint(
            is_choice(rank=lambda form: ()),
            "This takes the first form that fits. The driver takes the best of them: a cubin before PTX, and the "
            "latest, wherever it stands in the list.",
        ),
        Hint(
            is_choice(rank=lambda form: (not form.ptx, tuple(-part for part in form.built))),
            "Of several that fit, the driver takes the latest, which knows most of the chip.",
        ),
        Hint(
            is_choice(fits=ptx_exact),
            "PTX can be assembled for every later chip, also of a later major version.",
        ),
        Hint(is_choice(fits=cubins_only), "Where no cubin fits, the driver assembles PTX, if there is any."),
        Hint(
            is_choice(fits=any_older),
            "A cubin runs on chips of its own major version only: machine code for sm_80 is none for sm_90.",
        ),
        Hint(
            is_choice(fits=same_major),
            "A cubin for sm_89 does not run on sm_86: the chip's minor version has to be at least its own.",
        ),
        Hint(
            is_choice(fits=newer_ptx),
            "PTX for a later chip may use what this one does not have: it is assembled for its own chip and "
            "later ones.",
        ),
        *(
            Hint(
                is_choice(fits=rule),
                "What ends with an a fits exactly the chip that it names: sm_100a runs on 10.0, and not on 10.3, "
                "although the major version is the same.",
            )
            for rule in (plain_in_its_major, not_before_it)
        ),
        Hint(
            is_choice(fits=all_plain),
            "What ends with an a uses instructions of one chip alone: it fits exactly that chip, PTX included.",
        ),
        Hint(
            is_choice(fits=exact),
            "A cubin runs on later chips of the same major version, too: sm_80 on sm_86 and sm_89.",
        ),
        Hint(
            is_choice(fits=equal),
            "A form need not be made for this very chip: a cubin runs on later chips of its major version, too, and "
            "PTX can be assembled for every later chip.",
        ),
    ),
    axis="other forms and chips",
)
