def route(scheme, keys, workers, seed, source):
    loads = [0] * workers
    home = {}
    for key in keys:
        if key not in home:
            home[key] = min(range(workers), key=lambda w: loads[w])
        loads[home[key]] += 1
    return [home[key] for key in keys]
