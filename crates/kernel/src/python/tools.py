"""The way of a cell into the run: what `tool` is. Compiled with `worker.py`, whose names it uses."""

class ToolError(Exception):
    """A tool said no; the words are its own."""

    def __init__(self, text, structured=None, content=None):
        super().__init__(text)
        self.structured = structured or {}
        self.content = content or []


class ToolImage:
    """A picture that a tool answered with."""

    def __init__(self, mime, data):
        self.mime, self.data = mime, data

    def __repr__(self):
        return "<%s, %d bytes>" % (self.mime, len(self.data))

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: self.data, "text/plain": repr(self)}

    def to_pil(self):
        from PIL import Image
        return Image.open(io.BytesIO(self.data))


class ToolResult(str):
    """What a tool answered: its text, and `structured`, `images`, `tables`, `content`. `result["total"]` reads a structured field."""

    def __new__(cls, text, structured, content):
        self = str.__new__(cls, text)
        self.structured, self.content = structured, content
        self.images = [piece for piece in content if isinstance(piece, ToolImage)]
        self.tables = [piece for piece in content if isinstance(piece, dict)]
        return self

    @property
    def text(self):
        return str(self)

    def __getitem__(self, key):
        if isinstance(key, str):
            if key in self.structured:
                return self.structured[key]
            if key in ("text", "structured", "images", "tables", "content"):
                return getattr(self, key)
            raise KeyError("%r; there is %s" % (key, ", ".join(map(repr, self.structured)) or "no structured field"))
        return str.__getitem__(self, key)

    def get(self, key, default=None):
        return self.structured.get(key, default)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self)}


def _ask(name, arguments):
    if os.getpid() != S.pid:
        raise RuntimeError("tool() works in the kernel's own process only, not in a forked child")
    with _wait_lock:
        S.calls += 1
        key = S.calls
        waiter = _waiters[key] = _Waiter()
    try:
        send({"op": "call", "id": key, "tool": name, "arguments": arguments}, "strict")
    except BaseException:
        with _wait_lock:
            _waiters.pop(key, None)
        raise
    return _wait(key, waiter)


def tool(name, arguments=None, **more):
    """Calls a tool of this run: tool("read", {"path": "README.md"}). Raises ToolError with the tool's own words."""
    from base64 import b64decode
    if arguments is not None and not hasattr(arguments, "keys"):
        raise TypeError("tool(name, arguments): the arguments are a dict such as {'path': 'README.md'}, not %s" % type(arguments).__name__)
    arguments = dict(arguments or {}, **more)
    frame = _ask(str(name), arguments)
    outcome = frame["outcome"]
    content = []
    for piece in outcome["content"]:
        if piece["type"] == "text":
            content.append(piece["text"])
        elif piece["type"] == "image":
            content.append(ToolImage(piece["mime"], b64decode(piece["data"])))
        else:
            content.append({"columns": piece["columns"], "rows": piece["rows"]})
    text = "\n".join(piece for piece in content if isinstance(piece, str))
    if outcome["is_error"]:
        raise ToolError(text, outcome["structured"], content)
    return ToolResult(text, outcome["structured"], content)


async def tool_async(name, arguments=None, **more):
    """The same without blocking the event loop: await asyncio.gather(tool_async(…), tool_async(…))."""
    import asyncio
    import functools
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, functools.partial(tool, name, arguments, **more))


_OURS = {
    "tool": tool, "tool_async": tool_async, "ToolError": ToolError, "display": display, "update_display": update_display,
    "get_ipython": get_ipython,
}
