"""When a test that waits is called hung.

What must come is waited for, however busy the machine is: a test that passes never waits for this
limit. It is far above what anything here takes, so that load alone lets no test fail, and far below
what a run of all tests may take.
"""

HANG_S = 300.0
