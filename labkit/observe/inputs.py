"""What a run is given: the inputs of a case, drawn from a seed, and the answers by name. Nothing is run here."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from types import SimpleNamespace

import torch

from labkit.observe.surroundings import known_settings
from labkit.spec import STUB_MESSAGE, Case, Exercise, Tree, Trouble
from labkit.tree import plain


def public_seed(exercise_id: str, index: int) -> int:
    """The seed of an exercise's public case: the same in every notebook and at every check."""
    return zlib.crc32(f"{exercise_id}#{index}".encode())


def make_inputs(exercise: Exercise, case: Case, seed: int) -> Tree:
    """The inputs of a case as a plain tree, every random number drawn from `seed`.

    Raises ValueError where the parts for the ranks are not one for each of them.
    """
    generator = torch.Generator().manual_seed(seed)
    with known_settings():
        tree = plain(exercise.inputs(case, generator))
    if exercise.run.ranks != 1 and isinstance(tree, dict):
        _check_parts(exercise, case, tree)
    return tree


def n_ranks(exercise: Exercise, case: Case) -> int:
    """How many ranks a case of the exercise has."""
    ranks = exercise.run.ranks
    return ranks(case) if callable(ranks) else ranks


def _check_parts(exercise: Exercise, case: Case, tree: Tree) -> None:
    if "mine" in tree:
        raise ValueError(f"{exercise.id}: an input is called `mine`, which is what each rank's own part is called")
    n, parts = n_ranks(exercise, case), tree.get("ranks", [])
    if "ranks" in tree and not (isinstance(parts, list) and len(parts) == n):
        n_parts = len(parts) if isinstance(parts, list) else "no list of"
        raise ValueError(f'{exercise.id}: `inputs` made {n_parts} parts under "ranks", and the case has {n} ranks')


def gather_answers(exercise: Exercise, found: Mapping[str, object]) -> SimpleNamespace | Trouble:
    """The answers by name as the driver wants them, or what is missing."""
    for answer in exercise.answers:
        if answer.name not in found:
            return Trouble("missing", f"there is no `{answer.name}`: was it renamed, or did its cell fail?")
        if found[answer.name] is None or found[answer.name] is Ellipsis:
            return Trouble("unanswered", STUB_MESSAGE)
        if answer.kind == "text":
            if not isinstance(found[answer.name], str):
                return Trouble("type", f"`{answer.name}` should be the text of a cell")
            if not found[answer.name].strip() or STUB_MESSAGE in found[answer.name]:
                return Trouble("unanswered", STUB_MESSAGE)
        if answer.kind == "object" and not callable(found[answer.name]):
            kind = type(found[answer.name]).__name__
            return Trouble("type", f"`{answer.name}` should be a function or a class, but it is of type {kind}")
    return SimpleNamespace(**{answer.name: found[answer.name] for answer in exercise.answers})
