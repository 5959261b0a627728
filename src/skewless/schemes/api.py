"""What a scheme is: parameters, a plan, a tally per source, a gauge per worker, compiled steps.

A scheme is a frozen dataclass of parameters. All state lives in NamedTuples of NumPy arrays that
pickle, cross Arrow and compile: the **plan** (the driver's decision, read-only), a **tally** per
source (starts empty), a **gauge** for all workers (leading axis W). An absent part is `()`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, ClassVar, Literal, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from skewless.arguments import whole
from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.schemes import loops
from skewless.schemes.loops import specialise
from skewless.spec import Described

Arrays = tuple[Any, ...]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
F64 = npt.NDArray[np.float64]

MOST_WORKERS = 1_000_000
MOST_CELLS = 50_000_000  # of one table of a scheme: some 400 MB
ONE = np.ones(1)  # the weight of every message, where `route` is to count messages

NO_SIGNAL = 0
TRUE_LOAD = 1  # signal[0] is the worker's load over all sources, divided by their number


class Feedback(NamedTuple):
    """What an engine saw of its workers since the last plan; all zero where it saw nothing."""

    served: F64  # [W] messages
    busy_s: F64  # [W] seconds of work
    queue: F64  # [W] messages waiting
    loads: F64  # [W] messages since the start

    @classmethod
    def none(cls, workers: int) -> Feedback:
        """Nothing was seen."""
        return cls(*(np.zeros(workers) for _ in cls._fields))


class RouteTable(NamedTuple):
    """A plan that needs no tally, in a form that an engine compiles to its own expressions.

    A head key goes to its worker, or, if it is split, to one of its slots: 31 bits of the hash of
    the row's salt scaled to their number. Any other key goes to the worker of its bucket, where
    the bucket is 31 bits of the first choice's hash scaled to the number of buckets.
    """

    seeds: U64  # [2] hash seeds of the choices
    seed: int  # the seed they come from: literals 2·seed and 2·seed + 1
    buckets: I32  # [b] the worker of each bucket
    heads: U64  # [h] identities
    head_starts: I64  # [h + 1] where each head's slots begin
    head_workers: I32  # [slots] the worker of each slot; one slot per head that is not split

    @property
    def splits(self) -> bool:
        """Is any head split over workers?"""
        return self.head_workers.size > self.heads.size


@compiled
def never_mark(plan: Any, tally: Any, worker: int, note: F64) -> bool:
    """No note rides on any message."""
    return False


@compiled
def serve_silently(
    plan: Any,
    gauge: Any,
    worker: int,
    key: np.uint64,
    cost: float,
    now: float,
    marked: bool,
    note: F64,
    signal: F64,
) -> int:
    """The worker sends no signal."""
    return NO_SIGNAL


@compiled
def hear_nothing(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Signals are ignored."""


@compiled
def hear_true_load(plan: Any, tally: Any, worker: int, kind: int, signal: F64, now: float) -> None:
    """Probing: the tally's load of a worker becomes the true one."""
    if kind == TRUE_LOAD:
        tally.loads[worker] = signal[0]


