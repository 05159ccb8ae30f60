"""Lab 02: what the oracles of the sums share: an error bound, and a list in few words."""

from __future__ import annotations

import math


def gamma(n: int, u: float) -> float:
    """gamma_n = n u / (1 - n u), which bounds the relative error of n roundings (Higham 2002, lemma 3.1)."""
    return n * u / (1 - n * u) if n * u < 1 else math.inf


def shorten(values: list[float], n_shown: int = 5) -> str:
    """A list, of which only the first numbers stand where it is longer."""
    texts = [f"{value:.6g}" for value in values[:n_shown]]
    return f"[{', '.join(texts)}{', ...' if len(values) > n_shown else ''}]"
