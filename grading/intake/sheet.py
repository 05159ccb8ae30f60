"""Read a CSV file that a person wrote or a spreadsheet saved: its rows by the names in its first line.

What the columns mean is for whoever asks.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from grading.errors import UserError

MAX_BYTES = 16 * 2**20


def read_sheet(
    path: Path, what: str, needs: Sequence[str] = (), may_have: Sequence[str] = ()
) -> list[dict[str | None, str]]:
    """The rows, each cell by its column's name; cells beyond the columns are under None. `what` it is, for messages.

    Raises UserError where it cannot be read, or its first line does not name all columns that it `needs`; what it
    `may_have` besides is for the message alone. A file without a line has no columns and no rows.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})", f"give the {what} as a CSV file") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text", 'save it as "CSV UTF-8"') from error
    if len(data) > MAX_BYTES:
        raise UserError(f"{path} has more than {MAX_BYTES:,} bytes", f"give the {what} of one course")
    try:
        dialect = csv.Sniffer().sniff(text.partition("\n")[0], delimiters=",;\t")
    except csv.Error:
        dialect = csv.excel
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), dialect=dialect)
        rows, columns = list(reader), reader.fieldnames
    except csv.Error as error:
        raise UserError(f"{path} is not a CSV file ({error})", "save it as CSV with a header line") from error
    if columns is not None and (missing := [name for name in needs if name not in columns]):
        names = ",".join((*needs, *may_have))
        raise UserError(f'{path}, line 1: there is no column "{missing[0]}"', f"let this line be: {names}")
    return rows
