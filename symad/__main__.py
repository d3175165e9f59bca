"""``python -m symad`` is the command ``symad``."""

import sys


def main() -> int:
    """Run it."""
    from symad_command import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
