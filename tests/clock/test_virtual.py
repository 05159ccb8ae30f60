"""Threads on the virtual clock keep the times of the formula to the last bit, and none of them hangs or is lost."""

from __future__ import annotations

import queue
import random
import threading

import pytest

from labkit.clock import Span, ThreadsHang, VirtualClock
from labkit.limits import OverLimit, time_limit


@pytest.fixture
def clock():
    with VirtualClock() as clock:
        yield clock


def prefetched(clock: VirtualClock, loads_s: list[float], steps_s: list[float], depth: int) -> tuple[list, list]:
    """The times of the puts and of the takes of a loader and a loop with a queue of `depth` between them."""
    items, puts, takes = clock.Queue(maxsize=depth), [], []

    def load() -> None:
        for index, load_s in enumerate(loads_s):
            clock.sleep(load_s)
            items.put(index)
            puts.append(clock.now_s)

    loader = clock.Thread(target=load)
    loader.start()
    for index, step_s in enumerate(steps_s):
        assert items.get() == index
        takes.append(clock.now_s)
        clock.sleep(step_s)
    loader.join()
    return puts, takes


def by_formula(loads_s: list[float], steps_s: list[float], depth: int) -> tuple[list, list]:
    puts: list[float] = []
    takes: list[float] = []
    for i, (load_s, step_s) in enumerate(zip(loads_s, [0.0, *steps_s])):
        puts.append(max((puts[i - 1] if i else 0.0) + load_s, takes[i - depth] if i >= depth else 0.0))
        takes.append(max(puts[i], takes[i - 1] + step_s if i else 0.0))
    return puts, takes