class Scheme(Described, ABC):
    """Base of all schemes: most need only `plan`, `tally`, `choose` and `route`.

    Compiled functions are class attributes, one message each; the loops belong to the hosts:

    - `choose(plan, tally, key, weight, now) -> worker` updates the tally
    - `mark(plan, tally, worker, note) -> bool`: does a note ride on this message
    - `serve(plan, gauge, worker, key, cost, now, marked, note, signal) -> kind`, 0 = none
    - `hear(plan, tally, worker, kind, signal, now)`: a signal arrives, late, at one source
    - `route(plan, tally, keys, weights, times, out)`: the loop over `choose`, made here unless the
      class has a faster one of its own; `weights` may be the one weight of all messages
    """

    learns: ClassVar[Literal["nothing", "prefix", "stream"]] = "nothing"
    coordinated: ClassVar[bool] = False
    """Remembers every key at the source: sources would have to share the memory."""
    one_worker_per_key: ClassVar[bool] = False
    """Under one plan a key has one worker whatever the source: functions need no merge."""

    least_workers: ClassVar[int] = 1
    """Fewer workers than this leave the scheme nothing to choose between."""

    note_floats: ClassVar[int] = 1
    """Length of a note."""
    signal_floats: ClassVar[int] = 1
    """Length of a signal."""
    plans_keys: ClassVar[bool] = False
    """A plan that was learned from a sample knows keys, so it is worth learning before a job."""
    learns_costs: ClassVar[bool] = False
    """Estimates what the messages of a key cost from how long they took: `balanced_map` asks it."""
    knows_costs: ClassVar[bool] = False
    """A message's weight is its cost, known before it is served; plans know capacities."""

    choose: ClassVar[Callable[..., Any]]
    route: ClassVar[Callable[..., Any]]
    mark: ClassVar[Callable[..., Any]] = staticmethod(never_mark)
    serve: ClassVar[Callable[..., Any]] = staticmethod(serve_silently)
    hear: ClassVar[Callable[..., Any]] = staticmethod(hear_nothing)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "choose" in vars(cls) and "route" not in vars(cls):
            cls.route = staticmethod(specialise(loops.route, cls))

    def send(
        self, plan: Any, tally: Any, keys: U64, times: F64, out: I32, weights: F64 = ONE
    ) -> None:
        """Route messages, with arrays of the one kind that `route` is compiled for.

        weights: of each message, or one for all
        """
        unwritten = keys.view()
        unwritten.setflags(write=False)
        self.route(plan, tally, unwritten, weights, times, out)

    def warm_up(self, plan: Any) -> list[Callable[..., Any]]:
        """Compile `route`, or load what was compiled; what that was."""
        tally = self.reserve(self.tally(plan, 0), 0)
        self.send(plan, tally, np.empty(0, np.uint64), np.empty(0), np.empty(0, np.int32))
        return [self.route]

    @property
    def learning_messages(self) -> int:
        """How many messages a scheme that learns from a prefix only learns from."""
        return 0

    @property
    def replan_every(self) -> int:
        """Messages after which a simulation replans, as an engine does per batch; 0 = never."""
        return 0

    @abstractmethod
    def plan(self, workers: int, seed: int, capacities: F64 | None = None) -> Arrays:
        """The first plan, before anything was seen."""

    def tally(self, plan: Any, source: int) -> Arrays:
        """What one source keeps; starts empty."""
        return ()

    def gauge(self, plan: Any) -> Arrays:
        """What the workers keep, with leading axis W."""
        return ()

    def reserve(self, tally: Any, messages: int) -> Any:
        """The tally with room for that many more messages; called before each span."""
        return tally

    def report(self, plan: Any, tally: Any) -> Arrays:
        """The mergeable part of a tally."""
        return ()

    def merge(self, a: Any, b: Any) -> Arrays:
        """Two reports as one: associative and commutative."""
        return ()

    def replan(self, plan: Any, report: Any, feedback: Feedback) -> Any:
        """The plan for the next span of the stream."""
        return plan

    def replan_from(self, plan: Any, reports: Iterable[Any], feedback: Feedback) -> Any:
        """The plan that follows from the reports of one or more sources."""
        return self.replan(plan, reduce(self.merge, reports), feedback)

    def messages_until_replan(self, replans: int) -> int:
        """How many messages the next plan awaits after so many; 0 = there is no further one."""
        learning = self.learns == "prefix" and not replans
        return self.learning_messages if learning else self.replan_every

    def resized(
        self,
        plan: Any,
        tallies: Sequence[Any],
        gauge: Any,
        workers: int,
        seed: int,
        capacities: F64 | None,
        now: float,
    ) -> tuple[Any, list[Any], Any]:
        """Plan, tallies and gauge once there are other workers: 0 … workers − 1 from `now` on.

        Unless a scheme knows better, all start from a first plan.
        """
        made = self.plan(workers, seed, capacities)
        return made, [self.tally(made, s) for s in range(len(tallies))], self.gauge(made)

    def table(self, plan: Any) -> RouteTable | None:
        """The plan as a route table, or None if routing needs a tally."""
        return None

    def remark(self, loads: I64, sources: int) -> str | None:
        """What a user should know of this result, such as a target that was missed; else None."""
        return None

    def most_workers_per_key(self, workers: int) -> int:
        """The bound on a key's workers under one plan that this scheme promises."""
        return workers


def check_room(what: str, cells: int) -> None:
    """Refuse a parameter that would fill the memory; `what` is said of it."""
    if cells > MOST_CELLS:
        raise SkewlessError(f"{what} must be at most {MOST_CELLS:,}, not {cells:,}.")


def check_workers(workers: SupportsIndex, least: int = 1) -> int:
    """The number of workers as an int; refused below the least, or beyond what arrays can hold."""
    count = whole("The number of workers", workers)
    if count < least:
        raise SkewlessError(f"The number of workers must be at least {least}, not {count}.")
    if count > MOST_WORKERS:
        raise SkewlessError(
            f"The number of workers must be at most {MOST_WORKERS:,}, not {count:,}."
        )
    return count
