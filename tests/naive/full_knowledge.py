def route(scheme, keys, workers, seed, source):
    """Every message costs 1."""
    given, out = [0] * workers, []
    for _ in keys:
        out.append(given.index(min(given)))
        given[out[-1]] += 1
    return out
