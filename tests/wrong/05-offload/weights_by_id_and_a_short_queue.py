# hint: Weights were copied to the host
from collections import deque


class Offloader:
    def __init__(self, cuda, parameters, n):
        self.cuda, self.n = cuda, n
        self.out, self.back = cuda.Stream(), cuda.Stream()
        self.ids = [id(p) for p in parameters]
        self.on_the_way, self.arrived = [], []

    def pack(self, x):
        if id(x) in self.ids:
            return x, None
        ready = self.cuda.Event()
        ready.record()
        self.out.wait_event(ready)
        with self.cuda.stream(self.out):
            host = x.to("cpu", non_blocking=True)
            copied = self.cuda.Event()
            copied.record()
        self.on_the_way.append((x, copied))
        while len(self.on_the_way) >= self.n:
            self.on_the_way[0][1].wait()
            del self.on_the_way[0]
        return host, copied

    def unpack(self, packed):
        host, copied = packed
        if copied is None:
            return host
        self.cuda.current_stream().wait_stream(self.out)
        self.on_the_way.clear()
        now = self.cuda.current_stream().record_event()
        self.arrived = self.arrived[-self.n + 1 :]
        self.back.wait_event(copied)
        if len(self.arrived) == self.n - 1:
            self.back.wait_event(self.arrived[0][1])
        with self.cuda.stream(self.back):
            x = host.cuda(non_blocking=True)
        self.cuda.current_stream().wait_stream(self.back)
        self.arrived.append((x, now))
        return x


def offload_hooks(cuda, parameters, n_in_flight):
    o = Offloader(cuda, parameters, n_in_flight)
    return o.pack, o.unpack
