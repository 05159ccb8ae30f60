"""No code but the tiers' own module compares a tier's name."""

from __future__ import annotations

import ast
import re

from grading.isolation.tiers import NONE, TIERS
from tests.module_imports import ROOT, dotted, modules

NAMES = {*TIERS, NONE.name}
OTHER_MEANINGS = {("kind", "kernel"), ("cat", "kernel"), ("times", "none")}
"""Comparisons with a word that is also a tier's name, by the name of what is compared: launches, times of hand-ins."""
QUOTED = re.compile(rf"[\"']({'|'.join(NAMES)})[\"']")
"""A file without one compares nothing with it, and need not be parsed."""


def parts_of(side: ast.AST) -> list[ast.AST]:
    """What is compared where `side` stands: itself, the elements of a display, the value of a pattern."""
    if isinstance(side, ast.Tuple | ast.List | ast.Set):
        return side.elts
    return list(ast.walk(side)) if isinstance(side, ast.pattern) else [side]


def tiers_compared_by_name(source: str) -> list[str]:
    """What this module compares with a tier's name, one of a match statement included."""
    found = []
    if not QUOTED.search(source):
        return []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        else:
            continue
        compared = {word for side in sides for word in re.findall(r"\w+", ast.unparse(side))[-1:]}
        names = {one.value for side in sides for one in parts_of(side) if isinstance(one, ast.Constant)} & NAMES
        meant = {(what, name) for what in compared for name in names} & OTHER_MEANINGS
        if names - {name for _, name in meant}:
            found.append(ast.unparse(node).splitlines()[0])
    return found


def test_only_the_tiers_own_module_tells_them_apart_by_name() -> None:
    told = {
        str(path.relative_to(ROOT)): tiers_compared_by_name(path.read_text(encoding="utf-8"))
        for folder in ("grading", "benchmarks")
        for path in modules(folder)
        if dotted(path) != "grading.isolation.tiers"
    }
    assert {path: lines for path, lines in told.items() if lines} == {}
    compared = re.compile(rf"[=!]= *[\"']({'|'.join(NAMES)})[\"']")
    assert [path for path in (ROOT / "grading").rglob("*.j2") if compared.search(path.read_text())] == []


def test_a_tier_that_is_told_by_its_name_is_seen() -> None:
    """The control: compared, looked for, matched; and not where the word means something else."""
    kernel, none = "tier == 'kernel'", "'none' != plan.isolation"
    assert tiers_compared_by_name(f"if {kernel} or {none}: pass") == [kernel, none]
    assert tiers_compared_by_name("x = tier in ('bwrap', 'kernel')") == ["tier in ('bwrap', 'kernel')"]
    assert tiers_compared_by_name("match tier:\n    case 'bwrap': pass") == ["match tier:"]
    assert tiers_compared_by_name("kind == 'kernel'; event['cat'] == 'kernel'; way.times == 'none'; f('bwrap')") == []
