"""The SDK without the shapes of requests and replies, and without its asynchronous transport: nearly all of its 2,300
modules describe them as classes, and making those takes most of the time and half of the memory of loading it.

In their place stand modules whose every name is `typing.Any`. The rest of the SDK, which sends, retries nothing, names
errors and splits streams, is loaded as it is (decision 054).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

UNUSED = (
    "anthropic._vendor.httpx_aiohttp",
    "anthropic.lib.aws",
    "anthropic.lib.bedrock",
    "anthropic.lib.middleware",
    "anthropic.lib.streaming",
    "anthropic.lib.tools",
    "anthropic.lib.vertex",
    "anthropic.resources.beta",
    "anthropic.resources.organization",
    "anthropic.types",
)


class StandIn(ModuleType):
    """A module that was left out."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what the machinery of imports asks a module for
            raise AttributeError(name)
        return Any


class _LeftOut(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if any(fullname == name or fullname.startswith(f"{name}.") for name in UNUSED):
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        return None


def leave_out() -> None:
    """Load the SDK lean in this process from here on; it must not be loaded yet."""
    if "anthropic" in sys.modules:
        raise RuntimeError("the SDK is loaded already")
    sys.meta_path.insert(0, _LeftOut())
