# hint: Some kernels have no launch in cuda_runtime
def gpu_work(events: list[dict], first_step: int) -> list[dict]:
    """The events of the device that were launched in step first_step or later."""
    bounds = [
        (event["ts"], event["ts"] + event["dur"])
        for event in events
        if event.get("cat") == "user_annotation"
        and event["name"].startswith("ProfilerStep#")
        and int(event["name"].split("#")[1]) >= first_step
    ]
    launched = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") == "cuda_runtime"
        and any(start <= event["ts"] < end for start, end in bounds)
    }
    on_device = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [event for event in events if event.get("cat") in on_device]
    return [event for event in work if event["args"]["correlation"] in launched]


def gpu_report(work: list[dict], marks: Sequence[str]) -> dict:
    """{"kernels": rows (name, calls, total µs), "idle_us": ..., "tensor_core_share": ...} of this work of the device."""
    rows = {}
    for event in work:
        if event["cat"] == "kernel":
            _, n_calls, total_us = rows.get(event["name"], (event["name"], 0, 0.0))
            rows[event["name"]] = (event["name"], n_calls + 1, total_us + event["dur"])
    idle_us, busy_until_us = 0.0, min(event["ts"] for event in work)
    for event in sorted(work, key=lambda event: event["ts"]):
        idle_us += max(0.0, event["ts"] - busy_until_us)
        busy_until_us = max(busy_until_us, event["ts"] + event["dur"])
    on_tensor_cores = [row for row in rows.values() if any(mark in row[0] for mark in marks)]
    return {
        "kernels": sorted(rows.values(), key=lambda row: -row[2]),
        "idle_us": idle_us,
        "tensor_core_share": sum(row[2] for row in on_tensor_cores)
        / sum(row[2] for row in rows.values()),
    }


def profile_steps(
    step: Callable[[], None], n_unsteady: int, n_active: int
) -> torch.profiler.profile:
    """The profiler, done, that has recorded n_active calls of step behind the first n_unsteady."""
    schedule = torch.profiler.schedule(wait=n_unsteady - 1, warmup=1, active=n_active, repeat=1)
    with torch.profiler.profile(schedule=schedule) as profiler:
        for _ in range(n_unsteady + n_active):
            step()
            profiler.step()
    return profiler
