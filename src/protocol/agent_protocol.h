/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the host asks vperf-agent: it connects, sends one request line, and reads a symbol map
 * (maps/format.h) until the agent closes, or where events are counted (protocol/counts_protocol.h),
 * or where it may count some for the guest (protocol/lend_protocol.h). An agent that cannot answer
 * sends one line that begins with "error ".
 */
#ifndef VP_PROTOCOL_AGENT_PROTOCOL_H
#define VP_PROTOCOL_AGENT_PROTOCOL_H

/* A port of AF_VSOCK. Only a process with CAP_NET_BIND_SERVICE in the guest can listen below 1024,
 * so an unprivileged program cannot pretend to be the agent. */
#define VP_AGENT_PORT 733
enum { VP_AGENT_PORTS_OF_ROOT = 1024 };
#define VP_AGENT_SOCKET "/run/vperf-agent.sock"

#define VP_AGENT_REQUEST "vperf-request 1 dump\n"
#define VP_AGENT_REQUEST_NO_SYMBOLS "vperf-request 1 dump no-symbols\n"
enum { VP_AGENT_MAX_REQUEST = 512 };

/* A refusal "error …" that is only for now: others are being answered. */
#define VP_AGENT_TOO_MANY "too many requests at the same time"

#endif
