/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a recording that has something for each part of the page, and names as a guest would choose
 * them to harm who looks: make_recording_for_page DIR.
 */
#include <stdio.h>
#include <string.h>

#include "../unit/make_recording.h"
#include "base/file.h"
#include "schema/trace_event.h"

#define AT(us) (MADE_START + (us)*1000ULL)
#define HOSTILE "a</script><img src=x onerror=\"window.hacked=1\">"

enum { VM = 1000, CPU0 = 1001, THIEF = 50, ROUNDS = 200 };

static void append(struct made *made, void *record)
{
	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, record);
}

#define PUT(made, us, event, ...)                                                                  \
	append(made, &(struct vp_trace_##event){.time = AT(us),                                    \
						.id = VP_TRACE_ID_##event,                         \
						.size = VP_TRACE_SIZE_##event,                     \
						__VA_ARGS__})

static void put_name(struct made *made, uint32_t tid, const char *comm)
{
	struct vp_task task = {.time = AT(1), .id = VP_ID_task, .pid = tid, .tid = tid};

	memcpy(task.comm, comm, strlen(comm));
	append(made, &task);
}

/* Each round of 1 ms: 600 us in the guest, by one of two threads, 100 in KVM; then the thief has
 * the pCPU for 300. */
static void put_events(struct made *made)
{
	vp_event_classes classes = {0};

	if (vp_trace_event_classes(&classes) || vp_trace_writer_define(made->writer, &classes))
		abort();
	vp_event_classes_deinit(&classes);
	put_name(made, CPU0, "CPU 0/KVM");
	put_name(made, THIEF, "<b>thief</b>");
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t us = 10 + 1000 * i;
		uint32_t tid = 70 + (uint32_t)(i & 1);
		struct vp_guest_task name = {.time = AT(us),
					     .id = VP_ID_guest_task,
					     .vm = VM,
					     .guest_pid = tid,
					     .guest_tid = tid};
		memcpy(name.comm, i & 1 ? "odd" : "even", 4);
		append(made, &name);
		PUT(made, us, kvm_entry, .tid = CPU0, .vm = VM, .vcpu = 0);
		PUT(made, us + 600, guest_switch, .tid = CPU0, .vm = VM, .guest_tid = tid,
		    .guest_pid = tid, .switches = 1, .vcpu = 0);
		PUT(made, us + 600, kvm_exit, .tid = CPU0, .vm = VM, .reason = MADE_INTR, .vcpu = 0,
		    .vendor = VP_VENDOR_AMD);
		PUT(made, us + 700, sched_switch, .prev_tid = CPU0, .next_tid = THIEF);
		PUT(made, us + 999, sched_switch, .prev_tid = THIEF, .next_tid = CPU0);
	}
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_TRACE, 0}, 0);
}

static void put_samples(struct made *made)
{
	for (uint64_t tick = 1; tick < ROUNDS; tick++)
		if (tick % 10 < 6)
			made_guest_thread(
			    made, 0, tick, 0, 70, 70, tick % 10 < 4 ? "even" : "<i>odd",
			    tick % 10 < 4 ? 0x1000 : 0x2000, 0x400000 + 16 * (tick % 3));
		else if (tick % 10 < 7)
			made_in_kvm(made, 0, tick, 0, 0, MADE_INTR);
		else
			made_host(made, 0, tick, THIEF, VP_MODE_USER);
}

static void put_intervals(struct made *made)
{
	static const char recipe[] = "interval time 10ms\nper vcpu\ncount exits time\n";
	VP_AUTO_FREE char *path = vp_format("%s/recipe", made->path);

	for (uint64_t i = 0; i < ROUNDS / 10; i++)
		made_interval(made, 0, 10 * i, 10 * (i + 1), 0, 0, 0, 2,
			      (uint64_t[]){10 + i, 10 * MADE_PERIOD},
			      (uint32_t[]){1000000000, 1000000000});
	if (vp_file_publish(path, recipe, sizeof(recipe) - 1))
		abort();
}

int main(int argc, char **argv)
{
	struct made made;

	if (argc != 2) {
		fputs("usage: make_recording_for_page DIR\n", stderr);
		return 2;
	}
	made_begin(&made, argv[1], 1);
	free(made.vms.at[0].name);
	made.vms.at[0].name = vp_strdup(HOSTILE);
	free(made.about.instruments);
	made.about.instruments = vp_strdup("profile intervals trace");
	put_events(&made);
	put_samples(&made);
	put_intervals(&made);
	made_end(&made, ROUNDS);
	return 0;
}
