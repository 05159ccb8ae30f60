# Plays the whole pipeline in rounds and looks up what its own stage did.
def one_f_one_b(stage, n_stages, n_microbatches):
    done = [{"F": 0, "B": 0} for _ in range(n_stages)]
    orders = [[] for _ in range(n_stages)]
    while done[0]["B"] < n_microbatches:
        before = [dict(one) for one in done]
        for s in range(n_stages):
            forward, backward = before[s]["F"], before[s]["B"]
            has_gradient = s == n_stages - 1 or before[s + 1]["B"] > backward
            has_input = s == 0 or before[s - 1]["F"] > forward
            is_full = forward - backward >= n_stages - s
            if backward < forward and has_gradient and (is_full or forward == n_microbatches):
                kind = "B"
            elif forward < n_microbatches and has_input and not is_full:
                kind = "F"
            else:
                continue
            orders[s].append((kind, done[s][kind]))
            done[s][kind] += 1
    return orders[stage]
