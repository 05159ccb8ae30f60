# Lists by rank and expert in place of one sort, all_to_all for the numbers, and index_add for the sum.
def moe_layer(comm, exchange, x, chosen, weights, run_expert, n_local):
    n = comm.world_size
    places = {expert: (chosen == expert).nonzero().tolist() for expert in range(n * n_local)}
    numbers = [torch.tensor([len(places[rank * n_local + e]) for e in range(n_local)]) for rank in range(n)]
    coming = [torch.empty(n_local, dtype=torch.long) for _ in range(n)]
    comm.all_to_all(coming, numbers)

    queue = [place for expert in range(n * n_local) for place in places[expert]]
    tokens = torch.tensor([token for token, _ in queue])
    choices = torch.tensor([choice for _, choice in queue])
    send, receive = [int(one.sum()) for one in numbers], [int(one.sum()) for one in coming]
    blocks = exchange(x[tokens], send, receive).split([int(m) for one in coming for m in one])
    done = [None] * len(blocks)
    for e in range(n_local):
        mine = range(e, len(blocks), n_local)
        outs = run_expert(e, torch.cat([blocks[i] for i in mine])).split([len(blocks[i]) for i in mine])
        for i, out in zip(mine, outs):
            done[i] = out
    back = exchange(torch.cat(done), receive, send) * weights[tokens, choices].unsqueeze(1)
    return torch.zeros_like(x).index_add(0, tokens, back)
