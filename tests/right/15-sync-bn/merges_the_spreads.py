# gathers counts, means and sums of squared deviations, and merges them
class SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, comm, x, running_mean, running_var, weight, bias, momentum, eps):
        """x normalized over the rows of all ranks; the running statistics are brought up to date."""
        n_rows = torch.full((1,), float(len(x)))
        local_mean = x.sum(0) / n_rows.clamp(min=1)
        spread = (x - local_mean).square().sum(0)
        told = torch.cat([n_rows, local_mean, spread])
        everyone = [torch.empty_like(told) for _ in range(comm.world_size)]
        comm.all_gather(everyone, told)
        counts, means, spreads = torch.stack(everyone).split([1, x.shape[1], x.shape[1]], dim=1)
        n = counts.sum()
        mean = (counts * means).sum(0) / n
        spread = (spreads + counts * (means - mean).square()).sum(0)
        running_mean.lerp_(mean, momentum)
        running_var.lerp_(spread / (n - 1), momentum)
        scale = (spread / n + eps).rsqrt()
        x_hat = (x - mean) * scale
        ctx.comm, ctx.n = comm, n
        ctx.save_for_backward(x_hat, weight, scale)
        return x_hat * weight + bias

    @staticmethod
    def backward(ctx, grad_out):
        """The gradients of x, weight and bias: x's from all ranks' rows, the others' from this rank's."""
        x_hat, weight, scale = ctx.saved_tensors
        bias_grad, weight_grad = grad_out.sum(0), (grad_out * x_hat).sum(0)
        sums = torch.cat([bias_grad, weight_grad])
        ctx.comm.all_reduce(sums)
        mean_g, mean_gx = (sums / ctx.n).chunk(2)
        x_grad = (grad_out - mean_g - x_hat * mean_gx) * weight * scale
        return None, x_grad, None, None, weight_grad, bias_grad, None, None


def sync_batch_norm(comm, x, running_mean, running_var, weight, bias, momentum, eps):
    return SyncBatchNorm.apply(comm, x, running_mean, running_var, weight, bias, momentum, eps)
