"""The verb that holds a model's judgement against results that are known to be bad or good."""

from __future__ import annotations

import argparse
import subprocess
import sys

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, emit_all, safe, say, table
from harness.domain.settings import amounts
from harness.domain.text.formatting import usd
from harness.judge import known
from harness.judge.calibrating import CalibrationLine, CalibrationOrder
from harness.judge.known import Judged
from harness.protocol.config import api_key
from harness.protocol.config import config as configuration
from harness.roles import catalog
from harness.roles.role import RoleError

_MODULE = "harness.brain.review.calibrate"


def judge(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when every verdict was right, 1 when one was not or there was none."""
    cfg = configuration.load(ctx.folders)
    credential = api_key.credential(cfg)
    if credential is None:
        raise Usage("no API key is configured for this endpoint")
    try:
        found = catalog.find(ctx.folders.config, args.role)
    except RoleError as exc:
        raise Usage(str(exc)) from exc
    if found is None:
        raise Usage(f"there is no role {args.role!r}")
    names = {one.name for one in known.known()}
    if unknown := sorted(set(args.only) - names):
        raise Usage(f"no such result: {', '.join(unknown)}; known: {', '.join(sorted(names))}")
    try:
        most = amounts.usd_to_nano(args.most_usd)
    except ValueError as exc:
        raise Usage(f"--most-usd: {exc}") from exc
    order = CalibrationOrder(
        base_url=credential.base_url,
        key=credential.key,
        model=args.model or found[0].model or cfg.model.default,
        prompt=found[0].prompt,
        most_nano=most,
        max_tokens=cfg.model.max_tokens,
        only=args.only,
    )
    lines = _run(order)
    if args.json:
        emit_all(map(msgspec.to_builtins, lines))
    _summary(order, lines, ctx.width, as_json=args.json)
    return exits.OK if lines and all(line.right for line in lines) else exits.NO


def _run(order: CalibrationOrder) -> list[CalibrationLine]:
    # the key goes over a pipe: an argument or a variable could be read by others
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-m", _MODULE],
        input=msgspec.json.encode(order),
        stdout=subprocess.PIPE,
        check=True,
    )
    return [msgspec.json.decode(line, type=CalibrationLine) for line in done.stdout.splitlines()]


def _summary(order: CalibrationOrder, lines: list[CalibrationLine], width: int, *, as_json: bool) -> None:
    wrong = [line for line in lines if not line.right]
    judged = [Judged(line.name, line.good, line.verdict) for line in lines]
    counted = known.table(judged)
    nano = sum(line.nano for line in lines)
    tokens = sum(line.tokens for line in lines)
    if as_json:
        emit({"model": order.model, "table": counted, "nano": nano, "tokens": tokens, "wrong": len(wrong)})
        return
    columns = ("satisfied", "sent back", "no verdict")
    body = [(f"{kind} ({sum(row.values())})", *(str(row[name]) for name in columns)) for kind, row in counted.items()]
    for text in table(("KNOWN TO BE", *columns), body, width=width):
        say(text)
    for line in wrong:
        what = line.flaw or "nothing is wrong with it"
        say(f"{safe(line.name)}: {safe(line.verdict)}, though {safe(what)}: {safe(line.why, 300)}")
    say(f"{len(lines) - len(wrong)} of {len(lines)} right; {safe(order.model)}, {usd(nano)}, {tokens:,} tokens")
