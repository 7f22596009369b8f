"""What `multiprocessing` is told of cells. Compiled when it is first about to start a process.

Functions and classes are sent by their names. A process that was not forked imports what it is given, and what a cell has defined is in no
module that it could import; one that was forked knows what there was then. Python's own words about that come from inside the process,
over and over, while a pool waits for ever for what is not done, or it does what an older function of that name did: here they are refused
before they are sent.
"""

import pickle
import re
import sys
import types


def patch(name, module):
    sys.modules["multiprocessing.reduction"].ForkingPickler.reducer_override = _reducer
    if name == "multiprocessing.popen_fork":
        launch = module.Popen._launch

        def launch_in_cell(self, process):
            self.haft_cell = W.S.cell
            launch(self, process)

        module.Popen._launch = launch_in_cell


def _reducer(_pickler, value):
    if isinstance(value, (types.FunctionType, type)) and getattr(value, "__module__", None) == "__main__":
        why = _cannot_find(value)
        if why is not None:
            raise pickle.PicklingError("%r %s" % (value.__qualname__, why))
    return NotImplemented


def _cannot_find(value):
    """Why the process that is sent something does not know it: the one that is being started, else all that there are."""
    import multiprocessing.context
    import multiprocessing.process
    starting = multiprocessing.context.get_spawning_popen()
    if starting is not None:
        there = [starting]
    else:
        there = [child._popen for child in list(multiprocessing.process._children) if child._popen is not None]
    cells = [getattr(one, "haft_cell", None) for one in there]
    if there and all(cell is None for cell in cells):
        return (
            "is defined in a cell, and a process that is started by %r cannot find it there. Put it into a module (a .py file) and import it, or "
            "start processes by a fork: multiprocessing.get_context(\"fork\")." % there[0].method
        )
    defined = _cell_of(value)
    if there and all(cell is not None and cell < defined for cell in cells):
        return "was defined after the process to which it is sent had been forked, which does not know it. Start the process, or the pool, anew."
    return None


def _cell_of(value):
    """The number of the cell that has defined it; 0 where that is not known."""
    code = getattr(value, "__code__", None)
    if code is None:
        code = next((f.__code__ for f in vars(value).values() if isinstance(f, types.FunctionType)), None)
    match = re.match(r"<cell (\d+)>$", getattr(code, "co_filename", ""))
    return int(match.group(1)) if match else 0
