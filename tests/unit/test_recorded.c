/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sentences that are made of a recording's numbers when it is read. */
#include "unit.h"

#include <errno.h>
#include <sys/stat.h>

#include "analyze/common/health.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "make_recording.h"
#include "schema/agent_outcome.h"
#include "schema/guest_sampling.h"
#include "schema/interval.h"
#include "schema/records.h"
#include "schema/snapshot_cause.h"
#include "schema/vm.h"
#include "store/recording.h"

#define NAME "test_recorded.rec"

static vp_vms vms;

static void expect_cause(const struct vp_snapshot_cause *cause, const char *expected)
{
	VP_AUTO_FREE char *text = vp_snapshot_cause_text(cause, &vms);

	assert_string_equal(text, expected);
}

static void test_causes(void **state)
{
	struct vp_snapshot_cause cause = {.kind = VP_CAUSE_TRIGGER,
					  .condition = VP_CONDITION_STEAL,
					  .limit_ns = 20000000,
					  .vm = 1000,
					  .vcpu = 2,
					  .tid = 1002,
					  .ns = 25000000,
					  .pcpu = 3,
					  .vendor = VP_VENDOR_INTEL,
					  .reason = 12,
					  .thief_tid = 77,
					  .thief_ns = 24000000,
					  .thief_comm = "thief"};

	vp_vec_push(&vms, ((struct vp_vm){.pid = 1000, .name = (char *)"g1"}));
	expect_cause(&cause, "steal>20ms: vCPU 2 of VM 'g1' (thread 1002) was runnable for 25.0 ms "
			     "without a pCPU; of this, 'thief' (thread 77) had pCPU 3 for 24.0 ms");
	cause.condition = VP_CONDITION_WAKEUP;
	cause.thief_tid = 0;
	cause.vcpu = VP_VCPU_UNKNOWN;
	expect_cause(&cause,
		     "wakeup>20ms: vCPU ? of VM 'g1' (thread 1002) got a pCPU 25.0 ms after "
		     "it was woken; the thread on pCPU 3 is unknown");
	cause.condition = VP_CONDITION_EXIT;
	cause.vm = 4;
	expect_cause(&cause, "exit>20ms: vCPU ? of VM '?' (thread 1002) was outside the guest for "
			     "25.0 ms after a VM exit of reason HLT");
	cause.condition = VP_CONDITION_THROTTLED;
	expect_cause(&cause,
		     "throttled: vCPU ? of VM '?' (thread 1002) was throttled: the CPU quota "
		     "of its cgroup was used up");
	cause.condition = VP_CONDITIONS;
	expect_cause(&cause, "a trigger of a newer vperf");
	expect_cause(&(struct vp_snapshot_cause){.kind = VP_CAUSE_NONE}, "");
	expect_cause(&(struct vp_snapshot_cause){.kind = VP_CAUSE_MANUAL}, "manual snapshot");
	expect_cause(&(struct vp_snapshot_cause){.kind = VP_CAUSE_SIGNAL},
		     "manual snapshot (SIGUSR2)");
	expect_cause(&(struct vp_snapshot_cause){.kind = VP_CAUSE_END}, "end of the recording");
	expect_cause(&(struct vp_snapshot_cause){.kind = 99}, "a cause of a newer vperf");
	vp_vec_deinit(&vms);
}

/* Of domains: the thief is a vCPU, of a domain that is known or not, and there are no threads. */
static void test_causes_of_domains(void **state)
{
	struct vp_snapshot_cause cause = {.kind = VP_CAUSE_TRIGGER,
					  .condition = VP_CONDITION_STEAL,
					  .limit_ns = 20000000,
					  .vm = 6,
					  .vcpu = 2,
					  .tid = 6002,
					  .ns = 25000000,
					  .pcpu = 3,
					  .thief_tid = 1000,
					  .thief_ns = 24000000};

	vp_vec_push(&vms, ((struct vp_vm){.pid = 6, .has_domain = true, .name = (char *)"g1"}));
	vp_vec_push(&vms, ((struct vp_vm){.pid = 1, .has_domain = true, .name = (char *)"d0"}));
	vp_vm_vcpu(&vms.at[1], 5)->tid = 1000;
	expect_cause(&cause, "steal>20ms: vCPU 2 of VM 'g1' was runnable for 25.0 ms without a "
			     "pCPU; of this, vCPU 5 of VM 'd0' had pCPU 3 for 24.0 ms");
	cause.thief_tid = 7;
	expect_cause(&cause, "steal>20ms: vCPU 2 of VM 'g1' was runnable for 25.0 ms without a "
			     "pCPU; of this, a vCPU of another domain had pCPU 3 for 24.0 ms");
	cause.thief_tid = 0;
	expect_cause(&cause, "steal>20ms: vCPU 2 of VM 'g1' was runnable for 25.0 ms without a "
			     "pCPU; no vCPU had pCPU 3");
	cause.condition = VP_CONDITION_THROTTLED;
	expect_cause(&cause, "throttled: vCPU 2 of VM 'g1' was throttled: the cap of its domain "
			     "was used up");
	vp_vec_deinit(&vms.at[1].vcpus);
	vp_vec_deinit(&vms);
}

