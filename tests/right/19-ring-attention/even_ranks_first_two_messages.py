# Blocking calls, even ranks send first; keys and values as two messages; the largest score is kept instead of lse.
def swap(comm, tensors):
    after, before = (comm.rank + 1) % comm.world_size, (comm.rank - 1) % comm.world_size
    coming = [torch.empty_like(tensor) for tensor in tensors]
    # With an odd number of ranks the last one and rank 0 are both even: rank 0 sends first, and that is enough.
    for one, other in zip(tensors, coming):
        if comm.rank % 2 == 0 and comm.rank != comm.world_size - 1 or comm.rank == 0:
            comm.send(one.contiguous(), after)
            comm.recv(other, before)
        else:
            comm.recv(other, before)
            comm.send(one.contiguous(), after)
    return coming


def ring_forward(comm, q, k, v, positions):
    top = weight = total = None
    keys, values = k, v
    for step in range(comm.world_size):
        source = (comm.rank - step) % comm.world_size
        scores = q @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(positions[source][None, None, :] > positions[comm.rank][None, :, None], -1e30)
        best = scores.max(-1, keepdim=True).values if top is None else torch.maximum(top, scores.max(-1, True).values)
        shares = torch.exp(scores - best)
        old = 0 if top is None else torch.exp(top - best)
        weight = shares.sum(-1, keepdim=True) + (0 if weight is None else old * weight)
        total = shares @ values + (0 if total is None else old * total)
        top = best
        if step < comm.world_size - 1:
            keys, values = swap(comm, (keys, values))
    return total / weight, (top + weight.log())[..., 0]


def ring_backward(comm, q, k, v, positions, out, lse, d_out):
    d_q, d_k, d_v = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    keys, values = k, v
    for step in range(comm.world_size):
        at = positions[comm.rank], positions[(comm.rank - step) % comm.world_size]
        parts = attend_backward(q, keys, values, *at, out, lse, d_out)
        d_q, d_k, d_v = d_q + parts[0], d_k + parts[1], d_v + parts[2]
        del parts
        d_k, d_v = swap(comm, (d_k, d_v))
        if step < comm.world_size - 1:
            keys, values = swap(comm, (keys, values))
    return d_q, d_k, d_v
