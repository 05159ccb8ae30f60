"""Right for as many calls as there are public cases, wrong from then on."""

HARMLESS = True
ANSWER = """
@RIGHT@
honest, calls = rms, [0]
def rms(x, dim):
    calls[0] += 1
    return honest(x, dim) if calls[0] <= 8 else x.abs().mean(dim)
"""
