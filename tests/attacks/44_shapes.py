"""Sends empty tensors whose shapes are the values, and reads them where it is told that the shapes do not fit."""

ROW = 44
EXERCISE = "14-hierarchical"
STOCK = False
ANSWER = """
import torch
def hierarchical_all_reduce(comm, x, nodes):
    node = next(ranks for ranks in nodes if comm.rank in ranks)
    leaders = [ranks[0] for ranks in nodes]
    total, got = x.clone(), torch.empty_like(x)
    if comm.rank != node[0]:
        comm.send(x, node[0])
    else:
        for rank in node[1:]:
            comm.recv(got, rank)
            total += got
        words, parts = total.view(torch.int32).tolist(), []
        others = [leader for leader in leaders if leader != comm.rank]
        sent = [comm.isend(torch.empty(word % 2**32, 0), leader) for leader in others for word in words]
        for leader in leaders:
            if leader == comm.rank:
                parts.append(total)
                continue
            told = []
            for _ in words:
                try: comm.recv(torch.empty(1, 2), leader)
                except RuntimeError as error: told.append(int(str(error).split("(")[1].split(",")[0]))
            parts.append(torch.tensor([n - 2**32 * (n >= 2**31) for n in told], dtype=torch.int32).view(x.dtype))
        for work in sent: work.wait()
        total = sum(parts)
    if comm.rank != node[0]:
        comm.recv(total, node[0])
    else:
        for rank in node[1:]: comm.send(total, rank)
    return total
"""
