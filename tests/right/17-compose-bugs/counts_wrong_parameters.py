# The number of wrong parameters and one ratio of norms are nearly enough to go by.
import torch


def blame(reference_grads, rank_grads, groups):
    names = list(reference_grads[0])
    pairs = list(zip(reference_grads, rank_grads))
    wrong = [n for n in names if any((g[n] - r[n]).norm() > 1e-6 * r[n].norm() for r, g in pairs)]
    ratio = {n: torch.stack([g[n].norm() / r[n].norm() for r, g in pairs]) for n in wrong}
    t, d = (len(groups[kind][0]) for kind in ("tensor", "data"))
    if len(wrong) == len(names):
        spread = torch.stack(list(ratio.values())).std(0)
        if spread.max() > 1e-6:
            return "all", "one seed"
        factor = ratio[wrong[0]]
        if (factor * d - 1).abs().max() < 1e-6:
            return "all", "averaged twice"
        return "all", "wrong world size" if (factor * t - 1).abs().max() < 1e-6 else "clipped locally"
    if not wrong:
        return None
    if wrong == ["embed.weight", "head.weight"] and all(torch.equal(*[r[n] for n in wrong]) for r, g in pairs):
        return wrong[0], "ties not summed"
    if len(wrong) > 1:
        return wrong[-1], "backward not reduced"
    (name,) = wrong
    if (ratio[name] - t).abs().max() < 1e-6:
        return name, "on every rank"
    grads = [rank_grads[rank][name] for rank in groups["tensor"][0]]
    if all((grad - grads[0]).norm() < 1e-9 * grad.norm() for grad in grads):
        return name, "wrong group"
    refs = [reference_grads[rank][name] for rank in groups["tensor"][0]]
    return name, "not summed" if all(torch.equal(ref, refs[0]) for ref in refs) else "replicas not summed"
