"""The database of a new course's gradebook: a PostgreSQL URL as people write it, tried before anything relies on it.

The URL goes into the course's configuration, so a password in it is refused. Nothing is created in the database here;
nbgrader makes its tables.
"""

from __future__ import annotations

import importlib.util

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from grading.errors import UserError

CONNECT_S = 10
DRIVERS = ("psycopg", "psycopg2")


def checked_url(given: str) -> str:
    """The URL for nbgrader, with the driver that is installed.

    Raises UserError, without a password in its text, where the URL is none, has a password, names another kind of
    database, or where the database does not answer, has another encoding than UTF-8, allows no tables, or holds a
    gradebook already.
    """
    url = _with_driver(_parsed(given))
    # Without an encoding named, SQLAlchemy fails on a database in SQL_ASCII before we can name the trouble.
    options = {"connect_timeout": CONNECT_S, "client_encoding": "utf8"}
    engine = create_engine(url, poolclass=NullPool, connect_args=options)
    try:
        with engine.connect() as connection:
            _check(connection, _shown(url))
    except DBAPIError as error:
        raise UserError(
            f"the database {_shown(url)} cannot be used ({_reason(error)})",
            "start it or correct the URL; a password belongs in ~/.pgpass or PGPASSWORD",
        ) from error
    return url.render_as_string(hide_password=False)


def _parsed(given: str) -> URL:
    # SQLAlchemy knows the longer name only.
    scheme, separator, rest = given.partition("://")
    try:
        url = make_url(("postgresql" if scheme == "postgres" else scheme) + separator + rest)
    except (ArgumentError, ValueError):
        # The text is not repeated: there may be a password in it.
        raise UserError("--db has no database URL", "write it like postgresql://user@host/database") from None
    if url.get_backend_name() != "postgresql":
        raise UserError(
            f"--db takes PostgreSQL, not {url.get_backend_name()}",
            "write postgresql://user@host/database, or leave --db out for a SQLite file in the course's folder",
        )
    # libpq has "sslpassword" as well.
    if url.password is not None or any("password" in name for name in url.query):
        raise UserError(
            "the database URL has a password in it, which would stand in the course's configuration",
            "leave it out, and put it into ~/.pgpass (host:port:database:user:password, chmod 600) or PGPASSWORD",
        )
    if not url.database:
        raise UserError("the database URL names no database", "write it like postgresql://user@host/database")
    return url


def _with_driver(url: URL) -> URL:
    named = url.drivername.partition("+")[2]
    found = [name for name in ((named,) if named else DRIVERS) if importlib.util.find_spec(name)]
    if not found:
        raise UserError(
            f"the PostgreSQL driver {named or DRIVERS[0]} is not installed",
            "make setup, or pip install -e '.[postgresql]' in the checkout",
        )
    return url.set(drivername=f"postgresql+{found[0]}")


def _check(connection: Connection, shown: str) -> None:
    encoding = connection.execute(text("SHOW server_encoding")).scalar()
    encoding = encoding.decode() if isinstance(encoding, bytes) else encoding
    if encoding != "UTF8":
        raise UserError(
            f"the database {shown} has the encoding {encoding}, which cannot hold every name",
            "make one with: createdb --encoding UTF8 --template template0 NAME",
        )
    if inspect(connection).has_table("assignment"):
        raise UserError(
            f"the database {shown} holds a gradebook already",
            "give every course a database of its own (createdb NAME)",
        )
    # PostgreSQL 15 lets only the owner make tables by default; better known now than at the first grade.
    connection.execute(text("CREATE TABLE grading_may_make_tables (nothing integer)"))
    connection.rollback()


def _shown(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def _reason(error: DBAPIError) -> str:
    lines = [line.strip() for line in str(error.orig).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error.orig).__name__
