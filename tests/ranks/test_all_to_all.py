"""All-to-all on simulated ranks, and the collectives that take one tensor: what is sent, and each mistake."""

from __future__ import annotations

import pytest
import torch

from labkit.ranks import UNIT, Comm, CommError, simulate


def told(fn, world_size: int = 2) -> str:
    with pytest.raises(CommError) as caught:
        simulate(fn, world_size)
    return str(caught.value)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8])
def test_each_piece_goes_to_its_rank_directly(n: int) -> None:
    x = torch.zeros(4 * n)
    traffic = simulate(lambda comm: comm.all_to_all_single(torch.empty_like(x), x), n, UNIT)[1]
    assert traffic.bytes_sent == (16 * (n - 1),) * n and traffic.messages == (n - 1,) * n
    # No message waits for another's content, and a port sends one at a time.
    assert traffic.rounds == min(n - 1, 1) and traffic.seconds == n - 1


def test_what_is_empty_is_not_sent() -> None:
    def fn(comm: Comm) -> list[float]:
        sizes = [3, 0, 0] if comm.rank == 1 else [0, 0, 0]
        into = [3 if comm.rank == 0 and other == 1 else 0 for other in range(3)]
        got = torch.empty(sum(into), 2)
        comm.all_to_all_single(got, torch.full((sum(sizes), 2), 7.0), into, sizes)
        return got.flatten().tolist()

    results, traffic = simulate(fn, 3)
    assert results == [[7.0] * 6, [], []]
    assert traffic.link_messages == {(1, 0): 1} and traffic.link_bytes == {(1, 0): 24}


def test_dtypes_and_shapes_may_differ_from_pair_to_pair() -> None:
    def fn(comm: Comm) -> list[torch.Tensor]:
        kinds = [torch.float16, torch.int64]
        shape = lambda src, dst: (1 + src, 2 + dst)  # noqa: E731
        gives = [torch.full(shape(comm.rank, to), comm.rank, dtype=kinds[comm.rank]) for to in range(2)]
        takes = [torch.empty(shape(source, comm.rank), dtype=kinds[source]) for source in range(2)]
        comm.all_to_all(takes, gives)
        return takes

    takes = simulate(fn, 2)[0][0]
    assert [(one.shape, one.dtype) for one in takes] == [((1, 2), torch.float16), ((2, 2), torch.int64)]
    assert takes[1].unique().tolist() == [1]


def test_views_are_written_in_place() -> None:
    def fn(comm: Comm) -> list[float]:
        whole = torch.zeros(4, 2)
        comm.all_gather_single(whole[:, 0], torch.tensor([comm.rank + 1.0, comm.rank + 3.0]))
        return whole.flatten().tolist()

    assert simulate(fn, 2)[0] == [[1, 0, 3, 0, 2, 0, 4, 0]] * 2


def test_ranks_may_be_a_dimension_of_their_own() -> None:
    def fn(comm: Comm) -> tuple[list, float]:
        whole, part = torch.empty(2, 3), torch.tensor(0.0)
        comm.all_gather_into_tensor(whole, torch.full((3,), float(comm.rank)))
        comm.reduce_scatter_tensor(part, torch.tensor([1.0, 2.0]), "max")
        return whole.tolist(), part.item()

    assert simulate(fn, 2)[0] == [([[0.0] * 3, [1.0] * 3], 1.0), ([[0.0] * 3, [1.0] * 3], 2.0)]


@pytest.mark.parametrize(
    ("zero", "one", "text"),
    [
        (
            "all_to_all_single(x, x, [1, 3], [1, 3])",
            "all_to_all_single(x, x, [2, 2], [2, 2])",
            "all_to_all: rank 0 sends float32 of shape (3,) to rank 1, which receives it into float32 of shape (2,)",
        ),
        (
            "all_to_all_single(x, x)",
            "all_to_all_single(x.half(), x.half())",
            "all_to_all: rank 0 sends float32 of shape (2,) to rank 1, which receives it into float16 of shape (2,)",
        ),
        (
            "all_to_all_single(x[:3], x)",
            "rank",
            "rank 0 calls all_to_all_single with output float32 of shape (3,), which 2 ranks cannot share equally: "
            "give output_split_sizes",
        ),
        (
            "all_to_all_single(x, x, [1, 2])",
            "rank",
            "rank 0 calls all_to_all_single with output_split_sizes [1, 2]: they must be 2 whole numbers of 0 or more "
            "whose sum is 4, the length of output",
        ),
        (
            "all_to_all_single(x, x, None, [5, -1])",
            "rank",
            "rank 0 calls all_to_all_single with input_split_sizes [5, -1]: they must be 2 whole numbers of 0 or more "
            "whose sum is 4, the length of input",
        ),
        ("all_to_all([x], [x, x])", "rank", "rank 0 calls all_to_all into 1 tensors: there are 2 ranks"),
        (
            "all_to_all([x, x], x)",
            "rank",
            "rank 0 calls all_to_all of a Tensor: it must be a list of one tensor for each rank",
        ),
        (
            "all_gather_single(x, x)",
            "rank",
            "rank 0 calls all_gather_single with output float32 of shape (4,) and input float32 of shape (4,): output "
            "must be 2 times input in dimension 0, and of its dtype",
        ),
        (
            "reduce_scatter_single(x[:2], x.half())",
            "rank",
            "rank 0 calls reduce_scatter_single with input float16 of shape (4,) and output float32 of shape (2,): "
            "input must be of the dtype of output",
        ),
        (
            "all_gather_single([x, x], x)",
            "rank",
            "rank 0 calls all_gather_single with a list: it must be a tensor",
        ),
    ],
)
def test_every_mistake_has_its_sentence(zero: str, one: str, text: str) -> None:
    x = torch.zeros(4)
    assert told(lambda comm: eval(f"comm.{one if comm.rank else zero}", {"comm": comm, "x": x.clone()})) == text


def test_catching_what_does_not_fit_does_not_undo_it() -> None:
    """A length says as much as a message, so a run in which one did not fit has failed."""

    def fn(comm: Comm) -> None:
        sizes = [1, 3] if comm.rank == 0 else [2, 2]
        with pytest.raises(CommError):
            comm.all_to_all_single(torch.zeros(4), torch.zeros(4), sizes, sizes)

    assert told(fn).startswith("all_to_all: rank 0 sends float32 of shape (3,) to rank 1, which receives it into")
