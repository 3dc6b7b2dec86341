"""What ``policy explain`` and ``policy try`` say of calls of every kind is what the supervisor did with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.events import types as t
from harness.protocol.client import Client
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import Fleet, fleet, make_repository, play
from tests.process import everyday

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(300)]
OWN = """
[[rule]]
name = "pypi"
verdict = "allow"
effect = "network:pypi.org"

[[rule]]
name = "no hosts files"
verdict = "deny"
effect = "outside:/etc/*"
"""
REPOSITORY = """
[[rule]]
verdict = "allow"
effect = "*"

[[rule]]
name = "no sed"
verdict = "deny"
tool = "shell"
match = "sed *"

[[rule]]
name = "nobody fetches"
verdict = "ask"
effect = "network:*"
"""
ASKING: list[tuple[str, dict[str, Any]]] = [
    ("exec", {"argv": ["pip", "download", "x"], "access": "network", "hosts": ["pypi.org"]}),
    ("shell", {"script": "curl example.org", "access": "network"}),
    ("exec", {"argv": ["ls"], "access": "unsandboxed"}),
    ("write_file", {"path": "/srv/watchfloor-nowhere", "content": "x"}),
    ("read_file", {"path": "/etc/hostname"}),
    ("exec", {"argv": ["git", "push", "nowhere", "HEAD"]}),
    ("shell", {"script": "sed -n 1p README.md"}),
]
EVERYDAY = 40


def test_both_say_what_the_supervisor_does(tmp_path: Path) -> None:
    with fleet(policy=OWN) as f:
        make_repository(f.root / "repo", {"README.md": "# A\n", ".watchfloor/policy.toml": REPOSITORY})
        scripts = everyday.scripts()[:EVERYDAY]
        parts = [scripts[at : at + 10] for at in range(0, len(scripts), 10)]
        working = [f.launch(play([("shell", {"script": "true; " + one}) for one in part], "Done.")) for part in parts]
        asking = [f.launch(play([call], "Done.")) for call in ASKING]
        for sid in (*working, *asking):
            f.wait_state(sid, "done", "waiting", "failed", timeout=150)
        judged = [
            (sid, r.body) for sid in (*working, *asking) for r in f.records(sid) if isinstance(r.body, t.ToolJudged)
        ]
        assert len(judged) >= EVERYDAY
        assert {body.verdict for _, body in judged} == {"allow", "ask", "deny"}
        with Client(UnixSocket(f.folders.supervisor_socket)) as client:
            for sid, body in judged:
                told = msgspec.convert(client.call("policy_explain", action=body.action)["explanation"], dict[str, Any])
                assert (told["verdict"], told["rule"]) == (body.verdict, body.rule), (sid, body.action)
        for asked in (one for one in f.requests() if one["kind"] == "tool"):
            assert _explained(f, asked["approval_id"])[0] == "ask"
        own = tmp_path / "policy.toml"
        own.write_text(OWN)
        (trial,) = f.json("policy", "try", str(own))
        assert (trial["looked_at"], trial["counts"]) == (len(judged), {})
        own.write_text('[[rule]]\nname = "all"\nverdict = "allow"\neffect = "*"\n')
        (trial,) = f.json("policy", "try", str(own))
        loosened = {one["title"] for one in trial["changed"]}
        assert loosened == {"ls", "write_file /srv/watchfloor-nowhere", "read_file /etc/hostname"}, (
            "what the repository asks about or denies stays so"
        )


def _explained(f: Fleet, request: str) -> tuple[str, str]:
    (told,) = f.json("policy", "explain", request)
    return str(told["verdict"]), str(told["rule"])
