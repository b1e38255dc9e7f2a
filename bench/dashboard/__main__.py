"""What each page of the dashboard costs a browser, on a made-up day of traffic; and the picture in docs/.

    python bench/dashboard [--requests N] [--data-dir DIR] [--picture docs/dashboard.png]

Prints for every page: requests, kilobytes of answers, milliseconds until nothing loads any more, and of those the
milliseconds of script, style and layout in the browser; of three loads the least. Needs Chromium.
"""

import argparse
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from dashboard.browser import Browser, Page, find_browser  # noqa: E402 - after the path is set
from dashboard.site import PASSWORD, Site, serve  # noqa: E402

from gateway import bundle  # noqa: E402

PAGES = (
    "overview", "traffic", "alerts", "shield", "shield/rules", "keys", "agents", "fleet", "posture", "cost", "audit",
    "audit/reports", "settings", "settings/options",
)  # fmt: skip
PICTURE = (1280, 880)
LOADS = 3
WIDTHS = (9, 8, 7, 11, 10, 11)


def main() -> None:
    """Make the day, sign in, open every page anew, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--requests", type=int, default=100_000, help="rows of traffic")
    parser.add_argument("--data-dir", type=Path, help="a day that is there already, with its first-credentials.txt")
    parser.add_argument("--picture", type=Path, help="where to write the picture of the first page")
    options = parser.parse_args()
    path = find_browser()
    if path is None:
        sys.exit("bench/dashboard: no Chromium on this host")
    with tempfile.TemporaryDirectory() as folder:
        data_dir = options.data_dir or Path(folder) / "data"
        if options.data_dir is None:
            command = [sys.executable, "-m", "gateway", "demo-data", "--data-dir", str(data_dir)]
            subprocess.run([*command, "--requests", str(options.requests)], cwd=ROOT, check=True, capture_output=True)
        site = Site(serve(data_dir))
        browser = Browser(path)
        try:
            measure(browser, site, data_dir, options.picture)
        finally:
            browser.close()
            site.served.process.stop()


def measure(browser: Browser, site: Site, data_dir: Path, picture: Path | None) -> None:
    """Print what each page takes, the quickest of some loads; write the picture if it is wanted."""
    sign_in(site, data_dir)
    sizes = [len(bundle.read(f"gateway/dashboard/{name}")) for name in bundle.names("gateway/dashboard")]
    print(f"{len(sizes)} files, {sum(sizes) / 1000:.0f} kB")
    print(f"{'page':<18}{'requests':>9}{'kB':>8}{'ms':>7}{'script ms':>11}{'style ms':>10}{'layout ms':>11}")
    for path in PAGES:
        loads = [load(browser, site, path) for _ in range(LOADS)]
        quickest = [min(values) for values in zip(*loads, strict=True)]
        print(f"{path:<18}" + "".join(f"{value:>{width}.0f}" for value, width in zip(quickest, WIDTHS, strict=True)))
    if picture is not None:
        page = opened(browser, site)
        page.goto(f"{site.base}/#/overview")
        page.settle()
        take_picture(page, picture)
        page.close()


def load(browser: Browser, site: Site, path: str) -> tuple[float, ...]:
    """Open a page in a fresh tab and return the numbers of its line."""
    page = opened(browser, site)
    page.call("Performance.enable")
    page.goto(f"{site.base}/#/{path}")
    page.settle()
    page.run("new Promise(done => requestIdleCallback(done))")
    found = {one["name"]: one["value"] for one in page.call("Performance.getMetrics")["metrics"]}
    count, size, until = page.run(
        "(all => [all.length + 1, all.reduce((sum, one) => sum + one.encodedBodySize, 0), "
        "Math.max(...all.map(one => one.responseEnd))])"
        "(performance.getEntriesByType('resource'))"
    )
    page.close()
    names = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration")
    return count, size / 1000, until, *(found[name] * 1000 for name in names)


def opened(browser: Browser, site: Site) -> Page:
    """Return a fresh tab of somebody who is signed in."""
    page = browser.page()
    page.call("Network.setCookie", name="service_session", value=site.cookies["admin"][0], url=site.base)
    return page


def sign_in(site: Site, data_dir: Path) -> None:
    """Sign in with the first password and change it; or with the other, where that was done before."""
    text = (data_dir / "first-credentials.txt").read_text()
    first = dict(line.split(": ", 1) for line in text.splitlines())["password"]
    try:
        site.sign_in("admin", first)
    except AssertionError:
        site.sign_in("admin")
        return
    site.ask("POST", "/api/auth/password", {"current_password": first, "new_password": PASSWORD})
    site.ask("POST", "/api/trust-audits", {})


def take_picture(page: Page, path: Path) -> None:
    """Write what the first page shows, as small a file as the pixels allow."""
    page.size(*PICTURE)
    page.run("localStorage.setItem('gateway.onboarding', '1'); location.reload()")  # without the steps of a new gateway
    page.settle()
    page.run("new Promise(done => setTimeout(done, 1500))")
    page.screenshot(path, whole=False)
    path.write_bytes(repacked(path.read_bytes()))
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def repacked(png: bytes) -> bytes:
    """Compress the pixels of a PNG as far as it goes, and leave out what is no pixel."""
    place, pixels, head = 8, b"", b""
    while place < len(png):
        size = int.from_bytes(png[place : place + 4])
        kind, data = png[place + 4 : place + 8], png[place + 8 : place + 8 + size]
        head = data if kind == b"IHDR" else head
        pixels += data if kind == b"IDAT" else b""
        place += 12 + size
    packed = zlib.compress(zlib.decompress(pixels), 9)
    chunks = ((b"IHDR", head), (b"IDAT", packed), (b"IEND", b""))
    return png[:8] + b"".join(
        len(data).to_bytes(4) + kind + data + zlib.crc32(kind + data).to_bytes(4) for kind, data in chunks
    )


if __name__ == "__main__":
    main()
