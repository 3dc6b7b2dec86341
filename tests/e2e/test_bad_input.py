"""Bad input of every kind: a clear message, the documented exit code, nothing lost, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.events import types as t
from tests.fleetlib import COMMAND, HOLD, KEY, Fleet, fleet, git, make_repository, play, wait_for


def refused(f: Fleet, code: int, *args: str) -> str:
    done = f.run(*args, check=False)
    text = done.stderr + done.stdout
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert text.strip()
    return text


def test_repositories_that_are_none(tmp_path: Path) -> None:
    with fleet() as f:
        assert str(tmp_path / "nowhere") in refused(f, 5, "launch", "--repo", str(tmp_path / "nowhere"), "--goal", "x")
        (tmp_path / "plain").mkdir()
        assert "not a git repository" in refused(f, 5, "launch", "--repo", str(tmp_path / "plain"), "--goal", "x")
        empty = tmp_path / "empty"
        empty.mkdir()
        git(empty, "init", "-q")
        assert "commit" in refused(f, 5, "launch", "--repo", str(empty), "--goal", "x")
        assert f.run("ls").stdout.startswith("no sessions yet")


def test_dirty_repository_is_told_and_untouched() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "dirty")
        (repo / "README.md").write_text("changed\n")
        sid = f.launch(play("Nothing to do."), repo=repo)
        f.wait_state(sid, "done")
        created = f.state(sid).created
        assert created is not None
        assert created.dirty == 1
        assert (repo / "README.md").read_text() == "changed\n"


def test_usage_errors_name_the_argument() -> None:
    with fleet() as f:
        assert "goal" in refused(f, 2, "launch", "--goal", "  ")
        assert "--goal-file" in refused(f, 2, "launch", "--goal-file", "/nowhere/x")
        assert "nosuch" in refused(f, 4, "show", "nosuch")
        assert "nosuch" in refused(f, 4, "approve", "nosuch")
        assert "there is no rule 'nosuch'" in refused(f, 4, "revoke", "nosuch")
        assert "there is no role 'nosuch'\nknown: coder" in refused(f, 4, "roles", "nosuch")
        assert "watchfloor: no session 'nosuch'" in refused(f, 4, "verify", "nosuch")
        assert "terminal" in refused(f, 2)


def test_what_is_meant_is_said_where_a_word_too_many_or_none_was_typed() -> None:
    with fleet() as f:
        asks = f.launch(play("Shall I?"))
        cap = f.approval(f.launch(play("Nothing."), more=("--cap-usd", "0")))["approval_id"]
        question = f.approval(asks)["approval_id"]
        spends = f.run("launch", "--goal", play("No."), "--cap-usd", "0", "--repo", str(f.repository())).stdout
        assert "spends nothing, so it asks you at once" in spends
        assert "leave --hash out" in refused(f, 2, "approve", cap, "--hash", "0" * 12, "--raise-to", "1")
        assert "reason is empty" in refused(f, 2, "deny", cap, "  ")
        assert "--reason: is empty" in refused(f, 2, "reject", cap, "--reason", "")
        assert f"stands in quotes: watchfloor deny {cap} " in refused(f, 4, "deny", cap, "not", "needed")
        assert {cap, question} <= {view["approval_id"] for view in f.json("approvals")}
        assert "it has no plan" in f.run("plan", asks, "--json", check=False).stderr
        assert f.json("policy", "check") == [{"ignored": [], "problem": "", "rules": 0}]


NAMED = (("launch", "--goal-file"), ("policy", "check"), ("policy", "try"), ("spec", "check"))


def test_a_file_that_is_named_is_answered_at_once_whatever_it_is(tmp_path: Path) -> None:
    """Nothing waits for a writer that never comes, nor reads what has no end."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with (tmp_path / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with fleet() as f:
        for verb in NAMED:
            assert "into which nobody writes" in refused(f, 2, *verb, str(tmp_path / "pipe"))
            assert "Is a directory" in refused(f, 2, *verb, str(tmp_path))
            for name in ("zero", "sparse"):
                assert "it has more than" in refused(f, 2, *verb, str(tmp_path / name))
        script = f"{COMMAND} spec check <(sleep 0.3; echo '- Run `true` - exits with code 0')"
        piped = subprocess.run(["bash", "-c", script], env=f.env, capture_output=True, text=True, timeout=60)
        assert piped.stdout == "1 of 1 criteria are decided by a command, a file or a request\n", piped.stderr


