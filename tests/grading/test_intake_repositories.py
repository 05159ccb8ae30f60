"""Repositories of students: the notebook of a branch, at the time of its commit, and nothing of theirs is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grading.course import Course
from grading.intake import git_reading
from tests.grading.deliveries import book, collect, make_small_course, received, state
from tests.grading.lessons import LAB
from tests.lanes import require

FILE = f"{LAB}.ipynb"
GIT = ("git", "-c", "init.defaultBranch=main", "-c", "gc.auto=0", "-c", "core.hooksPath=/dev/null")
NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.edu",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.edu",
}


@pytest.fixture(autouse=True)
def _needs_git() -> None:
    require("git", "these tests make repositories", "sudo apt install git")


@pytest.fixture
def course(tmp_path) -> Course:
    return make_small_course(tmp_path / "course")


def git(folder: Path, *words: str, at: int = 1_767_225_600) -> str:
    times = {"GIT_AUTHOR_DATE": f"{at} +0000", "GIT_COMMITTER_DATE": f"{at} +0000"}
    done = subprocess.run(
        [*GIT, *words], cwd=folder, env={**os.environ, **NOBODY, **times}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def repository(folder: Path, *commits: dict[str, bytes], branch: str = "main") -> Path:
    """A repository with these files, one commit an hour from the first of January 2026 on."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    for hour, files in enumerate(commits):
        for name, data in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x", at=1_767_225_600 + 3600 * hour)
    return folder


def stamp(course: Course, student: str) -> str:
    return course.submitted(LAB, student).with_name("timestamp.txt").read_text()


def test_a_classroom_is_taken_at_the_time_of_the_commit_that_changed_the_notebook(course, tmp_path, capsys) -> None:
    top = tmp_path / "small-lab-submissions"
    readme = {"README.md": b"later"}
    ada = repository(top / "small-lab-ada", {FILE: book("1")}, {f"labs/{FILE}": book("2"), FILE: book("2b")}, readme)
    git(ada, "rm", "-q", FILE)
    git(ada, "commit", "-q", "-m", "moved", at=1_767_300_000)
    bob = repository(top / "small-lab-bob", {FILE: book("committed"), "01_other.ipynb": book("o")})
    (bob / FILE).write_bytes(book("not committed"))
    git(bob, "gc", "-q")
    (top / "classroom_roster.csv").write_text("identifier,github_username\n")
    assert collect(course, "--repositories", top) == 0
    assert course.submitted(LAB, "ada").read_bytes() == book("2")
    assert course.submitted(LAB, "bob").read_bytes() == book("committed")
    assert (stamp(course, "ada"), stamp(course, "bob")) == (
        "2026-01-01 01:00:00.000000 UTC",
        "2026-01-01 00:00:00.000000 UTC",
    )
    assert "2 taken, 0 unchanged, 0 refused (repositories)" in capsys.readouterr().out
    assert [facts["file"] for facts in received(course)] == [f"ada/labs/{FILE}", f"bob/{FILE}"]
    before = state(course)
    assert collect(course, "--repositories", top) == 0
    assert state(course) == before


def test_the_branch_that_was_fetched_counts(course, tmp_path, capsys) -> None:
    origin = repository(tmp_path / "origin", {FILE: book("first")})
    git(origin, "switch", "-q", "-c", "handin")
    (origin / FILE).write_bytes(book("for handin"))
    git(origin, "commit", "-qam", "x", at=1_767_229_200)
    top = tmp_path / "in"
    top.mkdir()
    git(tmp_path, "clone", "-q", "--branch", "main", f"file://{origin}", str(top / "hw-ada"))
    git(tmp_path, "clone", "-q", "--depth", "1", "--branch", "handin", f"file://{origin}", str(top / "hw-shallow"))
    repository(top / "hw-bob", {FILE: book("b")})
    assert collect(course, "--repositories", top, "--prefix", "hw-", "--branch", "handin") == 1
    assert course.submitted(LAB, "ada").read_bytes() == book("for handin")
    assert stamp(course, "shallow") == "2026-01-01 01:00:00.000000 UTC"
    told = capsys.readouterr().out
    assert "refused 'hw-bob': the branch handin has no commit in it, or does not exist (--branch names another)" in told
    assert collect(course, "--repositories", top, "--prefix", "hw-") == 1
    assert "refused 'ada/00_small.ipynb': it is older than what is there (" in capsys.readouterr().out


