# Keeps the inputs alone, and runs the stage a second time before the backward pass.
def pipeline_step(comm, stage, order, shapes, tokens, targets):
    rank, last = comm.rank, comm.world_size - 1
    n_tokens = sum((t != -100).sum() for t in targets) if rank == last else None
    inputs, works, loss = {}, [], 0

    def forward(k):
        out = stage(inputs[k])
        if rank < last:
            return out
        total = F.cross_entropy(out.transpose(1, 2), targets[k], reduction="none").sum()
        return total / n_tokens

    for kind, k in order:
        if kind == "F":
            if rank:
                inputs[k] = torch.empty(shapes[k], requires_grad=True)
                comm.recv(inputs[k], rank - 1)
            else:
                inputs[k] = tokens[k]
            with torch.no_grad():
                out = forward(k)
            if rank < last:
                works.append(comm.isend(out, rank + 1))
            else:
                loss = loss + out
            del out
        else:
            grad = None
            if rank < last:
                grad = torch.empty(shapes[k])
                comm.recv(grad, rank + 1)
            out = forward(k)
            out.backward(grad)
            x = inputs.pop(k)
            if rank:
                works.append(comm.isend(x.grad, rank - 1))
            del x, out
    for work in works:
        work.wait()
    both = comm.new_group({0, last}) if last else None
    if both is not None:
        both.all_reduce(stage.tied_weight.grad)
    return loss if rank == last else None
