"""How hypothesis runs here: the same examples every time, whatever else the machine is doing.

``HYPOTHESIS_PROFILE=search`` looks for new examples instead.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same",
    deadline=None,  # the tests hold no timings
    derandomize=True,
    max_examples=40,  # of each property, for there are hundreds; a search looks at more
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "search", parent=settings.get_profile("same"), derandomize=False, max_examples=500
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