HOSTILE_CONFIG = """[core]
	repositoryformatversion = 0
	fsmonitor = touch {mark}
	hooksPath = {hooks}
	sshCommand = touch {mark}
	pager = touch {mark}
	worktree = {course}
[log]
	showSignature = true
[gpg]
	program = {program}
[diff]
	external = {program}
[filter "x"]
	smudge = touch {mark}
	clean = touch {mark}
[include]
	path = {course}/nbgrader_config.py
"""


def test_nothing_of_a_hostile_repository_is_run_or_followed(course, tmp_path, capsys) -> None:
    mark, top = tmp_path / "mark", tmp_path / "in"
    eve = repository(top / "eve", {FILE: book("eve"), ".gitattributes": b"*.ipynb filter=x diff=x\n"})
    hooks = eve / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "reference-transaction", "fsmonitor-watchman", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    names = {"mark": mark, "hooks": hooks, "program": program, "course": course.root}
    # A signed commit: git log asks the program of [gpg] about it where the configuration is heeded.
    commit = git(eve, "cat-file", "commit", "HEAD").split("\n\n", 1)
    signed = f"{commit[0]}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n{commit[1]}\n"
    (tmp_path / "signed").write_text(signed)
    digest = git(eve, "hash-object", "-t", "commit", "-w", str(tmp_path / "signed"))
    (eve / ".git" / "refs" / "heads" / "main").write_text(f"{digest}\n")
    (eve / ".git" / "config").write_text(HOSTILE_CONFIG.format(**names))
    environment = {**os.environ, **NOBODY}
    subprocess.run(["git", "log", "-1"], cwd=eve, env=environment, capture_output=True, check=False)
    assert mark.exists(), "the control: git in that folder runs what the configuration names"
    mark.unlink()
    assert collect(course, "--repositories", top) == 0
    assert not mark.exists()
    assert course.submitted(LAB, "eve").read_bytes() == book("eve")
    assert sorted(path.name for path in eve.iterdir()) == [".git", ".gitattributes", FILE]


def test_links_alternates_grafts_and_replaced_objects_lead_nowhere(course, tmp_path, capsys) -> None:
    secret = repository(tmp_path / "secret", {FILE: book("the solution")})
    stolen = git(secret, "rev-parse", "HEAD")
    top = tmp_path / "in"
    # Another repository's objects, by git's own way of sharing them.
    by_alternates = repository(top / "alternates", {"x": b""})
    (by_alternates / ".git" / "objects" / "info" / "alternates").write_text(f"{secret}/.git/objects\n")
    (by_alternates / ".git" / "refs" / "heads" / "main").write_text(f"{stolen}\n")
    assert FILE in git(by_alternates, "ls-tree", "--name-only", "HEAD"), "the control"
    by_link = repository(top / "linked_objects", {"x": b""})
    shutil.rmtree(by_link / ".git" / "objects")
    (by_link / ".git" / "objects").symlink_to(secret / ".git" / "objects")
    (by_link / ".git" / "refs" / "heads" / "main").write_text(f"{stolen}\n")
    (top / "gitfile").mkdir()
    (top / "gitfile" / ".git").write_text(f"gitdir: {secret}/.git\n")
    (top / "linked_git").mkdir()
    (top / "linked_git" / ".git").symlink_to(secret / ".git")
    (top / "linked").symlink_to(secret)
    (top / "empty").mkdir()
    in_tree = repository(top / "link_in_tree", {"x": b""})
    (in_tree / FILE).symlink_to(course.source(LAB))
    git(in_tree, "add", "-A")
    git(in_tree, "commit", "-q", "-m", "x")
    replaced = repository(top / "replaced", {FILE: book("hers")}, {FILE: book("another")})
    git(replaced, "replace", "HEAD", "HEAD~1")
    assert collect(course, "--repositories", top) == 1
    assert course.students(LAB) == ["replaced"]
    assert course.submitted(LAB, "replaced").read_bytes() == book("another")
    told = capsys.readouterr().out
    no_repository = "it is no repository of its own: its .git is missing, a link, or leads elsewhere (clone it again)"
    for name in ("empty", "gitfile", "linked_git"):
        assert f"refused '{name}': {no_repository}" in told
    assert "refused 'linked': it is a link or no folder: a repository is expected for each student" in told
    assert f"refused 'link_in_tree': in it {FILE} is a link" in told
    for name in ("alternates", "linked_objects"):
        assert f"refused '{name}': " in told
    assert b"the solution" not in b"".join(data for _, data in state(course).values())


