/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/tasks/counts.h"

#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"

/* A symbol, and the counter's offset from it. */
struct counter_offset {
	struct vp_pack_symbol symbol;
	uint64_t offset;
	bool narrow;
};

/* Offset of the timer interrupt count. Since v7.2 a CPU's interrupt counts are an array of unsigned
 * int, indexed by enum irq_stat_counts. */
static uint64_t timer_offset(const struct vp_kernel_pack *pack)
{
	if (pack->at.irq_timer != VP_PACK_NONE)
		return pack->at.irq_timer;
	if (pack->at.irq_counts == VP_PACK_NONE || pack->value.irq_timer == VP_PACK_NONE)
		return VP_PACK_NONE;
	return pack->at.irq_counts + pack->value.irq_timer * sizeof(uint32_t);
}

static bool counts_offset_of(const struct vp_kernel_pack *pack, enum vp_guest_count count,
			     struct counter_offset *ret)
{
	const uint64_t none = VP_PACK_NONE;

	switch (count) {
	case VP_GUEST_switches:
		*ret = (struct counter_offset){pack->symbol.runqueues, pack->at.rq_switches, false};
		break;
	/* An array of unsigned long (struct vm_event_state). */
	case VP_GUEST_faults:
		*ret = (struct counter_offset){pack->symbol.vm_event_states, pack->value.pgfault,
					       false};
		break;
	case VP_GUEST_major_faults:
		*ret = (struct counter_offset){pack->symbol.vm_event_states, pack->value.pgmajfault,
					       false};
		break;
	case VP_GUEST_interrupts:
		*ret = (struct counter_offset){pack->symbol.kstat, pack->at.kstat_irqs, false};
		break;
	case VP_GUEST_timer:
		*ret = (struct counter_offset){pack->symbol.irq_stat, timer_offset(pack), true};
		break;
	case VP_GUEST_forks:
		*ret = (struct counter_offset){pack->symbol.total_forks, 0, false};
		break;
	default:
		return false;
	}
	if (ret->symbol.offset == VP_PACK_NONE || ret->offset == none)
		return false;
	if (count == VP_GUEST_faults || count == VP_GUEST_major_faults)
		ret->offset *= sizeof(uint64_t);
	return true;
}

/* Base to which per-CPU symbols are added. Since v6.15 (9d7de2aa8b41) these are addresses in the
 * image, and the CPU's own base is relative to them. */
static uint64_t percpu_base(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu)
{
	const struct vp_pack_symbol current = kernel->pack.symbol.current_task;
	const struct vp_pack_symbol hot = kernel->pack.symbol.pcpu_hot;
	bool percpu = current.offset != VP_PACK_NONE ? current.percpu : hot.percpu;

	return percpu ? cpu->base : cpu->base + kernel->text;
}

static bool find_word(const struct vp_guest_kernel *kernel, uint64_t va, uint64_t *gpa)
{
	struct vp_guest_page page;

	if (!vp_guest_view_translate(&kernel->view, va, &page) || page.left < sizeof(uint64_t))
		return false;
	*gpa = page.gpa;
	return true;
}

bool vp_guest_counter_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			   enum vp_guest_count count, struct vp_guest_counter *ret)
{
	struct counter_offset counter_offset;

	if (!counts_offset_of(&kernel->pack, count, &counter_offset))
		return false;
	/* total_forks is not per-CPU in any kernel */
	uint64_t base = count == VP_GUEST_forks ? kernel->text : percpu_base(kernel, cpu);
	ret->narrow = counter_offset.narrow;
	return find_word(kernel, base + counter_offset.symbol.offset + counter_offset.offset,
			 &ret->gpa);
}

bool vp_guest_chosen_find(const struct vp_guest_kernel *kernel, const struct vp_guest_cpu *cpu,
			  uint64_t *gpa)
{
	const struct vp_kernel_pack *pack = &kernel->pack;

	return pack->symbol.runqueues.offset != VP_PACK_NONE && pack->at.rq_curr != VP_PACK_NONE &&
	       find_word(kernel,
			 percpu_base(kernel, cpu) + pack->symbol.runqueues.offset +
			     pack->at.rq_curr,
			 gpa);
}
