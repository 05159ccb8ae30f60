"""Every fault, at its line, with the thread that did it; and beside each the kernel that is right."""

from __future__ import annotations

import pytest
import torch

from labkit.check.text import as_text
from labkit.check.verdict import Verdict
from labkit.simt import Fault, LaunchFault
from labkit.troubles import trouble_of
from tests.simt.harness import compiled, faults, integers, launch, random, source

FAULTY = source("faults")


def line_of(text: str) -> int:
    """The line of the source that contains this text."""
    return next(i for i, row in enumerate(FAULTY.splitlines(), 1) if text in row)


def only(name: str, grid, block, *arguments, **more):
    """The single fault of a kernel."""
    (found,) = faults(FAULTY, name, grid, block, *arguments, **more)
    return found


def test_an_access_out_of_bounds_names_tensor_index_and_thread() -> None:
    x, y = random(100), torch.zeros(128)
    found = only("no_guard", 2, 64, x, y)
    assert (found.kind, found.line, found.count) == ("out of bounds", line_of("y[i] = x[i] * 2.f"), 28)
    assert found.text == "reads x[100], but x has 100 elements"
    assert (found.thread, found.block) == ((36, 0, 0), (1, 0, 0))
    assert torch.equal(y[:100], x * 2)
    assert launch(FAULTY, "no_guard", 2, 50, x, y).faults == ()


def test_nothing_beside_a_tensor_is_touched() -> None:
    whole = torch.zeros(300)
    found = only("no_guard", 2, 64, random(128), whole[100:200])
    assert found.text == "writes y[100], but y has 100 elements"
    assert not whole[:100].any() and not whole[200:].any() and whole[100:200].all()


def test_an_access_before_the_first_element() -> None:
    found = only("before_start", 1, 32, random(32), torch.zeros(32))
    assert found.text == "reads x[-1], but x has 32 elements"
    assert (found.thread, found.count) == ((0, 0, 0), 1)


def test_a_misaligned_access() -> None:
    found = only("misaligned", 1, 4, random(32), torch.zeros(16))
    assert (found.kind, found.line) == ("misaligned", line_of("*(const float4*)"))
    assert found.text == "reads 16 bytes at once in global memory, 4 bytes past a multiple of 16"


def test_shared_memory_has_an_end() -> None:
    found = faults(FAULTY, "shared_overflow", 1, 32, torch.zeros(32))
    assert found[0].kind == "out of bounds" and found[0].count == 8
    assert found[0].text == "writes byte 128 of shared memory, but the block has 128 bytes of it"
    assert found[1].kind == "uninitialized shared memory"


def test_uninitialized_shared_memory() -> None:
    found = only("uninitialized", 3, 64, torch.zeros(64))
    assert (found.kind, found.line) == ("uninitialized shared memory", line_of("if (threadIdx.x < 32) tile") + 2)
    assert found.text == "reads tile[32], which no thread has written"
    assert launch(FAULTY, "uninitialized", 3, 32, torch.zeros(64)).faults == ()


def test_a_missing_barrier() -> None:
    found = only("missing_barrier", 2, 64, random(64), torch.zeros(64))
    assert (found.kind, found.line, found.thread) == ("race", line_of("tile[63 - threadIdx.x]"), (0, 0, 0))
    line = line_of("tile[63 - threadIdx.x]") - 1
    assert found.text == f"reads tile[63], which thread 63 writes at line {line} with no barrier in between"


def test_a_race_within_a_warp() -> None:
    """The lanes run together here and the values are right, as they are by luck on a GPU."""
    found = only("race_in_a_warp", 1, 32, torch.zeros(32))
    assert (found.kind, found.line) == ("race", line_of("tile[threadIdx.x] = v + 1.f"))
    assert "writes tile[0], which thread 1 reads" in found.text


def test_two_threads_that_write_one_place() -> None:
    assert only("two_writers", 2, 64, torch.zeros(64)).kind == "race"
    assert launch(FAULTY, "same_value", 2, 64, torch.zeros(64)).faults == ()


