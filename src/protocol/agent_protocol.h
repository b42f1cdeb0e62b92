/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protocol between the host and vperf-agent. The host connects and sends one request line. The
 * agent replies with a symbol map (maps/format.h) and closes, or with the location of counts
 * (protocol/counts_protocol.h), or of cells for lent counters (protocol/lend_protocol.h). An agent
 * that cannot serve a request sends one line that begins with "error ".
 */
#ifndef VP_PROTOCOL_AGENT_PROTOCOL_H
#define VP_PROTOCOL_AGENT_PROTOCOL_H

/* Port of AF_VSOCK. Only a process with CAP_NET_BIND_SERVICE in the guest can listen below 1024, so
 * an unprivileged program cannot impersonate the agent. */
#define VP_AGENT_PORT 733
enum { VP_AGENT_PORTS_OF_ROOT = 1024 };
#define VP_AGENT_SOCKET "/run/vperf-agent.sock"

#define VP_AGENT_REQUEST "vperf-request 1 dump\n"
#define VP_AGENT_REQUEST_NO_SYMBOLS "vperf-request 1 dump no-symbols\n"
enum { VP_AGENT_MAX_REQUEST = 512 };

/* Temporary refusal "error …": too many requests are being served. */
#define VP_AGENT_TOO_MANY "too many requests at the same time"

#endif
