"""A store keeps what was written, counts what was opened, and ends a job at the call that it was told."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import torch

from labkit.compare import inputs_untouched
from labkit.measures import MEASURES, STORE
from labkit.observe import make_inputs, observe
from labkit.spec import Answer, Case, Exercise, Run
from labkit.store import BookedStore, Books, JobKilled, Kill, StoreCall, StoreFull, books, books_of, part_of_job


def store_of(files: dict[str, bytes], *kills: Kill) -> tuple[BookedStore, Books]:
    made = Books(files, kills)
    made.begin_job()
    return BookedStore(made), made


def test_files_are_written_renamed_read_and_listed() -> None:
    store, kept = store_of({"shard-0": b"0123456789"})
    store.write("a.tmp", bytearray(b"abc"))
    store.write("a", memoryview(b"old"))
    store.rename("a.tmp", "a")
    assert (store.read("a"), store.read("shard-0", 8), store.read("shard-0", 2, 3)) == (b"abc", b"89", b"234")
    assert store.read("shard-0", 8, 99) == b"89" and store.read("a", 0, 0) == b""
    assert (store.list(), store.list("sh"), store.list("x")) == (["a", "shard-0"], ["shard-0"], [])
    found = kept.record()
    assert found.files == {"shard-0": b"0123456789", "a": b"abc"}
    assert found.calls[:4] == (
        StoreCall(0, "write", "a.tmp", 3),
        StoreCall(0, "write", "a", 3),
        StoreCall(0, "rename", "a.tmp", to="a"),
        StoreCall(0, "read", "a", 3),
    )
    assert found.calls[5] == StoreCall(0, "read", "shard-0", 3, start=2) and found.killed == (False,)


def test_the_measures_are_those_of_the_table() -> None:
    store, kept = store_of({"shard-0": b"0123456789"})
    store.write("a", b"abc")
    store.read("shard-0", 0, 4)
    store.read("shard-0", 4, 4)
    store.list()
    assert kept.figures() == {"opens": 3, "read_bytes": 8, "written_bytes": 3}
    assert kept.figures().keys() == {measure.name for measure in MEASURES.values() if measure.meter == STORE}


def test_what_is_not_there_is_named() -> None:
    store, _ = store_of({})
    with pytest.raises(FileNotFoundError, match="there is no file 'b' in the store"):
        store.read("b")
    with pytest.raises(FileNotFoundError, match="there is no file 'b' in the store"):
        store.rename("b", "c")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda store: store.write("", b""), "'' is no name for a file"),
        (lambda store: store.write("a\n", b""), "is no name for a file"),
        (lambda store: store.write("a" * 201, b""), "is no name for a file"),
        (lambda store: store.write(3, b""), "3 is no name for a file"),
        (lambda store: store.write("a", "text"), "a store takes bytes, not str"),
        (lambda store: store.read("a", -1), "start is -1: it must be a whole number of 0 or more"),
        (lambda store: store.read("a", 0, 1.5), "size is 1.5: it must be"),
    ],
)
def test_a_call_that_makes_no_sense_is_said_to_be_one(call, said: str) -> None:
    store, kept = store_of({"a": b""})
    with pytest.raises((ValueError, TypeError), match=said):
        call(store)
    assert kept.record().calls == ()


def test_a_store_has_an_end(monkeypatch) -> None:
    monkeypatch.setattr(books, "MAX_BYTES", 10)
    monkeypatch.setattr(books, "MAX_FILES", 2)
    store, _ = store_of({"a": b"0123456"})
    store.write("a", b"0123456789")
    with pytest.raises(StoreFull):
        store.write("b", b"0")
    store.write("a", b"0")
    store.write("b", b"0")
    store.write("b", b"1")
    with pytest.raises(StoreFull):
        store.write("c", b"")


def test_a_write_is_cut_short_and_nothing_goes_on_after_it() -> None:
    store, kept = store_of({}, Kill(2, "write"))
    store.write("a", b"abcd")
    store.list()
    with pytest.raises(JobKilled):
        store.write("a", b"efghij")
    for call in (lambda: store.write("b", b""), lambda: store.read("a"), store.list):
        with pytest.raises(JobKilled):
            call()
    assert kept.record().files == {"a": b"efg"} and kept.is_killed
    assert kept.begin_job() == 1
    assert store.read("a") == b"efg" and kept.record().killed == (True, False)


@pytest.mark.parametrize("of", ["any", "rename"])
def test_a_rename_is_done_whole_or_not_at_all(of: str) -> None:
    store, kept = store_of({"a": b"old"}, Kill(1 if of == "rename" else 2, of))
    store.write("a.tmp", b"new")
    with pytest.raises(JobKilled):
        store.rename("a.tmp", "a")
    assert kept.record().files == {"a": b"old", "a.tmp": b"new"}


def test_a_kill_is_of_a_call_that_there_is() -> None:
    for wrong in ((0,), (1, "open")):
        with pytest.raises(ValueError, match="is no place to kill a job at"):
            Kill(*wrong)


def _inputs(case: Case, gen: torch.Generator) -> dict:
    return {"files": {"data": torch.arange(6, dtype=torch.uint8)}, "kills": [Kill(2, "write").to_tree()], "x": 3}


def _drive(ans, case, tree, stage):
    assert (stage.tmp / "left").exists() is False
    (stage.tmp / "left").touch()
    return {"out": ans.program(stage.store, tree["x"]), "job": stage.job, "keys": sorted(tree)}


PROGRAM = Exercise(
    id="91-program",
    title="Any program",
    points=1,
    minutes=1,
    difficulty=1,
    answers=(Answer("program"),),
    public=(Case(),),
    inputs=_inputs,
    drive=_drive,
    run=Run(store=True, wall_s=5.0),
)


def observed(program):
    return observe(PROGRAM, SimpleNamespace(program=program), Case(), make_inputs(PROGRAM, Case(), 0))


def counting(store, n: int) -> list[int]:
    done = list(store.read("count")) if "count" in store.list() else []
    for index in range(len(done), n):
        done.append(index)
        store.write("count.new", bytes(done))
        store.rename("count.new", "count")
    return done


def test_jobs_follow_one_another_on_one_store() -> None:
    run = observed(counting)
    assert run.trouble is None and inputs_untouched(run) is None
    assert run.got == {"jobs": [None, {"out": [0, 1, 2], "job": 1, "keys": ["x"]}]}
    assert run.books.killed == (True, False)
    assert run.books.files == {"data": bytes(range(6)), "count": bytes([0, 1, 2])}
    assert [call.op for call in run.books.of(0)] == ["list", "write", "rename", "write"]
    assert [call.op for call in run.books.of(1)] == ["list", "read", "write", "rename", "write", "rename"]
    assert run.measured["opens"] == 5 and run.measured["read_bytes"] == 1


def test_who_swallows_his_end_has_ended_all_the_same() -> None:
    def stubborn(store, n: int) -> str:
        for index in range(4):
            with contextlib.suppress(BaseException):
                store.write(f"{index}", b"ab")
        return "I am still here"

    run = observed(stubborn)
    assert run.got["jobs"][0] is None and run.got["jobs"][1]["out"] == "I am still here"
    assert [call.name for call in run.books.of(0)] == ["0", "1"]


def test_a_job_that_never_comes_so_far_ends_by_itself() -> None:
    run = observed(lambda store, n: len(store.list()))
    assert [got["out"] for got in run.got["jobs"]] == [1, 1] and run.books.killed == (False, False)


def test_a_mistake_in_a_job_is_the_runs() -> None:
    run = observed(lambda store, n: store.read("nothing"))
    assert run.trouble.text == "FileNotFoundError: there is no file 'nothing' in the store"


def test_inputs_that_a_job_changes_are_named() -> None:
    tree = {"kills": [Kill(1).to_tree()], "x": torch.zeros(2)}
    run = observe(PROGRAM, SimpleNamespace(program=lambda store, x: (store.list(), x.add_(1))[0]), Case(), tree)
    assert part_of_job(tree).keys() == {"x"} and books_of(tree).n_jobs == 2
    assert inputs_untouched(run) == "the input `x` was changed in place"
