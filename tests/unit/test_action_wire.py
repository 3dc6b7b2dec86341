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
    "exec unfenced": "63ac7832851a295ed0b9fb68fa932e7becf3cdb751c5c4cbff0ced3b64095710:c3615fea3823745c",
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
EARLIER = {
    "read": "96262edf1aed29acb25b9846b084f72fd43c7309c748341b06212aa7d6fdec71",
    "read outside": "5d726f83ad112868dc3c88cc6a516a4327a670b26c6e136fb6ec4f0fc9327981",
    "read own": "5a88aa133848e1f5a376f50c48530cc5f4b37bb30e08d141315d5872a6438ad2",
    "read surrogate": "028c838c41dfc2cce204f23d3bdcccbe8b005fd9378d6f72ef0a9df44c550ff4",
    "write": "a20144ecd6f79af8e661bc16cf85d3486249409306496c39b462fc8cb18c0ba6",
    "write no undo": "0626f5d08d9ea753b16615c994a085cc0b84b77df381fd80f99ac111176229b7",
    "write git": "1f9e15423cafddf08971551482854972acd1970c6eba15596c19551285282c02",
    "edit": "379e46070a4c4944089c3e2d4a79fb60a8e4e3c53fc81ac6829382a03ed408df",
    "edit outside": "93d4ff110c7fbba40ca3758789f044f084ae4b1afb2c56a4848d3167abb06da0",
    "list": "ffa4979373899e9b09d4073b6c630cd62dac88d47173aa4ae440155fa56e26fc",
    "search": "3e2be6e099028453b96d27e94aa00dd68d772208d5c4de1d8c87f6db70cae4ad",
    "exec": "c2e471dd1f68622f504e28869a7f670318f339dd116d7a725c746440db9a565b",
    "exec network": "b382c38cf8111efc2ad44fea8d7db34cca9d7a113345d6cfebb1c5a1e4e46df5",
    "exec hosts": "1715dec688294153da0e60af495841aace0ceda8ab31ae41c5451cf820733e82",
    "exec unfenced": "e041ecb84e60dc9391e4968a0b1d78aabe90c55403d299d965b5c845fe1605fb",
    "exec cwd": "36cbb432dba4ba765f5e664dcaf01e8e79133ba6699257fa40ed9b2318a07ac0",
    "exec access": "528ac87f041ec7880884bc9ff9fc8c015725c50561ba0c430b05e7b588207ab0",
    "exec long": "176c1d81003bb2a75e0f5c9a119999344a9b495ff9b8bcd0b44453a0aa65f931",
    "shell": "e8e82556ff63805857f7fd39bf5134260d7ede75be99ebf53504af109182ca16",
    "shell no undo": "e3371c12f871aa763968f3fe375aa694e4ac479f6eb07c9dba4c8771b3ce4e38",
    "shell hosts": "e4106cca5e603214e45367e9c0d13921062a215404cfb4c375b1bbc2402da4d6",
    "shell push": "f8ae65cb54c15b0cbeb512efe4787971c6220829962c2cac4b6d9bcafa204abf",
    "push": "a924cf4f3b67a099ca8cfe298a141df9fdd8ec6b2f1c1be134bc22f895a2517c",
    "push force": "cd732ceb11738a58746b6e1761761d5e2650e8956820dc00e8c7d7178ebc3d29",
    "push secret": "6c1f62d16ddf41d973519674a39d9ab525d60114504d38af8ef50233ef1f2330",
    "push others": "44034b4ea71ef472460a7c9523e1cf9450ada09479a3c8ae22f8dfcdd658c04f",
    "push refused": "b05a582a59980193652c6fa424d3def516f122d3fd0db7fc5dd1dfa75d69874f",
    "push delete": "ccd7357fd195005d77c89e76096a98ffdf02771c45d9a7dfe51d2ed6cd08bc36",
    "check": "31833fc18a337ce24e4b37c7b556adb30f2c5632e1b4914062b2009c13403f8d",
    "check no undo": "eb5e0e87a2f8408160e453f7cf82704677a8d391513573fd6b4d6f21ffdbb33d",
}
"""The hash of the same action where the agent's name for its call was spelled ``tool_use_id``."""


def wire(name: str, **more: Any) -> dict[str, Any]:
    tool, given, changed = CORPUS[name]
    return build_action("abcdefghij", "c7.0", "toolu_1", tool, given, facts(**changed), **more).to_wire()


def earlier(action: dict[str, Any]) -> dict[str, Any]:
    """The same action as logs before ``ref`` spell it."""
    return {"tool_use_id" if name == "ref" else name: value for name, value in action.items()}


def marks(action: dict[str, Any]) -> str:
    return f"{action_hash(action)}:{hashlib.sha256(json.dumps(action).encode()).hexdigest()[:16]}"


@pytest.mark.parametrize("name", CORPUS)
def test_the_hash_and_the_recorded_text_of_an_action_stay(name: str) -> None:
    assert marks(wire(name)) == HASHES[name]


@pytest.mark.parametrize("name", CORPUS)
def test_an_action_of_an_earlier_log_keeps_its_hash_and_is_read(name: str) -> None:
    assert action_hash(earlier(wire(name))) == EARLIER[name]
    assert from_wire(earlier(wire(name))) == from_wire(wire(name))


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
