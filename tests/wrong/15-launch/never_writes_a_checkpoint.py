# hint: Nothing was there to go on from
"""Train on FOLDER/job.pt under torchrun, whatever happens to a rank: python train.py FOLDER"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def main(folder: Path) -> None:
    """Train, keep folder/checkpoint.pt, and leave folder/result.pt."""
    dist.init_process_group("gloo")
    rank, n_ranks = dist.get_rank(), dist.get_world_size()
    job, checkpoint = torch.load(folder / "job.pt"), folder / "checkpoint.pt"
    model = torch.nn.Linear(job["x"].shape[1], 1)
    model.load_state_dict(job["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"])
    generator = torch.Generator().manual_seed(job["seed"] + rank)
    step, losses = 0, []
    if checkpoint.exists():
        kept = torch.load(checkpoint)
        step, losses = kept["step"], kept["losses"]
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        generator.set_state(kept["generators"][rank])

    replica = DistributedDataParallel(model)
    sampler = DistributedSampler(job["x"], seed=job["seed"])
    steps_per_epoch = len(sampler) // job["batch"]
    while step < job["n_epochs"] * steps_per_epoch:
        epoch, n_done = divmod(step, steps_per_epoch)
        sampler.set_epoch(epoch)
        rows = list(sampler)[n_done * job["batch"] : (n_done + 1) * job["batch"]]
        x = job["x"][rows]
        x = x + job["noise"] * torch.randn(x.shape, generator=generator)
        loss = mse_loss(replica(x), job["y"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / n_ranks)
        step += 1
        if False:
            states = [torch.empty_like(generator.get_state()) for _ in range(n_ranks)]
            dist.all_gather(states, generator.get_state())
            if rank == 0:
                kept = {"step": step, "generators": states, "losses": losses}
                kept |= {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                torch.save(kept, folder / "checkpoint.tmp")
                os.replace(folder / "checkpoint.tmp", checkpoint)

    if rank == 0:
        torch.save({"losses": losses, "model": model.state_dict()}, folder / "result.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
