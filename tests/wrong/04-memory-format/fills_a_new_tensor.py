# hint: not in channels-last
def prepare(block):
    return block.to(memory_format=torch.channels_last)


def run_block(block, x):
    h = F.relu(block.conv1(x))
    gate = torch.sigmoid(block.gate(h.mean((2, 3))))
    h = h * gate[:, :, None, None]
    h = block.norm(h.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    y = torch.stack((block.conv2(h) + x).unbind(1), 1)
    return y, y.flatten(2).transpose(1, 2)
