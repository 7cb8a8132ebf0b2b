"""Let `python -m ensize` be `ensize`."""

from ensize.cli import main

if __name__ == "__main__":
    main()
