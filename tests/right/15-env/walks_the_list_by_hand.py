class NotThere(ValueError):
    pass


def host(text):
    out, inside, done = "", False, False
    for c in text:
        if c == "[":
            inside, done = True, False
        elif c == "]":
            inside = False
        elif inside:
            done = done or c in ",-"
            out += "" if done else c
        elif c == ",":
            break
        else:
            out += c
    return out


def read_environment(env):
    import os

    assert env is not os.environ
    prefixes = {"torchrun": "", "ompi": "OMPI_COMM_WORLD_"}
    tables = [
        {"rank": "RANK", "local_rank": "LOCAL_RANK", "world_size": "WORLD_SIZE"},
        {key: "OMPI_COMM_WORLD_" + key.replace("world_size", "size").upper() for key in ("rank", "local_rank", "world_size")},
        {"rank": "PMI_RANK", "local_rank": "MPI_LOCALRANKID", "world_size": "PMI_SIZE"},
        {"rank": "SLURM_PROCID", "local_rank": "SLURM_LOCALID", "world_size": "SLURM_NTASKS"},
    ]

    def n_there(table):
        return sum(name in env for name in table.values())

    # The first with all three, else the first with any, else torchrun.
    best = next((t for t in tables if n_there(t) == 3), None) or next((t for t in tables if n_there(t)), tables[0])
    place = {key: env.get(name) for key, name in best.items()}
    place["master_addr"] = env.get("MASTER_ADDR") or host(env.get("SLURM_JOB_NODELIST", "")) or None
    job = env.get("SLURM_JOB_ID")
    place["master_port"] = env.get("MASTER_PORT") or (job and 15000 + int(job[-4:]))
    names = {**best, "master_addr": "MASTER_ADDR", "master_port": "MASTER_PORT"}
    gone = [names[key] for key, value in place.items() if value is None]
    if gone:
        raise NotThere(f"the launcher did not say {' and '.join(gone)}")
    return {key: value if key == "master_addr" else int(value) for key, value in place.items()}
