"""``python -m symad`` is the command ``symad``."""

import sys

from symad.cli import main

sys.exit(main())
