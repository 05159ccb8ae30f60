# hint: Both moments are right
@triton.jit
def adamw_kernel(
    param_ptr, grad_ptr, exp_avg_ptr, exp_avg_sq_ptr, n, lr, beta1, beta2, eps, weight_decay,
    correction1, correction2, BLOCK_SIZE: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    param = tl.load(param_ptr + offs, mask=mask)
    grad = tl.load(grad_ptr + offs, mask=mask)
    m = tl.load(exp_avg_ptr + offs, mask=mask)
    v = tl.load(exp_avg_sq_ptr + offs, mask=mask, other=1.0)
    param *= 1 - lr * weight_decay
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * grad * grad
    denominator = tl.sqrt(v) / tl.sqrt(correction2) + eps
    param -= lr / correction1 * m / denominator
    tl.store(param_ptr + offs, param, mask=mask)
    tl.store(exp_avg_ptr + offs, m, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, v, mask=mask)


def adamw_step(param, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay) -> None:
    n = param.numel()
    adamw_step.t = getattr(adamw_step, 't', 0) + 1
    step = adamw_step.t
    adamw_kernel[(triton.cdiv(n, 1024),)](
        param, grad, exp_avg, exp_avg_sq, n, lr, beta1, beta2, eps, weight_decay,
        1 - beta1**step, 1 - beta2**step, BLOCK_SIZE=1024,
    )
