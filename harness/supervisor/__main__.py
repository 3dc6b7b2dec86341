"""``python -m harness.supervisor`` starts the guardian, which starts the supervisor."""

import sys

from harness.supervisor.guardian import main

sys.exit(main())
