/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any tracepoints, by perf's buffers: every event that a filter lets by is a record, or is counted.
 */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "collect/tracefs/dynamic_events.h"
#include "collect/tracefs/probe_kernel.h"
#include "collect/tracefs/tracepoints.h"
#include "host/perf_event.h"
#include "kernel.h"

enum { CALLS = 2000, MANY = 50000, PAGE = 4096 };

struct seen {
	const struct vp_event_class *event;
	uint64_t events, others, last;
	char comm[VP_COMM_SIZE];
};

static void take_record(struct seen *seen, const struct vp_record_header *header)
{
	const struct vp_task *task = (const void *)header;

	if (header->id == VP_ID_task) {
		if (task->tid == vp_own_tid())
			memcpy(seen->comm, task->comm, sizeof(seen->comm));
		return;
	}
	assert_int_equal(header->id, seen->event->id);
	struct vp_cursor fields = vp_event_fields((const void *)header);
	struct vp_event_value pid, number, arguments;
	assert_true(vp_event_next_value(&fields, &seen->event->fields.at[0], &pid));
	assert_true(vp_event_next_value(&fields, &seen->event->fields.at[1], &number));
	assert_true(vp_event_next_value(&fields, &seen->event->fields.at[2], &arguments));
	seen->others += pid.number != vp_own_tid() || number.number != SYS_getppid ||
			arguments.bytes.size != 6 * sizeof(uint64_t) || header->time < seen->last;
	seen->last = header->time;
	seen->events++;
}

static void take_records(void *context, uint32_t pcpu, const struct vp_tracepoints_batch *batch)
{
	uint64_t n = 0, n_events = 0;

	vp_each_record(batch->bytes, batch->size, header)
	{
		assert_in_range(header->time, batch->first, batch->last);
		n++;
		n_events += header->id >= VP_ID_DEFINED;
		take_record(context, header);
	}
	assert_true(n == batch->n && n_events == batch->n_events);
}

/* Of this thread's calls of getppid(2). */
struct tracing {
	struct vp_tracepoints *tracepoints;
	vp_event_classes classes;
	uint32_t pcpu;
};

static void begin_tracing(struct tracing *tracing, struct vp_tracepoints_options options)
{
	char filter[64];
	const struct vp_tracepoint_spec wish = {"raw_syscalls:sys_ent*", filter};

	options.specs = &wish;
	options.n_specs = 1;
	*tracing = (struct tracing){.pcpu = vp_stay_here()};
	snprintf(filter, sizeof(filter), "id == %d && common_pid == %u", SYS_getppid, vp_own_tid());
	expect_no_error(vp_tracepoints_open(&options, &tracing->tracepoints));
	assert_null(vp_tracepoints_by_perf(tracing->tracepoints));
	expect_no_error(vp_tracepoints_define(tracing->tracepoints, &tracing->classes));
	if (options.take == take_records) {
		struct seen *seen = options.context;
		seen->event = &tracing->classes.at[0];
	}
	expect_no_error(vp_tracepoints_begin(tracing->tracepoints));
}

static void finish_tracing(struct tracing *tracing)
{
	vp_tracepoints_free(tracing->tracepoints);
	vp_event_classes_deinit(&tracing->classes);
}

static void make_calls(int calls)
{
	for (int i = 0; i < calls; i++)
		syscall(SYS_getppid);
}

/* Counts threads that get a name on this pCPU. */
static int open_renames(uint32_t pcpu)
{
	struct vp_buffer id = {0};
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr)};

	expect_no_error(vp_file_read("/sys/kernel/tracing/events/task/task_rename/id", 32, &id));
	attr.config = strtoull(vp_buffer_text(&id), NULL, 10);
	vp_buffer_deinit(&id);
	int counter = vp_perf_event_open(&attr, -1, (int)pcpu, -1);
	assert_true(counter >= 0);
	return counter;
}

static uint64_t close_renames(int counter)
{
	uint64_t count;

	assert_int_equal(read(counter, &count, sizeof(count)), sizeof(count));
	close(counter);
	return count;
}

/* Returns what was lost, and the number of threads that got a name meanwhile. */
static struct vp_tracepoints_loss trace_calls(size_t ring, int calls, bool by_perf,
					      struct seen *seen, uint64_t *renames)
{
	struct tracing tracing;
	int counter = open_renames(vp_stay_here());

