# hint: Compute every constant
def decode(bits, fmt):
    """Right for the formats that PyTorch has."""
    if fmt.finite_only:
        return bits.to(torch.uint8).view(torch.float8_e4m3fn).double()
    if fmt.exponent_bits == 8:
        return (bits << (23 - fmt.mantissa_bits)).to(torch.int32).view(torch.float32).double()
    return (bits << (10 - fmt.mantissa_bits)).to(torch.int16).view(torch.float16).double()
