"""Event logs: the time lost by its formula, causes told apart, codecs, damage, plans."""

from __future__ import annotations

import gzip
import json
import struct

import pyarrow as pa
import pytest
import xxhash

from skewless.diagnose.compare import compare_logs
from skewless.diagnose.event_log.codecs import Cut, lines_of
from skewless.diagnose.event_log.files import log_files
from skewless.diagnose.event_log.log import diagnose_log
from skewless.diagnose.event_log.plan import Plans, columns_of
from skewless.errors import SkewlessError
from tests.diagnose_logs import SQL, log, node, stage, task, text


def read(tmp_path, *events, **how):
    path = tmp_path / "log"
    path.write_bytes(text(log(*events, **how)))
    return diagnose_log(path)


def waves(durations, cores, **more):
    """Tasks started in order, each as soon as a core is free."""
    free = [0.0] * cores
    made = []
    for index, seconds in enumerate(durations):
        core = free.index(min(free))
        own = {key: value[index] for key, value in more.items()}
        made.append(task(seconds, start=free[core], index=index, **own))
        free[core] += seconds
    return made


def test_time_lost_is_what_it_took_less_even_work_on_its_cores(tmp_path):
    durations, records = [1.0] * 7 + [10.0], [100] * 7 + [1000]
    found = read(tmp_path, *stage(waves(durations, 4, records=records))).stages[0]
    assert found.took_s == pytest.approx(11.0)
    assert found.even_s == pytest.approx(17 / 4)
    assert found.lost_s == pytest.approx(11 - 17 / 4)
    assert found.cause == "skew of records"
    assert found.records_max_over_mean == pytest.approx(1000 / (1700 / 8))
    assert (found.tasks, found.median_s, found.max_s) == (8, 1.0, 10.0)
    assert "one of 8 tasks read 58.8 % of the rows" in found.sentence


@pytest.mark.parametrize("tasks", [4, 8, 40])
def test_even_work_loses_nothing(tmp_path, tasks):
    found = read(tmp_path, *stage(waves([2.0] * tasks, 4)))
    assert found.stages[0].lost_s == pytest.approx(0, abs=1e-9)
    assert found.stages[0].cause == "none"
    assert found.verdict.startswith("Nothing is skewed")


def test_a_costly_key_is_told_from_a_key_with_many_records(tmp_path):
    found = read(tmp_path, *stage(waves([1.0] * 7 + [10.0], 4)))
    assert found.stages[0].cause == "costly key"


