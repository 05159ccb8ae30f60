"""The Dockerfile hands students what their archive has, runs as an ordinary user, and names what is there.

No image is built here.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from grading.build.bundle import FILES, FOLDERS

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("base", "student", "tools", "instructor", "dev")


def stages() -> dict[str, list[tuple[str, str]]]:
    """Each stage's instructions, with what follows them on their line and on the lines that it goes on to."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[tuple[str, str]]] = {}
    for line in filter(str.strip, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = list(found.get(base, []))
        else:
            found[name].append((word, rest))
    return found


def test_the_students_image_holds_what_their_archive_holds() -> None:
    copied = {}
    for word, rest in stages()["student"]:
        if word == "COPY":
            *sources, target = rest.split()[1:]
            assert target == "./" or len(sources) == 1
            copied |= {source if target == "./" else target: source for source in sources}
    assert copied == FILES | {folder: folder for folder in (*FOLDERS, "notebooks")}


@pytest.mark.parametrize("name", STAGES)
def test_nothing_runs_as_root(name: str) -> None:
    users = [rest for word, rest in stages()[name] if word == "USER"]
    assert users[-1] == "course"


def test_a_volume_is_put_where_a_folder_of_the_ordinary_user_is() -> None:
    """A folder that Docker makes for a mount is root's."""
    volumes = re.findall(r"-v ([^ :]+):(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    ((_, made),) = [(word, rest) for word, rest in stages()["base"] if word == "RUN"]
    owned = made.partition("install -d -o course -g course ")[2].split()
    assert len(volumes) == 2 and {path for _, path in volumes} <= set(owned)
    assert all(re.fullmatch(r"[a-z-]+", name) for name, _ in volumes)


def test_the_editor_works_with_its_own_environment() -> None:
    """Not with that of the image, which a stage might bring."""
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert container["remoteEnv"]["PATH"].startswith("${containerWorkspaceFolder}/.venv/bin:")
    assert "make setup" in container["postCreateCommand"]
    assert not any("make setup" in rest for word, rest in stages()["dev"] if word == "RUN")


def test_every_stage_is_known_and_the_editors_container_names_one() -> None:
    assert tuple(stages()) == STAGES
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert container["build"]["target"] == "dev"
    assert (ROOT / ".devcontainer" / container["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert container["remoteUser"] == "course"


def test_commands_that_images_run_are_targets_of_the_makefile() -> None:
    texts = [rest for stage in stages().values() for word, rest in stage if word in ("RUN", "CMD")]
    wanted = {name for text in texts for name in re.findall(r'\bmake"?,? "?([a-z]+)\b', text)}
    targets = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert wanted == {"setup", "lab"}
    assert all(f"make {name} " in targets for name in wanted)
