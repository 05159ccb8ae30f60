# hint: That collective is what this exercise is about
def hierarchical_all_reduce(comm, x, nodes):
    total = x.clone()
    comm.all_reduce(total)
    return total