def test_a_barrier_that_not_all_threads_reach() -> None:
    found = only("barrier_in_a_branch", 1, 64, torch.zeros(64))
    assert (found.kind, found.line) == ("barrier", line_of("if (threadIdx.x < 32) __syncthreads()"))
    assert found.text == "32 of the block's 64 threads have ended without reaching this barrier"
    found = only("left_before_the_barrier", 2, 64, torch.zeros(64), 40)
    assert found.text == "24 of the block's 64 threads have ended without reaching this barrier"
    assert launch(FAULTY, "left_before_the_barrier", 2, 40, torch.zeros(64), 40).faults == ()


@pytest.mark.parametrize("name", ["spins", "counts_for_ever"])
def test_a_launch_that_never_ends(name: str) -> None:
    y = torch.zeros(1, dtype=torch.int32)
    arguments = (y, torch.zeros(1, dtype=torch.int32)) if name == "spins" else (y, 0)
    found = faults(FAULTY, name, 1, 32, *arguments, max_work=20_000_000)[-1]
    line = line_of("while (*flag == 0)") if name == "spins" else line_of("i != n")
    assert (found.kind, found.line) == ("never ends", line)
    assert "still running after 20,0" in found.text and "this line ran" in found.text


def test_reads_of_what_another_block_writes() -> None:
    found = only("reads_a_neighbour", 4, 1, torch.zeros(4))
    assert found.kind == "race between blocks"
    assert "in the same launch: blocks run in any order" in found.text
    assert launch(FAULTY, "reads_a_neighbour", 1, 1, torch.zeros(4)).faults == ()


def test_the_last_block_may_read_what_the_others_have_fenced() -> None:
    x, y = integers(50, low=-9, high=9).float(), torch.zeros(1)
    launch(FAULTY, "last_block_sums", 50, 1, x, torch.zeros(50), y, torch.zeros(1, dtype=torch.int32))
    assert y == x.sum()


def test_a_shuffle_that_names_lanes_that_never_come() -> None:
    found = only("wrong_mask", 1, 32, torch.zeros(32, dtype=torch.int32))
    assert (found.kind, found.line) == ("warp synchronization", line_of("__shfl_down_sync(0xffffffffu, v, 1)"))
    found = only("from_an_idle_lane", 1, 32, torch.zeros(32, dtype=torch.int32))
    assert "reads from lane 20 of the warp, which takes no part" in found.text
    found = only("mask_without_itself", 2, 64, torch.zeros(64, dtype=torch.int32))
    assert (found.kind, found.thread, found.count) == ("warp synchronization", (16, 0, 0), 64)
    assert "executed by lane 16 of the warp, which its mask does not name" in found.text


@pytest.mark.parametrize(("name", "kind"), [("asserts", "assertion"), ("traps", "trap")])
def test_a_kernel_that_stops_itself(name: str, kind: str) -> None:
    x = torch.arange(32, dtype=torch.int32)
    assert launch(FAULTY, name, 1, 32, x).faults == ()
    x[7] = -1
    found = only(name, 1, 32, x)
    assert (found.kind, found.thread, found.count) == (kind, (7, 0, 0), 1)


def test_a_recursion_without_an_end() -> None:
    found = faults(FAULTY, "recursion", 1, 1, torch.ones(1, dtype=torch.int32))[0]
    assert found.kind == "call stack" and "64 deep" in found.text


def test_constants_and_null_pointers() -> None:
    y = torch.zeros(1, dtype=torch.int32)
    assert only("writes_a_constant", 1, 4, y).kind == "read only"
    assert only("null", 1, 1, torch.zeros(1), torch.zeros(2, dtype=torch.int32)).text == "reads through a null pointer"


def test_the_error_shows_the_line_and_carries_the_profile() -> None:
    with pytest.raises(LaunchFault) as caught:
        compiled(FAULTY)["no_guard"].launch(1, 64, random(60), torch.zeros(64))
    line = line_of("y[i] = x[i] * 2.f")
    told = f"no_guard, line {line}: out of bounds: reads x[60], but x has 60 elements (thread 60 of block 0"
    assert str(caught.value) == told + ", 3 more)\n    y[i] = x[i] * 2.f;"
    assert caught.value.students_line == f"line {line}: y[i] = x[i] * 2.f;"
    assert caught.value.profile.warp_instructions > 0
    profile = compiled(FAULTY)["no_guard"].launch(1, 64, random(60), torch.zeros(64), check=False)
    assert profile.faults == caught.value.faults


