"""How many submissions a minute our grader manages, beside stock `nbgrader autograde` on the same submissions.

Stock runs the notebooks as they are, unprotected and with the public cases only; ours runs hidden cases as well, once
on each tier. Both are started like any command, by turns on parts of the class, so that both meet the same noise; a
minute's worth is told with the start-up (once for the whole class) and without. Also: what the grader adds to the
checks' own computing, and whether time and memory grow with the class. What cannot run here is "not run".
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median

from benchmarks import _alone
from benchmarks._meter import MiB, Timed, full_marks, run_ours, run_stock
from benchmarks._submissions import TRIVIAL, Class, make_course, mixed_class, right_class
from grading.isolation.probe import try_tier
from grading.isolation.tiers import BWRAP, KERNEL, LAYERED, NONE, isolates, tier_named
from grading.terminal import say, table
from labkit import exercises

LABS = {"02": "02", "trivial": TRIVIAL}
TIERS = (LAYERED.name, KERNEL.name, BWRAP.name, NONE.name)
STOCK_OF_100 = {"02": 12, "trivial": 100}
"""How many of a hundred stock grades: it takes long over a large lab, and as long over each."""

TARGETS = (
    ("02", KERNEL.name, "times_stock", 4.0),
    ("02", BWRAP.name, "times_stock", 2.0),
    ("trivial", KERNEL.name, "times_stock", 10.0),
    ("trivial", KERNEL.name, "per_minute", 240.0),
)
AIM = ("trivial", KERNEL.name, "times_stock", 20.0)
BESIDE_KERNEL = 1.3
"""How many times the kernel tier's time the default tier may take for a submission of the trivial lab."""
ADDED_S = 0.15
N_ALONE = 12
FLAT, LINEAR = 1.2, 1.2
"""How much the memory, and a submission's time, may grow over the whole range of sizes."""

NOT_RUN = "not run"


def main(argv: list[str]) -> dict:
    """Measure; prints tables and returns figures, with targets judged by those that include the start-up."""
    args = _parser().parse_args(argv)
    result: dict = {
        "load_at_start": _load(),
        "workers": args.workers,
        "chunks": args.chunks,
        "tiers": _tiers(args.tiers),
    }
    with tempfile.TemporaryDirectory(prefix="grading-bench-") as folder:
        for name in args.lab:
            root = Path(folder) / name
            course, lab = make_course(root / "course", LABS[name])
            stock_n = args.stock if args.stock is not None else args.n * STOCK_OF_100[name] // 100
            result[name] = _compared(root, mixed_class(course, lab, args.n), args, stock_n)
            if KERNEL.name in args.tiers:
                result[name]["added"] = _added(root, right_class(course, lab, N_ALONE, own_style=False))
            _show(name, result[name])
        if args.scale:
            root = Path(folder) / "scale"
            course, lab = make_course(root / "course", TRIVIAL)
            result["scale"] = _scaled(root, mixed_class(course, lab, max(args.scale)), args)
    result["targets"] = _judged(result)
    result["load_at_end"] = _load()
    say(
        *table(
            ("target", "measured", "met"),
            [(each["target"], each["measured"], each["met"]) for each in result["targets"]],
        )
    )
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks grading", description=__doc__.splitlines()[0])
    parser.add_argument("--lab", nargs="*", choices=LABS, default=list(LABS))
    parser.add_argument("--n", type=int, default=100, help="submissions of each lab")
    parser.add_argument(
        "--stock", type=int, help="how many of them stock grades (default: 12 %% of lab 02, all of the other)"
    )
    parser.add_argument("--tiers", nargs="*", choices=TIERS, default=list(TIERS))
    parser.add_argument("--chunks", type=int, default=4, help="parts of the class, which the graders take by turns")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scale", type=int, nargs="*", default=[], help="sizes of the class, as in 100 500 2000")
    return parser


def _tiers(asked: Sequence[str]) -> dict[str, str]:
    """What there is to say of each tier: "works", or why it is not run."""
    found = {}
    for tier in TIERS:
        if tier not in asked:
            found[tier] = f"{NOT_RUN}: not asked for"
        elif _works(tier):
            found[tier] = "works"
        else:
            found[tier] = f"{NOT_RUN}: {try_tier(tier_named(tier)).reason}"
    return found


def _works(tier: str) -> bool:
    return not isolates(tier) or try_tier(tier_named(tier)).works


