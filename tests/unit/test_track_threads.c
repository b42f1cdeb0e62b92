/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads of guests on a hypervisor whose VMs are not processes, from the guests' own events. */
#include "made_events.h"

#include "analyze/trace/tracks.h"
#include "bpf/account_abi.h"
#include "render/render_tracks.h"

#define NAME "test_track_threads.rec"

enum { HOST_VM = 1000, GUEST_VM = 2000, OTHER_VM = 3000 };
enum { WORKER = 7, SERVER = 8 };

static const char *name_of(uint32_t tid)
{
	return tid == WORKER ? "worker" : tid == SERVER ? "server" : "idle";
}

/* A vCPU's state that ended at `ns` of the recording. */
static void put_state(struct made *made, uint32_t vm, uint16_t vcpu, uint64_t ns, uint64_t length,
		      enum vp_state state, int flags)
{
	struct vp_vcpu_span span = {.time = AT(ns),
				    .id = VP_ID_vcpu_span,
				    .flags = (uint16_t)flags,
				    .vm = vm,
				    .tid = vm + vcpu + 1,
				    .vcpu = vcpu,
				    .state = (uint8_t)state,
				    .cpu = vcpu,
				    .ns = length};

	vp_trace_append(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU},
			(void *)&span);
}

static void begin_domains(struct made *made)
{
	begin(made, NAME, 3, 2);
	for (uint32_t i = 0; i < 3; i++) {
		made->vms.at[i].has_domain = true;
		made->vms.at[i].domain = i;
	}
}

static void end_domains(struct made *made)
{
	vp_trace_flush(made->writer, (struct vp_stream_id){VP_STREAM_STATES, VP_NO_PCPU}, 0);
	end(made);
}

static void put_process(struct guest *guest, uint32_t pid, uint32_t tid)
{
	struct vp_task task = {.time = AT(1), .id = VP_ID_task, .pid = pid, .tid = tid};

	vp_trace_append(guest->writer, (struct vp_stream_id){VP_STREAM_TRACEPOINTS, 0},
			(void *)&task);
}

static void on(struct guest *guest, uint32_t cpu, uint64_t ns, uint32_t prev, uint32_t next)
{
	put_event_on(guest, cpu, ns, SWITCH, (const uint32_t[]){prev, prev, SLEEPS, next});
}

struct printed {
	struct vp_tracks_layout layout;
	struct vp_buffer out;
	vp_sentences notes;
};

static void take(void *context, const struct vp_track_slice *slice)
{
	struct printed *printed = context;

	if (slice->track == VP_TRACK_VCPU && slice->vm == GUEST_VM)
		vp_tracks_format_named("text")->slice(slice, &printed->layout, &printed->out);
}

static void expect_slices(const char *expected, const char *note)
{
	struct printed printed = {0};
	const struct vp_tracks_options options = {
	    .to = UINT64_MAX, .take = take, .context = &printed};

	expect_no_error(vp_tracks_open(NAME, &options, &printed.layout.tracks));
	while (vp_tracks_read(printed.layout.tracks, 1))
		;
	assert_string_equal(vp_buffer_text(&printed.out), expected);
	const struct vp_feed *feed = vp_tracks_feed(printed.layout.tracks);
	assert_int_equal(feed->notes.count, 1);
	assert_string_equal(feed->notes.at[0], note);
	vp_tracks_close(printed.layout.tracks);
	vp_buffer_deinit(&printed.out);
}

#define OTHERS                                                                                     \
	"the threads of these guests are unknown, because the recording does not have their "      \
	"events ('vperf record --trace-guests' records them by the guest's agent): "

/* Slices are split where the guest's kernel switches; a wait has the thread that it delays; the
 * threads of the other vCPU are its own. */
