"""Run the ranks as threads, one at a time: a rank keeps its turn until it has to wait, then the next one goes on.

The order of the turns is fixed, so every run is the same run, and a deadlock is seen the moment it happens: nobody
is left who could go on. What the ranks wait for, and messages in particular, is not known here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import torch

from labkit.interrupts import interrupt
from labkit.ranks.errors import CommError, RankFailed
from labkit.ranks.needs import Need, deadlock

LONGEST_END_S = 1.0
"""So long a thread without Python is waited for."""


class Stopped(BaseException):
    """Ends a rank whose run is over for a reason that lies elsewhere; `except Exception` does not swallow it."""


class Scheduler:
    """Takes turns between `world_size` ranks. Used for one run."""

    def __init__(self, world_size: int) -> None:
        self._n = world_size
        self._wake = [threading.Semaphore(0) for _ in range(world_size)]
        self._needs: list[Need | None] = [None] * world_size
        self._finished = [False] * world_size
        self._running = 0
        self._error: BaseException | None = None
        self._blamed: int | None = None
        self._stopped: dict[int, Stopped] = {}
        self._n_ended = 0
        self._count = threading.Lock()
        self._over = threading.Event()
        self._own = [_own_settings()] * world_size

    def run(self, body: Callable[[int], None]) -> None:
        """Call `body(rank)` for every rank, and return when all have returned or raise what ended them."""
        before = self._own[0]
        threads = [
            threading.Thread(target=self._one, args=(rank, body), name=f"rank {rank}", daemon=True)
            for rank in range(self._n)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wake[0].release()
            # With a time, because an endless wait cannot be interrupted on every system.
            while not self._over.wait(0.1):
                pass
            _join(threads)
        except BaseException as error:  # a time limit, or the student interrupting: signals arrive in this thread
            self._stop(error, blamed=self._running)
            self._interrupt(threads)
        finally:
            _restore(before)
        if self._error is not None:
            stopped = self._stopped.get(self._blamed)
            raise self._error.with_traceback(stopped.__traceback__) if stopped else self._error

    def wait(self, rank: int, need: Need) -> None:
        """Return when the need is met; until then the others have their turns."""
        self.check()
        if need.ready():
            return
        self._needs[rank] = need
        self._own[rank] = _own_settings()
        self._pass_on(rank)
        self._await_turn(rank)

    def check(self) -> None:
        """Raise Stopped if the run is over."""
        if self._error is not None:
            raise Stopped

    def _one(self, rank: int, body: Callable[[int], None]) -> None:
        try:
            self._await_turn(rank)
            body(rank)
            self._finished[rank] = True
            self._pass_on(rank)
        except Stopped as stopped:
            self._stopped[rank] = stopped
        except CommError as error:
            self._stop(error)
        except BaseException as error:
            self._stop(RankFailed(rank, error))
        finally:
            with self._count:
                self._n_ended += 1
                if self._n_ended == self._n:
                    self._over.set()
            # A thread whose backward pass was cut short frees tensors while it ends. CPython 3.11 does not survive that
            # while another rank's memory meter traces allocations, so all threads end after all meters.
            self._over.wait()

    def _await_turn(self, rank: int) -> None:
        self._wake[rank].acquire()
        self.check()
        self._running, self._needs[rank] = rank, None
        _restore(self._own[rank])

    def _pass_on(self, rank: int) -> None:
        """Give the turn to the next rank that can use it."""
        order = [(rank + step) % self._n for step in range(1, self._n + 1)]
        for other in order:
            need = self._needs[other]
            if not self._finished[other] and (need is None or need.ready()):
                self._wake[other].release()
                return
        waiting = [(rank, need) for rank, need in enumerate(self._needs) if need is not None]
        if waiting:
            self._stop(CommError(deadlock(waiting, self._finished)), blamed=waiting[0][0])

    def _stop(self, error: BaseException, blamed: int | None = None) -> None:
        """End all ranks. The first reason is told, with the line at which the rank `blamed` stood, if there is one."""
        if self._error is None:
            self._error, self._blamed = error, blamed
        for wake in self._wake:
            wake.release()

    def _interrupt(self, threads: list[threading.Thread]) -> None:
        """Raise Stopped in the rank that is running, which may be in an endless loop.

        It arrives at the next line of Python. A rank that swallows it three times is left behind: nothing can end
        a thread by force, and the grader ends its process.
        """
        if interrupt(threads[self._running], Stopped, self._over.wait):
            _join(threads)


def _join(threads: list[threading.Thread]) -> None:
    """Return when the threads are gone, and not only their Python.

    Before CPython 3.13 `join` returns while the system's thread still frees what PyTorch kept in it. A memory meter
    that begins meanwhile, in the next run, exchanges Python's allocators under it, which the process may not survive.
    Linux alone says which threads there are.
    """
    for thread in threads:
        thread.join()
    there = [f"/proc/self/task/{thread.native_id}" for thread in threads]
    gives_up_s = time.monotonic() + LONGEST_END_S
    while any(map(os.path.exists, there)) and time.monotonic() < gives_up_s:
        time.sleep(1e-4)


def _own_settings() -> tuple[torch.dtype, torch.Tensor]:
    """What every rank would have for itself if it were a process, and threads share: the default dtype and PyTorch's
    random numbers on the CPU, where ranks are. Whether gradients are on is a thread's own already.
    """
    return torch.get_default_dtype(), torch.get_rng_state()


def _restore(settings: tuple[torch.dtype, torch.Tensor]) -> None:
    dtype, generator = settings
    torch.set_default_dtype(dtype)
    torch.set_rng_state(generator)
