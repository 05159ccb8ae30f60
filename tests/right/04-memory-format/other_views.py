def prepare(block):
    for conv in (block.conv1, block.conv2):
        conv.weight.data = conv.weight.data.contiguous(memory_format=torch.channels_last)
    return block


def run_block(block, x):
    h = torch.relu(block.conv1(x))
    n, c, height, width = h.shape
    pixels = h.movedim(1, -1).view(n, -1, c)
    pixels = pixels * block.gate(pixels.mean(1, keepdim=True)).sigmoid()
    images = block.norm(pixels).view(n, height, width, c).movedim(-1, 1)
    y = x + block.conv2(images)
    return y, y.permute(0, 2, 3, 1).view(n, -1, c)
