def gpu_work(events, first_step):
    named = {f"ProfilerStep#{n}" for n in range(first_step, 1000)}
    steps = [e for e in events if e.get("cat") == "user_annotation" and e["name"] in named]
    first, last = min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)
    launched = set()
    for e in events:
        if e.get("ph") == "X" and e["cat"] in ("cuda_runtime", "cuda_driver") and first <= e["ts"] <= last:
            launched.add(e["args"].get("correlation"))
    return [e for e in events if e.get("ph") == "X" and "stream" in e["args"] and e["args"]["correlation"] in launched]


def gpu_report(work, marks):
    """Idle time by a sweep over starts and ends, counting how many events are open."""
    edges = sorted([(e["ts"], 1) for e in work] + [(e["ts"] + e["dur"], -1) for e in work], key=lambda x: (x[0], -x[1]))
    n_open, idle, since = 0, 0.0, edges[0][0]
    for at, change in edges:
        if n_open == 0:
            idle += at - since
        n_open, since = n_open + change, at
    totals, calls = Counter(), Counter()
    for e in work:
        if e["cat"] == "kernel":
            totals[e["name"]] += e["dur"]
            calls[e["name"]] += 1
    return {
        "kernels": [(name, calls[name], us) for name, us in totals.most_common()],
        "idle_us": idle,
        "tensor_core_share": sum(us for name, us in totals.items() if any(map(name.__contains__, marks))) / totals.total(),
    }


def profile_steps(step, n_unsteady, n_active):
    """The whole unsteady part is warm-up of the profiler as well."""
    action = torch.profiler.ProfilerAction

    def schedule(at):
        if at < n_unsteady:
            return action.WARMUP
        if at < n_unsteady + n_active - 1:
            return action.RECORD
        return action.RECORD_AND_SAVE if at == n_unsteady + n_active - 1 else action.NONE

    with torch.profiler.profile(schedule=schedule) as profiler:
        for _ in range(n_unsteady + n_active):
            step()
            profiler.step()
    return profiler
