# hint: A plain function is not an operator
def make_ops():
    return native.quantize_blocks, native.note_peak