/* How guests were sampled, which kind gave which share, and the cost. */
static void test_guest_sampling(void **state)
{
#define COST                                                                                       \
	", one per 2.000 ms of CPU time, 45.0 per second; each paused its vCPU for 4.0 us (at "    \
	"most "                                                                                    \
	"17.0 us), 0.018% of the time of one vCPU; CPU time without samples: 3.0 ms"
	static const char *const expected[] = {
	    [VP_GUEST_SAMPLING_NO_EXITS] = "90 by the vCPU's context from Xen" COST,
	    [VP_GUEST_SAMPLING_INTERRUPTS] =
		"90 by the vCPU's context from Xen (75.0% of the CPU time) and 5 at exits for "
		"interrupts (25.0%; 50.0% by address only)" COST,
	    [VP_GUEST_SAMPLING_COUNTERS] =
		"90 by the vCPU's context from Xen (75.0% of the CPU time) and 5 at interrupts of "
		"a hardware counter (25.0%; 50.0% by address only), counter interrupts on 3 pCPUs, "
		"11 of them in this host's own vCPUs and 12 in the hypervisor" COST};
	struct vp_guest_sampling sampling = {.method = VP_GUEST_SAMPLING_CONTEXTS,
					     .period_ns = 2000000,
					     .duration_ns = 2000000000,
					     .contexts = 90,
					     .pause_ns = 360000,
					     .max_pause_ns = 17000,
					     .unsampled_ns = 3000000,
					     .periods = 4,
					     .exit_periods = 1,
					     .unknown_periods = 2,
					     .exit_samples = 5,
					     .pcpus = 3,
					     .own = 11,
					     .hypervisor = 12};

	for (sampling.exits = 0; sampling.exits < VP_ARRAY_SIZE(expected); sampling.exits++) {
		VP_AUTO_FREE char *text = vp_guest_sampling_text(&sampling);
		assert_string_equal(text, expected[sampling.exits]);
	}
	/* Nothing is divided by 0. */
	const struct vp_guest_sampling empty = {.method = VP_GUEST_SAMPLING_CONTEXTS,
						.exits = VP_GUEST_SAMPLING_INTERRUPTS};
	VP_AUTO_FREE char *text = vp_guest_sampling_text(&empty);
	assert_string_equal(text,
			    "0 by the vCPU's context from Xen, one per 0.000 ms of CPU time, "
			    "0.0 per second; each paused its vCPU for 0.0 us (at most 0.0 us), "
			    "0.000% of the time of one vCPU; CPU time without samples: 0.0 ms");
	VP_AUTO_FREE char *none = vp_guest_sampling_text(&(struct vp_guest_sampling){0});
	assert_string_equal(none, "");
}

