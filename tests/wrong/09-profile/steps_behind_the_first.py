# hint: The first of the steps that count is missing
def gpu_work(events, first_step):
    spans = [
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") == "user_annotation"
        and e["name"].startswith("ProfilerStep#")
        and int(e["name"].split("#")[1]) > first_step
    ]
    corr = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver")
        and "correlation" in e.get("args", {})
        and any(a <= e["ts"] <= b for a, b in spans)
    }
    return [
        e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"]["correlation"] in corr
    ]


def gpu_report(work, marks):
    rows = {}
    tc = tot = 0.0
    for e in work:
        if e["cat"] != "kernel":
            continue
        r = rows.setdefault(e["name"], [0, 0.0])
        r[0] += 1
        r[1] += e["dur"]
        tot += e["dur"]
        if any(m in e["name"] for m in marks):
            tc += e["dur"]
    idle = 0.0
    end = None
    for e in sorted(work, key=lambda e: e["ts"]):
        if end is not None and e["ts"] > end:
            idle += e["ts"] - end
        end = max(e["ts"] + e["dur"], end if end is not None else e["ts"])
    return {
        "kernels": sorted([(n, c, t) for n, (c, t) in rows.items()], key=lambda r: -r[2]),
        "idle_us": idle,
        "tensor_core_share": tc / tot if tot else 0.0,
    }


def profile_steps(step, n_unsteady, n_active):
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=n_unsteady - 1, warmup=1, active=n_active, repeat=1)
    ) as prof:
        for _ in range(n_unsteady + n_active):
            step()
            prof.step()
    return prof
