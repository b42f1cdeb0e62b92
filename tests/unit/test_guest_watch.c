/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Guests that are watched while they are recorded: found, rebooted, ended, or never found. */
#include "unit.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "built_java.h"
#include "collect/guests/guest_retry.h"
#include "collect/guests/guest_watch.h"
#include "collect/guests/kernel_addresses.h"
#include "guest_builder.h"

uint64_t __real_vp_clock_monotonic(void);
uint64_t __wrap_vp_clock_monotonic(void);

/* The time that the watch sees is this later than the clock's. */
/* The outcome as text; "": the watch does not know the VM. */
static char *state_of(const struct vp_guest_watch *watch, const struct vp_vm *vm)
{
	struct vp_memory_outcome outcome;

	if (!vp_guest_watch_outcome(watch, vm, &outcome))
		return vp_strdup("");
	char *text = vp_memory_outcome_text(&outcome);
	free(outcome.problem);
	return text;
}

static uint64_t shift;

uint64_t __wrap_vp_clock_monotonic(void)
{
	return __real_vp_clock_monotonic() + shift;
}

static void forget(void *context, uint32_t pid)
{
	unsigned *forgotten = context;

	assert_true(pid);
	++*forgotten;
}

static struct vp_guest_watch *new_watch(vp_notices *notices, unsigned *forgotten)
{
	const struct vp_guest_watch_client user = {
	    .context = forgotten, .name = "samples", .check_s = 1, .forget = forget};
	struct vp_guest_watch *watch =
	    vp_guest_watch_new(vp_guest_access_kvm(), notices, "test_guest_watch.dir", false);

	vp_guest_watch_join(watch, &user);
	return watch;
}

/* A recorder next to another one does not repeat it. */
static void test_not_found_is_not_repeated(void **state)
{
	struct vp_vm vm = {.pid = (uint32_t)getpid(), .name = "g1", .at_start = true};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = new_watch(&notices, &forgotten);

	vp_guest_watch_be_quiet(watch);
	vp_guest_watch_add(watch, &vm);
	vp_guest_watch_settle(watch, 0);
	vp_guest_watch_step(watch);
	assert_int_equal(forgotten, 1);
	assert_int_equal(notices.count, 0);
	vp_guest_watch_free(watch);
}

/* This process is no VM: the kernel of its guest cannot be found. */
static void test_not_found_is_told_at_once(void **state)
{
	struct vp_vm vm = {.pid = (uint32_t)getpid(), .name = "g1", .at_start = true};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = new_watch(&notices, &forgotten);

	vp_guest_watch_add(watch, &vm);
	vp_guest_watch_settle(watch, 0);
	vp_guest_watch_step(watch);
	assert_int_equal(notices.count, 1);
	assert_non_null(strstr(notices.at[0], "VM 'g1': the kernel has not been found"));
	assert_int_equal(forgotten, 1);
	assert_false(vp_guest_watch_has_found(watch, &vm));
	VP_AUTO_FREE char *outcome = state_of(watch, &vm);
	assert_non_null(strstr(notices.at[0], outcome)); /* the same reason as at the end */
	free(notices.at[0]);
	vp_vec_deinit(&notices);
	vp_guest_watch_free(watch);
}

/* A VM that was just started has no kernel yet, and one that has ended never will. */
static void test_what_is_not_told(void **state)
{
	struct vp_vm fresh = {.pid = (uint32_t)getpid(), .name = "fresh"};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = new_watch(&notices, &forgotten);
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	struct vp_vm ended = {.pid = (uint32_t)child, .name = "ended", .at_start = true};
	vp_guest_watch_add(watch, &fresh);
	vp_guest_watch_add(watch, &ended);
	assert_int_equal(forgotten, 2);
	assert_int_equal(notices.count, 0);
	vp_guest_watch_free(watch);
}

