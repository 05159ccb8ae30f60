"""Run an answer on one case through its exercise's driver, and write down what happened.

The same code runs beside the student's notebook and in the grader's worker. It judges nothing and knows no
expected value.
"""

from __future__ import annotations

import contextlib
import functools
import io
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from labkit.devices import device, seed_all
from labkit.forbidden_calls import forbidden_call
from labkit.forbids import refusal
from labkit.full_precision import full_float32
from labkit.limits import OverLimit, time_limit
from labkit.measures import held_of_ranks, in_short, of_ranks
from labkit.meters.full_size import full_size_figures, without_data
from labkit.meters.launches import KernelLaunch
from labkit.meters.memory import load_imports_of, load_late_modules
from labkit.ranks import Comm, CommError, RankFailed, simulate
from labkit.ranks.scheduler import Stopped
from labkit.ranks.traffic import figures
from labkit.spec import STUB_MESSAGE, Case, Exercise, Observation, Tree, Trouble
from labkit.stage import Stage
from labkit.store import BookedStore, Books, Store, books_of, part_of_job
from labkit.tree import clone, part_of, plain
from labkit.troubles import trouble_of


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


def observe(
    exercise: Exercise,
    answers: SimpleNamespace,
    case: Case,
    tree: Tree,
    wall_s: float | None = None,
    cpu_s: float | None = None,
    lend: bool = False,
) -> Observation:
    """Drive the answer on private copies of `tree`; whatever it raises becomes a Trouble.

    lend: hand over `tree` itself and do not look at it afterwards, for runs whose memory is watched from outside.

    Runs with every generator seeded and in `known_settings`, so that neither the notebook's earlier cells nor an
    earlier run can change the outcome. Ranks get copies of their own each, of inputs under "ranks" their own part alone
    (`labkit.tree.part_of`), and what came back and the inputs afterwards are `{"ranks": [tree of rank 0, ...]}`, also
    where a case has one rank and others have more. With a store they are `{"jobs": [tree of job 0, ...]}`, with None
    for a job that was killed.

    Where calls are forbidden, the first public case runs once more to see whether the answer makes one.
    """
    drive = _drive_one if exercise.run.ranks == 1 else _drive_ranks
    books = books_of(tree) if exercise.run.store else None
    if books is not None:
        drive = functools.partial(_drive_jobs, books)
    _load_before_memory_is_measured(exercise, answers)
    with _stage() as stage:
        try:
            with time_limit(wall_s or exercise.run.wall_s, cpu_s or exercise.run.cpu_s):
                got, back = drive(exercise, answers, case, tree, stage, lend)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Observation(case, tree, measured=stage.measured, trouble=trouble_of(error))
    if case == exercise.public[0] and not lend and (trouble := _forbidden(exercise, answers, case, tree)):
        return Observation(case, tree, trouble=trouble)
    return Observation(
        case,
        tree,
        got,
        back,
        stage.measured,
        held=in_short(stage.held),
        books=books and books.record(),
        moments=tuple(stage.moments),
    )


def _forbidden(exercise: Exercise, answers: SimpleNamespace, case: Case, tree: Tree) -> Trouble | None:
    """What speaks against an answer that calls what the exercise forbids, seen in a run of its own; not among ranks
    or jobs.
    """
    if not exercise.forbids or exercise.run.ranks != 1 or exercise.run.store:
        return None

    def run() -> None:
        # It has printed what it has to say.
        printed = contextlib.redirect_stdout(io.StringIO())
        with _stage() as stage, printed, time_limit(exercise.run.wall_s, exercise.run.cpu_s):
            exercise.drive(answers, case, clone(tree), stage)

    found = forbidden_call(exercise.forbids, vars(answers), run)
    return refusal(found) if found else None


def observe_full_size(
    exercise: Exercise,
    answers: SimpleNamespace,
    figures: Callable[[Sequence[KernelLaunch]], dict[str, float]] = full_size_figures,
) -> Observation:
    """Drive the answer on `Exercise.full_size`, on tensors without data: no kernel runs, and nothing is returned.

    figures: what is measured of the launches that it would have made.
    """
    case = exercise.full_size
    with _stage() as stage:
        unmetered = _Unmetered(stage.device, stage.tmp)
        try:
            with time_limit(exercise.run.wall_s, exercise.run.cpu_s):
                with without_data() as launches:
                    tree = exercise.inputs(case, torch.Generator().manual_seed(0))
                    exercise.drive(answers, case, tree, unmetered)
                measured = figures(launches)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return Observation(case, {}, trouble=trouble_of(error))
    return Observation(case, {}, {}, {}, measured)


class _Unmetered(Stage):
    """Where nothing runs, there is nothing to measure."""

    def meter(self, name: str) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def observe_rank(
    exercise: Exercise, answers: SimpleNamespace, case: Case, part: Tree, comm: Comm, lend: bool = False
) -> Observation:
    """Drive the answer as one rank alone, whose others are elsewhere behind `comm`. part: what this rank is fed.

    lend: as for `observe`.
    A Trouble of the kind "stopped" says that the run had ended for a reason that lies with another rank.
    """
    _load_before_memory_is_measured(exercise, answers)
    with _stage(comm) as stage:
        try:
            with time_limit(exercise.run.wall_s, exercise.run.cpu_s):
                got, back = _drive_one(exercise, answers, case, part, stage, lend)
        except (CommError, OverLimit, Stopped) as error:
            return Observation(case, part, measured=stage.measured, trouble=trouble_of(error))
        except BaseException as error:
            return Observation(case, part, measured=stage.measured, trouble=trouble_of(RankFailed(comm.rank, error)))
    return Observation(case, part, got, back, stage.measured, held=in_short(stage.held))


