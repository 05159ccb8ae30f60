"""What looks for the harm that an attack does sees it: files, packets, processes, secrets, active pages, formulas."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from grading.verify.probes import leftovers, listeners, outputs, pages, trees


def test_changed_files_are_seen(tmp_path) -> None:
    for name in ("same", "changed", "gone", "emptied"):
        (tmp_path / name).write_text("x")
    before, stamps = trees.digests([tmp_path]), trees.stamps([tmp_path])
    (tmp_path / "changed").write_text("y token-a")
    (tmp_path / "gone").unlink()
    (tmp_path / "emptied").write_text("")
    (tmp_path / "new").write_text("of somebody else's")
    assert [Path(text.split()[0]).name for text in trees.changes(before, trees.digests([tmp_path]))] == [
        "gone",
        "new",
        "changed",
        "emptied",
    ]
    found = trees.carrying(stamps, trees.stamps([tmp_path]), "token")
    assert sorted(Path(text.split()[0]).name for text, _ in found) == ["changed", "emptied", "gone"]


def test_packets_are_heard(tmp_path) -> None:
    with listeners.Listeners(tmp_path) as listening:
        places = listening.places
        for family, address in (
            (socket.AF_INET, ("127.0.0.1", int(places["UDP"]))),
            (socket.AF_UNIX, places["SOCKET"]),
            (socket.AF_UNIX, "\0" + places["ABSTRACT"]),
        ):
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.sendto(b"token", address)
        with socket.create_connection(("127.0.0.1", int(places["TCP"]))) as sock:
            sock.sendall(b"token")
            sock.shutdown(socket.SHUT_WR)
            # Until the listener has read it and hung up.
            assert sock.recv(1) == b""
    assert sorted(listening.heard) == [("abstract", "token"), ("tcp", "token"), ("udp", "token"), ("unix", "token")]


def test_leftovers_are_found(tmp_path) -> None:
    name = f"token-{os.getpid()}"
    left = Path("/tmp", name)
    left.write_text("")
    try:
        assert list(leftovers.left_over(name, (tmp_path,))) == [f"left {left}"]
    finally:
        left.unlink()
    (tmp_path / "forgotten").write_text("")
    assert list(leftovers.left_in(tmp_path)) == [f"left {tmp_path / 'forgotten'}"]


def bounded(code: str, limit_s: float, gone_within_s: float = 20.0) -> str:
    """What `run_bounded` says of a program: code, reason, survivors. In a process of its own: being everybody's parent,
    and ending them all, is not for the one that runs the tests.
    """
    run = f"was = run_bounded([{sys.executable!r}, '-c', {code!r}], {limit_s}, {gone_within_s})"
    say = "print(was.exit_code, was.stopped_for, len(was.survivors))"
    look = f"from grading.verify.launcher import run_bounded; {run}; {say}"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=280, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_survivor_is_seen_and_ended() -> None:
    stay = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(60)"
    assert bounded(stay, 30.0, gone_within_s=2.0) == "0 None 2"


@pytest.mark.slow
def test_what_does_not_end_is_ended() -> None:
    assert bounded("import time; time.sleep(60)", 0.5) == "None not done after 0.5 s 0"


def test_secrets_and_floods_are_found() -> None:
    kept = {"the page": "abc canary-1 def", "the notebook": "x" * (outputs.MAX_OUTPUT_BYTES + 1)}
    assert list(outputs.secrets_in(kept, {"the key": "canary-1", "the rest": "canary-2"})) == ["the key is in the page"]
    assert list(outputs.too_much(kept)) == ["the notebook has more than 2,097,152 bytes"]


@pytest.mark.parametrize(
    ("html", "n_found"),
    [
        ("<p>&lt;script&gt;token&lt;/script&gt; token</p>", 0),
        ("<script>ours()</script>", 0),
        ("<script>'token'</script>", 1),
        ("<p onclick=\"'token'\">x</p>", 1),
        ("<a href=\" JavaScript:'token'\">x</a>", 1),
        ('<a href="#token">x</a>', 0),
        ('<img src="https://x.org/token.png">', 1),
        ('<iframe src="x?token"></iframe>', 1),
    ],
)
def test_active_elements_are_found(tmp_path, html: str, n_found: int) -> None:
    (tmp_path / "page.html").write_text(f"<html><body>{html}</body></html>")
    assert len(list(pages.active_in(tmp_path / "page.html", "token"))) == n_found


def test_formulas_and_escapes_are_found(tmp_path) -> None:
    (tmp_path / "grades.csv").write_text('student,points\n\'=SUM(A1),-1.5\n=SUM(A1),1\n"@x,y",2\n')
    assert len(list(pages.formulas_in(tmp_path / "grades.csv"))) == 2
    assert pages.escapes_in("\x1b[2J") and not pages.escapes_in("tab\tand\nline")
