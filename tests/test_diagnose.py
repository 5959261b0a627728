"""Diagnosis of streams and files: fair samples, names, predictions, verdicts, code."""

from __future__ import annotations

import doctest
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from skewless import measures, route
from skewless.cli import app, main
from skewless.diagnose import units
from skewless.diagnose.data import diagnose_stream
from skewless.diagnose.event_log import plan
from skewless.diagnose.keys import frequent_keys, share_error
from skewless.diagnose.names import names_of
from skewless.diagnose.predict import Candidate, predict
from skewless.diagnose.sample import Sample, Thinner
from skewless.diagnose.verdict import choose
from skewless.errors import SkewlessError
from skewless.hashing import identities, identity, unhash_longs
from skewless.report.diagnosis import print_data
from skewless.streams import stream_of

ZIPF = "zipf:z=1.5,keys=1000,messages=20000"


def run(*arguments):
    return CliRunner().invoke(app, ["diagnose", *map(str, arguments)])


def sentence(capsys, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["skewless", "diagnose", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert (stopped.value.code, printed.out) == (2, "")
    assert printed.err.count("\n") == 1
    return printed.err


def test_a_sample_is_bounded_in_order_and_fair_over_the_whole_stream():
    thinner = Thinner(limit=1000, seed=3)
    for start in range(0, 200_000, 7_000):
        thinner.add(np.arange(start, min(start + 7_000, 200_000)))
    kept = np.concatenate([piece[0] for piece in thinner.kept()])
    assert thinner.seen == 200_000
    assert 400 < kept.size <= 1000
    assert (np.diff(kept) > 0).all()
    assert kept.mean() == pytest.approx(100_000, rel=0.1)
    assert np.histogram(kept, 4, (0, 200_000))[0].min() > kept.size / 6


def test_a_sample_does_not_depend_on_how_the_stream_is_cut():
    def kept(step):
        thinner = Thinner(limit=100, seed=1)
        for start in range(0, 5000, step):
            thinner.add(np.arange(start, min(start + step, 5000)))
        return np.concatenate([piece[0] for piece in thinner.kept()]).tolist()

    assert kept(1) == kept(64) == kept(5000)


def test_shares_of_a_sample_hold_within_their_errors_where_the_hot_keys_change():
    stream = stream_of("drift:z=1.2,keys=500,messages=100000,period=25000")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
    thinner = Thinner(limit=5000)
    for start in range(0, keys.size, 9999):
        thinner.add(keys[start : start + 9999])
    kept = np.concatenate([piece[0] for piece in thinner.kept()])
    sample = Sample(kept, np.zeros(kept.size, np.int32), None, keys.size, 500)
    found = frequent_keys(sample)
    for number, count in zip(found.identities, found.counts, strict=True):
        share = count / kept.size
        true = float(np.mean(keys == np.uint64(number)))
        assert 0 < share_error(share, sample) < 0.02
        assert abs(share - true) <= share_error(share, sample)


@pytest.mark.parametrize("module", [units, plan])
def test_examples_in_docstrings_hold(module):
    assert doctest.testmod(module).failed == 0
    assert doctest.testmod(module).attempted


def test_text_of_strangers_is_one_harmless_line():
    assert units.printable("a\n\x1b[31mb\u202e") == "a \ufffd[31mb\ufffd"


@given(st.integers(-(2**63), 2**63 - 1))
def test_the_hash_of_a_long_is_undone(number):
    assert unhash_longs(np.array([identity(number)], np.uint64)).tolist() == [number]


@pytest.mark.parametrize(
    ("spec", "name"), [("zipf:z=2,keys=9,messages=500", "1"), ("spike:messages=500", "0")]
)
def test_keys_of_synthetic_streams_are_named_by_their_number(spec, name):
    assert diagnose_stream(spec, 4).hot[0].key == name


@pytest.mark.parametrize("kind", ["words", "tsv", "csv", "parquet"])
def test_keys_of_files_are_named_by_themselves(tmp_path, kind):
    words = ["naïve", "a", "b"] + ["naïve"] * 5
    path = tmp_path / f"file.{kind}"
    if kind == "words":
        path.write_text(" ".join(words))
        spec = f"words:path={path}"
    elif kind == "parquet":
        pq.write_table(pa.table({"k": words}), path)
        spec = f"parquet:path={path},column=k"
    else:
        separator = "\t" if kind == "tsv" else ","
        head = "" if kind == "tsv" else "x,k\n"
        path.write_text(head + "".join(f"1{separator}{word}\n" for word in words))
        spec = f"{kind}:path={path},column=2"
    assert names_of(stream_of(spec), [identity("naïve")]) == {identity("naïve"): "naïve"}
    found = diagnose_stream(spec, 2)
    assert found.hot[0].key == "naïve"
    assert (found.messages, found.keys) == (8, 3)


def test_keys_that_python_cannot_hold_are_named_as_far_as_they_go(tmp_path):
    torn = pa.array([b"caf\xe9"], pa.binary()).view(pa.string())
    late = pa.array([10**17], pa.int64()).cast(pa.timestamp("us"))
    for name, column in (("torn", torn), ("late", late)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"k": column}), path)
        wanted = identities(column).tolist()
        (found,) = names_of(stream_of(f"parquet:path={path},column=k"), wanted).values()
        assert found.startswith("caf" if name == "torn" else "5138")


