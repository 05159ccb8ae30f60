def read_environment(env):
    def has(*names):
        return all(name in env for name in names)

    place = ["RANK", "LOCAL_RANK", "WORLD_SIZE"]
    ompi = [f"OMPI_COMM_WORLD_{what}" for what in ("RANK", "LOCAL_RANK", "SIZE")]
    hydra = ["PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"]
    slurm = ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"]
    for names in (place, ompi, hydra, slurm):
        if has(*names):
            break
    else:
        for names in (place, ompi, hydra, slurm, place):
            if set(names) & set(env):
                break
    gone = sorted(set(names) - set(env))
    addr, port = env.get("MASTER_ADDR"), env.get("MASTER_PORT")
    if addr is None and "SLURM_JOB_NODELIST" in env:
        head, _, tail = env["SLURM_JOB_NODELIST"].partition("[")
        if "," in head or not tail:
            addr = head.split(",")[0]
        else:
            numbers, _, rest = tail.partition("]")
            addr = head + numbers.split(",")[0].split("-")[0] + rest.split(",")[0]
    if port is None and "SLURM_JOB_ID" in env:
        port = int(env["SLURM_JOB_ID"]) % 10_000 + 15_000
    gone += ["MASTER_ADDR"] * (addr is None) + ["MASTER_PORT"] * (port is None)
    if gone:
        raise ValueError(f"missing in the environment: {gone}")
    rank, local, world = [int(env[name]) for name in names]
    return dict(rank=rank, local_rank=local, world_size=world, master_addr=addr, master_port=int(port))