def _compared(root: Path, whole: Class, args: argparse.Namespace, stock_n: int) -> dict:
    """Every grader on every part of the class, each part in another order."""
    graders: dict[str, Callable[[Path, Sequence[str]], Timed]] = {
        tier: lambda path, students, tier=tier: _ours(path, whole, students, tier, args.workers)
        for tier in args.tiers
        if _works(tier)
    }
    share = max(2, stock_n // args.chunks)
    graders["stock"] = lambda path, students: _stock(path, whole, students[:share])
    timed: dict[str, list[Timed]] = {name: [] for name in graders}
    names = list(graders)
    for i in range(args.chunks):
        students = _part(whole.students, i, args.chunks)
        for name in names[i % len(names) :] + names[: i % len(names)]:
            timed[name].append(graders[name](root / f"{name}-{i}", students))
            print(
                f"{whole.lab}, part {i + 1} of {args.chunks}, {name}: {timed[name][-1].seconds_each:.3f} s each",
                flush=True,
            )
    result: dict = {"submissions": args.n, "stock_submissions": sum(each.n for each in timed["stock"])}
    if len(names) > 1:
        result["stock_share_weight"] = _weight(timed[names[0]], share)
    for name in graders:
        result[name] = _figures(timed[name], args.n)
    for tier in (name for name in graders if name != "stock"):
        for figure, name in (("per_minute", "times_stock"), ("per_minute_started", "times_stock_started")):
            result[tier][name] = round(result[tier][figure] / result["stock"][figure], 2)
    return result


def _weight(parts: Sequence[Timed], share: int) -> float:
    """What a submission that stock grades takes our grader, beside what any of the class does: 1 is a fair share."""
    everything = [own_s for part in parts for own_s in part.own_s.values()]
    stocks = [own_s for part in parts for _, own_s in sorted(part.own_s.items())[:share]]
    return round(mean(stocks) / mean(everything), 3)


def _part(students: Sequence[str], i: int, n_parts: int) -> Sequence[str]:
    size = -(-len(students) // n_parts)
    return students[i * size : (i + 1) * size]


def _figures(parts: Sequence[Timed], n: int) -> dict:
    """Medians over the parts; per_minute is that of a single run over all n, start-up included."""
    each_s, start_s = median(part.seconds_each for part in parts), median(part.start_and_end_s for part in parts)
    found = {
        "per_minute": round(60 * n / (start_s + n * each_s), 2),
        "per_minute_started": round(60 / each_s, 2),
        "start_and_end_s": round(start_s, 2),
        "seconds_each": round(each_s, 4),
        "seconds_each_by_part": [round(part.seconds_each, 4) for part in parts],
    }
    return found


def _ours(path: Path, whole: Class, students: Sequence[str], tier: str, workers: int) -> Timed:
    """Grades that are not as they should be would make the time worthless."""
    course = whole.fill(path, students)
    timed = run_ours(course, whole.lab, tier, workers)
    core = with_points(whole.lab)
    for student, full in full_marks(course, whole.lab, core).items():
        if wrong := sorted(full ^ (whole.made[student].earns & set(core))):
            raise RuntimeError(f"{tier}: {student} should have other marks for {', '.join(wrong)}")
    shutil.rmtree(path)
    return timed


def with_points(lab: str) -> list[str]:
    """Its exercises that have points of their own: of extra credit, nothing is all that a check cell may give."""
    return [name for name, one in exercises.of_lab(lab[:2]).items() if not one.optional]


def _stock(path: Path, whole: Class, students: Sequence[str]) -> Timed:
    """Has no hidden cases, so what is right has to pass and no more can be said."""
    course = whole.fill(path, students, is_stock=True)
    timed = run_stock(course, whole.lab)
    core = with_points(whole.lab)
    for student, full in full_marks(course, whole.lab, core).items():
        if missing := sorted(whole.made[student].earns & set(core) - full):
            raise RuntimeError(f"stock: {student} should have all points for {', '.join(missing)}")
    shutil.rmtree(path)
    return timed


def _added(root: Path, whole: Class) -> dict | str:
    """A submission with everything right, one at a time, against its checks in one process.

    On a busy machine only the CPU times can be compared: those of the writer, the judging process and the student's.
    """
    if not _works(KERNEL.name):
        return NOT_RUN
    course = whole.fill(root / "alone", whole.students)
    timed, alone = run_ours(course, whole.lab, KERNEL.name, 1), _alone.measure(course, whole.lab)
    shutil.rmtree(course.root)
    cpu_s, own_cpu_s = timed.supervisor_cpu_s, median(timed.own_cpu_s.values())
    found = {
        "alone_wall_s": alone.wall_s,
        "alone_cpu_s": alone.cpu_s,
        "alone_judging_cpu_s": alone.judge_cpu_s,
        "graded_wall_s": timed.seconds_each,
        "supervisor_cpu_s": cpu_s,
        "students_cpu_s": own_cpu_s,
        "added_wall_s": timed.seconds_each - alone.wall_s,
        "added_cpu_s": cpu_s + own_cpu_s - alone.cpu_s,
    }
    return {"submissions": timed.n, **{name: round(value, 4) for name, value in found.items()}}


def _scaled(root: Path, whole: Class, args: argparse.Namespace) -> list[dict] | str:
    if not _works(KERNEL.name):
        return NOT_RUN
    rows = []
    for n in sorted(args.scale):
        path = root / f"class-{n}"
        timed = run_ours(whole.fill(path, whole.students[:n]), whole.lab, KERNEL.name, args.workers)
        shutil.rmtree(path)
        peak = timed.samples[-1]
        rows.append(
            {
                "submissions": n,
                "seconds_each": round(timed.seconds_each, 4),
                "total_s": round(timed.total_s, 2),
                "writer_peak_mib": round(peak.writer_bytes / MiB, 1),
                "pool_peak_mib": round(peak.pool_bytes / MiB, 1),
            }
        )
        say(*table(rows[0], [row.values() for row in rows]))
    return rows


def _judged(result: dict) -> list[dict]:
    """Every target with what was measured for it."""
    judged = []
    for lab, tier, figure, least in (*TARGETS, AIM):
        measured = result.get(lab, {}).get(tier, {}).get(figure)
        what = f"lab {lab}, {tier}: {figure} at least {least:g}{' (aim)' * ((lab, tier, figure, least) == AIM)}"
        judged.append(_against(what, measured, lambda value, least=least: value >= least))
    trivial = result.get("trivial", {})
    layered_s, kernel_s = (trivial.get(tier.name, {}).get("seconds_each") for tier in (LAYERED, KERNEL))
    times = round(layered_s / kernel_s, 3) if layered_s and kernel_s else None
    what = f"lab trivial: {LAYERED.name} takes at most {BESIDE_KERNEL:g} times as long as {KERNEL.name}"
    judged.append(_against(what, times, lambda value: value <= BESIDE_KERNEL))
    for lab in LABS:
        added = result.get(lab, {}).get("added", NOT_RUN)
        for figure in ("added_wall_s", "added_cpu_s"):
            measured = None if added == NOT_RUN else added[figure]
            judged.append(_against(f"lab {lab}: {figure} at most {ADDED_S}", measured, lambda value: value <= ADDED_S))
    rows = result.get("scale", NOT_RUN)
    for figure, most in (("seconds_each", LINEAR), ("writer_peak_mib", FLAT), ("pool_peak_mib", FLAT)):
        growth = None if rows == NOT_RUN or len(rows) < 2 else round(rows[-1][figure] / rows[0][figure], 3)
        what = f"largest class beside smallest: {figure} grows at most {most:g} times"
        judged.append(_against(what, growth, lambda value, most=most: value <= most))
    return judged


def _against(what: str, measured: float | None, is_met: Callable[[float], bool]) -> dict:
    if measured is None:
        return {"target": what, "measured": NOT_RUN, "met": NOT_RUN}
    return {"target": what, "measured": measured, "met": "yes" if is_met(measured) else "NO"}


def _show(name: str, found: dict) -> None:
    header = ("lab", "grader", "a minute", "once started", "times stock", "once started", "start and end s")
    rows = [
        (
            name,
            grader,
            figures["per_minute"],
            figures["per_minute_started"],
            figures.get("times_stock", 1),
            figures.get("times_stock_started", 1),
            figures["start_and_end_s"],
        )
        for grader, figures in found.items()
        if grader in (*TIERS, "stock")
    ]
    say(*table(header, rows))
    if "added" in found and found["added"] != NOT_RUN:
        say(*table(found["added"], [found["added"].values()]))


def _load() -> float:
    return round(os.getloadavg()[0], 2)