/* The sentences of the three requests, as 0.2.0 stored them. */
static void test_agent_outcomes(void **state)
{
	const struct {
		struct vp_agent_outcome outcome;
		const char *text;
	} all[] = {
	    {{.port = 733}, "ok: from vsock port 733, where only root of the guest can listen"},
	    {{.port = 1023}, "ok: from vsock port 1023, where only root of the guest can listen"},
	    {{.port = 1024},
	     "ok: from unprivileged vsock port 1024, where any program of the guest can listen"},
	    {{.status = VP_AGENT_TRUNCATED, .port = 733, .problem = (char *)"it hung"},
	     "it hung; the part received is from vsock port 733, where only root of the guest can "
	     "listen"},
	    {{.status = VP_AGENT_FAILED, .problem = (char *)"no agent"}, "no agent"},
	    {{.status = VP_AGENT_NOT_SELECTED}, "not asked: not selected by --vm"},
	    {{.request = VP_AGENT_COUNTS, .status = VP_AGENT_FAILED}, "no reply"},
	    {{.request = VP_AGENT_COUNTS,
	      .port = 733,
	      .counted = 1U << VP_GUEST_forks | 1U << VP_GUEST_system_calls},
	     "ok: it counted guest:forks, guest:system-calls"},
	    {{.request = VP_AGENT_COUNTS,
	      .port = 9733,
	      .counted = 1,
	      .missing_ns = 2500000000,
	      .problem = (char *)"it ended"},
	     "ok: it counted guest:context-switches, from unprivileged vsock port 9733, where any "
	     "program of the guest can listen; not for 2.5 s; it ended"},
	    {{.request = VP_AGENT_EVENTS, .status = VP_AGENT_FAILED, .problem = (char *)"no agent"},
	     "events: no agent"},
	    {{.request = VP_AGENT_EVENTS, .port = 733, .events = 12, .lost = 3, .error_ns = 40},
	     "ok: it sent 12 events, 3 lost; their times are accurate to 40 ns"},
	    {{.request = VP_AGENT_EVENTS,
	      .port = 9733,
	      .events = 12,
	      .invalid = 4,
	      .missing_ns = 1000000000,
	      .problem = (char *)"it ended"},
	     "ok: it sent 12 events, 0 lost, 4 invalid entries; their times are accurate to 0 ns, "
	     "from "
	     "an unprivileged vsock port; none of 1.0 s: it ended"},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(all); i++) {
		VP_AUTO_FREE char *text = vp_agent_outcome_text(&all[i].outcome);
		assert_string_equal(text, all[i].text);
	}
}

/* Numbers are stored, in `vms`; a recording before 0.3 has the sentence. */
static void test_agent_lines(void **state)
{
	const struct vp_agent_outcome counts = {.request = VP_AGENT_COUNTS,
						.port = 733,
						.counted = 3,
						.problem = vp_strdup("it\nended")},
				      events = {.request = VP_AGENT_EVENTS,
						.port = 9733,
						.events = 1,
						.lost = 2,
						.invalid = 3,
						.error_ns = 4,
						.missing_ns = 500000000};
	vp_vms written = {0}, read = {0};
	struct vp_buffer text = {0};

	vp_vec_push(
	    &written,
	    ((struct vp_vm){
		.pid = 1, .name = vp_strdup("a"), .uuid = vp_strdup(""), .agent = vp_strdup("")}));
	vp_vec_push(&written, ((struct vp_vm){.pid = 2,
					      .name = vp_strdup("b"),
					      .uuid = vp_strdup(""),
					      .agent = vp_strdup("ok: old")}));
	vp_vm_add_agent_outcome(&written.at[0], &counts);
	vp_vm_add_agent_outcome(&written.at[0], &events);
	assert_true(!mkdir(NAME, 0755) || errno == EEXIST);
	expect_no_error(vp_vms_write(NAME, &written));
	expect_no_error(vp_file_read(NAME "/vms", 1 << 20, &text));
	assert_non_null(strstr(vp_buffer_text(&text),
			       "agent-outcome 1 0 733 3 0 0 0 0 0 it ended\n"
			       "agent-outcome 2 0 9733 0 500000000 1 2 3 4\n"));
	assert_non_null(strstr(vp_buffer_text(&text), "\nagent ok: old\n"));
	assert_null(strstr(vp_buffer_text(&text), "it counted"));
	expect_no_error(vp_vms_read(NAME, &read));
	assert_string_equal(read.at[0].agent,
			    "ok: it counted guest:context-switches, guest:page-faults; it ended; "
			    "ok: it sent 1 events, 2 lost, 3 invalid entries; their times are "
			    "accurate to 4 ns, from an unprivileged vsock port; none of 0.5 s");
	assert_string_equal(read.at[1].agent, "ok: old");
	vp_buffer_deinit(&text);
	vp_vms_deinit(&read);
	vp_vms_deinit(&written);
}

