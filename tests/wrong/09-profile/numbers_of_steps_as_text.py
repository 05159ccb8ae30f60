# hint: Steps from number 10 on are missing
def gpu_work(events, first_step):
    spans = [(e["ts"], e["ts"] + e["dur"]) for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#") and e["name"].split("#")[1] >= str(first_step)]
    wanted = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {}) and any(a <= e["ts"] < b for a, b in spans)}
    return [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"]["correlation"] in wanted]
def gpu_report(work, marks):
    rows = {}
    for e in work:
        if e["cat"] == "kernel":
            n, t = rows.get(e["name"], (0, 0.0))
            rows[e["name"]] = (n + 1, t + e["dur"])
    kernels = sorted(((name, n, t) for name, (n, t) in rows.items()), key=lambda r: -r[2])
    idle, end = 0.0, None
    for e in sorted(work, key=lambda e: e["ts"]):
        if end is not None and e["ts"] > end:
            idle += e["ts"] - end
        end = e["ts"] + e["dur"] if end is None else max(end, e["ts"] + e["dur"])
    total = sum(r[2] for r in kernels)
    fast = sum(r[2] for r in kernels if any(m in r[0] for m in marks))
    return {"kernels": kernels, "idle_us": idle, "tensor_core_share": fast / total if total else 0.0}
def profile_steps(step, n_unsteady, n_active):
    schedule = torch.profiler.schedule(wait=n_unsteady - 1, warmup=1, active=n_active, repeat=1)
    with torch.profiler.profile(schedule=schedule) as prof:
        for _ in range(n_unsteady + n_active):
            step()
            prof.step()
    return prof
