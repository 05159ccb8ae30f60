# The example itself is the static input, and the capture goes without a context manager.
class Replayed:
    def __init__(self, cuda, step, example):
        self.x, self.graph, side = example, cuda.CUDAGraph(), cuda.Stream()
        for _ in range(3):
            step(self.x)
        cuda.synchronize()
        with cuda.stream(side):
            self.graph.capture_begin()
            self.y = step(self.x)
            self.graph.capture_end()

    def __call__(self, batch):
        self.x.copy_(batch, non_blocking=True)
        self.graph.replay()
        return self.y


def graphed(cuda, step, example):
    return Replayed(cuda, step, example)


def pays_from_s(kernels_s, copy_s):
    device_s = copy_s + sum(kernels_s)
    return device_s / (1 + len(kernels_s))
