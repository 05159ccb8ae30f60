"""Measured comparisons, one script each.

A script's docstring says what is compared; its `main(argv)` measures and returns a result that JSON can
hold; `GPU = True` marks one that needs an NVIDIA GPU. `python -m benchmarks` runs them and writes
`results/`. Nothing here is graded or imported by the labs.
"""
