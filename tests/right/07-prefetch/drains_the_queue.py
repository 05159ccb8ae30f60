class Failed:
    def __init__(self, error):
        self.error = error


def prefetch(load, n, depth, clock):
    q, stopped = clock.Queue(depth), []

    def loader():
        for index in range(n):
            try:
                item = load(index)
            except Exception as error:
                item = Failed(error)
            q.put(item)
            if stopped or isinstance(item, Failed):
                break

    worker = clock.Thread(loader)
    worker.start()
    try:
        for _ in range(n):
            item = q.get()
            if isinstance(item, Failed):
                raise item.error
            yield item
    finally:
        stopped.append(True)
        while not q.empty():
            q.get()
        worker.join()


def loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes):
    n = (batch_size * sample_ms + step_ms - 1) // step_ms
    return n, n * prefetch_factor * batch_size * sample_bytes
