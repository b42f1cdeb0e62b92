/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of VM exits, and which of them mean that the guest had nothing to do.
 *
 * Numbers and names are the vendors': AMD64 Architecture Programmer's Manual volume 2, appendix C
 * (#VMEXIT codes), Intel SDM volume 3, appendix C (VMX basic exit reasons; where KVM has a name, it
 * is KVM's), and the Arm Architecture Reference Manual for A-profile, ESR_EL2 (exception classes).
 * Those of paravirtual guests are Xen's (public/xen.h and public/trace.h).
 */
#ifndef VP_SCHEMA_EXIT_REASON_H
#define VP_SCHEMA_EXIT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VP_EXIT_NAME_SIZE = 32 };

/* Writes the reason's name into `name`, or its number where it has none, and returns `name`. */
const char *vp_exit_reason_name(uint32_t vendor, uint32_t reason, char name[VP_EXIT_NAME_SIZE]);
/* Formats the target of an exit, by enum vp_detail_kind and number ("port 0x70 out"; for device
 * memory it is the address, or 0), in `text`; NULL: unknown. */
const char *vp_exit_detail_text(uint32_t kind, uint64_t number, char text[VP_EXIT_NAME_SIZE]);
/* Whether it is for an access to the guest's memory, or to where a device is instead. */
bool vp_exit_reason_is_memory(uint32_t vendor, uint32_t reason);
/* Whether it is known how long such an exit lasts. */
bool vp_exit_reason_has_time(uint32_t reason);
/* The guest executed HLT, MWAIT or WFI: it gave its vCPU up. (Arm: or WFE, which has the same
 * code.) */
bool vp_exit_reason_is_halt(uint32_t vendor, uint32_t reason);
/* Whether an interrupt or NMI may have been what ended the guest's turn, and not the guest itself
 * or what KVM had asked for. */
bool vp_exit_reason_is_interrupt(uint32_t vendor, uint32_t reason);

#endif
