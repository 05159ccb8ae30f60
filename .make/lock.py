"""Writes `.make/locks/cpu.txt` and `cuda.txt`: the exact versions that the tests have run with, for next year's set-up.

Versions come from the environment that this runs in; what other systems and later Pythons need besides is resolved by
uv, which the Makefile installs beside it. The two files differ in torch: the build for the CPU brings no CUDA packages
along, the one for NVIDIA's GPUs brings its own Triton and NVRTC. `make setup LOCK=cpu` installs what the first says.
It does not install or change anything itself, and writes no address of an index.
"""

import importlib.metadata
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = Path(__file__).resolve().parent / "locks"
OURS = "efficient-training-labs"
OLDEST_PYTHON = "3.11"
EXTRAS = ("labs", "grading", "dev", "site")
BUILDS = ("cpu", "cuda")
OF_CUDA = re.compile(r"^(nvidia|cuda|triton)")
"""Packages that torch's build for GPUs chooses by itself."""
ONLY_CUDA = re.compile(r"extra|^(nvidia|cuda|triton)")
HEADER = "# Written by `make lock`: what the tests have run with. Installed by `make setup LOCK={build}`.\n"


def installed() -> dict[str, str]:
    """The public versions of what is installed: 2.13.0 also where it is 2.13.0+cpu."""
    found = {one.metadata["Name"].lower(): one.version.split("+")[0] for one in importlib.metadata.distributions()}
    found.pop(OURS, None)
    return found


def without_cuda(version: str) -> str:
    """Settings of uv by which torch needs what its build for the CPU needs."""
    needs = [one for one in importlib.metadata.requires("torch") or [] if not ONLY_CUDA.search(one)]
    return f'[[dependency-metadata]]\nname = "torch"\nversion = "{version}"\nrequires-dist = {needs!r}\n'


def lock(uv: str, build: str, versions: dict[str, str]) -> str:
    """The text of a lock file. Raises CalledProcessError where uv finds no versions that fit together."""
    with tempfile.TemporaryDirectory() as folder:
        wanted, settings, out = (Path(folder) / name for name in ("wanted.txt", "uv.toml", "out.txt"))
        kept = {name: one for name, one in versions.items() if build == "cpu" or not OF_CUDA.match(name)}
        # An older Python, down to the oldest supported, takes these too where they have it.
        here = f"python_full_version >= '{platform.python_version()}'"
        wanted.write_text("".join(f"{name}=={version} ; {here}\n" for name, version in sorted(kept.items())))
        settings.write_text(without_cuda(versions["torch"]) if build == "cpu" else "")
        command = [uv, "pip", "compile", str(ROOT / "pyproject.toml"), "--universal", "--no-header", "--no-annotate"]
        command += [
            "--python-version",
            OLDEST_PYTHON,
            "--constraint",
            str(wanted),
            "--config-file",
            str(settings),
        ]
        command += [f"--extra={extra}" for extra in EXTRAS] + [
            "--output-file",
            str(out),
            "--quiet",
            "--no-emit-index-url",
        ]
        subprocess.run(command, check=True)
        lines = [line for line in out.read_text().splitlines() if not line.startswith(("-e", OURS, "#"))]
    return HEADER.format(build=build) + "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    (uv,) = argv
    LOCKS.mkdir(exist_ok=True)
    for build in BUILDS:
        try:
            text = lock(uv, build, installed())
        except subprocess.CalledProcessError:
            print(f"lock: no versions for {build} fit together; what uv says stands above", file=sys.stderr)
            return 1
        path = LOCKS / f"{build}.txt"
        path.write_text(text, encoding="utf-8")
        print(f"lock: {path.relative_to(ROOT)}: {text.count('==')} versions")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
