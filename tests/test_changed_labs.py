"""Which labs `make test` tries in full, in histories made for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.changed_labs import LABS, lab_of, labs_in_full

FIRST, SECOND, THIRD = LABS[:3]


@pytest.mark.parametrize(
    ("path", "lab"),
    [
        ("labkit/exercises/lab05/offload.py", "05"),
        ("labkit/oracles/lab05/__init__.py", "05"),
        ("grading/hidden/lab05/offload.py", "05"),
        ("labkit/figures/lab05.py", "05"),
        ("tests/figures/test_lab05_gantt.py", "05"),
        ("solutions/05_recompute.py", "05"),
        ("notebooks/05_recompute.ipynb", "05"),
        ("tests/wrong/05-offload/no_wait.py", "05"),
        ("tests/right/05-offload__noisy.py", "05"),
        ("tests/attacks/05_ast_transformer.py", ""),
        ("tests/grading/lab99/oracles.py", ""),
        ("solutions/99_none.py", ""),
        ("labkit/measures.py", ""),
        ("collab05/x.py", ""),
    ],
)
def test_the_lab_of_a_file(path: str, lab: str) -> None:
    assert lab_of(path) == lab


@pytest.fixture
def repo(tmp_path) -> Path:
    git(tmp_path, "init", "-q")
    write(tmp_path, "labkit/measures.py", "1")
    for lab in LABS:
        write(tmp_path, f"solutions/{lab}_x.py", "1")
    return tmp_path


def git(repo: Path, *arguments: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=repo, check=True, capture_output=True)


def write(repo: Path, path: str, text: str, commit: bool = True) -> None:
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text(text)
    if commit:
        git(repo, "add", path)
        git(repo, "commit", "-q", "-m", f"Write {path}")


def test_what_differs_from_the_last_release_is_tried_in_full(repo) -> None:
    git(repo, "tag", "v0.1.0")
    write(repo, f"solutions/{FIRST}_x.py", "2")
    git(repo, "tag", "v0.2.0")
    git(repo, "tag", "draft")
    write(repo, f"labkit/oracles/lab{SECOND}/x.py", "2")
    assert labs_in_full(repo).in_words() == f"{SECOND} (changed since v0.2.0)"


def test_what_is_not_committed_counts_first_and_two_labs_are_enough(repo) -> None:
    git(repo, "tag", "v0.1.0")
    write(repo, f"solutions/{THIRD}_x.py", "2")
    write(repo, f"solutions/{SECOND}_x.py", "2")
    write(repo, f"tests/wrong/{FIRST}-x/new.py", "2", commit=False)
    found = labs_in_full(repo)
    assert found.labs == sorted([FIRST, SECOND])
    assert found.why == f"changed since v0.1.0, like {THIRD}, whose turn is in make test-all"


def test_what_is_as_it_was_and_what_all_labs_share_picks_no_lab(repo) -> None:
    git(repo, "tag", "v0.1.0")
    write(repo, f"solutions/{FIRST}_x.py", "2")
    write(repo, f"solutions/{FIRST}_x.py", "1")
    write(repo, "labkit/measures.py", "2")
    found = labs_in_full(repo)
    assert len(found.labs) == 1
    assert found.why == "in rotation: no lab differs from v0.1.0"


def test_without_a_release_every_lab_has_its_turn_and_a_commit_always_the_same(repo) -> None:
    turns = set()
    for number in range(6 * len(LABS)):
        found = labs_in_full(repo)
        assert found == labs_in_full(repo)
        assert found.why == "in rotation: no release to compare with"
        turns.update(found.labs)
        if len(turns) > len(LABS) / 2:
            break
        git(repo, "commit", "-q", "--allow-empty", "-m", f"{number}")
    assert len(turns) > len(LABS) / 2


def test_a_folder_without_git_has_one_lab_in_rotation(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert len(labs_in_full(tmp_path).labs) == 1
    monkeypatch.setenv("PATH", str(tmp_path))
    assert labs_in_full(tmp_path).why == "in rotation: no release to compare with"
