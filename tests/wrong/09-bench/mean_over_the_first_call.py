# hint: The first call is among what was timed
def bench(fn, cuda, device, now_s, n_repeats):
    before_s = now_s()
    for _ in range(n_repeats):
        fn()
    cuda.synchronize()
    return 1e3 * (now_s() - before_s) / n_repeats
