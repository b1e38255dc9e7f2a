"""Start the program. The matcher is loaded first, since what the command line imports imports it."""

import signal
import sys


def main() -> int:
    """Run the command line and return its exit code."""
    from gateway import bundle, settings

    try:
        report = bundle.load_native(settings.native_choice())
    except bundle.BundleDamaged as error:
        sys.stderr.write(f"gateway: the archive is damaged, so it does not start: {error}. Get a fresh copy.\n")
        return 2
    from gateway.cli import main as cli

    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # the launcher's, for the time of loading
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return cli.main(sys.argv[1:], report)


if __name__ == "__main__":
    sys.exit(main())
