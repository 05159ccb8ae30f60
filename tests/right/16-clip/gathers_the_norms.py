# PyTorch's own functions: the norms are gathered, and the norm of the norms is the norm.
def clip_sharded(comm, sharded, replicated, max_norm):
    from torch.nn.utils import clip_grads_with_norm_, get_total_norm

    def norm(params):
        return get_total_norm([p.grad.float() for p in params if p.grad is not None] or [torch.zeros(1)])

    norms = torch.zeros(comm.world_size)
    comm.all_gather_single(norms, norm(sharded).reshape(1))
    whole = torch.cat([norms, norm(replicated).reshape(1)]).norm()
    clip_grads_with_norm_([*sharded, *replicated], max_norm, whole)
    return whole
