# hint: replace MASTER_ADDR and MASTER_PORT under every launcher
import re

TABLE = [("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS")]

def first_host(s):
    depth, entry = 0, ""
    for ch in s:
        if ch == "," and depth == 0:
            break
        depth += (ch == "[") - (ch == "]")
        entry += ch
    return re.sub(r"\[([^\],-]+)[^\]]*\]", r"\1", entry)

def read_environment(env):
    for names in TABLE:
        if all(n in env for n in names):
            break
    else:
        for names in TABLE:
            if any(n in env for n in names):
                break
        else:
            names = TABLE[0]
    missing = [n for n in names if n not in env]
    if "MASTER_ADDR" in env:
        addr = env["MASTER_ADDR"]
    elif "SLURM_JOB_NODELIST" in env and names[0] == "SLURM_PROCID":
        addr = first_host(env["SLURM_JOB_NODELIST"])
    else:
        missing.append("MASTER_ADDR")
    if "MASTER_PORT" in env:
        port = int(env["MASTER_PORT"])
    elif "SLURM_JOB_ID" in env:
        port = 15000 + int(env["SLURM_JOB_ID"]) % 10000
    else:
        missing.append("MASTER_PORT")
    if missing:
        raise ValueError("missing: " + ", ".join(missing))
    r, l, w = (int(env[n]) for n in names)
    return dict(rank=r, local_rank=l, world_size=w, master_addr=addr, master_port=port)
