"""`python -m labkit.env`: print the environment page; exit code 1 where a line is red."""

import sys

from labkit.env.page import as_text
from labkit.env.survey import look


def main() -> int:
    """Print the page."""
    findings = look()
    if hasattr(sys.stdout, "reconfigure"):
        # A console or a pipe that has no check mark gets a question mark, not an error.
        sys.stdout.reconfigure(errors="replace")
    print(as_text(findings))
    return int(any(one.state == "red" for one in findings))


if __name__ == "__main__":
    sys.exit(main())
