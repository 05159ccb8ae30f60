# hint: that is a measurement
from labkit.capstone import bill, read
from labkit.exercises.lab20.config import script_of


def predict(config):
    one = bill(read(script_of(config)), config.size)
    return {
        "peak_bytes": one.total_peak_bytes,
        "moved_bytes": config.n_steps * (one.host_bytes + one.link_bytes),
        "tokens": config.n_steps * config.n_cards * one.sequences * config.seq_len,
    }
