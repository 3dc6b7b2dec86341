"""Hosts have one spelling; whatever a resolver could read in another way is refused. Rules match them host by host."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import from_wire
from harness.domain.addresses import BadAddress, is_address, join_host, normal_host, split_host
from harness.policy import hosts
from harness.policy.decide import decide
from harness.policy.policy_file import PolicyError, parse_policy
from harness.sandbox import egress_proxy

GOOD = {
    "pypi.org": ("pypi.org", None),
    "PyPI.org:443": ("pypi.org", 443),
    "localhost": ("localhost", None),
    "xn--bcher-kva.example": ("xn--bcher-kva.example", None),
    "192.0.2.1:80": ("192.0.2.1", 80),
    "[2001:DB8:0::1]:8080": ("2001:db8::1", 8080),
    "[::1]": ("::1", None),
    "a-b.c3.d": ("a-b.c3.d", None),
}
BAD = (
    "evil\0.ok.com|ok.com\0|bücher.example|ok.com.|.ok.com|ok..com|-a.com|a-.com|a_b.com|127.1|2130706433|0x7f.0.0.1"
    "|0177.0.0.1|127.0.0.01|1.2.3.4.5|256.1.1.1|1.2.3|0x7f000001|me@ok.com|ok.com/|http://ok.com|ok.com:|ok.com:0"
    "|ok.com:65536|ok.com:080|ok.com:8"
    " 0|::1|2001:db8::1|[::1|[::1]80|[::ffff:127.0.0.1]|[fe80::1%eth0]|[127.0.0.1]|*.ok.com| ok.com|ok.com"
    " |ok.com\n|１２７.0.0.1|ok。com||:80"
)


@pytest.mark.parametrize(("text", "parts"), GOOD.items())
def test_a_host_has_one_spelling(text: str, parts: tuple[str, int | None]) -> None:
    assert split_host(text) == parts
    assert normal_host(normal_host(text)) == normal_host(text) == join_host(*parts)


@pytest.mark.parametrize("text", [*BAD.split("|"), "a" * 64 + ".com", "a." * 127 + "com"])
def test_what_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(BadAddress):
        split_host(text)


@given(st.text(alphabet="0123456789abcdefxk.-:[]%@ \0", max_size=24))
def test_what_is_taken_for_a_name_is_no_address_to_anybody(text: str) -> None:
    try:
        host, _ = split_host(text)
    except BadAddress:
        return
    if is_address(host):
        assert str(ipaddress.ip_address(host)) == host
    else:
        assert set(host) <= set("0123456789abcdefghijklmnopqrstuvwxyz-.")
        assert not host.rpartition(".")[2].isdigit()


PRIVATE = (
    "0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.168.1.1 224.0.0.1 240.0.0.1 255.255.255.255"
    " :: ::1 fe80::1 fe80::1%lo fc00::1 fec0::1 ff02::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 2002:7f00:1::1 64:ff9b::7f00:1"
    " 64:ff9b::a00:1 2001:db8::1"
)


@pytest.mark.parametrize("address", PRIVATE.split())
def test_addresses_of_this_machine_and_of_private_networks_are_not_outward(address: str) -> None:
    assert not egress_proxy.outward(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_public_addresses_are_outward(address: str) -> None:
    assert egress_proxy.outward(address)


def test_a_name_is_resolved_once_and_only_its_public_addresses_count() -> None:
    asked: list[str] = []

    def resolver(*found: str) -> Any:
        def resolve(host: str, port: int) -> list[str]:
            asked.append(f"{host}:{port}")
            return list(found)

        return resolve

    assert egress_proxy.addresses("ok.example", 443, resolver("127.0.0.1", "1.1.1.1", "10.0.0.1")) == ["1.1.1.1"]
    assert asked == ["ok.example:443"]
    with pytest.raises(egress_proxy.Refused, match="this machine or a private network"):
        egress_proxy.addresses("rebind.example", 80, resolver("127.0.0.1", "::1"))
    assert egress_proxy.addresses("localhost", 80, resolver("1.1.1.1")) == ["127.0.0.1", "::1"]
    assert egress_proxy.addresses("127.0.0.1", 80, resolver("1.1.1.1")) == ["127.0.0.1"]
    assert len(asked) == 2


COVERED = [
    ("pypi.org", "pypi.org", True),
    ("pypi.org", "pypi.org:443", True),
    ("pypi.org", "pypi.org:8443", False),
    ("pypi.org:443", "pypi.org", False),
    ("pypi.org:443", "pypi.org:443", True),
    ("pypi.org:*", "pypi.org:8443", True),
    ("*.pypi.org", "files.pypi.org", True),
    ("*.pypi.org", "pypi.org", False),
    ("*", "evil.com", True),
    ("*", "evil.com:22", False),
    ("*:*", "evil.com:22", True),
    ("*", "localhost", False),
    ("*:*", "localhost:5432", False),
    ("*", "127.0.0.1", False),
    ("*", "[::1]", False),
    ("127.0.0.*", "127.0.0.1", False),
    ("localhost:5432", "localhost:5432", True),
    ("127.0.0.1:5432", "127.0.0.1:5432", True),
    ("[::1]:80", "[::1]:80", True),
    ("[::1]", "[::1]:80", True),
]


@pytest.mark.parametrize(("pattern", "named", "covered"), COVERED)
def test_an_allow_rule_covers_what_it_spells(pattern: str, named: str, covered: bool) -> None:
    assert hosts.covers(pattern, named) is covered


@pytest.mark.parametrize(
    "pattern",
    ["pypi.org*", "*pypi.org", "PyPI.org", "pypi.org.", "a.*.org", "pypi.org:x", "127.0.0.*", "[::*]", ":80", ""],
)
def test_an_allow_rule_that_would_let_foreign_hosts_in_is_no_rule(pattern: str) -> None:
    text = f'[[rule]]\nverdict = "VERDICT"\neffect = "network:{pattern}"\n'
    with pytest.raises(PolicyError, match="effect"):
        parse_policy(text.replace("VERDICT", "allow"), "policy.toml")
    assert parse_policy(text.replace("VERDICT", "deny"), "policy.toml").rules


@pytest.mark.parametrize(
    "pattern", ["pypi.org", "*.pypi.org:443", "*", "*:*", "localhost:5432", "[::1]:80", "127.0.0.1:*"]
)
def test_an_allow_rule_may_spell_a_host_or_all_below_one(pattern: str) -> None:
    assert parse_policy(f'[[rule]]\nverdict = "allow"\neffect = "network:{pattern}"\n', "policy.toml").rules


def verdict(effects: list[str], *rules: tuple[str, str]) -> str:
    text = "".join(f'[[rule]]\nverdict = "{word}"\neffect = "{effect}"\n' for word, effect in rules)
    action = {"tool": "exec", "argv": ["x"], "effects": effects, "kind": "exec"}
    return decide(from_wire(action), parse_policy(text, "policy.toml")).verdict


def test_the_open_network_and_named_hosts_are_different_things_to_allow() -> None:
    assert verdict(["network"], ("allow", "network:*")) == "ask"
    assert verdict(["network"], ("allow", "network:*:*")) == "ask"
    assert verdict(["network:pypi.org"], ("allow", "network")) == "ask"
    assert verdict(["network"], ("allow", "network")) == "allow"
    assert verdict(["network:pypi.org"], ("allow", "network:pypi.org")) == "allow"
    assert verdict(["network:pypi.org", "network:evil.com"], ("allow", "network:pypi.org")) == "ask"


@pytest.mark.parametrize("word", ["deny", "ask"])
def test_to_deny_or_ask_is_meant_widely(word: str) -> None:
    everything = ("allow", "*")
    assert verdict(["network:pypi.org:8443"], everything, (word, "network")) == word
    assert verdict(["network:pypi.org:8443"], everything, (word, "network:pypi.org")) == word
    assert verdict(["network:127.0.0.1"], everything, (word, "network:127.*")) == word
    assert verdict(["network:[::1]:80"], everything, (word, "network:[::1]")) == word
    assert verdict(["network"], everything, (word, "network:evil.com")) == word
    assert verdict(["network:pypi.org"], everything, (word, "network:evil.com")) == "allow"
    assert verdict(["network:evil.com"], everything, (word, "network:evil.com:22")) == "allow"
    assert verdict(["unsandboxed"], everything, (word, "network")) == "allow"


HEADS = {
    b"GET http://a.example/x?y HTTP/1.1\r\nHost: b\r\nAccept: */*\r\nProxy-Connection: keep-alive": (
        "a.example",
        80,
        b"GET /x?y HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nAccept: */*\r\n\r\n",
    ),
    b"POST http://A.example:81?q HTTP/1.0\r\nContent-Length: 1": (
        "a.example",
        81,
        b"POST /?q HTTP/1.1\r\nHost: a.example:81\r\nConnection: close\r\nContent-Length: 1\r\n\r\n",
    ),
    b"CONNECT [::1]:443 HTTP/1.1": ("::1", 443, b""),
}


@pytest.mark.parametrize(("head", "wanted"), HEADS.items())
def test_requests_are_passed_on_in_a_form_of_our_own(head: bytes, wanted: tuple[str, int, bytes]) -> None:
    request = egress_proxy.parse(head + b"\r\n\r\n")
    assert (request.host, request.port, request.head) == wanted


@given(st.binary(max_size=80))
def test_any_other_bytes_are_refused_with_a_status(head: bytes) -> None:
    with pytest.raises(egress_proxy.Refused):
        egress_proxy.parse(b"X" + head.replace(b"http://", b"") + b"\r\n\r\n")