/* Where kernels were is kept for each VM, whatever it is called and whatever is in the file. */
static void test_places_are_remembered(void **state)
{
	static const char folder[] = "test_guest_watch.places", junk[] = "zz a\n12\n\n77 other\n";
	VP_AUTO_FREE char *path = vp_format("%s/places", folder);

	unlink(path);
	assert_int_equal(vp_kernel_address_recall(folder, "g1"), 0);
	expect_no_error(vp_kernel_address_store(folder, "g 1", 0x2000200));
	expect_no_error(vp_kernel_address_store(folder, "g1", 0x4000200));
	expect_no_error(vp_kernel_address_store(folder, "g 1", 0x6000200));
	assert_int_equal(vp_kernel_address_recall(folder, "g 1"), 0x6000200);
	assert_int_equal(vp_kernel_address_recall(folder, "g1"), 0x4000200);
	assert_int_equal(vp_kernel_address_recall(folder, "g"), 0);
	expect_no_error(vp_file_publish(path, junk, sizeof(junk) - 1));
	expect_no_error(vp_kernel_address_store(folder, "g1", 1));
	assert_int_equal(vp_kernel_address_recall(folder, "g1"), 1);
	assert_int_equal(vp_kernel_address_recall(folder, "other"), 0x77);
	/* There is an end to it: what was found long ago goes first. */
	char name[8192] = {0};
	for (unsigned i = 0; i < 10; i++) {
		memset(name, 'a' + (int)i, sizeof(name) - 1);
		expect_no_error(vp_kernel_address_store(folder, name, i + 1));
	}
	assert_int_equal(vp_kernel_address_recall(folder, name), 10);
	assert_int_equal(vp_kernel_address_recall(folder, "other"), 0);
}

/* The memory of a guest whose VMM is a process of this test's. */
static struct guest_builder *guest;

static struct vp_error *open_guest(void **lister)
{
	*lister = &guest;
	return NULL;
}

static void close_guest(void *lister)
{
}

static const char *protection; /* of the guest's memory; NULL: none */
static unsigned listed;

static struct vp_error *list_guest(void *lister, uint32_t pid, struct vp_guest_state *ret)
{
	const struct vp_guest_registers registers = {.cr3 = BUILT_CR3,
						     .lstar = BUILT_TEXT + AT_ENTRY};

	if (kill((pid_t)pid, 0))
		return vp_error_new("process %u ended", pid);
	listed++;
	*ret = (struct vp_guest_state){.pid = pid, .started = 1, .protected_by = protection};
	if (protection)
		return NULL;
	vp_guest_memory_add(&ret->memory, BUILT_IMAGE_GPA, BUILT_IMAGE, (uintptr_t)guest->image);
	vp_guest_memory_add(&ret->memory, 0, BUILT_LOW, (uintptr_t)guest->low);
	vp_vec_push(&ret->vcpus, registers);
	return NULL;
}

static struct vp_error *expect_same(const struct vp_guest_state *state)
{
	return NULL;
}

static struct vp_error *identify(void *context, uint32_t number, const struct vp_guest_state *state,
				 const struct vp_guest_finding *finding)
{
	return NULL;
}

static void outcome(void *context, uint32_t pid, const struct vp_guest_finding *finding,
		    struct vp_memory_outcome *ret)
{
	vp_memory_outcome_count(ret, VP_MEMORY_SAMPLES, 7, 0);
}

