"""Sending work to a forge, the pure parts: which program, what it is told, what stands in the request."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.review import forge, pull_text
from app.review.forge import Forge, NoForge
from app.review.pull_text import SecretTitle
from harness.domain.text import secret_scan
from harness.domain.text.display_safe import to_display
from harness.events import types as t
from harness.events.work import pull_events as p
from harness.projections.apply import fold
from harness.projections.state.publishing import CheckLine, PlanEntryLine, PullState, PullView, after, pushes
from harness.reports.receipts import Receipt

OUR_KEY = "our" * 9
BOTH = {"gh": "/bin/gh", "glab": "/bin/glab"}


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/acme/shop.git", ("github.com", "acme/shop")),
        ("https://me@github.com/acme/shop", ("github.com", "acme/shop")),
        ("ssh://git@gitlab.acme.org:2222/group/sub/shop.git", ("gitlab.acme.org", "group/sub/shop")),
        ("git@github.com:acme/shop.git", ("github.com", "acme/shop")),
        ("work:acme/shop", ("work", "acme/shop")),
        ("/srv/git/shop.git", ("", "")),
        ("file:///srv/git/shop.git", ("", "")),
    ],
)
def test_an_address_names_its_forge(url: str, place: tuple[str, str]) -> None:
    assert forge.place_of(url) == place


@pytest.mark.parametrize(
    ("url", "repo", "program", "there", "chosen"),
    [
        ("git@github.com:acme/shop.git", "", "", BOTH, ("gh", "github.com/acme/shop")),
        ("https://gitlab.acme.org/g/s/shop.git", "", "", BOTH, ("glab", "gitlab.acme.org/g/s/shop")),
        ("git@code.acme.org:acme/shop.git", "", "", {"glab": "/bin/glab"}, ("glab", "code.acme.org/acme/shop")),
        ("git@code.acme.org:acme/shop.git", "", "gh", BOTH, ("gh", "code.acme.org/acme/shop")),
        ("/srv/git/shop.git", "acme/shop", "gh", BOTH, ("gh", "acme/shop")),
    ],
)
def test_the_program_follows_from_the_address(
    url: str, repo: str, program: str, there: dict[str, str], chosen: tuple[str, str]
) -> None:
    found = forge.choose(url, repo, program, there)
    assert (found.program, found.repository, found.path) == (*chosen, there[chosen[0]])


@pytest.mark.parametrize(
    ("url", "repo", "program", "there", "says"),
    [
        ("git@github.com:acme/shop.git", "", "", {}, "gh is not in PATH"),
        ("git@code.acme.org:acme/shop.git", "", "", {}, "neither gh nor glab"),
        ("git@code.acme.org:acme/shop.git", "", "", BOTH, "--with gh or --with glab"),
        ("git@github.com:acme/shop.git", "", "glab", {"gh": "/bin/gh"}, "glab is not in PATH"),
        ("/srv/git/shop.git", "", "gh", BOTH, "--repo OWNER/NAME"),
    ],
)
def test_what_is_missing_is_named_with_a_way_out(
    url: str, repo: str, program: str, there: dict[str, str], says: str
) -> None:
    with pytest.raises(NoForge, match=says):
        forge.choose(url, repo, program, there)


def test_a_program_found_through_a_relative_folder_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gh").write_text("#!/bin/sh\n")
    Path("gh").chmod(0o755)
    assert forge.present({"PATH": ".:"}) == {}
    assert forge.present({"PATH": str(tmp_path)})["gh"] == str(tmp_path / "gh")


@given(st.text(), st.text())
def test_texts_are_arguments_of_their_own(title: str, body: str) -> None:
    for program in forge.PROGRAMS:
        made = Forge(program, f"/bin/{program}", "host/a/b").command(
            head="work", base="main", title=title, body=body, draft=True
        )
        assert made[made.index("--title") + 1] == title
        assert body in made


@pytest.mark.parametrize("url", ["https://github.com/a/b.git", 'git@h:a/b"\\.git', "/srv/with blank/#;x.git"])
def test_the_empty_repository_knows_its_remote_and_nothing_else(tmp_path: Path, url: str) -> None:
    forge.lay_out(tmp_path, url)
    said = subprocess.run(
        ["git", "config", "--local", "remote.origin.url"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert said.stdout == f"{url}\n"
    assert forge.environment({"GIT_DIR": "/x", "GH_TOKEN": "secret"})["GH_TOKEN"] == "secret"
    assert "GIT_DIR" not in forge.environment({"GIT_DIR": "/x"})


@pytest.mark.parametrize("more", ["\n[core]\nhooksPath=/x", "\r", "\0", "\x1b", "\x85", "\udc80"])
def test_an_address_that_could_say_more_is_refused(tmp_path: Path, more: str) -> None:
    with pytest.raises(NoForge, match="control characters"):
        forge.lay_out(tmp_path, f"https://github.com/a/b{more}")
    assert list(tmp_path.iterdir()) == []


def finder(texts: Sequence[str]) -> list[list[str]]:
    return [secret_scan.in_lines(text, (OUR_KEY,)) for text in texts]


def view(hostile: str) -> PullView:
    return PullView(
        sid="s",
        name=hostile,
        goal=f"Mend the cart.\n{hostile}",
        remote="origin",
        url="u",
        branch="b",
        head="c" * 40,
        count=2,
        proof="verified",
        commits=[hostile, "Second"],
        plan=[PlanEntryLine("e1", hostile, True)],
        checks=[CheckLine(hostile, False)],
    )


@given(st.text())
def test_no_text_of_others_is_markup_in_a_request(hostile: str) -> None:
    made = view(hostile)
    body = pull_text.body(made, [receipt(hostile)], finder)
    assert pull_text.title(made, "", finder) == "Mend the cart."
    assert all(line.isprintable() for line in body.split("\n"))
    goal = body.partition("## Goal\n\n")[2].partition("\n\n## Commits")[0]
    assert all(line.startswith("    ") for line in goal.split("\n"))
    for line in body.split("\n"):
        if line.startswith("- "):
            assert to_display(hostile, limit=200)[:100] in line or "Second" in line
    assert "## Decided by a person" in body


def receipt(title: str) -> Receipt:
    return Receipt("a1", "tool", title, "high", "", "effect", "allow", "tui", ())


SECRETS = (
    f"curl -H 'Authorization: token ghp_{'a1' * 18}' https://api.test/x",
    "curl https://api.test/x -H Authorization:\\ Bearer\\ 9f8e7d6c5b4a",
    "curl https://api.test/x -H 'Authorization: Basic bWU6cGFzc3dvcmQx",
    f"git push https://me:{'p4ss' * 3}@host.test/a/b",
    f"run --with {'our' * 9}",
)


@pytest.mark.parametrize("hidden", SECRETS)
def test_no_line_that_looks_like_a_secret_stands_in_a_request(hidden: str) -> None:
    made = view(hidden)
    body = pull_text.body(made, [receipt(hidden), receipt("make release")], finder)
    assert hidden.split()[-1] not in body
    assert hidden.split("token ")[-1][:20] not in body
    assert body.count("left out: it looks like") == 5
    assert "    Mend the cart.\n    (left out: it looks like" in body
    assert "Second" in body
    assert "make release" in body
    with pytest.raises(SecretTitle, match="--title"):
        pull_text.title(made, hidden, finder)
    with pytest.raises(SecretTitle, match="--title"):
        pull_text.title(msgspec.structs.replace(made, count=1, commits=[hidden]), "", finder)
    assert pull_text.title(made, "Another one", finder) == "Another one"


def test_a_private_key_is_left_out_to_its_end() -> None:
    begin = "-----BEGIN OPENSSH PRIVATE KEY-----"
    end = "-----END OPENSSH PRIVATE KEY-----"
    made = msgspec.structs.replace(view("x"), goal=f"Mend it.\n{begin}\nb3BlbnNzaC1r\nAAAAB3Nza\n{end}\nThen ship.")
    goal = pull_text.body(made, [], finder).partition("\n\n## Commits")[0]
    assert goal == "## Goal\n\n    Mend it.\n    (left out: it looks like a private key)\n    Then ship."


@given(st.text("ab \n"), st.text("ab \n"))
def test_a_secret_is_found_however_it_is_broken_into_lines(before: str, after: str) -> None:
    text = f"{before}\npassword:\n  hunter2hunter2\n{after}"
    found = secret_scan.in_lines(text)
    assert len(found) == len(text.split("\n"))
    assert all(found)
    assert not any(secret_scan.in_lines(before))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["a", "é", "\U0001f600", "\x1b", "`", "a\n"]), st.integers(0, 3000), st.integers(0, 20_000))
def test_a_request_is_never_larger_than_a_forge_takes(letter: str, size: int, entries: int) -> None:
    text = letter * size
    made = msgspec.structs.replace(
        view("x"),
        goal=text,
        plan=[PlanEntryLine(f"e{n}", text[:400], False) for n in range(entries)],
        checks=[CheckLine(text[:400], True)] * entries,
    )
    body = pull_text.body(made, [receipt(text[:400])] * entries, finder)
    assert len(body.encode()) <= pull_text.MOST_BYTES
    assert body.endswith(f"Session s, at {'c' * 12}.\n")
    if "It is cut here" not in body:
        assert body.count(f"- and {entries - 50:,} more") == (3 if entries > 50 else 0)


def test_the_plan_says_which_entries_pass() -> None:
    plan = [PlanEntryLine("US-1", "Add the cart", True), PlanEntryLine("US-2", "Mail\nthe `bill`", False)]
    body = pull_text.body(msgspec.structs.replace(view("x"), plan=plan), [], finder)
    shown = body.partition("## Plan\n\n")[2].partition("\n\n## Checks")[0].split("\n")
    assert [line[:6] for line in shown] == ["- [x] ", "- [ ] "]
    assert "US-1 Add the cart" in shown[0]
    assert "US-2 Mail" in shown[1]
    assert "## Plan" not in pull_text.body(msgspec.structs.replace(view("x"), plan=[]), [], finder)


def test_a_large_plan_is_cut_at_a_line_and_says_so() -> None:
    wide = "\U0001f600" * 290
    many = [PlanEntryLine(f"e{n}", wide[:250], True) for n in range(60)]
    body = pull_text.body(msgspec.structs.replace(view("x"), plan=many), [receipt(wide)] * 60, finder)
    kept, cut, end = body.partition("\n\nIt is cut here: a request takes no more.\n\n")
    assert cut
    assert end == f"Session s, at {'c' * 12}.\n"
    assert kept.endswith(" `"), "no line is cut in two"
    assert len(body.encode()) > pull_text.MOST_BYTES - 2000


PUSH = t.ToolProposed(call_id="c4.0", tool="exec", ref="pull p1", input={"argv": ["git", "push"]})
STARTED = t.PullStarted(pull_id="p1", remote="origin", url="u", branch="work", head="c" * 40)


def test_a_push_that_a_person_orders_is_no_work_of_the_agent() -> None:
    assert (PUSH.by_pull, PUSH.not_of_agent, PUSH.own) == (True, True, False)
    assert not t.ToolProposed(call_id="c4.0", tool="exec", ref="toolu_pull").not_of_agent
    known = PullState()
    for body in (STARTED, PUSH):
        assert not pushes(known, body) or body is PUSH
        known = after(known, body)
    assert pushes(known, PUSH)
    assert known.words() == "pushing work to origin"
    known = after(known, t.ToolEnded(call_id="c4.0", status="ok", preview=""))
    known = after(known, t.PullEnded(pull_id="p1", outcome=p.PUSHED, remote="origin", branch="work", head="c" * 40))
    assert known.words() == "pushed work to origin"
    known = after(known, t.PullOpened(branch="work", address="https://x/1", program="gh"))
    assert known.words() == "request https://x/1"
    assert not pushes(known, PUSH)
    assert fold([t.Record(0, "", "harness", 0, STARTED)]).pulling.open == STARTED
