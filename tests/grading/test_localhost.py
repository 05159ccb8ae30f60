"""What a program in each tier finds under a name: itself under localhost, and nobody else, without asking anybody."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from grading.isolation.plan import plan_of
from grading.isolation.sandbox import Sandbox
from grading.isolation.tiers import tier_named
from tests.grading.cells import run_cell
from tests.lanes import EVERY_TIER_SLOW, require_tier

LOOPBACK = ("loopback",)


@pytest.fixture(scope="module", params=EVERY_TIER_SLOW)
def server(request):
    with Sandbox(require_tier(request.param), preload=("grading.worker.job",)) as server:
        yield server


def said(server: Sandbox, source: str) -> object:
    found = run_cell(server, source, LOOPBACK)
    server.kill_job()
    return found


@pytest.mark.parametrize("name", ["'localhost'", "socket.gethostname()"])
def test_its_own_names_are_the_loopback_address(server: Sandbox, name: str) -> None:
    source = (
        "import json, socket\n"
        f"found = socket.getaddrinfo({name}, 80, type=socket.SOCK_STREAM)\n"
        "print(json.dumps(sorted({address[4][0] for address in found})))"
    )
    assert said(server, source) == ["127.0.0.1"]


def test_a_server_on_localhost_is_reached_by_that_name(server: Sandbox) -> None:
    source = """
import json, socket
with socket.create_server(("localhost", 0)) as listening:
    with socket.create_connection(("localhost", listening.getsockname()[1])) as client:
        with listening.accept()[0] as accepted:
            accepted.sendall(b"hello")
            print(json.dumps(client.recv(5).decode()))
"""
    assert said(server, source) == "hello"


def test_it_learns_no_name_of_this_machine_or_its_network(server: Sandbox) -> None:
    source = "import json\nprint(json.dumps([open(f'/etc/{n}').read() for n in ('hosts', 'nsswitch.conf')]))"
    assert said(server, source) == ["127.0.0.1 localhost grader\n", "hosts: files\n"]
    told = said(server, f"import socket\nsocket.getaddrinfo({socket.gethostname() + '.example'!r}, 80)")
    assert "gaierror" in told


def test_gloo_ranks_meet_under_that_name(server: Sandbox) -> None:
    """The library looks its host's name up to choose the interface; without an answer it would guess."""
    source = """
import json
import torch.distributed as dist
store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
dist.init_process_group("gloo", store=store, rank=0, world_size=1)
dist.barrier()
print(json.dumps(dist.get_world_size()))
dist.destroy_process_group()
"""
    assert said(server, source) == 1


def test_where_it_is_not_granted_real_ranks_are_refused_in_a_sentence(server: Sandbox) -> None:
    told = run_cell(server, "from labkit.ranks import run_ranks\nrun_ranks(lambda comm: comm.rank, 2, 'gloo')", ())
    server.kill_job()
    assert told.startswith("ValueError: ranks in processes talk over this machine's loopback network, which"), told
    assert "While a notebook is graded that is as it should be, and costs no points" in told


@pytest.mark.parametrize("tier", EVERY_TIER_SLOW)
def test_the_files_are_ours_and_lie_in_the_workers_tree(tier: str, tmp_path: Path) -> None:
    shown = {place.path: place.source for place in plan_of(tier_named(tier), tmp_path).places if place.source}
    folder = tmp_path.resolve() / "grading" / "worker" / "names"
    assert shown == {f"/etc/{name}": str(folder / name) for name in ("hosts", "nsswitch.conf")}
