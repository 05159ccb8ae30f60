# hint: More than dx + 2 dW + max(4 * chunk
class Chunked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, labels, chunk_size, ignore_index):
        n = (labels != ignore_index).sum()
        parts, total = [], 0
        for a, b in zip(x.split(chunk_size), labels.split(chunk_size)):
            with torch.enable_grad():
                logits = (a @ weight.T).detach().requires_grad_()
                loss = torch.nn.functional.cross_entropy(logits, b, ignore_index=ignore_index, reduction="sum") / n
                loss.backward()
            parts.append(logits.grad)
            total += loss.detach()
        ctx.save_for_backward(x, weight, torch.cat(parts))
        return total

    @staticmethod
    def backward(ctx, g):
        x, weight, d = ctx.saved_tensors
        return g * d @ weight, g * d.T @ x, None, None, None


def chunked_loss(x, weight, labels, chunk_size, ignore_index=-100):
    return Chunked.apply(x, weight, labels, chunk_size, ignore_index)
