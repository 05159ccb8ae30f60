# hint: PyTorch computes a part of the result
def matmul(a, b, precision="ieee", tile=64):
    return a @ b
