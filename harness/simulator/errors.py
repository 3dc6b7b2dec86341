"""The vendor's error bodies and the exception that carries one to the wire."""

from __future__ import annotations

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(Exception):
    """A request that is answered with an error; ``headers`` are added to the response, ``page`` comes instead of the
    vendor's body.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = "",
        headers: dict[str, str] | None = None,
        page: str | None = None,
        page_type: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind or KINDS.get(status, "api_error")
        self.headers = headers or {}
        self.page = page
        self.page_type = page_type

    def body(self, request_id: str) -> dict[str, object]:
        return error_body(self.kind, self.message, request_id)


def error_body(kind: str, message: str, request_id: str) -> dict[str, object]:
    """The JSON object of an error, in a response body and in an ``error`` event alike."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}
