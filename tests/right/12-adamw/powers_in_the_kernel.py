@triton.jit
def step_kernel(p_ptr, g_ptr, m_ptr, v_ptr, n, step, lr, b1, b2, eps, wd, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    ok = at < n
    g = tl.load(g_ptr + at, ok)
    m = tl.load(m_ptr + at, ok)
    v = tl.load(v_ptr + at, ok)
    p = tl.load(p_ptr + at, ok)
    m = m * b1 + g * (1 - b1)
    v = v * b2 + g * g * (1 - b2)
    m_hat = m / (1 - tl.exp(step * tl.log(b1)))
    v_hat = v / (1 - tl.exp(step * tl.log(b2)))
    tl.store(m_ptr + at, m, ok)
    tl.store(v_ptr + at, v, ok)
    tl.store(p_ptr + at, p - lr * (m_hat / (tl.sqrt(v_hat) + eps) + wd * p), ok)


def adamw_step(param, grad, exp_avg, exp_avg_sq, step, *rest):
    n = len(param)
    step_kernel[(triton.cdiv(n, 256),)](param, grad, exp_avg, exp_avg_sq, n, step, *rest, B=256)
