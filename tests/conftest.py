"""What holds for every test: no property is judged by the time an example takes, which is the machine's and not the product's."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("watchfloor", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("watchfloor")
