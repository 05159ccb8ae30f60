def gpu_work(events, first_step):
    """Joins by a dict from correlation to the time of the launch, and looks the step up by bisection."""
    import bisect

    steps = sorted((e["ts"], e["ts"] + e["dur"], int(e["name"][13:])) for e in events
                   if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#"))
    launches = {e["args"]["correlation"]: e["ts"] for e in events
                if str(e.get("cat")).startswith("cuda_") and "correlation" in e.get("args", {})}
    found = []
    for event in events:
        if event.get("cat") not in {"kernel", "gpu_memcpy", "gpu_memset"}:
            continue
        launched = launches[event["args"]["correlation"]]
        at = bisect.bisect_right([start for start, *_ in steps], launched) - 1
        if at >= 0 and launched < steps[at][1] and steps[at][2] >= first_step:
            found.append(event)
    return sorted(found, key=lambda event: -event["ts"])


def gpu_report(work, marks):
    kernels = [e for e in work if e["cat"] == "kernel"]
    times = {}
    for e in kernels:
        times.setdefault(e["name"], []).append(e["dur"])
    merged = []
    for start, end in sorted((e["ts"], e["ts"] + e["dur"]) for e in work):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    gaps = [later[0] - earlier[1] for earlier, later in zip(merged, merged[1:])]
    fast = sum(e["dur"] for e in kernels if any(m in e["name"] for m in marks))
    return {
        "tensor_core_share": fast / sum(e["dur"] for e in kernels),
        "kernels": [[k, len(v), sum(v)] for k, v in sorted(times.items(), key=lambda item: sum(item[1]), reverse=True)],
        "idle_us": sum(gaps),
    }


def profile_steps(step, n_unsteady, n_active):
    profiler = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(skip_first=n_unsteady - 2, wait=1, warmup=1, active=n_active, repeat=1),
        record_shapes=True,
    )
    profiler.start()
    for _ in range(n_unsteady + n_active):
        step()
        profiler.step()
    profiler.stop()
    return profiler