@pytest.mark.parametrize(
    ("words", "named", "why"),
    [
        (("launch", "--goal", "x", "--cap-usd", "lots"), "--cap-usd", "amount in USD"),
        (("launch", "--goal", "x", "--cap-usd=-1"), "--cap-usd", "amount in USD"),
        (("launch", "--goal", "x", "--cap-wall", "soon"), "--cap-wall", "duration"),
        (("launch", "--goal", "x", "--cap-tokens=-5"), "--cap-tokens", "0 or more"),
        (("launch", "--goal", "x", "--cap-calls=-5"), "--cap-calls", "0 or more"),
        (("launch", "--goal", "x", "--check", " "), "--check", "empty"),
        (("continue", "x", "--check", ""), "--check", "empty"),
        (("judge", "calibrate", "--most-usd", "lots"), "--most-usd", "amount in USD"),
        (("logs", "x", "--kind", "want"), "--kind", "known: alarm, approach, approval,"),
        (("logs", "x", "--kind", "tool.nosuch"), "--kind", "tool.nosuch"),
        (("snooze", "x", "--for", "1"), "--for", "duration"),
        (("cost", "extra"), "usage: watchfloor cost", "extra"),
        (("supervisor",), "start|stop|status", "required"),
        (("completion",), "bash|zsh|fish|tcsh", "required"),
    ],
)
def test_what_was_typed_wrong_is_named_before_anybody_is_asked(
    tmp_path: Path, words: tuple[str, ...], named: str, why: str
) -> None:
    folders = {f"WATCHFLOOR_{name}": str(tmp_path / name.lower()) for name in ("STATE", "RUNTIME", "CONFIG")}
    (tmp_path / "config").mkdir(mode=0o700)
    env = os.environ | folders | {"ANTHROPIC_API_KEY": KEY}
    done = subprocess.run([COMMAND, *words], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert named in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "state").exists(), "no fleet was started for it"


def test_several_are_archived_each_for_itself_and_a_wrong_name_changes_nothing() -> None:
    with fleet() as f:
        clean = [f.launch(play("Nothing to do."), name=name) for name in ("one", "two")]
        dirty = f.launch(play([("write_file", {"path": "new.txt", "content": "x"})], "Done."), name="unsaved")
        for sid in (*clean, dirty):
            f.wait_state(sid, "done")
        refused(f, 4, "rm", "one", "nosuch")
        said = refused(f, 5, "rm", "one", "unsaved", "two")
        assert "unsaved: the worktree holds 1 uncommitted file (new.txt)" in said
        assert "one: removed" in said
        assert "two: removed" in said
        assert [row["name"] for row in f.json("ls")] == ["unsaved"]
        assert {row["name"] for row in f.json("ls", "--archived")} == {"one", "two"}
        names = f.run("ls", "--archived", "--names").stdout.split()
        assert set(names) == {*clean, "one", "two"}


def test_no_key_and_wrong_key_need_you_at_once() -> None:
    with fleet() as f:
        f.folders.config_file.write_text(f'[model]\ndefault = "claude-haiku-5-5"\nbase_url = "{f.base_url}"\n')
        sid = f.launch(play("Done."))
        item = f.approval(sid)
        assert item["kind"] == "auth"
        assert f.base_url in item["title"]
        assert "set ANTHROPIC_API_KEY in a terminal" in item["detail"]["todo"]
        assert str(f.folders.config_file) in item["detail"]["todo"]
        card = f.run("approvals", item["approval_id"]).stdout
        assert all(words in card for words in ("WHAT TO DO", "try again:   watchfloor", "stop it:     watchfloor deny"))
        other = f.launch(play("Done."), name="waits-too")
        assert "set ANTHROPIC_API_KEY" in f.run("launch", "--repo", str(f.repository()), "--goal", play("Done.")).stdout
        wait_for("all stand in line", lambda: sum("request" in r["detail"] for r in f.json("ls", "--json")) >= 2)
        assert [a["approval_id"] for a in f.json("approvals", "--json")] == [item["approval_id"]], "one for the fleet"
        f.extra["ANTHROPIC_API_KEY"] = KEY
        third = f.launch(play("Done."), name="brings-it")
        for each in (sid, other, third):
            f.wait_state(each, "done")
        assert f.json("approvals", "--json") == [], "a key that is set needs no answer"
    with fleet(key="sk-wrong") as f:
        sid = f.launch(play("Done."))
        item = f.approval(sid)
        assert item["kind"] == "auth"
        requests = [r for r in f.records(sid) if r.type == "model.request"]
        assert len(requests) == 1
        (f.folders.config / "key").write_text(KEY)
        f.wait_state(sid, "done")
        assert f.json("approvals") == [], "a key that works needs no answer"


def test_unknown_model_and_unreachable_endpoint() -> None:
    with fleet() as f:
        sid = f.launch(play("Done."), more=("--model", "claude-nonesuch-9"))
        row = f.wait_state(sid, "waiting", "failed", "parked")
        assert "claude-nonesuch-9" in row["detail"]
        other = f.launch(play([("list_files", {})], "Done."), name="cut-off")
        f.wait_state(other, "done")
        f.simulator.kill()
        f.simulator.wait()
        third = f.launch(play("Done."), name="unreachable")
        wait_for("a failed attempt on record", lambda: any(r.type == "model.failed" for r in f.records(third)), 30)
        assert f.row(third)["state"] in ("running", "limited", "waiting", "parked")


