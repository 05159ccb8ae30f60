"""Lab 15: where a process is by its launcher's variables, and what the usual mistakes look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from labkit.compare import compare, inputs_untouched
from labkit.exercises.lab15.env import DECOY, PLACE, Launched, variables
from labkit.oracles.calls import as_call
from labkit.spec import CANNOT_TELL, CaseRun, Hint, Oracle

FIRST_PORT, N_PORTS = 15_000, 10_000
"""A Slurm job's own port: the first one and the job's number modulo so many."""


def place(case: Launched) -> dict[str, Any]:
    """Where the case has put its process."""
    env = variables(case)
    return {
        "rank": case.rank,
        "local_rank": case.local_rank,
        "world_size": case.world_size,
        "master_addr": env.get("MASTER_ADDR", case.first_host),
        "master_port": int(env.get("MASTER_PORT", FIRST_PORT + case.job_id % N_PORTS)),
    }


def missing(run: CaseRun[Launched]) -> set[str]:
    """The variables that have to be named, because the environment has neither them nor what could replace them."""
    env = run.tree["env"]
    gone = {name for name in PLACE[run.case.launcher] if name not in env}
    if "MASTER_ADDR" not in env and "SLURM_JOB_NODELIST" not in env:
        gone.add("MASTER_ADDR")
    if "MASTER_PORT" not in env and "SLURM_JOB_ID" not in env:
        gone.add("MASTER_PORT")
    return gone


def named(message: str) -> set[str]:
    """What looks like an environment variable in a message."""
    return set(re.findall(r"[A-Z][A-Z0-9_]{3,}", message))


def right_place(run: CaseRun) -> str | None:
    """The five values, where the environment has all that is needed."""
    if missing(run):
        return None
    if run.got["error"]:
        return f"nothing is missing, but the answer raised {run.got['error']}: {run.got['message'][:80]}"
    if found := compare(place(run.case), run.got["place"]):
        what = f" of {found.path}" if found.path else ""
        return f"wrong {found.kind}{what}: expected {found.expected}, got {found.got}"
    return None


def names_what_is_missing(run: CaseRun) -> str | None:
    """A ValueError that names each missing variable, and none that is set."""
    gone = missing(run)
    if not gone:
        return None
    if not run.got["error"]:
        return f"{_list(gone)} not set, but the answer returned {str(run.got['place'])[:80]}"
    if run.got["error"] != "ValueError":
        return f"{_list(gone)} not set; asked for is a ValueError, but the answer raised {run.got['error']}"
    if silent := gone - named(run.got["message"]):
        return f"the message does not name {', '.join(sorted(silent))}, and {_list(silent)} not set"
    if innocent := named(run.got["message"]) & run.tree["env"].keys():
        return f"the message names {', '.join(sorted(innocent))}, which the environment has"
    return None


def _list(names: set[str]) -> str:
    return f"{', '.join(sorted(names))} {'is' if len(names) == 1 else 'are'}"


def values(got: dict) -> dict[str, Any]:
    """What came back, if it has names at all."""
    return got["place"] if isinstance(got["place"], dict) else {}


def wrong(name: str, value: Callable[[Launched], object]) -> Callable[[CaseRun[Launched]], Any]:
    """A diagnosis where one of the five values is this wrong one. CANNOT_TELL where variables are missing: which names
    are asked for then is another matter."""

    def holds(run: CaseRun[Launched]) -> Any:
        if missing(run):
            return CANNOT_TELL
        found = values(run.got)[name]
        return found != place(run.case)[name] and str(found) == str(value(run.case))

    return holds


def outer_launcher(run: CaseRun[Launched]) -> Any:
    """The rank is the place among the outer launcher's processes. CANNOT_TELL where variables are missing: which names
    are asked for then is another matter."""
    if missing(run):
        return CANNOT_TELL
    return run.case.around is not None and values(run.got)["rank"] == run.case.rank // run.case.per_node


def not_as_told(run: CaseRun[Launched]) -> bool:
    """Somebody has set MASTER_ADDR or MASTER_PORT, and what came back is another one."""
    told, found = run.tree["env"], values(run.got)
    return any(name in told and str(found[name.lower()]) != told[name] for name in ("MASTER_ADDR", "MASTER_PORT"))


def raised(kind: str) -> Callable[[CaseRun[Launched]], bool]:
    """A diagnosis where the answer raised this kind of error."""
    return lambda run: run.got["error"] == kind


def takes_a_default(run: CaseRun[Launched]) -> Any:
    """Variables are missing, and an answer came back. CANNOT_TELL where it raised, and left some of them out: each of
    these may have a default, or only the first was named."""
    if not missing(run):
        return False
    if run.got["error"] == "ValueError":
        return CANNOT_TELL if missing(run) - named(run.got["message"]) else False
    return not run.got["error"]


ENV = Oracle(
    id="15-env",
    call=lambda run: as_call("read_environment", run.tree["env"]),
    judge=(inputs_untouched, right_place, names_what_is_missing),
    diagnose=(
        Hint(
            lambda run: str(DECOY) in map(str, values(run.got).values()),
            "That value is in os.environ, not in `env`. Read the mapping that is given, and nothing else.",
        ),
        Hint(
            lambda run: (
                run.got["error"] == "KeyError"
                and bool(missing(run) or named(run.got["message"]) & _of_others(run.case))
            ),
            "A lookup with [...] stops at the first name that is not there. Find out with `in` which launcher it is, "
            "collect the names of all that is missing, and raise one ValueError with them.",
        ),
        Hint(
            raised("KeyError"),
            "The function should read the mapping that it is given and nothing else: not os.environ, and no variable "
            "that this launcher does not set.",
        ),
        Hint(
            takes_a_default,
            "A default in place of a missing variable makes every process believe that it is rank 0, or alone. Then "
            "the job hangs, or is trained once per rank. Raise a ValueError that names what is missing.",
        ),
        Hint(
            lambda run: bool(missing(run) - named(run.got["message"])),
            "Collect all names that are missing before raising, and put no default in the place of any: the user "
            "should be able to fix all of them at once.",
        ),
        Hint(
            lambda run: any(
                run.tree["env"].get(name) == "0" for name in named(run.got["message"]) & {*PLACE[run.case.launcher]}
            ),
            "A variable that is 0 is set: rank 0 has one. Ask whether the name is in `env`, not whether its number is "
            "true in an `if`.",
        ),
        Hint(
            lambda run: bool(missing(run)) and bool(named(run.got["message"]) - missing(run)),
            "Name what is missing, and only that: a list of everything that could be set does not tell what to do.",
        ),
        Hint(
            lambda run: bool(run.got["error"]) and run.case.pmi,
            "PMI_RANK alone does not make it Hydra: `srun --mpi=pmi2` sets it, too. Take the first launcher of which "
            "all three variables are there.",
        ),
        Hint(
            lambda run: bool(named(run.got["message"]) & _of_others(run.case)),
            "Nothing is missing here: another launcher started this process. Take the first of the table of which all "
            "three variables are there.",
        ),
        Hint(
            lambda run: "SLURM_JOB_ID" in run.tree["env"] and "MASTER_" in run.got["message"],
            "SLURM_JOB_NODELIST and SLURM_JOB_ID replace MASTER_ADDR and MASTER_PORT under every launcher: an mpirun "
            "inside of a Slurm job sees them, too.",
        ),
        Hint(
            lambda run: any(
                isinstance(values(run.got)[name], str) and values(run.got)[name] == str(place(run.case)[name])
                for name in ("rank", "local_rank", "world_size", "master_port")
            ),
            "Environment variables are strings: convert ranks, world size and port to int.",
        ),
        Hint(
            outer_launcher,
            "That is the place of the outer launcher, which started one process a node. The inner one, which started "
            "this process, comes first in the table.",
        ),
        Hint(
            wrong("rank", lambda case: case.local_rank),
            "That is the local rank, which is the same on every node. The rank counts over all nodes.",
        ),
        Hint(
            wrong("rank", lambda case: case.rank // case.per_node),
            "That is the number of the node. A node has several ranks.",
        ),
        Hint(
            wrong("local_rank", lambda case: case.rank),
            "That is the rank over all nodes. The local rank counts on the process's own node: it chooses the GPU.",
        ),
        Hint(
            wrong("world_size", lambda case: case.n_nodes),
            "That is the number of nodes. The world size is the number of ranks on all of them.",
        ),
        Hint(
            wrong("world_size", lambda case: case.per_node),
            "Those are the ranks of one node. The world size is the number of ranks on all of them.",
        ),
        Hint(
            not_as_told,
            "MASTER_ADDR and MASTER_PORT, each where somebody has set it, come before anything that could be worked "
            "out.",
        ),
        Hint(
            wrong("master_addr", lambda case: case.nodelist),
            "That is the whole list of nodes. The rendezvous is one host, and the same one for all: the first.",
        ),
        Hint(
            lambda run: (
                values(run.got)["master_addr"] != run.case.first_host
                and any(c in values(run.got)["master_addr"] for c in "[],")
            ),
            "A list is split at its commas, but not at those inside of brackets: node[01-04,7] is node01 to node04 and "
            "node7.",
        ),
        Hint(
            lambda run: (
                values(run.got)["master_addr"] != run.case.first_host
                and _without_zeros(values(run.got)["master_addr"]) == _without_zeros(run.case.first_host)
            ),
            "The zeros in front belong to the name: node01 is another host than node1. Keep the number as text.",
        ),
        Hint(
            lambda run: (
                values(run.got)["master_addr"] != run.case.first_host
                and run.case.first_host.startswith(values(run.got)["master_addr"])
            ),
            "The end of the name is lost: after the bracket more of it may follow, and without a bracket the number is "
            "a part of it.",
        ),
        Hint(
            lambda run: values(run.got)["master_addr"] in ("localhost", "127.0.0.1", run.tree["env"]["HOSTNAME"]),
            "Every rank would look for the rendezvous on its own machine. All have to name the same host: the first of "
            "the job's list.",
        ),
        Hint(
            wrong("master_port", lambda case: 29_500),
            "With one port for all, two jobs on the same node meet each other. Take 15000 and the job's number modulo "
            "10000.",
        ),
        Hint(
            wrong("master_port", lambda case: FIRST_PORT + case.job_id),
            "There is no port above 65535: take the job's number modulo 10000.",
        ),
        Hint(
            wrong("master_port", lambda case: (FIRST_PORT + case.job_id) % N_PORTS),
            "Only the job's number is taken modulo 10000; 15000 is added to what is left.",
        ),
        Hint(
            lambda run: values(run.got)["master_port"] == place(run.case)["master_port"] - FIRST_PORT,
            "Ports below 1024 are not for users, and low ones are often taken: add 15000.",
        ),
        Hint(
            lambda run: values(run.got)["master_addr"] != place(run.case)["master_addr"],
            "The rendezvous is the *first* host of the list, as it is written there.",
        ),
    ),
)


def _of_others(case: Launched) -> set[str]:
    return {name for launcher, names in PLACE.items() if launcher != case.launcher for name in names}


def _without_zeros(host: str) -> str:
    return re.sub(r"0+(?=\d)", "", host)
