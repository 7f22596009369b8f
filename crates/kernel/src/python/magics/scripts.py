"""Magics that run programs and files, and write files. Compiled with `core.py`, whose names it uses."""

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
