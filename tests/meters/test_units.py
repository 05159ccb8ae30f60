"""Figures in words: with their units, beside their limits, by their names."""

from __future__ import annotations

import pytest

from labkit.units import by_name, in_bytes, in_unit, of_limit

KiB, MiB, GiB = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (640, "640 B"),
        (1023.4, "1023 B"),
        (1023.6, "1.0 KiB"),
        (12.5 * KiB, "12.5 KiB"),
        (3.2 * MiB, "3.20 MiB"),
        (-3.2 * MiB, "-3.20 MiB"),
        (1023.999 * MiB, "1.00 GiB (1.07 GB)"),
        (16e9, "14.90 GiB (16.00 GB)"),
    ],
)
def test_bytes(n_bytes: float, text: str) -> None:
    assert in_bytes(n_bytes) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1023, "bytes", "1,023 bytes"),
        (4096, "bytes", "4,096 bytes (4.0 KiB)"),
        (3 * MiB, "bytes", "3,145,728 bytes (3.0 MiB)"),
        (5000, "operations", "5,000 operations"),
        (4 / 32, "of each sector", "12.5% of each sector"),
        (0.1661, "seconds", "166 ms"),
        (12.3, "seconds", "12 seconds"),
    ],
)
def test_a_figure_with_its_unit(value: float, unit: str, text: str) -> None:
    assert in_unit(value, unit) == text


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("dispatches", 49, 288, "operations"), "49 of 288 operations"),
        (("peak_bytes", 109.3 * KiB, 151.1 * KiB, "bytes"), "109.3 of 151.1 KiB (peak)"),
        (("saved_bytes", 5, 2 * MiB, "bytes"), "0.0 of 2.0 MiB (saved)"),
        (("bytes_sent", 5, 40, "bytes"), "5 of 40 bytes (bytes_sent)"),
        (("seconds", 1.25, 0.4, "seconds"), "1,250 of 400 ms"),
    ],
)
def test_a_measure_beside_its_limit(given: tuple, text: str) -> None:
    assert of_limit(*given) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("peak_bytes", 3 * MiB, "peak 3.0 MiB"),
        ("_bytes", 3 * MiB, "3.0 MiB"),
        ("wall_s", 1.25, "wall 1.25 s"),
        ("messages", 1200, "messages 1,200"),
        ("", 1200.5, "1,200.5"),
        ("seconds", None, "seconds None"),
    ],
)
def test_a_figure_by_its_name(name: str, value: object, text: str) -> None:
    assert by_name(name, value) == text
