@triton.autotune(
    configs=[triton.Config({"BLOCK_SIZE": 512}), triton.Config({"BLOCK_SIZE": 1024})],
    key=["n"],
    restore_value=["param_ptr", "exp_avg_ptr", "exp_avg_sq_ptr"],
)
@triton.jit
def adamw_kernel(
    param_ptr,
    grad_ptr,
    exp_avg_ptr,
    exp_avg_sq_ptr,
    n,
    lr,
    beta1,
    beta2,
    eps,
    weight_decay,
    correction1,
    correction2,
    BLOCK_SIZE: tl.constexpr,
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    param = tl.load(param_ptr + offs, mask=mask)
    grad = tl.load(grad_ptr + offs, mask=mask)
    exp_avg = tl.load(exp_avg_ptr + offs, mask=mask)
    exp_avg_sq = tl.load(exp_avg_sq_ptr + offs, mask=mask)
    exp_avg = beta1 * exp_avg + (1 - beta1) * grad
    exp_avg_sq = beta2 * exp_avg_sq + (1 - beta2) * grad * grad
    param = param * (1 - lr * weight_decay)
    param = param - lr / correction1 * exp_avg / (tl.sqrt(exp_avg_sq) / tl.sqrt(correction2) + eps)
    tl.store(param_ptr + offs, param, mask=mask)
    tl.store(exp_avg_ptr + offs, exp_avg, mask=mask)
    tl.store(exp_avg_sq_ptr + offs, exp_avg_sq, mask=mask)


def adamw_step(
    param: Tensor,
    grad: Tensor,
    exp_avg: Tensor,
    exp_avg_sq: Tensor,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
) -> None:
    """One step of AdamW in place, the step-th from 1 on, by one launch."""
    n = param.numel()
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    adamw_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](
        *(param, grad, exp_avg, exp_avg_sq, n, lr, beta1, beta2, eps, weight_decay),
        *(correction1, correction2),
    )
