"""Reference kernels for the tests: written as they would be for a GPU, each with its launcher."""
