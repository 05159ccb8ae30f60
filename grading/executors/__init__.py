"""Where a class's jobs run: processes of this machine, or a Dask cluster, behind `concurrent.futures.Executor`.

What comes back is for the one process that stores and writes. No retry, no order and no gradebook here.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager

from grading.errors import UserError
from grading.executors.local import open_local, start_loading


@contextmanager
def open_executor(workers: int, cluster: str | None = None, isolation: str | None = None) -> Iterator[Executor]:
    """An executor for grading jobs, shut down at the end of the block.

    `workers` is how many jobs this machine runs at a time; a cluster has its own number and ignores it.
    `cluster` is a Dask scheduler's address ("tcp://host:8786") or its scheduler file; None is this machine.
    `isolation` as asked for: where it is given, a cluster is tried host by host before any job is sent to it.

    A future ends with a result, with whatever the job raised (an InfrastructureFault, say), or with a
    `BrokenExecutor`: the process that ran it ended. On one machine every future in flight is then broken and the
    executor takes no more jobs (`submit` raises BrokenExecutor); on a cluster only the job that lost its worker
    several times is, and the rest goes on. So what is broken need not be at fault: try it alone, in an executor
    of its own.

    Leaving the block by an exception (Ctrl-C included) drops what has not begun and waits for what runs. Raises
    UserError where a cluster does not answer or does not grade as this machine would.
    """
    if cluster is None:
        opened = open_local(workers)
    else:
        opened = _open_cluster(cluster, isolation)
    with opened as executor:
        yield executor


def _open_cluster(cluster: str, isolation: str | None) -> AbstractContextManager[Executor]:
    try:
        # An extra, and half a second to import.
        from grading.executors.dask import open_dask
    except ModuleNotFoundError as error:
        raise UserError(
            f"--cluster needs Dask, which is not installed here ({error})",
            "make setup, or pip install -e '.[cluster]' in the checkout, here and on every worker",
        ) from error
    return open_dask(cluster, isolation)


__all__ = ["open_executor", "start_loading"]