def observe_job(
    exercise: Exercise, answers: SimpleNamespace, case: Case, part: Tree, store: Store, job: int
) -> Observation:
    """Drive the answer as one job alone, on a store that is kept elsewhere. part: what every job is given."""
    _load_before_memory_is_measured(exercise, answers)
    with _stage() as stage:
        own = replace(stage, store=store, job=job)
        try:
            with time_limit(exercise.run.wall_s, exercise.run.cpu_s):
                got, back = _drive_one(exercise, answers, case, part, own, lend=False)
        except BaseException as error:
            return Observation(case, part, measured=own.measured, trouble=trouble_of(error))
    return Observation(case, part, got, back, own.measured, held=in_short(own.held))


def _load_before_memory_is_measured(exercise: Exercise, answers: SimpleNamespace) -> None:
    """What would be imported in a measured block else; the time that it takes is not the answer's either."""
    if {"memory", "saved"} & set(exercise.meters):
        with known_settings():
            load_late_modules()
            load_imports_of(vars(answers).values())


@contextlib.contextmanager
def _stage(comm: Comm | None = None) -> Iterator[Stage]:
    """A fresh stage, with every generator seeded and in `known_settings`. comm: of a rank that has one for itself."""
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder, known_settings():
        seed_all(0)
        stage = Stage(device=device(), tmp=Path(folder))
        with stage.clock:
            yield stage if comm is None else replace(stage, **_of_rank(comm))


def _of_rank(comm: Comm) -> dict[str, Any]:
    """A rank lives where its messages do, also on a machine with a GPU.

    There one thread goes backward for all ranks of a process: one that waits in it for a message would wait for ever.
    """
    return {"device": comm.device, "rank": comm.rank, "world_size": comm.world_size, "comm": comm}


def _drive_one(
    exercise: Exercise, answers: SimpleNamespace, case: Case, tree: Tree, stage: Stage, lend: bool
) -> tuple[Tree, Tree]:
    """What the driver returned, and its inputs afterwards."""
    sent = tree if lend else clone(tree)
    got = plain(exercise.drive(answers, case, sent, stage))
    return got, None if lend else plain(sent)


def _drive_ranks(
    exercise: Exercise, answers: SimpleNamespace, case: Case, tree: Tree, stage: Stage, lend: bool
) -> tuple[Tree, Tree]:
    """The same of every rank. What was measured is the worst figure of any rank, and the traffic; what was held is
    that of the same rank.
    """
    run = exercise.run

    def drive(comm: Comm) -> tuple[Tree, Tree, Stage]:
        own = replace(stage, **_of_rank(comm), measured={}, held={}, marks=[])
        return *_drive_one(exercise, answers, case, part_of(tree, comm.rank), own, lend), own

    results, traffic = simulate(drive, n_ranks(exercise, case), run.cluster(case) if run.cluster else None)
    stage.measured.update(of_ranks([stage.measured, *(own.measured for _, _, own in results)]))
    stage.measured.update(figures(traffic))
    stage.moments.extend(traffic.moments)
    stage.held.update(held_of_ranks([(own.measured, own.held) for _, _, own in results]))
    return {"ranks": [got for got, _, _ in results]}, {"ranks": [back for _, back, _ in results]}


def _drive_jobs(
    books: Books, exercise: Exercise, answers: SimpleNamespace, case: Case, tree: Tree, stage: Stage, lend: bool
) -> tuple[Tree, Tree]:
    """The same of every job, one after the other on one store; None of one that was killed, whatever it did then."""
    results: list[tuple[Tree, Tree]] = []
    stages = []
    for _ in range(books.n_jobs):
        with _stage() as fresh:
            own = replace(fresh, store=BookedStore(books), job=books.begin_job())
            stages.append(own)
            try:
                result = _drive_one(exercise, answers, case, part_of_job(tree), own, lend)
            except (OverLimit, KeyboardInterrupt):
                raise
            except BaseException:
                if not books.is_killed:
                    raise
            results.append((None, None) if books.is_killed else result)
    stage.measured.update(of_ranks(own.measured for own in stages) | books.figures())
    stage.held.update(held_of_ranks([(own.measured, own.held) for own in stages]))
    return {"jobs": [got for got, _ in results]}, {"jobs": [back for _, back in results]}


@contextlib.contextmanager
def known_settings() -> Iterator[None]:
    """Run a block with gradients on, float32 as the default dtype and in full, and one thread; put all back afterwards.

    One thread, because the order of additions and so the last bits depend on their number, and because the cases are
    too small to gain from more. Warnings and whatever else goes to stderr is printed to stdout.
    """
    grad, dtype, threads = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)
    # A warning on stderr would cost the mark in a plain nbgrader test cell.
    with contextlib.redirect_stderr(sys.stdout), full_float32():
        try:
            yield
        finally:
            torch.set_grad_enabled(grad)
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)
