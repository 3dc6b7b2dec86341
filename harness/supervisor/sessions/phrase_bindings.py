"""The phrases that count for a launch: from the repository's own file, the configuration, and what a person bound.
Blocking.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.events import tool_input, tools
from harness.events.launch_wish import LaunchWish
from harness.events.replies import PhraseOffer, PhrasesLook
from harness.events.words import counted
from harness.plan import phrases
from harness.plan.formats import Plan
from harness.protocol import project_phrases
from harness.protocol.project_phrases import Project
from harness.supervisor.errors import OpError
from harness.workspace.errors import GitFailed
from harness.workspace.git import Git, Repository, open_repository

_MOST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """Where phrases come from that no launch names: the state folder, and the configuration."""

    state: Path | None = None
    configured: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bindings:
    """What counts for one launch. ``file`` is the digest of the repository's own file, empty without one; ``offered``
    is what that file binds, counted or not, and ``problem`` what is wrong with it.
    """

    phrases: dict[str, str]
    file: str = ""
    accepted: bool = False
    offered: Mapping[str, str] | None = None
    problem: str = ""

    @property
    def notes(self) -> Iterator[str]:
        """What a launch says of the repository's file."""
        if self.problem:
            yield f"{self.problem}; none of it counts"
        elif self.offered and not self.accepted:
            how = f"--accept-phrases {self.file[: project_phrases.LEAST_HASH]}"
            binds = counted(len(self.offered), "phrase")
            yield f"{project_phrases.FILE} binds {binds} and does not count; read it, then let it count with {how}"


def bindings(repository: Repository, commit: str, request: LaunchWish, known: Known) -> Bindings:
    """What binds phrases for this launch: its own words before the project's, the configuration's, the repository's.
    Raises OpError ``bad_phrase``, GitFailed.
    """
    for phrase, command in request.phrases.items():
        problem = "it is empty" if not phrase.strip() else _problem(command)
        if problem:
            raise OpError("bad_phrase", f"the phrase {phrase!r}: {problem}")
    project = project_phrases.load(known.state, repository.common) if known.state is not None else Project()
    data = _file(Git.of(repository.git_dir), commit)
    digest = project_phrases.digest(data) if data else ""
    accepted = bool(data) and (project.counts(data) or _named(request.accept_phrases, digest))
    if request.accept_phrases and not accepted:
        stands = f"is {digest[: project_phrases.LEAST_HASH]}" if digest else "is not there"
        said = f"--accept-phrases names another file: {project_phrases.FILE} at commit {commit[:12]} {stands}"
        raise OpError("bad_phrase", said, "read what it binds, then name what you read")
    offered: dict[str, str] = {}
    problem = ""
    try:
        offered = project_phrases.bindings(data) if data else {}
        wrong = (f"{phrase!r}: {why}" for phrase, command in offered.items() if (why := _problem(command)))
        problem = next((f"{project_phrases.FILE}: {one}" for one in wrong), "")
    except ValueError as exc:
        problem = str(exc)
    counts = offered if accepted and not problem else {}
    merged = {**counts, **known.configured, **project.phrases, **request.phrases}
    return Bindings({k: v for k, v in merged.items() if v}, digest, accepted, offered, problem)


def keep_for(repo: Path, request: LaunchWish, digest: str, known: Known) -> None:
    """Remember what this launch bound, for the launches to come. Raises OSError."""
    accepted = digest if request.accept_phrases else ""
    if known.state is not None and (request.phrases or accepted):
        project_phrases.keep(known.state, open_repository(repo).common, request.phrases, accepted)


def look(repository: Repository, commit: str, plan: Plan | None, bound: Bindings) -> PhrasesLook:
    """What a person may bind before a launch: phrases of the plan that nothing decides, each with a guess."""
    offers = offered(Git.of(repository.git_dir), commit, plan) if plan is not None else []
    pending = dict(bound.offered or {}) if not bound.accepted and not bound.problem else {}
    return PhrasesLook(unbound=offers, file=bound.file if pending else "", offered=pending, bound=bound.phrases)


def offered(git: Git, commit: str, plan: Plan) -> list[PhraseOffer]:
    """The phrases that no command decides, the most frequent first. Raises GitFailed."""
    found = phrases.unbound(plan)
    names = set(git.names("ls-tree", "-z", "--name-only", commit)) if found else set()
    texts = {name: _text(git, commit, name) for name in phrases.FILES if name in names}
    return [PhraseOffer(text=text, count=count, guess=phrases.guess(text, names, texts)) for text, count in found]


def told(offer: PhraseOffer) -> str:
    """That criteria say a phrase that no command decides, and how to bind it."""
    binding = shlex.quote(f"{offer.text}={offer.guess or 'COMMAND'}")
    count = counted(offer.count, "criterion", "criteria")
    return f"{count} “{offer.text}”: no command decides; bind it with --phrase {binding}"


def _problem(command: str) -> str:
    return (tool_input.validate(tools.CHECK, {"command": command}) or "") if command else ""


def _named(given: str, digest: str) -> bool:
    return len(given) >= project_phrases.LEAST_HASH and digest.startswith(given.lower())


def _file(git: Git, commit: str) -> bytes:
    """The repository's own phrases as the commit has them; nothing without any, or with more than may be read."""
    name = f"{commit}:{project_phrases.FILE}"
    try:
        size = git.run("cat-file", "-s", name, ok=(0, 128)).strip()
        fits = size.isdigit() and int(size) <= project_phrases.MOST_BYTES
        return git.run("cat-file", "blob", name) if fits else b""
    except GitFailed:
        return b""


def _text(git: Git, commit: str, name: str) -> str:
    """A file at the top of a commit; nothing of one that is too large to look at."""
    if int(git.run("cat-file", "-s", f"{commit}:{name}")) > _MOST_TEXT:
        return ""
    return git.run("cat-file", "blob", f"{commit}:{name}").decode("utf-8", "replace")
