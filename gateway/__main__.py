"""Start the program. The matcher is loaded first, since what the command line imports imports it."""

import gc
import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    gc.disable()  # as the archive does at its very start
    from gateway import bundle, settings

    try:
        report = bundle.load_native(settings.variable_text("GATEWAY_NATIVE"))
    except bundle.BundleDamaged as error:
        sys.stderr.write(f"gateway: the archive is damaged, so it does not start ({error}). Get a fresh copy.\n")
        return 2
    try:
        from gateway.cli import main as cli

        options = cli.read(sys.argv[1:])
    except ImportError as error:
        # A Python built without ssl or sqlite3, or one whose libraries do not fit each other.
        sys.stderr.write(f"gateway: this Python lacks what the gateway needs ({error}). Use a complete Python 3.11+.\n")
        return 2

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # the launcher's, for the time of loading
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.run(options, report)


if __name__ == "__main__":
    sys.exit(main())
