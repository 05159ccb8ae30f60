"""`@triton.autotune` without a GPU: each configuration that the pruning left runs once, and the first is taken.

Times on an interpreter say nothing about a GPU, and a choice by time would make the same notebook run differently. The
trials leave in memory what they leave on a GPU, so a kernel that works in place without `restore_value` is wrong here
as well. No meter counts them.
"""

from __future__ import annotations

from torch.utils._python_dispatch import _disable_current_modes

from labkit.interpreter.unwatched import unwatched


def patch() -> None:
    """Replace the autotuner's benchmark, which asks for a GPU driver, and its cache on disk, which does too."""
    from triton.runtime.autotuner import Autotuner

    def _bench(self, *args, config, **meta):
        conflicts = sorted(meta.keys() & config.kwargs.keys())
        if conflicts:
            raise ValueError(
                f"{', '.join(conflicts)} of kernel {self.base_fn.__name__} is set by its autotuner: leave it out of "
                f"the launch, or out of the configurations"
            )
        current = {**meta, **config.all_kwargs()}
        given = {**self.nargs, **current}
        with unwatched(), _disable_current_modes():
            if config.pre_hook:
                config.pre_hook(given)
            self.pre_hook(given)
            self.fn.run(*args, **current)
            self.post_hook(given, exception=None)
        # All alike, and min() takes the first of equals.
        return [0.0, 0.0, 0.0]

    def check_disk_cache(self, tuning_key, configs, bench_fn):
        bench_fn()
        return False

    tune = Autotuner.run

    def run(self, *args, **kwargs):
        prepare = self.pre_hook

        def unseen(*args, **kwargs):
            # What tuning resets, in the first launch only, is no work of the launch: no meter shall count it.
            with _disable_current_modes():
                return prepare(*args, **kwargs)

        self.pre_hook = unseen
        try:
            return tune(self, *args, **kwargs)
        finally:
            self.pre_hook = prepare

    Autotuner._bench, Autotuner.check_disk_cache, Autotuner.run = _bench, check_disk_cache, run
