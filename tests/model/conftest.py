"""Hypothesis replays the same examples on every run."""

from hypothesis import HealthCheck, settings

settings.register_profile("exact", derandomize=True, deadline=None, max_examples=300, database=None,
                          suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
settings.load_profile("exact")
