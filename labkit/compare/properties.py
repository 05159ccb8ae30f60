"""Properties that hold for many exercises, for `Oracle.judge`: each takes one Observation and says what is wrong.

A property may carry a `hint`, shown when it fails. Comparing with an expected tree is `diff`'s business.
"""

from __future__ import annotations

from labkit.spec import Observation
from labkit.tree import leaves, same


def inputs_untouched(run: Observation) -> str | None:
    """The answer left its inputs as they were."""
    if same(run.tree, run.back):
        return None
    before, after = dict(leaves(run.tree)), dict(leaves(run.back))
    names = [name for name in before if name not in after or not same(before[name], after[name])]
    return f"the input `{names[0] if names else '?'}` was changed in place"


inputs_untouched.hint = (
    "Work on a copy. Operations whose name ends in an underscore, `+=` and assignments to a slice write into the "
    "tensor itself, and `.float()` or `.to(...)` returns the same tensor when there is nothing to convert."
)
