from dataclasses import dataclass

from tests.naive import key, partial, porc, shuffle

INNER = {"porc": porc, "key": key, "shuffle": shuffle, "partial": partial}


@dataclass
class Inner:
    epsilon: float
    choices: int = 2


def route(scheme, keys, workers, seed, source):
    """Without signals virtual worker v belongs to worker v mod W."""
    twin = INNER[scheme.inner]
    start = 0 if scheme.inner == "shuffle" else seed
    virtual = twin.route(Inner(scheme.epsilon), keys, workers * scheme.virtual, start, source)
    return [v % workers for v in virtual]
