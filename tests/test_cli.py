"""The command line as a user meets it: contract, exit codes, one sentence per mistake."""

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from skewless.cli import app, main
from skewless.papers import EXPERIMENTS
from skewless.schemes import SCHEMES
from skewless.streams import stream_of

SIMULATE = ["simulate", "--stream", "zipf:z=1.0,keys=100,messages=2000"]
CONTRACT = (
    "stream scheme workers sources messages keys loads imbalance average_imbalance "
    "percent_imbalance stddev stddev_percent replication learned messages_per_second"
)


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def sentence(capsys, monkeypatch, *arguments):
    """What a mistake prints on stderr; it must exit with 2 and print nothing else."""
    monkeypatch.setattr(sys, "argv", ["skewless", *arguments])
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # as if pytest were no module
    with pytest.raises(SystemExit) as stopped:
        main()
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.fixture
def no_work(monkeypatch):
    """Neither Spark nor an experiment may be started."""

    def forbidden(*_, **__):
        raise AssertionError("The work began before the mistake was found.")

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", forbidden)
    for name in EXPERIMENTS:
        monkeypatch.setitem(EXPERIMENTS, name, forbidden)


def test_simulate_json_has_the_contract_s_fields_and_nothing_else_on_stdout():
    result = run(*SIMULATE, "--scheme", "partial", "--workers", "4", "--sources", "3", "--json")
    figures = json.loads(result.stdout)
    assert list(figures) == CONTRACT.split()
    assert sum(figures["loads"]) == figures["messages"] == 2000
    assert figures["sources"] == 3


