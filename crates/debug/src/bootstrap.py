import sys
sys.path[:] = [place for place in sys.path if place]
import os, runpy, socket
import debugpy
os.write(2, b"haft: debugpy can be imported\n")
quick = getattr(socket, "TCP_QUICKACK", None)
if quick is not None:
    class Quick(socket.socket):
        def _acknowledge(self):
            try:
                self.setsockopt(socket.IPPROTO_TCP, quick, 1)
            except OSError:
                pass
        def recv(self, *rest):
            self._acknowledge()
            data = super().recv(*rest)
            self._acknowledge()
            return data
        def recv_into(self, *rest):
            self._acknowledge()
            count = super().recv_into(*rest)
            self._acknowledge()
            return count
    socket.socket = Quick
try:
    from debugpy.adapter.launchers import Launcher
    def early(name, again):
        handle = getattr(Launcher, name)
        def handler(self, event):
            # Not `None` until the program has reported back.
            if getattr(self.client, "_deferred_events", None) is None:
                return handle(self, event)
            self.client.channel.propagate(event)
            return handle(self, event) if again else None
        setattr(Launcher, name, handler)
    early("process_event", True)
    early("output_event", False)
    early("exited_event", True)
except Exception:
    pass
sys.argv[:] = ["debugpy.adapter"]
runpy.run_module("debugpy.adapter", run_name="__main__", alter_sys=True)
