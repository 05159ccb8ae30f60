# hint: The layers' work was not done on the device
def stream_layers(cuda, layer, weights, xs):
    d = xs[0].device
    ys = [x.cpu() for x in xs]
    for w in weights: ys = [layer(w, y) for y in ys]
    return [y.to(d) for y in ys]
def tokens_to_hide(b, f, l): return b * f / (2 * l)
