"""Lab 15: environments are those of the launchers, node lists expand, and nothing that comes back breaks the judge."""

from __future__ import annotations

import random

import pytest
import torch

from grading.hidden.lab15.env import env_cases
from labkit.check.judge import judge
from labkit.check.text import as_text
from labkit.exercises.lab15.env import ENV, PLACE, Launched, variables
from labkit.observe import make_inputs
from labkit.oracles.lab15.env import ENV as ORACLE
from labkit.oracles.lab15.env import missing, named, place
from labkit.spec import CaseRun, Observation
from tests.exercises.harness import answers_in, solution_of


@pytest.fixture(scope="module")
def read_environment():
    return answers_in("15-env", solution_of("15-env"))["read_environment"]


@pytest.mark.parametrize(
    ("nodelist", "first"),
    [
        ("node[01-04,7]", "node01"),
        ("gpu7,gpu[11-12]", "gpu7"),
        ("a100-[08,10-12]-ib,login1", "a100-08-ib"),
        ("r[1-2]n[01-16]", "r1n01"),
        ("single", "single"),
    ],
)
def test_the_first_host_of_a_list(read_environment, nodelist: str, first: str) -> None:
    env = variables(Launched("slurm", nodelist=nodelist))
    assert read_environment(env)["master_addr"] == first


def test_all_that_is_missing_is_named_and_nothing_else(read_environment) -> None:
    with pytest.raises(ValueError, match=r"^not set: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT$"):
        read_environment({"PATH": "/bin"})
    with pytest.raises(ValueError, match=r"^not set: MPI_LOCALRANKID$"):
        read_environment({"PMI_RANK": "1", "PMI_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"})


def test_every_launcher_is_drawn_alone_and_inside_another() -> None:
    drawn = {(case.launcher, case.around) for case in env_cases(random.Random(0))}
    assert drawn >= {(launcher, None) for launcher in PLACE}
    assert drawn >= {("torchrun", "slurm"), ("openmpi", "slurm"), ("hydra", "slurm")}


def test_hidden_cases_tell_the_numbers_apart() -> None:
    for seed in range(50):
        for case in env_cases(random.Random(seed)):
            node = case.rank // case.per_node
            assert case.rank == 0 or len({case.rank, case.local_rank, node}) == 3, case
            assert case.rank < case.world_size
            assert missing(CaseRun(case, {"env": variables(case)})) == _has_to_be_named(case)


def _has_to_be_named(case: Launched) -> set[str]:
    """What is unset, if no Slurm job replaces it; the rendezvous where an mpirun says nothing of it, and where a Slurm
    job has lost its list."""
    gone = set(case.unset)
    if case.launcher == "slurm":
        gone -= {"MASTER_ADDR", "MASTER_PORT"}
    if case.launcher in ("openmpi", "hydra") and not case.exported and not case.around:
        gone |= {"MASTER_ADDR", "MASTER_PORT"}
    if "SLURM_JOB_NODELIST" in gone:
        gone = gone - {"SLURM_JOB_NODELIST"} | {"MASTER_ADDR"}
    return gone


def test_names_are_found_in_a_message() -> None:
    assert named("not set: RANK, WORLD_SIZE. Is SLURM_JOB_ID?") == {"RANK", "WORLD_SIZE", "SLURM_JOB_ID"}


@pytest.mark.parametrize("absurd", [None, "rank 3", 7, [1, 2], {}, {"rank": None}, torch.zeros(3), float("nan")])
def test_absurd_answers_fail_and_break_nothing(absurd: object) -> None:
    runs = []
    for case in ENV.public:
        tree = make_inputs(ENV, case, 0)
        runs.append(Observation(case, tree, {"place": absurd, "error": None, "message": ""}, tree))
    verdict = judge(ENV, ORACLE, runs)
    assert verdict.outcome == "failed" and as_text(verdict)


def test_a_variable_that_is_0_is_there() -> None:
    case = Launched("torchrun", rank=0, unset=("WORLD_SIZE",))
    tree = make_inputs(ENV, case, 0)
    got = {"place": None, "error": "ValueError", "message": "not set: RANK, LOCAL_RANK, WORLD_SIZE"}
    assert "Ask whether the name is in" in (judge(ENV, ORACLE, [Observation(case, tree, got, tree)]).hint or "")


def test_the_right_place_is_right() -> None:
    case = Launched("slurm", rank=9, per_node=8, job_id=90_007)
    assert place(case) == {
        "rank": 9,
        "local_rank": 1,
        "world_size": 16,
        "master_addr": "node01",
        "master_port": 15_007,
    }
