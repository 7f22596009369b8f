"""The Python side of a kernel: runs cells, sends displays, carries calls of tools. Standard library only, Python 3.8 and newer.

Started by a bootstrap that has read this source from descriptor 3. Descriptor 3 is a socket to Haft that carries frames (length as four
bytes, little end first, then JSON); descriptor 0 is /dev/null; 1 and 2 are pipes that Haft itself reads, so that what children and C
code write is captured too. In the pipes, marks (NUL, nonce, colon, what, NUL) say where a display belongs and where a cell ends.
"""

import builtins
import io
import json
import linecache
import os
import select
import signal
import sys
import types
import _thread
from _signal import signal as _set_signal

FRAMES = 3
WORKER = "<haft>"


class State:
    pid = os.getpid()
    main = _thread.get_ident()
    parts = {}
    nonce = ""
    cell = 0
    running = False
    critical = False
    pending = False
    displays = 0
    calls = 0
    leading = False
    flags = 0
    loop = None
    ran = {}
    held = b""


S = State()
_buffer = bytearray()
_write_lock = _thread.allocate_lock()
_wait_lock = _thread.allocate_lock()
_waiters = {}
_frames = os.dup(FRAMES)
_marks = (os.dup(1), os.dup(2))
_places = [(s.st_dev, s.st_ino) for s in map(os.fstat, _marks)]
os.close(FRAMES)
_poll = select.poll()
_poll.register(_frames, select.POLLIN)


# ---- interrupts

def _on_interrupt(_number, _frame):
    """Raises only while a cell runs, and never in the middle of a frame."""
    if not S.running:
        return
    if S.critical:
        S.pending = True
        return
    raise KeyboardInterrupt


class _Critical:
    def __enter__(self):
        self.mine = _thread.get_ident() == S.main and not S.critical
        if self.mine:
            S.critical = True

    def __exit__(self, *_):
        if self.mine:
            S.critical = False
            if S.pending:
                S.pending = False
                if S.running:
                    raise KeyboardInterrupt


# ---- frames

# json.dumps makes an encoder for every call that is not all defaults.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def send(frame, errors="replace", hold=False):
    """`errors`: what becomes of characters that UTF-8 does not have. What goes into a tool must not be changed in silence. `hold`: the frame
    goes out with the next one, which wakes Haft once for both."""
    data = _encode(frame).encode("utf-8", errors)
    data = len(data).to_bytes(4, "little") + data
    with _Critical():
        with _write_lock:
            S.held += data
            if hold:
                return
            view, S.held = memoryview(S.held), b""
            while view:
                view = view[os.write(_frames, view):]


def _receive():
    """The next frame. Only the leader reads."""
    while True:
        if len(_buffer) >= 4:
            length = int.from_bytes(_buffer[:4], "little")
            if len(_buffer) >= 4 + length:
                with _Critical():
                    body = bytes(_buffer[4:4 + length])
                    del _buffer[:4 + length]
                return json.loads(body)
        _poll.poll()
        with _Critical():
            piece = os.read(_frames, 1 << 16)
            _buffer.extend(piece)
        if not piece:
            os._exit(0)


class _Waiter:
    def __init__(self):
        self.wake = _thread.allocate_lock()
        self.wake.acquire()
        self.frame = None


def _wait(key, waiter):
    """Waits for the frame of `key`. One of those who wait reads for all; when it has its own, it passes the reading on."""
    with _wait_lock:
        lead = not S.leading
        if lead:
            S.leading = True
    try:
        if not lead:
            waiter.wake.acquire()
            lead = waiter.frame is None
        while lead and waiter.frame is None:
            frame = _receive()
            target = "run" if frame["op"] == "run" else frame.get("id")
            with _wait_lock:
                other = _waiters.get(target)
                if other is not None:
                    other.frame = frame
                    if other is not waiter:
                        other.wake.release()
        return waiter.frame
    finally:
        with _wait_lock:
            _waiters.pop(key, None)
            if not lead and waiter.frame is None and not waiter.wake.acquire(False):
                pass  # Interrupted before it was woken: somebody else still reads.
            elif lead or waiter.frame is None:
                heir = next((w for w in _waiters.values() if w.frame is None), None)
                if heir is None:
                    S.leading = False
                else:
                    heir.wake.release()


