"""The models this service offers: limits, capabilities and its own list prices.

Prices are integers in nano-USD per token. They are kept apart from the client's price source on purpose: what the
simulator bills is the second opinion that tests hold the client's ledger against.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.simulator.errors import ApiError


@dataclass(frozen=True, slots=True)
class Price:
    """Nano-USD per token."""

    input: int
    output: int
    write_5m: int
    write_1h: int
    read: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model.

    ``long_over``: prompts of more tokens than this cost ``long_factor`` times as much, every token of them.
    """

    id: str
    name: str
    line: str
    created: str
    window: int
    max_output: int
    min_cache: int
    price: Price
    long_over: int | None = None
    long_factor: int = 1
    prefill: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one request used; ``input`` excludes cache reads and writes."""

    input: int = 0
    cache_read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.write_5m + self.write_1h

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.output + other.output,
        )


def cost(model: Model, used: Tokens) -> int:
    """Nano-USD billed for one request."""
    p = model.price
    nano = (
        used.input * p.input
        + used.cache_read * p.read
        + used.write_5m * p.write_5m
        + used.write_1h * p.write_1h
        + used.output * p.output
    )
    return nano * model.long_factor if model.long_over is not None and used.prompt > model.long_over else nano


def _usd(input_: float, output: float, write_5m: float, write_1h: float, read: float) -> Price:
    """From USD per million tokens, as price lists write them: 1 USD per million is 1000 nano-USD per token."""
    return Price(*(round(x * 1000) for x in (input_, output, write_5m, write_1h, read)))


_MILLION = 1_000_000
_OUT = 128_000
_MODELS = (
    Model(
        "claude-opus-5-5",
        "Claude Opus 5.5",
        "opus",
        "2026-09-08T00:00:00Z",
        _MILLION,
        _OUT,
        512,
        _usd(4, 20, 5, 8, 0.2),
    ),
    Model(
        "claude-sonnet-5-5",
        "Claude Sonnet 5.5",
        "sonnet",
        "2026-09-08T00:00:00Z",
        _MILLION,
        _OUT,
        512,
        _usd(2, 10, 2.5, 4, 0.1),
    ),
    Model(
        "claude-haiku-5-5",
        "Claude Haiku 5.5",
        "haiku",
        "2026-09-08T00:00:00Z",
        _MILLION,
        _OUT,
        512,
        _usd(0.1, 0.5, 0.125, 0.2, 0.01),
        100_000,
        5,
    ),
    Model(
        "claude-opus-5",
        "Claude Opus 5",
        "opus",
        "2026-04-14T00:00:00Z",
        _MILLION,
        _OUT,
        512,
        _usd(5, 25, 6.25, 10, 0.5),
    ),
    Model(
        "claude-sonnet-5",
        "Claude Sonnet 5",
        "sonnet",
        "2026-04-14T00:00:00Z",
        _MILLION,
        _OUT,
        1024,
        _usd(2, 10, 2.5, 4, 0.2),
    ),
    Model(
        "claude-sonnet-4-6",
        "Claude Sonnet 4.6",
        "sonnet",
        "2026-02-17T00:00:00Z",
        _MILLION,
        _OUT,
        1024,
        _usd(3, 15, 3.75, 6, 0.3),
    ),
    Model(
        "claude-haiku-4-5",
        "Claude Haiku 4.5",
        "haiku",
        "2025-10-15T00:00:00Z",
        200_000,
        64_000,
        4096,
        _usd(1, 5, 1.25, 2, 0.1),
        prefill=True,
    ),
)
MODELS = {m.id: m for m in _MODELS}


def find(model_id: str) -> Model:
    """The model of that id. Raises ApiError 404 with the vendor's wording."""
    model = MODELS.get(model_id)
    if model is None:
        raise ApiError(404, f"model: {model_id}")
    return model


def info(model: Model) -> dict[str, object]:
    """The object that ``GET /v1/models/{id}`` returns."""
    yes = {"supported": True}
    no = {"supported": False}
    recent = not model.prefill
    support = yes if recent else no
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.name,
        "created_at": model.created,
        "lifecycle": "active",
        "line": model.line,
        "deprecated_at": None,
        "retires_at": None,
        "max_input_tokens": model.window,
        "max_tokens": model.max_output,
        "allowed_fallback_models": [],
        "capabilities": {
            "batch": no,
            "citations": no,
            "code_execution": no,
            "compaction": {"supported": False, "types": {"summarize": no}},
            "context_management": {
                "supported": False,
                "clear_thinking_20251015": no,
                "clear_tool_uses_20250919": no,
                "compact_20260112": no,
            },
            "effort": {
                "supported": recent,
                "low": support,
                "medium": support,
                "high": support,
                "max": support,
                "xhigh": support,
            },
            "image_input": no,
            "pdf_input": no,
            "server_tools": {"supported": False, "code_execution": no, "web_search": no},
            "structured_outputs": no,
            "thinking": {
                "supported": True,
                "types": {"adaptive": support, "between_tools": no, "disabled": yes, "enabled": yes},
            },
        },
    }
