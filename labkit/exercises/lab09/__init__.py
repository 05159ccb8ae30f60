"""Lab 09, timing an asynchronous device: what is asked, given and run."""

ORDER = (
    "bench",
    "events",
    "overlap",
    "hidden-syncs",
    "allocator",
    "profile",
)
