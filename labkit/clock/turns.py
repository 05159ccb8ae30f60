"""Let threads run one at a time in virtual time: one keeps its turn until it waits, then the next that can has it.

Time passes only where nobody can go on: then it jumps to the next moment at which one can. So every run is the same
run, and threads that wait for one another are seen at once. What they wait for is not known here.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from labkit.interrupts import interrupt

MAIN = "the main thread"
_END_S = 1.0
"""Real seconds that a thread may take to end once it is told to."""


class ThreadsHang(RuntimeError):
    """Every thread waits for another one. The text says what each waits for, and which of them have failed."""


class ThreadEnded(BaseException):
    """Ends a thread whose clock has been closed; `except Exception` does not swallow it."""


@dataclass(frozen=True)
class Span:
    """What a thread did, and when, in virtual seconds: `Span("loader", "load 3", 0.2, 0.5)`."""

    thread: str
    what: str
    start_s: float
    end_s: float


@dataclass(eq=False)
class Seat:
    """One thread, and while it waits, for what: until `is_met`, or until `until_s`, whichever is first."""

    name: str
    thread: threading.Thread
    wake: threading.Semaphore
    is_met: Callable[[], bool] | None = None
    until_s: float = math.inf
    waits_for: str = ""
    since: int = 0
    ended: bool = False
    error: BaseException | None = None
    hangs: str | None = None
    """Of the main thread: why nobody can go on."""


class Turns:
    """Gives turns to the thread that has made it, which is the main one, and to those that `begin` starts."""

    def __init__(self) -> None:
        self.now_s = 0.0
        main = Seat(MAIN, threading.current_thread(), threading.Semaphore(0))
        self.seats = [main]
        self._by_ident = {threading.get_ident(): main}
        self._running = main
        self._n_waits = 0
        self._closed = False

    def own_seat(self) -> Seat:
        """The seat of the calling thread. Raises RuntimeError where it is none of the clock's."""
        seat = self._by_ident.get(threading.get_ident())
        if seat is None:
            raise RuntimeError(
                "a thread that is not one of the clock's has used the clock: start threads with clock.Thread"
            )
        if self._closed:
            raise RuntimeError("the clock is closed") if seat is self.seats[0] else ThreadEnded
        return seat

    def begin(self, name: str, body: Callable[[], None]) -> Seat:
        """Start a thread, which has its first turn when the caller waits next."""
        self.own_seat()

        def run() -> None:
            self._by_ident[threading.get_ident()] = seat
            try:
                self._await_turn(seat)
                body()
            except ThreadEnded:
                pass
            except BaseException as error:
                seat.error = error
            finally:
                seat.ended = True
                del self._by_ident[threading.get_ident()]
                if not self._closed:
                    self._pass_on()

        seat = Seat(name, threading.Thread(target=run, name=name, daemon=True), threading.Semaphore(0))
        self._wait_in_line(seat, lambda: True, math.inf, "its first turn")
        self.seats.append(seat)
        seat.thread.start()
        return seat

    def wait(self, is_met: Callable[[], bool], until_s: float, waits_for: str) -> bool:
        """Return True once `is_met()` holds, or False at the virtual time `until_s`; the others go on meanwhile.

        Raises ThreadsHang in the main thread where nobody can go on any more.
        """
        seat = self.own_seat()
        if is_met():
            return True
        self._wait_in_line(seat, is_met, until_s, waits_for)
        self._pass_on()
        try:
            self._await_turn(seat)
        except ThreadEnded:
            raise
        except BaseException:  # a time limit, or the student interrupting: signals arrive in the main thread
            self.close()
            raise
        if seat.hangs is not None:
            text, seat.hangs = seat.hangs, None
            raise ThreadsHang(text)
        return is_met()

    def close(self) -> None:
        """End every thread that is still there, one after the other; what they waited to do is not done.

        One that swallows its end is left behind: nothing can end a thread by force.
        """
        self._closed = True
        give_up_at = time.monotonic() + _END_S
        for seat in self.seats[1:]:
            seat.wake.release()
            if seat is self._running and not seat.ended:
                interrupt(seat.thread, ThreadEnded, lambda s, thread=seat.thread: _ends_within(thread, s))
            elif seat.thread is not threading.current_thread():
                seat.thread.join(max(give_up_at - time.monotonic(), 0.0))

    def failures(self) -> list[str]:
        """ "thread 'loader' has ended with ValueError: no", for each thread that has raised."""
        return [f"thread {seat.name!r} has ended with {_in_words(seat.error)}" for seat in self.seats if seat.error]

    def _wait_in_line(self, seat: Seat, is_met: Callable[[], bool], until_s: float, waits_for: str) -> None:
        self._n_waits += 1
        seat.is_met, seat.until_s, seat.waits_for, seat.since = is_met, until_s, waits_for, self._n_waits

    def _await_turn(self, seat: Seat) -> None:
        # With a time, because an endless wait cannot be interrupted on every system.
        while not seat.wake.acquire(timeout=0.1):
            pass
        if self._closed:
            raise ThreadEnded
        seat.is_met, self._running = None, seat

    def _pass_on(self) -> None:
        """Give the turn to who has waited longest of those that can go on, else to who can go on first."""
        waiting = sorted((seat for seat in self.seats if seat.is_met), key=lambda seat: seat.since)
        able = [seat for seat in waiting if seat.until_s <= self.now_s or seat.is_met()]
        if not able:
            able = sorted(waiting, key=lambda seat: seat.until_s)[:1]
            if not able or able[0].until_s == math.inf:
                able = self.seats[:1]
                able[0].hangs = self._why(waiting)
            else:
                self.now_s = able[0].until_s
        able[0].wake.release()

    def _why(self, waiting: list[Seat]) -> str:
        main = self.seats[0]
        names = {seat: MAIN if seat is main else f"thread {seat.name!r}" for seat in waiting}
        waits = [
            f"{names[seat]} waits for {seat.waits_for}" for seat in sorted(waiting, key=lambda seat: seat is not main)
        ]
        return ", ".join([*waits, *self.failures()]) + ", so nobody can go on"


def _ends_within(thread: threading.Thread, seconds: float) -> bool:
    thread.join(seconds)
    return not thread.is_alive()


def _in_words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "a message that cannot be read"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
