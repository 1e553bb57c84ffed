"""For all tests: a run in which nothing was tested is not a success; how a command line is run."""

import pytest


@pytest.fixture
def run(capsys):
    """Runs a command line; returns (exit code, stdout, stderr)."""
    from eva_hw.cli.main import main

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err
    return call


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Turns success without a single passed test (all skipped, or none selected) into pytest's "no tests" exit code."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:  # a worker of pytest-xdist has no reporter
        return
    if exitstatus == pytest.ExitCode.OK and not reporter.stats.get("passed"):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
