"""Plans kept beside a stream's checkpoint, each with the number of the batch it is for.

`<checkpoint>/skewless/stream.json` says how the stream is routed, `state.json` what it folds;
`plans/<batch>.npz` is what was learned before that batch; `batches/<batch>` names the plan that a
batch runs with. The first task of a batch to start settles that, so that all its tasks, and all of
them again after a restart, follow one plan although the driver may write the next one meanwhile.

A restart may change scheme, workers, seed or capacities where all state is by key: then
`settings/<n>` holds all but `state.json` for the new setting, n = 1, 2, …, of which the last few
stay, and what the first wrote.
A batch that was begun but not committed before is computed again, whole, under the new setting.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skewless.errors import SkewlessError
from skewless.schemes import Scheme, scheme_of
from skewless.schemes.api import F64, Arrays
from skewless.spark.adapt.facts import StateFacts
from skewless.spark.adapt.files import checkpoint_path, make_folder, not_written, write_once
from skewless.spark.report.codec import UnreadableError, pack, unpack

FORMAT = 1
KEPT = 100
CAPACITIES = "capacities"
KEPT_SETTINGS = 3
_FOLDERS = ("plans", "batches")
_DELETE = "delete the folders 'plans' and 'batches'"
_PART_S = 600.0  # a part of a file that is older belongs to nobody


class Learned(NamedTuple):
    """A plan and what the next one will be made from."""

    plan: Arrays
    pending: Arrays  # a report that awaits enough messages for a replan
    messages: int  # in that report
    replans: int
    loads: F64  # [W] messages since the start of the stream


@dataclass(frozen=True)
class StreamFolder:
    """The folder of one stream; it pickles, and tasks open it by themselves."""

    checkpoint: str
    scheme: Scheme
    workers: int
    seed: int
    setting: int = 0  # how often a restart changed one of them before
    capacities: tuple[float, ...] | None = None

    @property
    def base(self) -> Path:
        """All that is kept for the stream."""
        return Path(self.checkpoint) / "skewless"

    @property
    def root(self) -> Path:
        """What is kept for this setting."""
        return self.base / "settings" / str(self.setting) if self.setting else self.base

    def resume(self) -> StreamFolder:
        """Claim the folder for a stream whose state is by key: the setting may be another now.

        Gives the folder of the newest setting, if that is this one, or of a new setting.
        """
        if not (self.base / "stream.json").exists():
            self.claim()
        while True:
            newest = max(self._settings())
            try:
                mine = self._resumed(newest)
            except (SkewlessError, FileNotFoundError):
                # Other drivers may have gone on meanwhile, and forgotten this folder.
                if max(self._settings()) == newest:
                    raise
            else:
                if mine is not None:
                    return mine

    def _resumed(self, newest: int) -> StreamFolder | None:
        """The folder of the newest setting, if that is this one; else a new one is made."""
        mine = replace(self, setting=newest)
        found = _read_facts(mine.root / "stream.json")
        if found == mine._facts():
            mine._forget_settings()
            return mine
        others = (found.keys() ^ mine._facts().keys()) - {CAPACITIES}
        if found.get("format") != FORMAT or others:
            mine._check(found, mine._facts())
        # Of two drivers that come here at once, one makes the folder, and both look again.
        replace(self, setting=newest + 1)._make()
        return None

    def earlier(self) -> tuple[Scheme, Learned] | None:
        """What was learned last under the setting before this one; None if that is not readable."""
        if not self.setting:
            return None
        try:
            before = replace(self, setting=self.setting - 1)
            facts = _read_facts(before.root / "stream.json")
            scheme = scheme_of(facts["scheme"])
            before = replace(before, scheme=scheme, workers=facts["workers"], seed=facts["seed"])
            before = replace(before, capacities=facts.get(CAPACITIES))
            return scheme, before._read(max(before._numbers()))
        except (SkewlessError, KeyError, TypeError, ValueError):
            return None  # results do not depend on it

    def _forget_settings(self) -> None:
        """Drop settings of long ago; what a stream learned is carried over from the last one."""
        for number in self._settings():
            if 0 < number <= self.setting - KEPT_SETTINGS:
                old = replace(self, setting=number).root
                shutil.rmtree(old, ignore_errors=True)

    def _settings(self) -> list[int]:
        kept = (self.base / "settings").glob("[0-9]*/stream.json")
        return [0, *(int(path.parent.name) for path in kept)]

    def claim(self, **more: Any) -> None:
        """Make the folder, or refuse one that another kind of stream has made."""
        path = self.root / "stream.json"
        if path.exists():
            self._check(_read_facts(path), self._facts(**more))
            return
        self._make(**more)

    def _make_folders(self) -> None:
        for folder in _FOLDERS:
            make_folder(self.root / folder)

    def _make(self, **more: Any) -> None:
        self._make_folders()
        write_once(self.root / "stream.json", json.dumps(self._facts(**more)).encode())

    def _facts(self, **more: Any) -> dict[str, Any]:
        setting = {"scheme": self.scheme.spec, "workers": self.workers, "seed": self.seed}
        rates = {} if self.capacities is None else {CAPACITIES: list(self.capacities)}
        return {"format": FORMAT, **setting, **rates, **more}

    def _check(self, found: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        if found.get("format") != FORMAT:
            raise SkewlessError(
                f"The checkpoint '{self.checkpoint}' has format {found.get('format')}, and this "
                f"version reads format {FORMAT}: use the version that wrote it, or a new one."
            )
        if dict(found) != dict(facts):
            alike = found.keys() == facts.keys()
            why = ", for state per worker cannot move to other workers" if alike else ""
            raise SkewlessError(
                f"The checkpoint '{self.checkpoint}' was written with {_words(found)}, but this "
                f"stream has {_words(facts)}: use the same, or a new checkpoint{why}."
            )

    def claim_state(self, facts: StateFacts) -> None:
        """Keep what the state of the stream is about, or refuse a change once it has started."""
        path = self.base / "state.json"
        if path.exists() and self._has_started():
            found = _read_facts(path)
            key, held = _texts(path, found.get("key")), _texts(path, found.get("folds"))
            if (tuple(key), tuple(held)) != facts:
                raise SkewlessError(
                    f"The checkpoint '{self.checkpoint}' was written with "
                    f"{facts.changes_from((key, held))}"
                )
            return
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise not_written(path, error) from None
        write_once(path, json.dumps(facts._asdict()).encode())

    def _has_started(self) -> bool:
        """Whether Spark, if this is its folder too, or a task of ours has begun a batch."""
        kept = [self.base, *(self.base / "settings").glob("*")]
        folders = (Path(self.checkpoint) / "offsets", *(folder / "batches" for folder in kept))
        return any(path.name.isdigit() for folder in folders for path in folder.glob("*"))

    def begin(self, learned: Learned) -> None:
        """Write the first plan, unless the stream has one."""
        self._make_folders()
        if not self._numbers():
            self.write(0, learned)

    def write(self, batch: int, learned: Learned) -> None:
        """Keep what was learned for this batch and the following; the first to write it wins."""
        facts = {
            "format": FORMAT,
            "batch": batch,
            "messages": learned.messages,
            "replans": learned.replans,
        }
        data = pack(facts, learned.loads, learned.plan, learned.pending)
        write_once(self._plan(batch), data)
        self._prune()

    def settle(self, batch: int) -> Learned:
        """What a batch runs with, settled now if no task of it has done so."""
        settled = self.root / "batches" / str(batch)
        if not settled.exists():
            write_once(settled, str(self._newest(batch)).encode())
            self._prune()
        return self._read(_number_in(settled))

    def plan_of(self, batch: int | None) -> Arrays:
        """What a task of this batch routes by.

        Of a job in a thread that the user started in `foreachBatch`, or of any there on a Connect
        server, Spark does not say of which batch it is: it follows the first plan.
        """
        return self.first_plan() if batch is None else self.settle(batch).plan

    def used(self, batch: int) -> Learned:
        """What a batch ran with, or would run with if it has not begun."""
        return self._read(self._used(batch))

    def before(self, batch: int) -> tuple[Learned, bool]:
        """What all batches before this one taught, and whether this one already ran with it."""
        newest = self._newest(batch)
        return self._read(newest), newest == self._used(batch)

    def _used(self, batch: int) -> int:
        settled = self.root / "batches" / str(batch)
        return _number_in(settled) if settled.exists() else self._newest(batch)

    def _newest(self, batch: int) -> int:
        numbers = [number for number in self._numbers() if number <= batch]
        if not numbers and self._numbers():
            raise SkewlessError(
                f"The plans in '{self.root}' begin with batch {min(self._numbers())}, and this "
                f"stream is at batch {batch}: they are of an older stream; {_DELETE} there, or "
                "give a new checkpoint."
            )
        if not numbers:
            raise SkewlessError(
                f"'{self.root}' holds no plan for batch {batch}: it is not visible to this "
                "machine or was emptied; give a folder that driver and executors share."
            )
        return max(numbers)

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in (self.root / "plans").glob("[0-9]*.npz")]

    def _plan(self, batch: int) -> Path:
        return self.root / "plans" / f"{batch}.npz"

    def first_plan(self) -> Arrays:
        """The plan of a scheme that has seen nothing."""
        rates = None if self.capacities is None else np.array(self.capacities)
        return self.scheme.plan(self.workers, self.seed, rates)

    def _read(self, number: int) -> Learned:
        plan = self.first_plan()
        report = empty_report(self.scheme, plan)
        path = self._plan(number)
        try:
            facts, states = unpack(path.read_bytes(), np.empty(0), plan, report)
        except FileNotFoundError:
            raise SkewlessError(
                f"The plan '{path}' is missing: {_DELETE} in '{self.root}', and the stream goes on "
                "with a first plan; results do not depend on it."
            ) from None
        except UnreadableError as error:
            raise SkewlessError(
                f"The plan '{path}' is {error}: {_DELETE} in '{self.root}', and the stream goes on "
                "with a first plan; results do not depend on it."
            ) from None
        loads, plan, pending = states
        return Learned(plan, pending, facts["messages"], facts["replans"], loads)

    def _prune(self) -> None:
        """Forget all but the newest, as Spark does with its own logs of batches.

        Parts of files, which whoever died between writing and naming them left, go too.
        """
        for folder in _FOLDERS:
            found = list((self.root / folder).iterdir())
            paths = [p for p in found if p.stem.isdigit()]
            for path in sorted(paths, key=lambda p: int(p.stem))[:-KEPT]:
                path.unlink(missing_ok=True)
            for part in (p for p in found if p.name.startswith(".")):
                with contextlib.suppress(OSError):
                    if part.stat().st_mtime < time.time() - _PART_S:
                        part.unlink(missing_ok=True)


def stream_folder(
    checkpoint: str, scheme: Scheme, workers: int, seed: int, capacities: F64 | None = None
) -> StreamFolder:
    """The folder, if the checkpoint is one that Python can open as files."""
    rates = None if capacities is None else tuple(capacities.tolist())
    return StreamFolder(checkpoint_path(checkpoint), scheme, workers, seed, capacities=rates)


def empty_report(scheme: Scheme, plan: Any) -> Arrays:
    """The report of a source that saw nothing."""
    return scheme.report(plan, scheme.tally(plan, 0))


def _words(facts: Mapping[str, Any]) -> str:
    words = [f"scheme '{facts.get('scheme')}'", f"{facts.get('workers')} workers"]
    words += [f"{n} {facts[n]}" for n in sorted(facts.keys() - {"scheme", "workers", "format"})]
    return ", ".join(words)


def _read_facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text())
    except ValueError:
        raise _damaged(path) from None
    if not isinstance(facts, dict):
        raise _damaged(path)
    return facts


def _number_in(settled: Path) -> int:
    try:
        return int(settled.read_text())
    except ValueError:
        raise SkewlessError(
            f"'{settled}' is damaged: delete it, and its batch is routed by the newest plan; "
            "results do not depend on it."
        ) from None


def _damaged(path: Path) -> SkewlessError:
    return SkewlessError(f"'{path}' is damaged: restore it, or start with a new checkpoint.")


def _texts(path: Path, found: Any) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(part, str) for part in found):
        raise _damaged(path)
    return found
