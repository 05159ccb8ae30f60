"""Reference kernels: what the labs' teaching versions grow into, written to be fast on an A100, an H100 or an H200.

One operation a file, and one name all the way: `softmax.py` has `softmax`, its test is tests/reference/test_softmax.py,
its rows in the benchmark are called softmax. A file goes: kernels, launchers, autograd Function, public function.
The files need PyTorch and Triton alone, and nothing of the course is answered by them.
"""
