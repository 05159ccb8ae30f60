"""Lab 07: what is true of cached images and of a data set on the device, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.exercises.lab07.cache import Pictures
from labkit.oracles.lab07.kept_images import (
    all_bytes,
    augmented_anew,
    bare,
    counts_files,
    counts_floats,
    decoded_lazily,
    full_for_good,
    keeps_one_too_many,
    keeps_what_fits,
    kept_bytes,
    least_bytes,
    piled_up,
    right_images,
    room,
    same_again,
    throws_out,
    wants_more_room,
    where_it_can,
)
from labkit.oracles.lab07.resident import (
    copied_bytes,
    copies_once,
    forgets_memory,
    in_time,
    negative,
    plans_as,
    refuses_the_full,
    right_plans,
    right_total,
    rounded_down,
    rounded_up,
    stays_bytes,
    total_of,
    waits_in_every_step,
)
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle


def enough_kept(run: CaseRun[Pictures]) -> bool:
    return all(kept >= least for kept, least in zip(kept_bytes(run), least_bytes(run), strict=True))


def or_no_difference(mistake: Callable[[CaseRun[Pictures]], bool]) -> Callable[[CaseRun[Pictures]], object]:
    """A diagnosis of what is kept. CANNOT_TELL where just that is right."""
    return lambda run: CANNOT_TELL if keeps_what_fits(run) is None else right_images(run) is None and mistake(run)


CACHE = Oracle(
    id="07-cache",
    judge=(
        right_images,
        augmented_anew,
        decoded_lazily,
        keeps_what_fits,
        right_total,
        copies_once,
        stays_bytes,
        in_time,
        right_plans,
    ),
    errors={
        "by zero": "Where an epoch takes as long from the device as through the loader, there is nothing to gain: "
        "pays_from returns None, and divides by nothing.",
        "takes float32": "The images are bytes from 0 to 255, and the model gets numbers from 0 to 1: divide by 255 on "
        "the device.",
    },
    diagnose=(
        Hint(
            same_again,
            "What is kept has been augmented already, so an image looks the same in every epoch. Keep what decode "
            "returns, and augment it each time.",
        ),
        Hint(
            bare,
            "An image that was decoded just now is augmented, and an image that comes out of the cache is not. Augment "
            "both.",
        ),
        Hint(
            piled_up,
            "augment changes the image that it is given, and that is the one in the cache, so one augmentation comes "
            "on top of the other. Give it a copy: image.clone().",
        ),
        Hint(
            lambda run: run.got["n_decoded"][0] > 0,
            "Images are decoded before anyone has asked for them, so training starts late. Decode in __getitem__, "
            "where the image is needed for the first time.",
        ),
        Hint(
            where_it_can(lambda run: not any(kept_bytes(run)), 0.1, 1.0),
            "Nothing is kept: every epoch decodes all images again.",
        ),
        Hint(
            or_no_difference(counts_files),
            "More is kept than max_bytes. The cache holds decoded images: count image.nbytes, not the length of the "
            "file.",
        ),
        Hint(
            or_no_difference(counts_floats),
            "Less is kept than there is room for: a pixel of a decoded image takes one byte, not four. image.nbytes "
            "says how many there are.",
        ),
        Hint(
            or_no_difference(keeps_one_too_many),
            "One image too many is kept: your answer asks whether any room is left, not whether this image fits into "
            "it. Add its bytes before you compare.",
        ),
        Hint(
            or_no_difference(full_for_good),
            "After the first image for which there is no room, nothing is kept any more, although smaller images still "
            "fit. Look at each image by itself.",
        ),
        Hint(
            or_no_difference(wants_more_room),
            "An image that just fits is not kept. At most max_bytes may be kept, so exactly max_bytes, too.",
        ),
        Hint(
            where_it_can(lambda run: min(kept_bytes(run)) == all_bytes(run) > room(run), 0.0, 0.99),
            "The cache has no limit that holds. Before an image is kept, look whether the decoded bytes of all that "
            "are kept, this one included, are at most max_bytes.",
        ),
        Hint(
            where_it_can(lambda run: not enough_kept(run) and throws_out(run), 0.1, 0.99),
            "Images are thrown out to make room for others. An epoch asks for every image once, so what is thrown out "
            "is needed as soon as what takes its place. Keep what is there, and do not keep what no longer fits.",
        ),
        Hint(
            lambda run: math.isclose(run.got["total"], total_of(run, scale=1.0), rel_tol=1e-3),
            "The pixels are bytes from 0 to 255, and the model was given them as they are. Divide by 255 on the "
            "device.",
        ),
        Hint(
            lambda run: right_total(run) is None and copied_bytes(run) == run.case.n_epochs * run.tree["train"].numel(),
            "The images are copied again in every epoch. Copy all of them once, before the first step, and cut the "
            "batches out of what lies on the device.",
        ),
        Hint(
            lambda run: right_total(run) is None and copied_bytes(run) == 4 * run.tree["train"].numel(),
            "The images are copied as float32, four times as many bytes. Copy them as they are, and divide on the "
            "device.",
        ),
        Hint(
            lambda run: right_total(run) is None and waits_in_every_step(run),
            "The host asks for a value in every step, and waits for it. Add up on the device, and ask once at the end.",
        ),
        Hint(
            lambda run: right_total(run) is None and stays_bytes(run) is not None,
            "The images lie on the device as float32, which takes four times the memory. Keep them as bytes there, and "
            "divide a batch when it is needed.",
        ),
        Hint(
            plans_as(refuses_the_full),
            "Data that take just the free memory fit into it.",
        ),
        Hint(
            plans_as(rounded_up),
            "After a number of epochs both have taken just as long, and nothing is gained yet. It pays from the next "
            "epoch on.",
        ),
        Hint(plans_as(rounded_down), "Round up to the first epoch at whose end something has been gained."),
        Hint(
            plans_as(negative),
            "Where an epoch takes longer from the device than through the loader, it never pays: None, and no negative "
            "number.",
        ),
        Hint(plans_as(forgets_memory), "Where the data do not fit into the device's free memory, it never pays: None."),
    ),
    call=lambda run: (
        f"CachedImages(<{run.case.n} files>, decode, augment, max_bytes={room(run):,}), "
        f"train_resident(<{run.case.n_train} images>, model, device, n_epochs={run.case.n_epochs}, "
        f"batch_size={run.case.batch_size}), and pays_from with {len(run.tree['plans'])} plans"
    ),
    axis="caches for nearly all of the images, for hardly any and for none, and other times",
)
