"""The person's own program that opens a request for review at a forge: which one, what it is told, and where it runs.

It is started in an empty repository of ours, so nothing that an agent wrote configures it or runs.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.linux import programs

GH = "gh"
GLAB = "glab"
PROGRAMS = (GH, GLAB)
_SCHEME = re.compile(r"[a-z+]+://(?:[^/@]*@)?(?P<host>[^/:@]+)(?::\d+)?/(?P<path>.+)")
_SCP = re.compile(r"(?:[^/@:]+@)?(?P<host>[^/:@]+):(?P<path>[^/].*)")
_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\x7f\"'<>]+")
_NO_ADDRESS = ("Cc", "Cs")
_THERE = "already exists"


class NoForge(Exception):
    """No request can be opened; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Forge:
    """``program`` is found at ``path``; ``repository`` is what it calls the place: ``host/owner/name``."""

    program: str
    path: str
    repository: str

    def command(self, *, head: str, base: str, title: str, body: str, draft: bool) -> list[str]:
        """Its whole command line; an empty ``base`` is the forge's own choice."""
        option = "--base" if self.program == GH else "--target-branch"
        onto = [option, base] if base else []
        more = ["--draft"] if draft else []
        if self.program == GH:
            asked = ["pr", "create", "--repo", self.repository, "--head", head, "--title", title, "--body", body]
        else:
            place = f"https://{self.repository}" if self.repository.count("/") > 1 else self.repository
            asked = ["mr", "create", "--repo", place, "--source-branch", head]
            asked += ["--title", title, "--description", body, "--yes"]
        return [self.path, *asked, *onto, *more]


def place_of(url: str) -> tuple[str, str]:
    """(host, owner/name) of a remote's address; empty when it is none of a forge."""
    found = _SCHEME.fullmatch(url) or _SCP.fullmatch(url)
    if found is None or url.startswith("/"):
        return "", ""
    return found["host"].lower(), found["path"].strip("/").removesuffix(".git")


def present(env: Mapping[str, str]) -> dict[str, str]:
    """The programs that are there, by name: only such as the whole path of a folder leads to."""
    found = {name: programs.which(name, env.get("PATH", os.defpath)) for name in PROGRAMS}
    return {name: path for name, path in found.items() if path}


def choose(url: str, given: str, program: str, there: Mapping[str, str]) -> Forge:
    """``given`` names the repository where the address ``url`` does not, ``program`` which of the two.

    Raises NoForge.
    """
    host, path = place_of(url)
    repository = given or (f"{host}/{path}" if host and path.count("/") >= 1 else "")
    if not repository:
        raise NoForge(
            f"{url} names no repository at a forge; say which it is with --repo OWNER/NAME, or use --push-only"
        )
    named = given.lower() or host
    wanted = program or next((name for name, mark in ((GH, "github"), (GLAB, "gitlab")) if mark in named), "")
    if wanted and wanted not in there:
        raise NoForge(f"{wanted} is not in PATH, so no request can be opened; install it, or push alone: --push-only")
    if not there:
        raise NoForge("neither gh nor glab is in PATH, so no request can be opened; install one, or use --push-only")
    if not wanted and len(there) > 1:
        raise NoForge(f"nothing says whether {repository} is gh's or glab's; say it: --with gh or --with glab")
    name = wanted or next(iter(there))
    return Forge(name, there[name], repository)


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The person's own, with their credentials, but for what would lead git elsewhere or ask at a terminal."""
    kept = {name: value for name, value in env.items() if not name.startswith("GIT_")}
    asks_nothing = {"GH_PROMPT_DISABLED": "1", "NO_PROMPT": "1", "GIT_TERMINAL_PROMPT": "0"}
    return {**kept, **asks_nothing, "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}


def lay_out(root: Path, url: str) -> None:
    """Make an empty repository in ``root`` that knows one remote, which both programs want to stand in.

    Raises NoForge for an address that could say more than an address in its configuration.
    """
    if any(unicodedata.category(one) in _NO_ADDRESS for one in url):
        raise NoForge("the remote's address has control characters in it; set it anew: git remote set-url")
    git = root / ".git"
    for name in ("objects", "refs/heads"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/none\n", "ascii")
    quoted = url.replace("\\", "\\\\").replace('"', '\\"')
    remote = f'[remote "origin"]\n\turl = "{quoted}"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
    (git / "config").write_text(f"[core]\n\trepositoryformatversion = 0\n\thooksPath = /dev/null\n{remote}", "utf-8")


def address_in(output: str) -> str:
    """The last address that its output names; empty without one."""
    found = _ADDRESS.findall(output)
    return found[-1] if found else ""


def stands_already(output: str) -> bool:
    """True when it says that there is such a request."""
    return _THERE in output
