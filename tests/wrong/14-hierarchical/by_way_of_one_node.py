# hint: as pieces, not by way of one of them
def hierarchical_all_reduce(comm, x, nodes):
    out = x.clone()
    node = next(n for n in nodes if comm.rank in n)
    place = node.index(comm.rank)
    col = [n[place] for n in nodes]
    def go(chunks, ranks, add):
        n, i = len(ranks), ranks.index(comm.rank)
        for k in range(n - 1):
            s = (i - k - add) % n
            g = (s - 1) % n
            buf = torch.empty_like(chunks[g])
            w = comm.isend(chunks[s], ranks[(i + 1) % n])
            comm.recv(buf, ranks[i - 1])
            w.wait()
            if add:
                chunks[g] += buf
            else:
                chunks[g].copy_(buf)
    chunks = list(out.tensor_split(len(node)))
    go(chunks, node, 1)
    total, got = chunks[place], torch.empty_like(chunks[place])
    if comm.rank == col[0]:
        for other in col[1:]:
            comm.recv(got, other)
            total += got
        for other in col[1:]:
            comm.send(total, other)
    else:
        comm.send(total, col[0])
        comm.recv(total, col[0])
    go(chunks, node, 0)
    return out
