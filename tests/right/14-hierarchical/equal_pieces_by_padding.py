def hierarchical_all_reduce(comm, x, nodes):
    (node,) = (ranks for ranks in nodes if comm.rank in ranks)
    me, n_nodes, per_node = node.index(comm.rank), len(nodes), len(node)
    home = nodes.index(node)
    piece = -(-len(x) // comm.world_size)
    table = x.new_zeros(comm.world_size * piece)
    table[: len(x)] = x
    table = table.view(per_node, n_nodes, piece)
    # Within the node everybody sends to everybody: the sum of row `me` comes together here.
    works = [comm.isend(table[i], other) for i, other in enumerate(node) if i != me]
    for other in node:
        if other != comm.rank:
            got = torch.empty_like(table[me])
            comm.recv(got, other)
            table[me] += got
    for work in works:
        work.wait()
    right, left = nodes[(home + 1) % n_nodes][me], nodes[home - 1][me]
    for step in range(2 * n_nodes - 2):
        work = comm.isend(table[me, (home - step) % n_nodes], right)
        got = torch.empty_like(table[me, 0])
        comm.recv(got, left)
        work.wait()
        at = (home - step - 1) % n_nodes
        if step < n_nodes - 1:
            got += table[me, at]
        table[me, at] = got
    works = [comm.isend(table[me], other) for other in node if other != comm.rank]
    for i, other in enumerate(node):
        if i != me:
            comm.recv(table[i], other)
    for work in works:
        work.wait()
    return table.flatten()[: len(x)]
