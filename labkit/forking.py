"""What the environment of a process needs that others are forked from. Nothing is forked here."""

FORKED_FROM = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Without it `has_gpu`, which importing `labkit.devices` calls, initializes CUDA, and no fork of a process that has can
use the GPU."""
