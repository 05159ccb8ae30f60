# Within a node each rank sends each other its part; only between nodes there are rings.
def hierarchical_all_reduce(comm, x, nodes):
    at = {r: (i, j) for i, ranks in enumerate(nodes) for j, r in enumerate(ranks)}
    i, j = at[comm.rank]
    mates, peers = nodes[i], [ranks[j] for ranks in nodes]
    out = x.clone()
    edges = [k * len(x) // len(mates) for k in range(len(mates) + 1)]
    mine = out[edges[j] : edges[j + 1]]
    works = [comm.isend(x[edges[k] : edges[k + 1]].contiguous(), r) for k, r in enumerate(mates) if k != j]
    for k, r in enumerate(mates):
        if k != j:
            got = torch.empty_like(mine)
            comm.recv(got, r)
            mine += got
    for w in works:
        w.wait()
    pieces, n = mine.tensor_split(len(peers)), len(peers)
    for adds in (True, False):
        for step in range(n - 1):
            s = (i - step - adds) % n
            got = torch.empty_like(pieces[s - 1])
            w = comm.isend(pieces[s], peers[(i + 1) % n])
            comm.recv(got, peers[i - 1])
            w.wait()
            pieces[s - 1].copy_(pieces[s - 1] + got if adds else got)
    works = [comm.isend(mine, r) for k, r in enumerate(mates) if k != j]
    for k, r in enumerate(mates):
        if k != j:
            comm.recv(out[edges[k] : edges[k + 1]], r)
    for w in works:
        w.wait()
    return out