def test_bad_configuration_names_file_line_and_key() -> None:
    with fleet() as f:
        f.launch(play("Done."))
        good = f.folders.config_file.read_text()
        f.folders.config_file.write_text(good + "[caps]\nsesion_usd = 3\n")
        text = refused(f, 6, "launch", "--goal", "x")
        assert "sesion_usd" in text
        assert f"line {len(good.splitlines()) + 2}" in text
        assert str(f.folders.config_file) in text
        wait_for(
            "the supervisor to report it and go on", lambda: "sesion_usd" in f.run("doctor", check=False).stdout, 30
        )
        assert "the last good one stays in force" in f.run("doctor", check=False).stdout
        f.run("supervisor", "stop")
        shutil.rmtree(f.folders.state / "last-good")
        f.run("ls")
        wait_for(
            "it to say that none was ever good",
            lambda: "none was ever good here" in f.run("doctor", check=False).stdout,
            30,
        )


def test_bad_policy_keeps_the_last_good_one() -> None:
    with fleet(policy='[[rule]]\nverdict = "deny"\ntool = "exec"\nreason = "no programs here"\n') as f:
        sid = f.launch(play([("exec", {"argv": ["true"]})], "Done."), name="first")
        f.wait_state(sid, "done")
        assert any(isinstance(r.body, t.ToolEnded) and r.body.status == "denied" for r in f.records(sid))
        f.folders.policy_file.write_text('[[rule]]\nverdict = "perhaps"\n')
        wait_for("the bad policy to be reported", lambda: "policy.toml" in f.run("doctor", check=False).stdout, 30)
        again = f.launch(play([("exec", {"argv": ["true"]})], "Done."), name="second")
        f.wait_state(again, "done")
        assert any(isinstance(r.body, t.ToolEnded) and r.body.status == "denied" for r in f.records(again))


def test_unusable_state_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "WATCHFLOOR_STATE": str(tmp_path / "file" / "state"),
        "WATCHFLOOR_CONFIG": str(tmp_path / "c"),
    }
    done = subprocess.run([COMMAND, "ls"], env=env, capture_output=True, text=True)
    assert done.returncode == 3
    assert str(tmp_path / "file") in done.stderr
    assert "Traceback" not in done.stderr


def test_state_from_a_newer_version() -> None:
    with fleet() as f:
        (f.folders.state / "VERSION").write_text('{"format": 999}')
        text = refused(f, 3, "ls")
        assert "999" in text
        assert "newer" in text


def test_corrupt_log_disturbs_nobody_else() -> None:
    with fleet() as f:
        bad = f.launch(play("Done."), name="bad")
        good = f.launch(play("Done."), name="good")
        f.wait_state(bad, "done")
        f.wait_state(good, "done")
        f.run("supervisor", "stop")
        segment = f.folders.session(bad).log / "000001.jsonl"
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 0x04
        segment.write_bytes(data)
        assert f.row_or_start(good)["state"] == "done"
        done = f.run("verify", "--json", check=False)
        assert done.returncode == 1
        assert "seq" in done.stdout
        third = f.launch(play("Done."), name="third")
        f.wait_state(third, "done")


def test_corrupt_index_is_rebuilt() -> None:
    with fleet() as f:
        sid = f.launch(play("Done."))
        f.wait_state(sid, "done")
        f.run("supervisor", "stop")
        f.folders.index.write_bytes(b"this is no database" * 100)
        assert f.row_or_start(sid)["state"] == "done"
        assert f.violations() == []


def fill(path: Path) -> None:
    """Write until the file system is full."""
    with path.open("wb", buffering=0) as out:
        while True:
            out.write(b"x" * 4096)


@pytest.mark.sandbox
def test_full_disk_stops_new_effects_and_goes_on_later() -> None:
    """The state folder on a small file system that is filled while an agent works."""
    import os

    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    with fleet() as f:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(f.folders.state)], check=True)
        try:
            sid = f.launch(play([HOLD], *[[("exec", {"argv": ["true", str(i)]})] for i in range(7)], "Done."))
            f.wait_event(sid, "tool.started")
            ballast = f.folders.state / "ballast"
            with pytest.raises(OSError, match="No space"):
                fill(ballast)
            f.release(sid)
            wait_for(
                "the row or the log to stand still or say why", lambda: f.run("ls", check=False).returncode == 0, 20
            )
            ballast.unlink()
            f.wait_state(sid, "done", timeout=90)
            assert f.run("verify").returncode == 0
            assert f.violations() == []
        finally:
            f.stop()
            subprocess.run(["umount", "-l", str(f.folders.state)], check=True)


def test_a_goal_from_a_file_keeps_its_line_ends() -> None:
    with fleet() as f:
        (f.root / "goal.md").write_bytes(b"Fix these:\r\n- one\r\n")
        sid = str(f.json("launch", "--repo", str(f.repository()), "--goal-file", str(f.root / "goal.md"))[0]["sid"])
        intent = f.state(sid).intent
        assert intent is not None
        assert intent.goal == "Fix these:\r\n- one\r\n"