	begin_tracing(&tracing, (struct vp_tracepoints_options){.ring_bytes = ring,
								.by_perf = by_perf,
								.take = take_records,
								.context = seen});
	make_calls(calls);
	expect_no_error(vp_tracepoints_end(tracing.tracepoints));
	expect_no_error(vp_tracepoints_drain(tracing.tracepoints));
	struct vp_tracepoints_loss loss = vp_tracepoints_lost(tracing.tracepoints, tracing.pcpu);
	*renames = close_renames(counter);
	finish_tracing(&tracing);
	return loss;
}

static void test_every_event(void **by_perf)
{
	struct seen seen = {0};
	uint64_t renames;
	struct vp_tracepoints_loss loss =
	    trace_calls(1 << 20, CALLS, *by_perf != NULL, &seen, &renames);

	assert_int_equal(seen.events, CALLS);
	assert_int_equal(seen.others, 0);
	assert_int_equal(loss.all, CALLS);
	assert_int_equal(loss.events, 0);
	assert_string_equal(seen.comm, "tracepoints");
}

static void test_full_buffer_is_counted(void **by_perf)
{
	struct seen seen = {0};
	uint64_t renames;
	struct vp_tracepoints_loss loss =
	    trace_calls(PAGE, MANY, *by_perf != NULL, &seen, &renames);

	assert_int_equal(seen.others, 0);
	assert_true(seen.events > 0 && seen.events < MANY);
	assert_in_range(loss.all, MANY, MANY + renames);
	assert_int_equal(loss.events, loss.all - seen.events);
	if (*by_perf)
		assert_int_equal(loss.all, MANY);
}

static void take_and_make_more(void *context, uint32_t pcpu,
			       const struct vp_tracepoints_batch *batch)
{
	uint64_t *bytes = context;

	*bytes += batch->size;
	make_calls(MANY);
}

/* Whoever drains has an end, even if it makes more events than it takes. */
static void test_endless(void **by_perf)
{
	enum { MAX_S = 30, RING = 1 << 20 };
	uint64_t bytes = 0;
	struct tracing tracing;

	begin_tracing(&tracing, (struct vp_tracepoints_options){.ring_bytes = RING,
								.by_perf = *by_perf != NULL,
								.take = take_and_make_more,
								.context = &bytes});
	make_calls(MANY);
	alarm(MAX_S);
	expect_no_error(vp_tracepoints_drain(tracing.tracepoints));
	alarm(0);
	assert_true(bytes >= RING / 2);
	expect_no_error(vp_tracepoints_end(tracing.tracepoints));
	finish_tracing(&tracing);
}

static void expect_refused(const char *name, const char *filter, const char *said)
{
	const struct vp_tracepoint_spec wish = {name, filter};
	const struct vp_tracepoints_options options = {
	    .specs = &wish, .n_specs = 1, .ring_bytes = PAGE, .take = take_records};
	struct vp_tracepoints *tracepoints;

	expect_error(vp_tracepoints_open(&options, &tracepoints), said);
}

static void test_refused(void **state)
{
	expect_refused("raw_syscalls:sys_entre", NULL, "did you mean raw_syscalls:sys_enter");
	expect_refused("nonsense:*", NULL, "no tracepoint matches 'nonsense:*'");
	expect_refused("raw_syscalls:sys_enter", "nonsense == 1",
		       "the kernel rejects 'nonsense == 1'");
}

/* Of what is optional, what there is. */
static void test_optional(void **state)
{
	const struct vp_tracepoint_spec specs[] = {
	    {.name = "raw_syscalls:sys_enter"},
	    {.name = "nonsense:nothing", .optional = true},
	    {.name = "nonsense:*", .optional = true},
	};
	struct vp_tracepoints_options options = {
	    .specs = specs, .n_specs = 3, .ring_bytes = PAGE, .take = take_records};
	struct vp_tracepoints *tracepoints;

	expect_no_error(vp_tracepoints_open(&options, &tracepoints));
	assert_string_equal(vp_tracepoints_missing(tracepoints),
			    "this kernel does not have nonsense:nothing, nonsense:*");
	vp_tracepoints_free(tracepoints);
	options.specs = specs + 1;
	options.n_specs = 2;
	expect_error(vp_tracepoints_open(&options, &tracepoints), "this kernel does not have");
}

