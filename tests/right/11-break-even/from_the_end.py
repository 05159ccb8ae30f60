# Versions as flags, and the break-even point from the last call backwards.
def compiled_totals(log, costs):
    cache, have, total, out = [], [], 0, []
    for event in log:
        if isinstance(event, str):
            have = [] if event == "start" else have
            cache = [] if event == "change" else cache
            continue
        served = event in have or (event > 1 and None in have)
        if not served:
            made = event if event == 1 or not have else None
            total += costs.warm_ms if made in cache else costs.cold_ms
            have, cache = [*have, made], [*cache, made]
        total += costs.compiled_ms
        out.append(total)
    return out


def break_even(log, costs):
    totals = compiled_totals(log, costs)
    n = len(totals)
    while n and totals[n - 1] <= costs.eager_ms * n:
        n -= 1
    return n + 1 if n < len(totals) else None
