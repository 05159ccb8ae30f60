# Schemas written out, implementations registered one by one, and a name that is new in each call.
import uuid


def make_ops():
    number = uuid.uuid4().hex
    first, second = f"lab11_text::quantize_{number}", f"lab11_text::note_peak_{number}"
    torch.library.define(first, "(Tensor x, int block) -> (Tensor, Tensor)")
    torch.library.define(second, "(Tensor(a!) peak, Tensor x) -> ()")
    torch.library.impl(first, "CompositeExplicitAutograd", native.quantize_blocks)
    torch.library.impl(second, "CompositeExplicitAutograd", native.note_peak)

    @torch.library.register_fake(first)
    def _(x, block):
        *rows, columns = x.shape
        values = torch.empty(x.shape, dtype=torch.int8, device=x.device)
        return values, torch.empty(*rows, (columns + block - 1) // block, device=x.device)

    @torch.library.register_fake(second)
    def _(peak, x):
        return None

    namespace = torch.ops.lab11_text
    return getattr(namespace, f"quantize_{number}").default, getattr(namespace, f"note_peak_{number}").default
