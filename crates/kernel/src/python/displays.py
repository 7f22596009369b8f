"""How values are shown. Compiled when the first value is; `W` is the worker."""

import sys

TEXT = 32000          # Characters of a value's text.
ITEMS = 1000          # Items of a container that its text shows, as in IPython.
HEAD, TAIL = 20, 10   # Rows of a table.
COLUMNS = 50          # Columns of a table.
CELL = 200            # Characters of a cell.
RICH = 1 << 20        # Characters of HTML, SVG and the like.
IMAGE = 16 << 20      # Bytes of a picture.
EDGE = 1568           # Pixels of a picture's long edge.

_METHODS = (
    ("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_svg_", "image/svg+xml"), ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"), ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"),
)
_shown = [0]


def text_of(value):
    """A bounded repr. What a repr raises becomes text."""
    try:
        if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes)):
            return bounded(value)
        text = repr(value)
        if type(text) is not str:
            text = str.__str__(text)
    except (Exception, SystemExit) as problem:
        text = "<%s: its repr raised %s: %s>" % (type(value).__name__, type(problem).__name__, problem)
    return W.cut(text, TEXT)


def bounded(value):
    pieces, room = [], [TEXT * 2]
    _walk(value, pieces, room, 0, set())
    return W.cut("".join(pieces), TEXT)


