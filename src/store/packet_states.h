/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets of vCPU states. In memory each state is a vcpu_span; in a file most are vcpu_next, which
 * omit values known from earlier records of the packet: vCPU and start. Each packet can be read by
 * itself.
 */
#ifndef VP_STORE_PACKET_STATES_H
#define VP_STORE_PACKET_STATES_H

#include <stddef.h>

#include "base/buffer.h"

/* Converts the records of a packet from memory form to file form. */
void vp_states_pack(const char *records, size_t size, struct vp_buffer *ret);
/* Converts back. Returns the number of valid bytes; the data after them is not a record, or refers
 * to a vCPU that the packet does not name. */
size_t vp_states_unpack(const char *records, size_t size, struct vp_buffer *ret);

#endif