/* A process with the guest's memory. */
static pid_t start_vmm(void)
{
	int ready[2];
	char byte;

	assert_false(pipe(ready));
	pid_t pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < sizeof(*guest); i += 4096)
			*(volatile char *)((char *)guest + i);
		_exit(write(ready[1], "", 1) != 1 || pause());
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_vmm(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* What the watch needs, for all tests with that guest. */
static struct vp_guest_access access_built;

enum { EACH_S = 1, NEVER_S = 86400 };

/* Guests are checked that often. */
static struct vp_guest_watch *watch_checking(vp_notices *notices, unsigned *forgotten,
					     unsigned check_s)
{
	const struct vp_guest_watch_client user = {.context = forgotten,
						   .name = "samples",
						   .check_s = check_s,
						   .identify = identify,
						   .forget = forget,
						   .outcome = outcome};

	access_built = *vp_guest_access_kvm();
	access_built.open = open_guest;
	access_built.close = close_guest;
	access_built.list = list_guest;
	access_built.expect_same = expect_same;
	guest =
	    mmap(NULL, sizeof(*guest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(guest != MAP_FAILED);
	built_kernel(guest, BUILT_OLD);
	struct vp_guest_watch *watch =
	    vp_guest_watch_new(&access_built, notices, "test_guest_watch.dir", true);
	vp_guest_watch_join(watch, &user);
	return watch;
}

static struct vp_guest_watch *watch_built(vp_notices *notices, unsigned *forgotten)
{
	return watch_checking(notices, forgotten, EACH_S);
}

static void free_built(struct vp_guest_watch *watch, vp_notices *notices)
{
	vp_guest_watch_free(watch);
	vp_notices_deinit(notices);
	munmap(guest, sizeof(*guest));
}

enum { MAX_STEPS = 20000 };

/* So much time in that of one millisecond. What readers have to do must not take them as long as
 * the watch waits for it, on a busy machine neither: that is 1.5 s with the usual step. */
static void step_by(struct vp_guest_watch *watch, uint64_t ms)
{
	shift += ms * 1000000;
	usleep(1000);
	vp_guest_watch_step(watch);
}

static void step(struct vp_guest_watch *watch)
{
	step_by(watch, 20);
}

static bool step_until(struct vp_guest_watch *watch, const struct vp_vm *vm, bool found)
{
	for (int i = 0; i < MAX_STEPS && vp_guest_watch_has_found(watch, vm) != found; i++)
		step(watch);
	return vp_guest_watch_has_found(watch, vm) == found;
}

/* A sample in the guest's kernel, of a vCPU whose current task is not known. */
static void note_sample(struct vp_guest_watch *watch, const struct vp_vm *vm, uint32_t vcpu,
			uint64_t ip)
{
	const struct vp_guest_sample sample = {
	    .vm = vp_vm_id(vm), .vcpu = vcpu, .ip = ip, .time = vp_clock_monotonic()};

	vp_guest_watch_note_kernel(watch, &sample);
}

/* Every reboot starts the count of tries anew, and a guest that is off for an hour is found. */
static void test_reboots(void **state)
{
	static char before[sizeof(*guest)];
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "g1", .at_start = true};

	memcpy(before, guest, sizeof(before));
	vp_guest_watch_add(watch, &vm);
	assert_true(step_until(watch, &vm, true));
	for (int i = 0; i < 9; i++) {
		memset(guest, 0, sizeof(*guest));
		assert_true(step_until(watch, &vm, false));
		/* 30 s, and an hour with tries once a minute. */
		for (int tries = 0; tries < (i == 8 ? 60 : 0); tries++) {
			shift += 60000000000;
			step(watch);
		}
		for (int steps = 0; steps < 300; steps++)
			step_by(watch, 100);
		memcpy(guest, before, sizeof(before));
		assert_true(step_until(watch, &vm, true));
	}
	end_vmm((pid_t)vm.pid);
	free_built(watch, &notices);
}

/* The time until a kernel that is back after an hour is found, ns. `address`: of samples meanwhile;
 * 0: none. */
static uint64_t time_to_find(uint64_t address)
{
	static char before[sizeof(*guest)];
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "g1", .at_start = true};

	memcpy(before, guest, sizeof(before));
	memset(guest, 0, sizeof(*guest));
	vp_guest_watch_add(watch, &vm);
	for (int minutes = 0; minutes < 60; minutes++) {
		for (int i = 0; address && i < 60; i++)
			note_sample(watch, &vm, 0, 0x1000);
		step_by(watch, 60000);
	}
	assert_false(vp_guest_watch_has_found(watch, &vm));
	memcpy(guest, before, sizeof(before));
	uint64_t back = vp_clock_monotonic();
	for (int i = 0; i < MAX_STEPS && !vp_guest_watch_has_found(watch, &vm); i++) {
		if (address)
			note_sample(watch, &vm, 0, address);
		step_by(watch, 50);
	}
	assert_true(vp_guest_watch_has_found(watch, &vm));
	uint64_t passed = vp_clock_monotonic() - back;
	end_vmm((pid_t)vm.pid);
	free_built(watch, &notices);
	return passed;
}

/* A guest that has no Linux for an hour is searched seldom, but at once when a sample is in Linux;
 * without samples, once a minute. */
static void test_linux_after_an_hour(void **state)
{
	const uint64_t second = 1000000000;

	assert_true(time_to_find(0xffffffff81000000) < 5 * second);
	assert_true(time_to_find(0) < 65 * second);
	assert_true(time_to_find(0x1000) > 65 * second);
}

static unsigned count_searches(struct vp_guest_retry *retry, bool sampled, uint64_t ip,
			       unsigned seconds)
{
	unsigned count = 0;

	for (uint64_t now = 1; now < seconds * 1000000000ULL; now += 1000000000) {
		if (ip)
			vp_guest_retry_note(retry, ip);
		if (!vp_guest_retry_is_due(retry, sampled, now))
			continue;
		vp_guest_retry_fail(retry, now);
		count++;
	}
	return count;
}

/* Searches of a day: at 3, 6, 9, 12, 15 s, then less and less often, whatever is sampled. */
static void test_searches_that_fail(void **state)
{
	const unsigned day = 86400;

	assert_int_equal(count_searches(&(struct vp_guest_retry){0}, true, 0, 16), 5);
	assert_in_range(count_searches(&(struct vp_guest_retry){0}, true, 0, day), day / 600,
			day / 600 + 8);
	assert_in_range(count_searches(&(struct vp_guest_retry){0}, false, 0, day), day / 60,
			day / 60 + 10);
	assert_in_range(count_searches(&(struct vp_guest_retry){0}, true, 0xffffffff80000000, day),
			day / 120, day / 120 + 25);
	/* A kernel that boots for a minute. */
	assert_int_equal(count_searches(&(struct vp_guest_retry){0}, true, 0xffffffff81000000, 60),
			 19);
#ifdef __x86_64__ /* no address of Linux, but of Windows */
	assert_in_range(count_searches(&(struct vp_guest_retry){0}, true, 0xfffff80000000000, day),
			day / 600, day / 600 + 8);
#endif
}

static unsigned count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static void put_away(struct vp_guest_watch *watch, const struct vp_vm *vm, const char *path)
{
	struct vp_buffer text = {0};
	bool done = false;

	for (int i = 0; i < MAX_STEPS && !done; i++) {
		step(watch);
		expect_no_error(vp_guest_watch_put_away(watch, vm, path, &done));
	}
	assert_true(done);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	assert_non_null(strstr(vp_buffer_text(&text), "vperf-maps "));
	assert_non_null(strstr(vp_buffer_text(&text), "\nend "));
	vp_buffer_deinit(&text);
}

/* The maps of VMs that ended are on disk, and nothing of them is left in memory. */
static void test_ended(void **state)
{
	static const char path[] = "test_guest_watch.maps";
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	unsigned before = count_descriptors();
	bool written;

	for (int i = 0; i < 3; i++) {
		struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "ci"};
		unlink(path);
		vp_guest_watch_add(watch, &vm);
		assert_true(step_until(watch, &vm, true));
		assert_true(count_descriptors() > before);
		end_vmm((pid_t)vm.pid);
		vm.end = 1;
		vp_guest_watch_end(watch, &vm);
		put_away(watch, &vm, path);
		assert_int_equal(count_descriptors(), before);
		/* It is not written again, and how it went is known. */
		unlink(path);
		vp_guest_watch_write(watch, false, 60000, NULL);
		expect_no_error(vp_guest_watch_dump(watch, &vm, path, &written));
		assert_true(written && access(path, F_OK));
		VP_AUTO_FREE char *ended = state_of(watch, &vm);
		assert_non_null(strstr(ended, "the VM ended"));
		vp_guest_watch_drop(watch, &vm);
		VP_AUTO_FREE char *none = state_of(watch, &vm);
		assert_string_equal(none, "");
	}
	free_built(watch, &notices);
}

