from contextlib import nullcontext


def checkpoint(fn, *args):
    state, made, n = torch.get_rng_state(), [], [0]

    def pack(t):
        n[0] += 1
        return n[0] - 1

    def unpack(i):
        if not made:
            again = []
            with (
                torch.random.fork_rng(),
                torch.enable_grad(),
                torch.autograd.graph.saved_tensors_hooks(lambda t: again.append(t.detach()) or 0, lambda i: None),
            ):
                torch.set_rng_state(state)
                fn(*args)
            made.extend(again)
        return made[i]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack) if torch.is_grad_enabled() else nullcontext():
        return fn(*args)
