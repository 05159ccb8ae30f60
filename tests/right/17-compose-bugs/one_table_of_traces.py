# Every kind is a function of the references and makes what a rank would have; missing sums are added up first.
import torch


def blame(reference_grads, rank_grads, groups):
    ranks, names = range(len(rank_grads)), list(reference_grads[0])
    group = {rank: one for one in groups["tensor"] for rank in one}
    t, d = len(group[0]), len(groups["data"][0])

    def error(a, b):
        return float((a - b).norm() / b.norm())

    def fits(name, make, grads=None):
        found = grads or [one[name] for one in rank_grads]
        wanted = [make(reference_grads, rank, name) for rank in ranks]
        return max(error(a, b) for a, b in zip(found, wanted)) < 1e-7

    def mean(refs, rank, name):
        return torch.stack([refs[other][name] for other in group[rank]]).mean(0)

    bad = [name for name in names if not fits(name, lambda refs, rank, n: refs[rank][n])]
    if not bad:
        return None
    if bad == names:
        scale = {r: float((rank_grads[r][bad[0]] * reference_grads[r][bad[0]]).sum()) for r in ranks}
        scale = {r: scale[r] / float(reference_grads[r][bad[0]].square().sum()) for r in ranks}
        if not all(fits(name, lambda refs, rank, n: scale[rank] * refs[rank][n]) for name in names):
            return "all", "one seed"
        for factor, kind in ((d, "averaged twice"), (t, "wrong world size")):
            if max(abs(one * factor - 1) for one in scale.values()) < 1e-7:
                return "all", kind
        return "all", "clipped locally"
    if len(bad) == 2:
        together = [one[bad[0]] + one[bad[1]] for one in rank_grads]
        if fits(bad[1], lambda refs, rank, n: refs[rank][n], together):
            return bad[0], "ties not summed"
    if len(bad) > 1:
        return bad[-1], "backward not reduced"
    (name,) = bad
    if fits(name, lambda refs, rank, n: t * refs[rank][n]):
        return name, "on every rank"
    if fits(name, mean):
        return name, "wrong group"
    whole = all(torch.equal(reference_grads[0][name], reference_grads[r][name]) for r in group[0])
    added = []
    for rank in ranks:
        same = [r for r in group[rank] if torch.equal(reference_grads[r][name], reference_grads[rank][name])]
        added.append(torch.stack([rank_grads[r][name] for r in same]).sum(0))
    if fits(name, lambda refs, rank, n: refs[rank][n], added):
        return name, "not summed" if whole else "replicas not summed"
    return name, "backward not reduced"
