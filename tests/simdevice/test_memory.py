"""Bytes of the device and the host, where a tensor lies, and what autograd makes of it."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.nn import functional as F

from labkit.simdevice import Machine, SimDevice

KB = 4000


def test_bytes_of_the_device_are_counted_once_per_storage_until_it_is_dropped() -> None:
    with SimDevice() as sim:
        x = torch.zeros(1000, device=sim.device)
        views = x.view(10, 100)[2:5].t()
        assert sim.memory_allocated() == KB
        y = x + 1
        assert sim.memory_allocated() == 2 * KB
        del x
        assert sim.memory_allocated() == 2 * KB
        del views, y
        assert sim.memory_allocated() == 0 and sim.max_memory_allocated() == 2 * KB
        sim.reset_peak_memory_stats()
        assert sim.max_memory_allocated() == 0


def test_bytes_of_the_host_are_those_made_for_copies() -> None:
    with SimDevice() as sim:
        x = torch.zeros(1000).to(sim.device)
        kept = [x.cpu(), x.to("cpu", non_blocking=True), torch.empty(1000, pin_memory=True)]
        assert [tensor.is_pinned() for tensor in kept] == [False, True, True]
        assert sim.host_bytes == 3 * KB
        kept.clear()
        assert sim.host_bytes == 0 and sim.max_host_bytes == 3 * KB


def test_record_stream_keeps_memory_until_the_host_sees_the_stream_done() -> None:
    with SimDevice() as sim:
        side = sim.Stream()
        x = torch.zeros(1000).to(sim.device)
        host = torch.empty(1000, pin_memory=True)
        side.wait_stream(sim.current_stream())
        with sim.stream(side):
            host.copy_(x, non_blocking=True)
        x.record_stream(side)
        del x
        assert sim.memory_allocated() == KB
        side.synchronize()
        assert sim.memory_allocated() == 0


def test_a_tensor_says_where_it_is_only_while_the_device_is_active() -> None:
    with SimDevice() as sim:
        x = torch.zeros(3).to("cuda")
        assert x.device == sim.device and x.is_cuda and torch.zeros(3, device=x.device).device == sim.device
        assert x.cpu().device == torch.device("cpu") and x.to(x.cpu()).device == torch.device("cpu")
        assert x.to(sim.device) is x and x.to(sim.device, copy=True) is not x
        assert x.to(torch.float16).device == sim.device and x.cpu().to(x).device == sim.device
        with pytest.raises(TypeError, match="copy it to the host first"):
            x.numpy()
        with pytest.raises(RuntimeError, match="already active"), SimDevice():
            pass
    assert x.device == torch.device("cpu") and x.numpy().shape == (3,)
    assert not {"to", "cpu", "device", "numpy", "record_stream"} & torch.Tensor.__dict__.keys()


@pytest.mark.parametrize(("non_blocking", "n_bytes"), [(False, [4000, 2000]), (True, [1000, 4000])])
def test_a_copy_that_blocks_converts_on_the_host_and_another_on_the_device(
    non_blocking: bool, n_bytes: list[int]
) -> None:
    with SimDevice() as sim:
        x = torch.ones(1000, dtype=torch.uint8).pin_memory()
        there = x.to(sim.device, torch.float32, non_blocking=non_blocking)
        half = torch.ones(1000, dtype=torch.float16, device=sim.device)
        back = half.to("cpu", torch.float32, non_blocking=non_blocking)
    assert there.dtype == back.dtype == torch.float32 and there.tolist() == back.tolist() == 1000 * [1.0]
    assert [one.nbytes for one in sim.commands if one.kind == "copy"] == n_bytes


def test_numbers_of_the_host_become_tensors_of_the_device_by_a_copy_that_blocks() -> None:
    tensor = torch.tensor
    with SimDevice() as sim:
        x = torch.tensor([1.0, 2.0], device=sim.device, requires_grad=True)
        made = [x, torch.as_tensor([3], device="cuda"), x.new_tensor([4, 5]), torch.tensor(7.0, device=sim.device)]
        assert all(one.is_cuda for one in made) and x.is_leaf and made[2].dtype == torch.float32
        assert [one.blocking for one in sim.commands if one.kind == "copy"] == [True] * 4
        assert torch.as_tensor(made[1]) is made[1] and made[0].tolist() == [1.0, 2.0]
        copied = torch.tensor(made[3], dtype=torch.float64)
        assert copied.is_cuda and copied.dtype == torch.float64 and copied.data_ptr() != made[3].data_ptr()
        on_host = [torch.tensor([1]), torch.as_tensor([1.0], device="cpu"), torch.tensor(1.0, requires_grad=True)]
        assert not any(one.is_cuda for one in on_host) and not torch.zeros(2).new_tensor([1]).is_cuda
        assert torch.tensor(made[1], device="cpu").device == torch.device("cpu") and on_host[2].requires_grad
    assert torch.tensor is tensor


def test_cuda_by_its_name_is_the_simulated_device_wherever_tensors_are_made() -> None:
    makers = {name: getattr(torch, name) for name in ("zeros", "randn", "arange", "full_like")}
    with SimDevice() as sim:
        here = torch.ones(3)
        made = [
            torch.zeros(2, 3, device="cuda"),
            torch.randn(4, device=torch.device("cuda", 0), requires_grad=True),
            torch.arange(5, device="cuda:0"),
            torch.full_like(here, 2.0, device="cuda"),
            torch.nn.Linear(3, 2, device="cuda").weight,
            torch.empty(2, dtype=torch.int8, device=sim.device),
        ]
        assert all(one.is_cuda and one.device == sim.device for one in made) and made[1].requires_grad
        assert not any(one.is_cuda for one in (here, torch.zeros_like(made[0], device="cpu"), torch.eye(2)))
        assert torch.zeros_like(made[0]).is_cuda and torch.empty(3, pin_memory=True).is_pinned()
        assert not sim.races
    assert makers == {name: getattr(torch, name) for name in makers}


def test_what_functions_of_pytorch_make_for_themselves_lies_with_their_arguments() -> None:
    q, labels = torch.randn(1, 2, 4, 8), torch.tensor([0, 2])
    with SimDevice() as sim:
        x, on_device = q.to(sim.device), labels.to(sim.device)
        found = [
            F.scaled_dot_product_attention(x, x, x, is_causal=True).cpu(),
            F.one_hot(on_device).cpu(),
            torch.quantile(x, 0.5).cpu(),
        ]
        assert not F.one_hot(labels).is_cuda and not torch.zeros(2).is_cuda and not sim.races
    want = [F.scaled_dot_product_attention(q, q, q, is_causal=True), F.one_hot(labels), torch.quantile(q, 0.5)]
    assert all(torch.allclose(one, other) for one, other in zip(found, want, strict=True))


def test_a_training_step_as_it_is_written_for_a_gpu() -> None:
    torch.manual_seed(0)
    with SimDevice() as sim:
        model = torch.nn.Sequential(torch.nn.Linear(8, 16, device="cuda"), torch.nn.GELU(), torch.nn.LayerNorm(16))
        model.to("cuda")
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            x = torch.randn(4, 8).pin_memory().to("cuda", non_blocking=True)
            loss = F.cross_entropy(model(x), torch.randint(0, 16, (4,), device="cuda"))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        sim.synchronize()
        assert loss.is_cuda and loss.item() > 0 and not sim.races
        assert all(one.is_cuda for state in optimizer.state.values() for one in state.values() if one.dim() > 0)


def test_tensors_of_two_memories_do_not_mix() -> None:
    with SimDevice() as sim:
        x = torch.zeros(3).to(sim.device)
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(3)
        assert (x + torch.ones(())).device == sim.device


def test_a_number_of_the_host_is_read_by_the_device_and_not_changed() -> None:
    """As TensorIterator::compute_types allows it: a number of the host beside the device's, unless it is an output."""
    with SimDevice() as sim:
        total, loss = torch.zeros(()), torch.ones((), device=sim.device)
        with pytest.raises(RuntimeError, match="same device, but add_ was given one of the simulated device"):
            total += loss
        total = total + loss
        total += torch.ones(())
        assert total.device == sim.device and total.item() == 2


