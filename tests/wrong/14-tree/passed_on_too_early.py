# hint: On the way down the largest distance goes first
def tree_all_reduce(comm, x):
    n, r = comm.world_size, comm.rank
    total = x.clone()
    buf = torch.empty_like(x)
    rounds = 0
    while 2**rounds < n:
        rounds += 1
    for k in range(rounds):
        d = 2**k
        if r % (2*d) == d:
            comm.send(total, r - d)
        elif r % (2*d) == 0 and r + d < n:
            comm.recv(buf, r + d)
            total += buf
    for k in range(rounds):
        d = 2**k
        if r % (2*d) == d:
            comm.recv(total, r - d)
        elif r % (2*d) == 0 and r + d < n:
            comm.send(total, r + d)
    return total
