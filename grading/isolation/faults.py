"""What is raised where something of ours failed under a job, and not the student's program."""

from __future__ import annotations


class InfrastructureFault(Exception):
    """Something of ours failed, not the student's: to be retried, and never a reason for zero points."""


class LostUnderStudent(InfrastructureFault):
    """The forking process was lost after the student's code had begun to run."""
