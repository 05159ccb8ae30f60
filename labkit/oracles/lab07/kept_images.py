"""Lab 07: what the images of a cache tell: which call of the decoder each comes from is read off the image itself.

So what was kept from one epoch to the next is worked out here; what was kept and never asked for again is not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import torch

from labkit.exercises.lab07.cache import STAMP, Pictures, max_bytes
from labkit.oracles.hints import once
from labkit.spec import CANNOT_TELL, CaseRun

UNKNOWN = -1
"""No call wrote this."""


class Made(NamedTuple):
    """Of an image: which call of `decode`, and which of `augment`: `Made(decoded=3, augmented=7)`."""

    decoded: int
    augmented: int


@once
def made(run: CaseRun[Pictures]) -> list[dict[int, Made]]:
    """By epoch and number of the image. Raises where something is no image of that size."""
    calls = [{tuple(stamp): at for at, stamp in enumerate(run.tree[f"{name}_stamps"].tolist())} for name in NAMES]
    found = []
    for order, images in zip(run.tree["orders"].tolist(), run.got["epochs"], strict=True):
        of_epoch = {}
        for index, image in zip(order, images, strict=True):
            row = image[0].tolist()
            stamps = tuple(row[:STAMP]), tuple(row[STAMP:])
            of_epoch[index] = Made(*(known.get(stamp, UNKNOWN) for known, stamp in zip(calls, stamps, strict=True)))
        found.append(of_epoch)
    return found


NAMES = ("decode", "augment")


def n_bytes(run: CaseRun[Pictures], index: int) -> int:
    return run.tree["images"][index].numel()


def all_bytes(run: CaseRun[Pictures]) -> int:
    return sum(image.numel() for image in run.tree["images"])


def room(run: CaseRun[Pictures]) -> int:
    return max_bytes(run.case, run.tree)


@once
def kept_bytes(run: CaseRun[Pictures]) -> list[int]:
    """Of each epoch but the first: the images that come from a call of `decode` of the epoch before."""
    epochs = made(run)
    return [
        sum(n_bytes(run, index) for index, one in now.items() if one.decoded == before[index].decoded)
        for before, now in pairwise(epochs)
    ]


def found_by(run: CaseRun[Pictures], takes_in: Callable[[int, int, int], bool]) -> list[int]:
    """Of each epoch but the first: the bytes of images found in a cache that throws nothing out, and keeps an image of
    so many bytes, whose file has so many, beside so many that are kept if takes_in(image, file, kept).
    """
    kept: dict[int, int] = {}
    found = []
    for order in run.tree["orders"].tolist():
        found.append(sum(kept.values()))
        for index in order:
            n_file = run.tree["files"][index].numel()
            if index not in kept and takes_in(n_bytes(run, index), n_file, sum(kept.values())):
                kept[index] = n_bytes(run, index)
    return found[1:]


@once
def least_bytes(run: CaseRun[Pictures]) -> list[int]:
    """Of each epoch but the first: what a cache keeps that takes in every image for which there is room."""
    return found_by(run, lambda image, file, kept: kept + image <= room(run))


def keeps_one_too_many(run: CaseRun[Pictures]) -> bool:
    """An image is kept wherever there was any room before it."""
    most, right = room(run), least_bytes(run)
    return any(
        kept_bytes(run) == found_by(run, rule) != right
        for rule in (
            lambda image, file, kept: kept <= most,
            lambda image, file, kept: kept < most,
        )
    )


def wants_more_room(run: CaseRun[Pictures]) -> bool:
    """An image that would just fit is not kept."""
    most = room(run)
    return kept_bytes(run) == found_by(run, lambda image, file, kept: kept + image < most) != least_bytes(run)


def counts_floats(run: CaseRun[Pictures]) -> bool:
    """Each pixel is counted as the four bytes of a float32."""
    most = room(run)
    return kept_bytes(run) == found_by(run, lambda image, file, kept: 4 * (kept + image) <= most) != least_bytes(run)


def throws_out(run: CaseRun[Pictures]) -> object:
    """An image that was found in one epoch had to be decoded in the next. CANNOT_TELL where none was ever found."""
    if not any(kept_bytes(run)[:-1]):
        return CANNOT_TELL
    epochs = made(run)
    return any(
        earlier[index].decoded == one.decoded != later[index].decoded
        for earlier, now, later in zip(epochs, epochs[1:], epochs[2:], strict=False)
        for index, one in now.items()
    )


def full_for_good(run: CaseRun[Pictures]) -> bool:
    """After the first image without room nothing is kept any more."""
    is_full = False

    def takes_in(image: int, file: int, kept: int) -> bool:
        nonlocal is_full
        is_full = is_full or kept + image > room(run)
        return not is_full

    return kept_bytes(run) == found_by(run, takes_in) != least_bytes(run)


def right_images(run: CaseRun[Pictures]) -> str | None:
    """Every item is its image, decoded by one call and augmented by one."""
    if run.got["length"] != run.case.n:
        return f"len() is {run.got['length']} for {run.case.n} files"
    for epoch, images in enumerate(run.got["epochs"]):
        for index, image in zip(run.tree["orders"][epoch].tolist(), images, strict=True):
            right = run.tree["images"][index]
            if not isinstance(image, torch.Tensor) or image.shape != right.shape or image.dtype != right.dtype:
                return f"image {index} in epoch {epoch} is no uint8 tensor of shape {tuple(right.shape)}"
            if not torch.equal(image[1:], right[1:]) or made(run)[epoch][index].decoded == UNKNOWN:
                return f"image {index} in epoch {epoch} has other pixels than decode made of files[{index}]"
    return None


def augmented_anew(run: CaseRun[Pictures]) -> str | None:
    """Each item is augmented by a call of its own."""
    earlier: dict[int, int] = {}
    for epoch, of_epoch in enumerate(made(run)):
        for index, one in of_epoch.items():
            if one.augmented == UNKNOWN:
                how = "augmented more than once" if _is_augmented(run, epoch, index) else "not augmented"
                return f"image {index} in epoch {epoch} is {how}"
            if one.augmented in earlier:
                before = earlier[one.augmented]
                return f"image {index} in epoch {epoch} has the augmentation that it had in epoch {before}"
            earlier[one.augmented] = epoch
    return None


def _is_augmented(run: CaseRun[Pictures], epoch: int, index: int) -> bool:
    place = run.tree["orders"][epoch].tolist().index(index)
    return bool(run.got["epochs"][epoch][place][0, STAMP:].any())


def decoded_lazily(run: CaseRun[Pictures]) -> str | None:
    """`decode` is called for an image that is asked for and not there, and for nothing else."""
    calls = run.got["n_decoded"]
    if calls[0]:
        return f"decode was called {calls[0]} times before the first image was asked for"
    known: set[int] = set()
    for epoch, of_epoch in enumerate(made(run)):
        new = {one.decoded for one in of_epoch.values()} - known
        known |= new
        n_calls = calls[epoch + 1] - calls[epoch]
        if n_calls != len(new):
            return f"in epoch {epoch} decode was called {n_calls} times for {len(new)} images that were not kept"
    return None


def keeps_what_fits(run: CaseRun[Pictures]) -> str | None:
    """At most max_bytes are kept from one epoch to the next, and about as much."""
    most = room(run)
    for epoch, (kept, least) in enumerate(zip(kept_bytes(run), least_bytes(run), strict=True), start=1):
        if kept > most:
            return f"epoch {epoch} finds {kept:,} bytes of images decoded before; max_bytes is {most:,}"
        if kept < least:
            return (
                f"epoch {epoch} finds {kept:,} of {all_bytes(run):,} bytes decoded before; "
                f"with max_bytes={most:,} it could find {least:,}"
            )
    return None


def same_again(run: CaseRun[Pictures]) -> object:
    """An augmentation comes again. CANNOT_TELL where nothing can be kept."""
    if room(run) < min(image.numel() for image in run.tree["images"]):
        return CANNOT_TELL
    calls = [one.augmented for of_epoch in made(run) for one in of_epoch.values()]
    return UNKNOWN not in calls and len(set(calls)) < len(calls)


def piled_up(run: CaseRun[Pictures]) -> object:
    """Images of later epochs are augmented more than once. CANNOT_TELL where nothing can be kept."""
    if room(run) < min(image.numel() for image in run.tree["images"]):
        return CANNOT_TELL
    first, *later = made(run)
    return all(one.augmented != UNKNOWN for one in first.values()) and any(
        one.augmented == UNKNOWN for of_epoch in later for one in of_epoch.values()
    )


def bare(run: CaseRun[Pictures]) -> object:
    """Images come out as they were decoded. CANNOT_TELL where nothing can be kept."""
    if room(run) < min(image.numel() for image in run.tree["images"]):
        return CANNOT_TELL
    return any(not _is_augmented(run, epoch, index) for epoch, of_epoch in enumerate(made(run)) for index in of_epoch)


def where_it_can(holds: Callable[[CaseRun[Pictures]], bool], least: float, most: float) -> Callable[..., object]:
    """A diagnosis of what is kept. CANNOT_TELL of a cache that has room for less or more than such a share."""

    def when(run: CaseRun[Pictures]) -> object:
        if not least <= run.case.max_share <= most:
            return CANNOT_TELL
        return right_images(run) is None and holds(run)

    return when


def counts_files(run: CaseRun[Pictures]) -> bool:
    """The bytes of the files are limited, where those of the images should be."""
    sizes: list[int] = []

    def takes_in(image: int, file: int, kept: int) -> bool:
        if fits := sum(sizes) + file <= room(run):
            sizes.append(file)
        return fits

    return kept_bytes(run) == found_by(run, takes_in) != least_bytes(run)
