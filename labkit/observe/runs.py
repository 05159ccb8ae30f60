"""One run of a case: in this process, by all ranks or jobs of it, or as one of these alone.

What it is given and what it finds around it are made in `inputs` and `surroundings`.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import torch

from labkit.forbidden_calls import forbidden_call
from labkit.forbids import refusal
from labkit.limits import OverLimit, time_limit
from labkit.measures import held_of_ranks, in_short, of_ranks
from labkit.meters.full_size import forget_values, full_size_figures, without_data
from labkit.meters.launches import KernelLaunch
from labkit.meters.memory import load_imports_of, load_late_modules
from labkit.observe.inputs import n_ranks
from labkit.observe.surroundings import fresh_stage, known_settings, stage_of_rank
from labkit.ranks import Comm, CommError, RankFailed, simulate
from labkit.ranks.scheduler import Stopped
from labkit.ranks.traffic import figures
from labkit.spec import Case, Exercise, Observation, Tree, Trouble
from labkit.stage import Stage
from labkit.store import BookedStore, Books, Store, books_of, part_of_job
from labkit.tree import clone, part_of, plain
from labkit.troubles import trouble_of


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
    with fresh_stage() as stage:
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
        with fresh_stage() as stage, printed, time_limit(exercise.run.wall_s, exercise.run.cpu_s):
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
    with fresh_stage() as stage:
        unmetered = _Unmetered(stage.device, stage.tmp)
        try:
            with time_limit(exercise.run.wall_s, exercise.run.cpu_s):
                with without_data() as launches:
                    tree = exercise.inputs(case, torch.Generator().manual_seed(0))
                    forget_values(tree)
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
    with fresh_stage(comm) as stage:
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
    with fresh_stage() as stage:
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
        own = replace(stage, **stage_of_rank(comm), measured={}, held={}, marks=[])
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
        with fresh_stage() as fresh:
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
