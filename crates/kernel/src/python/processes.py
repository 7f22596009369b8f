"""What `multiprocessing` is told of cells. Compiled when a process is first started otherwise than by a fork.

Such a process imports what it is given; functions and classes of cells are in no module that it could import. Its own words about that
come from inside it, over and over, while a pool waits for ever for what is not done: here they are refused before they are sent.
"""

import pickle
import sys
import types

ELSEWHERE = ("spawn", "forkserver")


def patch(_name, _module):
    sys.modules["multiprocessing.reduction"].ForkingPickler.reducer_override = _reducer


def _reducer(_pickler, value):
    if isinstance(value, (types.FunctionType, type)) and getattr(value, "__module__", None) == "__main__":
        how = _started_by()
        if how is not None:
            raise pickle.PicklingError(
                "%r is defined in a cell, and a process that is started by %r cannot find it there. Put it into a module (a .py file) and import "
                "it, or start processes by a fork: multiprocessing.get_context(\"fork\")." % (value.__qualname__, how)
            )
    return NotImplemented


def _started_by():
    """How the process was started that is sent something: the one that is being started, else those that there are."""
    import multiprocessing.context
    import multiprocessing.process
    starting = multiprocessing.context.get_spawning_popen()
    if starting is not None:
        return starting.method if starting.method in ELSEWHERE else None
    methods = {getattr(child._popen, "method", None) for child in list(multiprocessing.process._children)}
    # One that was forked may be the one, and it knows what there was then.
    return methods.pop() if methods and methods.issubset(ELSEWHERE) else None
