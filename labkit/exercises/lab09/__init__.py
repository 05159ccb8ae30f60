"""Lab 09, timing an asynchronous device: what is asked, fed and run."""

ORDER = (
    "bench",
    "events",
    "overlap",
    "hidden-syncs",
    "allocator",
    "profile",
)