@pytest.mark.parametrize("depth", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("seed", range(4))
def test_puts_takes_and_makespan_are_those_of_the_formula(depth: int, seed: int) -> None:
    rng = random.Random(f"{depth} {seed}")
    loads_s, steps_s = ([rng.choice([0.0, 0.5, 0.1, rng.random()]) for _ in range(30)] for _ in range(2))
    with VirtualClock() as clock:
        assert prefetched(clock, loads_s, steps_s, depth) == by_formula(loads_s, steps_s, depth)
        assert clock.now_s == by_formula(loads_s, steps_s, depth)[1][-1] + steps_s[-1]
        assert clock.queues[0].most <= depth
        assert clock.left_over() == []


def test_without_a_bound_a_queue_holds_everything(clock: VirtualClock) -> None:
    prefetched(clock, [0.1] * 20, [1.0] * 20, depth=0)
    assert clock.queues[0].most > 10


def test_several_workers_are_served_in_the_order_in_which_they_are_ready(clock: VirtualClock) -> None:
    done = clock.Queue()

    def work(name: str, load_s: float) -> None:
        for _ in range(3):
            clock.sleep(load_s)
            done.put((name, clock.now_s))

    for name, load_s in (("slow", 3.0), ("fast", 2.0)):
        clock.Thread(target=work, args=(name,), kwargs={"load_s": load_s}).start()
    order = [done.get() for _ in range(6)]
    assert order == [("fast", 2.0), ("slow", 3.0), ("fast", 4.0), ("slow", 6.0), ("fast", 6.0), ("slow", 9.0)]


def test_sleeps_with_a_name_are_kept_for_a_figure(clock: VirtualClock) -> None:
    def load() -> None:
        clock.sleep(0.5, "load 0")

    loader = clock.Thread(target=load, name="loader")
    loader.start()
    clock.sleep(0.25, "step 0")
    clock.sleep(1.0)
    loader.join()
    assert clock.spans == [Span("the main thread", "step 0", 0.0, 0.25), Span("loader", "load 0", 0.0, 0.5)]


def test_an_exception_is_passed_on_by_whoever_passes_it_on(clock: VirtualClock) -> None:
    items = clock.Queue(1)

    def load() -> None:
        try:
            raise ValueError("sample 3 is broken")
        except Exception as error:
            items.put(error)

    clock.Thread(target=load).start()
    assert str(items.get()) == "sample 3 is broken"
    assert clock.failures() == []


def test_a_thread_that_dies_in_silence_is_named_by_who_waits_for_it(clock: VirtualClock) -> None:
    def load() -> None:
        clock.sleep(1.0)
        raise ValueError("sample 3 is broken")

    clock.Thread(target=load, name="loader").start()
    with pytest.raises(ThreadsHang) as raised:
        clock.Queue(1).get()
    failed = "thread 'loader' has ended with ValueError: sample 3 is broken"
    assert str(raised.value) == f"the main thread waits for an item of an empty queue, {failed}, so nobody can go on"
    assert clock.failures() == [failed]


def test_threads_that_wait_for_one_another_are_seen_at_once(clock: VirtualClock) -> None:
    full = clock.Queue(1)
    loader = clock.Thread(target=lambda: [full.put(index) for index in range(3)], name="loader")
    loader.start()
    with pytest.raises(ThreadsHang, match="the main thread waits for thread 'loader' to end, thread 'loader' waits "):
        loader.join()
    # Whoever catches it can still set things right.
    assert [full.get() for _ in range(3)] == [0, 1, 2]
    loader.join()
    assert not loader.is_alive()


def test_the_main_thread_is_named_first(clock: VirtualClock) -> None:
    full = clock.Queue(1)
    loader = clock.Thread(target=lambda: [full.put(index) for index in range(3)], name="loader")
    loader.start()
    clock.sleep(1.0)
    with pytest.raises(ThreadsHang, match=r"^the main thread waits for thread 'loader' to end, thread 'loader' waits "):
        loader.join()


def test_a_thread_that_is_left_waiting_is_left_over_and_ends_with_the_clock() -> None:
    before = threading.active_count()
    with VirtualClock() as clock:
        full = clock.Queue(1)
        clock.Thread(target=lambda: [full.put(index) for index in range(3)], name="loader").start()
        assert full.get() == 0
        assert clock.left_over(within_s=60.0) == ["loader"]
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_thread_that_is_told_to_stop_is_not_left_over(clock: VirtualClock) -> None:
    items, stop = clock.Queue(1), clock.Event()

    def load() -> None:
        while not stop.is_set():
            try:
                items.put(0, timeout=0.1)
            except queue.Full:
                continue

    clock.Thread(target=load).start()
    items.get()
    assert clock.left_over(within_s=5.0) == ["load"]
    stop.set()
    assert clock.left_over(within_s=0.2) == []


def test_timeouts_are_virtual_and_say_so_with_pythons_own_errors(clock: VirtualClock) -> None:
    items = clock.Queue(1)
    with pytest.raises(queue.Empty):
        items.get(timeout=3.0)
    assert clock.now_s == 3.0
    items.put_nowait("a")
    with pytest.raises(queue.Full):
        items.put_nowait("b")
    with pytest.raises(queue.Full):
        items.put("b", timeout=1.5)
    assert clock.now_s == 4.5
    assert (items.get_nowait(), items.qsize(), items.empty(), items.full()) == ("a", 0, True, False)
    with pytest.raises(queue.Empty):
        items.get(block=False)
    assert not clock.Event().wait(timeout=0.5)
    assert clock.now_s == 5.0


def test_threads_are_used_as_pythons_own(clock: VirtualClock) -> None:
    thread = clock.Thread(target=lambda: clock.sleep(5.0))
    with pytest.raises(RuntimeError, match="cannot join thread before it is started"):
        thread.join()
    thread.start()
    with pytest.raises(RuntimeError, match="threads can only be started once"):
        thread.start()
    thread.join(timeout=2.0)
    assert thread.is_alive()
    assert clock.now_s == 2.0
    thread.join()
    assert (thread.is_alive(), clock.now_s) == (False, 5.0)
    with pytest.raises(ValueError, match="seconds is -1"):
        clock.sleep(-1)
    with pytest.raises(ValueError, match="seconds is nan"):
        clock.sleep(float("nan"))


def test_a_thread_that_is_not_the_clocks_is_refused(clock: VirtualClock) -> None:
    said = []

    def load() -> None:
        try:
            clock.sleep(1.0)
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    assert said == ["a thread that is not one of the clock's has used the clock: start threads with clock.Thread"]


def test_a_time_limit_reaches_through_a_thread_that_never_waits() -> None:
    before = threading.active_count()

    def spin() -> None:
        while True:
            pass

    with pytest.raises(OverLimit), VirtualClock() as clock, time_limit(0.3):
        clock.Thread(target=spin).start()
        clock.Queue().get()
    assert threading.active_count() == before


def test_a_closed_clock_says_so() -> None:
    with VirtualClock() as clock:
        clock.sleep(1.0)
    with pytest.raises(RuntimeError, match="the clock is closed"):
        clock.sleep(1.0)
