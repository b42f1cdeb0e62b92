/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Agents that count for intervals, of guests that reboot. What the intervals know is the test's. */
#include "unit.h"

#include <stdio.h>

#include "base/clock.h"
#include "collect/programs/intervals_source.h"
#include "session/guest_agents.h"
#include "socket_vmm.h"

#define VSOCK "test_guest_agents.vsock"

uint64_t __real_vp_clock_monotonic(void);
uint64_t __wrap_vp_clock_monotonic(void);
uint32_t __wrap_vp_intervals_unknown(const struct vp_intervals *intervals, uint32_t pid);
void __wrap_vp_intervals_forget_agent(struct vp_intervals *intervals, uint32_t pid);
struct vp_error *__wrap_vp_intervals_take_agent(struct vp_intervals *intervals,
						const struct vp_guest_state *state,
						const struct vp_agent_memory *agent);
struct vp_error *__wrap_vp_guest_lister_new(struct vp_guest_lister **ret);
void __wrap_vp_guest_lister_free(struct vp_guest_lister *lister);
struct vp_error *__wrap_vp_guest_lister_read_one(struct vp_guest_lister *lister, uint32_t pid,
						 vp_guest_states *states);

static uint64_t shift;
static int reboots[2]; /* a pipe: a byte for each reboot */
static unsigned taken; /* answers of agents that count now */
static bool known;

uint64_t __wrap_vp_clock_monotonic(void)
{
	return __real_vp_clock_monotonic() + shift;
}

uint32_t __wrap_vp_intervals_unknown(const struct vp_intervals *intervals, uint32_t pid)
{
	return known ? 0 : 1;
}

void __wrap_vp_intervals_forget_agent(struct vp_intervals *intervals, uint32_t pid)
{
	assert_true(known);
	known = false;
}

struct vp_error *__wrap_vp_intervals_take_agent(struct vp_intervals *intervals,
						const struct vp_guest_state *state,
						const struct vp_agent_memory *agent)
{
	assert_int_equal(agent->counts.count, 1);
	taken++;
	known = true;
	return NULL;
}

struct vp_error *__wrap_vp_guest_lister_new(struct vp_guest_lister **ret)
{
	*ret = vp_alloc(1);
	return NULL;
}

void __wrap_vp_guest_lister_free(struct vp_guest_lister *lister)
{
	free(lister);
}

struct vp_error *__wrap_vp_guest_lister_read_one(struct vp_guest_lister *lister, uint32_t pid,
						 vp_guest_states *states)
{
	(void)vp_vec_push_slot(states);
	states->at[0] = (struct vp_guest_state){.pid = pid};
	return NULL;
}

/* The second time, the agent is not ready yet. */
static void answer(int fd, int number)
{
	char text[128] = "error not yet\n", byte;
	bool counts = number != 1;

	if (counts)
		snprintf(text, sizeof(text),
			 "vperf-counts 1\nmarker 1000\ncount 0 %s 2000\nend 3\n",
			 vp_counts_event_name(0));
	if (vp_fd_write_all(fd, text, strlen(text)) || (counts && read(reboots[0], &byte, 1) != 1))
		_exit(1);
}

static size_t count_words(const char *path)
{
	struct vp_buffer text = {0};
	size_t count = 0;

	expect_no_error(vp_file_read(path, 4096, &text));
	struct vp_cursor words = vp_cursor_of(text.bytes, text.size);
	for (; vp_cursor_left(&words); count++)
		vp_cursor_word(&words);
	vp_buffer_deinit(&text);
	return count;
}

/* The VMM, and who talks to its agent. */
static size_t count_children(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	return count_words(path);
}

/* Takes what its agent says until it is gone. */
static void hear_out(struct vp_guest_agents *agents, const struct vp_vm *vm)
{
	vp_guest_agents_settle(agents, 10000);
	if (known)
		assert_int_equal(write(reboots[1], "", 1), 1);
	while (known)
		vp_guest_agents_step(agents);
	/* Not at once, nor until three seconds have passed. */
	vp_guest_agents_again(agents, vm);
	vp_guest_agents_settle(agents, 0);
	assert_int_equal(count_children(), 1);
	shift += 2000000000;
	vp_guest_agents_again(agents, vm);
	assert_int_equal(count_children(), 1);
}

static void test_reboots(void **state)
{
	vp_notices notices = {0};
	struct vp_vm vm = {
	    .pid = (uint32_t)start_socket_vmm(VSOCK, 4, answer), .name = "g", .vsock = VSOCK};
	struct vp_guest_agents *agents = vp_guest_agents_new(NULL, 0, &notices);
	static const unsigned expected[] = {1, 1, 2, 3};

	vp_guest_agents_ask(agents, &vm);
	for (size_t i = 0; i < VP_ARRAY_SIZE(expected); i++) {
		hear_out(agents, &vm);
		assert_int_equal(taken, expected[i]);
		shift += 60000000000;
		vp_guest_agents_again(agents, &vm);
	}
	assert_int_equal(waitpid((pid_t)vm.pid, NULL, 0), vm.pid);
	struct vp_agent_outcome end;
	assert_true(vp_guest_agents_outcome(agents, &vm, &end));
	VP_AUTO_FREE char *outcome = vp_agent_outcome_text(&end);
	vp_agent_outcome_deinit(&end);
	assert_non_null(strstr(outcome, "ok: it counted guest:"));
	assert_non_null(strstr(outcome, "; not for "));
	/* It is waited for while the VM runs, and no longer. */
	vp_guest_agents_settle(agents, 100);
	assert_int_equal(count_children(), 1);
	vm.end = 1;
	vp_guest_agents_again(agents, &vm);
	assert_int_equal(count_children(), 0);
	vp_guest_agents_forget(agents, vp_vm_id(&vm));
	assert_false(vp_guest_agents_asked(agents, &vm));
	vp_guest_agents_free(agents);
	vp_notices_deinit(&notices);
}

int main(void)
{
	if (pipe(reboots))
		return 1;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reboots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
