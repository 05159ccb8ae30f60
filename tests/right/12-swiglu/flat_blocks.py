# blocks of elements that know no rows
@triton.jit
def swiglu_forward_kernel(gate_ptr, up_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + offs, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def swiglu_backward_kernel(
    gate_ptr, up_ptr, dout_ptr, dgate_ptr, dup_ptr, n, BLOCK_SIZE: tl.constexpr
):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    s = tl.sigmoid(gate)
    tl.store(dgate_ptr + offs, dout * up * (s + gate * s * (1 - s)), mask=mask)
    tl.store(dup_ptr + offs, dout * gate * s, mask=mask)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: Tensor, up: Tensor) -> Tensor:
        n = gate.numel()
        out = torch.empty_like(gate)
        swiglu_forward_kernel[(triton.cdiv(n, 1024),)](gate, up, out, n, BLOCK_SIZE=1024)
        ctx.save_for_backward(gate, up)
        return out

    @staticmethod
    def backward(ctx, dout: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        dout = dout.contiguous()
        n = gate.numel()
        dgate = torch.empty_like(gate)
        dup = torch.empty_like(up)
        swiglu_backward_kernel[(triton.cdiv(n, 1024),)](gate, up, dout, dgate, dup, n, BLOCK_SIZE=1024)
        return dgate, dup


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return SwiGLU.apply(gate, up)
