from queue import Full


def prefetch(load, n, depth, clock):
    queue = clock.Queue(depth)
    done = clock.Event()

    def offer(kind, value):
        while not done.is_set():
            try:
                return queue.put((kind, value), timeout=0.25)
            except Full:
                pass

    def work():
        try:
            for index in range(n):
                if done.is_set():
                    return
                offer("batch", load(index))
            offer("end", None)
        except BaseException as error:
            offer("error", error)

    thread = clock.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            kind, value = queue.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        done.set()
        thread.join()


def loader_plan(sample_ms, batch_size, step_ms, prefetch_factor, sample_bytes):
    workers = 1
    while workers * step_ms < batch_size * sample_ms:
        workers += 1
    return workers, workers * prefetch_factor * batch_size * sample_bytes
