"""Verdicts: what is said of how a run ended and of its estimated error."""

from dataclasses import replace

import hyrespinn as hp
import jax.numpy as jnp
import pytest
from hyrespinn.estimate import Estimate
from hyrespinn.run.summary import in_brief, in_full
from hyrespinn.run.verdict import judge
from hyrespinn.training.march import Outcome
from hyrespinn.training.records import Clock

CONFIG = hp.configure(hp.problems.Heat1D())
GOOD = Estimate({"u": 1e-5}, ({"u": 1e-6}, {"u": 1e-5}), {"t": 1.0, "x": 0.5}, 0.1, 0.0)
BAD = replace(GOOD, errors={"u": 0.1}, parts=({"u": 0.1}, {"u": 0.1}))
OUTCOME = Outcome((jnp.zeros(2),), (), "converged", 5, Clock(), {"total": 0.1}, "", (), True)


def codes(verdict):
    return [caution.code for caution in verdict.cautions]


@pytest.mark.parametrize(
    ("outcome", "estimate", "judgement", "cautions"),
    [
        ({}, GOOD, "solved", []),
        ({"status": "time_limit"}, GOOD, "solved", []),
        ({}, BAD, "unresolved", ["resolution"]),
        ({"status": "time_limit"}, BAD, "stopped", ["resolution"]),
        ({"status": "time_limit", "complete": False}, GOOD, "stopped", []),
        ({"status": "interrupted"}, None, "stopped", []),
        ({"status": "diverged"}, None, "failed", ["diverged"]),
        ({}, None, "unresolved", ["not-estimated"]),
        ({}, replace(GOOD, sensitivity=1.0), "unresolved", ["not-unique"]),
        ({}, replace(BAD, parts=({"u": 1e-4}, {"u": 0.1})), "unresolved", ["growth", "resolution"]),
    ],
)
def test_judgements(outcome, estimate, judgement, cautions):
    verdict = judge(CONFIG, replace(OUTCOME, **outcome), estimate)
    assert (verdict.judgement, codes(verdict)) == (judgement, cautions)


def test_what_limits_a_network_is_its_optimiser_where_that_might_have_gone_on():
    network = replace(CONFIG, method="network")
    assert codes(judge(network, replace(OUTCOME, status="completed"), BAD)) == ["optimiser"]
    assert codes(judge(network, OUTCOME, BAD)) == ["resolution"]


def test_an_error_without_a_bound_is_none():
    assert GOOD.as_json() == {"u": 1e-5}
    assert replace(GOOD, errors={"u": float("inf")}).as_json() == {"u": None}
    assert replace(GOOD, sensitivity=1.0).as_json() == {"u": None}


def test_a_summary_says_what_limits_a_run_and_what_to_do(tmp_path):
    warning = {"code": "resolution", "text": "Too coarse.", "remedy": "Take more kernels."}
    result = {
        "problem": "heat", "verdict": "unresolved", "status": "converged", "message": "",
        "estimated_error": {"u": None}, "rel_l2": None, "relative_residual": {}, "steps": 5,
        "seconds": {"training": 1.0, "compilation": 1.0}, "n_params": 5, "n_params_window": 5,
        "warnings": [warning],
    }  # fmt: skip
    lines = in_full(result, tmp_path)
    assert lines[0] == "heat: unresolved (converged)"
    assert "  Too coarse. Take more kernels." in lines
    assert "  estimated relative error of u: unbounded" in lines
    brief = in_brief(result, tmp_path)
    assert len(brief) == 3
    assert brief[0] == "heat: unresolved (converged); Too coarse"
