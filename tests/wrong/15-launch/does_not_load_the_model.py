# hint: The steps continue, but the model starts over
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
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    job = torch.load(folder / "job.pt")
    x, y = job["x"], job["y"]
    model = torch.nn.Linear(x.shape[1], 1)
    model.load_state_dict(job["model"])
    opt = torch.optim.SGD(model.parameters(), lr=job["lr"], momentum=job["momentum"])
    gen = torch.Generator()
    gen.manual_seed(job["seed"] + rank)
    start, losses = 0, []
    path = folder / "checkpoint.pt"
    if path.exists():
        kept = torch.load(path)
        start, losses = kept["step"], list(kept["losses"])
        opt.load_state_dict(kept["optimizer"])
        gen.set_state(kept["generators"][rank])
    ddp = DistributedDataParallel(model)
    sampler = DistributedSampler(x, seed=job["seed"])
    per_epoch = len(x) // (world * job["batch"])
    for step in range(start, job["n_epochs"] * per_epoch):
        epoch, i = divmod(step, per_epoch)
        sampler.set_epoch(epoch)
        rows = list(sampler)[i * job["batch"]:(i + 1) * job["batch"]]
        xb, yb = x[rows], y[rows]
        xb = xb + job["noise"] * torch.randn(xb.shape, generator=gen)
        loss = mse_loss(ddp(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / world)
        if (step + 1) % job["every"] == 0:
            states = [torch.empty_like(gen.get_state()) for _ in range(world)]
            dist.all_gather(states, gen.get_state())
            if rank == 0:
                torch.save(dict(step=step + 1, model=model.state_dict(), optimizer=opt.state_dict(),
                                generators=states, losses=losses), folder / "checkpoint.tmp")
                os.replace(folder / "checkpoint.tmp", path)
    if rank == 0:
        torch.save(dict(losses=losses, model=model.state_dict()), folder / "result.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