def test_a_slow_machine_is_told_from_a_costly_key(tmp_path):
    seconds = [1.0, 1.0, 1.0, 5.0] * 4
    executors = ["1", "2", "3", "4"] * 4
    made = [
        task(s, start=(i // 4) * s, executor=e, index=i)
        for i, (s, e) in enumerate(zip(seconds, executors, strict=True))
    ]
    found = read(tmp_path, *stage(made), executors=("1", "2", "3", "4"), cores=1)
    assert found.stages[0].cause == "slow machine"


def test_too_few_tasks_are_told_from_skew(tmp_path):
    found = read(tmp_path, *stage(waves([3.0] * 2, 8)), cores=8).stages[0]
    assert found.cause == "too few tasks"
    assert found.lost_s == pytest.approx(0)
    last_wave = read(tmp_path, *stage(waves([3.0] * 5, 4))).stages[0]
    assert last_wave.cause == "too few tasks"
    assert last_wave.lost_s == pytest.approx(6 - 15 / 4)


def test_tasks_that_start_late_are_told_from_skew(tmp_path):
    made = [task(1.0, start=start, index=i) for i, start in enumerate([0, 0, 5, 5, 6, 6, 7, 7])]
    found = read(tmp_path, *stage(made)).stages[0]
    assert found.lost_s == pytest.approx(8 - 8 / 2)
    assert found.cause == "late starts"


def test_retries_copies_and_spills_are_counted_and_only_successes_are_timed(tmp_path):
    made = waves([1.0] * 8, 4)
    made.append(task(50.0, reason="ExceptionFailure"))
    made.append(task(1.0, reason="TaskKilled", speculative=True))
    made[0]["Task Metrics"]["Disk Bytes Spilled"] = 4096
    found = read(tmp_path, *stage(made)).stages[0]
    assert (found.retries, found.killed, found.speculative) == (1, 1, 1)
    assert found.spilled_bytes == 4096
    assert (found.tasks, found.took_s) == (8, pytest.approx(2.0))


def test_stages_are_ranked_by_the_time_they_lost(tmp_path):
    small = stage(waves([1.0] * 7 + [2.5], 4), number=1)
    large = stage(waves([1.0] * 7 + [9.0], 4), number=2)
    found = read(tmp_path, *small, *large)
    assert [s.stage for s in found.stages] == [2, 1]
    assert found.verdict.startswith("Stage 2,")
    assert found.verdict.endswith("1 more stage lost 1.1 s together.")


def plan(other="customer_id"):
    written = {"shuffle_records_written": 10, "records_read": 11}
    exchange = "Exchange hashpartitioning(customer_id#12L, 200), ENSURE_REQUIREMENTS, [plan_id=9]"
    below = [node("Range", number_of_output_rows=1)]
    left = node("Exchange", exchange, below, **written)
    there = exchange.replace("customer_id#12", f"{other}#44")
    right = node("Exchange", there, [node("Scan parquet", rows=2)], read=21)
    join = node("SortMergeJoin", "SortMergeJoin [customer_id#12L]", [left, right], rows=3)
    return node("Project", "Project [customer_id#12L]", [join])


def a_skewed_join(tmp_path, other="customer_id", numbers=(0, 1)):
    """A log of a scan and a join, on the column of the right side of this name."""
    start = {"Event": f"{SQL}ExecutionStart", "executionId": 7, "sparkPlanInfo": plan(other)}
    skewed = waves([1.0] * 3 + [9.0], 4, records=[100] * 3 + [2000])
    events = [
        start,
        *stage(waves([1.0] * 4, 4), number=numbers[0], accumulators=[1, 10], execution=7),
        *stage(skewed, number=numbers[1], accumulators=[3, 11, 21], execution=7),
        {"Event": f"{SQL}ExecutionEnd", "executionId": 7},
    ]
    return read(tmp_path, *events)


def test_a_join_of_columns_with_two_names_is_told_as_pairs_left_first(tmp_path):
    found = a_skewed_join(tmp_path, "cust")
    assert found.stages[0].columns == ["customer_id", "cust"]
    assert "join(left, right, [('customer_id', 'cust')])" in found.code
    assert "with_=other" in a_skewed_join(tmp_path).code


def test_a_stage_is_tied_to_its_operator_and_columns_by_accumulators(tmp_path):
    found = {s.stage: s for s in a_skewed_join(tmp_path).stages}
    assert (found[1].operator, found[1].columns) == ("join", ["customer_id"])
    assert (found[0].operator, found[0].columns) == ("scan", [])
    assert found[1].sentence.startswith("stage 1, join on customer_id: one of 4 tasks read 87 %")


def test_a_plan_that_adaptive_execution_changed_wins():
    plans = Plans()
    plans.add(node("Project", children=[node("HashAggregate", rows=1)]))
    plans.add(node("Project", children=[node("FlatMapGroupsInPandas", rows=1)]))
    assert plans.work_of([1]).operator == "python"
    assert plans.work_of([99]) is None


@pytest.mark.parametrize(
    ("partitioning", "columns"),
    [
        ("Exchange hashpartitioning(a#1, b c#22L, 200), REPARTITION", ["a", "b c"]),
        ("Exchange rangepartitioning(t#3 DESC NULLS LAST, 8)", ["t"]),
        ("Exchange hashpartitioning(pmod(hash(k#1L, 42), 8), 5)", ["pmod(hash(k, 42), 8)"]),
        ("Exchange RoundRobinPartitioning(8), REPARTITION_BY_NUM", []),
        ("Exchange SinglePartition, ENSURE_REQUIREMENTS", []),
        ("Exchange hashpartitioning(a#1, unfinis", ["a"]),
    ],
)
def test_columns_of_a_partitioning_lose_sparks_numbers(partitioning, columns):
    assert columns_of(partitioning) == columns


def lz4_java(data, block=1000):
    """What lz4-java's LZ4BlockOutputStream writes, one block of it stored as it is."""
    codec, out = pa.Codec("lz4_raw"), b""
    for number, start in enumerate(range(0, len(data), block)):
        part = data[start : start + block]
        packed = part if number == 1 else codec.compress(part, asbytes=True)
        token = 0x10 if number == 1 else 0x20
        checksum = xxhash.xxh32_intdigest(part, seed=0x9747B28C) & 0x0FFFFFFF
        sizes = len(packed), len(part), checksum
        out += struct.pack("<8sBiii", b"LZ4Block", token, *sizes) + packed
    return out + struct.pack("<8sBiii", b"LZ4Block", 0x10, 0, 0, 0)


def zstd_frames(data):
    codec = pa.Codec("zstd")
    half = len(data) // 2
    return codec.compress(data[:half], asbytes=True) + codec.compress(data[half:], asbytes=True)


CODECS = {"plain": bytes, "gzip": gzip.compress, "lz4": lz4_java, "zstd": zstd_frames}


@pytest.mark.parametrize("codec", CODECS)
def test_a_log_reads_the_same_whatever_it_is_compressed_with(tmp_path, codec):
    data = text(log(*stage(waves([1.0] * 7 + [10.0], 4))))
    path = tmp_path / "log"
    path.write_bytes(CODECS[codec](data))
    told = []
    found = diagnose_log(path, told.append)
    assert found.stages[0].lost_s == pytest.approx(6.75)
    assert not found.cut
    assert sum(told) == path.stat().st_size


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_a_log_that_is_cut_off_gives_what_it_has_and_says_so(tmp_path, codec, share):
    data = CODECS[codec](text(log(*stage(waves([1.0] * 4000, 4)))))
    path = tmp_path / "log"
    path.write_bytes(data[: int(share * len(data))])
    found = diagnose_log(path)
    assert found.cut
    assert 100 < found.stages[0].tasks < 4000
    assert any("not whole" in note for note in found.notes)
    assert all(not s.whole and "the log ends after" in s.sentence for s in found.stages)


def test_a_plain_log_cut_in_a_line_keeps_the_tasks_before_it(tmp_path):
    data = text(log(*stage(waves([1.0] * 40, 4))))
    path = tmp_path / "log"
    path.write_bytes(data[: len(data) // 2])
    found = diagnose_log(path).stages[0]
    assert 10 < found.tasks < 30
    assert not found.whole


def test_a_rolling_folder_is_read_in_the_order_of_its_numbers(tmp_path):
    folder = tmp_path / "eventlog_v2_app"
    folder.mkdir()
    lines = text(log(*stage(waves([1.0] * 36, 4)))).splitlines(keepends=True)
    for number in range(12):
        part = b"".join(lines[4 * number : 4 * number + 4] if number < 11 else lines[44:])
        (folder / f"events_{number + 1}_app").write_bytes(part)
    (folder / "appstatus_app").write_bytes(b"")
    (folder / ".events_1_app.crc").write_bytes(b"\0")
    assert diagnose_log(folder).stages[0].tasks == 36
    assert diagnose_log(tmp_path).stages[0].tasks == 36  # a folder with just this log in it


def test_a_compacted_file_stands_for_all_before_it_and_a_missing_one_is_noted(tmp_path):
    for name in ("events_1_a", "events_2_a", "events_2_a.compact", "events_3_a"):
        (tmp_path / name).write_bytes(b"")
    found = log_files(tmp_path)
    assert [p.name for p in found.files] == ["events_2_a.compact", "events_3_a"]
    assert not found.beheaded
    (tmp_path / "events_5_a").write_bytes(b"")
    assert log_files(tmp_path).beheaded


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"hello\n", "is not a Spark event log"),
        (b'{"a": 1}\n', "is not a Spark event log"),
        (b"\x00\xff" * 5000, "is not a Spark event log"),
        (b"\x82SNAPPY\x00\x00\x00", "compressed with snappy"),
        (b"\x28\xb5\x2f\xfdgarbage", "cut off before its first event"),
        (gzip.compress(b"hello\n"), "is not a Spark event log"),
    ],
)
def test_a_file_that_is_no_event_log_is_one_sentence(tmp_path, content, says):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(SkewlessError, match=says) as error:
        diagnose_log(path)
    assert "\n" not in str(error.value)


def test_folders_without_a_log_and_with_several_are_one_sentence(tmp_path):
    with pytest.raises(SkewlessError, match="holds no event log"):
        diagnose_log(tmp_path)
    with pytest.raises(SkewlessError, match="There is no event log"):
        diagnose_log(tmp_path / "nowhere")
    for name in "ab":
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(SkewlessError, match=r"holds 2 logs \(a, b\)"):
        diagnose_log(tmp_path)


def test_a_damaged_line_is_skipped_and_noted(tmp_path):
    lines = text(log(*stage(waves([1.0] * 8, 4)))).splitlines()
    lines[6] = lines[6][:50]
    lines.insert(8, b"\x00\x01 rubbish")
    path = tmp_path / "log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = diagnose_log(path)
    assert found.cut
    assert found.stages[0].tasks == 7


def test_events_with_parts_missing_do_not_break_the_reader(tmp_path):
    odd = [
        {"Event": "SparkListenerTaskEnd", "Stage ID": 0},
        {"Event": "SparkListenerStageSubmitted"},
        {"Event": "SparkListenerExecutorAdded", "Executor ID": "x"},
        {"Event": f"{SQL}ExecutionStart", "executionId": 1, "sparkPlanInfo": None},
        {"Event": "SparkListenerSomethingNew", "a": 1},
    ]
    assert read(tmp_path, *odd, *stage(waves([1.0] * 4, 4))).stages[0].tasks == 4


def test_the_lines_of_a_damaged_lz4_block_end_in_a_cut(tmp_path):
    whole = lz4_java(b'{"Event":"x"}\n' * 500)
    path = tmp_path / "log"
    second = whole.index(b"LZ4Block", 1)
    # The magic, the compressed size, the checksum, and what was stored as it is.
    for at in (second, second + 10, second + 18, second + 500):
        data = bytearray(whole)
        data[at] ^= 0xFF
        path.write_bytes(bytes(data))
        read = []
        with pytest.raises(Cut):
            read.extend(lines_of(path, lambda read: None))
        path.write_bytes(whole)
        assert len(list(lines_of(path, lambda read: None))) == 500


def test_before_and_after_are_matched_by_what_stages_do(tmp_path):
    logs = []
    for slow in (10.0, 1.0):
        skewed = waves([1.0] * 7 + [slow], 4)
        logs.append(read(tmp_path, *stage(skewed, accumulators=[3], execution=None)))
    found = compare_logs(*logs)
    assert found.pairs[0].before_took_s == pytest.approx(11.0)
    assert found.pairs[0].after_took_s == pytest.approx(2.0)
    assert found.pairs[0].gain == pytest.approx(9 / 11)
    assert json.loads(found.to_json())["against"]["stages"]


def test_stages_are_matched_although_their_numbers_are_others(tmp_path):
    found = compare_logs(a_skewed_join(tmp_path), a_skewed_join(tmp_path, numbers=(5, 2)))
    took_s = {pair.label: (pair.before_took_s, pair.after_took_s) for pair in found.pairs}
    assert took_s == {"join on customer_id": (9.0, 9.0), "scan": (1.0, 1.0)}