def test_what_raises_inside_leaves_nothing_behind() -> None:
    with pytest.raises(ZeroDivisionError), SimDevice():
        raise ZeroDivisionError
    assert "to" not in torch.Tensor.__dict__


def test_more_than_the_device_has_is_refused_with_the_numbers() -> None:
    with SimDevice(Machine(memory_bytes=5000)) as sim:
        x = torch.zeros(1000, device=sim.device)
        with pytest.raises(
            torch.cuda.OutOfMemoryError, match=r"4,000 bytes were asked for, and 1,000 of 5,000 bytes are free"
        ):
            x + 1


def test_misuse_is_refused() -> None:
    with SimDevice() as sim:
        with pytest.raises(RuntimeError, match="enable_timing"):
            sim.Event().elapsed_time(sim.Event())
        with pytest.raises(RuntimeError, match="recorded"):
            sim.Event(enable_timing=True).elapsed_time(sim.Event(enable_timing=True))
        with pytest.raises(TypeError, match=r"sim\.Stream"), sim.stream("side"):
            pass
        with pytest.raises(RuntimeError, match="lies on the host"):
            torch.zeros(3).record_stream(sim.Stream())
        with pytest.raises(RuntimeError, match="only memory of the host"):
            torch.zeros(3).to(sim.device).pin_memory()


def test_gradients_are_those_of_the_cpu_and_a_gradient_crosses_back() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(8, 4, requires_grad=True), torch.randn(5, 4, requires_grad=True)
    F.linear(x, w).tanh().sum().backward()
    want = x.grad, w.grad
    x.grad = w.grad = None
    with SimDevice() as sim:
        F.linear(x.to(sim.device), w.to(sim.device)).tanh().sum().cpu().backward()
        assert x.grad.device == w.grad.device == torch.device("cpu")
    assert torch.equal(x.grad, want[0]) and torch.equal(w.grad, want[1]) and not sim.races


def test_a_module_moves_and_the_librarys_offloading_runs() -> None:
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 8)), torch.randn(4, 8)
    with SimDevice() as sim:
        model.to(sim.device)
        assert {p.device for p in model.parameters()} == {sim.device}
        with torch.autograd.graph.save_on_cpu():
            y = model(x.to(sim.device)).sum()
            assert sim.host_bytes > 0
        y.backward()
        del y
        gc.collect()
        assert sim.host_bytes == 0 and not sim.races
