"""The page in a real browser."""

from __future__ import annotations

import shutil

import pytest

pytest.importorskip("tests.training.requirements")


from liere.report.report_files import write_report
from liere.report.result_table import result_table
from tests.report.report_data import make_comparison, make_pictures

pytest.importorskip("matplotlib")
sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs a browser: chromium, chromium-browser or google-chrome")

# The lowest contrast (WCAG 2) between text and its background.
LEAST_CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => {
    const [r, g, b] = parse(color).slice(0, 3).map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let node = element; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if ((parse(color)[3] ?? 1) === 1) return color;
    }
    throw new Error("no background");
  };
  let least = { contrast: Infinity };
  for (const element of document.body.querySelectorAll("*")) {
    if (![...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    const style = getComputedStyle(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const [high, low] = [luminance(color), luminance(behind(element))].sort((a, b) => b - a);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < least.contrast) least = { contrast, text: element.textContent.slice(0, 40), color };
  }
  return least;
}"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Open the page; everything that goes wrong is collected in its `troubles`."""
    path = write_report(make_comparison(), make_pictures(), tmp_path_factory.mktemp("report"))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        opened = browser.new_page()
        opened.troubles = []
        opened.on("console", lambda message: opened.troubles.append(message.text))
        opened.on("pageerror", lambda error: opened.troubles.append(str(error)))
        opened.on("requestfailed", lambda request: opened.troubles.append(f"failed: {request.url[:80]}"))
        opened.on(
            "request",
            lambda request: (
                None
                if request.url == path.as_uri() or request.url.startswith("data:")
                else opened.troubles.append(request.url)
            ),
        )
        opened.goto(path.as_uri())
        yield opened
        browser.close()


def test_nothing_goes_wrong_and_nothing_is_fetched(page):
    page.reload()
    page.wait_for_load_state("networkidle")
    assert page.troubles == []


def test_the_table_shows_every_number(page):
    rows = page.locator(".results tbody tr").all()
    shown = [[" ".join(cell.split()) for cell in row.locator("th, td").all_inner_texts()] for row in rows]
    assert shown == result_table(make_comparison()).texts


def test_the_best_are_bold(page):
    weights = page.locator(".results td strong").evaluate_all(
        "all => all.map((one) => getComputedStyle(one).fontWeight)"
    )
    assert weights == ["700"] * 5


def test_images_are_decoded(page):
    widths = page.locator("img").evaluate_all("all => all.map((image) => image.complete && image.naturalWidth)")
    assert len(widths) == 46
    assert all(widths)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_and_is_legible(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    assert page.locator("svg").evaluate_all(f"all => all.every((one) => one.getBoundingClientRect().right <= {width})")
    assert page.evaluate(LEAST_CONTRAST)["contrast"] >= 4.5
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