/* The map of a VM whose process was seen with these names, one after the other. The VM ended before
 * its processes could be listed. */
static char *map_of_seen(const char *const *comms, size_t count)
{
	static const char path[] = "test_guest_watch.maps";
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	uint64_t mm = built_mm(guest), place = built_process(guest, 7, mm, "first");
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "seen"};
	struct vp_buffer text = {0};

	unlink(path);
	vp_guest_watch_add(watch, &vm);
	assert_true(step_until(watch, &vm, true));
	for (size_t i = 0; i < count; i++) {
		struct vp_guest_task task = {.time = 1000000000 + i,
					     .vm = vp_vm_id(&vm),
					     .task = place,
					     .guest_pid = 7,
					     .guest_tid = 7};
		strncpy(task.comm, comms[i], sizeof(task.comm) - 1);
		strncpy(built_at(guest, place + guest->pack.at.task_comm), comms[i], 15);
		vp_guest_watch_note_task(watch, &task);
		for (int n = 0; n < 200; n++)
			step(watch);
	}
	end_vmm((pid_t)vm.pid);
	vm.end = 1;
	vp_guest_watch_end(watch, &vm);
	put_away(watch, &vm, path);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	free_built(watch, &notices);
	return copy;
}

/* A process is read when it is first seen, and again when it has another name. */
static void test_processes_are_seen(void **state)
{
	static const char *const comms[] = {"first", "first", "second"};
	VP_AUTO_FREE char *none = map_of_seen(comms, 0);
	VP_AUTO_FREE char *one = map_of_seen(comms, 2);
	VP_AUTO_FREE char *both = map_of_seen(comms, 3);

	assert_null(strstr(none, " 7 "));
	assert_non_null(strstr(one, " first\n"));
	assert_non_null(strstr(both, " second\n"));
}

