/* A byte stream over the console, for guests without vsock (those of Xen). */
#ifndef VLAB_LINE_H
#define VLAB_LINE_H

/*
 * Connects to the lab host's driver: a socket as a vsock would be, which a child process passes on,
 * as lines of hexadecimal digits on the console (lab/host/xen.py has the other end). Returns a
 * negative errno on failure.
 */
int line_connect(void);

#endif
