/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Classes of VM exits by reason; shared by the BPF programs and the reader of Xen's trace. */
#ifndef VP_SCHEMA_EXIT_CLASS_H
#define VP_SCHEMA_EXIT_CLASS_H

#include "schema/interval.h"

/* By the exit code of the VMCB. */
static inline __attribute__((always_inline)) unsigned vp_exit_class_of_amd(unsigned reason)
{
	switch (reason) {
	case 0x60: /* INTR, NMI, SMI */
	case 0x61:
	case 0x62:
		return VP_EXITS_interrupt;
	case 0x4e: /* #PF, without nested paging */
	case 0x400:
		return VP_EXITS_page_fault;
	case 0x64:
		return VP_EXITS_window;
	case 0x72:
		return VP_EXITS_cpuid;
	case 0x77:
		return VP_EXITS_pause;
	case 0x78: /* HLT, MWAIT, IDLE_HLT */
	case 0x8b:
	case 0x8c:
	case 0xa6:
		return VP_EXITS_halt;
	case 0x7b:
		return VP_EXITS_io;
	case 0x7c:
		return VP_EXITS_msr;
	case 0x81:
	case 0x403:
		return VP_EXITS_hypercall;
	default:
		return VP_EXITS_other;
	}
}

/* By the basic exit reason of the VMCS. */
static inline __attribute__((always_inline)) unsigned vp_exit_class_of_intel(unsigned reason)
{
	switch (reason & 0xffff) {
	case 1:
		return VP_EXITS_interrupt;
	case 48: /* EPT violation and misconfiguration */
	case 49:
		return VP_EXITS_page_fault;
	case 7:
	case 8:
		return VP_EXITS_window;
	case 10:
		return VP_EXITS_cpuid;
	case 40:
		return VP_EXITS_pause;
	case 12:
	case 36:
		return VP_EXITS_halt;
	case 30:
		return VP_EXITS_io;
	case 31:
	case 32:
	case 84: /* MSR_READ_IMM, MSR_WRITE_IMM */
	case 85:
		return VP_EXITS_msr;
	case 18:
		return VP_EXITS_hypercall;
	default:
		return VP_EXITS_other;
	}
}

#endif
