"""What can go wrong between ranks, in the same words whatever runs them. Nothing is detected here."""

from __future__ import annotations


class CommError(RuntimeError):
    """The ranks do not fit together: a deadlock, a wrong rank, a message of the wrong shape, a message left over."""


class RanksHung(CommError):
    """Real ranks did not finish in time. The text says what each waits for; `stacks` has the lines where they stood."""

    def __init__(self, text: str, stacks: str = "") -> None:
        super().__init__(text)
        self.stacks = stacks
        if stacks:
            self.add_note(stacks)


class RankFailed(RuntimeError):
    """The function of one rank raised; `__cause__` is what it raised, `trace` the lines of a rank in another process.

    Every line of `trace` begins with "[rank r]". text: the message, where "rank r raised ..." would not be true.
    """

    def __init__(self, rank: int, error: BaseException, trace: str = "", text: str | None = None) -> None:
        super().__init__(text or f"rank {rank} raised {type(error).__name__}{_message(error)}")
        self.rank = rank
        self.trace = trace
        self.__cause__ = error
        if trace:
            self.add_note(trace)


class RemoteError(Exception):
    """Stands for an exception of another process that could not be sent: the name of its type and its message."""


def _message(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "its message cannot be read"
    return f": {text}" if text else ""
