"""A text cut to a length says that it was cut."""

from __future__ import annotations

from labkit.cut import cut


def test_what_fits_is_kept_and_what_does_not_ends_in_dots() -> None:
    assert cut("0123456789", 10) == "0123456789"
    assert cut("0123456789+", 10) == "0123456..."
    assert cut("012345 789+", 10) == "012345..."
