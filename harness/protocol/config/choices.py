"""What some settings may be: for who offers them, too. Standard library only."""

from __future__ import annotations

from typing import Literal, get_args

Fresh = Literal["per-task", "per-iteration", "never"]
FRESH: tuple[str, ...] = get_args(Fresh)
JudgeAt = Literal["end", "task"]
JUDGE_AT: tuple[str, ...] = get_args(JudgeAt)
Screen = Literal["bell", "osc9", "osc777", "off"]
MOST_EVIDENCE_ROUNDS = 20
