"""Tests of the pages in a real Chromium, with the width of a desktop and a phone, in light and dark colours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from streaming.group.printable import printable
from streaming.http.routes import MetricsServer
from streaming.page.addresses import group_address, host_address, topic_address
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.page.timeline.picture import WIDE
from streaming.past.moments import format_moment
from streaming.prometheus.metrics import Exporter
from tests.streaming.groups import member, written
from tests.streaming.page.browser import DESKTOP, PHONE, Scheme, chromium, open_page, save_picture
from tests.streaming.page.scene import (
    CLUSTER,
    HOSTILE_GROUP,
    HOSTILE_NAMES,
    NOW_MS,
    STRATEGIES,
    add_hostile_group,
    scene,
)
from tests.streaming.page.timeline.stored import write_condition, write_gap, write_lag
from tests.streaming.past import history

pytestmark = pytest.mark.slow

STALE_AFTER_MS = 30_000
NO_SUCH = "/groups/no-such"
AT = "1970-01-01T00:00:22"
BEFORE_THE_FIRST_ROW = "/groups/payments?at=1970-01-01T00:00"
NOT_FOUND = (NO_SUCH, BEFORE_THE_FIRST_ROW)
ADDRESSES = (
    "/",
    "/?q=billing",
    "/?find=1&topic=orders",
    "/topics/orders",
    "/hosts/10.4.7.97",
    "/groups/billing",
    "/groups/fraud-detection",
    "/groups/reporting",
    NO_SUCH,
    "/incidents",
    "/incidents?group=clickstream",
    "/groups/clickstream?span=6h",
    f"/?at={AT}",
    f"/groups/payments?at={AT}",
    "/groups/payments?from=1&to=2",
    BEFORE_THE_FIRST_ROW,
    f"/groups/{HOSTILE_GROUP}",
    f"/groups/{HOSTILE_GROUP}?at={format_moment(NOW_MS)}",
    f"/groups/{HOSTILE_GROUP}?from=1&to=2",
    topic_address(HOSTILE_NAMES[0]),
    host_address(HOSTILE_NAMES[0]),
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the complete HTTP port as a monitor does, and yield its address."""
    page_scene = scene(tmp_path_factory.mktemp("tables"))
    write_lag(page_scene.tables, "clickstream", 7_200, 2_400, lambda age: 40 + int(age) % 60, range(24))
    write_lag(page_scene.tables, "clickstream", 1_200, 0, lambda age: 9_000 - 7 * int(age), range(24))
    write_gap(page_scene.tables, "clickstream", 500, 560, 330)
    write_condition(page_scene.tables, "clickstream", "long_commit_gap", 480, 320)
    write_past(page_scene.tables)
    add_hostile_group(page_scene.monitor_state, page_scene.tables)
    cluster = ClusterView(
        CLUSTER,
        lambda: WatchedCluster(CLUSTER, page_scene.monitor_state.view(), NOW_MS, STALE_AFTER_MS),
        RebalanceReader(str(page_scene.tables), CLUSTER, time.monotonic),
    )
    pages = Pages([cluster], STRATEGIES)
    exporter = Exporter([(CLUSTER, page_scene.monitor_state)], lambda: NOW_MS, STALE_AFTER_MS)
    server = MetricsServer("127.0.0.1", 0, exporter.exposition, pages)
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def write_past(tables: Path) -> None:
    """Write a group of 1970 in which one of three members left, and a different one got everything."""
    numbers = range(24)
    before = [member(name, {"orders": [*numbers[place::3]]}) for place, name in enumerate("abc")]
    after = [member("a", {"orders": [*numbers]}), member("b")]
    long_name = "a-group-with-a-long-name-that-does-not-fit-on-a-phone-" * 2
    history.write_life(tables, [written(10, 1, before), written(20, 2, after)], "payments", CLUSTER)
    history.write_life(tables, [written(10, 1, before)], long_name, CLUSTER)
    payments = {"group_id": "payments", "cluster": CLUSTER}
    rows = [history.lag_row(11_000, 7 * number, partition=number, seconds=3.0, **payments) for number in numbers]
    history.write_lag(tables, *rows)
    history.write_status(tables, 11_000, "STALL", **payments)
    history.write_condition(tables, 21_000, "rebalance_storm", active=True, **payments)


