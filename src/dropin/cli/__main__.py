"""`python -m dropin.cli`."""

from dropin.cli import main

main()
