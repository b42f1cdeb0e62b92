/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Offsets within a period that are constant on a host and differ between hosts, so that many hosts
 * do not work at the same moment. */
#ifndef VP_BASE_STAGGER_H
#define VP_BASE_STAGGER_H

#include <stdint.h>

/* This host's offset in [0, period): a hash of /etc/machine-id (or the host name) and `purpose`. */
uint64_t vp_stagger_here(const char *purpose, uint64_t period);
/* The offset of a host with that identity. */
uint64_t vp_stagger_of(const char *identity, const char *purpose, uint64_t period);
/* Time from `now` to the next moment that is `offset` after a multiple of the period. */
uint64_t vp_stagger_wait(uint64_t now, uint64_t period, uint64_t offset);

#endif
