/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "protocol/events_protocol.h"

static const char request_head[] = "vperf-request 1 events";

#define SET(name)                                                                                  \
	{                                                                                          \
#name, VP_EVENTS_SET_##name                                                        \
	}
static const struct {
	const char *name;
	unsigned bit;
} sets[] = {SET(sched), SET(irq), SET(block), SET(net), SET(syscalls), SET(timer)};

static const struct {
	unsigned set;
	const char *name;
} events[] = {{VP_EVENTS_SET_sched, "sched:sched_switch"},
	      {VP_EVENTS_SET_sched, "sched:sched_waking"},
	      {VP_EVENTS_SET_sched, "sched:sched_wakeup"},
	      {VP_EVENTS_SET_sched, "sched:sched_wakeup_new"},
	      {VP_EVENTS_SET_sched, "sched:sched_migrate_task"},
	      {VP_EVENTS_SET_sched, "sched:sched_process_fork"},
	      {VP_EVENTS_SET_sched, "sched:sched_process_exec"},
	      {VP_EVENTS_SET_sched, "sched:sched_process_exit"},
	      {VP_EVENTS_SET_irq, "irq:irq_handler_entry"},
	      {VP_EVENTS_SET_irq, "irq:irq_handler_exit"},
	      {VP_EVENTS_SET_irq, "irq:softirq_entry"},
	      {VP_EVENTS_SET_irq, "irq:softirq_exit"},
#if defined(__aarch64__) /* a guest of KVM has its host's architecture */
	      {VP_EVENTS_SET_irq, "ipi:ipi_entry"},
	      {VP_EVENTS_SET_irq, "ipi:ipi_exit"},
#else
	      {VP_EVENTS_SET_irq, "irq_vectors:local_timer_entry"},
	      {VP_EVENTS_SET_irq, "irq_vectors:local_timer_exit"},
	      {VP_EVENTS_SET_irq, "irq_vectors:reschedule_entry"},
	      {VP_EVENTS_SET_irq, "irq_vectors:reschedule_exit"},
	      {VP_EVENTS_SET_irq, "irq_vectors:call_function_single_entry"},
	      {VP_EVENTS_SET_irq, "irq_vectors:call_function_single_exit"},
#endif
	      {VP_EVENTS_SET_block, "block:block_rq_insert"},
	      {VP_EVENTS_SET_block, "block:block_rq_issue"},
	      {VP_EVENTS_SET_block, "block:block_rq_complete"},
	      {VP_EVENTS_SET_net, "net:net_dev_queue"},
	      {VP_EVENTS_SET_net, "net:net_dev_start_xmit"},
	      {VP_EVENTS_SET_net, "net:netif_receive_skb"},
	      {VP_EVENTS_SET_net, "napi:napi_poll"},
	      {VP_EVENTS_SET_syscalls, "raw_syscalls:sys_enter"},
	      {VP_EVENTS_SET_syscalls, "raw_syscalls:sys_exit"},
	      {VP_EVENTS_SET_timer, "timer:timer_expire_entry"},
	      {VP_EVENTS_SET_timer, "timer:timer_expire_exit"},
	      {VP_EVENTS_SET_timer, "timer:hrtimer_expire_entry"},
	      {VP_EVENTS_SET_timer, "timer:hrtimer_expire_exit"}};

unsigned vp_events_set_named(struct vp_slice name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(sets); i++)
		if (vp_slice_is(name, sets[i].name))
			return sets[i].bit;
	return 0;
}

const char *vp_events_set_name(size_t number)
{
	return number < VP_ARRAY_SIZE(sets) ? sets[number].name : NULL;
}

const char *vp_events_of_sets(unsigned wanted, size_t number)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++)
		if (events[i].set & wanted && !number--)
			return events[i].name;
	return NULL;
}

bool vp_events_is_allowed(struct vp_slice name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(events); i++)
		if (vp_slice_is(name, events[i].name))
			return true;
	return false;
}

void vp_events_request_write(unsigned wanted, struct vp_buffer *text)
{
	vp_buffer_string(text, request_head);
	for (size_t i = 0; i < VP_ARRAY_SIZE(sets); i++)
		if (wanted & sets[i].bit)
			vp_buffer_printf(text, " %s", sets[i].name);
	vp_buffer_string(text, "\n");
}

bool vp_events_request_parse(struct vp_slice line, unsigned *ret)
{
	const size_t head = sizeof(request_head) - 1;

	*ret = 0;
	if (line.size <= head || memcmp(line.bytes, request_head, head) != 0 ||
	    line.bytes[head] != ' ')
		return false;
	struct vp_cursor words = vp_cursor_of(line.bytes + head + 1, line.size - head - 1);
	while (vp_cursor_ok(&words) && vp_cursor_left(&words)) {
		unsigned bit = vp_events_set_named(vp_cursor_word(&words));
		if (!bit)
			return false;
		*ret |= bit;
	}
	return vp_cursor_ok(&words) && *ret;
}
