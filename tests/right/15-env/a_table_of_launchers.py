# a table of what each launcher calls its three variables
import re

TABLE = [
    ("RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
]
def first_host(nodelist):
    entry = re.match(r"([^,\[]|\[[^\]]*\])+", nodelist)[0]
    return re.sub(r"\[([^],-]+)[^]]*\]", r"\1", entry)
def read_environment(env):
    whole = [row for row in TABLE if all(name in env for name in row)]
    some = [row for row in TABLE if any(name in env for name in row)]
    names = [*whole, *some, TABLE[0]][0]
    missing = [name for name in names if name not in env]
    if "MASTER_ADDR" not in env and "SLURM_JOB_NODELIST" not in env: missing.append("MASTER_ADDR")
    if "MASTER_PORT" not in env and "SLURM_JOB_ID" not in env: missing.append("MASTER_PORT")
    if missing:
        raise ValueError("missing: " + ", ".join(missing))
    rank, local, size = (int(env[name]) for name in names)
    return {
        "rank": rank, "local_rank": local, "world_size": size,
        "master_addr": env["MASTER_ADDR"] if "MASTER_ADDR" in env else first_host(env["SLURM_JOB_NODELIST"]),
        "master_port": int(env["MASTER_PORT"]) if "MASTER_PORT" in env else 15000 + int(env["SLURM_JOB_ID"]) % 10000,
    }
