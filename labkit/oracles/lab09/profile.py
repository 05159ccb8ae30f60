"""Lab 09: what is true of a trace, and what the usual mistakes look like."""

from __future__ import annotations

import math
from collections.abc import Callable

from labkit.compare import inputs_untouched
from labkit.exercises.lab09.profile import TASKS, Session, recording_of, steady_events
from labkit.oracles.hints import not_written_yet
from labkit.oracles.lab09.profile_tasks import (
    EXACT_TO,
    RIGHT,
    TABLE,
    WORK,
    all_written,
    found_work,
    is_blank,
    is_next,
    right_idle,
    right_profile,
    right_share,
    wrong,
)
from labkit.oracles.lab09.traces import (
    after_the_step_began,
    by_time,
    gaps_to_the_one_before,
    idle_us,
    kernels_in,
    launched_by,
    launched_from,
    launched_since,
    of_one_digit,
    on_device,
    on_the_main_stream,
    share,
    share_by_each_mark,
    share_in_any_case,
    share_of_all_work,
    share_of_window,
    true_table,
    true_work,
    window_us,
    without_overlap,
)
from labkit.spec import CaseRun, Hint, Observation, Oracle


def work_is(chosen: Callable[[CaseRun[Session]], list]):
    return lambda run: found_work(run.got) == sorted(chosen(run), key=by_time) != true_work(run)


def has_categories(*cats: str):
    return lambda run: any(one[0] in cats for one in run.got["work"])


def lacks(keeps: Callable[[list], bool]):
    """Whether all right work for which this holds is missing, and nothing else."""

    def holds(run: CaseRun[Session]) -> bool:
        wanted = true_work(run)
        return found_work(run.got) == [one for one in wanted if not keeps(one)] != wanted

    return holds


def main_thread_only(run: CaseRun[Session]) -> bool:
    threads = {one.op.thread for one in recording_of(run.case, run.tree).work}
    return any(
        found_work(run.got) == sorted(launched_by(run, thread), key=by_time) != true_work(run) for thread in threads
    )


def idle_is(formula: Callable[[list[dict]], float]):
    """Whether the idle time is wrong and follows this formula on the events of the device."""

    def holds(run: CaseRun[Session]) -> bool:
        events = steady_events(run.case, run.tree)
        value = run.got["report"]["idle_us"]
        return right_idle(run) is not None and math.isclose(value, formula(events), rel_tol=EXACT_TO, abs_tol=1e-3)

    return holds


def share_is(formula: Callable[[CaseRun[Session]], float]):
    def holds(run: CaseRun[Session]) -> bool:
        value = run.got["report"]["tensor_core_share"]
        off = right_share(run) is not None
        return off and math.isclose(value, formula(run), rel_tol=EXACT_TO)

    return holds


def call_of(run: Observation) -> str:
    """The call of the first task that is wrong, or else of the first that is blank."""
    case, n_steps = run.case, run.case.n_cold + run.case.n_steps
    calls = {
        "work": f"gpu_work(events, first_step={case.n_cold}) on a trace of {n_steps} steps",
        "report": f"gpu_report(work, marks) on the work of {case.n_steps} steps",
        "own": f"profile_steps(step, n_unsteady={case.n_unsteady}, n_active={case.n_active})",
    }
    if run.got is None:
        return "; ".join(calls.values())
    failing = [part for part, right in zip(TASKS, RIGHT, strict=True) if wrong(part, right)(run)]
    return calls[(failing or [part for part in TASKS if is_blank(run, part)])[0]]


