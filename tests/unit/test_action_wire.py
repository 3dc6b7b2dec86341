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
    "read": "84a9a576a658d2c8b4b41bea9a486ec4240830f49075078309e0916095970d2a:30d26fbdad7fd3e5",
    "read outside": "a5a2425e9108f62b36edfd67d82b08544481175f19a43b5f2956bc1f75daba0f:b1ea19c1d2db85a0",
    "read own": "c8eaff43b02b9aa7cc168fda57404e5eaced37a764a7874dd894476812e08b0a:cbacbf9f81311565",
    "read surrogate": "e7d9597470601df8517151e4dad24c30c784bfbb07140c4d12ee5706812dcc0f:9a57f3953d726c95",
    "write": "6cbdac465465c880ef57c4dad00f543c21031eaa12b346cd0da7a730508e0a9a:ca129ccd6d9d8e7d",
    "write no undo": "382a6fc98bafe0893791c5d22ec21c2ee1e7b7d74b798426795678fba9f9d221:2384e5bd3f5ddae5",
    "write git": "25df4fef32d4ed55dced9261155c3e5eb9a1d3de4ac9bb78cbb2edb1048ae4b8:bd6b21686d369394",
    "edit": "77702d7263b6e8aa4c29d86872bed65cc4bb046a6148240c7e6f2d6abe8a5c8c:65a7f4383534db1f",
    "edit outside": "a4cf7eaa733b0313c35af58a0467e3cc55bbce5a25fa54328a6765ab8412a63f:23cff5478765f56e",
    "list": "b81203bd4cd5d36a3af2cecbfed5c0c717d4c6b4880ffa03b1d73f70af7ff38f:be1ceab5eea0c249",
    "search": "f14e2b94c52719a36e9d39372a48aefd63b3618b9fb48c920a16dc5f202d75b0:298839fa817a4887",
    "exec": "eff5ca3247500589532c38761816986341a1dc4ecec500ad10e0a706aa33f7f9:1b4bcf2b7d9c0bef",
    "exec network": "3b3ae389d8101a4f59a2a6f51ec7d7802ad4fdb6fc4cf663cec6b87f640b34ba:24d314194c5b8eb9",
    "exec hosts": "e2448c712711c9499855695087a27262eb61e06958708e2237a1ae34e95d55ea:ee7a67847339ed50",
    "exec unsandboxed": "79954574e129fb0e15b0060703abec4d075ece5b32c01e268d8106872f653462:929daca6b2c5bf0a",
    "exec cwd": "53546789ab08701dd4f801e355aa7048458187cb5b575c52411a733eb992f026:a4f255b5b1e8a5bf",
    "exec access": "e6414c644d91fe4f87d203680180fafe2e0f251497192412298772fa8cde1d47:8b4bee3a013b176c",
    "exec long": "a3a3576fbc9652d901b8abb25a158e4f7159178dc4336b0b35ce5fd842c8e003:e4b8da10eb0bd9dd",
    "shell": "b1f690045f1aa7a3ea7493d75540fea8512a085b3f439364ac63277b2b866428:fc723510c6593f4e",
    "shell no undo": "99883862b0695f4eebf2bcc4f8f3852b3903842a814e1a302eb14ef1152838d3:8417a0c3b15e21df",
    "shell hosts": "9c111883541bbcc41148f4e24036d0d61e1991ea509e8f71803a05001ba4886a:91bc9ef5abfe2a21",
    "shell push": "ceffc55db086c4d63569bb3dc442bdba10c8227d1e9069fefb96df8e138ceeb3:5f99782a0c5d5832",
    "push": "67ffb6c8a40d6f893092ded6ea55120131506d4919274757fbb4a5fd0bc1c05b:90773be8837a99dc",
    "push force": "77171f5c42d6ad8853260cd8a8a21fa6a3770972dfec6fcb1a85fc2712fec330:50377c3c54732072",
    "push secret": "fab0cd0a962de135c81d929b89023438dd14e177d72148374384d6742cf77187:d07e2a352747e625",
    "push others": "9e11f22315ce9f2796da266df2cbb1017737e7a0804bc2b8aaf1706286bbcb7c:f921435198b06a8d",
    "push refused": "fe2cc896f6800d39a96ce8bdb09be796ef0b20029d9a4729d87bfe1a6afca366:225ce6cfc24d6ddc",
    "push delete": "4cc8cf1cdb25a859a46f713b19cd4aff1d99f3ed216fb41a0cbc3bb88a4e24ef:32457b9f4b4a9bab",
    "check": "923516fdc545378b92f6e8eb350cd42313e07207233c4d62e89d6c2489c9d275:94c1d800d05dd88a",
    "check no undo": "72d6c14f4cc15fb400914f76ff4de007daf914b65d6e5c64b9881a525c2ba90e:ce358659c67335d1",
    "blob": "16cd1431adc196ac6dd1950f9cef49524cdfe82a9647d6b01abc84a5f4a02b12:f3d9439fba671ce8",
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
