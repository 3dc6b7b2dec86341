"""The wire form of an action and its hash: what was recorded once must keep its hash for ever."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from harness.events.action import BadAction, InputBlob, LocalRemote, action_hash, from_wire
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
    "exec unfenced": ("exec", {"argv": ["ls"], "access": "unfenced"}, {**SHOWN, "program": PROGRAM}),
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
    "read": "96262edf1aed29acb25b9846b084f72fd43c7309c748341b06212aa7d6fdec71:7e2372b6d92e6e53",
    "read outside": "5d726f83ad112868dc3c88cc6a516a4327a670b26c6e136fb6ec4f0fc9327981:4542097e01bf5028",
    "read own": "5a88aa133848e1f5a376f50c48530cc5f4b37bb30e08d141315d5872a6438ad2:b61a1d0c0e450da4",
    "read surrogate": "028c838c41dfc2cce204f23d3bdcccbe8b005fd9378d6f72ef0a9df44c550ff4:59df023fa1ca3703",
    "write": "a20144ecd6f79af8e661bc16cf85d3486249409306496c39b462fc8cb18c0ba6:8cc3d76632e2c5c5",
    "write no undo": "0626f5d08d9ea753b16615c994a085cc0b84b77df381fd80f99ac111176229b7:53e22b457e947fac",
    "write git": "1f9e15423cafddf08971551482854972acd1970c6eba15596c19551285282c02:2d2c19fa53a9f7d9",
    "edit": "379e46070a4c4944089c3e2d4a79fb60a8e4e3c53fc81ac6829382a03ed408df:41509b67d6862bf7",
    "edit outside": "93d4ff110c7fbba40ca3758789f044f084ae4b1afb2c56a4848d3167abb06da0:3c5203bc8b5b2735",
    "list": "ffa4979373899e9b09d4073b6c630cd62dac88d47173aa4ae440155fa56e26fc:80d1c0e1a3eb6aef",
    "search": "3e2be6e099028453b96d27e94aa00dd68d772208d5c4de1d8c87f6db70cae4ad:5b00facdd61d66f2",
    "exec": "c2e471dd1f68622f504e28869a7f670318f339dd116d7a725c746440db9a565b:ce69097fa2d19590",
    "exec network": "b382c38cf8111efc2ad44fea8d7db34cca9d7a113345d6cfebb1c5a1e4e46df5:1f649bd0d016d85a",
    "exec hosts": "1715dec688294153da0e60af495841aace0ceda8ab31ae41c5451cf820733e82:e9a2e47dcd503746",
    "exec unfenced": "e041ecb84e60dc9391e4968a0b1d78aabe90c55403d299d965b5c845fe1605fb:e944150ce74322e3",
    "exec cwd": "36cbb432dba4ba765f5e664dcaf01e8e79133ba6699257fa40ed9b2318a07ac0:1f174c31ff19af79",
    "exec access": "528ac87f041ec7880884bc9ff9fc8c015725c50561ba0c430b05e7b588207ab0:1a97dd2694f80edf",
    "exec long": "176c1d81003bb2a75e0f5c9a119999344a9b495ff9b8bcd0b44453a0aa65f931:e6145d32a9f8b037",
    "shell": "e8e82556ff63805857f7fd39bf5134260d7ede75be99ebf53504af109182ca16:3b72ca4f2fd6dc62",
    "shell no undo": "e3371c12f871aa763968f3fe375aa694e4ac479f6eb07c9dba4c8771b3ce4e38:0dd8bec81933a34d",
    "shell hosts": "e4106cca5e603214e45367e9c0d13921062a215404cfb4c375b1bbc2402da4d6:44045283ecaa3fbf",
    "shell push": "f8ae65cb54c15b0cbeb512efe4787971c6220829962c2cac4b6d9bcafa204abf:fefb49dde22d7a90",
    "push": "a924cf4f3b67a099ca8cfe298a141df9fdd8ec6b2f1c1be134bc22f895a2517c:a3b4064c44a729fb",
    "push force": "cd732ceb11738a58746b6e1761761d5e2650e8956820dc00e8c7d7178ebc3d29:1c7320dde235d160",
    "push secret": "6c1f62d16ddf41d973519674a39d9ab525d60114504d38af8ef50233ef1f2330:8f59db7f51e1c906",
    "push others": "44034b4ea71ef472460a7c9523e1cf9450ada09479a3c8ae22f8dfcdd658c04f:6256f35f56ad6c65",
    "push refused": "b05a582a59980193652c6fa424d3def516f122d3fd0db7fc5dd1dfa75d69874f:19147f60315dffa6",
    "push delete": "ccd7357fd195005d77c89e76096a98ffdf02771c45d9a7dfe51d2ed6cd08bc36:6a948292dad94462",
    "check": "31833fc18a337ce24e4b37c7b556adb30f2c5632e1b4914062b2009c13403f8d:684f3d441d39fabc",
    "check no undo": "eb5e0e87a2f8408160e453f7cf82704677a8d391513573fd6b4d6f21ffdbb33d:0648c1b546f1b193",
    "blob": "bcab445fcbc63bcb8ebec4336792aa9525ebc32daecf9ccb25681ba6afb2719a:26513f9bbdeaf76c",
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
        ("exec", "fence", "none"),
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
