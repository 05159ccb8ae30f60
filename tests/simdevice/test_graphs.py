"""Graphs of the simulated device: a replay is one launch, at the capture's addresses; stale reads are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from labkit.simdevice import Machine, SimDevice, as_plain, from_plain, timeline_of
from tests.simdevice.graphs import N_KERNELS, batches, captured, right


def test_replays_compute_with_what_was_copied_to_the_static_input() -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, out = captured(sim, static)
        results = []
        for x in batches():
            static.copy_(x)
            graph.replay()
            results.append(out.cpu())
        assert (sim.stale, sim.races) == ((), ())
    torch.testing.assert_close(results, [right(x) for x in batches()])


def test_a_training_step_in_a_graph_is_the_eager_step() -> None:
    """Backward and update included; the weight moves only in replays, the momentum too."""

    def train(sim: SimDevice, graphed: bool) -> list[float]:
        torch.manual_seed(0)
        weight, velocity = (torch.randn(3, 3).to(sim.device) for _ in range(2))
        static = torch.zeros(2, 3, device=sim.device)
        weight.requires_grad_()

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = F.linear(x, weight).square().mean()
            (grad,) = torch.autograd.grad(loss, weight)
            with torch.no_grad():
                velocity.mul_(0.9).add_(grad)
                weight.sub_(velocity, alpha=0.1)
            return loss

        graph, losses = sim.CUDAGraph(), []
        if graphed:
            with sim.graph(graph):
                out = step(static)
        for x in batches():
            static.copy_(x)
            if graphed:
                graph.replay()
            losses.append((out if graphed else step(static)).item())
        return losses

    with SimDevice() as first:
        eager = train(first, graphed=False)
    with SimDevice() as second:
        assert train(second, graphed=True) == eager
        assert second.stale == second.races == ()


def test_a_capture_runs_nothing_and_leaves_no_trace_in_values() -> None:
    with SimDevice() as sim:
        x, state = torch.ones(4).to(sim.device), torch.get_rng_state()
        n_spans, n_launches = len(sim.trace), len(sim.launches)
        graph = sim.CUDAGraph()
        with sim.graph(graph):
            noisy = x.add_(1) + torch.rand(4, device=sim.device)
            index = x.argmax()
        assert (len(sim.launches), [s for s in sim.trace[n_spans:] if s.kind == "kernel"]) == (n_launches, [])
        assert x.tolist() == [1.0] * 4 and torch.equal(torch.get_rng_state(), state)
        assert noisy.isnan().all() and index.item() == 0
        graph.replay()
        first = noisy.clone()
        graph.replay()
        assert x.tolist() == [3.0] * 4
        assert not torch.equal(noisy - 3, first - 2), "each replay draws its own random numbers"


def test_a_replay_is_one_launch_and_the_device_is_no_longer_waiting_for_the_host() -> None:
    machine = Machine(launch_s=1e-3, kernel_s=1e-4, memory_bytes_per_s=1e15)
    with SimDevice(machine) as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, out = captured(sim, static)
        sim.synchronize()
        before_s, n_launches = sim.now_s, len(sim.launches)
        graph.replay()
        sim.synchronize()
        assert sim.now_s - before_s == pytest.approx(1e-3 + N_KERNELS * 1e-4)
        assert [span.name for span in sim.launches[n_launches:]] == ["graph 1"]
        before_s = sim.now_s
        right(static)
        sim.synchronize()
        assert sim.now_s - before_s == pytest.approx(N_KERNELS * 1e-3 + 1e-4)
        del out


def test_the_commands_alone_tell_the_same() -> None:
    with SimDevice(Machine(cache_bytes=2**20, jitter=0.3, first_call_s=1e-3)) as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, _ = captured(sim, static)
        graph.replay()
        graph.replay()
        again = timeline_of(from_plain(as_plain(sim.commands)), sim.machine)
        assert (again.clock.host_s, tuple(again.clock.spans)) == (sim.now_s, sim.trace)
        assert tuple(again.stale.found) == sim.stale != ()


def test_intermediates_go_when_the_capture_drops_them() -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        before = sim.memory_allocated()
        graph, out = captured(sim, static)
        assert sim.memory_allocated() - before == out.numel() * 4
        del out
        assert sim.memory_allocated() == before
        graph.replay()
        assert sim.stale == (), "what the graph made is the graph's: it is there without a tensor"


def test_freed_input_is_named_and_read_as_nan() -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, out = captured(sim, static)
        del static
        graph.replay()
        assert out.isnan().all()
    (found,) = sim.stale
    assert found.kind == "freed"
    assert str(found) == (
        "replay 1 of graph 1: mul uses memory that was freed after the capture: keep a reference to every tensor that "
        "the graph uses"
    )


def test_a_tensor_at_another_address_is_not_seen_and_that_is_named() -> None:
    with SimDevice() as sim:
        static = first = torch.ones(2, 3).to(sim.device)
        graph, out = captured(sim, static)
        graph.replay()
        static = torch.full((2, 3), 5.0).to(sim.device)
        graph.replay()
        torch.testing.assert_close(out.cpu(), right(torch.ones(2, 3)))
        del first
    (found,) = sim.stale
    assert found.kind == "unchanged"
    assert str(found) == (
        "replay 2 of graph 1 reads the same input as the one before: nothing was written where mul reads: copy new "
        "values there, static.copy_(new); a tensor at another address is not seen"
    )


@pytest.mark.parametrize("write", [lambda x: x.copy_(torch.ones(2, 3)), lambda x: x.add_(1), lambda x: x[0].zero_()])
def test_any_write_to_the_input_is_a_new_input(write: Callable) -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, _ = captured(sim, static)
        for _ in range(3):
            write(static)
            graph.replay()
        assert sim.stale == ()


def test_a_graph_writes_the_input_of_another() -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        first, out = captured(sim, static)
        second = sim.CUDAGraph()
        with sim.graph(second, pool=first.pool()):
            _ = out + 1
        assert second.pool() == first.pool()
        for x in batches():
            static.copy_(x)
            first.replay()
            second.replay()
        assert sim.stale == ()


def test_numbers_of_the_host_stay_as_they_were() -> None:
    with SimDevice() as sim:
        x, factor = torch.ones(2).to(sim.device), torch.tensor(2.0)
        graph = sim.CUDAGraph()
        with sim.graph(graph):
            out = x * factor
        factor.fill_(10.0)
        graph.replay()
        assert out.tolist() == [2.0, 2.0]


def test_a_replay_on_a_stream_that_did_not_wait_is_a_race() -> None:
    with SimDevice() as sim:
        static = torch.zeros(2, 3, device=sim.device)
        graph, out = captured(sim, static)
        static.add_(1)
        with sim.stream(sim.Stream()):
            graph.replay()
        del out
    assert [race.kind for race in sim.races] == ["read too early"]


def test_a_list_whose_replays_would_run_too_much_is_refused() -> None:
    capture, replay = {"kind": "capture", "graph": 1, "name": "mm"}, {"kind": "replay", "graph": 1}
    from_plain([capture] * 50 + [replay] * 200)
    with pytest.raises(ValueError, match="replays run 10,050 captured kernels; 10,000 are the most"):
        from_plain([capture] * 50 + [replay] * 201)
