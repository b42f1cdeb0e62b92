import os, threading, functools
class Outer:
    def méthode(self, event, left, right):
        os.write(1, b'ready')
        event.wait()
def waits(event):
    functools.reduce(functools.partial(Outer().méthode, event), [1, 2])
threading.Thread(target=lambda: threading.Event().wait()).start()
waits(threading.Event())
