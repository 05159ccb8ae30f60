import re


# one table of names, and one dictionary of what the job gives and what is set
TABLE = (
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
)


def read_environment(env):
    complete = [names for names in TABLE if all(name in env for name in names)]
    partly = [names for names in TABLE if any(name in env for name in names)]
    names = (complete + partly + [TABLE[0]])[0]
    rendezvous = {}
    if "SLURM_JOB_NODELIST" in env:
        rendezvous["MASTER_ADDR"] = first_host(env["SLURM_JOB_NODELIST"])
    if "SLURM_JOB_ID" in env:
        rendezvous["MASTER_PORT"] = 15000 + int(env["SLURM_JOB_ID"]) % 10000
    found = {**rendezvous, **env}
    missing = [name for name in (*names, "MASTER_ADDR", "MASTER_PORT") if name not in found]
    if missing:
        raise ValueError("not set: " + ", ".join(missing))
    rank, local_rank, world_size = (int(env[name]) for name in names)
    return {
        "rank": rank,
        "local_rank": local_rank,
        "world_size": world_size,
        "master_addr": found["MASTER_ADDR"],
        "master_port": int(found["MASTER_PORT"]),
    }


def first_host(nodelist):
    first = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodelist)[0]
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", first)
