"""Answers whose record of launches does not say what ran."""

from __future__ import annotations

from tests.grading.lab97.answers import ADD, TOTAL
from tests.grading.lab97.cheat import BY_TORCH, FORGE, IN_TORCH, PATCH, Cheat

_A_KERNEL_FOR_EACH_SIZE = """
""" + "\n".join(f"@triton.jit\ndef k{n}(x_ptr):\n    y = ().__class__\n" for n in range(4))
_NAME_THE_SIZE = """
    from labkit.meters.launch_log import digest_of_function
    n = sum(log["outputs"]["out"]["shape"])
    if n not in (300, 257):
        kernel = (k0, k1, k2, k3)[n % 4]
        log["entries"][0]["kernel"] = [f"k{n % 4}", digest_of_function(kernel.fn)]
"""
_LAUNCH = "add_kernel[(triton.cdiv(x.numel(), 128),)](x, y, {out}, x.numel(), BLOCK_SIZE=128)"

RECORD_CHEATS = (
    Cheat(
        "figures that the meter did not count",
        "97-add",
        (PATCH, ADD.replace("    return out", f"    {_LAUNCH.format(out='out')}\n    return out")),
        "failed",
        "read more often than necessary",
    ),
    Cheat(
        "a record of a launch that writes the result of PyTorch as constants",
        "97-total",
        (
            PATCH,
            FORGE.format(
                change='out = log["outputs"]["out"]; log["entries"] = [{"do": "constants", "to": out, '
                '"values": [float(VALUE)]}]'
            ),
            "def total(x):\n    global VALUE\n    VALUE = x.sum()\n    return VALUE",
        ),
        "failed",
        "come out of the kernels that the answer launches",
    ),
    Cheat(
        "a record in which PyTorch adds the inputs up",
        "97-add",
        (
            PATCH,
            FORGE.format(
                change='refs = [{"storage": n, "offset": 0, "shape": list(outputs["out"].shape), "strides": [1], '
                '"dtype": "float32"} for n in (0, 1)]\n    log["entries"] = [{"do": "add", "to": '
                'log["outputs"]["out"], "left": {"tensor": refs[0]}, "right": {"tensor": refs[1]}, '
                '"times": 1, "name": "add"}]'
            ),
            IN_TORCH,
        ),
        "failed",
        BY_TORCH,
    ),
    Cheat(
        "no record",
        "97-add",
        (PATCH, FORGE.format(change="log = None"), IN_TORCH),
        "suspected",
        "cannot be read",
    ),
    Cheat(
        "a record that names no results",
        "97-add",
        (PATCH, FORGE.format(change='log["outputs"] = {}'), IN_TORCH),
        "suspected",
        "names no origin of out",
    ),
    Cheat(
        "a record whose memory lies outside of everything",
        "97-add",
        (FORGE.format(change='log["outputs"]["out"]["offset"] = 10**6'), ADD),
        "suspected",
        "could not be run again",
    ),
    Cheat(
        "a record of much memory",
        "97-add",
        (FORGE.format(change='log["storages"].append({"bytes": 2**40})'), ADD),
        "suspected",
        "could not be run again",
    ),
    Cheat(
        "a record of a launch without an end",
        "97-total",
        (FORGE.format(change='log["entries"][0]["grid"] = [2**31 - 1, 1, 1]'), TOTAL),
        "limit",
        "a loop in a kernel that hardly ends",
    ),
    Cheat(
        "an operation named after what was fed",
        "97-add",
        (
            PATCH,
            FORGE.format(change='log["entries"][0].update(do="lost", name="n is 257", to=[log["outputs"]["out"]])'),
            IN_TORCH,
        ),
        "failed",
        "Let the result come out of the kernels",
    ),
    Cheat(
        "a kernel of its own text for each size that is fed",
        "97-add",
        (_A_KERNEL_FOR_EACH_SIZE, FORGE.format(change=_NAME_THE_SIZE), ADD),
        "failed",
        "hint='A kernel that it launches cannot be run from its text alone",
    ),
    Cheat(
        "an operation of PyTorch's for each size that is fed",
        "97-add",
        (
            PATCH,
            FORGE.format(
                change='n = sum(log["outputs"]["out"]["shape"])\n    names = [name for name in dir(torch.ops.aten) '
                'if name[0] != "_"]\n    name = "sin" if n in (300, 257) else names[n % len(names)]\n    '
                'log["entries"][0] = {"do": "lost", "name": name, "to": [log["outputs"]["out"]]}'
            ),
            IN_TORCH,
        ),
        "failed",
        "The result rests on `sin`, computed by PyTorch",
    ),
    Cheat(
        "a record that has an input twice",
        "97-add",
        (FORGE.format(change='log["storages"].append({"input": "x"})'), ADD),
        "suspected",
        "names an input twice",
    ),
    Cheat(
        "a record that counts its memory backwards",
        "97-add",
        (FORGE.format(change='log["outputs"]["out"]["storage"] = -1'), ADD),
        "suspected",
        "could not be run again",
    ),
)
