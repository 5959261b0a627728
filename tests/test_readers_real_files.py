from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skewless.streams import stream_of

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.mark.skipif(not DATA.is_dir(), reason="the real streams of ../shared/data are not here")
@pytest.mark.parametrize(
    ("spec", "messages", "keys", "hottest_percent"),
    [
        ("tsv:column=2,path={}/stocknet_cashtags.tsv.gz", 254_670, 7_534, 8.29),
        ("tsv:column=2,path={}/slashdot0902.tsv.gz", 948_464, 82_168, 0.27),
        ("words:path={}/kjv_words.txt.gz", 789_633, 12_771, 8.10),
        ("tsv:column=1,path={}/kdd99_10pct.tsv.gz", 494_021, 66, 56.96),
        ("tsv:column=2,path={}/congress_hashtags.tsv.gz", 2_788_426, 164_285, 2.63),
        ("words:column=2,path={}/congress_words.tsv.gz", 8_406_730, 119_121, 4.28),
    ],
)
def test_real_files_have_the_messages_and_keys_their_description_says(
    spec: str, messages: int, keys: int, hottest_percent: float
) -> None:
    stream = stream_of(spec.format(DATA))
    read_keys = np.concatenate([chunk.keys for chunk in stream.chunks()])
    counts = np.unique(read_keys, return_counts=True)[1]
    assert (read_keys.size, counts.size) == (messages, keys)
    assert 100 * counts.max() / messages == pytest.approx(hottest_percent, abs=0.01)