def test_a_prediction_is_the_scheme_itself_at_as_many_sources():
    stream = stream_of("zipf:z=1.1,keys=2000,messages=30000")
    keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
    for candidate in diagnose_stream(stream, 5, sources=3).candidates[:3]:  # those that learn not
        routed = route(keys, candidate.scheme, 5, sources=3)
        loads = np.bincount(routed, minlength=5)
        assert candidate.max_over_mean == pytest.approx(loads.max() / loads.mean(), rel=0.01)
        assert candidate.loads == pytest.approx((loads / loads.sum()).tolist(), abs=0.01)
        assert candidate.time_over_ideal == candidate.max_over_mean
        pairs = len(set(zip(keys.tolist(), routed.tolist(), strict=True)))
        own = measures.replication(pairs, np.unique(keys).size)
        assert candidate.replication == pytest.approx(own, rel=0.02)


def test_costs_make_time_of_messages():
    keys = identities(["dear"] * 10 + ["cheap"] * 90)
    homes = route(keys, "key", 2)
    assert homes[0] != homes[-1]
    costs = np.array([9.0] * 10 + [1.0] * 90)
    sample = Sample(keys, np.zeros(100, np.int32), costs, 100, 2)
    by_key, spread = predict(sample, ["key", "shuffle"], 2)
    assert spread.time_over_ideal == pytest.approx(1.0)
    assert by_key.time_over_ideal == pytest.approx(1.0)  # of messages alone it would be 1.8


def candidate(scheme, over, replication=1.0):
    return Candidate(scheme, over, replication, over, [1.0])


@pytest.mark.parametrize(
    ("overs", "chosen"),
    [
        ({"key": 1.04, "graded": 1.0}, "key"),
        ({"key": 1.2, "partial": 1.19, "graded": 1.0}, "graded"),
        ({"key": 1.2, "graded": 1.0, "partial": 1.04}, "graded"),
        ({"key": 3.0, "distribution-aware": 2.95}, "key"),
    ],
)
def test_the_verdict_is_within_5_per_cent_of_the_fastest(overs, chosen):
    made = [candidate(scheme, over) for scheme, over in overs.items()]
    assert choose(made, "fold").scheme == chosen


@pytest.mark.parametrize(
    ("stream", "work", "says"),
    [
        (ZIPF, "aggregate", "Leave it: Spark's own aggregate combines"),
        ("zipf:z=0,keys=100000,messages=100000", "fold", "Nothing is skewed"),
        (ZIPF, "fold", "Use graded"),
        (ZIPF, "group", "less is not possible while one worker must see all of '1'"),
        (ZIPF, "map", "Spread the rows round robin"),
    ],
)
def test_verdicts(stream, work, says):
    assert says in diagnose_stream(stream, 8, work=work).verdict


def test_nulls_of_a_parquet_file_are_counted_and_named(tmp_path):
    pq.write_table(pa.table({"k": pa.array([None] * 6 + [1, 2], pa.int64())}), tmp_path / "f")
    found = diagnose_stream(f"parquet:path={tmp_path / 'f'},column=k", 2)
    assert (found.nulls, found.hot[0].key, found.hot[0].share) == (6, "null", 0.75)
    assert any("6 messages (75 %) have a null" in note for note in found.notes)


