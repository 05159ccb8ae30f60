"""One check per patch, each a function without arguments that raises where values are wrong.

They are run on the patched interpreter, where all pass, and on the stock one, where all but STOCK_PASSES must fail.
"""

# Each of these modules adds its checks to ALL.
from tests.interpreter.checks import arithmetic, blocks, casts, launches, masks
from tests.interpreter.checks.common import ALL

__all__ = ["ALL", "STOCK_PASSES", "arithmetic", "blocks", "casts", "launches", "masks"]
STOCK_PASSES = {
    "the_language_is_given_back",
    "bf16_negative",
    "bf16_abs",
    "fp8_abs",
    "conditions_are_truth_values",  # until 3.8
}
"""What the stock interpreter does right, in some version at least; kept because our patches could break it."""
