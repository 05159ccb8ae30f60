# hint: That collective is what this exercise is about
def naive_all_reduce(comm, x):
    total = x.clone()
    comm.all_reduce(total)
    return total
