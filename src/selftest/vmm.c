/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "selftest/guest.h"
#include "selftest/guest_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"

enum {
	MAX_STATS = 1024,
	API_VERSION = 12,
	NS_PER_S = 1000000000,
};

static uint64_t monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct vp_guest_cpu_time vp_guest_cpu_time_read(int tid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%d/schedstat", tid);
	struct vp_buffer text = {0};
	struct vp_guest_cpu_time cpu_time = {.at = monotonic()};
	unsigned long long run, delay;
	struct vp_error *error = vp_file_read(path, 4096, &text);

	if (!error && sscanf(vp_buffer_text(&text), "%llu %llu", &run, &delay) == 2) {
		cpu_time.run = run;
		cpu_time.delay = delay;
	}
	vp_error_free(error);
	vp_buffer_deinit(&text);
	return cpu_time;
}

const char *vp_guest_function(uint64_t address)
{
	struct vp_guest_symbol symbol;
	const char *name = NULL;

	for (size_t i = 0; vp_guest_symbol(i, &symbol) && symbol.address <= address; i++)
		name = symbol.name;
	return name;
}

static struct vp_error *guest_open(struct vp_guest *guest)
{
	guest->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (guest->kvm < 0)
		return vp_error_errno(errno, "cannot open /dev/kvm");
	if (ioctl(guest->kvm, KVM_GET_API_VERSION, 0) != API_VERSION)
		return vp_error_new("/dev/kvm is not KVM's, or has an unknown version");
	guest->vm = ioctl(guest->kvm, KVM_CREATE_VM, 0UL);
	if (guest->vm < 0)
		return vp_error_errno(errno, "KVM cannot create a VM");
	void *memory = mmap(NULL, VP_GUEST_MEMORY_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return vp_error_errno(errno, "no memory for a guest");
	guest->memory = memory;
	VP_TRY(vp_guest_make(guest));
	int size = ioctl(guest->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	void *run =
	    size < 0 ? MAP_FAILED
		     : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, guest->vcpu, 0);
	if (run == MAP_FAILED)
		return vp_error_errno(errno, "cannot map a vCPU's state (kvm_run)");
	guest->run = run;
	guest->run_size = (size_t)size;
	return NULL;
}

/* NULL does nothing. */
static void guest_free(struct vp_guest *guest)
{
	if (!guest)
		return;
	if (guest->run)
		munmap(guest->run, guest->run_size);
	if (guest->memory)
		munmap(guest->memory, VP_GUEST_MEMORY_SIZE);
	int files[] = {guest->vcpu, guest->vm, guest->kvm};
	for (size_t i = 0; i < VP_ARRAY_SIZE(files); i++)
		if (files[i] >= 0)
			close(files[i]);
	free(guest);
}

struct vp_error *vp_guest_new(struct vp_guest **ret)
{
	struct vp_guest *guest = vp_alloc(sizeof(*guest));

	*guest = (struct vp_guest){.kvm = -1, .vm = -1, .vcpu = -1};
	struct vp_error *error = guest_open(guest);
	if (error) {
		guest_free(guest);
		guest = NULL;
	}
	*ret = guest;
	return error;
}

#ifdef KVM_GET_STATS_FD
/* Reads the vCPU's statistic of that name; false: not found. */
static bool stat_find(int fd, const struct kvm_stats_header *header, const char *name,
		      uint64_t *ret)
{
	size_t size = sizeof(struct kvm_stats_desc) + header->name_size;
	VP_AUTO_FREE struct kvm_stats_desc *desc = vp_alloc(size);

	for (uint32_t i = 0; i < header->num_desc && i < MAX_STATS; i++) {
		off_t at = (off_t)(header->desc_offset + i * size);
		if (vp_pread(fd, desc, size, at) != (ssize_t)size)
			return false;
		if (strncmp(desc->name, name, header->name_size))
			continue;
		at = (off_t)header->data_offset + desc->offset;
		return vp_pread(fd, ret, sizeof(*ret), at) == (ssize_t)sizeof(*ret);
	}
	return false;
}

/* Reads KVM's statistics of the vCPU (Linux 5.14 and newer). */
static bool stats_read(const struct vp_guest *guest, uint64_t *exits, uint64_t *halts)
{
	struct kvm_stats_header header;
	int fd = ioctl(guest->vcpu, KVM_GET_STATS_FD, NULL);

	if (fd < 0)
		return false;
	bool found = vp_pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
		     stat_find(fd, &header, "exits", exits);
	if (found && !stat_find(fd, &header, "halt_exits", halts) &&
	    !stat_find(fd, &header, "wfi_exit_stat", halts))
		*halts = 0;
	close(fd);
	return found;
}
#else
static bool stats_read(const struct vp_guest *guest, uint64_t *exits, uint64_t *halts)
{
	return false;
}
#endif

/* A signal at the end of the busy time interrupts KVM_RUN; its handler does nothing. */
static void vmm_on_timer(int signal)
{
}

/* Sets the timer; 0: off. It repeats every 10 ms, because a signal between the check of the clock
 * and KVM_RUN has no effect. */
static void timer_set(uint64_t ns)
{
	struct sigaction action = {.sa_handler = vmm_on_timer};
	struct itimerval timer = {.it_value = {.tv_sec = (time_t)(ns / NS_PER_S),
					       .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)},
				  .it_interval = {.tv_usec = ns ? 10000 : 0}};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Runs the vCPU until the guest ends. */
static struct vp_error *guest_loop(struct vp_guest *guest, uint64_t deadline,
				   struct vp_guest_done *done)
{
	for (;;) {
		if (deadline && monotonic() >= deadline) {
			vp_guest_stop_busy(guest->memory);
			timer_set(0);
			deadline = 0;
		}
		if (ioctl(guest->vcpu, KVM_RUN, 0)) {
			if (errno != EINTR && errno != EAGAIN)
				return vp_error_errno(errno, "KVM cannot run the guest");
			continue;
		}
		switch (vp_guest_take(guest, done)) {
		case VP_GUEST_GOES_ON:
			break;
		case VP_GUEST_WAS_BUSY:
			done->busy = vp_guest_cpu_time_read((int)gettid());
			break;
		case VP_GUEST_ENDS:
			return NULL;
		case VP_GUEST_IS_LOST:
			return vp_error_new(
			    "the guest program ended unexpectedly: KVM exit reason %u",
			    guest->run->exit_reason);
		}
	}
}

struct vp_error *vp_guest_run(struct vp_guest *guest, const struct vp_guest_work *work,
			      struct vp_guest_done *done)
{
	int tid = (int)gettid();
	uint64_t exits = 0, halts = 0;

	*done = (struct vp_guest_done){0};
	VP_TRY(vp_guest_prepare(guest, work, done));
	done->has_stats = stats_read(guest, &exits, &halts);
	done->begin = vp_guest_cpu_time_read(tid);
	uint64_t deadline = work->busy_ns ? done->begin.at + work->busy_ns : 0;
	if (deadline)
		timer_set(work->busy_ns);
	struct vp_error *error = guest_loop(guest, deadline, done);
	done->end = vp_guest_cpu_time_read(tid);
	done->has_stats &= stats_read(guest, &done->stat_exits, &done->stat_halts);
	done->stat_exits -= exits;
	done->stat_halts -= halts;
	vp_guest_finish(guest, work, done);
	return error;
}
