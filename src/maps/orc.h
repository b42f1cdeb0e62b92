/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ORC: tables that map each instruction of a kernel to its caller's stack frame. They are the
 * tables that x86-64 kernels without frame pointers carry for their own stack traces
 * (Documentation/arch/x86/orc-unwinder.rst). As text, one line per thing, words separated by one
 * blank (docs/format-maps.md):
 *
 *   vperf-orc 1
 *   kernel RELEASE BUILDID|-
 *   r SP_REG SP_OFFSET BP_REG BP_OFFSET KIND    a rule; they are numbered from 0
 *   a ADDR RULE                                 from this address on
 *   d DELTA RULE                                from DELTA bytes after the previous address on
 *   end LINES
 *
 * ADDR, DELTA and RULE are hexadecimal, the rest is decimal.
 */
#ifndef VP_MAPS_ORC_H
#define VP_MAPS_ORC_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "maps/format.h"

/* Base register of an offset. */
enum vp_orc_register {
	VP_ORC_NONE,
	VP_ORC_PREV_SP, /* the caller's stack pointer */
	VP_ORC_AX,
	VP_ORC_DX,
	VP_ORC_DI,
	VP_ORC_BP,
	VP_ORC_SP,
	VP_ORC_R10,
	VP_ORC_R13,
	VP_ORC_BP_INDIRECT, /* the word in memory at BP + offset */
	VP_ORC_SP_INDIRECT, /* the word in memory at SP, plus the offset */
	VP_ORC_REGISTERS
};

enum vp_orc_kind {
	VP_ORC_UNDEFINED, /* unknown frame */
	VP_ORC_OUTERMOST, /* outermost frame, no caller */
	VP_ORC_CALL,      /* the return address is below the caller's stack pointer */
	VP_ORC_REGS,      /* a struct pt_regs is on the stack */
	VP_ORC_IRET_REGS, /* the last five words of a struct pt_regs are on the stack */
	VP_ORC_KINDS
};

struct vp_orc_rule {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg, bp_reg, kind, reserved;
};

struct vp_orc_entry {
	uint64_t from; /* start address; the entry ends at the next one */
	uint32_t rule;
};

struct vp_orc {
	VP_VEC(struct vp_orc_rule) rules;
	VP_VEC(struct vp_orc_entry) entries; /* sorted by address */
	bool whole;                          /* the end line is present */
};

/* Parses the text; `label` names it in sentences. Errors: malformed. */
struct vp_error *vp_orc_parse(const char *label, const void *text, size_t size,
			      struct vp_orc *ret) VP_MUST_CHECK;
/* Reads the file at `path`. Errors: unreadable or malformed. */
struct vp_error *vp_orc_load(const char *path, struct vp_orc *ret) VP_MUST_CHECK;
void vp_orc_deinit(struct vp_orc *orc);
/* The rule at an address, or NULL. */
const struct vp_orc_rule *vp_orc_find(const struct vp_orc *orc, uint64_t address);

/* Appends to `text` entry by entry; the caller may empty it in between. */
struct vp_orc_writer {
	struct vp_buffer text;
	uint64_t lines, last; /* last: the previous entry's address */
	struct vp_map rules;  /* packed rule → number */
};

/* Starts the text; `release` and `build_id` of the kernel. */
void vp_orc_writer_init(struct vp_orc_writer *writer, const char *release,
			const struct vp_build_id *build_id);
/* Adds an entry: `rule` applies from address `from` to the next entry's. Addresses must ascend. */
void vp_orc_write(struct vp_orc_writer *writer, uint64_t from, const struct vp_orc_rule *rule);
/* Adds the end line. */
void vp_orc_writer_finish(struct vp_orc_writer *writer);
void vp_orc_writer_deinit(struct vp_orc_writer *writer);

#endif