def background_colour(browser: Chrome) -> tuple[int, ...]:
    """Return red, green and blue of the background as the browser shows it."""
    colour: str = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return tuple(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_each_page_fits_its_window_violates_no_policy_and_can_be_read(  # noqa: PLR0913, PLR0917 - its cases
    browser: Chrome, site: str, tmp_path: Path, address: str, size: tuple[int, int], scheme: Scheme
) -> None:
    """Wide tables scroll inside the page. A page that scrolls horizontally as a whole is unreadable on a phone.

    Contrast of text to its background: WCAG 2.1, success criterion 1.4.3, also for every cell of the heat map.
    """
    open_page(browser, site + address, size, scheme)
    wide, window = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window <= size[0], "with a larger content, a phone zooms out, and its window becomes larger"
    assert (sum(background_colour(browser)) > 3 * 128) == (scheme == "light")
    messages = [entry["message"] for entry in browser.get_log("browser")]  # type: ignore[no-untyped-call]
    is_404 = [one.startswith(f"{site}{address} ") and "404" in one for one in messages]
    assert all(is_404) if address in NOT_FOUND else messages == []
    for place, ratio in browser.execute_script(CONTRASTS).items():
        assert ratio >= 4.5, place
    save_picture(browser, tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 5_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_text_in_the_timeline_has_enough_contrast_to_its_shape(
    browser: Chrome, site: str, size: tuple[int, int], scheme: Scheme
) -> None:
    """WCAG 2.1, success criterion 1.4.3, for text in SVG: its colour is `fill`, and its background is a shape."""
    for address in ("/groups/clickstream", "/groups/billing"):
        open_page(browser, site + address, size, scheme)
        found = browser.execute_script(SVG_CONTRASTS)
        assert found["texts"] >= 10, "one of the two pictures is visible"
        for place, ratio in found["ratios"].items():
            assert ratio >= 4.5, place


SVG_CONTRASTS = """
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const rgb = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const panel = getComputedStyle(document.querySelector('.timeline')).backgroundColor;
const ratios = {}, svg = [...document.querySelectorAll('svg.tl')].filter(one => one.clientWidth)[0];
const rects = [...svg.querySelectorAll(':scope > rect')].filter(
  one => getComputedStyle(one).fill.startsWith('rgb') && getComputedStyle(one).fillOpacity > 0.5);
const texts = [...svg.querySelectorAll('text')];
for (const text of texts) {
  const box = text.getBBox(), x = box.x + box.width / 2, y = box.y + box.height / 2;
  const under = rects.filter(one => { const b = one.getBBox();
    return b.x <= x && x <= b.x + b.width && b.y <= y && y <= b.y + b.height; }).pop();
  const ink = light(rgb(getComputedStyle(text).fill));
  const ground = light(rgb(under ? getComputedStyle(under).fill : panel));
  const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  const place = text.getAttribute('class') + ' on ' + (under ? under.getAttribute('class') : 'panel');
  ratios[place] = Math.min(ratio, ratios[place] ?? 99);
}
return {texts: texts.length, ratios};
"""


CONTRASTS = """
const channel = c => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const seen = colours => {
  canvas.clearRect(0, 0, 1, 1);
  for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
  return canvas.getImageData(0, 0, 1, 1).data;
};
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const found = {};
for (const element of document.querySelectorAll('body *')) {
  if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
  const grounds = [];
  for (let one = element; one; one = one.parentElement) grounds.unshift(getComputedStyle(one).backgroundColor);
  const under = light(seen(grounds)), ink = light(seen([...grounds, getComputedStyle(element).color]));
  const ratio = (Math.max(ink, under) + 0.05) / (Math.min(ink, under) + 0.05);
  const place = element.tagName + '.' + element.className + '.' + element.parentElement.className;
  found[place] = Math.min(ratio, found[place] ?? 99);
}
return found;
"""


def test_hostile_names_are_shown_and_linked_and_never_run(browser: Chrome, site: str) -> None:
    for name in HOSTILE_NAMES:
        open_page(browser, site)
        browser.execute_script("window.alert = () => { throw 'run'; }")
        link = browser.find_element(By.CSS_SELECTOR, f'a[href="{group_address(name)}"]')
        text = link.text
        link.click()
        assert browser.find_element(By.TAG_NAME, "h1").text.strip('"“”') == text.strip('"“”')
        assert browser.find_elements(By.CSS_SELECTOR, "script, img, iframe, object") == []
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(("kind", "address_of"), [("Topic", topic_address), ("Client host", host_address)])
def test_hostile_topics_and_hosts_are_shown_and_never_run(
    browser: Chrome, site: str, kind: str, address_of: Callable[[str], str]
) -> None:
    """A client chooses its client id and its host name. A record can contain any topic."""
    for name in HOSTILE_NAMES:
        open_page(browser, site + address_of(name))
        title = browser.find_element(By.TAG_NAME, "h1").text
        assert title.startswith(kind)
        assert "".join(printable(name).split()) in "".join(title.split())
        assert browser.find_elements(By.CSS_SELECTOR, "script, img, iframe, object") == []
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("query", ["", f"?at={format_moment(NOW_MS)}"])
def test_hostile_client_ids_are_text_in_tables_and_in_the_timeline(browser: Chrome, site: str, query: str) -> None:
    open_page(browser, f"{site}/groups/{HOSTILE_GROUP}{query}")
    text = browser.find_element(By.TAG_NAME, "body").text
    for name in HOSTILE_NAMES:
        if "\ud800" not in name:
            assert printable(name).strip() in text
    assert browser.find_elements(By.CSS_SELECTOR, "script, img, image, iframe, object, foreignObject") == []
    assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


def test_names_in_the_timeline_end_before_the_bars(browser: Chrome, site: str) -> None:
    """A name of zero-width spaces covered the bars of all members. The font decides how wide a name is."""
    open_page(browser, f"{site}/groups/{HOSTILE_GROUP}")
    found = browser.execute_script(
        "const cut = document.querySelector('#names-wide rect').getBBox().width;"
        "return [...document.querySelectorAll('svg.tl-wide text.tl-name')].map("
        "one => [one.getBBox().width, getComputedStyle(one).clipPath, cut])"
    )
    assert len(found) > 5
    assert max(width for width, _, _ in found) > WIDE.label_width, "this name is cut off"
    assert {(clip, cut) for _, clip, cut in found} == {('url("#names-wide")', WIDE.label_width - 4)}


def test_the_policy_stops_markup_that_was_not_escaped(browser: Chrome, site: str) -> None:
    """If escaping fails, the Content-Security-Policy still forbids scripts."""
    open_page(browser, site)
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = true\">');"
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
    )
    time.sleep(0.5)
    assert browser.execute_script("return window.ran") is None
    refused = " ".join(entry["message"] for entry in browser.get_log("browser"))  # type: ignore[no-untyped-call]
    assert "Content Security Policy" in refused


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("address", ["/groups/billing", "/topics/orders", "/hosts/10.4.7.97"])
def test_a_long_name_wraps_and_a_short_name_does_not(
    browser: Chrome, site: str, address: str, size: tuple[int, int]
) -> None:
    """A client id of 240 characters moved all other columns of its table out of the window."""
    open_page(browser, site + address, size)
    browser.execute_script(
        "for (const name of document.querySelectorAll('.numbers .name')) name.textContent = 'ordersconsumer1';"
    )
    each = "return [...document.querySelectorAll('.numbers .name')].map(one => one.getClientRects().length && "
    one_line = browser.execute_script(each + "Math.round(one.offsetHeight))")
    assert len(one_line) >= 2
    assert len(set(one_line)) == 1
    browser.execute_script(
        "for (const name of document.querySelectorAll('.numbers .name')) name.textContent = 'x'.repeat(240);"
    )
    assert max(browser.execute_script(each + "one.offsetWidth)")) <= 320


def test_a_sort_link_on_a_phone_is_visible_while_it_has_the_focus(browser: Chrome, site: str) -> None:
    """WCAG 2.4.7: a phone hides the header of the list, so the focus disappeared for eight steps of the keyboard."""
    open_page(browser, site, PHONE)
    box = "const one = document.querySelector('.groups thead').getBoundingClientRect(); return [one.width, one.height]"
    assert browser.execute_script(box) == [1, 1]
    browser.find_element(By.CSS_SELECTOR, ".groups thead a").send_keys("")
    width, height = browser.execute_script(box)
    assert width > 200
    assert height > 15
    content = browser.execute_script("return document.documentElement.scrollWidth")
    assert content <= PHONE[0]


def test_a_group_is_found_by_typing_part_of_its_name(browser: Chrome, site: str) -> None:
    open_page(browser, site, PHONE)
    browser.find_element(By.PARTIAL_LINK_TEXT, "Find").click()
    browser.switch_to.active_element.send_keys("ledg\n")
    WebDriverWait(browser, 60).until(lambda page: "q=ledg" in page.current_url)
    rows = browser.find_elements(By.CSS_SELECTOR, ".groups tbody tr")
    assert [row.find_element(By.TAG_NAME, "a").text for row in rows] == ["ledger"]
    browser.find_element(By.PARTIAL_LINK_TEXT, "Find").click()
    assert browser.find_element(By.NAME, "q").get_attribute("value") == "ledg"