/* A request or status of a later version is skipped; so are too many lines. */
static void test_strange_agent_lines(void **state)
{
	static const char head[] = "vperf-vms 8\nvm 1 1 0 0 0 0 0 - a\n";
	struct vp_buffer text = {0};
	vp_vms read = {0};

	vp_buffer_string(&text, head);
	vp_buffer_string(&text, "agent-outcome 3 0 733 0 0 0 0 0 0\n"
				"agent-outcome 0 4 733 0 0 0 0 0 0\n"
				"agent-outcome 0 3 0 0 0 0 0 0 0\n");
	for (int i = 0; i < 100; i++)
		vp_buffer_string(&text, "agent-outcome 0 2 733 0 0 0 0 0 0 x\n");
	assert_true(!mkdir(NAME, 0755) || errno == EEXIST);
	expect_no_error(vp_file_publish(NAME "/vms", text.bytes, text.size));
	expect_no_error(vp_vms_read(NAME, &read));
	assert_int_equal(read.at[0].agent_outcomes.count, 16);
	assert_true(!strncmp(read.at[0].agent, "not asked: not selected by --vm; x; x", 36));
	vp_buffer_deinit(&text);
	vp_vms_deinit(&read);
}

static void expect_read(const struct vp_recording *info, const char *note, const char *cause,
			const char *sampling)
{
	struct vp_recording read = {0};
	vp_sentences notes = {0};
	vp_vms seen = {0};
	struct made made;

	made_begin(&made, NAME, 2);
	struct vp_recording before = made.about;
	made.about = *info;
	made.about.period_ns = 1;
	made_end(&made, 1);
	vp_recording_deinit(&before);
	expect_no_error(vp_recording_open(NAME, &read, &seen, &notes));
	assert_string_equal(read.note, note);
	assert_string_equal(read.cause, cause);
	assert_int_equal(strncmp(read.guest_sampling, sampling, strlen(sampling)), 0);
	assert_int_equal(!read.guest_sampling[0], !sampling[0]);
	vp_recording_deinit(&read);
	vp_vms_deinit(&seen);
	vp_vec_deinit(&notes);
}

#define SELECTED                                                                                   \
	"only the processes, threads or pCPUs of -p, -t or -C were sampled: shares are relative "  \
	"to these"

/* Recordings before 0.3 have sentences: they stay as they are. */
static void test_recordings(void **state)
{
	expect_read(&(struct vp_recording){.note = vp_strdup("older"),
					   .mode = vp_strdup("flight"),
					   .cause = vp_strdup("asked for"),
					   .guest_sampling = vp_strdup("90 by contexts, one each")},
		    "older", "asked for", "90 by contexts, one each");
	expect_read(&(struct vp_recording){.mode = vp_strdup("flight"),
					   .selected = true,
					   .snapshot_cause.kind = VP_CAUSE_MANUAL,
					   .guests.method = VP_GUEST_SAMPLING_CONTEXTS,
					   .guests.contexts = 8},
		    SELECTED, "manual snapshot", "8 by the vCPU's context from Xen,");
	expect_read(
	    &(struct vp_recording){
		.trigger = vp_strdup("cycles"), .events_counted = 1000, .events_sampled = 250},
	    "samples stand for 25.0% of 1000 'cycles' events: the kernel throttled "
	    "sampling, or samples were lost; a longer period or a lower frequency avoids that",
	    "", "");
	/* A name from the recording does nothing to a terminal. */
	expect_read(&(struct vp_recording){.mode = vp_strdup("flight"),
					   .snapshot_cause = {.kind = VP_CAUSE_TRIGGER,
							      .vcpu = 1,
							      .thief_tid = 5,
							      .thief_comm = "\033[2J"}},
		    "",
		    "steal>0s: vCPU 1 of VM '?' (thread 0) was runnable for 0 without a pCPU; of "
		    "this, '?[2J' (thread 5) had pCPU 0 for 0",
		    "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_causes),         cmocka_unit_test(test_causes_of_domains),
	    cmocka_unit_test(test_guest_sampling), cmocka_unit_test(test_agent_outcomes),
	    cmocka_unit_test(test_agent_lines),    cmocka_unit_test(test_strange_agent_lines),
	    cmocka_unit_test(test_recordings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
