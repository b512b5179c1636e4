"""Every policy decides what it did when the golden plans were made.

Where plans are meant to change, ``python -m golden renew`` in tests/ writes them down anew, and the
commit says why.
"""

from __future__ import annotations

import pytest

from golden.cases import cases
from golden.check import differences

CASES = cases()
MOST = 20


@pytest.mark.parametrize("case", CASES)
def test_a_policy_decides_what_it_did(case: str) -> None:
    assert [*differences(case, CASES[case], every=False)][:MOST] == []
