"""Tests of the patched interpreter. `checks` are also run on the stock one, which must fail it."""
