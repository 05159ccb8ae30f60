# segments and blocks are dictionaries
MB=2**20
def replay_trace(trace):
    segs=[] # (pool, blocks)
    rows=[]; alloc=res=nm=nf=0
    where={}
    for kind,t,n in trace:
        if kind=="malloc":
            n=-(-n//512)*512
            small=n<=MB
            fits=[(seg,b) for seg in segs if seg["small"]==small for b in seg["blocks"] if b["free"] and b["size"]>=n]
            if fits:
                seg,b=min(fits,key=lambda p:p[1]["size"])
            else:
                if small: size=2*MB
                elif n<10*MB: size=20*MB
                else: size=-(-n//(2*MB))*2*MB
                b={"size":size,"free":True}
                seg={"small":small,"blocks":[b]}
                segs.append(seg); nm+=1; res+=size
            rest=b["size"]-n
            if (small and rest>=512) or (not small and rest>MB):
                i=[k for k,o in enumerate(seg["blocks"]) if o is b][0]
                seg["blocks"].insert(i+1,{"size":rest,"free":True})
                b["size"]=n
            b["free"]=False
            alloc+=b["size"]
            where[t]=(seg,b)
        elif kind=="free":
            seg,b=where.pop(t)
            alloc-=b["size"]
            b["free"]=True
            bl=seg["blocks"]
            i=[k for k,o in enumerate(bl) if o is b][0]
            if i+1<len(bl) and bl[i+1]["free"]:
                b["size"]+=bl.pop(i+1)["size"]
            if i and bl[i-1]["free"]:
                bl[i-1]["size"]+=bl.pop(i)["size"]
        else:
            keep=[]
            for s in segs:
                if len(s["blocks"])==1 and s["blocks"][0]["free"]:
                    nf+=1; res-=s["blocks"][0]["size"]
                else: keep.append(s)
            segs=keep
        rows.append((alloc,res,nm,nf))
    return rows
def slow_down(before, step, step_ms, malloc_ms, free_ms):
    def third(st):
        rows=replay_trace([*before,*(list(st)*3)])
        m0,f0=rows[-1-len(st)][2:] if len(rows)>len(st) else (0,0)
        m1,f1=rows[-1][2:]
        return step_ms+(m1-m0)*malloc_ms+(f1-f0)*free_ms
    return third(list(step)+[("empty_cache",0,0)])/third(list(step))
