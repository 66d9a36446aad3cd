"""The former name of the command ``python -m bentpipe_fuzz.stp``."""

from bentpipe_fuzz.stp.__main__ import main

if __name__ == "__main__":
    main()
