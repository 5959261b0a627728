"""What people type: spec strings and command lines of the commands that start no Spark."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from skewless import route
from skewless.cli import app
from skewless.schemes import SCHEMES, scheme_of
from skewless.simulate.queue.costs import costs_of
from skewless.spec import parameters, split_list
from skewless.streams import stream_of
from tests.fuzz_inputs.mutate import ODD_NUMBERS, ODD_TEXTS, mutated_text
from tests.fuzz_inputs.trial import Trials

STREAM_SPECS = ["zipf:z=1.5,keys=100,messages=2000", "lognormal:mu=1.789,sigma=2.366,messages=2000",
                "countries:skew=80,messages=2000,half=first", "spike:keys=50,messages=2000",
                "drift:z=1.5,keys=100,messages=2000"]  # fmt: skip
COSTS = ["constant:value=1", "evenly:min=1,max=64,values=64", "exponential:mean=1"]
LARGE = 10**7  # messages: more take their time, and may


def scheme_specs(drawn: random.Random) -> str:
    name = drawn.choice(sorted(SCHEMES))
    given = [
        f"{p['name']}={drawn.choice([str(p['default']).lower(), *ODD_NUMBERS])}"
        for p in parameters(SCHEMES[name])
        if drawn.random() < 0.5
    ]
    return name + (":" + ",".join(given) if given else "")


def _routed(text: str) -> None:
    """A few messages by the scheme, so that all that it keeps is made."""
    route(np.arange(50, dtype=np.uint64), text, 7, sources=2)


def fuzz_specs(drawn: random.Random, count: int) -> Trials:
    """Spec strings of schemes, streams and costs, and lists of them."""
    trials = Trials("spec strings")
    makers = [
        (scheme_of, scheme_specs),
        (_routed, scheme_specs),
        (_routed, scheme_specs),
        (stream_of, lambda d: d.choice(STREAM_SPECS)),
        (costs_of, lambda d: d.choice(COSTS)),
        (split_list, lambda d: ",".join(scheme_specs(d) for _ in range(3))),
    ]
    for _ in range(count):
        take, make = drawn.choice(makers)
        text = make(drawn)
        if drawn.random() < 0.5:
            text = mutated_text(text, drawn)
        trials.run(lambda take=take, text=text: take(text), text)
    return trials


def command_line(drawn: random.Random, folder: Path) -> list[str]:
    """Words of a valid command line, one or two of them changed."""
    stream = drawn.choice(
        [*STREAM_SPECS, f"words:path={folder}/text", f"csv:path={folder}/csv,column=a"]
    )
    base = ["--stream", stream]
    odd = lambda: drawn.choice([*ODD_NUMBERS, *ODD_TEXTS])  # noqa: E731
    scheme = drawn.choice(["key", "partial", "graded", "dynamic", "d-choices", scheme_specs(drawn)])
    kind = drawn.choice(["simulate", "queue", "diagnose", "schemes", "reproduce", "log"])
    if kind == "simulate":
        estimate = drawn.choice(["local", "global", "probe:10"])
        words = ["simulate", *base, "--scheme", scheme, "--workers", "5", "--sources", "2",
                 "--estimate", estimate, "--seed", "3"]  # fmt: skip
    elif kind == "queue":
        words = ["queue", *base, "--scheme", scheme, "--workers", "3", "--load", "0.8",
                 "--capacities", "5,5,1", "--change", "500:1,1,1", "--costs", drawn.choice(COSTS),
                 "--arrivals", drawn.choice(["even", "poisson"]), "--delay", "2"]  # fmt: skip
    elif kind == "diagnose":
        words = ["diagnose", *base, "--workers", "4", "--work", "fold", "--sources", "2"]
    elif kind == "schemes":
        words = ["schemes"]
    elif kind == "reproduce":
        words = ["reproduce", mutated_text("partial-table2", drawn), "--out", str(folder / "out")]
    else:
        words = ["diagnose", "--event-log", f"{folder}/log"]
    if drawn.random() < 0.5:
        words.append("--json")
    for _ in range(min(drawn.randint(0, 2), len(words) - 1)):
        at = drawn.randrange(len(words))
        action = drawn.randrange(4)
        if action == 0:
            words[at] = odd()
        elif action == 1:
            words[at] = mutated_text(words[at], drawn)
        elif action == 2:
            words.insert(at, odd())
        else:
            del words[at]
    return words


def runs_long(words: list[str]) -> bool:
    """Whether the words ask for so much that it may take its time, or for Spark, or for a paper."""
    from skewless.papers import EXPERIMENTS

    if (words[:1] and words[0] in ("run", "compare", "demo")) or set(words) & set(EXPERIMENTS):
        return True
    for word in words:
        try:
            stream: Any = stream_of(word)
        except Exception:  # most words are no streams
            continue
        if (stream.length() or 0) > LARGE or getattr(stream, "keys", 0) > LARGE:
            return True
    return False


def fuzz_commands(drawn: random.Random, count: int, folder: Path) -> Trials:
    """Command lines in this process, as click's own runner starts them."""
    trials, runner = Trials("command lines"), CliRunner()
    (folder / "text").write_text("to be or not to be\n" * 50)
    (folder / "csv").write_text("a,b\n" + "x,1\ny,2\n" * 50)
    (folder / "log").write_text('{"Event":"SparkListenerLogStart","Spark Version":"4.0.0"}\n')
    while trials.counts.total() < count:
        words = command_line(drawn, folder)
        if runs_long(words):
            continue

        def run(words: list[str] = words) -> None:
            error = runner.invoke(app, words).exception
            if error is not None and not isinstance(error, SystemExit):
                raise error

        trials.run(run, words, 60.0)
    return trials
