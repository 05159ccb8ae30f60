"""Every kind of race is reported, with the remedy; ordered programs are not, whatever orders them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from labkit.simdevice import SimDevice


def run(program: Callable[[SimDevice], object]) -> SimDevice:
    with SimDevice() as sim:
        program(sim)
    return sim


def read_too_early(sim: SimDevice, wait: Callable = lambda sim, side: None) -> None:
    side, host = sim.Stream(), torch.zeros(1000).pin_memory()
    with sim.stream(side):
        x = host.to(sim.device, non_blocking=True)
    wait(sim, side)
    x.neg()
    x.record_stream(sim.current_stream())


def overwritten_too_early(sim: SimDevice) -> None:
    side, host = sim.Stream(), torch.empty(1000, pin_memory=True)
    x = torch.zeros(1000).to(sim.device)
    with sim.stream(side):
        host.copy_(x, non_blocking=True)
    x.add_(1)


def written_twice(sim: SimDevice) -> None:
    side = sim.Stream()
    x = torch.zeros(1000).to(sim.device)
    with sim.stream(side):
        x.fill_(1)
    x.fill_(2)


def new_memory_written_elsewhere(sim: SimDevice) -> None:
    x = torch.zeros(1000, device=sim.device)
    x.neg()
    target = torch.empty(1000, device=sim.device)
    with sim.stream(sim.Stream()):
        target.copy_(torch.zeros(1000).pin_memory(), non_blocking=True)


def freed_too_early(sim: SimDevice) -> None:
    side, host = sim.Stream(), torch.empty(1000, pin_memory=True)
    x = torch.zeros(1000).to(sim.device)
    with sim.stream(side):
        host.copy_(x, non_blocking=True)
    del x
    torch.zeros(10, device=sim.device)


def host_reads_too_early(sim: SimDevice) -> None:
    host = torch.zeros(1000).to(sim.device).to("cpu", non_blocking=True)
    host.sum()


def host_overwrites_too_early(sim: SimDevice) -> None:
    host = torch.zeros(1000).pin_memory()
    host.to(sim.device, non_blocking=True)
    host.fill_(1)


@pytest.mark.parametrize(
    ("program", "kind", "remedy"),
    [
        (read_too_early, "read too early", "wait for an event"),
        (overwritten_too_early, "overwritten too early", "wait for an event"),
        (written_twice, "written twice", "wait for an event"),
        (new_memory_written_elsewhere, "written twice", "wait for an event"),
        (freed_too_early, "freed too early", "let the stream that made it wait first"),
        (host_reads_too_early, "read too early", "synchronize first"),
        (host_overwrites_too_early, "overwritten too early", "synchronize first"),
    ],
)
def test_it_is_reported(program: Callable, kind: str, remedy: str) -> None:
    sim = run(program)
    assert [race.kind for race in sim.races] == [kind]
    assert remedy in str(sim.races[0])


@pytest.mark.parametrize(
    "wait",
    [
        lambda sim, side: sim.current_stream().wait_stream(side),
        lambda sim, side: sim.current_stream().wait_event(side.record_event()),
        lambda sim, side: side.record_event().wait(),
        lambda sim, side: side.synchronize(),
        lambda sim, side: side.record_event().synchronize(),
        lambda sim, side: sim.synchronize(),
    ],
)
def test_any_wait_will_do(wait: Callable) -> None:
    assert run(lambda sim: read_too_early(sim, wait)).races == ()


def test_a_wait_for_what_was_recorded_before_is_no_wait() -> None:
    def program(sim: SimDevice) -> None:
        side, host = sim.Stream(), torch.zeros(1000).pin_memory()
        early = side.record_event()
        with sim.stream(side):
            x = host.to(sim.device, non_blocking=True)
        sim.current_stream().wait_event(early)
        x.neg()

    assert [race.kind for race in run(program).races] == ["read too early"]


def test_a_wait_is_passed_on_through_a_third_stream() -> None:
    def program(sim: SimDevice) -> None:
        first, second = sim.Stream(), sim.Stream()
        with sim.stream(first):
            x = torch.zeros(1000).pin_memory().to(sim.device, non_blocking=True)
        second.wait_stream(first)
        sim.current_stream().wait_stream(second)
        x.neg()

    assert run(program).races == ()


def test_freed_memory_is_safe_once_its_stream_has_waited() -> None:
    def program(sim: SimDevice) -> None:
        side, host = sim.Stream(), torch.empty(1000, pin_memory=True)
        x = torch.zeros(1000).to(sim.device)
        with sim.stream(side):
            host.copy_(x, non_blocking=True)
        del x
        sim.current_stream().wait_stream(side)
        torch.zeros(10, device=sim.device)

    assert run(program).races == ()


def test_a_view_reads_nothing() -> None:
    def program(sim: SimDevice) -> None:
        host = torch.zeros(1000).to(sim.device).to("cpu", non_blocking=True)
        halves = host.detach().view(2, 500)[1].t()
        sim.synchronize()
        halves.sum()

    assert run(program).races == ()
