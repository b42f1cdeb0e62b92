/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/trace.h"

#include <string.h>

#include "schema/records.h"

/* First word of a record: event, number of words after the time, time flag. */
#define EVENT(head) ((head)&0x0fffffff)
#define EXTRA(head) ((head) >> 28 & 7)
#define HAS_TIME(head) ((head) >> 31)

enum {
	WIDE = 0x100, /* TRC_64_FLAG: addresses have 64 bits */
	LOST_RECORDS = 0x0001f001,
	RUNSTATE_CHANGE = 0x00021001, /* states in bits 4, 5 and 8, 9 */
	RUNSTATE_BITS = 0x330,
	VMENTRY = 0x00081001,
	VMEXIT = 0x00081002,
	SVM_VMEXIT = 0x00081003, /* since Xen 4.19 (320e644616) */
	PV = 0x00201000,
	PV_NUMBER = 0xff,
	PV_TRAP = 3,
	PV_MATH_STATE_RESTORE = 8,
	PV_PTWR_EMULATION = 11,
	PV_PTWR_EMULATION_PAE = 12,
	PV_HYPERCALL = 13,           /* TRC_PV_HYPERCALL_V2 */
	PV_HYPERCALL_NUMBER = 0xfff, /* upper bits: the arguments that follow */
	PV_TRAP_NUMBER = 0xff,       /* upper bits: the error code */
};

static uint32_t word(const struct vp_xen_record *record, unsigned i)
{
	return i < record->n_words ? record->words[i] : 0;
}

static uint64_t wide(const struct vp_xen_record *record, unsigned i)
{
	return word(record, i) | (uint64_t)word(record, i + 1) << 32;
}

static void trace_take_runstate(struct vp_xen_record *ret)
{
	if (!ret->n_words)
		return;
	ret->event = VP_XEN_RUNSTATE;
	ret->vcpu = (uint16_t)word(ret, 0);
	ret->domain = (uint16_t)(word(ret, 0) >> 16);
	ret->before = ret->id >> 8 & 3;
	ret->after = ret->id >> 4 & 3;
}

static void trace_take_exit(struct vp_xen_record *ret)
{
	if (ret->n_words < 2)
		return;
	ret->event = VP_XEN_EXIT;
	ret->reason = word(ret, 0);
	ret->ip = ret->id & WIDE ? wide(ret, 1) : word(ret, 1);
}

/* Index of the guest RIP in the words: first, or after the written value. */
static unsigned word_of_ip(uint32_t number, unsigned size)
{
	return number == PV_PTWR_EMULATION ? 2 * size : number == PV_PTWR_EMULATION_PAE ? 3 : 0;
}

/* Reason for which a PV guest entered Xen. */
static void trace_take_work(uint32_t number, struct vp_xen_record *ret)
{
	unsigned size = ret->id & WIDE ? 2 : 1, at = word_of_ip(number, size), least = at + size;

	ret->reason = VP_PARAVIRTUAL | (VP_PARAVIRTUAL_WORK + number);
	if (number == PV_HYPERCALL) {
		ret->reason = VP_PARAVIRTUAL | (word(ret, 0) & PV_HYPERCALL_NUMBER);
		least = 1;
	} else if (number == PV_TRAP) {
		ret->reason =
		    VP_PARAVIRTUAL | (VP_PARAVIRTUAL_TRAP + (word(ret, size) & PV_TRAP_NUMBER));
		least = size + 1;
	} else if (number == PV_MATH_STATE_RESTORE) {
		least = 0;
	}
	if (ret->n_words < least)
		return;
	ret->event = VP_XEN_WORK;
	ret->has_ip = least >= size && number != PV_HYPERCALL;
	ret->ip = size == 2 ? wide(ret, at) : word(ret, at);
}

static void trace_take_event(struct vp_xen_record *ret)
{
	uint32_t narrow = ret->id & ~(uint32_t)WIDE;

	if (ret->id == LOST_RECORDS) {
		ret->event = VP_XEN_LOST;
		ret->count = word(ret, 0);
		/* The second word has the same owner as the first. */
		ret->since = ret->n_words < 4 ? UINT64_MAX : wide(ret, 2);
	} else if ((ret->id & ~(uint32_t)RUNSTATE_BITS) == RUNSTATE_CHANGE) {
		trace_take_runstate(ret);
	} else if (narrow == VMENTRY) {
		ret->event = VP_XEN_ENTRY;
	} else if (narrow == VMEXIT || narrow == SVM_VMEXIT) {
		trace_take_exit(ret);
	} else if ((narrow & ~(uint32_t)PV_NUMBER) == PV) {
		trace_take_work(narrow & PV_NUMBER, ret);
	}
}

bool vp_xen_record_read(struct vp_cursor *cursor, struct vp_xen_record *ret)
{
	uint32_t head;

	if (!vp_cursor_left(cursor))
		return false;
	head = vp_cursor_u32(cursor);
	memset(ret, 0, offsetof(struct vp_xen_record, words));
	ret->event = VP_XEN_OTHER;
	ret->id = EVENT(head);
	ret->n_words = EXTRA(head);
	/* Hot: hundreds of thousands of records per second. One check, and a copy of fixed size
	 * (two instructions) where enough bytes follow. */
	size_t time = HAS_TIME(head) ? sizeof(ret->tsc) : 0;
	size_t size = ret->n_words * sizeof(ret->words[0]);
	struct vp_slice rest = vp_cursor_bytes(cursor, time + size);
	if (!vp_cursor_ok(cursor))
		return false;
	if (time)
		memcpy(&ret->tsc, rest.bytes, sizeof(ret->tsc));
	if (size + vp_cursor_left(cursor) >= sizeof(ret->words))
		memcpy(ret->words, rest.bytes + time, sizeof(ret->words));
	else
		memcpy(ret->words, rest.bytes + time, size);
	trace_take_event(ret);
	return true;
}
