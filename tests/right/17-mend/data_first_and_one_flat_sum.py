# The average over data first, all in one call, and partial gradients in one more: sums can be taken in any order.
import torch


def finish_gradients(grads, cuts, ties, tensor, replicas, data):
    def together(comm, names, op):
        if not names:
            return
        flat = torch.cat([grads[name].flatten() for name in names])
        comm.all_reduce(flat, op=op)
        for name, part in zip(names, flat.split([grads[name].numel() for name in names])):
            grads[name] = part.view_as(grads[name]).clone()

    together(data, list(grads), "avg")
    together(tensor, [name for name, cut in cuts.items() if cut == "whole"], "sum")
    together(replicas, [name for name, cut in cuts.items() if cut == "kv"], "sum")
    for first, second in ties:
        grads[first] = grads[first] + grads[second]
        grads[second] = grads[first].clone()
