# hint: that of the oldest micro-batch
def one_f_one_b(stage, n_stages, n_microbatches):
    ahead = min(n_microbatches, n_stages - stage)
    order = [("F", i) for i in range(ahead)]
    waiting = list(range(ahead))
    for i in range(ahead, n_microbatches):
        order += [("B", waiting.pop()), ("F", i)]
        waiting.append(i)
    return order + [("B", i) for i in reversed(waiting)]