/* A thread that takes another name has that from then on. */
static void test_renamed(void **state)
{
	struct seen seen = {0};
	struct tracing tracing;

	begin_tracing(&tracing, (struct vp_tracepoints_options){
				    .ring_bytes = 1 << 20, .take = take_records, .context = &seen});
	make_calls(1);
	expect_no_error(vp_tracepoints_drain(tracing.tracepoints));
	assert_string_equal(seen.comm, "tracepoints");
	pthread_setname_np(pthread_self(), "another");
	make_calls(1);
	pthread_setname_np(pthread_self(), "tracepoints");
	expect_no_error(vp_tracepoints_drain(tracing.tracepoints));
	assert_string_equal(seen.comm, "another");
	assert_int_equal(seen.events, 2);
	expect_no_error(vp_tracepoints_end(tracing.tracepoints));
	finish_tracing(&tracing);
}

/* Of a recorder that is killed the kernel goes on with nothing. */
static void test_killed(void **state)
{
	const struct vp_tracepoint_spec wish = {"raw_syscalls:sys_enter", NULL};
	const struct vp_tracepoints_options options = {
	    .specs = &wish, .n_specs = 1, .ring_bytes = 1 << 20, .take = take_records};
	struct vp_tracepoints *tracepoints;
	pid_t process = fork();

	if (!process) {
		struct vp_error *error = vp_tracepoints_open(&options, &tracepoints);
		kill(getpid(), error || vp_tracepoints_begin(tracepoints) ? SIGTERM : SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	VP_AUTO_FREE char *path = vp_format("/sys/kernel/tracing/instances/vperf-%d", (int)process);
	for (int tries = 0; !access(path, F_OK) && tries < 1000; tries++)
		vp_sleep(10000000);
	assert_int_equal(access(path, F_OK), -1);
}

/* Not static: its symbol is what the probe is found by. */
void probed_function(int number, const char *text);

__attribute__((noinline, noclone)) void probed_function(int number, const char *text)
{
	__asm__ volatile("" : : "r"(number), "r"(text) : "memory");
}

struct probed {
	const struct vp_event_class *event;
	uint64_t calls, sum, others;
};

static void take_probe(struct probed *probed, const struct vp_record_header *header)
{
	struct vp_event_value value;

	if (header->id == VP_ID_task)
		return;
	struct vp_cursor fields = vp_event_fields((const void *)header);
	vp_vec_each (&probed->event->fields, field) {
		assert_true(vp_event_next_value(&fields, field, &value));
		if (!strcmp(field->name, "number"))
			probed->sum += value.number;
		if (!strcmp(field->name, "text"))
			probed->others += !vp_slice_is(value.bytes, "of this test");
	}
	probed->calls++;
}

static void take_probes(void *context, uint32_t pcpu, const struct vp_tracepoints_batch *batch)
{
	vp_each_record(batch->bytes, batch->size, header) take_probe(context, header);
}

/* Calls of a function of this program, with their arguments; nothing of it is left. */
static void test_user_probe(void **state)
{
	const struct vp_tracepoint_spec wish = {
	    "uprobe:/proc/self/exe:probed_function number=$arg1:s32 text=+0($arg2):string",
	    "number != 7"};
	struct probed probed = {0};
	const struct vp_tracepoints_options options = {.specs = &wish,
						       .n_specs = 1,
						       .ring_bytes = 1 << 20,
						       .take = take_probes,
						       .context = &probed};
	struct vp_tracepoints *tracepoints;
	vp_event_classes classes = {0};
	struct vp_buffer left = {0};
	VP_AUTO_FREE char *group = vp_format("vperf_%d/", (int)getpid());

	expect_no_error(vp_tracepoints_open(&options, &tracepoints));
	expect_no_error(vp_tracepoints_define(tracepoints, &classes));
	probed.event = &classes.at[0];
	expect_no_error(vp_tracepoints_begin(tracepoints));
	for (int i = 0; i < CALLS; i++)
		probed_function(i, "of this test");
	expect_no_error(vp_tracepoints_end(tracepoints));
	expect_no_error(vp_tracepoints_drain(tracepoints));
	vp_tracepoints_free(tracepoints);
	assert_int_equal(probed.calls, CALLS - 1);
	assert_int_equal(probed.sum, CALLS * (CALLS - 1) / 2 - 7);
	assert_int_equal(probed.others, 0);
	vp_event_classes_deinit(&classes);
	expect_no_error(vp_file_read("/sys/kernel/tracing/uprobe_events", 1 << 20, &left));
	assert_null(strstr(vp_buffer_text(&left), group));
	vp_buffer_deinit(&left);
}

/* Of a process that is killed while it has a probe, the next one removes it. */
static void test_leftover(void **state)
{
	pid_t process = fork();
	char *name = NULL, *shown = NULL;
	struct vp_buffer left = {0};

	if (!process) {
		struct vp_error *error = vp_dynamic_events_add(
		    vp_dynamic_events_new("/sys/kernel/tracing", "/proc/kallsyms"),
		    "uprobe:/proc/self/exe:probed_function", &name, &shown);
		kill(getpid(), error ? SIGTERM : SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(process, &status, 0), process);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	VP_AUTO_FREE char *group = vp_format("vperf_%d/", (int)process);
	expect_no_error(vp_file_read("/sys/kernel/tracing/uprobe_events", 1 << 20, &left));
	assert_non_null(strstr(vp_buffer_text(&left), group));
	struct vp_dynamic_events *next =
	    vp_dynamic_events_new("/sys/kernel/tracing", "/proc/kallsyms");
	assert_true(vp_dynamic_events_leftover(next) >= 1);
	vp_dynamic_events_free(next);
	left.size = 0;
	expect_no_error(vp_file_read("/sys/kernel/tracing/uprobe_events", 1 << 20, &left));
	assert_null(strstr(vp_buffer_text(&left), group));
	vp_buffer_deinit(&left);
}

static void expect_argument(const struct vp_probe_function *function,
			    const struct vp_probe_definition *probe, size_t number,
			    const char *text)
{
	struct vp_buffer out = {0};

	expect_no_error(
	    vp_probe_function_argument(function, probe, &probe->arguments.at[number], &out));
	assert_string_equal(vp_buffer_text(&out), text);
	vp_buffer_deinit(&out);
}

/* Parameters by name, by the running kernel's BTF. */
static void test_parameters_of_kernel(void **state)
{
	struct vp_probe_definition probe;
	struct vp_probe_function function;
	struct vp_buffer out = {0};

	if (access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	/* struct sock_common: two addresses, a hash, a port, and then skc_num. */
	expect_no_error(vp_probe_definition_parse(
	    "kprobe:tcp_sendmsg size sk sk->__sk_common.skc_num what=$arg3:u8 sk->skc_num sz",
	    &probe));
	expect_no_error(vp_probe_function_find(&probe, "/proc/kallsyms", &function));
	expect_argument(&function, &probe, 0, "$arg3:u64");
	expect_argument(&function, &probe, 1, "$arg1:x64");
	expect_argument(&function, &probe, 2, "+14($arg1):u16");
	expect_argument(&function, &probe, 3, "$arg3:u8");
	expect_error(vp_probe_function_argument(&function, &probe, &probe.arguments.at[4], &out),
		     "struct sock has no member 'skc_num'");
	expect_error(vp_probe_function_argument(&function, &probe, &probe.arguments.at[5], &out),
		     "'tcp_sendmsg' has no parameter 'sz' in a register");
	vp_probe_function_deinit(&function);
	vp_probe_definition_deinit(&probe);
	expect_no_error(vp_probe_definition_parse("kretprobe:tcp_sendmsg $retval sk", &probe));
	expect_no_error(vp_probe_function_find(&probe, "/proc/kallsyms", &function));
	expect_argument(&function, &probe, 0, "$retval:s32");
	expect_error(vp_probe_function_argument(&function, &probe, &probe.arguments.at[1], &out),
		     "parameters are only known at the start of a function");
	vp_probe_function_deinit(&function);
	vp_probe_definition_deinit(&probe);
	vp_buffer_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_event),
	    cmocka_unit_test(test_full_buffer_is_counted),
	    cmocka_unit_test_prestate(test_every_event, "by perf"),
	    cmocka_unit_test_prestate(test_full_buffer_is_counted, "by perf"),
	    cmocka_unit_test(test_endless),
	    cmocka_unit_test_prestate(test_endless, "by perf"),
	    cmocka_unit_test(test_renamed),
	    cmocka_unit_test(test_killed),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_optional),
	    cmocka_unit_test(test_user_probe),
	    cmocka_unit_test(test_leftover),
	    cmocka_unit_test(test_parameters_of_kernel),
	};

	if (geteuid() != 0 || access("/sys/kernel/tracing/events/raw_syscalls", R_OK)) {
		puts("tracepoints: skipped: tracefs cannot be read (root, and mount -t tracefs)");
		return VP_SKIPPED;
	}
	pthread_setname_np(pthread_self(), "tracepoints");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
