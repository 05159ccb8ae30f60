"""Run an answer on one case through its exercise's driver, and write down what happened.

The same code runs beside the student's notebook and in the grader's worker. It judges nothing and knows no
expected value.
"""

from labkit.observe.inputs import gather_answers, make_inputs, n_ranks, public_seed
from labkit.observe.runs import observe, observe_full_size, observe_job, observe_rank
from labkit.observe.surroundings import known_settings

__all__ = [
    "gather_answers",
    "known_settings",
    "make_inputs",
    "n_ranks",
    "observe",
    "observe_full_size",
    "observe_job",
    "observe_rank",
    "public_seed",
]
