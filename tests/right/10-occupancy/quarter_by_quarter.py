# Rounds with divmod and negative floors, asks for shared memory in KiB, and compares shares by cross-multiplication.
def resident(threads, registers, shared_bytes, chip):
    warps = -(-threads // 32)
    limits = [chip.max_blocks, chip.max_warps // warps]
    in_a_quarter = 16384 // ((registers + 7) // 8 * 8 * 32)
    limits.append(4 * in_a_quarter // warps)
    blocks_of_128, rest = divmod(shared_bytes, 128)
    limits.append(chip.shared_bytes // (128 * (blocks_of_128 + (rest > 0) + 8)))
    n = sorted(limits)[0]
    return [n, warps * n / chip.max_warps]


def waves(n_blocks, n_resident, chip):
    full, rest = divmod(n_blocks, n_resident * chip.n_sms)
    n = full + bool(rest)
    return [n, n_blocks / n / n_resident / chip.n_sms]


def in_flight(n_threads, loads, load_bytes, chip):
    have = float(n_threads * loads * load_bytes)
    arrives = have * chip.n_sms / chip.latency_s
    return have, 1 if arrives > chip.bytes_per_s else arrives / chip.bytes_per_s


def fastest(kernels, chip):
    best, best_share = None, -1.0
    for i, kernel in enumerate(kernels):
        *resources, loads, load_bytes = kernel
        n_warps = resident(*resources, chip)[0] * kernel[0]
        share = in_flight(n_warps, loads, load_bytes, chip)[1]
        if share > best_share + 1e-9:
            best, best_share = i, share
    return best
