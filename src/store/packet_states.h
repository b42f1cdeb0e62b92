/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets of vCPUs' states. In memory each state is a vcpu_span; in a file most are vcpu_next,
 * which leave out what the packet's earlier records have: whose the state is, and when it began. As
 * no record refers to another packet, each is read without the others.
 */
#ifndef VP_STORE_PACKET_STATES_H
#define VP_STORE_PACKET_STATES_H

#include <stddef.h>

#include "base/buffer.h"

/* Converts the records of a packet from the form in memory to that in the file. */
void vp_states_pack(const char *records, size_t size, struct vp_buffer *ret);
/* And back. Returns how many of the bytes were good; what follows those is no record, or one of a
 * vCPU that the packet does not name. */
size_t vp_states_unpack(const char *records, size_t size, struct vp_buffer *ret);

#endif
