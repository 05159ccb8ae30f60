# one function passes chunks round, with and without adding
def hierarchical_all_reduce(comm, x, nodes):
    node = next(ranks for ranks in nodes if comm.rank in ranks)
    place = node.index(comm.rank)
    peers = [ranks[place] for ranks in nodes]
    total = x.clone()
    chunks = list(total.tensor_split(len(node)))
    pieces = list(chunks[place].tensor_split(len(peers)))
    pass_round(comm, chunks, node, adds=True)
    pass_round(comm, pieces, peers, adds=True)
    pass_round(comm, pieces, peers, adds=False)
    pass_round(comm, chunks, node, adds=False)
    return total


def pass_round(comm, chunks, ranks, adds):
    n, place = len(ranks), ranks.index(comm.rank)
    for step in range(n - 1):
        out = (place - step - adds) % n
        sent, mine = chunks[out], chunks[out - 1]
        got = torch.empty_like(mine)
        work = comm.isend(sent, ranks[(place + 1) % n])
        comm.recv(got, ranks[place - 1])
        work.wait()
        mine.copy_(mine + got if adds else got)
