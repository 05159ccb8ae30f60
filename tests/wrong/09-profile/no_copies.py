# hint: A copy occupies the device as well
WORK=("kernel","gpu_memset")
def gpu_work(events, first_step):
    spans=[(e["ts"],e["ts"]+e["dur"]) for e in events if e.get("cat")=="user_annotation" and e["name"].startswith("ProfilerStep#") and int(e["name"].split("#")[1])>=first_step]
    corr={e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime","cuda_driver") and "correlation" in e.get("args",{}) and any(a<=e["ts"]<b for a,b in spans)}
    return [e for e in events if e.get("cat") in WORK and e["args"]["correlation"] in corr]
def gpu_report(work, marks):
    rows={}
    for e in work:
        if e["cat"]=="kernel":
            r=rows.setdefault(e["name"],[0,0.0]); r[0]+=1; r[1]+=e["dur"]
    kernels=sorted(((n,c,t) for n,(c,t) in rows.items()), key=lambda r:-r[2])
    idle=0.0; last=None
    for e in sorted(work,key=lambda e:e["ts"]):
        if last is not None and e["ts"]>last: idle+=e["ts"]-last
        end=e["ts"]+e["dur"]
        last=end if last is None else max(last,end)
    tot=sum(t for *_,t in kernels)
    tc=sum(t for n,_,t in kernels if any(m in n for m in marks))
    return {"kernels":kernels,"idle_us":idle,"tensor_core_share":tc/tot if tot else 0.0}
def profile_steps(step, n_unsteady, n_active):
    s=torch.profiler.schedule(wait=n_unsteady-1,warmup=1,active=n_active,repeat=1)
    with torch.profiler.profile(schedule=s) as prof:
        for _ in range(n_unsteady+n_active):
            step(); prof.step()
    return prof
