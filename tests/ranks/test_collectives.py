"""Collectives on simulated ranks: values, counts, and each way in which ranks may call different things."""

from __future__ import annotations

import math

import pytest
import torch

from labkit.ranks import UNIT, Comm, CommError, RankFailed, simulate
from tests.ranks.algorithms import everything


def told(fn, world_size: int = 2) -> str:
    with pytest.raises(CommError) as caught:
        simulate(fn, world_size)
    return str(caught.value)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_values(n: int, size: int, dtype: torch.dtype) -> None:
    results, traffic = simulate(lambda comm: everything(comm, size, dtype), n)
    inputs = [(torch.arange(size) % 5 + rank).to(dtype) for rank in range(n)]
    stacked = torch.stack(inputs)
    for rank, found in enumerate(results):
        assert torch.equal(found["sum"], sum(inputs[1:], inputs[0].clone()))
        assert torch.equal(found["min"], stacked.amin(0)) and torch.equal(found["max"], stacked.amax(0))
        assert torch.equal(found["product"], math.prod(inputs[1:], start=inputs[0]))
        assert torch.equal(found["broadcast"], inputs[-1])
        assert torch.equal(torch.stack(found["all_gather"]), stacked)
        assert torch.equal(found["reduce_scatter"], sum(inputs[1:], inputs[0].clone()) + n * rank)
        if dtype.is_floating_point:
            assert torch.equal(found["avg"], found["sum"] / n)
        assert torch.equal(found["all_gather_single"], stacked.flatten())
        assert torch.equal(found["reduce_scatter_single"], found["reduce_scatter"])
        assert torch.equal(torch.stack(found["all_to_all"]), stacked + 10 * rank)
        # What rank s sends here begins after its pieces for ranks 0 to rank - 1.
        begins = [sum(other + before for before in range(rank)) for other in range(n)]
        pieces = [torch.arange(start, start + other + rank) + 100 * other for other, start in enumerate(begins)]
        assert torch.equal(found["all_to_all_single"], torch.cat(pieces).to(dtype))
    assert [one.unique().tolist() for one in found["mixed"]] == [[rank + other] for other in range(n)]
    n_calls = 13 if dtype.is_floating_point else 12
    assert traffic.collectives == (n_calls,) * n


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_what_counts_is_the_usual_algorithm(n: int) -> None:
    x = torch.zeros(8 * n)
    traffic = simulate(lambda comm: comm.all_reduce(x.clone()), n)[1]
    assert traffic.rounds == 2 * (n - 1) and traffic.bytes_sent == (2 * (n - 1) * x.nbytes // n,) * n
    traffic = simulate(lambda comm: comm.all_gather([x.clone() for _ in range(n)], x), n)[1]
    assert traffic.rounds == n - 1 and traffic.bytes_sent == ((n - 1) * x.nbytes,) * n
    traffic = simulate(lambda comm: comm.reduce_scatter(x.clone(), [x] * n), n)[1]
    assert traffic.rounds == n - 1 and traffic.bytes_sent == ((n - 1) * x.nbytes,) * n
    traffic = simulate(lambda comm: comm.broadcast(x.clone(), n - 1), n, UNIT)[1]
    assert traffic.seconds == math.ceil(math.log2(n)) and sum(traffic.bytes_sent) == (n - 1) * x.nbytes
    assert {one.call for one in traffic.transfers} == ({"broadcast"} if n > 1 else set())


def test_uneven_chunks_count_as_a_ring_sends_them() -> None:
    traffic = simulate(lambda comm: comm.all_reduce(torch.zeros(10)), 4)[1]
    # Chunks of 3, 3, 2, 2 floats; a rank sends all of them twice, but for two.
    assert traffic.bytes_sent == (60, 64, 60, 56)


def test_rounds_go_on_from_one_call_to_the_next() -> None:
    def fn(comm: Comm) -> None:
        comm.all_reduce(torch.zeros(4))
        if comm.rank == 0:
            comm.send(torch.zeros(1), 1)
        elif comm.rank == 1:
            comm.recv(torch.zeros(1), 0)

    assert simulate(fn, 3)[1].rounds == 4 + 1


def test_an_input_is_what_it_was_and_a_result_arrives_at_wait() -> None:
    def fn(comm: Comm) -> tuple[list[float], list[float]]:
        x = torch.full((2,), float(comm.rank + 1), requires_grad=True)
        work = comm.all_reduce(x, async_op=True)
        x.detach().add_(10)
        before = x.tolist()
        work.wait()
        work.wait()
        return before, x.tolist()

    assert simulate(fn, 2)[0] == [([11.0, 11.0], [3.0, 3.0]), ([12.0, 12.0], [3.0, 3.0])]


def test_torch_s_own_names_of_reductions() -> None:
    def fn(comm: Comm) -> float:
        x = torch.tensor(float(comm.rank + 1))
        comm.all_reduce(x, torch.distributed.ReduceOp.MAX)
        return x.item()

    assert simulate(fn, 3)[0] == [3, 3, 3]


x = torch.zeros(3)


@pytest.mark.parametrize(
    ("zero", "one", "text"),
    [
        (
            "all_reduce(x)",
            "broadcast(x, 0)",
            "collective number 1: rank 0 calls all_reduce, rank 1 calls broadcast",
        ),
        (
            "all_reduce(x)",
            "all_reduce(x[:2])",
            "collective number 1, all_reduce: rank 0 gives float32 of shape (3,) and rank 1 float32 of shape (2,)",
        ),
        (
            "all_reduce(x.half())",
            "all_reduce(x)",
            "collective number 1, all_reduce: rank 0 gives float16 of shape (3,) and rank 1 float32 of shape (3,)",
        ),
        (
            "all_reduce(x)",
            "all_reduce(x, 'max')",
            "collective number 1, all_reduce: rank 0 gives op sum, rank 1 gives op max",
        ),
        (
            "broadcast(x, 0)",
            "broadcast(x, 1)",
            "collective number 1, broadcast: rank 0 gives src 0, rank 1 gives src 1",
        ),
        (
            "all_reduce(x)",
            "barrier()",
            "deadlock: rank 0 waits in all_reduce for rank 1, rank 1 waits at a barrier for rank 0",
        ),
        ("all_reduce(x)", "rank", "deadlock: rank 0 waits in all_reduce for rank 1, which has finished"),
        ("all_reduce(x, async_op=True)", "rank", "rank 0 started all_reduce and rank 1 never called it"),
        ("all_reduce(x, async_op=True)", "all_reduce(x)", "rank 0 started all_reduce and never called wait()"),
        (
            "all_reduce(x, 'mean')",
            "rank",
            "rank 0 asks to reduce by 'mean': it must be one of sum, avg, product, min, max",
        ),
        (
            "all_reduce(x.long(), 'avg')",
            "rank",
            "rank 0 asks for the avg of int64 tensors: convert them to a dtype that has one",
        ),
        ("all_reduce(1.0)", "rank", "rank 0 calls all_reduce with a float: it must be a tensor"),
        (
            "broadcast(x, 2)",
            "rank",
            "rank 0 asks for a broadcast from rank 2, but the ranks are the whole numbers 0 to 1",
        ),
        (
            "all_gather(x, [x, x])",
            "rank",
            "rank 0 calls all_gather with a list: it must be a tensor, and the list comes first",
        ),
        ("all_gather([x], x)", "rank", "rank 0 calls all_gather into 1 tensors: there are 2 ranks"),
        (
            "reduce_scatter(x, x)",
            "rank",
            "rank 0 calls reduce_scatter of a Tensor: it must be a list of one tensor for each rank",
        ),
        (
            "reduce_scatter(x, [x, x[:2]])",
            "rank",
            "rank 0 calls reduce_scatter of tensors of which number 1 is float32 of shape (2,), "
            "and the tensor beside them float32 of shape (3,)",
        ),
    ],
)
def test_every_mistake_has_its_sentence(zero: str, one: str, text: str) -> None:
    assert told(lambda comm: eval(f"comm.{one if comm.rank else zero}", {"comm": comm, "x": x.clone()})) == text


def test_an_error_elsewhere_ends_those_who_wait_in_a_collective() -> None:
    def fn(comm: Comm) -> None:
        if comm.rank == 2:
            raise ValueError("no")
        comm.all_reduce(torch.zeros(1))

    with pytest.raises(RankFailed, match="rank 2 raised ValueError: no"):
        simulate(fn, 3)
