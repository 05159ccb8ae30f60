"""What the filter of system calls refuses to a rank beyond what it refuses to every job."""

from __future__ import annotations

import errno
import functools

import pytest

from grading.worker.confine.seccomp import _ARCH, ABSENT, REFUSED, REFUSED_TO_RANKS, program
from tests.grading import test_seccomp
from tests.grading.test_seccomp import ALLOW, CLONE, SOCKET, verdict

FCNTL = {"x86_64": 72, "aarch64": 25}
F_DUPFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS = 0, 2, 3, 4, 1030, 1033


@pytest.fixture(autouse=True)
def of_a_rank(monkeypatch) -> None:
    monkeypatch.setattr(test_seccomp, "program", functools.partial(program, is_rank=True))


@pytest.mark.parametrize("machine", _ARCH)
def test_files_that_all_read_cannot_be_watched(machine: str) -> None:
    column = tuple(_ARCH).index(machine)
    refused = {numbers[column] for numbers in (REFUSED | REFUSED_TO_RANKS).values()} - {None}
    absent = {numbers[column] for numbers in ABSENT.values()}
    for number in range(600):
        wanted = errno.EPERM if number in refused else errno.ENOSYS if number in absent else ALLOW
        if number != SOCKET[machine]:
            assert verdict(machine, number) == wanted, number


@pytest.mark.parametrize("machine", _ARCH)
def test_a_descriptor_can_be_copied_and_set_but_not_locked(machine: str) -> None:
    for command in (F_DUPFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_ADD_SEALS):
        assert verdict(machine, FCNTL[machine], 3, command) == ALLOW, command
    for command in (5, 6, 7, 36, 37, 38, 1024, 1025, 1026):
        assert verdict(machine, FCNTL[machine], 3, command) == errno.EPERM, command


@pytest.mark.parametrize("machine", _ARCH)
def test_what_every_job_may_not_do_a_rank_may_not_either(machine: str) -> None:
    assert verdict(machine, CLONE[machine], 17 | 0x10000000) == errno.EPERM
    assert verdict(machine, SOCKET[machine], 2) == errno.EACCES
    assert verdict(machine, SOCKET[machine], 1) == ALLOW
