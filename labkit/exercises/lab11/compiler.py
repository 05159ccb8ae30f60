"""Lab 11: torch.compile as in a new process, whatever an answer or a cell has set before; put back afterwards."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from labkit.meters.compile.torch_private import untimed_guards

_SETTINGS = {
    "recompile_limit": 8,
    "accumulated_recompile_limit": 256,
    "fail_on_recompile_limit_hit": False,
    "error_on_recompile": False,
    "suppress_errors": False,
    "allow_unspec_int_on_nn_module": False,
    "automatic_dynamic_shapes": True,
    "assume_static_by_default": True,
    "capture_scalar_outputs": False,
    "capture_dynamic_output_shape_ops": False,
}
"""PyTorch's defaults."""


@contextmanager
def fresh_compiler() -> Iterator[None]:
    """Nothing compiled yet, the default settings, and no warning at the limit: an exercise tells of it by itself."""
    from torch._dynamo import config

    loggers = [logging.getLogger(name) for name in ("torch._dynamo", "torch._guards")]
    levels = [logger.level for logger in loggers]
    torch._dynamo.reset()
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with (
            config.patch({name: value for name, value in _SETTINGS.items() if hasattr(config, name)}),
            untimed_guards(),
        ):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        torch._dynamo.reset()
