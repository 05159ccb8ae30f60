"""Work on a student's file in a child: its result and its errors come back, and what the file makes of it does not.

Control: `test_without_a_child_it_would_have_ended_this_process`.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from grading import aside
from grading.aside import do_aside
from grading.files import Unreadable


def leave(code: int) -> None:
    os._exit(code)


def crash(by: int = signal.SIGUSR2) -> None:
    os.kill(os.getpid(), by)


def interrupted(number: int) -> str:
    os.kill(os.getpid(), number)
    return "read"


def fill(n_bytes: int) -> int:
    return len(b"x" * n_bytes)


def refuse() -> None:
    raise Unreadable("x.ipynb is not a text file: ask for the notebook itself")


def files_open_in_a_child() -> int:
    """How many files a reading inherits: what it has open itself is a pipe, and what it was started with."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd") if int(number) > 2)
    return sum(os.path.isfile(link) for link in links)


def is_free(path: Path) -> bool:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def spin() -> None:
    while True:
        pass


def in_a_new_process(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_what_is_returned_and_raised_comes_back() -> None:
    assert do_aside("x.ipynb", divmod, 7, 2) == (3, 1)
    assert len(do_aside("x.ipynb", bytes, 10**6)) == 10**6
    with pytest.raises(Unreadable, match="is not a text file: ask for the notebook itself"):
        do_aside("x.ipynb", refuse)
    with pytest.raises(ZeroDivisionError):
        do_aside("x.ipynb", divmod, 7, 0)


@pytest.mark.parametrize(("work", "args"), [(leave, (0,)), (leave, (3,)), (crash, ()), (memoryview, (b"",))])
def test_what_breaks_off_is_the_files_to_blame(work, args) -> None:
    with pytest.raises(Unreadable, match=r"x\.ipynb cannot be read: whatever reads it breaks off\. Look at what is in"):
        do_aside("x.ipynb", work, *args)


def test_whoever_is_ended_from_outside_was_reading_a_good_file() -> None:
    """As the system does where no memory is left for anybody."""
    with pytest.raises(OSError, match=r"what read x\.ipynb was ended from outside"):
        do_aside("x.ipynb", crash, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_ends_a_run_in_good_order_ends_no_reading(number) -> None:
    assert do_aside("x.ipynb", interrupted, number) == "read"


def test_memory_is_bounded() -> None:
    """In a process of its own: one that has run other tests has memory to give that it need not ask for."""
    in_a_new_process("""
        import pytest
        from grading import aside
        from tests.grading.test_aside import Unreadable, do_aside, fill

        aside.MEMORY_BYTES = 64 * 2**20
        assert do_aside("x.ipynb", fill, 32 * 2**20) == 32 * 2**20
        with pytest.raises(Unreadable, match=r"x\\.ipynb takes more than 67,108,864 bytes of memory to be read"):
            do_aside("x.ipynb", fill, 80 * 2**20)
    """)


@pytest.mark.slow
def test_cpu_time_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(aside, "CPU_S", 1)
    with pytest.raises(Unreadable, match=r"x\.ipynb takes more than 1 s to be read: look at what is in it"):
        do_aside("x.ipynb", spin)


def test_what_comes_back_is_bounded(monkeypatch) -> None:
    monkeypatch.setattr(aside, "MOST_BYTES", 2**20)
    with pytest.raises(Unreadable, match="breaks off"):
        do_aside("x.ipynb", bytes, 4 * 2**20)


def test_no_child_and_no_descriptor_is_left() -> None:
    in_a_new_process("""
        import contextlib, os
        import pytest
        from tests.grading.test_aside import Unreadable, crash, do_aside, leave

        descriptors = os.listdir("/proc/self/fd")
        for work, args in ((divmod, (7, 2)), (leave, (0,)), (crash, ())):
            with contextlib.suppress(Unreadable):
                do_aside("x.ipynb", work, *args)
        assert os.listdir("/proc/self/fd") == descriptors
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
    """)


def test_a_reading_that_outlives_its_run_holds_no_lock_of_it(tmp_path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert do_aside("x.ipynb", files_open_in_a_child) == 0
        assert not is_free(path), "the control: the lock is held here"
    assert is_free(path)


def test_without_a_child_it_would_have_ended_this_process() -> None:
    program = "from tests.grading.test_aside import crash, do_aside\n"
    run = [sys.executable, "-c", program + "crash()"]
    assert subprocess.run(run, check=False).returncode == -signal.SIGUSR2
