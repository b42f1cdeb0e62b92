/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of VM exit reasons, and their classification.
 *
 * Numbers and names are the vendors': AMD64 Architecture Programmer's Manual volume 2, appendix C
 * (#VMEXIT codes), Intel SDM volume 3, appendix C (VMX basic exit reasons; KVM's name where it has
 * one), and the Arm Architecture Reference Manual for A-profile, ESR_EL2 (exception classes). Those
 * of paravirtual guests are Xen's (public/xen.h and public/trace.h).
 */
#ifndef VP_SCHEMA_EXIT_REASON_H
#define VP_SCHEMA_EXIT_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VP_EXIT_NAME_SIZE = 32 };

/* Writes the reason's name, or its number if unknown, into `name` and returns `name`. */
const char *vp_exit_reason_name(uint32_t vendor, uint32_t reason, char name[VP_EXIT_NAME_SIZE]);
/* Formats the target of an exit, by enum vp_detail_kind and number ("port 0x70 out"; for device
 * memory it is the address, or 0), in `text`; NULL: unknown. */
const char *vp_exit_detail_text(uint32_t kind, uint64_t number, char text[VP_EXIT_NAME_SIZE]);
/* Whether the exit is for an access to guest memory or memory-mapped device registers. */
bool vp_exit_reason_is_memory(uint32_t vendor, uint32_t reason);
/* Whether the duration of such exits is known. */
bool vp_exit_reason_has_time(uint32_t reason);
/* Whether the guest executed HLT, MWAIT or WFI. (Arm: or WFE, which has the same code.) */
bool vp_exit_reason_is_halt(uint32_t vendor, uint32_t reason);
/* Whether an interrupt or NMI may have caused the exit, rather than the guest or a request of
 * KVM. */
bool vp_exit_reason_is_interrupt(uint32_t vendor, uint32_t reason);

#endif
