"""The live page in a real browser."""

from __future__ import annotations

import time

import pytest

from skewless.live import HotKey, Page, PlanFacts
from tests.browser import started, tab
from tests.live_sights import sight

HOSTILE = [
    "<img src=x onerror=\"document.title='taken'\">",
    "<script>document.title='taken'</script>",
    "</td></table><h1>taken",
    "مرحبا بالعالم",
    "a\\u202eb",
    "x" * 80 + "… (5,000 characters, 0badcafe)",
    "",
    None,
]


@pytest.fixture(scope="module")
def browser():
    with started() as browser:
        yield browser


@pytest.fixture
def page():
    page = Page()
    yield page
    page.close()


def drawn(opened, selector="#queries .within"):
    return opened.locator(selector).first.get_attribute("d")


def changes(opened, selector, before):
    """Wait until a path is drawn otherwise."""
    script = (
        "([selector, before]) => document.querySelector(selector)?.getAttribute('d') !== before"
    )
    opened.wait_for_function(script, arg=[selector, before], timeout=10_000)


def test_bars_lines_and_figures_change_with_every_batch(browser, page):
    page.show(sight("a", 0, loads=[10, 10, 10, 10], ended_s=100.0))
    with tab(browser, page.url) as opened:
        opened.wait_for_selector("#queries .within")
        figure = opened.locator(".figures dd").first
        assert figure.text_content() == "1.00"
        for batch in range(1, 4):
            bars, line = drawn(opened), drawn(opened, "#lines .series")
            loads = [40 - batch, batch, 1, 1]
            page.show(sight("a", batch, loads=loads, ended_s=100.0 + batch, max_over_mean=3.5))
            changes(opened, "#queries .within", bars)
            changes(opened, "#lines .series", line)
        opened.wait_for_function(
            "() => document.querySelector('.figures dd').textContent === '3.50'"
        )
        assert "micro-batch 3" in opened.locator(".about").text_content()
        assert drawn(opened, "#queries .excess").count("M") == 1  # one bar above the even share
        assert {url.split("/")[2] for url in opened.asked} == {f"127.0.0.1:{page.port}"}


@pytest.mark.parametrize("workers", [1, 50, 500])
def test_as_many_workers_as_there_are_have_a_bar_and_fit_into_the_page(browser, page, workers):
    loads = [100 + worker % 7 for worker in range(workers)]
    page.show(sight("a", 0, loads=loads))
    for width in (360, 1400):
        with tab(browser, page.url, viewport={"width": width, "height": 800}) as opened:
            opened.wait_for_selector("#queries .within")
            box = opened.locator(".bars svg").get_attribute("viewBox")
            assert box == f"0 0 {workers} 100"
            path = drawn(opened)
            tops = path.count("H") if workers >= 120 else path.count("M")
            assert tops == workers
            fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
            assert opened.evaluate(fits)


@pytest.mark.parametrize("width", [1000, 1400])
def test_charts_beside_each_other_are_level_however_long_the_lines_above(browser, page, width):
    schemes = {"clicks by user": "graded-planned:learn=100000", "key": "key", "part": "partial"}
    for name, scheme in schemes.items():
        page.show(sight(name, 100, loads=[20_000] * 50, scheme=scheme))
    with tab(browser, page.url, viewport={"width": width, "height": 900}) as opened:
        opened.wait_for_selector(".card:nth-child(3)")
        cards, charts = (
            [element.bounding_box() for element in opened.locator(what).all()]
            for what in (".card", ".bars svg")
        )
        levels = {(card["y"], chart["y"]) for card, chart in zip(cards, charts, strict=True)}
        assert len(levels) == len({card["y"] for card in cards})


def test_keys_of_strangers_are_text(browser, page):
    hot = [HotKey(name, 100 - i, 1) for i, name in enumerate(HOSTILE)]
    page.show(sight("<i>query</i>", 0, loads=[800, 200], hot=hot, scheme="<b>graded</b>"))
    with tab(browser, page.url, viewport={"width": 360, "height": 800}) as opened:
        opened.wait_for_selector(".keys tbody tr")
        cells = opened.locator(".keys td.key")
        assert cells.all_text_contents() == [*HOSTILE[:-2], "(empty)", "(null)"]
        assert cells.nth(5).get_attribute("title") == HOSTILE[5]
        assert opened.locator(".keys td.key bdi").count() == len(HOSTILE)
        assert opened.locator(".keys .none").all_text_contents() == ["(empty)", "(null)"]
        assert opened.locator("#queries img, #queries script, #queries h1, main b").count() == 0
        assert opened.title() == "skewless live"
        assert opened.locator("h2").text_content() == "<i>query</i>"
        assert opened.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )


def test_what_is_not_known_is_said(browser, page):
    page.show(sight("a", 0, replication=None))
    page.show(sight("b", 0, hot=[HotKey("k", 5, 2)], plan=PlanFacts(7, 3, 4)))
    page.show(sight("c", 0, plan=PlanFacts(5, None, None)))
    with tab(browser, page.url) as opened:
        opened.wait_for_selector(".card:nth-child(3)")
        said = opened.locator(".plan").all_text_contents()
        assert said[0].startswith("Hottest keys: not reported")
        assert said[0].endswith("Plan: this scheme keeps no list of keys.")
        assert said[1] == "Plan: names 7 keys, splits 3, the widest over 4 workers."
        assert said[2].endswith("Plan: names 5 keys; each task decides how widely to split them.")
        assert opened.locator(".figures").first.locator("dd").nth(4).text_content() == "–"
        assert opened.locator(".keys td").all_text_contents()[1:] == ["50.0 %", "2 of 2"]