PROFILE = Oracle(
    id="09-profile",
    judge=(inputs_untouched, *RIGHT, all_written),
    call=call_of,
    axis="traces of other steps and streams, and other numbers of steps to record",
    diagnose=(
        *not_written_yet(TASKS.values(), is_next),
        Hint(
            lambda run: has_categories("cuda_runtime", "cuda_driver", "cpu_op")(run),
            "Calls of the host are among them. A launch takes microseconds of the host's time whatever the kernel "
            "does: only kernel, gpu_memcpy and gpu_memset ran on the device.",
        ),
        Hint(
            has_categories("gpu_user_annotation", "user_annotation"),
            "An annotation is a label around other events, not work, on the device's rows too. Choose by category: "
            "kernel, gpu_memcpy, gpu_memset.",
        ),
        Hint(
            lambda run: work_is(on_device)(run) or work_is(lambda run: launched_from(run, 0))(run),
            "The warm-up is still in it. Keep what was launched inside a ProfilerStep#n with n >= first_step.",
        ),
        Hint(
            work_is(launched_since),
            "What the program launched after its last step is in it, and belongs to no step. A step has an end as "
            "well, that of its user_annotation: keep what was launched between the start and the end of a "
            "ProfilerStep#n with n >= first_step.",
        ),
        Hint(
            work_is(lambda run: launched_from(run, run.case.n_cold + 1)),
            "The first of the steps that count is missing: n >= first_step includes first_step itself.",
        ),
        Hint(
            work_is(of_one_digit),
            "Steps from number 10 on are missing: compare whole numbers, int(name.split('#')[1]).",
        ),
        Hint(
            work_is(after_the_step_began),
            "The device runs behind the host: work that starts in a step may have been launched in the one before. "
            "Go by the time of the launch with the same correlation.",
        ),
        Hint(
            lacks(lambda one: one[0] != "kernel"),
            "Copies and memsets occupy the device as well: gpu_memcpy and gpu_memset.",
        ),
        Hint(lacks(lambda one: one[0] == "gpu_memset"), "A memset occupies the device as well: category gpu_memset."),
        Hint(lacks(lambda one: one[0] == "gpu_memcpy"), "A copy occupies the device as well: category gpu_memcpy."),
        Hint(
            lacks(lambda one: one[1].startswith("triton_")),
            "Some kernels have no launch in cuda_runtime: Triton launches through the driver, category cuda_driver.",
        ),
        Hint(
            main_thread_only,
            "Autograd launches the backward pass from a thread of its own, so do not compare threads: a step's bounds "
            "in time hold for all of them.",
        ),
        Hint(
            lambda run: WORK(run) and all(type(one) is list for one in run.got["work"]),
            "Two look-ups: the ProfilerStep of category user_annotation in whose time a launch lies, and the launch "
            "with the same args['correlation'] as the event of the device.",
        ),
        Hint(WORK, "gpu_work returns a list of the trace's own events, unchanged."),
        Hint(
            lambda run: (
                TABLE(run) and any(name.startswith(("Memcpy", "Memset")) for name, _, _ in run.got["report"]["kernels"])
            ),
            "The table is of kernels: leave copies and memsets to the idle time.",
        ),
        Hint(
            lambda run: (
                TABLE(run)
                and {(name, n) for name, n, _ in run.got["report"]["kernels"]}
                == {(name, n) for name, (n, _) in true_table(run).items()}
                and any(
                    math.isclose(us, true_table(run)[name][1] / n, rel_tol=EXACT_TO)
                    for name, n, us in run.got["report"]["kernels"]
                    if n > 1
                )
            ),
            "The time in the table is the total of all calls, not the mean.",
        ),
        Hint(
            TABLE,
            "One row (name, calls, total microseconds) for each name of a kernel, the longest total first. Durations "
            "are in `dur`.",
        ),
        Hint(
            idle_is(lambda events: idle_us(events) / 1e3),
            "That is in milliseconds: the trace counts in microseconds, and so does idle_us.",
        ),
        Hint(
            idle_is(without_overlap),
            "What overlaps was counted twice: while two streams run, one microsecond passes, not two. Take the union "
            "of the intervals.",
        ),
        Hint(
            idle_is(lambda events: window_us(events) - window_us(kernels_in(events)) + idle_us(kernels_in(events))),
            "Copies were left out: idle is the time in which nothing runs on the device, no kernel and no copy.",
        ),
        Hint(
            idle_is(lambda events: idle_us(kernels_in(events))),
            "Copies were left out: idle is the time in which nothing runs on the device, no kernel and no copy.",
        ),
        Hint(
            idle_is(lambda events: without_overlap(kernels_in(events))),
            "What overlaps was counted twice, and copies were left out: idle is the time in which nothing at all runs.",
        ),
        Hint(
            idle_is(lambda events: idle_us(on_the_main_stream(events))),
            "That is the idle time of one stream. Another may run meanwhile: take the events of all streams together.",
        ),
        Hint(
            idle_is(gaps_to_the_one_before),
            "A gap begins when the last of *all* earlier events has ended, not the one just before: keep the latest "
            "end so far.",
        ),
        Hint(
            wrong("report", right_idle),
            "Sort by start and keep the latest end so far. Where the next start lies after it, the difference is idle "
            "time.",
        ),
        Hint(
            share_is(lambda run: share(run, "calls")),
            "That is the share of the calls. Weigh every kernel with its time.",
        ),
        Hint(
            share_is(lambda run: share(run, "names")),
            "That is the share of the names in the table. Weigh every kernel with its time.",
        ),
        Hint(
            share_is(lambda run: 100 * share(run)),
            "A share is between 0 and 1, not a percentage.",
        ),
        Hint(
            share_is(share_in_any_case),
            "A kernel counts that has a mark in another case of the letters: compare as the names are written.",
        ),
        Hint(
            share_is(share_by_each_mark),
            "A kernel with two marks in its name counts twice. Ask once for each kernel whether any of the marks is in "
            "its name.",
        ),
        Hint(
            share_is(share_of_window),
            "Divide by the time of all kernels, not by the time from the first to the last event.",
        ),
        Hint(
            share_is(share_of_all_work),
            "Divide by the time of the kernels alone, without copies and memsets.",
        ),
        Hint(
            wrong("report", right_share),
            "A kernel counts if any of the marks is in its name: the summed time of those, divided by that of all "
            "kernels.",
        ),
        Hint(
            lambda run: run.got["own"]["recorded"] == list(range(run.case.n_unsteady + run.case.n_active)),
            "The unsteady steps are recorded too: give `profile` a schedule that begins with them.",
        ),
        Hint(
            lambda run: run.got["own"]["recorded"] == [] and run.got["own"]["calls"] > 0,
            "Nothing is recorded at the end. Call `prof.step()` after every step, and let the schedule have repeat=1: "
            "otherwise it starts again and drops what it has recorded.",
        ),
        Hint(
            lambda run: (
                run.got["own"]["recorded"] == list(range(run.case.n_unsteady, run.case.n_unsteady + run.case.n_active))
                and run.got["own"]["calls"] == run.case.n_unsteady + run.case.n_active
            ),
            "Switching the profiler on takes time, which falls into the first recorded step. Take warmup=1 for the "
            "last unsteady step, and wait for those before.",
        ),
        Hint(
            lambda run: run.got["own"]["recorded"] is None,
            "Return the profiler itself, after its `with` block has ended.",
        ),
        Hint(
            wrong("own", right_profile),
            "wait + warmup are the n_unsteady steps, active the n_active ones. Call step() and then prof.step() that "
            "many times altogether.",
        ),
    ),
)
