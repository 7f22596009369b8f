"""Magics and shell lines, as far as a kernel without a person has them. Compiled when the first is used; `W` is the worker."""

import os
import re
import sys
import time

PLAIN = {}
CELL = {}


class UsageError(Exception):
    """A magic was used wrongly."""


class ShellError(Exception):
    """A script ended with another exit code than 0."""

    def __init__(self, what, returncode):
        super().__init__("%s ended with exit code %d" % (what, returncode))
        self.returncode = returncode


def line(*names):
    def register(function):
        for name in names:
            PLAIN[name] = function
        return function
    return register


def cell(*names):
    def register(function):
        for name in names:
            CELL[name] = function
        return function
    return register


# ---- {expressions} and $names

_FIELD = re.compile(r"\$\$|\$\{[^}]*\}|\$([A-Za-z_][\w.]*)|\{\{|\}\}|\{([^{}]+)\}")


def expand(text, scope):
    """Replaces {expression} and $name by their values; what does not evaluate is left as it is, for the shell."""
    names = dict(W.user.__dict__)
    names.update(scope)

    def value(found):
        whole = found.group(0)
        if whole == "$$":
            return whole
        if whole in ("{{", "}}"):
            return whole[0]
        if whole.startswith("${"):
            return whole
        name, field = found.group(1), found.group(2)
        try:
            if name is not None:
                first = name.split(".")[0]
                if first not in names:
                    return whole
                trailing = ""
                while name.endswith("."):
                    name, trailing = name[:-1], trailing + "."
                return str(eval(name, names)) + trailing
            return _format(field, names)
        except Exception:
            return whole

    return _FIELD.sub(value, text)


def _format(field, names):
    try:
        return str(eval(field, names))
    except SyntaxError:
        pass
    match = re.match(r"(?s)(.*?)(?:!([rsa]))?(?::([^:]*))?$", field)
    result = eval(match.group(1), names)
    conversion, spec = match.group(2), match.group(3) or ""
    if conversion:
        result = {"r": repr, "s": str, "a": ascii}[conversion](result)
    return format(result, spec)


# ---- shell

def _bash():
    from shutil import which
    return which("bash") or "/bin/sh"


def _run(arguments, **more):
    """Runs a program whose output goes where the kernel's goes. An interrupt ends it."""
    import subprocess
    W.flush()
    process = subprocess.Popen(arguments, stdin=more.pop("stdin", subprocess.DEVNULL), **more)
    return _finish(process)


def _finish(process, data=None):
    import subprocess
    try:
        out = process.communicate(data)[0]
    except BaseException:
        # The interrupt has reached the whole group; what does not end by it is killed.
        try:
            process.wait(1)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        raise
    return (process.returncode, out) if out is not None else process.returncode


def _code(code):
    W.user.__dict__["_exit_code"] = code
    if code:
        print("[exit code %d]" % code if code > 0 else "[killed by signal %d]" % -code)


class Lines(list):
    """What a command printed, a line each; `n` or `s` is the text, `returncode` the exit code."""
    returncode = 0

    @property
    def n(self):
        return "\n".join(self)

    nlstr = n

    @property
    def s(self):
        return " ".join(self)

    spstr = s

    @property
    def l(self):  # noqa: E743
        return list(self)

    list = l

    def grep(self, pattern, prune=False):
        return Lines([x for x in self if bool(re.search(pattern, x, re.I)) != prune])

    def fields(self, *numbers):
        if not numbers:
            return [x.split() for x in self]
        return Lines([" ".join(x.split()[i] for i in numbers if i < len(x.split())) for x in self])


