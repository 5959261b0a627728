"""`skewless queue`: its contract, its table, its mistakes."""

import json

import pytest
from click.testing import CliRunner

from skewless.cli import app
from skewless.errors import SkewlessError
from tests.test_cli import sentence as answer

BASE = ["queue", "--stream", "zipf:z=1,keys=1000,messages=50000", "--workers", "4", "--load", "0.8"]


def run(*options):
    return CliRunner().invoke(app, [*BASE, *options], catch_exceptions=False)


def test_json_holds_what_the_contract_promises():
    result = run(
        *("--scheme", "consistent", "--sources", "3", "--capacities", "5,1,1,1"),
        *("--change", "20000:1,1,1,5", "--change", "30000:2,2,2,2", "--delay", "2"),
        *("--costs", "evenly:min=1,max=64,values=64", "--arrivals", "poisson", "--json"),
    )
    seen = json.loads(result.stdout)
    assert seen["scheme"] == "consistent"
    assert seen["messages"] == sum(seen["loads"]) == 50_000
    promised = (
        "stream scheme workers sources messages keys loads imbalance average_imbalance "
        "percent_imbalance stddev stddev_percent replication learned messages_per_second "
        "mean_latency p50_latency p99_latency max_queue mean_queue utilisation throughput "
        "control_messages"
    )
    assert set(promised.split()) <= set(seen)
    assert len(seen["utilisation"]) == 4
    assert seen["control_messages"] > 0
    assert 0 < seen["p50_latency"] <= seen["p99_latency"] <= seen["max_latency"]


def test_the_same_seed_gives_the_same_figures():
    first, second = (json.loads(run("--scheme", "consistent", "--json").stdout) for _ in range(2))
    del first["messages_per_second"], second["messages_per_second"]
    assert first == second


def test_people_get_a_table():
    result = run("--scheme", "shuffle")
    assert "mean latency" in result.stdout
    assert "queue at the end" in result.stdout


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--load", "0"], "offered load must be a positive number"),
        (["--load", "1e308"], "offered load must be from"),
        (["--load", "1e-320", "--json"], "offered load must be from"),
        (["--capacities", "1,2"], "2 capacities for 4 workers"),
        (["--capacities", "1,2,x,4"], "numbers separated by commas"),
        (["--capacities", "1,2,-3,4"], "capacity must be a positive number"),
        (["--change", "1,1,1,1"], "message number and capacities"),
        (["--change", "9.5:1,1,1,1"], "message number and capacities"),
        (["--change", "0:1,1,1,1"], "the first after 0"),
        (["--arrivals", "late"], "even or poisson"),
        (["--costs", "cheap"], "There is no cost 'cheap'"),
        (["--delay", "-3"], "delay must be a time"),
    ],
)
def test_a_mistake_is_one_sentence(options, sentence):
    with pytest.raises(SkewlessError, match=sentence):
        run("--scheme", "key", *options)


def test_an_option_without_its_value_names_the_help_of_its_command(capsys, monkeypatch):
    told = answer(capsys, monkeypatch, "queue", "--stream")
    assert told.endswith("requires an argument. 'skewless queue --help' lists all options.\n")
