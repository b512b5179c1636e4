"""Names each test that fails as soon as it does: a run that is cut short gives no summary."""

from __future__ import annotations

import pytest


class _Names:
    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            words = str(getattr(report.longrepr, "reprcrash", "")).replace("\n", " ")
            self._terminal.write_line(f"\nFAILED {report.nodeid} ({report.when}): {words[:300]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """A worker has no terminal: only who collects the results says it."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None:
        config.pluginmanager.register(_Names(terminal))
