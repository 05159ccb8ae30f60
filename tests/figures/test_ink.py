"""The colour of small letters: that of what they are about where it can be read, a darker one of its kind elsewhere."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from labkit.figures.canvas import LEAST_CONTRAST, OTHER, TRUTH, YOURS, contrast_with_white, ink_like


@pytest.mark.parametrize(("colour", "contrast"), [("#ffffff", 1.0), ("#000000", 21.0), ("#767676", 4.54)])
def test_contrast_is_that_of_wcag(colour: str, contrast: float) -> None:
    assert contrast_with_white(np.array(to_rgb(colour))) == pytest.approx(contrast, abs=0.005)


@pytest.mark.parametrize("colour", [YOURS, OTHER, TRUTH, "#0072b2"])
def test_what_can_be_read_stays_as_it_is(colour: str) -> None:
    assert ink_like(colour) == colour


@pytest.mark.parametrize("colour", ["#E69F00", "#CC79A7", "#009E73", "#F0E442", "#ffffff"])
def test_what_is_too_pale_becomes_darker_and_keeps_its_hue(colour: str) -> None:
    ink = ink_like(colour)
    assert LEAST_CONTRAST <= contrast_with_white(np.array(to_rgb(ink))) < LEAST_CONTRAST + 0.4
    hue, saturation, _ = colorsys.rgb_to_hsv(*to_rgb(colour))
    assert colorsys.rgb_to_hsv(*to_rgb(ink))[:2] == pytest.approx((hue, saturation), abs=0.02)
