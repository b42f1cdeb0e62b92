"""Guests of Xen, for the driver: domains that xl starts, and that talk to the driver over their console.

A domain has no vsock. It sends lines on its console that start with a mark, followed by the bytes in hexadecimal digits;
other lines are console output. Every line sent to it has that form.
"""

import os
import selectors
import socket
import subprocess
import termios
import threading
import time
import tty

MARK = b"vlab:"
CHUNK = 1024  # bytes in a line


class Line(threading.Thread):
    """Between a console and a socket, until either ends; all other output of the console goes to a file."""

    def __init__(self, path, log, near):
        super().__init__(daemon=True)
        self.console = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        tty.setraw(self.console, termios.TCSANOW)
        self.log = open(log, "ab", buffering=0)
        self.near = near
        self.rest = b""

    def take(self, data):
        """Console output in the data. Raises ValueError if a line was damaged by messages of the kernel."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            line = line.rstrip(b"\r")
            if not line.startswith(MARK):
                self.log.write(line + b"\n")
            elif len(line) == len(MARK):
                self.near.shutdown(socket.SHUT_WR)
            else:
                self.near.sendall(bytes.fromhex(line[len(MARK):].decode("ascii")))

    def run(self):
        """Until the domain is gone."""
        selector = selectors.DefaultSelector()
        selector.register(self.console, selectors.EVENT_READ)
        selector.register(self.near, selectors.EVENT_READ)
        try:
            while True:
                for key, _ in selector.select():
                    if key.fd == self.console:
                        data = os.read(self.console, 65536)
                        if not data:
                            raise EOFError  # the console has hung up
                        self.take(data)
                        continue
                    data = self.near.recv(CHUNK)
                    os.write(self.console, MARK + data.hex().encode("ascii") + b"\n")
                    if not data:
                        selector.unregister(self.near)
        except (EOFError, OSError, ValueError):
            pass
        self.near.close()
        os.close(self.console)


def read_store(path):
    """A value of xenstore, or None."""
    done = subprocess.run(["xenstore-read", path], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def domain_id(name):
    """Id of an existing domain, or None."""
    done = subprocess.run(["xl", "domid", name], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else None


def configuration(spec):
    """Configuration of a guest for xl."""
    kind = spec["type"] or "pvh"
    lines = {"name": spec["name"], "uuid": spec["uuid"], "type": kind, "kernel": spec["image"],
             "ramdisk": spec["initrd"], "extra": f"console=hvc0 quiet panic=-1 rdinit=/init {spec['append']}".strip(),
             "memory": spec["memory"], "vcpus": spec["vcpus"], "on_crash": "destroy", "on_reboot": "destroy"}
    if kind != "pv":
        lines["tsc_mode"] = "native"  # RDTSCP is wrong under TCG where it is emulated
    if kind == "hvm":  # with as few devices as there can be
        lines.update(vga="none", vnc=0, usb=0, nographic=1)
    if spec["weight"]:
        lines["cpu_weight"] = spec["weight"]
    if spec["cap"]:
        lines["cap"] = spec["cap"]
    if spec["pin"]:
        lines["cpus"] = [str(pcpu) for pcpu in spec["pin"]] if len(spec["pin"]) > 1 else str(spec["pin"][0])
    return "".join(f"{key} = {value!r}\n" for key, value in lines.items())


def connect(driver, guest, limit):
    """Wait for a new domain's console; a thread then forwards its output."""
    domain = domain_id(guest.name)
    path = read_store(f"/local/domain/{domain}/console/tty") if domain is not None else None
    if not path:
        if time.monotonic() < limit and guest.state == "booting":
            driver.loop.at(time.monotonic() + 0.1, lambda: connect(driver, guest, limit))
        return
    guest.domain = domain
    near, far = socket.socketpair()
    Line(path, guest.console, near).start()
    driver.loop.watch(far, lambda: first_line(driver, far))


def first_line(driver, far):
    """The domain speaks for the first time, or ends."""
    driver.loop.forget(far)
    driver.accept(far)