static void test_guest_threads(void **state)
{
	struct guest guest;
	struct made made;

	begin_domains(&made);
	put_state(&made, GUEST_VM, 0, 50, 40, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 1, 60, 40, VP_STATE_GUEST, 0);
	put_state(&made, HOST_VM, 0, 70, 20, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 0, 72, 22, VP_STATE_PREEMPTED, VP_STATE_GOT_PCPU);
	put_state(&made, GUEST_VM, 0, 90, 18, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 0, 100, 10, VP_STATE_HALTED, 0);
	put_state(&made, GUEST_VM, 0, 120, 20, VP_STATE_GUEST, 0);
	end_domains(&made);
	guest_begin(&guest, NAME, "guest-vm1", "vm1");
	put_process(&guest, 5, WORKER);
	on(&guest, 0, 20, 0, WORKER);
	on(&guest, 1, 30, 0, SERVER);
	on(&guest, 0, 80, WORKER, 0);
	on(&guest, 0, 110, 0, SERVER);
	on(&guest, 0, 115, SERVER, 0);
	on(&guest, 0, 130, 0, SERVER); /* after the last state */
	guest_end(&guest);
	expect_slices("    1.000000010    10 ns [000] vm1/0    guest\n"
		      "    1.000000020    30 ns [000] vm1/0    guest     worker/7 exact\n"
		      "    1.000000020    10 ns [001] vm1/1    guest\n"
		      "    1.000000030    30 ns [001] vm1/1    guest     server/8 exact\n"
		      "    1.000000050    22 ns [000] vm1/0    preempted worker/7 by=vCPU 0 of VM "
		      "vm0/1001\n"
		      "    1.000000072     8 ns [000] vm1/0    guest     worker/7 exact\n"
		      "    1.000000080    10 ns [000] vm1/0    guest     swapper/0 exact\n"
		      "    1.000000090    10 ns [-]   vm1/0    halted    swapper/0\n"
		      "    1.000000100    10 ns [000] vm1/0    guest     swapper/0 exact\n"
		      "    1.000000110     5 ns [000] vm1/0    guest     server/8 exact\n"
		      "    1.000000115     5 ns [000] vm1/0    guest     swapper/0 exact\n",
		      OTHERS "vm2");
}

/* A thread is uncertain if a switch in between was lost, and after the guest's last event. */
static void test_uncertain(void **state)
{
	struct guest guest;
	struct made made;

	begin_domains(&made);
	put_state(&made, GUEST_VM, 0, 100, 100, VP_STATE_GUEST, 0);
	put_state(&made, GUEST_VM, 0, 110, 10, VP_STATE_KERNEL, 0);
	put_state(&made, GUEST_VM, 0, 130, 20, VP_STATE_GUEST, 0);
	end_domains(&made);
	guest_begin(&guest, NAME, "guest-vm1", "vm1");
	on(&guest, 0, 20, 0, WORKER);
	on(&guest, 0, 40, SERVER, 0);
	on(&guest, 0, 60, 0, SERVER);
	guest_end(&guest);
	expect_slices("    1.000000000    20 ns [000] vm1/0    guest\n"
		      "    1.000000020    20 ns [000] vm1/0    guest     worker/7 uncertain\n"
		      "    1.000000040    20 ns [000] vm1/0    guest     swapper/0 exact\n"
		      "    1.000000060    40 ns [000] vm1/0    guest     server/8 uncertain\n"
		      "    1.000000100    10 ns [000] vm1/0    work      server/8\n"
		      "    1.000000110    20 ns [000] vm1/0    guest     server/8 uncertain\n",
		      OTHERS "vm2");
}

/* Without events of guests there is one note for all of them. */
static void test_no_events(void **state)
{
	struct made made;

	begin_domains(&made);
	put_state(&made, GUEST_VM, 0, 50, 40, VP_STATE_GUEST, 0);
	end_domains(&made);
	expect_slices("    1.000000010    40 ns [000] vm1/0    guest\n", OTHERS "vm1, vm2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_guest_threads),
	    cmocka_unit_test(test_uncertain),
	    cmocka_unit_test(test_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
