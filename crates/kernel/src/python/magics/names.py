"""Magics about directories, variables and what objects are. Compiled with `core.py`, whose names it uses."""

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
    try:
        old = os.getcwd()
    except OSError:
        old = None  # It is gone: this is the way out.
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
