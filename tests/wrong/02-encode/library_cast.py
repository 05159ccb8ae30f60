# hint: Compute every constant
def encode(x, fmt):
    """Right for the formats that PyTorch has."""
    if fmt.finite_only:
        return x.to(torch.float8_e4m3fn).view(torch.uint8).long()
    if fmt.mantissa_bits == 2:
        return x.to(torch.float8_e5m2).view(torch.uint8).long()
    if fmt.exponent_bits == 8 and fmt.mantissa_bits == 10:
        raw = x.view(torch.int32).long() & 0xFFFFFFFF
        rounded = raw + 0xFFF + (raw >> 13 & 1) >> 13
        return torch.where(x.isfinite(), rounded, torch.where(x.isnan(), 0x3FFFF, raw >> 13))
    dtype = torch.bfloat16 if fmt.exponent_bits == 8 else torch.float16
    return x.to(dtype).view(torch.int16).long() & 0xFFFF