def _walk(value, out, room, depth, above):
    def put(text):
        out.append(text)
        room[0] -= len(text)

    kind = type(value)
    if kind in (str, bytes) and len(value) > TEXT:
        put("%r… (%d in all)" % (value[:TEXT // 2], len(value)))
    elif kind in (list, tuple, set, frozenset, dict) and value and depth < 50:
        if id(value) in above:
            put("...")
            return
        above = above | {id(value)}
        opening, closing = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: ("frozenset({", "})")}[kind]
        put(opening)
        shown = 0
        for item in (value.items() if kind is dict else value):
            if shown >= ITEMS or room[0] <= 0:
                put(", … (%d in all)" % len(value))
                break
            if shown:
                put(", ")
            if kind is dict:
                _walk(item[0], out, room, depth + 1, above)
                put(": ")
                item = item[1]
            _walk(item, out, room, depth + 1, above)
            shown += 1
        if kind is tuple and len(value) == 1:
            put(",")
        put(closing)
    else:
        try:
            text = repr(value)
        except (Exception, SystemExit) as problem:
            if depth == 0:
                raise
            text = "<%s: its repr raised %s: %s>" % (kind.__name__, type(problem).__name__, problem)
        put(text)


# ---- tables

def plain(value):
    """A table's cell as JSON has it."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return value if len(value) <= CELL else value[:CELL] + "…"
    if hasattr(value, "item") and kind.__module__ == "numpy":
        try:
            value = value.item()
            kind = type(value)
        except Exception:
            pass
    if kind is int:
        return value if abs(value) < 1 << 53 else str(value)
    if kind is float:
        if value != value:
            return None
        return value if abs(value) != float("inf") else str(value)
    if kind.__name__ == "NAType":
        return None  # pandas' NA is not even different from itself.
    try:
        if value != value:
            return None
    except Exception:
        pass
    if value is None or value is True or value is False:
        return value
    try:
        text = str(value)
    except Exception as problem:
        text = "<%s: %s>" % (kind.__name__, problem)
    return text if len(text) <= CELL else text[:CELL] + "…"


def _cut_columns(names):
    if len(names) <= COLUMNS:
        return list(range(len(names)))
    half = COLUMNS // 2
    return list(range(half)) + list(range(len(names) - half, len(names)))


def _edges(total):
    return (total, 0) if total <= HEAD + TAIL else (HEAD, TAIL)


def _pandas(frame, kind):
    pandas = sys.modules["pandas"]
    total = len(frame)
    if kind != "DataFrame":
        name = frame.name if frame.name is not None else kind.lower()
        frame = frame.to_frame(name=name) if kind == "Series" else frame.to_frame(index=False, name=name)
    width = frame.shape[1]
    picked = _cut_columns(frame.columns)
    frame = frame.iloc[:, picked]
    head, tail = _edges(total)
    part = frame if not tail else pandas.concat([frame.iloc[:head], frame.iloc[total - tail:]])
    index = part.index
    default = isinstance(frame.index, pandas.RangeIndex) and frame.index.start == 0 and frame.index.step == 1 and frame.index.name is None
    columns = [" / ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in frame.columns]
    rows = [[plain(v) for v in row] for row in part.itertuples(index=False, name=None)]
    if not default:
        multi = isinstance(index, pandas.MultiIndex)
        names = [str(n) if n is not None else ("index" if not multi else "level_%d" % i) for i, n in enumerate(index.names)]
        columns = names + columns
        rows = [[plain(v) for v in (label if multi else (label,))] + row for label, row in zip(index, rows)]
    dtypes = [str(t) for t in frame.dtypes]
    return _table(kind, columns, rows, total, width, head, tail, dtypes, len(picked) < width)


def _polars(frame, kind):
    if kind == "Series":
        frame = frame.to_frame()
    total, width = frame.height, frame.width
    picked = _cut_columns(frame.columns)
    names = [frame.columns[i] for i in picked]
    frame = frame.select(names)
    head, tail = _edges(total)
    found = frame.head(head).rows() + (frame.tail(tail).rows() if tail else [])
    rows = [[plain(v) for v in row] for row in found]
    return _table(kind, names, rows, total, width, head, tail, [str(t) for t in frame.dtypes], len(picked) < width)


def _table(kind, columns, rows, total, width, head, tail, dtypes, cut_columns):
    return {
        "kind": kind, "columns": columns, "rows": rows, "shape": [total, width], "head": head, "tail": tail,
        "dtypes": dtypes[:COLUMNS], "columns_cut": cut_columns,
    }


def table_of(value):
    for library, make in (("pandas", _pandas), ("polars", _polars)):
        module = sys.modules.get(library)
        if module is None:
            continue
        kinds = ("DataFrame", "Series", "Index") if library == "pandas" else ("DataFrame", "Series")
        for kind in kinds:
            base = getattr(module, kind, None)
            if base is not None and isinstance(value, base):
                return make(value, kind)
    return None


# ---- pictures

def figure_png(figure):
    import io
    width, height = figure.get_size_inches()
    dpi = min(float(figure.dpi), EDGE / max(width, height, 0.01))
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, bbox_inches="tight")
    return out.getvalue()


def figure_of(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def smaller(value):
    """A picture of Pillow's that is larger than anybody is shown, made smaller, and its pixels; to encode all of it takes seconds."""
    module = sys.modules.get("PIL.Image")
    if module is None or not isinstance(value, module.Image) or max(value.size) <= EDGE:
        return None, None
    width, height = value.size
    scale = EDGE / max(width, height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    try:
        return value.resize(size, module.Resampling.BILINEAR, reducing_gap=2.0), [width, height]
    except Exception:
        return value.resize(size), [width, height]


def close_figure(figure):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close(figure)


def flush_figures():
    """Shows the figures that are open, each once."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    manager = getattr(pyplot, "_pylab_helpers", None)
    if manager is None or not manager.Gcf.figs:
        return
    try:
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure.axes or figure.texts or figure.images or figure.lines:
                show(figure)
    finally:
        pyplot.close("all")


def patch(name, module):
    """What is changed in modules of others, after their import."""
    if name == "matplotlib.pyplot":
        def show_figures(*_arguments, **_more):
            flush_figures()
        module.show = show_figures
        import matplotlib.figure
        matplotlib.figure.Figure.show = lambda self, warn=True: show(self)
    elif name == "IPython.core.display_functions":
        module.display = display
        module.update_display = W.update_display
        module.clear_output = lambda wait=False: None
        core = sys.modules.get("IPython.core.display")
        if core is not None and hasattr(core, "display"):
            core.display = display


# ---- values

def real(value, name):
    """A method of that name, unless the object makes up attributes as they are asked for."""
    try:
        if isinstance(value, type) or getattr(value, "_haft_canary_method_should_not_exist_", None) is not None:
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def bundle_of(value):
    """What there is of a value by media type. Bytes stay bytes."""
    data, problems = {}, []
    if isinstance(value, type):
        return {"text/plain": text_of(value)}
    try:
        if figure_of(value):
            png = figure_png(value)
            close_figure(value)
            return {"image/png": png, "text/plain": text_of(value)}
    except Exception as problem:
        problems.append("the figure could not be drawn: %s: %s" % (type(problem).__name__, problem))
    method = real(value, "_repr_mimebundle_")
    if method is not None:
        try:
            try:
                made = method(include=None, exclude=None)
            except TypeError:
                made = method()
            if isinstance(made, tuple):
                made = made[0]
            data.update({str(k): v for k, v in (made or {}).items() if v is not None})
        except Exception as problem:
            problems.append("_repr_mimebundle_ raised %s: %s" % (type(problem).__name__, problem))
    for name, mime in _METHODS:
        if mime in data or (mime == "image/jpeg" and "image/png" in data):
            continue
        method = real(value, name)
        if method is None:
            continue
        try:
            made = method()
        except Exception as problem:
            problems.append("%s raised %s: %s" % (name, type(problem).__name__, problem))
            continue
        if isinstance(made, tuple):
            made = made[0]
        if made is not None:
            data[mime] = made
    if "text/plain" not in data or not isinstance(data["text/plain"], str):
        data["text/plain"] = text_of(value)
    if problems:
        data["text/plain"] += "\n" + "\n".join("[%s]" % W.cut(p, 2000) for p in problems)
    return data


def packed(data):
    """The same, bounded, with bytes as base64."""
    from base64 import b64encode
    out = {}
    for mime, value in data.items():
        if mime.startswith("image/") and mime != "image/svg+xml":
            if isinstance(value, str):
                value = value.strip()
                size = len(value) * 3 // 4
            else:
                size = len(value)
                value = b64encode(bytes(value)).decode()
            if size > IMAGE:
                out["text/plain"] = "%s\n[a picture of %d bytes, too large to be shown]" % (data.get("text/plain", ""), size)
                continue
            out[mime] = value
        elif isinstance(value, (dict, list, int, float, bool)):
            import json
            try:
                text = json.dumps(value, allow_nan=False)
            except Exception:
                continue
            if len(text) <= RICH:
                out[mime] = value
        elif isinstance(value, bytes):
            continue
        else:
            value = str(value)
            limit = TEXT if mime in ("text/plain", "text/markdown", "text/latex") else RICH
            if len(value) > limit and mime not in ("text/plain", "text/markdown", "text/latex"):
                continue
            out.setdefault(mime, W.cut(value, limit))
    return out


class Handle:
    """Updates a display: handle.update(value)."""

    def __init__(self, display_id):
        self.display_id = display_id

    def update(self, value, **_more):
        show(value, display_id=self.display_id, update=True)

    def display(self, value, **_more):
        show(value, display_id=self.display_id)

    def __repr__(self):
        return "<display %s>" % self.display_id


def show(value, display_id=None, update=False, result=False):
    # Plotly's own display wants a browser, and prints the whole figure where it finds none; its HTML is better.
    own = None if str(type(value).__module__).startswith("plotly.") else real(value, "_ipython_display_")
    if own is not None:
        try:
            own()
            return
        except NotImplementedError:
            pass
        except Exception as problem:
            print("<%s: _ipython_display_ raised %s: %s>" % (type(value).__name__, type(problem).__name__, problem), file=sys.stderr)
    frame = {"result": result, "update": update, "id": display_id}
    try:
        frame.update(shape_of(value))
    except (Exception, SystemExit) as problem:
        # An object that lets nobody ask it anything.
        frame["data"] = {"text/plain": "<%s: showing it raised %s: %s>" % (type(value).__name__, type(problem).__name__, problem)}
    W.emit(frame)


def shape_of(value):
    """What a display says of a value: data by media type, and the table or the picture that it is."""
    shape = {}
    try:
        shape["table"] = table_of(value)
    except Exception:
        pass
    try:
        small, original = smaller(value)
    except Exception:
        small, original = None, None
    shape["data"] = packed(bundle_of(value if small is None else small))
    if small is not None and any(mime.startswith("image/") for mime in shape["data"]):
        shape["original"] = original
        shape["data"]["text/plain"] = text_of(value)
    return shape


def display(*objects, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False, clear=False, **_more):
    handle = None
    if display_id is not None:
        if display_id is True:
            _shown[0] += 1
            display_id = "display_%d" % _shown[0]
        handle = Handle(str(display_id))
        display_id = str(display_id)
    for value in objects:
        if raw and isinstance(value, dict):
            W.emit({"result": False, "update": False, "id": display_id, "data": packed(value)})
        else:
            show(value, display_id=display_id)
    return handle