/* A library that a process maps after it was first seen. */
static void test_later_mappings(void **state)
{
	static const char path[] = "test_guest_watch.maps";
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	uint64_t mm = built_mm(guest), place = built_process(guest, 7, mm, "linked");
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "later"};
	struct vp_buffer text = {0};

	unlink(path);
	vp_guest_watch_add(watch, &vm);
	assert_true(step_until(watch, &vm, true));
	struct vp_guest_task task = {.time = 1000000000,
				     .vm = vp_vm_id(&vm),
				     .task = place,
				     .comm = "linked",
				     .guest_pid = 7,
				     .guest_tid = 7};
	vp_guest_watch_note_task(watch, &task);
	for (int i = 0; i < 10; i++)
		step_by(watch, 0);
	built_put64(guest, mm + guest->pack.at.mm_maple_root,
		    built_vma(guest, 0x700000, 0x702000, 0, 0));
	for (int i = 0; i < 200; i++)
		step(watch);
	end_vmm((pid_t)vm.pid);
	vm.end = 1;
	vp_guest_watch_end(watch, &vm);
	put_away(watch, &vm, path);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	assert_non_null(strstr(vp_buffer_text(&text), " 700000 702000 "));
	vp_buffer_deinit(&text);
	free_built(watch, &notices);
}

/* Interpreters that a user was asked to follow in the last call. */
struct followed {
	unsigned calls;
	size_t now;
	struct vp_guest_runtime first;
};

