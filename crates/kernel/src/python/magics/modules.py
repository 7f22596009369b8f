"""Magics about modules that are loaded again, and packages. Compiled with `core.py`, whose names it uses."""

@line("load_ext", "reload_ext", "unload_ext")
def _load_ext(text, _scope):
    if text != "autoreload":
        raise UsageError("%%load_ext knows autoreload, not %s: IPython's extensions need IPython" % (text or "nothing"))
    W.S.ran.setdefault("stamps", _stamps())


@line("autoreload", "aimport")
def _autoreload(text, _scope):
    mode = text.split()[0] if text.split() else "2"
    W.S.ran["reload"] = mode in ("1", "2", "all", "explicit", "complete", "now")
    W.S.ran.setdefault("stamps", _stamps())
    if mode in ("", "now"):
        reload_changed()


def _stamps():
    stamps = {}
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if not isinstance(path, str) or not path.endswith(".py") or "-packages" in path or path.startswith(sys.base_prefix + "/lib/python"):
            continue
        try:
            stat = os.stat(path)
            stamps[name] = (stat.st_mtime_ns, stat.st_size)
        except OSError:
            pass
    return stamps


def note_loaded():
    """Modules that a cell has loaded are compared with how they are now from here on."""
    for name, stamp in _stamps().items():
        W.S.ran["stamps"].setdefault(name, stamp)


def reload_changed():
    """Loads modules of the project again whose files have changed, and rebinds names that came from them."""
    import importlib
    old = W.S.ran.get("stamps", {})
    new = _stamps()
    for name, stamp in new.items():
        if name not in old or old[name] == stamp:
            continue
        module = sys.modules[name]
        before = dict(module.__dict__)
        try:
            # Compiled files are told apart by second and size only.
            cached = getattr(module, "__cached__", None)
            if cached and os.path.exists(cached):
                os.remove(cached)
            importlib.invalidate_caches()
            importlib.reload(module)
        except Exception as problem:
            print("[autoreload of %s failed: %s: %s]" % (name, type(problem).__name__, problem), file=sys.stderr)
            continue
        for key, value in list(W.user.__dict__.items()):
            if key in before and before[key] is value and not key.startswith("__") and key in module.__dict__:
                W.user.__dict__[key] = module.__dict__[key]
    W.S.ran["stamps"] = new


@line("pip", "uv")
def _pip(text, _scope):
    _install(_words(text))


@line("conda", "mamba", "micromamba")
def _conda(_text, _scope):
    raise UsageError("%conda is not there: a kernel runs in a venv or the system's Python. Use %pip, or the shell tool.")


def _distributions():
    from importlib import metadata
    found = {}
    for one in metadata.distributions():
        try:
            name = (one.metadata["Name"] or "").lower().replace("_", "-")
            record = one._path if hasattr(one, "_path") else None
            stamp = os.stat(str(record)).st_mtime_ns if record is not None and os.path.exists(str(record)) else 0
            found.setdefault(name, (one.version, stamp, one))
        except Exception:
            continue
    return found


def _tops(distribution):
    """The names under which a distribution's modules are imported, and whether any of its files is compiled."""
    names, compiled = set(), False
    for file in distribution.files or []:
        parts = file.parts
        if not parts or parts[0] == ".." or parts[0].endswith((".dist-info", ".egg-info")) or parts[0] == "__pycache__":
            continue
        if str(file).endswith((".so", ".pyd", ".dylib")):
            compiled = True
        top = parts[0]
        if len(parts) == 1:
            if not top.endswith((".py", ".so", ".pyd")):
                continue
            top = top.split(".")[0]
        names.add(top)
    if not names:
        names.update((distribution.read_text("top_level.txt") or "").split())
    return names, compiled


def _install(words):
    import importlib
    import importlib.util
    if words[:1] == ["pip"]:
        words = words[1:]
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip"] + words
    else:
        from shutil import which
        uv = which("uv")
        if uv is None:
            raise UsageError(
                "this interpreter (%s) has no pip, and there is no uv on PATH: run `%s -m ensurepip`, or install uv" % (sys.executable, sys.executable))
        command = [uv, "pip"] + words[:1] + ["--python", sys.executable] + [w for w in words[1:] if w not in ("-y", "--yes")]
    environment = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_PROGRESS_BAR="off", PYTHONUNBUFFERED="1")
    before = _distributions()
    code = _run(command, env=environment)
    importlib.invalidate_caches()
    after = _distributions()
    changed = [n for n in sorted(set(before) | set(after)) if (before.get(n) or (0, 0))[:2] != (after.get(n) or (0, 0))[:2]]
    evicted, stuck = [], []
    for name in changed:
        tops, compiled = set(), False
        for side in (before, after):
            if name in side:
                more, binary = _tops(side[name][2])
                tops |= more
                compiled = compiled or binary
        loaded = [m for m in list(sys.modules) if m.split(".")[0] in tops and m.split(".")[0] != "__main__"]
        if not loaded:
            continue
        if any((getattr(sys.modules[m], "__file__", None) or "").endswith((".so", ".pyd")) for m in loaded):
            stuck.append(name)
            continue
        for module in loaded:
            del sys.modules[module]
        evicted.append("%s (%s)" % (name, ", ".join(sorted({m.split(".")[0] for m in loaded}))))
    if evicted:
        print("[fresh at the next import: %s]" % "; ".join(evicted))
    if stuck:
        print(
            "[%s: compiled modules of it are loaded and cannot be loaded twice. Until the kernel is started anew (`reset`: true, variables are lost) "
            "the old version stays.]" % ", ".join(stuck))
    if code:
        raise ShellError("%pip", code)
