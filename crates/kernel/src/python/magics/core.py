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