def test_a_check_tells_the_line_of_the_kernel() -> None:
    class Odd(Exception):
        @property
        def students_line(self) -> str:
            raise RuntimeError

    with pytest.raises(LaunchFault) as caught:
        compiled(FAULTY)["no_guard"].launch(1, 64, random(60), torch.zeros(64))
    told = trouble_of(caught.value)
    assert told.where == caught.value.students_line
    assert told.text.startswith("LaunchFault: no_guard, line ") and "out of bounds: reads x[60]" in told.text
    assert trouble_of(Odd("x")).where is None


def test_a_barrier_that_not_all_threads_reach_is_told_before_what_follows_from_it() -> None:
    source = (
        "__global__ void k(const float* x, float* y, int n) {\n  __shared__ float s[64];\n  int i = threadIdx.x;\n"
        "  if (i < n) { s[i] = x[i]; __syncthreads(); }\n  y[i] = s[63 - i];\n}\n"
    )
    kinds = [fault.kind for fault in faults(source, "k", 1, 64, random(40), torch.zeros(64), 40)]
    assert kinds[0] == "barrier" and "uninitialized shared memory" in kinds


def test_a_read_of_a_total_that_others_still_add_to_races_also_after_an_own_update() -> None:
    source = (
        "__global__ void k(int* y) {\n  __shared__ int s;\n  if (threadIdx.x == 0) s = 0;\n  __syncthreads();\n"
        "  atomicAdd(&s, 1);\n  BARRIER\n  y[threadIdx.x] = *(volatile int*)&s;\n}\n"
    )
    for n_threads in (8, 32, 64):
        y = torch.zeros(n_threads, dtype=torch.int32)
        (found,) = faults(source.replace("BARRIER", ""), "k", 1, n_threads, y)
        assert (found.kind, found.line) == ("race", 7)
        launch(source.replace("BARRIER", "__syncthreads();"), "k", 1, n_threads, y)
        assert y.eq(n_threads).all()
    y = torch.zeros(32, dtype=torch.int32)
    launch(source.replace("BARRIER", "__syncwarp();"), "k", 1, 32, y)
    assert [
        fault.kind
        for fault in faults(source.replace("BARRIER", "__syncwarp();"), "k", 1, 64, torch.zeros(64, dtype=torch.int32))
    ] == ["race"]


@pytest.mark.parametrize(
    ("index", "words"), [((5, 0, 0), "5"), ((0, 0, 0), "0"), ((0, 6, 0), "(0, 6)"), ((1, 0, 2), "(1, 0, 2)")]
)
def test_an_index_is_told_without_the_zeros_at_its_end(index: tuple[int, int, int], words: str) -> None:
    assert str(Fault("race", 4, "writes s[0]", index, index)).endswith(f"(thread {words} of block {words})")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("race", "reads s[1023], which thread (31, 31) writes at line 120 with no barrier in between"),
        ("warp synchronization", "shfl.sync.down.b32 is executed by lane 16 of the warp, which its mask does not name"),
        ("barrier", "1,000 of the block's 1,024 threads have ended without reaching this barrier"),
        (
            "race between blocks",
            "writes counts[63], which block 1023 reads in the same launch: blocks run in any order",
        ),
        ("pending copy", "reads stage[1023], to which thread (31, 31) has begun a copy and not waited for it"),
    ],
)
def test_a_verdict_tells_the_whole_of_a_fault(kind: str, text: str) -> None:
    fault = LaunchFault("shuffle_sum", [Fault(kind, 106, text, (16, 3, 1), (12, 34, 0), 12_345)], "")
    told = as_text(Verdict("90-double", "failed", 0.0, "no", (("problem", trouble_of(fault).text),)))
    assert " ".join(told.split()).endswith(f"{kind}: {text} (thread (16, 3, 1) of block (12, 34), 12,344 more)")
