# Waits for a message only when the next one of its kind is due, and adds up the embedding's gradients by two messages.
def pipeline_step(comm, stage, order, shapes, tokens, targets):
    first, last = comm.rank == 0, comm.rank == comm.world_size - 1
    count = 0
    for one in targets or ():
        count += int(one.ne(-100).sum())
    ins, outs, pending, total = {}, {}, [], 0.0
    for what, k in order:
        if what == "F":
            if first:
                ins[k] = tokens[k]
            else:
                ins[k] = torch.zeros(*shapes[k], requires_grad=True)
                comm.irecv(ins[k], comm.rank - 1).wait()
            outs[k] = stage(ins[k])
            if last:
                logits = outs[k].reshape(-1, outs[k].shape[-1])
                wanted = targets[k].reshape(-1)
                keep = wanted.ne(-100)
                logp = logits.log_softmax(-1)[keep]
                outs[k] = -logp.gather(1, wanted[keep, None]).sum() / count
                del logits, logp
                total += outs[k].item()
            else:
                pending.append(comm.isend(outs[k].detach(), comm.rank + 1))
        else:
            if last:
                outs.pop(k).backward()
            else:
                grad = torch.zeros(*shapes[k])
                comm.recv(grad, comm.rank + 1)
                torch.autograd.backward([outs.pop(k)], [grad])
            x = ins.pop(k)
            if not first:
                pending.append(comm.isend(x.grad, comm.rank - 1))
            del x
    if comm.world_size > 1 and (first or last):
        other = comm.world_size - 1 if first else 0
        theirs = torch.zeros_like(stage.tied_weight)
        pending.append(comm.isend(stage.tied_weight.grad, other))
        comm.recv(theirs.data, other)
        stage.tied_weight.grad += theirs.detach()
    for work in pending:
        work.wait()
    return total if last else None
