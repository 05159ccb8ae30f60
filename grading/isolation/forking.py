"""The process that forks jobs: started in its tier, waited for while it loads, spoken to, ended.

Which jobs there are, and when one is opened or killed, is `Sandbox`'s. The process itself runs
`grading.worker.forkserver`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from grading.isolation.environment import environment
from grading.isolation.faults import InfrastructureFault
from grading.isolation.tiers import worker_command
from grading.isolation.worker_tree import python_command
from grading.worker.confine.plan import Plan
from grading.worker.confine.tier import Tier
from grading.worker.procfs import children, cpu_s, descendants, gone_is_fine
from grading.worker.protocol.control import EVENTS, ServerFailed, ServerReady, from_datagram, to_datagram
from grading.worker.wire.typed import F, Frame

START_CPU_S = 120.0
"""What it may compute until it is ready. In wall time, on a crowded machine, that is many minutes."""
IDLE_S = 120.0
"""For how long it may do nothing at all until then."""
KILL_S = 10.0
"""How long it may take to answer once it is ready, and to end."""


class _Silent(InfrastructureFault):
    """It did not say in time what it was to say."""


class ForkingProcess:
    """A hold on one that has been started. `end` it: nothing does so by itself, not even where the hold is forgotten,
    since a fork of this program forgets it as well.

    tree: the worker's files. home: a folder for it alone.
    """

    def __init__(self, tier: Tier, plan: Plan, tree: Path, home: Path) -> None:
        self._tier = tier
        self.is_ready = False
        """Whether it has loaded what it was to load."""
        root = home / "root"
        root.mkdir()
        with contextlib.ExitStack() as made:
            self._errors = made.enter_context(open(home / "stderr", "w+b"))
            # Datagrams keep a command and the descriptor that goes with it together.
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            made.enter_context(self._control)
            with theirs:
                worker = python_command(tree, theirs.fileno(), plan, root)
                self._process = subprocess.Popen(
                    worker_command(plan, worker, environment(Path("/tmp"))),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env=environment(Path("/tmp") if tier.isolates else home),
                    cwd=home,
                    pass_fds=(theirs.fileno(),),
                )
            made.callback(self._end_process)
            self._made = made.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._control.fileno() < 0

    def wait_until_ready(self) -> None:
        """At once where it is. Raises InfrastructureFault.

        Not wall time is held against it, but that it computes without end, or does nothing.
        """
        used_s = 0.0
        while not self.is_ready:
            try:
                self.expect(ServerReady, IDLE_S)
                self.is_ready = True
            except _Silent:
                before_s, used_s = used_s, self.cpu_s()
                if not before_s < used_s < START_CPU_S:
                    raise

    def cpu_s(self) -> float:
        """Its CPU time, with that of what it runs while it loads, such as a compiler."""
        return sum(map(cpu_s, (self.pid, *descendants(self.pid))))

    def send(self, command: Frame, descriptors: Sequence[int] = ()) -> None:
        """Raises OSError where it is gone."""
        if descriptors:
            socket.send_fds(self._control, [to_datagram(command)], descriptors)
        else:
            self._control.send(to_datagram(command))

    def expect(self, due: type[F], within_s: float) -> F:
        """The next event of this type; others in between are of a job that is over."""
        deadline = time.monotonic() + within_s
        while True:
            self._control.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._control.recv(65536)
            except TimeoutError:
                raise _Silent(f'the forking process did not say "{due.kind}" in {within_s:g} s') from None
            except OSError as error:
                raise InfrastructureFault(f"the forking process is gone: {error}") from error
            if not data:
                raise InfrastructureFault(f"the forking process ended: {self.last_words()}")
            event = from_datagram(data, EVENTS)
            if isinstance(event, ServerFailed):
                raise InfrastructureFault(f"the forking process could not start: {event.reason}")
            if isinstance(event, due):
                return event

    def last_words(self) -> str:
        """The last line that it or a job of it wrote as its error."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"

    def end(self) -> None:
        """With all that it forked."""
        self._made.close()

    def _end_process(self) -> None:
        self._control.close()
        if self._tier.in_bubblewrap:
            self._end_bubblewrap()
        try:
            self._process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _end_bubblewrap(self) -> None:
        """Its first process, with which the sandbox goes, whatever is in there, and its second: while a sandbox is
        being made that one waits for the first, and would for ever.
        """
        self._process.send_signal(signal.SIGSTOP)
        # Stopped, it starts no more.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        for pid in children(self.pid):
            with gone_is_fine():
                os.kill(pid, signal.SIGKILL)
        self._process.kill()