def test_damage_excess_and_clumsiness_are_refused_with_a_reason(course, tmp_path, capsys, monkeypatch) -> None:
    top = tmp_path / "in"
    damaged = repository(top / "hw-damaged", {FILE: book("d")})
    git(damaged, "gc", "-q")
    (pack,) = (damaged / ".git" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:-30])
    repository(top / "hw-none", {"README.md": b"x", "01_other.ipynb": book("o")})
    repository(top / "hw-two", {FILE: book("1"), f"copy/{FILE}": book("2")})
    repository(top / "other-ada", {FILE: book("1")})
    git(repository(top / "hw-unborn"), "status")
    (repository(top / "hw-headless", {FILE: book("1")}) / ".git" / "HEAD").write_text("ref: ../../x\n")
    (top / f"bob_{FILE}").write_bytes(book("b"))
    assert collect(course, "--repositories", top, "--prefix", "hw-") == 1
    told = capsys.readouterr().out
    for name, reason in {
        "hw-damaged": "git index-pack cannot read its history, or needs too much for it: clone it again",
        "hw-none": f"the branch main has no {FILE}",
        f"two/{FILE}": f"2 notebooks of one student, and nothing tells which is the newest: {FILE}, {FILE}",
        "other-ada": 'its name does not begin with "hw-" and a student (--prefix says another)',
        "hw-unborn": "the branch main has no commit in it, or does not exist (--branch names another)",
        "hw-headless": "it is no whole repository: its HEAD is missing or none (clone it again)",
        f"bob_{FILE}": "it is a link or no folder: a repository is expected for each student",
    }.items():
        assert f"refused '{name}': {reason}" in told
    assert course.students(LAB) == []
    monkeypatch.setattr(git_reading, "MAX_COPIED_FILES", 3)
    assert collect(course, "--repositories", top, "--prefix", "other-") == 1
    assert "refused 'other-ada': its history has more than 3 files or 512 MiB: copy the notebook" in (
        capsys.readouterr().out
    )


def test_the_request_itself_is_checked(course, tmp_path, capsys, monkeypatch) -> None:
    folder = tmp_path / "in"
    assert collect(course, "--repositories", folder) == 2
    assert (
        f"{folder} is not a folder: give the folder that has a repository for each student" in capsys.readouterr().err
    )
    folder.mkdir()
    assert collect(course, "--folder", folder, "--branch", "main") == 2
    assert "--branch and --prefix are about repositories: give them with --repositories" in capsys.readouterr().err
    assert collect(course, "--repositories", folder, "--platform", "moodle") == 2
    assert "a repository's folder is called after its student: use --prefix or --roster" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert collect(course, "--repositories", folder) == 2
    assert "the program git is not installed: install it, or collect a folder" in capsys.readouterr().err