def test_the_json_has_the_contract_s_fields_and_nothing_else_on_stdout():
    result = run("--stream", ZIPF, "--workers", 4, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {"messages", "keys", "hot", "candidates", "verdict", "code"} <= set(found)
    assert set(found["hot"][0]) == {"key", "share", "error"}
    fields = {"scheme", "max_over_mean", "replication", "time_over_ideal"}
    assert fields <= set(found["candidates"][0])
    assert found["candidates"][0]["scheme"] == "key"
    assert found["messages"] == 20000


def test_several_keys_of_a_file_are_ranked_the_worst_first(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"even": list(range(4000)), "hot": [1] * 4000}), path)
    found = json.loads(run(path, "--key", "even", "--key", "hot", "--json").stdout)
    assert found["worst"] == "hot"
    assert [d["key"] for d in found["keys"]] == ["hot", "even"]
    assert "The worst key is hot" in run(path, "--key", "even", "--key", "hot").stdout


@pytest.mark.parametrize("seed", [-1, "a", 2**30])
def test_a_seed_that_cannot_be_is_refused_before_the_stream_is_read(seed):
    read = []
    with pytest.raises(SkewlessError, match="A seed is a whole number"):
        diagnose_stream(ZIPF, 8, seed=seed, progress=read.append)
    assert not read


def test_whole_numbers_of_numpy_diagnose_as_others_do():
    ours = diagnose_stream(ZIPF, np.uint8(200), sources=np.int16(3), seed=np.int64(7))
    assert ours == diagnose_stream(ZIPF, 200, sources=3, seed=7)


def test_a_table_is_read_by_the_names_in_its_header(tmp_path):
    (tmp_path / "t.tsv").write_text("user\tday\n" + "ann\t1\n" * 9 + "bob\t2\n")
    found = json.loads(run(tmp_path / "t.tsv", "--key", "user", "--json").stdout)
    assert (found["messages"], found["hot"][0]["key"]) == (10, "ann")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Give one thing to diagnose"),
        (["--stream", ZIPF, "--event-log", "x"], "Give one thing to diagnose"),
        (["--stream", ZIPF, "--key", "a"], "only a file takes one"),
        (["--stream", ZIPF, "--against", "x"], "--against compares two event logs"),
        (["--stream", ZIPF, "--work", "flod"], "did you mean 'fold'"),
        (["--stream", ZIPF, "--work", "join"], "A join has two sides"),
        (["--stream", ZIPF, "--workers", "0"], "workers must be at least 1"),
        (["--stream", ZIPF, "--workers", "200001"], "at most 200,000 workers, not of 200,001"),
        (["t.txt", "--key", "a"], "not known by its name"),
        (["nowhere.csv", "--key", "a"], "no file 'nowhere.csv'"),
        (["--event-log", "nowhere"], "There is no event log"),
    ],
)
def test_a_mistake_is_one_sentence(capsys, monkeypatch, arguments, says):
    assert says in sentence(capsys, monkeypatch, *arguments)


def test_a_key_that_is_no_column_and_an_empty_file_are_one_sentence(capsys, monkeypatch, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"user": pa.array([], pa.string())}), path)
    assert "did you mean 'user'" in sentence(capsys, monkeypatch, path, "--key", "usr")
    assert "is empty" in sentence(capsys, monkeypatch, path, "--key", "user")


def test_logs_and_files_are_diagnosed_without_pyspark(tmp_path):
    from tests.diagnose_logs import log, stage, task, text

    (tmp_path / "log").write_bytes(text(log(*stage([task(1.0), task(9.0)]))))
    code = (
        "import sys; sys.modules['pyspark'] = None; from skewless.cli import app; "
        f"app(['diagnose', '--event-log', {str(tmp_path / 'log')!r}], standalone_mode=False); "
        f"app(['diagnose', '--stream', {ZIPF!r}], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Verdict" in done.stdout


def test_the_code_can_be_pasted_from_a_narrow_terminal():
    found = diagnose_stream("zipf:z=1.5,keys=100,messages=1000", 4)
    printed = io.StringIO()
    print_data(Console(file=printed, width=40, force_terminal=True, color_system=None), found)
    assert found.code in printed.getvalue()
