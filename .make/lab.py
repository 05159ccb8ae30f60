"""Opens JupyterLab on the student's own copy of the labs, in `work/`.

Labs that are not there yet are copied from `notebooks/`. A file that exists in `work/` is never
touched, whatever it holds; where the lab it was copied from has changed since, that is said in a line.
The first time, JupyterLab opens on the first lab. It asks no question about news, and shows none of
nbgrader's panels for instructors: `.make/jupyter` switches them off for this start alone.
It does not merge a new release into the student's copy, and changes no settings of the user's.

    make lab                  or, on Windows and in a conda environment:  python .make/lab.py
    make lab LAB_ARGS="--port 9999"                                       python .make/lab.py --port 9999
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

FIRST_LAB = "00_start_here.ipynb"
ORIGIN = ".origin.json"  # file name -> digest of the release that was copied


def sync(source: Path, work: Path) -> list[str]:
    """Copy what is missing, leave the rest, and return what to tell the student."""
    work.mkdir(parents=True, exist_ok=True)
    origin = read_origin(work)
    new, kept, newer = [], [], []
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if not path.is_file() or any(part.startswith(".") for part in name.parts):
            continue
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if place(work / name, content):
            origin[str(name)] = digest
            new.append(str(name))
        elif origin.get(str(name), digest) != digest:
            newer.append(str(name))
        else:
            kept.append(str(name))
    write_origin(work, origin)
    lines = []
    if new:
        lines.append(f"new in {work.name}/: {', '.join(new)}")
    if kept:
        lines.append(f"already in {work.name}/, left as you have them: {', '.join(kept)}")
    lines += [
        f"{name} was released anew; yours is left as it is. To start on the new one, rename "
        f"{work.name}/{name} and run make lab again."
        for name in newer
    ]
    return lines


def place(target: Path, content: bytes) -> bool:
    """Write a file that does not exist, whole or not at all; false where anything has that name."""
    if os.path.lexists(target):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(content)
        try:
            os.link(part, target)  # unlike a rename, refuses where another program was quicker
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            with target.open("xb") as file:
                file.write(content)
    finally:
        part.unlink(missing_ok=True)
    return True


def read_origin(work: Path) -> dict[str, str]:
    """What was copied before; nothing where the record is missing or spoiled."""
    with contextlib.suppress(OSError, ValueError):
        origin = json.loads((work / ORIGIN).read_text(encoding="utf-8"))
        if isinstance(origin, dict):
            return origin
    return {}


def write_origin(work: Path, origin: dict[str, str]) -> None:
    part = work / f"{ORIGIN}.part"
    part.write_text(json.dumps(origin, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(work / ORIGIN)


def main(argv: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    source, work = root / "notebooks", root / "work"
    if not any(source.glob("*.ipynb")):
        print("lab: no notebooks here. Fix: make notebooks", file=sys.stderr)
        return 1
    is_first = not (work / ORIGIN).exists()
    try:
        for line in sync(source, work):
            print(f"lab: {line}", flush=True)
    except OSError as error:
        print(f"lab: {error}. Fix: make room or give yourself the right to write there", file=sys.stderr)
        return 1
    os.chdir(work)
    os.environ.update(settings(root))
    return start([sys.executable, "-m", "jupyterlab", *(argv or opens(is_first))])


def settings(root: Path) -> dict[str, str]:
    """Where JupyterLab looks for settings, besides where it does already."""
    here = str(root / ".make" / "jupyter")
    return {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, [here, os.environ.get("JUPYTER_CONFIG_PATH", "")]))}


def opens(is_first: bool) -> list[str]:
    return [FIRST_LAB] if is_first and os.path.exists(FIRST_LAB) else []


def start(command: list[str]) -> int:
    """In the place of this process; Windows would give the terminal back to the shell at once."""
    if os.name == "nt":
        return subprocess.call(command)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
