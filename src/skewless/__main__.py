"""`python -m skewless` is the command `skewless`."""

from skewless.cli import main

if __name__ == "__main__":
    main()
