"""The HTTP service: the vendor's endpoints, and ``/_sim/…`` to make trouble and to read the bill."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from aiohttp import web

from harness.simulator import catalog, compaction, compose, prompt_cache, stream, tokens, validate
from harness.simulator.errors import ApiError
from harness.simulator.faults import Fault, FaultBook, FaultError
from harness.simulator.library import Library
from harness.simulator.limits import Limits, RateLimiter
from harness.simulator.meter import Meter
from harness.simulator.script import Scenario, Turn, goal_of, reply

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MAX_BODY = 32 * 1024 * 1024


@dataclass(slots=True)
class Answer:
    """A reply decided on but not yet sent."""

    key: str
    scenario: str
    goal: str
    model: catalog.Model
    message: compose.Message
    fault: Fault | None


@dataclass(slots=True)
class Service:
    """All state of one simulator. ``keys`` are the API keys it accepts."""

    keys: frozenset[str]
    library: Library
    pace: stream.Pace = field(default_factory=stream.Pace)
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.time
    meter: Meter = field(default_factory=Meter)
    book: FaultBook = field(default_factory=FaultBook)
    cache: prompt_cache.PromptCache = field(default_factory=prompt_cache.PromptCache)
    limiter: RateLimiter = field(init=False)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    shut: Callable[[float], None] | None = None
    """Refuses every connection for so many seconds; None where nobody can."""
    count: int = 0

    def __post_init__(self) -> None:
        self.limiter = RateLimiter(self.limits)
        self.gate.set()

    # -- the vendor's endpoints --------------------------------------------------------------------

    def _key(self, request: web.Request) -> str:
        key = (
            request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        )
        if not key:
            raise ApiError(401, "x-api-key header is required")
        if key not in self.keys:
            raise ApiError(401, "invalid x-api-key")
        if "anthropic-version" not in request.headers:
            raise ApiError(400, "anthropic-version: header is required")
        return key

    async def _body(self, request: web.Request) -> object:
        try:
            return json.loads(await request.read())
        except web.HTTPRequestEntityTooLarge as exc:
            raise ApiError(413, "Request exceeds the maximum size") from exc
        except ValueError as exc:
            raise ApiError(400, f"The request body is not valid JSON: {exc}") from exc

    async def messages(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/messages, streaming or not."""
        key = self._key(request)
        body = validate.check(await self._body(request), betas=_betas(request))
        await self.gate.wait()
        now = self.clock()
        goal = goal_of(body["messages"])
        scenario = self.library.choose(goal)
        try:
            answer = self._answer(key, goal, scenario, body, now, request.content_length or 0)
        except ApiError:
            self.meter.failed(key, scenario.name, goal)
            raise
        await asyncio.sleep(self.pace.think(answer.message.id))
        if body.get("stream"):
            return await self._stream(request, answer)
        return self._whole(request, answer)

    def _answer(self, key: str, goal: str, scenario: Scenario, body: dict[str, Any], now: float, size: int) -> Answer:
        fault = self.book.take(key, goal, size, sum(m["role"] == "assistant" for m in body["messages"]))
        if fault is not None and not fault.in_stream:
            raise fault.as_error()
        self.limiter.admit(key, now)
        counted = {**body, "messages": compaction.after(body["messages"])}
        blocks = prompt_cache.blocks_of(counted)
        model = catalog.find(body["model"])
        total = sum(b.tokens for b in blocks)
        if total > model.window:
            raise ApiError(400, f"prompt is too long: {total} tokens > {model.window} maximum")
        seed = hashlib.sha256(key.encode() + tokens.encode(body["messages"])).hexdigest()
        turn = reply(scenario, body["messages"])
        fault = fault or self.book.of_turn(seed, turn.faults)
        if fault is not None and not fault.in_stream:
            raise fault.as_error()
        room = body["max_tokens"]
        if fault is not None and fault.kind == "flood":
            turn = Turn("x" * fault.size)
            room = fault.size
        prompt = self.cache.account(key, model, blocks, now)
        made: dict[str, object] | None = None
        took = prompt
        if (least := compaction.trigger(body)) is not None and total >= least:
            made = compaction.block(counted["messages"])
            took = replace(prompt, output=compaction.output_of(made))
            rest = prompt_cache.blocks_of({**body, "messages": [{"role": "assistant", "content": [made]}]})
            prompt = self.cache.account(key, model, rest, now)
        offered = {tool["name"] for tool in body.get("tools") or []}
        message = compose.message(_offered(turn, offered), model=model.id, seed=seed, prompt=prompt, max_tokens=room)
        message = replace(message, output=min(message.output, body["max_tokens"]))  # what more is sent is nobody's bill
        if made is not None:
            message = compose.begun_with(made, message, took)
        if fault is not None and fault.kind == "usage":
            message = replace(message, reported=fault.usage)
        if fault is not None and fault.kind == "empty":
            message = compose.without_a_word(message, fault.message, seed)
        return Answer(key, scenario.name, goal, model, message, fault)

    def _bill(self, request: web.Request, answer: Answer, output: int) -> None:
        p = answer.message.prompt
        used = catalog.Tokens(p.input, p.cache_read, p.write_5m, p.write_1h, output)
        used += answer.message.compacted or catalog.Tokens()
        nano = self.meter.bill(answer.key, answer.scenario, answer.goal, answer.model, used)
        self.limiter.used(answer.key, self.clock(), p.input + p.write_5m + p.write_1h, output)
        request["bill"] = {
            "scenario": answer.scenario,
            "model": answer.model.id,
            "nano": nano,
            "usage": answer.message.usage(output),
        }

    def _whole(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        self._bill(request, answer, answer.message.output)
        return web.json_response(answer.message.body(), headers=self.limiter.headers(answer.key, self.clock()))

    async def _stream(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "request-id": request["id"],
        }
        response = web.StreamResponse(headers={**headers, **self.limiter.headers(answer.key, self.clock())})
        progress = stream.Progress()
        request["logged"] = True
        try:
            await response.prepare(request)
            await stream.send(
                stream.Body(request, response, answer.fault, request["id"]), answer.message, self.pace, progress
            )
            await response.write_eof()
        except (stream.Cut, ConnectionError):
            pass
        finally:
            self._bill(request, answer, progress.output)
            self._log(request, 200)
        return response

    async def count_tokens(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/messages/count_tokens: the sum that a request of this body would be billed for."""
        self._key(request)
        body = validate.check(await self._body(request), counting=True, betas=_betas(request))
        counted = {**body, "messages": compaction.after(body["messages"])}
        return web.json_response({"input_tokens": sum(b.tokens for b in prompt_cache.blocks_of(counted))})

    async def models(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/models."""
        self._key(request)
        data = [catalog.info(m) for m in catalog.MODELS.values()]
        return web.json_response(
            {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
        )

    async def model(self, request: web.Request) -> web.StreamResponse:
        """GET /v1/models/{id}."""
        self._key(request)
        return web.json_response(catalog.info(catalog.find(request.match_info["id"])))

    async def root(self, request: web.Request) -> web.StreamResponse:
        """HEAD and GET /: clients ask whether anybody is there."""
        return web.json_response({"service": "watchfloor simulator"})

    # -- the control endpoints ---------------------------------------------------------------------

    async def usage(self, request: web.Request) -> web.StreamResponse:
        """GET /_sim/usage: what was billed."""
        return web.json_response(self.meter.report())

    async def requests(self, request: web.Request) -> web.StreamResponse:
        """GET /_sim/requests: the newest requests, oldest first."""
        return web.json_response({"requests": list(self.meter.recent)})

    async def add_faults(self, request: web.Request) -> web.StreamResponse:
        """POST /_sim/faults: one rule or a list of rules (see `FaultBook.add`)."""
        body = await self._body(request)
        rules = body if isinstance(body, list) else [body]
        try:
            for rule in rules:
                self.book.add(dict(rule) if isinstance(rule, dict) else {})
        except FaultError as exc:
            raise ApiError(400, str(exc)) from exc
        return web.json_response({"rules": len(self.book.rules)})

    async def clear_faults(self, request: web.Request) -> web.StreamResponse:
        """DELETE /_sim/faults."""
        self.book.rules.clear()
        return web.json_response({"rules": 0})

    async def hold(self, request: web.Request) -> web.StreamResponse:
        """POST /_sim/hold: from now on no message request gets an answer."""
        self.gate.clear()
        return web.json_response({"held": True})

    async def release(self, request: web.Request) -> web.StreamResponse:
        """POST /_sim/release."""
        self.gate.set()
        return web.json_response({"held": False})

    async def refuse(self, request: web.Request) -> web.StreamResponse:
        """POST /_sim/refuse ``{seconds}``: no connection is taken for so long and those at hand are cut, as when a
        service is started anew.
        """
        body = await self._body(request)
        seconds = body.get("seconds") if isinstance(body, dict) else None
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= 3600:
            raise ApiError(400, "seconds: must be a number above 0, at most 3600")
        if self.shut is None:
            raise ApiError(400, "this simulator cannot refuse connections")
        response = web.json_response({"refused_s": seconds})
        await response.prepare(request)
        await response.write_eof()  # the answer is out before its connection is cut
        self.shut(seconds)
        return response

    # -- around every request ----------------------------------------------------------------------

    def _log(self, request: web.Request, status: int) -> None:
        entry = {
            "id": request["id"],
            "ts": self.clock(),
            "method": request.method,
            "path": request.path_qs,
            "status": status,
            **request.get("bill", {}),
        }
        self.meter.recent.append(entry)

    @web.middleware
    async def around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Gives each request its id and turns every failure into the vendor's error body."""
        self.count += 1
        request["id"] = compose.identifier("req", f"{self.clock()}/{self.count}")
        try:
            response = await handler(request)
        except ApiError as exc:
            if exc.page is not None:
                response = web.Response(
                    text=exc.page, content_type=exc.page_type, status=exc.status, headers=exc.headers
                )
            else:
                response = web.json_response(exc.body(request["id"]), status=exc.status, headers=exc.headers)
        except web.HTTPException as exc:
            if exc.status < 400:
                raise
            error = ApiError(exc.status, "Not found" if exc.status == 404 else exc.reason)
            response = web.json_response(error.body(request["id"]), status=exc.status)
        if not response.prepared:
            response.headers["request-id"] = request["id"]
        if not request.path.startswith("/_sim/") and not request.get("logged"):
            self._log(request, response.status)
        return response

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self.around])
        app.add_routes(
            [
                web.get("/", self.root),
                web.post("/v1/messages", self.messages),
                web.post("/v1/messages/count_tokens", self.count_tokens),
                web.get("/v1/models", self.models),
                web.get("/v1/models/{id}", self.model),
                web.get("/_sim/usage", self.usage),
                web.get("/_sim/requests", self.requests),
                web.post("/_sim/faults", self.add_faults),
                web.delete("/_sim/faults", self.clear_faults),
                web.post("/_sim/hold", self.hold),
                web.post("/_sim/release", self.release),
                web.post("/_sim/refuse", self.refuse),
            ]
        )
        return app


def _betas(request: web.Request) -> frozenset[str]:
    named = ",".join(request.headers.getall("anthropic-beta", []))
    return frozenset(name.strip() for name in named.split(","))


def _offered(turn: Turn, tools: set[str]) -> Turn:
    """A model only uses tools it was given; a scenario that wants another one says so instead."""
    missing = sorted({c.tool for c in turn.calls} - tools)
    if not missing:
        return turn
    note = f"I would use {', '.join(missing)} here, but I was not given it."
    return Turn(
        f"{turn.text}\n\n{note}".strip(), tuple(c for c in turn.calls if c.tool in tools), turn.thinking, turn.faults
    )