class Shell:
    """The part of IPython's shell that rewritten cells use."""

    @property
    def user_ns(self):
        return W.user.__dict__

    def system(self, command):
        _code(_run([_bash(), "-c", expand(command, _scope(2))]))

    system_raw = system_piped = system

    def getoutput(self, command, split=True):
        import subprocess
        W.flush()
        process = subprocess.Popen(
            [_bash(), "-c", expand(command, _scope(2))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        code, out = _finish(process)
        text = out.decode("utf-8", "replace")
        _code(code)
        if not split:
            return text
        lines = Lines(text.splitlines())
        lines.returncode = code
        return lines

    def run_line_magic(self, name, text, _stack_depth=1):
        function = PLAIN.get(name)
        if function is None:
            raise UsageError("there is no line magic %%%s%s" % (name, "; write %%%%%s on the first line of a cell" % name if name in CELL else ""))
        scope = _scope(2)
        if name not in ("time", "timeit"):
            text = expand(text, scope)
        return function(text.strip(), scope)

    def run_cell_magic(self, name, text, body):
        function = CELL.get(name)
        if function is None:
            raise UsageError("there is no cell magic %%%%%s" % name)
        scope = _scope(2)
        at = sys._getframe(1)
        scope["__haft_at"] = (at.f_code.co_filename, at.f_lineno)
        if name not in ("time", "timeit"):
            text = expand(text, scope)
        return function(text.strip(), body, scope)

    def run_cell(self, source, **_more):
        W.run_source(source, "<run_cell>", self.user_ns, echo=False)

    def push(self, names, interactive=True):
        self.user_ns.update(names)

    def __repr__(self):
        return "<Haft's kernel>"


shell = Shell()


def _scope(depth):
    frame = sys._getframe(depth)
    return dict(frame.f_locals) if frame.f_globals is W.user.__dict__ and frame.f_locals is not frame.f_globals else {}


def _words(text):
    import shlex
    try:
        return shlex.split(text)
    except ValueError as problem:
        raise UsageError("%s: %s" % (problem, text)) from None


# ---- directories and variables

@line("cd")
def _cd(text, _scope):
    words = _words(text)
    quiet = "-q" in words
    words = [w for w in words if w != "-q"]
    state = W.S.ran
    target = words[0] if words else "~"
    if target == "-":
        target = state.get("oldpwd")
        if target is None:
            raise UsageError("%cd -: there is no earlier directory")
    old = os.getcwd()
    os.chdir(os.path.expanduser(target))
    state["oldpwd"] = old
    if not quiet:
        print(os.getcwd())


@line("pwd")
def _pwd(_text, _scope):
    return os.getcwd()


@line("ls", "ll")
def _ls(text, _scope):
    _code(_run([_bash(), "-c", "ls " + text]))


@line("env", "set_env")
def _env(text, _scope):
    if not text:
        return dict(os.environ)
    match = re.match(r"([^\s=]+)(?:\s*=\s*|\s+)(.*)$", text, re.S)
    if match is None:
        if text not in os.environ:
            raise UsageError("there is no environment variable %s" % text)
        return os.environ[text]
    name, value = match.group(1), match.group(2).strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    os.environ[name] = value
    print("env: %s=%s" % (name, value))


def _named():
    ours = set(W._OURS) | {"_", "_exit_code"}
    return sorted(n for n in W.user.__dict__ if not n.startswith("__") and n not in ours)


@line("who_ls")
def _who_ls(text, _scope):
    kinds = text.split()
    return [n for n in _named() if not kinds or type(W.user.__dict__[n]).__name__ in kinds]


@line("who")
def _who(text, scope):
    names = _who_ls(text, scope)
    print("\t".join(names) if names else "There are no variables.")


@line("whos")
def _whos(text, scope):
    names = _who_ls(text, scope)
    if not names:
        print("There are no variables.")
        return
    width = max(len(n) for n in names)
    for name in names:
        value = W.user.__dict__[name]
        shape = getattr(value, "shape", None)
        about = "shape %s" % (shape,) if isinstance(shape, tuple) else W.displays.text_of(value).split("\n")[0][:80]
        print("%-*s  %-12s  %s" % (width, name, type(value).__name__, about))


@line("reset")
def _reset(_text, _scope):
    names = _named()
    for name in names:
        del W.user.__dict__[name]
    W.user.__dict__.pop("_", None)
    W.user.__dict__.update(W._OURS)
    print("%d names removed; imported modules stay loaded. `reset`: true starts a fresh interpreter." % len(names))


@line("xdel", "reset_selective")
def _reset_selective(text, _scope):
    pattern = re.compile(text.replace("-f", "").strip() or "$^")
    gone = [n for n in _named() if pattern.search(n)]
    for name in gone:
        del W.user.__dict__[name]
    print("Removed: %s" % (", ".join(gone) or "nothing"))


@line("matplotlib", "pylab", "config", "colors", "xmode", "pprint", "doctest_mode")
def _nothing(_text, _scope):
    """Figures are shown at the end of a cell anyway."""


@line("precision")
def _precision(text, _scope):
    if "numpy" in sys.modules and text:
        sys.modules["numpy"].set_printoptions(precision=int(text.strip("%.f")))


@line("lsmagic", "quickref", "magic")
def _lsmagic(_text, _scope):
    print("Line magics: %s" % " ".join("%" + n for n in sorted(PLAIN)))
    print("Cell magics: %s" % " ".join("%%" + n for n in sorted(CELL)))


@line("load", "pycat")
def _load(text, _scope):
    with open(os.path.expanduser(_words(text)[-1]), encoding="utf-8") as file:
        print(file.read(), end="")


@line("pinfo", "pinfo2", "pdoc", "pdef", "psource", "pfile", "psearch")
def _pinfo(text, scope):
    import inspect
    names = dict(W.user.__dict__, **scope)
    if "*" in text:
        import fnmatch
        parts = text.rsplit(".", 1)
        pool = dir(eval(parts[0], names)) if len(parts) == 2 else list(names) + dir(W.builtins)
        print("\n".join(sorted(n for n in pool if fnmatch.fnmatch(n, parts[-1]))) or "Nothing is named like that.")
        return
    if text.lstrip("%") in PLAIN or text.lstrip("%") in CELL:
        function = PLAIN.get(text.lstrip("%")) or CELL.get(text.lstrip("%"))
        print("%s: a magic of this kernel. %s" % (text, function.__doc__ or ""))
        return
    try:
        value = eval(text, names)
    except Exception as problem:
        raise UsageError("%s cannot be looked up: %s: %s" % (text, type(problem).__name__, problem)) from None
    told = []
    try:
        told.append("Signature: %s%s" % (text, inspect.signature(value)))
    except (TypeError, ValueError):
        pass
    told.append("Type:      %s" % type(value).__name__)
    if not callable(value):
        told.append("Value:     %s" % W.cut(W.displays.text_of(value), 500))
    try:
        told.append("File:      %s" % inspect.getfile(value))
    except (TypeError, OSError):
        pass
    doc = inspect.getdoc(value)
    if doc:
        told.append("Docstring:\n%s" % W.cut(doc, 8000))
    print("\n".join(told))


# ---- time

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


# ---- scripts and files

def _script(program, text, body, scope):
    words = _words(text)
    background, kept = False, []
    for word in words:
        if word == "--bg":
            background = True
        elif word != "--no-raise-error":
            kept.append(word)
    if background:
        raise UsageError("--bg is not there: what is to stay belongs to the shell tool with background: true")
    code, _ = _feed([program] + kept, body)
    W.user.__dict__["_exit_code"] = code
    if code:
        if "--no-raise-error" in words:
            _code(code)
        else:
            raise ShellError("%%%%%s" % os.path.basename(program), code)


def _feed(arguments, body):
    import subprocess
    W.flush()
    try:
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE)
    except FileNotFoundError:
        raise UsageError("there is no program %s" % arguments[0]) from None
    result = _finish(process, body.encode())
    return (result, None) if isinstance(result, int) else result


for _name in ("bash", "sh", "perl", "ruby", "python3", "python", "node"):
    def _one(text, body, scope, _program=_name):
        _script(sys.executable if _program.startswith("python") else _program, text, body, scope)
    CELL[_name] = _one


@cell("script")
def _any_script(text, body, scope):
    words = _words(text)
    if not words:
        raise UsageError("%%script needs a program: %%script ruby")
    import shlex
    _script(words[0], " ".join(shlex.quote(w) for w in words[1:]), body, scope)


@cell("!", "sx", "system")
def _cell_system(text, body, scope):
    return shell.getoutput(text + "\n" + body)


@line("sx", "system")
def _line_system(text, _scope):
    return shell.getoutput(text)


@cell("writefile", "file")
def _writefile(text, body, _scope):
    words = _words(text)
    append = "-a" in words or "--append" in words
    words = [w for w in words if w not in ("-a", "--append")]
    if len(words) != 1:
        raise UsageError("%%writefile [-a] FILE")
    path = os.path.expanduser(words[0])
    there = os.path.exists(path)
    with open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(body)
    print("%s %s" % ("Appended to" if append and there else "Overwrote" if there else "Wrote", path))


@cell("capture")
def _capture(text, body, scope):
    import contextlib
    import io
    words = [w for w in text.split() if not w.startswith("-")]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            W.run_source(_at_its_lines("", body, scope), scope["__haft_at"][0], W.user.__dict__, echo=False)
    finally:
        if words:
            W.user.__dict__[words[0]] = Captured(out.getvalue(), err.getvalue())


class Captured:
    """What %%capture kept."""

    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr

    def show(self):
        print(self.stdout, end="")
        print(self.stderr, end="", file=sys.stderr)

    __call__ = show

    def __str__(self):
        return self.stdout


def _as(mime):
    def show(_text, body, _scope):
        W.displays.display({mime: body, "text/plain": body if mime != "text/html" else "<HTML>"}, raw=True)
    return show


for _name, _mime in (("html", "text/html"), ("HTML", "text/html"), ("markdown", "text/markdown"), ("latex", "text/latex"), ("svg", "image/svg+xml"), ("SVG", "image/svg+xml")):
    CELL[_name] = _as(_mime)


@line("run")
def _run_file(text, _scope):
    words = _words(text)
    inside, module = False, False
    while words and words[0].startswith("-"):
        option = words.pop(0)
        if option == "-i":
            inside = True
        elif option == "-m":
            module = True
            break
        elif option not in ("-e", "-n"):
            raise UsageError("%%run knows -i and -m, not %s" % option)
    if not words:
        raise UsageError("%run FILE [arguments]")
    old, old_path, main = sys.argv, list(sys.path), sys.modules["__main__"]
    try:
        if module:
            import runpy
            sys.argv = words
            names = runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        else:
            path = os.path.expanduser(words[0])
            if not os.path.exists(path) and os.path.exists(path + ".py"):
                path += ".py"
            sys.argv = [path] + words[1:]
            sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec", 0, True)
            names = W.user.__dict__ if inside else {"__name__": "__main__", "__file__": path, "__builtins__": W.builtins}
            try:
                exec(code, names)
            except SystemExit as left:
                if left.code not in (None, 0):
                    raise
    finally:
        sys.argv, sys.path[:] = old, old_path
        sys.modules["__main__"] = main
    if not inside:
        W.user.__dict__.update({k: v for k, v in names.items() if not k.startswith("__")})
