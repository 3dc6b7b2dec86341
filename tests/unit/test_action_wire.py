"""The wire form of an action and its hash: what was recorded once must keep its hash for ever."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from harness.domain.actions.action import BadAction, InputBlob, action_hash, from_wire
from harness.domain.actions.destination import LocalRemote
from harness.policy.build import build_action
from harness.policy.facts import Target
from tests.unit.test_policy_actions import HEAD, NAMED, TARGET, facts

REFS = {"refs/heads/main": "c" * 40}
SEEN = Target("/srv/b.git", NAMED, "/r/.git", LocalRemote("/srv/b.git", ("update",), ()), seen="b")
SHOWN = {"snapshot": "s3.ab", "hashes": {"a.py": "absent"}, "cwd_identity": {"dev": 1, "ino": 3}}
PROGRAM = {"path": "/bin/ls", "dev": 1, "ino": 9, "sha": "e" * 64}
PUSH_TREE = {
    "Stmts": [
        {
            "Cmd": {
                "Type": "CallExpr",
                "Args": [{"Parts": [{"Type": "Lit", "Value": part}]} for part in ("git", "push", "origin", "HEAD:x")],
            }
        }
    ]
}
CORPUS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "read": ("read_file", {"path": "a.py", "offset": 3, "why": "claim"}, {}),
    "read outside": ("read_file", {"path": "/etc/hosts"}, {"hashes": {"/etc/hosts": "f" * 64}}),
    "read own": ("read_file", {"path": "/state/x"}, {"own": ("/state",)}),
    "read surrogate": ("read_file", {"path": "bad\udcff.py"}, {}),
    "write": ("write_file", {"path": "é/a.py", "content": "one\ntwo 😀\n"}, SHOWN),
    "write no undo": ("write_file", {"path": "a.py", "content": "x"}, {"unprotected": "too large"}),
    "write git": ("write_file", {"path": ".git/config", "content": "x"}, {}),
    "edit": ("edit_file", {"path": "a.py", "old": "1", "new": "2", "all": True}, {}),
    "edit outside": ("edit_file", {"path": "~/x", "old": "1", "new": "2"}, SHOWN),
    "list": ("list_files", {}, {}),
    "search": ("search", {"pattern": "a+", "glob": "*.py"}, {}),
    "exec": ("exec", {"argv": ["make", "test", ""], "timeout_s": 5}, {}),
    "exec network": ("exec", {"argv": ["curl", "x"], "access": "network"}, SHOWN),
    "exec hosts": ("exec", {"argv": ["pip"], "access": "network", "hosts": ["PyPI.org", "a.b:8443"]}, SHOWN),
    "exec unsandboxed": ("exec", {"argv": ["ls"], "access": "unsandboxed"}, {**SHOWN, "program": PROGRAM}),
    "exec cwd": ("exec", {"argv": ["ls"], "cwd": "../out"}, {}),
    "exec access": ("exec", {"argv": ["ls"], "access": "root"}, {}),
    "exec long": ("exec", {"argv": ["ls"], "timeout_s": 9999}, {"timeout_s": 60, "output_bytes": 100}),
    "shell": ("shell", {"script": "set -e\n\techo ‘x’\n", "cwd": "src"}, {}),
    "shell no undo": ("shell", {"script": "true"}, {"unprotected": "the disk is full"}),
    "shell hosts": ("shell", {"script": "true", "hosts": ["a.b"]}, {}),
    "shell push": ("shell", {"script": "git push origin HEAD:x"}, {"tree": PUSH_TREE, **SHOWN}),
    "push": ("exec", {"argv": ["git", "push", "origin", "HEAD:main"]}, {"remote_refs": REFS, **SHOWN}),
    "push force": ("exec", {"argv": ["git", "push", "-f", "backup", "HEAD:x", "main"]}, {"target": SEEN}),
    "push secret": ("exec", {"argv": ["git", "push", "https://u:p@host/x.git", "HEAD:y"]}, {}),
    "push others": ("exec", {"argv": ["git", "push"]}, {"target": Target("u:x", NAMED, "/r", others=2)}),
    "push refused": ("exec", {"argv": ["git", "push", "--all"]}, {"target": None}),
    "push delete": ("exec", {"argv": ["git", "push", "origin", ":main"]}, {"target": TARGET, "head": HEAD}),
    "check": ("check", {"command": "make test"}, {}),
    "check no undo": ("check", {"command": "make test"}, {"unprotected": "too large", "snapshot": "s1.aa"}),
}
HASHES = {
    "read": "1d258f462d7a861f0ec8b26b9fccab20d25ea6bc080c3ed847a4e0071a6834be:ced34a4974819c8f",
    "read outside": "bf8bc0716e53243483afb617f3f9c7715b3a65c993e21ecaa01b90cf41d96fbd:f24fabb0ce4e483e",
    "read own": "b73e22921ad3c223462efa1a5ceaa5bbf6d6166a3018957d3cee0bb655cf6757:04fd022fc5e16531",
    "read surrogate": "76d2e2b2425cb6ee97422e105424fb47bf68bdaa00237dc5ad9e483c56a22b59:21e0e8baabb1ddbd",
    "write": "634c1865dbe46e3470a0a9efe9b4927ff9655d4259d57d21fb3fe243ea4adf69:393573d58fa642f3",
    "write no undo": "b00987411ef9d9eed94a21cb8d617d510912bbbbb61bfef96dca684a818683ce:a47d4e359d846787",
    "write git": "9d0f76a57ff8d4927b34cddbcd66167d0f81479c8e76f2dc1337f23001d7b045:560c1972498be15c",
    "edit": "9a4d57877947939762ac32100e26e171083e65751d1a3a267865557d7eb1e620:22ab15f4a73ad33d",
    "edit outside": "03e9d7e5359e09295dbb0d1bad43eda1bda762c597eeb88645e2a16d3e43594b:f5d163b073654ddb",
    "list": "f676fa1caf89dac034d4f9be66956d1afc2ff8393354941ab9f01ff74b38a311:466b727405348914",
    "search": "1c840af21fea7b3fa97d5aa68fad91e173f537d8a6e7d3cd6dfe42e0ab3138e7:f1d5520f0ef6d292",
    "exec": "01976f9cda663756fe3c3e5841372dce9127f162f5f84fd651cfe19b6d71953b:49cbe40dc97edd88",
    "exec network": "239579f0b2be81017425a441b7113b6e9a2efd1e3e7c093fc9088e0408cd86e2:5e977b0e49380bb6",
    "exec hosts": "cd52689f0136479881d86ad9d8ae30c39797d6e8f1c7421d108feb5957f6cb2d:44e35d278c5ea992",
    "exec unsandboxed": "63ac7832851a295ed0b9fb68fa932e7becf3cdb751c5c4cbff0ced3b64095710:c3615fea3823745c",
    "exec cwd": "7bf2573146c56e81bb7a7fdb3996f6a96c87abfc58a96d6ede236c3bb9c630e6:00941969abc9e849",
    "exec access": "de7baa478e8456c966d8317b511e878005934f593cc14dc2d8d5dac4b4ffb425:0e40962384a8bede",
    "exec long": "1cf31af84659ac60554ccf875c34d9e6330b981df5fa543062789febca3b3939:c0a2f279d8df2457",
    "shell": "1a406c44853250ee7fa6f59d1e766ecf6ced7e136782311213c1724225bf5a85:0e177a198b6ed613",
    "shell no undo": "ad13f27cc5db0e05c5859f7e90ffa0d17e9bcf97829d444cc8de166f578e455b:b1a809c656fb893b",
    "shell hosts": "8139abb7b90eff98c176a0a3cbe51afb733967f52fe8c1585283109d3a420a7e:eda40063c8ba2b6a",
    "shell push": "94c3a5bee380a6bed3720078190634507edf3f3f1b0f9641625d417ea5d9011a:2152aea4085a13fd",
    "push": "4204804f6eebc0c6e81069fe94837b18b72f6e9f7e196e3b20605098111504c9:8f799221f72156f0",
    "push force": "79af401b80455b28b2014f6e83832a696029203f0a2f17985ed4ae49ffcd0dc7:5ac3cda517c6a1ad",
    "push secret": "ecf7d79ddf8eab38efe16512dabe7ba2f742144b19199bd8dcc27f60acf7c8f9:e1328b391e0f7c67",
    "push others": "dd59ec2a80ea3a7d91d650852c86bf63fb4a07375cd8ea43c23603fd3cf27ff8:15ced0eb5e81bc3b",
    "push refused": "376911e888e9ca5ca096b656842ceac0f24bac69f9a188a333ab65c0baa42db7:571637989560a9ae",
    "push delete": "9c5832cf2a66d97d91803b7f50902e2d625e70a58d097a5274876df4d2f76a7e:1089119aaa008fa1",
    "check": "d17122c79dd44bd81f0d9fd55cf7283cf9c920682dc5c883035e183f50c1fc98:8090c10d4e504dd3",
    "check no undo": "4e1dfb619a0bf44b8a675ec8ce5d042c985e8d466b0b114acc02bc14ff964b61:6f0c1bf0925d43c6",
    "blob": "4138056a64e2e367e40ae7dd9aa55a7637425edb328c2dec7f0832ce5bf8d965:564c7421fcf1494f",
}
"""By name: the hash of the action and, after the colon, the beginning of the SHA-256 of its text in the log."""


def wire(name: str, **more: Any) -> dict[str, Any]:
    tool, given, changed = CORPUS[name]
    return build_action("abcdefghij", "c7.0", "toolu_1", tool, given, facts(**changed), **more).to_wire()


def marks(action: dict[str, Any]) -> str:
    return f"{action_hash(action)}:{hashlib.sha256(json.dumps(action).encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("name", CORPUS)
def test_the_hash_and_the_recorded_text_of_an_action_stay(name: str) -> None:
    assert marks(wire(name)) == HASHES[name]


def test_an_input_that_is_a_blob_keeps_its_hash_too() -> None:
    assert marks(wire("write", input_blob=InputBlob("d" * 64, 70000))) == HASHES["blob"]


@pytest.mark.parametrize("name", CORPUS)
def test_an_action_comes_back_from_its_wire_form_byte_for_byte(name: str) -> None:
    text = json.dumps(wire(name))
    assert json.dumps(from_wire(json.loads(text)).to_wire()) == text


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("read", "path", None),
        ("read", "v", 2),
        ("read", "v", True),
        ("read", "tool", 7),
        ("read", "kind", "spell"),
        ("read", "timeout_s", True),
        ("exec", "argv", []),
        ("exec", "argv", ["ls", 1]),
        ("exec", "env", {"PATH": 1}),
        ("exec", "sandbox", "none"),
        ("exec", "input", []),
        ("shell", "script", None),
        ("push", "refspecs", [["a", "b"]]),
        ("push", "force", "no"),
        ("push", "url", None),
        ("push", "local", []),
    ],
)
def test_what_is_no_action_is_named(name: str, key: str, value: object) -> None:
    with pytest.raises(BadAction, match=f"lacks or misnames '{key}'"):
        from_wire({**wire(name), key: value})


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_no_object_is_no_action(value: object) -> None:
    with pytest.raises(BadAction, match="no object"):
        from_wire(value)
