"""Magics that measure. Compiled with `core.py`, whose names it uses."""

def _seconds(value):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 1:
            return "%.3g %s" % (value * scale, unit)
    return "%.3g ns" % (value * 1e9)


def _timed(source, name, namespace):
    begin, cpu = time.perf_counter(), time.process_time()
    try:
        has, value = W.run_source(source, name, namespace)
    finally:
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        print("CPU time: %s, wall time: %s" % (_seconds(cpu), _seconds(wall)))
    return value if has else None


@line("time")
def _time(text, scope):
    at = sys._getframe(2)
    source = "\n" * (at.f_lineno - 1) + text
    if scope:
        names = dict(W.user.__dict__, **scope)
        return _timed(source, at.f_code.co_filename, names)
    return _timed(source, at.f_code.co_filename, W.user.__dict__)


@cell("time")
def _cell_time(text, body, scope):
    return _timed(_at_its_lines(text, body, scope), scope["__haft_at"][0], W.user.__dict__)


def _at_its_lines(text, body, scope):
    """The body where it stands in the cell, so that tracebacks fit."""
    number = scope["__haft_at"][1]
    return "\n" * (number - 1) + (text if text else "") + "\n" + body


@line("timeit")
def _timeit(text, scope):
    options, statement = _timeit_options(text)
    return _measure(statement, "pass", options, scope)


@cell("timeit")
def _cell_timeit(text, body, scope):
    options, setup = _timeit_options(text)
    scope.pop("__haft_at", None)
    return _measure(body, setup or "pass", options, scope)


def _timeit_options(text):
    options = {"n": None, "r": 7, "q": False, "o": False}
    while True:
        match = re.match(r"-([nr])\s*(\d+)\s*|-([qopct]+)(?:\s+|$)", text)
        if match is None:
            return options, text
        if match.group(1):
            options[match.group(1)] = max(1, int(match.group(2)))
        else:
            for letter in match.group(3):
                options[letter] = True
        text = text[match.end():]


def _measure(statement, setup, options, scope):
    import statistics
    import timeit
    timer = timeit.Timer(statement, setup, globals=dict(W.user.__dict__, **scope) if scope else W.user.__dict__)
    number = options["n"]
    if number is None:
        # As timeit's autorange, with a shorter aim: somebody waits for the answer.
        number = 1
        while timer.timeit(number) < 0.05:
            number *= 2 if number < 10 else 5
    runs = [t / number for t in timer.repeat(options["r"], number)]
    if not options["q"]:
        print("%s ± %s per loop (mean ± std. dev. of %d runs, %d loops each)" % (
            _seconds(statistics.fmean(runs)), _seconds(statistics.pstdev(runs)), len(runs), number))
    return runs if options["o"] else None
