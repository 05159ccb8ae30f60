"""A store: files that outlive the job that wrote them, whose books say what was opened, read, written and left."""

from labkit.store.books import Books, JobKilled, Kill, Record, StoreCall, StoreFull
from labkit.store.inputs import books_of, part_of_job
from labkit.store.store import BookedStore, Store

__all__ = [
    "BookedStore",
    "Books",
    "JobKilled",
    "Kill",
    "Record",
    "Store",
    "StoreCall",
    "StoreFull",
    "books_of",
    "part_of_job",
]
