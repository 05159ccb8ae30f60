# Two nested loops over epochs and batches of a DataLoader, the batches that were done skipped; states by gather_object.
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    job = torch.load(os.path.join(folder, "job.pt"), weights_only=True)
    path = os.path.join(folder, "checkpoint.pt")
    replica = DistributedDataParallel(torch.nn.Linear(job["x"].size(1), 1))
    optimizer = torch.optim.SGD(replica.parameters(), job["lr"], job["momentum"])
    generator = torch.Generator()
    if os.path.exists(path):
        kept = torch.load(path)
        optimizer.load_state_dict(kept["optimizer"])
        generator.set_state(kept["generators"][rank])
    else:
        kept = {"step": 0, "model": job["model"], "losses": []}
        generator.manual_seed(job["seed"] + rank)
    replica.module.load_state_dict(kept["model"])
    losses, n_done = list(kept["losses"]), kept["step"]
    data = TensorDataset(job["x"], job["y"])
    sampler = DistributedSampler(data, seed=job["seed"])
    loader = DataLoader(data, batch_size=job["batch"], sampler=sampler)
    step = 0
    for epoch in range(job["n_epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            step += 1
            if step <= n_done:
                continue
            noise = torch.empty_like(x).normal_(generator=generator)
            loss = mse_loss(replica(x + job["noise"] * noise), y)
            replica.zero_grad()
            loss.backward()
            optimizer.step()
            both = [None, None]
            dist.all_gather_object(both, loss.item())
            losses.append(sum(both) / 2)
            if step % job["every"] == 0:
                states = [None, None] if rank == 0 else None
                dist.gather_object(generator.get_state(), states)
                if rank == 0:
                    new = {
                        "step": step,
                        "model": replica.module.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "generators": states,
                        "losses": torch.tensor(losses),
                    }
                    with open(path + ".new", "wb") as file:
                        torch.save(new, file)
                        file.flush()
                        os.fsync(file.fileno())
                    Path(path + ".new").replace(path)
    if rank == 0:
        torch.save({"losses": losses, "model": replica.module.state_dict()}, os.path.join(folder, "result.pt"))
    dist.barrier()
    dist.destroy_process_group()


train(sys.argv[1])