static struct followed followed;

static void follow(void *context, uint32_t pid, const vp_guest_runtime_list *now)
{
	followed.calls++;
	followed.now = now->count;
	if (now->count)
		followed.first = now->at[0];
}

static bool step_until_followed(struct vp_guest_watch *watch, size_t count)
{
	for (int i = 0; i < MAX_STEPS && followed.now != count; i++)
		step(watch);
	return followed.now == count;
}

/* A sample of the Java process. */
static void hit_java(struct vp_guest_watch *watch, const struct vp_vm *vm, uint64_t ip,
		     uint32_t flags, uint64_t time)
{
	const struct vp_guest_sample sample = {.time = time,
					       .vm = vp_vm_id(vm),
					       .ip = ip,
					       .flags = (uint16_t)flags,
					       .guest_pid = 7,
					       .guest_tid = 9};

	vp_guest_watch_hit(watch, &sample);
	for (int i = 0; i < 200; i++)
		step(watch);
}

/* Code of a Java process that takes the place of other code, and a method that is interpreted. */
static void test_java(void **state)
{
	static const char path[] = "test_guest_watch.maps";
	static struct built_java java;
	const struct vp_guest_watch_client user = {.name = "methods",
						   .check_s = 1,
						   .identify = identify,
						   .forget = forget,
						   .follow = follow,
						   .outcome = outcome};
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	struct vp_guest_watch_client follower = user;
	struct vp_buffer text = {0};

	(void)state;
	follower.context = &forgotten;
	vp_guest_watch_join(watch, &follower);
	built_java_process(guest, 7, "libjvm.so", &java);
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "java"};
	unlink(path);
	followed = (struct followed){0};
	vp_guest_watch_add(watch, &vm);
	assert_true(step_until(watch, &vm, true));
	uint64_t blob = java_blob(&java.memory, 2);
	hit_java(watch, &vm, blob, 0, 1); /* nothing is known of it yet */
	const struct vp_guest_task task = {.time = 1000000000,
					   .vm = vp_vm_id(&vm),
					   .task = java.place,
					   .comm = "java",
					   .guest_pid = 7,
					   .guest_tid = 7};
	vp_guest_watch_note_task(watch, &task);
	assert_false(vp_guest_watch_has_runtimes(watch));
	assert_true(step_until_followed(watch, 1));
	assert_true(vp_guest_watch_has_runtimes(watch));
	assert_int_equal(followed.first.tgid, 7);
	assert_int_equal(followed.first.interpreter_low, java_blob(&java.memory, 0));
	java_put(&java.memory, blob - JAVA_BASE + 0x20, java_method(1), 8);
	java_put(&java.memory, blob - JAVA_BASE + 0x28, 200, 4);
	built_java_update(guest, &java);
	hit_java(watch, &vm, blob + 9, 0, UINT64_MAX / 2);
	hit_java(watch, &vm, java_method(0), VP_AT_METHOD, 77);
	hit_java(watch, &vm, 0x400000, 0, 78); /* not generated code */
	end_vmm((pid_t)vm.pid);
	vm.end = 1;
	vp_guest_watch_end(watch, &vm);
	assert_int_equal(followed.now, 0);
	assert_false(vp_guest_watch_has_runtimes(watch));
	put_away(watch, &vm, path);
	expect_no_error(vp_file_read(path, 1 << 20, &text));
	const char *maps = vp_buffer_text(&text);
	assert_non_null(strstr(maps, " 7f0000005508 3e0 com.example.Work$$Lambda/0x12.spin "));
	assert_non_null(strstr(maps, " 7f0000005508 3e0 com.example.Work$$Lambda/0x12.<init> "
				     "9223372036854775807\n"));
	assert_non_null(strstr(maps, " 7f0000002000 10 com.example.Work$$Lambda/0x12.spin 77\n"));
	assert_null(strstr(maps, " 1\nj"));
	assert_null(strstr(maps, " 78\n"));
	vp_buffer_deinit(&text);
	free_built(watch, &notices);
}

