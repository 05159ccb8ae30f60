# hint: only a non_blocking copy from or to pinned
def offload_hooks(cuda, parameters, n_in_flight):
    stay = {parameter.untyped_storage().data_ptr() for parameter in parameters}

    def pack(x):
        if x.untyped_storage().data_ptr() in stay:
            return x
        return x.device, x.cpu()

    def unpack(packed):
        return packed if isinstance(packed, Tensor) else packed[1].to(packed[0])

    return pack, unpack
