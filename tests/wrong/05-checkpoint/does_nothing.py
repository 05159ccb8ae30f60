# hint: fn ran only once
def checkpoint(fn, *args):
    return fn(*args)
