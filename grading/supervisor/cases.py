"""The cases of an exercise with their inputs: drawn here, by the supervisor, and sent to a worker one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from grading.hidden import Secret, hidden_of
from grading.supervisor.witness import probes_for
from labkit.observe import make_inputs, public_seed
from labkit.oracles import oracle_of
from labkit.spec import Case, CaseRun, Exercise, Observation, Run, Tree, Trouble
from labkit.tree import leaves

UNMEASURED = "unmeasured"
"""The kind of trouble of a case whose memory could not be measured."""


def bytes_in(tree: Tree) -> int:
    """Bytes of the tensors in a tree."""
    return sum(leaf.nbytes for _, leaf in leaves(tree) if isinstance(leaf, torch.Tensor))


@dataclass(frozen=True)
class CaseInputs:
    """A case with its inputs: `CaseInputs(Rows(4, 8), {"x": torch.ones(4, 8)}, 320.0)`.

    memory_limit_bytes: what it may hold at once, where its memory is bounded and measured from outside. at_full_size:
    whether this is `Exercise.full_size`, of which no tensor holds data. moment_limits: where its memory is measured
    from outside, what a rank may hold at each moment that has a budget, by the moment's name.
    """

    case: Case
    tree: Tree
    memory_limit_bytes: float | None = None
    at_full_size: bool = False
    moment_limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def bounds_memory(self) -> bool:
        return self.memory_limit_bytes is not None

    @property
    def inputs_bytes(self) -> int:
        return bytes_in(self.tree)

    def without_run(self, trouble: Trouble) -> Observation:
        """What is observed of the case where nothing came back."""
        return Observation(self.case, self.tree, trouble=trouble)


@dataclass(frozen=True)
class CaseSet:
    """The cases of an exercise in their order, and probes (meter, operations) to go with them.

    `CaseSet((CaseInputs(Rows(), {"x": x}),), (("ops", 37), ("ops", 2211)), 2.0)`; cpu_s: CPU time for all of them
    together, enforced from outside. own_bytes: memory that is no page of a file, the same; None sets no limit.
    """

    inputs: tuple[CaseInputs, ...]
    probes: tuple[tuple[str, int], ...] = ()
    cpu_s: float | None = None
    own_bytes: int | None = None

    @property
    def n_cases(self) -> int:
        """How many of them are run: what is launched at full size is written down and compiled."""
        return sum(not inputs.at_full_size for inputs in self.inputs)

    @property
    def bounds_memory(self) -> bool:
        return any(inputs.bounds_memory for inputs in self.inputs)

    @property
    def is_sealed(self) -> bool:
        """Whether the job may start nothing that could work out of sight."""
        return self.bounds_memory or self.cpu_s is not None or self.own_bytes is not None


def public_cases(exercise: Exercise) -> CaseSet:
    drawn = [make_inputs(exercise, case, public_seed(exercise.id, n)) for n, case in enumerate(exercise.public)]
    return CaseSet(tuple(map(CaseInputs, exercise.public, drawn)))


def hidden_cases(exercise: Exercise, secret: Secret) -> CaseSet:
    """The hidden cases; after them, when everything has been used once, those whose memory is bounded from outside."""
    hidden, rng = hidden_of(exercise.id), secret.draw(exercise.id)
    budgets = oracle_of(exercise.id).budgets
    limits = {budget.name: budget.limit for budget in budgets if not budget.at}
    at_moments = {budget.at: budget.limit for budget in budgets if budget.at}
    cases = list(hidden.cases(rng))
    n_plain = len(cases)
    drawn = []
    for index, case in enumerate([*cases, *hidden.memory_cases(rng)]):
        tree = make_inputs(exercise, case, secret.draw(exercise.id, f"inputs {index}").getrandbits(63))
        if index < n_plain:
            drawn.append(CaseInputs(case, tree))
            continue
        run = CaseRun(case, tree)
        moment_limits = {label: _limit(limit, run) for label, limit in at_moments.items()}
        drawn.append(CaseInputs(case, tree, _limit(limits["peak_bytes"], run), moment_limits=moment_limits))
    if exercise.full_size is not None:
        drawn.append(CaseInputs(exercise.full_size, {}, at_full_size=True))
    run = exercise.run
    own_bytes = run.memory_bytes if run.memory_bytes < Run().memory_bytes else None
    return CaseSet(tuple(drawn), probes_for(budgets, rng), run.cpu_s, own_bytes)


def _limit(limit: object, run: CaseRun) -> float:
    return float(limit(run) if callable(limit) else limit)