/* The process that was started last. */
static pid_t last_child(void)
{
	VP_AUTO_FREE char *path = vp_format("/proc/self/task/%d/children", getpid());
	struct vp_buffer text = {0};

	expect_no_error(vp_file_read(path, 4096, &text));
	struct vp_cursor words = vp_cursor_of(text.bytes, text.size);
	uint64_t pid = 0;
	while (vp_cursor_left(&words))
		pid = vp_cursor_decimal(&words);
	vp_buffer_deinit(&text);
	return (pid_t)pid;
}

/* The readers are processes: they answer in their own time, on a busy machine late. */
static void pass_5_s(void *context)
{
	unsigned *calls = context;

	++*calls;
	shift += 5000000000;
	usleep(300000);
}

/* Guests whose readers do not respond any more when maps are written, but for the last one's: how
 * long that took in all, and why the others have none. */
static void expect_one_map(unsigned check_s, uint64_t least_ms, uint64_t most_ms, const char *why)
{
	enum { GUESTS = 4, MS = 60000 };
	static const char path[] = "test_guest_watch.maps";
	vp_notices notices = {0};
	unsigned forgotten = 0, calls = 0;
	const struct vp_meanwhile meanwhile = {pass_5_s, &calls};
	struct vp_guest_watch *watch = watch_checking(&notices, &forgotten, check_s);
	struct vp_vm vms[GUESTS];
	pid_t readers[GUESTS];
	bool written;

	for (int i = 0; i < GUESTS; i++) {
		vms[i] =
		    (struct vp_vm){.pid = (uint32_t)start_vmm(), .name = "g", .at_start = true};
		vp_guest_watch_add(watch, &vms[i]);
		readers[i] = last_child();
		assert_true(step_until(watch, &vms[i], true));
	}
	for (int i = 0; i + 1 < GUESTS; i++) /* they neither read nor write any more */
		kill(readers[i], SIGSTOP);
	if (check_s == EACH_S) { /* all checks but those under way are answered; the next is due */
		for (int i = 0; i < 100; i++)
			step_by(watch, 0);
		step_by(watch, 2000);
	}
	uint64_t begin = shift;
	vp_guest_watch_write(watch, false, MS, &meanwhile);
	assert_in_range(shift - begin, least_ms * 1000000, most_ms * 1000000);
	assert_int_equal(calls, (shift - begin) / 5000000000);
	for (int i = 0; i < GUESTS; i++) {
		expect_no_error(vp_guest_watch_dump(watch, &vms[i], path, &written));
		assert_int_equal(written, i + 1 == GUESTS);
		assert_int_equal(vp_guest_watch_has_found(watch, &vms[i]), i + 1 == GUESTS);
		VP_AUTO_FREE char *outcome = state_of(watch, &vms[i]);
		assert_true(written || strstr(outcome, why));
		end_vmm((pid_t)vms[i].pid);
	}
	free_built(watch, &notices);
}

/* Guests that do not answer are waited for at once, for one time, while records are taken. */
static void test_one_deadline_for_all(void **state)
{
	expect_one_map(NEVER_S, 60000, 65000, "took longer than 60 s");
}

/* Those that owe the answer to a check have the time of an answer, half of that. */
static void test_check_under_way(void **state)
{
	expect_one_map(EACH_S, 25000, 35000, "timed out");
}

/* A VM whose process's number is the next VM's: its map is kept, and the next VM's names, too. */
static void test_number_used_again(void **state)
{
	static const char path[] = "test_guest_watch.maps";
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	struct vp_vm first = {.pid = (uint32_t)start_vmm(), .name = "first"}, second = first;

	vp_guest_watch_add(watch, &first);
	assert_true(step_until(watch, &first, true));
	first.end = 1;
	second.nth = 1;
	vp_guest_watch_add(watch, &second);
	unsigned then = forgotten;
	put_away(watch, &first, path);
	assert_true(step_until(watch, &second, true));
	assert_int_equal(forgotten, then);
	end_vmm((pid_t)first.pid);
	free_built(watch, &notices);
}