@pytest.mark.parametrize("scheme", sorted(SCHEMES))
def test_every_scheme_simulates_from_the_command_line(scheme):
    spec = scheme + (":learn=500" if SCHEMES[scheme].learns == "prefix" else "")
    result = run(*SIMULATE, "--scheme", spec, "--workers", "5", "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert sum(figures["loads"]) == figures["messages"] == 2000 - figures["learned"]


def test_simulate_prints_a_table_and_the_loads():
    result = run(*SIMULATE, "--scheme", "key", "--workers", "3")
    assert "replication" in result.stdout
    assert "█" in result.stdout


def test_the_same_seed_gives_the_same_figures_and_another_seed_others():
    def loads(seed):
        return json.loads(
            run(*SIMULATE, "--scheme", "key", "--workers", "9", "--seed", seed, "--json").stdout
        )["loads"]

    assert loads("3") == loads("3")
    assert loads("3") != loads("4")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scheme", "parial", "--workers", "4"], "did you mean 'partial'"),
        (["--scheme", "partial:choices=5", "--workers", "4"], "at least 5 workers"),
        (["--scheme", "key", "--workers", "0"], "workers must be at least 1"),
        (["--scheme", "key", "--workers", "2", "--estimate", "x"], "local, global or probe:T"),
        (["--scheme", "key", "--workers", "2", "--estimate", "probe:²"], "is not known"),
        (["--scheme", "key", "--workers", "2", "--source-column", "1"], "no source column"),
        (["--scheme", "d-choices:theta=1e-13", "--workers", "2"], "takes too much memory"),
        (["--scheme", "distribution-aware:mu=1e12", "--workers", "9"], "not enough memory"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, monkeypatch, arguments, says):
    assert says in sentence(capsys, monkeypatch, *SIMULATE, *arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulat"], "did you mean 'simulate'?"),
        (["--nosuch"], "No such option '--nosuch'. 'skewless --help' lists all options."),
        (["simulate"], "Missing option '--stream'. 'skewless simulate --help' lists all options."),
        ([*SIMULATE, "--scheme", "key", "--workers", "x"], "'x' is not a valid integer"),
        ([*SIMULATE, "--schem", "key"], "'--scheme'"),
        (["reproduce", "partial-fig6", "more"], "unexpected extra argument (more)."),
        (["run", "--batches"], "'--batches' requires an argument"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(capsys, monkeypatch, arguments, says):
    assert says in sentence(capsys, monkeypatch, *arguments)


def test_help_says_what_each_command_does_and_shows_defaults():
    listed = run().stdout
    assert listed == run("--help").stdout
    assert [name for name in app.commands if f"\n  {name} " not in listed] == []
    assert "..." not in listed.partition("Commands:")[2]
    assert "[default: 8]" in run("run", "-h").stdout


@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ("zipff:z=1", "did you mean 'zipf'"),
        ("zipf:z=1,keys=9,messages=0", "messages must be at least 1"),
        ("tsv:path=nowhere.tsv,column=1", "no file 'nowhere.tsv'"),
        (f"tsv:path={'n' * 300},column=1", "name too long"),
        ("tsv:path=~nosuchuser/x,column=1", "no file"),
        ("csv:path=nowhere.csv,column=1,delimiter=é", "one ASCII character"),
    ],
)
def test_a_stream_that_cannot_be_is_one_sentence(capsys, monkeypatch, stream, says):
    arguments = ["simulate", "--stream", stream, "--scheme", "key", "--workers", "3"]
    assert says in sentence(capsys, monkeypatch, *arguments)


@pytest.mark.parametrize("command", [
    ["queue", *SIMULATE[1:], "--scheme", "universal", "--workers", "3", "--load", "0.8"],
    ["reproduce", "distribution-aware-table1", "--quick"],
])  # fmt: skip
def test_a_seed_that_cannot_be_is_one_sentence(capsys, monkeypatch, command):
    assert "A seed is a whole number from 0" in sentence(capsys, monkeypatch, *command, "--seed=-1")


def test_reproduce_writes_csv_and_png_and_says_what_was_seen(tmp_path):
    result = run("reproduce", "partial-fig6", "--quick", "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    seen = json.loads(result.stdout)
    assert seen["holds"]
    with (tmp_path / "partial-fig6.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(seen["rows"]) > 0
    assert {p.name for p in tmp_path.iterdir()} == {"partial-fig6.csv", "partial-fig6.png"}
    assert (tmp_path / "partial-fig6.png").read_bytes().startswith(b"\x89PNG")


def test_reproduce_exits_with_1_where_something_differs(tmp_path, monkeypatch):
    from skewless.results import Reproduction, at_most

    monkeypatch.setitem(
        EXPERIMENTS,
        "false",
        lambda setting: Reproduction("false", "t", [{"a": 1}], [at_most("never", 2.0, 1.0)]),
    )
    result = run("reproduce", "false", "--out", str(tmp_path))
    assert result.exit_code == 1
    assert "0 of 1 seen" in result.stdout


def test_an_unknown_experiment_lists_the_valid_ones(capsys, monkeypatch):
    assert "did you mean 'partial-table2'" in sentence(
        capsys, monkeypatch, "reproduce", "partial-tabel2"
    )


def test_reproduce_without_a_name_lists_the_experiments():
    assert "partial-table2" in run("reproduce").stdout


def test_the_list_of_experiments_is_json_if_asked_for():
    assert json.loads(run("reproduce", "--json").stdout) == list(EXPERIMENTS)


@pytest.mark.parametrize("streams", ["0", "-1"])
def test_reproduce_needs_a_stream(capsys, monkeypatch, streams):
    arguments = ["reproduce", "proactive-fig4", "--streams", streams]
    assert "streams must be at least 1" in sentence(capsys, monkeypatch, *arguments)


@pytest.mark.parametrize(
    "command",
    [
        ["reproduce", "partial-fig6"],
        ["demo"],
        ["run", "--scheme", "key", "--workers", "2", "--stream", "zipf:z=1,keys=9,messages=9"],
    ],
)
@pytest.mark.usefixtures("no_work")
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(
    capsys, monkeypatch, tmp_path, command
):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "results")
    assert "cannot be written to" in sentence(capsys, monkeypatch, *command, "--out", out)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--top", "0"], "keys to print must be at least 1"),
        (["--batches", "-1"], "micro-batches must be at least 0"),
        (["--delay-ms", "-1"], "0 ms or more"),
        (["--scheme", "off-greedy"], "for simulation only"),
        (["--log", "."], "is a folder"),
        (["--log", "n" * 300], "cannot be written to (File name too long)"),
        (["--master", "local[x]"], "no Spark master 'local[x]'"),
        (["--master", "local[0]"], "no Spark master 'local[0]'"),
        (["--workers", "100000"], "at most 1,000, not 100,000"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_run_refuses_before_spark_starts(capsys, monkeypatch, options, says):
    command = ["run", "--scheme", "key", "--workers", "2", "--stream", "zipf:z=1,keys=9,messages=9"]
    assert says in sentence(capsys, monkeypatch, *command, *options)


def test_run_needs_neither_a_scheme_nor_a_number_of_workers(capsys, monkeypatch):
    command = ["run", "--kafka", "127.0.0.1:1", "--topic", "words", "--out-topic", "counts"]
    assert "127.0.0.1:1" in sentence(capsys, monkeypatch, *command)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--delay-ms", "-1"], "0 ms or more"),
        (["--rounds", "0"], "rounds must be at least 1"),
        (["--sources", "0"], "sources must be at least 1"),
        (["--schemes", ""], "no scheme to compare"),
        (["--schemes", "key,,partial"], "has an empty item"),
        (["--schemes", "off-greedy"], "for simulation only"),
        (["--schemes", "partial:choices=5"], "at least 5 workers"),
        (["--seed", "-1"], "A seed is a whole number"),
        (["--workers", "100000"], "at most 1,000, not 100,000"),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_compare_refuses_before_spark_starts(capsys, monkeypatch, options, says):
    command = ["compare", "--stream", "zipf:z=1,keys=9,messages=9"]
    given = {"--schemes": "key", "--workers": "2"} | {options[0]: options[1]}
    arguments = [word for pair in given.items() for word in pair]
    assert says in sentence(capsys, monkeypatch, *command, *arguments)


@pytest.fixture
def files(monkeypatch, tmp_path):
    """What a stranger may take for a stream, in the present folder."""
    monkeypatch.chdir(tmp_path)
    zipped = gzip.compress(b"a b a c\n" * 1000)
    contents = {
        "cut.gz": zipped[: len(zipped) // 2],
        "empty": b"",
        "latin.txt": "é\n".encode("latin-1"),
        "two.tsv": b"a\tb\n",
        "two.csv": b"name,age\na,1\n",
        "no.parquet": b"PAR1",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    for folder in ("bare", "table/day=1", "table/_temporary"):
        (tmp_path / folder).mkdir(parents=True)
    pq.write_table(pa.table({"Key": ["a", "b"]}), "table/day=1/part-0.parquet")
    for name in ("table/_SUCCESS", "table/_temporary/half.parquet", "table/.part-0.parquet.crc"):
        (tmp_path / name).touch()


@pytest.mark.parametrize(
    "command", [["run", "--scheme", "key"], ["compare", "--schemes", "key"]], ids=lambda c: c[0]
)
@pytest.mark.parametrize(
    ("stream", "says"),
    [
        ("words:path=nowhere", "no file 'nowhere'"),
        ("words:path=bare", "Is a directory"),
        ("words:path=empty", "is empty"),
        ("words:path=cut.gz", "not a whole gzip file"),
        ("words:path=latin.txt", "not UTF-8 text"),
        ("words:path=two.tsv,column=3", "Line 1 of 'two.tsv' has no column 3"),
        ("tsv:path=nowhere,column=1", "no file 'nowhere'"),
        ("tsv:path=two.tsv,column=3", "Line 1 of 'two.tsv' has no column 3"),
        ("csv:path=nowhere,column=1", "no file 'nowhere'"),
        ("csv:path=empty,column=1", "is empty"),
        ("csv:path=two.csv,column=nam", "did you mean 'name'"),
        ("parquet:path=nowhere,column=a", "no file 'nowhere'"),
        ("parquet:path=bare,column=a", "holds no Parquet file"),
        ("parquet:path=no.parquet,column=a", "not a readable Parquet file"),
        ("parquet:path=table,column=kay", "no column of 'table' called 'kay'"),
    ],
)
@pytest.mark.usefixtures("no_work", "files")
def test_a_file_that_cannot_be_counted_is_refused_before_spark_starts(
    capsys, monkeypatch, command, stream, says
):
    assert says in sentence(capsys, monkeypatch, *command, "--workers", "2", "--stream", stream)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("column", ["Key", "key", "day"])
def test_spark_knows_a_table_s_columns_in_any_case_and_those_of_its_folders(column):
    stream_of(f"parquet:path=table,column={column}").check()


JAVAS = {
    "none": (None, "There is no Java in JAVA_HOME"),
    "old": ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "is version 11, and Spark"),
    "oldest": ("echo 'java version \"1.7.0_80\"' >&2", "is version 7, and Spark"),
    "broken": ("echo 'Error: no libjvm.so' >&2; exit 1", "does not run (Error: no libjvm.so)"),
}


@pytest.mark.parametrize("java", JAVAS)
@pytest.mark.usefixtures("no_work")
def test_a_java_that_spark_cannot_use_is_one_sentence(capsys, monkeypatch, tmp_path, java):
    script, says = JAVAS[java]
    if pyspark.__version__ < "4" and java == "old":
        pytest.skip("Spark 3.5 runs on Java 11")
    if script is not None:
        (tmp_path / "bin").mkdir()
        program = tmp_path / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    command = ["run", "--workers", "2", "--stream", "zipf:z=1,keys=9,messages=9"]
    assert says in sentence(capsys, monkeypatch, *command)


@pytest.mark.parametrize("page", ["", "bare", "~"])
@pytest.mark.usefixtures("files")
def test_a_page_that_would_be_a_folder_is_refused_before_the_work(capsys, monkeypatch, page):
    command = ["diagnose", "two.csv", "--key", "name", "--html", page]
    assert "is a folder: give the name of a file" in sentence(capsys, monkeypatch, *command)


@pytest.mark.usefixtures("files")
def test_a_folder_of_parquet_files_is_diagnosed_like_a_file():
    result = run("diagnose", "table", "--key", "Key", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["messages"] == 2


@pytest.mark.parametrize("package", ["numba", "numpy"])
def test_a_package_that_is_not_installed_is_one_sentence(package):
    code = (
        f"import sys; sys.modules['{package}'] = None; sys.argv[1:] = {SIMULATE!r}"
        " + ['--scheme', 'key', '--workers', '3']; from skewless.cli import main; main()"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert seen.returncode == 2
    assert seen.stderr.splitlines() == [
        f"Error: The package {package} is not installed: pip install skewless installs all."
    ]


def test_a_full_disk_is_one_sentence():
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = [sys.executable, "-m", "skewless", *SIMULATE, "--scheme", "key", "--workers", "3"]
    for more in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            seen = subprocess.run(
                [*command, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert (seen.returncode, seen.stderr.count("\n")) == (2, 1), seen.stderr
        assert "no space left for the output" in seen.stderr


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_output_that_lacks_letters_is_no_error(encoding):
    command = [sys.executable, "-m", "skewless", *SIMULATE, "--scheme", "key", "--workers", "3"]
    seen = subprocess.run(
        command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": encoding}, check=False
    )
    assert (seen.returncode, seen.stderr) == (0, b"")
    assert b"key: load per worker" in seen.stdout


@pytest.mark.usefixtures("no_work")
def test_a_file_is_no_folder(capsys, monkeypatch, tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("a b")
    run_it = ["run", "--scheme", "key", "--workers", "2", "--folder", str(file)]
    assert "is a file: give the folder" in sentence(capsys, monkeypatch, *run_it)
    reproduce = ["reproduce", "partial-fig6", "--data", str(file)]
    assert "is a file: give an existing folder" in sentence(capsys, monkeypatch, *reproduce)


@pytest.mark.usefixtures("no_work")
def test_reproduce_asks_for_what_draws_before_it_computes(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    command = ["reproduce", "partial-fig6", "--out", str(tmp_path)]
    assert "need matplotlib" in sentence(capsys, monkeypatch, *command)


def test_a_path_may_begin_with_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    result = run("reproduce", "partial-fig6", "--quick", "--out", "~/seen", "--json")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "seen" / "partial-fig6.csv").exists()


def test_a_path_with_brackets_is_printed_as_it_is(tmp_path):
    result = run("reproduce", "partial-fig6", "--quick", "--out", str(tmp_path / "see[/n]"))
    assert result.exit_code == 0, result.output
    assert "see[/n]" in result.stdout


def test_the_package_is_a_command_too():
    seen = subprocess.run(
        [sys.executable, "-m", "skewless", "--version"], capture_output=True, text=True, check=True
    )
    assert seen.stdout.startswith("skewless ")


def test_run_says_so_where_there_was_nothing_to_count(monkeypatch):
    from contextlib import nullcontext

    monkeypatch.setattr("skewless.spark.lab.session.local_session", lambda *given: nullcontext())
    monkeypatch.setattr("skewless.spark.lab.pipeline.run", lambda *given: [])
    arguments = ["--scheme", "key", "--workers", "2", "--stream", "zipf:z=1,keys=9,messages=9"]
    result = run("run", *arguments)
    assert result.exit_code == 0, result.output
    assert "nothing to count" in result.stdout


def test_importing_skewless_loads_neither_spark_nor_plots_nor_kernels():
    code = (
        "import sys, skewless, skewless.cli; "
        "print([m for m in ('pyspark', 'matplotlib', 'numba') if m in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "[]"


def test_every_command_is_in_the_reference():
    from pathlib import Path

    reference = (Path(__file__).parent.parent / "docs" / "commands.md").read_text()
    assert [name for name in app.commands if f"`skewless {name}`" not in reference] == []
    assert [name for name in SCHEMES if f"`{name}" not in reference] == []


def test_schemes_lists_all_schemes_and_streams_with_their_defaults():
    from skewless.streams import STREAMS

    listed = json.loads(run("schemes", "--json").stdout)
    assert [found["name"] for found in listed["schemes"]] == list(SCHEMES)
    assert [found["name"] for found in listed["streams"]] == list(STREAMS)
    graded = next(found for found in listed["schemes"] if found["name"] == "graded")
    assert {"name": "target", "required": False, "default": 0.01} in graded["parameters"]
    printed = run("schemes").stdout
    assert "target=0.01" in printed
    assert "zipf" in printed


def test_the_registries_call_classes_what_they_call_themselves():
    from skewless.streams import STREAMS

    for registry in (SCHEMES, STREAMS):
        assert {name: kind.name for name, kind in registry.items()} == {n: n for n in registry}
