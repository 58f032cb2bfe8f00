"""Three kinds of failure: an outcome (event), a transient fault (retry), a bug (dead letter)."""


class KbError(Exception):
    """Root of every error that this project raises on purpose."""


class Refusal(KbError):
    """A business outcome: the document or request cannot be accepted as it is.

    `code` is a stable, kebab-case problem type; `reason` is one line for a person, without any
    text of the document. Handlers turn it into a `Failed` event, HTTP into problem+json.
    """

    def __init__(self, code: str, reason: str, *, status: int = 422) -> None:
        super().__init__(f"{code}: {reason}")
        self.code, self.reason, self.status = code, reason, status


class Behind(Refusal):
    """A reply would reflect the log up to `position` only, less than was asked for.

    `after`: seconds until it may be worth another try; None: it is not.
    """

    def __init__(self, code: str, reason: str, *, position: int, status: int, after: int | None):
        super().__init__(code, reason, status=status)
        self.position, self.after = position, after


class Retry(KbError):
    """A transient fault (a store or model is away): repeated, and never counted out."""

    def __init__(self, reason: str, *, after: float = 1.0) -> None:
        super().__init__(reason)
        self.after = after


class WrongVersion(KbError):
    """The stream moved on since it was read; `actual` is its version now."""

    def __init__(self, stream_id: str, expected: int) -> None:
        super().__init__(f"{stream_id} is no longer at version {expected}")
        self.stream_id, self.expected = stream_id, expected
