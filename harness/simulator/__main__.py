"""``python -m harness.simulator``: serve on loopback until SIGTERM, or until what it serves is gone."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

from aiohttp import web

from harness.linux.proc import identify
from harness.protocol.connection import frames
from harness.simulator import library
from harness.simulator.limits import Limits
from harness.simulator.service import Service
from harness.simulator.stream import Pace

DEFAULT_KEY = "sk-ant-simulated-key"
GRACE_S = 20.0
LOOK_S = 2.0


def parser() -> argparse.ArgumentParser:
    """The options of the program."""
    p = argparse.ArgumentParser(
        prog="python -m harness.simulator", description="A Messages API on loopback that plays scenarios."
    )
    p.add_argument("--port", type=int, default=0, help="0 = any free port")
    p.add_argument("--ready-fd", type=int, help='write {"port": N} as one line to this descriptor, then close it')
    p.add_argument(
        "--ready-file", type=Path, help='write {"port": N, "pid": N, "start": N} to this file once it serves'
    )
    p.add_argument("--scenarios", type=Path, help="a folder with scenarios of your own")
    p.add_argument(
        "--key",
        action="append",
        default=[],
        help="an API key to accept; repeatable; without any: WATCHFLOOR_SIM_KEY or a fixed one",
    )
    p.add_argument(
        "--key-file", type=Path, help="a file with API keys to accept, one a line (keeps them out of the process list)"
    )
    p.add_argument("--speed", type=float, default=1.0, help="scales all waits: 1 = comfortable to watch, 0 = none")
    p.add_argument("--requests-per-minute", type=int, default=Limits().requests)
    p.add_argument("--input-tokens-per-minute", type=int, default=Limits().input_tokens)
    p.add_argument("--output-tokens-per-minute", type=int, default=Limits().output_tokens)
    p.add_argument("--exit-on-stdin-eof", action="store_true", help="end when standard input ends")
    p.add_argument(
        "--exit-without",
        type=Path,
        metavar="SOCKET",
        help=f"end when nobody has listened at this unix socket for {GRACE_S:.0f} s",
    )
    return p


def _keys(args: argparse.Namespace) -> frozenset[str]:
    keys = set(args.key)
    if args.key_file:
        keys |= {line.strip() for line in args.key_file.read_text("utf-8").splitlines() if line.strip()}
    return frozenset(keys or {os.environ.get("WATCHFLOOR_SIM_KEY") or DEFAULT_KEY})


async def _stdin_ends(stop: asyncio.Event) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass
    stop.set()


async def _socket_gone(path: Path, stop: asyncio.Event) -> None:
    """Connecting is the only reliable question: a socket file outlives a killed listener."""
    loop = asyncio.get_running_loop()
    last = loop.time()
    while loop.time() - last < GRACE_S:
        with contextlib.suppress(OSError):
            frames.connect(path, 0.5).close()
            last = loop.time()
        await asyncio.sleep(LOOK_S)
    stop.set()


def _announce(args: argparse.Namespace, port: int) -> None:
    # The start time tells this process from a later one with the same number.
    me = identify(os.getpid())
    ready = {"port": port, "pid": os.getpid(), "start": me.start if me is not None else 0}
    if args.ready_file:
        temporary = args.ready_file.with_name(args.ready_file.name + ".new")
        temporary.write_text(json.dumps(ready), "utf-8")
        temporary.replace(args.ready_file)
    if args.ready_fd is not None:
        os.write(args.ready_fd, json.dumps(ready).encode() + b"\n")
        os.close(args.ready_fd)
    if args.ready_fd is None and args.ready_file is None:
        print(json.dumps(ready), flush=True)


_CUT_S = 0.05
"""How long a request under way may still take once the door is shut."""


class _Door:
    """The listening socket, which can be shut for a while: then connecting is refused, and what was connected is
    cut.
    """

    def __init__(self, runner: web.AppRunner) -> None:
        self._runner = runner
        self._site: web.SockSite | None = None
        self._task: asyncio.Task[None] | None = None
        self.port = 0

    async def open(self, port: int) -> None:
        """Listen. Raises OSError."""
        sock = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = sock.getsockname()[1]
        self._site = web.SockSite(self._runner, sock)
        await self._site.start()

    def shut(self, seconds: float) -> None:
        """Nobody comes in for so long; a door that is shut already stays so for its own time."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._shut(seconds))

    async def _shut(self, seconds: float) -> None:
        assert self._site is not None
        await self._site.stop()
        if self._runner.server is not None:
            await self._runner.server.shutdown(_CUT_S)
        await asyncio.sleep(seconds)
        while True:
            try:
                return await self.open(self.port)
            except OSError:  # another program got the port meanwhile; it is ours, so wait for it
                await asyncio.sleep(0.1)

    def leave(self) -> None:
        """The service ends."""
        if self._task is not None:
            self._task.cancel()


async def serve(args: argparse.Namespace) -> None:
    """Serve until asked to stop, or until nobody is left whom the options name."""
    limits = Limits(args.requests_per_minute, args.input_tokens_per_minute, args.output_tokens_per_minute)
    service = Service(_keys(args), library.load(args.scenarios), Pace(args.speed), limits)
    runner = web.AppRunner(service.app(), handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    door = _Door(runner)
    service.shut = door.shut
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    watchers = []
    try:
        await door.open(args.port)
        if args.exit_on_stdin_eof:
            watchers.append(asyncio.create_task(_stdin_ends(stop)))
        if args.exit_without:
            watchers.append(asyncio.create_task(_socket_gone(args.exit_without, stop)))
        _announce(args, door.port)
        await stop.wait()
    finally:
        door.leave()
        for task in watchers:
            task.cancel()
        await runner.cleanup()


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 ended as asked, 2 cannot serve."""
    args = parser().parse_args(argv)
    try:
        asyncio.run(serve(args))
    except (library.LibraryError, OSError) as exc:
        print(f"simulator: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