def test_queries_are_side_by_side_and_switched_by_keyboard(browser, page):
    for batch in range(3):
        page.show(sight("a", batch))
        page.show(sight("b", batch))
    page.tell("b", "failed", "ValueError: <b>no</b>")
    with tab(browser, page.url) as opened:
        opened.wait_for_selector(".card:nth-child(2)")
        assert opened.locator("h2").all_text_contents() == ["a", "b"]
        assert opened.locator(".card .state").all_text_contents() == ["running", "failed"]
        assert opened.locator(".why").all_text_contents() == ["", "ValueError: <b>no</b>"]
        assert opened.locator("#lines figure").first.locator(".series").count() == 2
        opened.keyboard.press("Tab")
        assert opened.evaluate("document.activeElement.textContent").startswith("a")
        opened.keyboard.press("Space")
        opened.wait_for_function("() => document.querySelectorAll('.card').length === 1")
        assert opened.locator("h2").all_text_contents() == ["b"]
        assert opened.locator("#lines figure").first.locator(".series").count() == 1
        pressed = opened.locator("#switch button")
        assert [b.get_attribute("aria-pressed") for b in pressed.all()] == ["false", "true"]
        page.show(sight("a", 3))  # what was switched off stays off
        page.show(sight("b", 3))
        opened.wait_for_function("() => document.querySelector('.state').textContent === 'running'")
        assert opened.locator(".card").count() == 1
        opened.keyboard.press("Space")
        opened.wait_for_function("() => document.querySelectorAll('.card').length === 2")


def test_workers_and_moments_are_read_by_keyboard(browser, page):
    for batch in range(5):
        page.show(sight("a", batch, loads=[30, 10], ended_s=100.0 + batch, seconds=1.0 + batch))
    with tab(browser, page.url) as opened:
        opened.wait_for_selector("#lines .value")
        opened.locator(".bars svg").focus()
        opened.keyboard.press("ArrowRight")
        opened.keyboard.press("ArrowRight")
        assert (
            opened.locator(".readout").text_content().startswith("Worker 1: 10 messages, 0.50 of")
        )
        opened.locator("#lines svg").nth(3).focus()
        assert opened.locator("#lines figure").nth(3).locator(".value").text_content() == "5 s"
        opened.keyboard.press("ArrowLeft")
        opened.wait_for_function(
            "() => document.querySelectorAll('figure .values')[3].innerText === '4 s'"
        )


def test_a_run_that_started_again_takes_the_place_of_the_one_before(browser, page):
    page.show(sight("first run", 0, name="words"))
    page.tell("first run", "failed", "OSError: gone")
    page.show(sight("second run", 1, name="words"))
    with tab(browser, page.url) as opened:
        opened.wait_for_selector(".card")
        assert opened.locator("#switch button").count() == 2
        assert opened.locator(".card .state").all_text_contents() == ["running"]


def test_the_page_finds_a_server_that_was_started_again(browser):
    page = Page()
    page.show(sight("a", 0))
    port = page.port
    with tab(browser, page.url) as opened:
        opened.loses_connection = True
        opened.wait_for_selector("#connection[data-state=live]")
        opened.wait_for_selector(".card")
        page.close()
        opened.wait_for_selector("#connection[data-state=lost]")
        assert opened.locator("h2").all_text_contents() == ["a"], "what was seen stays"
        page = Page(port)
        try:
            page.show(sight("b", 0))
            opened.wait_for_selector("#connection[data-state=live]", timeout=20_000)
            opened.wait_for_function("() => document.querySelector('h2')?.textContent === 'b'")
            assert opened.locator(".card").count() == 1
        finally:
            page.close()


def test_the_browser_keeps_a_bounded_past_and_follows_many_batches(browser, page):
    with tab(browser, page.url) as opened:
        opened.wait_for_selector("#connection[data-state=live]")
        for batch in range(100_000):
            page.show(sight("a", batch, ended_s=float(batch)))
            if batch % 2_000 == 0:
                time.sleep(0.02)
        opened.wait_for_function(
            "() => document.querySelector('.about')?.textContent.includes('micro-batch 99,999')"
        )
        assert drawn(opened, "#lines .series").count("L") == 599


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_and_still_if_that_is_wished(browser, page, scheme):
    page.show(sight("a", 0, loads=[10, 10]))
    with tab(browser, page.url, color_scheme=scheme, reduced_motion="reduce") as opened:
        opened.wait_for_selector("#queries .within")
        back = opened.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        brightness = sum(map(int, back.removeprefix("rgb(").removesuffix(")").split(",")))
        assert (brightness > 384) == (scheme == "light")
        paths = "window.drawn = []; new MutationObserver(found => drawn.push(...found)).observe"
        opened.evaluate(paths + "(document.querySelector('.within'), {attributes: true})")
        before = drawn(opened)
        page.show(sight("a", 1, loads=[15, 5]))
        changes(opened, "#queries .within", before)
        opened.wait_for_timeout(300)
        assert opened.evaluate("drawn.length") == 1