# ---- output

_write = os.write


def put(fd, data):
    """Writes all of it. A child that shares the pipe may have made it one that does not wait (Node does)."""
    while data:
        try:
            data = data[_write(fd, data):]
        except BlockingIOError:
            room = select.poll()
            room.register(fd, select.POLLOUT)
            room.poll()


class _Through(io.FileIO):
    """Holds nothing back: what was printed is seen at once, and not lost with a kernel that is killed or crashes."""

    def write(self, data):
        if type(data) is not bytes:
            data = memoryview(data).cast("B")
        put(self.fileno(), data)
        return len(data)


def _stream(fd):
    raw = _Through(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", write_through=True)


def flush():
    for stream in (getattr(sys, "stdout", None), getattr(sys, "stderr", None), _out, _err):
        try:
            stream.flush()
        except Exception:
            pass


def _flush_c():
    """What C code has in its own buffers. Only where C code that is not Python's own was loaded."""
    if "ctypes" in sys.modules or S.ran.get("modules") != len(sys.modules):
        S.ran["modules"] = len(sys.modules)
        if "ctypes" in sys.modules or any(
            "-packages" in (getattr(m, "__file__", None) or "") and m.__file__.endswith(".so")
            for m in list(sys.modules.values())
        ):
            try:
                import ctypes
                S.ran["fflush"] = ctypes.CDLL(None).fflush
            except Exception:
                pass
    if "fflush" in S.ran:
        S.ran["fflush"](None)


def mark(what, streams=(0, 1)):
    data = ("\0%s:%s\0" % (S.nonce, what)).encode()
    with _Critical():
        for stream in streams:
            put(_marks[stream], data)


def _is_shut(stream):
    try:
        return stream is None or stream.closed is True
    except AttributeError:
        return False
    except Exception:
        return True  # It was detached.


def _take_back():
    """Catches output again that an earlier cell has led elsewhere or shut: what nobody sees would look like nothing printed."""
    global _out, _err
    for fd, name in ((1, "stdout"), (2, "stderr")):
        try:
            here = os.fstat(fd)
        except OSError:
            here = None
        if here is None or (here.st_dev, here.st_ino) != _places[fd - 1]:
            os.dup2(_marks[fd - 1], fd)
            put(_marks[1], b"[descriptor %d had been closed or redirected by an earlier cell; it is captured again]\n" % fd)
        if _is_shut(getattr(sys, name, None)):
            stream = _stream(fd)
            setattr(sys, name, stream)
            setattr(sys, "__%s__" % name, stream)
            if fd == 1:
                _out = stream
            else:
                _err = stream
            put(_marks[1], b"[sys.%s had been closed or removed by an earlier cell; it is open again]\n" % name.encode())


def _note_replaced():
    """Says once of a stream that a cell leaves in the place of `sys.stdout` or `sys.stderr` that nothing of it is seen here."""
    for fd, name, ours in ((1, "stdout", _out), (2, "stderr", _err)):
        now = getattr(sys, name, None)
        known, S.ran[name] = S.ran.get(name), now
        if now is ours or now is known or _is_shut(now):
            continue
        try:
            if now.fileno() in (1, 2):
                continue
        except Exception:
            pass
        put(_marks[1], b"[sys.%s is left replaced: what is printed goes into its %s, in later cells too, until sys.%s = sys.__%s__]\n" % tuple(
            text.encode("utf-8", "replace") for text in (name, type(now).__name__, name, name)
        ))


def emit(frame):
    """Sends a display; a mark in the output says where it stands: without one, at its end. A forked child has nobody to send it to."""
    flush()
    if os.getpid() != S.pid:
        return
    S.displays += 1
    frame.update(op="display", n=S.displays)
    result = bool(frame.get("result"))
    # Nothing but figures comes behind the result.
    last = result and "matplotlib.pyplot" not in sys.modules
    if not last:
        mark("d%d" % S.displays, (0,))
    try:
        send(frame, hold=last)
    except (TypeError, ValueError, RecursionError) as problem:
        text = "<a value that could not be passed on: %s: %s>" % (type(problem).__name__, problem)
        send({"op": "display", "n": S.displays, "result": result, "data": {"text/plain": text}}, hold=last)


class _Part(types.ModuleType):
    """A part of the worker that is compiled when first used."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        source = S.parts.pop(self.__name__, None)
        if source is None:
            raise AttributeError(name)
        self.__dict__["W"] = sys.modules[__name__]
        exec(compile(source, WORKER, "exec"), self.__dict__)
        return getattr(self, name)


displays = _Part("displays")
magics = _Part("magics")
processes = _Part("processes")


def display(*objects, display_id=None, **_more):
    """Shows objects where the output stands: tables, pictures, text. With display_id=True answers a handle with update()."""
    return displays.display(*objects, display_id=display_id)


def update_display(value, *, display_id, **_more):
    """Shows something else where a display stood."""
    displays.show(value, display_id=display_id, update=True)


# ---- cells

def compile_cell(source, name, mode="exec"):
    flags = 0x2000 | S.flags  # PyCF_ALLOW_TOP_LEVEL_AWAIT
    if mode == "ast":
        return compile(source, name, "exec", flags | 0x400, True)  # PyCF_ONLY_AST
    code = compile(source, name, mode, flags, True)
    S.flags |= code.co_flags & FUTURE
    return code


def _future():
    import __future__ as f
    mask = 0
    for name in f.all_feature_names:
        mask |= getattr(f, name).compiler_flag
    return mask


FUTURE = _future()


def run_code(code, namespace):
    result = eval(code, namespace)
    if code.co_flags & 0x80:  # CO_COROUTINE
        return _run_coroutine(result)
    return result


def _run_coroutine(coroutine):
    import asyncio
    if S.loop is None or S.loop.is_closed():
        S.loop = asyncio.new_event_loop()
    asyncio.set_event_loop(S.loop)
    task = S.loop.create_task(coroutine)
    try:
        return S.loop.run_until_complete(task)
    except BaseException as problem:
        if not task.done():
            task.cancel()
            try:
                S.loop.run_until_complete(task)
            except BaseException as cut:
                # It knows where the cell was; the interrupt has come to the loop.
                problem.__cause__ = cut
        raise


def run_source(source, name, namespace, echo=True):
    """Runs statements; answers (has_value, value of the last expression)."""
    tree = compile_cell(source, name, "ast")
    body = tree.body
    last = body[-1] if body else None
    if echo and type(last).__name__ == "Expr":
        import _ast
        if len(body) > 1:
            del body[-1]
            run_code(compile_cell(tree, name, "exec"), namespace)
        value = run_code(compile_cell(_ast.Expression(last.value), name, "eval"), namespace)
        return True, value
    run_code(compile_cell(tree, name, "exec"), namespace)
    return False, None


def describe_error(error, source_name, source):
    import traceback
    if isinstance(error, SyntaxError) and error.filename == source_name and error.lineno:
        lines = source.split("\n")
        if error.lineno <= len(lines):
            original = lines[error.lineno - 1] + "\n"
            if error.text is not None and error.text.rstrip() != original.rstrip():
                error.text, error.offset = original, None
    try:
        message = str(error)
    except Exception as problem:
        message = "<the exception's str() failed: %r>" % (problem,)
    try:
        told = traceback.TracebackException.from_exception(error, limit=None)
        seen = set()
        queue = [told]
        while queue:
            one = queue.pop()
            if one is None or id(one) in seen:
                continue
            seen.add(id(one))
            kept = [frame for frame in one.stack if frame.filename != WORKER]
            one.stack = traceback.StackSummary.from_list(kept)
            queue += [one.__cause__, one.__context__] + list(getattr(one, "exceptions", None) or [])
        text = "".join(told.format()).rstrip("\n")
        if not told.stack and isinstance(error, SystemExit):
            text = text.splitlines()[-1]
    except Exception as problem:
        text = "%s: %s\n<the traceback could not be made: %r>" % (type(error).__name__, message, problem)
    return {"name": cut(type(error).__name__, 200), "message": message[:10000], "traceback": cut(text, 20000)}


def cut(text, limit):
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n[… %d characters left out …]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def run_cell(frame):
    S.cell = frame["cell"]
    name = "<cell %d>" % S.cell
    source, code = frame["source"], frame["code"]
    send({"op": "started", "cell": S.cell})
    lines = [line + "\n" for line in source.split("\n")]
    linecache.cache[name] = (len(source), None, lines, name)
    sys.modules["__main__"] = user
    _take_back()
    namespace = user.__dict__
    for key, value in _OURS.items():
        namespace.setdefault(key, value)
    status, error = "ok", None
    try:
        try:
            _set_signal(signal.SIGINT, _on_interrupt)
            S.pending = False
            S.running = True
            if S.ran.get("reload"):
                magics.reload_changed()
            has, value = run_source(code, name, namespace)
            if has and value is not None and not frame["quiet"]:
                namespace["_"] = value
                displays.show(value, result=True)
            if "matplotlib.pyplot" in sys.modules:
                displays.flush_figures()
        finally:
            S.running = False
    except BaseException as problem:
        S.running = False
        if os.getpid() == S.pid:
            status = "interrupted" if isinstance(problem, KeyboardInterrupt) else "error"
            error = describe_error(problem, name, source)
            if status == "error" and "matplotlib.pyplot" in sys.modules:
                try:
                    displays.flush_figures()
                except BaseException:
                    pass
        else:
            # A forked child's own failure: said where it can be seen.
            import traceback
            traceback.print_exc()
            flush()
            os._exit(problem.code if isinstance(getattr(problem, "code", None), int) else 1)
    if os.getpid() != S.pid:
        # A forked child that came to the end of the cell must not answer in the kernel's place.
        flush()
        os._exit(0)
    flush()
    try:
        if S.ran.get("reload"):
            magics.note_loaded()
        _flush_c()
    except Exception:
        pass
    _note_replaced()
    mark("e%d" % S.cell)
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    send({"op": "done", "cell": S.cell, "status": status, "error": error, "cwd": cwd})


# ---- what a cell sees

def _input(*_arguments):
    raise EOFError(
        "input() cannot be answered: nobody sits at this kernel. Put the value into the code, or ask the person with the ask_user tool."
    )


def _breakpoint(*_arguments, **_more):
    raise RuntimeError("breakpoint() has no terminal here. Use the debug tool, or print what you want to see.")


def _after_fork():
    try:
        os.close(_frames)
    except OSError:
        pass
    signal.signal(signal.SIGINT, signal.default_int_handler)


_HOOKED = {
    "matplotlib.pyplot": "displays", "IPython.core.display_functions": "displays",
    "multiprocessing.popen_fork": "processes", "multiprocessing.popen_spawn_posix": "processes",
    "multiprocessing.popen_forkserver": "processes",
}


class _Hook:
    """Runs something after a module was imported for the first time."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        part = _HOOKED.get(name)
        if part is None:
            return None
        for finder in sys.meta_path:
            if finder is _Hook or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def exec_module(module):
                    run(module)
                    globals()[part].patch(name, module)

                spec.loader.exec_module = exec_module
                return spec
        return None


def get_ipython():
    """What magics are rewritten to; the part of IPython's shell that they need."""
    return magics.shell


user = types.ModuleType("__main__")
user.__builtins__ = builtins


def main():
    global _out, _err
    _out, _err = _stream(1), _stream(2)
    sys.stdout = sys.__stdout__ = _out
    sys.stderr = sys.__stderr__ = _err
    builtins.input = _input
    builtins.display = display
    sys.breakpointhook = _breakpoint
    sys.meta_path.insert(0, _Hook)
    os.register_at_fork(after_in_child=_after_fork)
    signal.signal(signal.SIGINT, _on_interrupt)
    try:
        import faulthandler
        faulthandler.enable(file=_marks[1], all_threads=False)
    except Exception:
        pass
    try:
        # Where memory runs out, a kernel is to go before what else there is on the machine.
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    init = _receive()
    S.nonce, S.parts = init["nonce"], init["parts"]
    sys.argv = [""]
    if "" not in sys.path:
        sys.path.insert(0, "")
    sys.modules["__main__"] = user
    send({"op": "ready", "version": "%d.%d.%d" % sys.version_info[:3], "program": sys.executable, "prefix": sys.prefix})
    while True:
        with _wait_lock:
            waiter = _waiters["run"] = _Waiter()
        frame = _wait("run", waiter)
        try:
            run_cell(frame)
        except KeyboardInterrupt:
            # An interrupt in the last moment of a cell.
            S.running = False
