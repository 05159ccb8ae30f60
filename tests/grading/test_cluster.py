"""The Dask executor on a real scheduler with real workers: who may grade, what is lost, what is dropped."""

from __future__ import annotations

import operator
import os
import re
import shutil
import socket
import subprocess
import time
from concurrent.futures import BrokenExecutor, wait
from pathlib import Path

import dask
import pytest

import grading.executors.dask as dask_executor
from grading.errors import UserError
from grading.executors import open_executor
from grading.executors.on_worker import Census, unfit
from grading.isolation.faults import InfrastructureFault, LostUnderStudent
from tests.grading.clusters import REPOSITORY, Cluster, kill_tree
from tests.lanes import require

pytestmark = pytest.mark.full("cluster")
SECRET = "the course key of this test"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A scheduler with one worker, for the tests that do them no harm."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        cluster.add_worker()
        yield cluster


@pytest.fixture
def fragile(tmp_path):
    """A scheduler that this test may ruin, which gives a job up when it has lost one worker."""
    with Cluster(tmp_path / "fragile", DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as cluster:
        yield cluster


@pytest.fixture
def certificate(tmp_path) -> Path:
    """A certificate that stands for the class's own authority and for each of its processes."""
    openssl = require("openssl", "this test makes a certificate", "sudo apt install openssl")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=grading"]
    subprocess.run([*command, "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path


def refused(where: str) -> str:
    with pytest.raises(UserError) as caught, open_executor(1, where):
        pass
    return str(caught.value)


def test_jobs_run_in_the_workers_process(cluster) -> None:
    with open_executor(1, cluster.address) as executor:
        assert executor.submit(os.getpid).result() != os.getpid()
        assert executor.submit(pow, 2, 10, mod=1000).result() == 24
    with open_executor(1, str(cluster.file)) as executor:
        assert executor.submit(operator.add, 1, 2).result() == 3
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(operator.add, 1, 2)


def test_what_a_job_raises_comes_back_and_a_fault_of_ours_names_the_host(cluster) -> None:
    with open_executor(1, cluster.address) as executor:
        assert isinstance(executor.submit(operator.truediv, 1, 0).exception(), ZeroDivisionError)
        for kind, expected in (
            (InfrastructureFault, InfrastructureFault),
            (LostUnderStudent, LostUnderStudent),
            (UserError, InfrastructureFault),
        ):
            text = ("no isolation works", "install bubblewrap") if kind is UserError else ("the disk is full",)
            error = executor.submit(fail, kind, *text).exception()
            assert type(error) is expected
            assert str(error) == f"{socket.gethostname()}: {': '.join(text)}"


def fail(kind: type[Exception], *text: str) -> None:
    """A job that raises this."""
    raise kind(*text)


def test_a_failing_job_leaves_nothing_of_itself_in_the_logs(cluster) -> None:
    with open_executor(1, cluster.address) as executor:
        assert executor.submit(operator.truediv, SECRET, SECRET.encode()).exception()
    assert "run_packed" in cluster.log("worker")
    assert SECRET not in cluster.log("worker") + cluster.log("scheduler")


def test_the_scheduler_needs_no_torch(cluster) -> None:
    with open_executor(1, cluster.address) as executor:
        executor.submit(os.getpid).result()
    assert "libtorch" not in Path(f"/proc/{cluster.scheduler.pid}/maps").read_text()


def test_an_interruption_waits_for_what_runs_and_drops_the_rest(cluster) -> None:
    futures = []
    with pytest.raises(KeyboardInterrupt), open_executor(1, cluster.address) as executor:
        executor.submit(os.getpid).result()
        futures = [executor.submit(time.sleep, 2.0) for _ in range(4)]
        while not any(future.running() for future in futures):
            time.sleep(0.01)
        assert [future.cancel() for future in futures if future.running()] == [False]
        raise KeyboardInterrupt
    assert wait(futures, timeout=0).not_done == set()
    assert sorted(future.cancelled() for future in futures) == [False, True, True, True]


def test_an_address_where_nothing_answers_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(dask_executor, "CONNECT_S", 1.0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert "no Dask scheduler answers at tcp://127.0.0.1" in refused(f"tcp://127.0.0.1:{taken.getsockname()[1]}")
    broken = tmp_path / "scheduler.json"
    for text in ("{}", "[]", "", "\x00"):
        broken.write_text(text)
        assert refused(str(broken)).startswith(f"{broken} is no scheduler file of Dask: ")
    for where in ("nonsense://host:1", "tls://127.0.0.1:1", "nowhere"):
        assert refused(where).startswith(f"no Dask scheduler answers at {where} (")


def test_a_cluster_without_workers_is_refused(fragile, monkeypatch) -> None:
    monkeypatch.setattr(dask_executor, "FIRST_WORKER_S", 1.0)
    assert re.search(
        r"has no workers, and none joined within 1 s: start some: dask worker tcp://", refused(fragile.address)
    )


def test_workers_that_would_grade_otherwise_are_refused_before_any_job(fragile, tmp_path) -> None:
    for package in ("grading", "labkit"):
        shutil.copytree(
            REPOSITORY / package, tmp_path / "other" / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    (tmp_path / "other" / "grading" / "rebuild" / "merge.py").open("a").write("# another version\n")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "grading.py").write_text("")
    fragile.add_worker(source=tmp_path / "other")
    fragile.add_worker(source=tmp_path / "none")
    fragile.add_worker("--no-nanny", "--nthreads", "2")
    wait_for_workers(fragile, 3)
    told = refused(fragile.address)
    assert "not fit to grade, and nothing was run" in told
    assert f"(host {socket.gethostname()}) its checkout of the labs and the grader differs from this machine's" in told
    assert "the grader does not load there (ModuleNotFoundError(" in told
    assert "it runs 2 jobs at a time in one process: start it with --nthreads 1" in told


def wait_for_workers(cluster: Cluster, count: int) -> None:
    with dask_executor._connected(cluster.address) as client:
        client.wait_for_workers(count, timeout=280)


def test_a_host_that_cannot_isolate_is_refused_where_isolation_is_asked_for(cluster) -> None:
    found = Census("node7", 1, dask_executor.facts(), "no isolation works here: install bubblewrap")
    assert unfit(found, dask_executor.facts()) == "no isolation works here: install bubblewrap"
    with open_executor(1, cluster.address, isolation="none") as executor:
        assert executor.submit(operator.add, 1, 2).result() == 3


def test_an_unfit_worker_that_joins_later_is_sent_away(fragile) -> None:
    fragile.add_worker()
    with open_executor(1, fragile.address) as executor:
        late = fragile.add_worker("--no-nanny", "--nthreads", "2")
        assert late.wait(60) is not None
        assert executor.submit(operator.add, 1, 2).result() == 3
    assert "unfit to grade: it runs 2 jobs at a time" in fragile.log("worker")


def test_a_job_that_loses_its_workers_is_broken_and_the_others_go_on(fragile) -> None:
    fragile.add_worker("--nthreads", "1")
    with open_executor(1, fragile.address) as executor:
        error = executor.submit(os._exit, 1).exception()
        assert isinstance(error, BrokenExecutor) and "the workers that ran it were lost" in str(error)
        assert executor.submit(operator.add, 1, 2).result() == 3


def test_a_lost_scheduler_breaks_every_job_and_is_said_in_one_sentence(fragile, capfd) -> None:
    fragile.add_worker()
    with open_executor(1, fragile.address) as executor:
        futures = [executor.submit(time.sleep, 60) for _ in range(3)]
        kill_tree(fragile.scheduler.pid)
        assert [str(future.exception(60)) for future in futures] == ["the cluster's scheduler is gone"] * 3
        with pytest.raises(BrokenExecutor, match="scheduler is gone"):
            executor.submit(os.getpid)
    assert capfd.readouterr().err == ""


def test_a_cluster_with_certificates_takes_those_who_have_one_only(certificate, tmp_path) -> None:
    tls = "DASK_DISTRIBUTED__COMM__TLS"
    settings = {"DASK_DISTRIBUTED__COMM__DEFAULT_SCHEME": "tls", f"{tls}__CA_FILE": str(certificate / "cert.pem")}
    for role in ("SCHEDULER", "WORKER", "CLIENT"):
        settings[f"{tls}__{role}__CERT"] = str(certificate / "cert.pem")
        settings[f"{tls}__{role}__KEY"] = str(certificate / "key.pem")
    with Cluster(tmp_path / "cluster", **settings) as cluster:
        cluster.add_worker()
        assert cluster.address.startswith("tls://")
        assert refused(cluster.address).startswith(f"no Dask scheduler answers at {cluster.address} (")
        # As the variables above would set it in a process that starts with them.
        ours = {name.removeprefix("DASK_").replace("__", ".").lower(): value for name, value in settings.items()}
        with dask.config.set(ours), open_executor(1, cluster.address) as executor:
            assert executor.submit(operator.add, 1, 2).result() == 3
