"""What people see while a run goes on."""

from __future__ import annotations

import io

from hyrespinn.run.progress import LiveReporter, PlainReporter
from rich.console import Console


def row(step):
    return {"stage_steps": step, "seconds": 0.1 * step, "loss_total": 0.5, "loss_residual_u": 0.25}


def shown(reporter_of, *, windows, terminal=False):
    text = io.StringIO()
    with reporter_of(Console(file=text, width=160, force_terminal=terminal)) as reporter:
        for k in range(windows):
            reporter.window(f"{k + 1} of {windows}", 0.1 * k, 0.1 * (k + 1))
            reporter.stage("trust-region", 12, 0, 0.0)
            reporter.row(row(6))
            reporter.row(row(12))
        if not windows:
            reporter.stage("adam", 12, 0, 0.0)
            reporter.row(row(12))
    return text.getvalue()


def test_hundreds_of_windows_are_a_few_lines():
    text = shown(PlainReporter, windows=300)
    assert len(text.splitlines()) == 1
    assert "window 1 of 300" in text
    assert "time 0–0.1" in text


def test_stages_of_all_of_the_time_are_announced_and_their_ends_are_shown():
    first, last = shown(PlainReporter, windows=0).splitlines()
    assert first == "adam: 12 steps"
    assert "12/12" in last


def test_a_terminal_shows_the_window_in_place():
    text = shown(LiveReporter, windows=3, terminal=True)
    assert "3 of 3" in text.splitlines()[-2]