/* A vCPU that was offline when the kernel was found: the kernel is searched again, at once, but not
 * again and again if the vCPU stays unknown. */
static void test_vcpu_comes_online(void **state)
{
	enum { LATER = 3, SEARCHES = 4 };
	static const char found[] = "the kernel was found again after";
	const uint64_t ip = 0xffffffff81000000, second = 1000000000;
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_checking(&notices, &forgotten, NEVER_S);
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "g1", .at_start = true};

	vp_guest_watch_add(watch, &vm);
	assert_true(step_until(watch, &vm, true));
	for (int i = 0; i < 10; i++) {
		note_sample(watch, &vm, 0, ip);
		step(watch);
	}
	assert_int_equal(notices.count, 0);
	/* After 0, 1, 3 and 7 s; then after 15 s. */
	unsigned before = listed;
	for (uint64_t start = vp_clock_monotonic(); vp_clock_monotonic() < start + 12 * second;) {
		note_sample(watch, &vm, LATER, ip);
		step(watch);
	}
	assert_true(step_until(watch, &vm, true));
	assert_int_equal(listed - before, SEARCHES);
	assert_int_equal(notices.count, 2 * SEARCHES);
	assert_non_null(strstr(notices.at[0], "a vCPU came online"));
	assert_non_null(strstr(notices.at[1], found));
	assert_true(strtod(strstr(notices.at[1], found) + sizeof(found), NULL) < 2);
	end_vmm((pid_t)vm.pid);
	free_built(watch, &notices);
}

/* Memory that is kept from the host is not looked into, not even once, and that is said. */
static void test_protected(void **state)
{
	vp_notices notices = {0};
	unsigned forgotten = 0;
	struct vp_guest_watch *watch = watch_built(&notices, &forgotten);
	struct vp_vm vm = {.pid = (uint32_t)start_vmm(), .name = "secret"};
	unsigned before = count_descriptors();

	protection = "AMD SEV-SNP";
	listed = 0;
	vp_guest_watch_add(watch, &vm);
	for (int i = 0; i < 2000; i++)
		step_by(watch, 100);
	protection = NULL;
	assert_int_equal(listed, 1);
	assert_int_equal(count_descriptors(), before); /* nothing of it was opened */
	assert_int_equal(notices.count, 1);
	assert_non_null(strstr(notices.at[0], "VM 'secret': memory encrypted (AMD SEV-SNP)"));
	VP_AUTO_FREE char *outcome = state_of(watch, &vm);
	assert_non_null(strstr(outcome, "memory encrypted (AMD SEV-SNP)"));
	end_vmm((pid_t)vm.pid);
	free_built(watch, &notices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_reboots),
	    cmocka_unit_test(test_linux_after_an_hour),
	    cmocka_unit_test(test_searches_that_fail),
	    cmocka_unit_test(test_ended),
	    cmocka_unit_test(test_one_deadline_for_all),
	    cmocka_unit_test(test_check_under_way),
	    cmocka_unit_test(test_processes_are_seen),
	    cmocka_unit_test(test_later_mappings),
	    cmocka_unit_test(test_java),
	    cmocka_unit_test(test_number_used_again),
	    cmocka_unit_test(test_vcpu_comes_online),
	    cmocka_unit_test(test_protected),
	    cmocka_unit_test(test_not_found_is_told_at_once),
	    cmocka_unit_test(test_not_found_is_not_repeated),
	    cmocka_unit_test(test_what_is_not_told),
	    cmocka_unit_test(test_places_are_remembered),
	};

	setenv("XDG_CACHE_HOME", "test_guest_watch.cache", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
