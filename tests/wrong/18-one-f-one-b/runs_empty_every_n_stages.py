# hint: runs empty in the middle
def one_f_one_b(stage, n_stages, n_microbatches):
    order = []
    for start in range(0, n_microbatches, n_stages):
        part = range(start, min(start + n_stages, n_microbatches))
        ahead = min(len(part), n_stages - stage)
        order += [("F", i) for i in part[:ahead]]
        for place, i in enumerate(part):
            order.append(("B", i))
            order += [("F", j) for j in part[ahead + place : ahead + place + 1]]
    return order
