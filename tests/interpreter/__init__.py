"""Tests of the patched interpreter. `checks.py` is also run on the stock one, which must fail it."""
