"""The phrases that count for a launch: from the repository's own file, the configuration, and what a person bound.
Blocking.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.domain.text.formatting import counted
from harness.plan.files import phrases
from harness.plan.files.formats import Plan
from harness.protocol.config import project_phrases
from harness.protocol.config.project_phrases import FILE, Project
from harness.supervisor.base.errors import OpError
from harness.tools import registry, validation
from harness.views.launch_request import LaunchRequest
from harness.views.replies import PhraseOffer, PhrasesLook
from harness.workspace.git.commit_root import CommitRoot
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git

_MOST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """Where phrases come from that no launch names: the state folder, and the configuration."""

    state: Path | None = None
    configured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bindings:
    """What counts for one launch. ``file`` is the digest of the repository's own file, empty without one; ``offered``
    is what that file binds, counted or not; ``problems`` say what does not count, and why.
    """

    phrases: dict[str, str] = field(default_factory=dict)
    file: str = ""
    accepted: bool = False
    offered: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What a launch says of them."""
        pending = self.offered and not self.accepted
        how = f"--accept-phrases {self.file[: project_phrases.LEAST_HASH]}"
        told = f"{FILE} binds {counted(len(self.offered), 'phrase')} and does not count; read it, then let it count"
        return [*self.problems, *([f"{told} with {how}"] if pending else [])]


def bindings(git: Git, common: Path, commit: str, request: LaunchRequest, known: Known) -> Bindings:
    """What binds phrases for this launch: its own words before all that was said earlier. Raises OpError
    ``bad_phrase``.
    """
    for phrase, command in request.phrases.items():
        problem = "it is empty" if not phrase.strip() else _problem(command)
        if problem:
            raise OpError("bad_phrase", f"the phrase {phrase!r}: {problem}")
    data, problem = _file(CommitRoot(git, commit))
    project, damaged = _project(known, common)
    if damaged and (request.phrases or request.accept_phrases):
        raise OpError("bad_phrase", damaged)
    digest = project_phrases.digest(data) if data else ""
    accepted = bool(data) and (project.counts(data) or _named(request.accept_phrases, digest))
    if request.accept_phrases and not accepted:
        stands = f"is {digest[: project_phrases.LEAST_HASH]}" if digest else "is not there"
        said = f"--accept-phrases names another file: {FILE} at commit {commit[:12]} {stands}"
        raise OpError("bad_phrase", said, "read what it binds, then name what you read")
    offered: dict[str, str] = {}
    try:
        offered = project_phrases.bindings(data) if data else {}
        wrong = (f"{phrase!r}: {why}" for phrase, command in offered.items() if (why := _problem(command)))
        problem = problem or next((f"{FILE}: {one}" for one in wrong), "")
    except ValueError as exc:
        problem = str(exc)
    offered = {} if problem else offered
    merged = project_phrases.counting(offered if accepted else {}, known.configured, project) | request.phrases
    counts = {phrase: command for phrase, command in merged.items() if command}
    problems = (*([f"{problem}; none of it counts"] if problem else []), *([damaged] if damaged else []))
    return Bindings(counts, digest, accepted, offered, problems)


def _project(known: Known, common: Path) -> tuple[Project, str]:
    """What a person said of the repository, and why that cannot be told."""
    try:
        return (project_phrases.load(known.state, common) if known.state is not None else Project()), ""
    except project_phrases.Unreadable as exc:
        return Project(), str(exc)


def keep_for(common: Path, request: LaunchRequest, bound: Bindings, known: Known) -> str:
    """Remember what this launch bound, for the launches to come; why that cannot be, in words."""
    accepted = bound.file if request.accept_phrases else ""
    if known.state is None or not (request.phrases or accepted):
        return ""
    try:
        project_phrases.keep(known.state, common, request.phrases, accepted)
    except (OSError, project_phrases.Unreadable) as exc:
        return f"its phrases count for this session and are not kept for later ones: {exc}"
    return ""


def look(git: Git, commit: str, plan: Plan | None, bound: Bindings) -> PhrasesLook:
    """What a person may bind before a launch: phrases of the plan that nothing decides, each with a guess."""
    offers = offered(git, commit, plan) if plan is not None else []
    pending = {} if bound.accepted else dict(bound.offered)
    return PhrasesLook(unbound=offers, file=bound.file if pending else "", offered=pending, bound=bound.phrases)


def offered(git: Git, commit: str, plan: Plan) -> list[PhraseOffer]:
    """The phrases that no command decides, the most frequent first. Raises GitFailed."""
    found = phrases.unbound(plan)
    names = set(git.names("ls-tree", "-z", "--name-only", commit)) if found else set()
    root = CommitRoot(git, commit)
    texts = {name: _text(root, name) for name in phrases.FILES if name in names}
    return [PhraseOffer(text=text, count=count, guess=phrases.guess(text, names, texts)) for text, count in found]


def told(offer: PhraseOffer) -> str:
    """That criteria say a phrase that no command decides, and how to bind it."""
    binding = shlex.quote(f"{offer.text}={offer.guess or 'COMMAND'}")
    count = counted(offer.count, "criterion", "criteria")
    return f"{count} “{offer.text}”: no command decides; bind it with --phrase {binding}"


def _problem(command: str) -> str:
    return (validation.validate(registry.CHECK, {"command": command}) or "") if command else ""


def _named(given: str, digest: str) -> bool:
    return len(given) >= project_phrases.LEAST_HASH and digest.startswith(given.lower())


def _file(root: CommitRoot) -> tuple[bytes, str]:
    """The repository's own phrases, and why they cannot be read where there are any."""
    try:
        return root.read(FILE, project_phrases.MOST_BYTES), ""
    except FileNotFoundError:
        return b"", ""
    except (OSError, GitFailed) as exc:
        return b"", f"{FILE} {exc.strerror if isinstance(exc, OSError) else f'cannot be read: {exc}'}"


def _text(root: CommitRoot, name: str) -> str:
    """A file at the top; nothing of one that cannot be looked at for a guess."""
    with contextlib.suppress(OSError):
        return root.read(name, _MOST_TEXT).decode("utf-8", "replace")
    return ""
