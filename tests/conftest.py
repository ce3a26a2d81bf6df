"""What holds for every test run."""

import signal

# A shell without job control starts what runs in the background (`make test &`) with Ctrl-C ignored, and children inherit
# that: tests that interrupt a process would wait for nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
