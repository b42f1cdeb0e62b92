/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/vec.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/kernel/scan.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/symbols/dump.h"
#include "guestmem/symbols/guest_orc.h"
#include "guestmem/symbols/runtimes.h"
#include "guestmem/tasks/counts.h"
#include "guestmem/tasks/tasks.h"
#include "guestreader/interpreted.h"
#include "guestreader/java_frames.h"
#include "guestreader/stack_job.h"
#include "guestreader/unwinder.h"
#include "guestreader/v8_frames.h"
#include "maps/format.h"
#include "schema/chain_end.h"
#include "schema/interval.h"
#include "schema/user_stack.h"
#include "unwind/user_chain.h"

enum {
	LONGEST_REQUEST = 256,
	MAX_PASSED = 16, /* descriptors whose requests have not been served */
	/* Attempts to read the CPUs' current tasks, and interval in microseconds: more than a few
	 * time slices in total. */
	MAX_LOOKS = 50,
	POLL_US = 4000,
	SLICE_MS = 500, /* duration of a scan per request */
};

struct worker {
	const struct vp_guest_worker_options *options;
	vp_kernel_packs packs;
	bool found;                  /* `kernel` was checked */
	bool scanned;                /* … and found by a scan */
	struct vp_kernel_scan *scan; /* scan in progress, or NULL */
	char *doubt;                 /* why the kernel found by the last scan is invalid, or NULL */
	struct vp_guest_kernel kernel;
	struct vp_guest_dump *dump;
	struct vp_guest_unwinder *unwinder; /* NULL: no stack was unwound yet */
	struct vp_stack_job job;            /* copy of the job that is being unwound */
	struct vp_java_frames *java_frames; /* NULL: no Java process yet */
	bool is_java;                       /* the job is of a Java process … */
	struct vp_java_stack java;          /* … and its stack */
	int passed[MAX_PASSED];             /* received descriptors, in order */
	unsigned n_passed;
	struct vp_buffer answer;
};

static void worker_put_escaped(struct worker *worker, const char *text)
{
	vp_buffer_string(&worker->answer, " ");
	vp_maps_escape(text, &worker->answer);
	vp_buffer_string(&worker->answer, "\n");
}

static void put_error(struct worker *worker, struct vp_error *error)
{
	vp_buffer_string(&worker->answer, "error");
	worker_put_escaped(worker, vp_error_message(error));
	vp_error_free(error);
}

static void worker_put_cpu(struct worker *worker, const struct vp_guest_cpu *cpu)
{
	uint64_t chosen = 0;

	if (!vp_guest_chosen_find(&worker->kernel, cpu, &chosen))
		chosen = 0;
	vp_buffer_printf(&worker->answer, "cpu %x %x %" PRIx64 " %" PRIx64 "\n", cpu->vcpu,
			 cpu->cpu, cpu->current_gpa, chosen);
}

static void put_counters(struct worker *worker, const struct vp_guest_cpu *cpu)
{
	for (uint32_t i = 0; i < VP_GUEST_COUNT; i++) {
		struct vp_guest_counter counter;
		if (vp_guest_counter_find(&worker->kernel, cpu, (enum vp_guest_count)i, &counter))
			vp_buffer_printf(&worker->answer, "count %x %x %" PRIx64 " %d\n", cpu->vcpu,
					 i, counter.gpa, counter.narrow);
	}
}

static void worker_put_kernel(struct worker *worker, const vp_guest_cpus *cpus)
{
	const struct vp_guest_kernel *kernel = &worker->kernel;
	const struct vp_guest_view *view = &kernel->view;
	struct vp_buffer *answer = &worker->answer;

	vp_buffer_printf(answer,
			 "kernel %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %x %d %d %d ",
			 kernel->text, view->image_gpa + (kernel->text - view->image_va),
			 view->image_size, view->direct_map, view->paging.levels,
			 kernel->route == VP_PACK_CACHED, worker->scanned, kernel->pack.derived);
	vp_build_id_put(&kernel->pack.build_id, answer);
	worker_put_escaped(worker, kernel->banner);
	if (view->memory->arch == VP_GUEST_ARM64)
		vp_buffer_printf(answer, "arm64 %x %x %x %" PRIx64 "\n", view->paging.page_bits,
				 view->paging.va_bits, vp_paging_is_wide(&view->paging),
				 view->root);
	uint32_t stack = kernel->pack.at.task_stack;
	vp_buffer_printf(answer, "at %x %x %x %x %x %x\n", kernel->pack.at.task_pid,
			 kernel->pack.at.task_tgid, kernel->pack.at.task_comm,
			 stack == VP_PACK_NONE ? 0 : stack, kernel->pack.at.task_mm,
			 kernel->pack.at.mm_pgd);
	vp_vec_each (cpus, cpu)
		worker_put_cpu(worker, cpu);
	vp_vec_each (cpus, cpu)
		put_counters(worker, cpu);
	if (kernel->lacks) {
		vp_buffer_string(answer, "lacks");
		worker_put_escaped(worker, kernel->lacks);
	}
	vp_buffer_printf(answer, "banner %" PRIx64 "\n",
			 kernel->pack.symbol.banner.offset == VP_PACK_NONE
			     ? 0
			     : view->image_gpa + (kernel->text - view->image_va) +
				   kernel->pack.symbol.banner.offset);
	struct vp_buffer text = {0};
	vp_kernel_pack_write(&kernel->pack, &text);
	vp_buffer_string(answer, "pack");
	worker_put_escaped(worker, vp_buffer_text(&text));
	vp_buffer_deinit(&text);
}

/* Finds the guest's CPUs. Retries if a CPU's current task is invalid: for a moment, or forged. */
static struct vp_error *find_cpus(const struct vp_guest_kernel *kernel, vp_guest_cpus *cpus)
{
	bool unsettled = true;

	for (unsigned looks = 0; looks < MAX_LOOKS; looks++) {
		cpus->count = 0;
		struct vp_error *error = vp_guest_cpus_find(kernel, cpus, &unsettled);
		if (!unsettled || looks + 1 == MAX_LOOKS)
			return error;
		vp_error_free(error);
		vp_sleep_us(POLL_US);
	}
	return NULL;
}

static struct vp_error *read_with(struct worker *worker, const struct vp_guest_view *found,
				  const vp_kernel_packs *packs, vp_guest_cpus *cpus)
{
	vp_guest_kernel_deinit(&worker->kernel);
	VP_TRY(vp_guest_kernel_read(found, packs, worker->options->seed, &worker->kernel));
	/* A kernel without readable tasks is used for its symbols, unless a cached pack may be the
	 * cause. */
	if (worker->kernel.lacks && worker->kernel.route == VP_PACK_READ)
		return NULL;
	VP_TRY(vp_guest_kernel_check(&worker->kernel));
	return find_cpus(&worker->kernel, cpus);
}

static struct vp_error *read_found(struct worker *worker, const struct vp_guest_view *found)
{
	static const vp_kernel_packs none;
	vp_guest_cpus cpus = {0};

	struct vp_error *error = read_with(worker, found, &worker->packs, &cpus);
	if (error && worker->kernel.text && worker->kernel.route == VP_PACK_CACHED) {
		/* The pack is invalid although it is of this kernel: makes a new one. */
		vp_buffer_string(&worker->answer, "dropped");
		worker_put_escaped(worker, vp_error_message(error));
		vp_error_free(error);
		vp_vec_deinit(&cpus);
		error = read_with(worker, found, &none, &cpus);
	}
	worker->found = !error;
	if (!error) {
		vp_guest_dump_keep(worker->dump, &worker->kernel);
		worker_put_kernel(worker, &cpus);
	}
	vp_vec_deinit(&cpus);
	return error;
}

static void end_scan(struct worker *worker)
{
	vp_kernel_scan_free(worker->scan);
	worker->scan = NULL;
	free(worker->doubt);
	worker->doubt = NULL;
}

static struct vp_error *worker_report_not_found(struct worker *worker)
{
	struct vp_error *error =
	    worker->doubt ? vp_error_new("%s", worker->doubt)
	    : worker->options->memory->backed
		? vp_error_new("no Linux kernel was found in the guest's memory")
		: vp_error_new("cannot search for the guest's kernel: this host does not show "
			       "which guest pages are present (CONFIG_PROC_PAGE_MONITOR)");

	end_scan(worker);
	return error;
}

static void put_progress(struct worker *worker)
{
	struct vp_scan_progress progress = vp_kernel_scan_progress(worker->scan);

	worker->answer.size = 0; /* partial output for an invalid kernel */
	vp_buffer_printf(&worker->answer, "searching %" PRIx64 " %" PRIx64 "\n", progress.done,
			 progress.all);
}

/* Runs one slice of a scan. If it finds a kernel from before a reboot, or one that is booting, the
 * scan continues. */
static struct vp_error *scan_on(struct worker *worker, uint64_t remembered)
{
	const struct vp_scan_setup setup = {.memory = worker->options->memory,
					    .packs = &worker->packs,
					    .remembered = remembered,
					    .clock = worker->options->clock};
	struct vp_guest_view found;

	if (!worker->scan)
		worker->scan = vp_kernel_scan_new(&setup);
	enum vp_scan_result result =
	    vp_kernel_scan_step(worker->scan, SLICE_MS * 1000000ULL, &found);
	if (result == VP_SCAN_ENDED)
		return worker_report_not_found(worker);
	found.vcpus = worker->options->vcpus;
	found.n_vcpus = worker->options->n_vcpus;
	if (result == VP_SCAN_FOUND) {
		struct vp_error *error = read_found(worker, &found);
		if (!error) {
			end_scan(worker);
			return NULL;
		}
		free(worker->doubt);
		worker->doubt = vp_strdup(vp_error_message(error));
		vp_error_free(error);
	}
	put_progress(worker);
	return NULL;
}

static struct vp_error *worker_find(struct worker *worker, struct vp_cursor *words)
{
	const struct vp_guest_worker_options *options = worker->options;
	bool scan = false, known = false;
	uint64_t remembered = 0;
	struct vp_guest_view found;

	while (vp_cursor_left(words) && vp_cursor_ok(words)) {
		struct vp_slice word = vp_cursor_word(words);
		if (vp_slice_is(word, "scan"))
			scan = true;
		else if (vp_slice_is(word, "banner"))
			remembered = vp_cursor_hex(words);
		else
			return vp_error_new("unknown request");
	}
	worker->found = false;
	worker->scanned = false;
	if (!scan && vp_guest_kernel_locate(options->memory, options->vcpus, options->n_vcpus,
					    &known, &found))
		return read_found(worker, &found);
	/* No kernel was found with the registers: the guest has none, or none yet. */
	if (known)
		return vp_error_new("no Linux kernel was found in the guest's memory");
	worker->scanned = true;
	return scan_on(worker, remembered);
}

static bool worker_put_task(void *context, const struct vp_guest_task *task)
{
	struct worker *worker = context;

	vp_buffer_printf(&worker->answer, "task %x %" PRIx64, task->tgid, task->root);
	worker_put_escaped(worker, task->comm);
	return true;
}

static struct vp_error *list_tasks(struct worker *worker)
{
	bool damaged;

	vp_guest_tasks_each(&worker->kernel, worker_put_task, worker, &damaged);
	if (damaged)
		vp_buffer_string(&worker->answer, "damaged\n");
	return NULL;
}

static struct vp_error *write_dump(struct worker *worker, bool symbols)
{
	size_t processes;

	if (worker->options->dump < 0)
		return vp_error_new("no output for the symbol map");
	if (symbols)
		vp_guest_kernel_find_modules(&worker->kernel);
	VP_TRY(vp_guest_dump_write(worker->dump, &worker->kernel, worker->options->dump, symbols,
				   &processes));
	vp_buffer_printf(&worker->answer, "wrote %zx\n", processes);
	return NULL;
}

static void worker_change_memory(struct vp_guest_memory *memory, struct vp_cursor *words)
{
	if (!vp_cursor_left(words)) {
		memory->slots.count = 0;
		return;
	}
	uint64_t gpa = vp_cursor_hex(words), size = vp_cursor_hex(words),
		 hva = vp_cursor_hex(words);
	if (vp_cursor_ok(words))
		vp_guest_memory_add(memory, gpa, size, hva);
}

static struct vp_error *write_orc(struct worker *worker)
{
	size_t entries;

	if (worker->options->dump < 0)
		return vp_error_new("no output for unwind tables");
	VP_TRY(vp_guest_orc_write(&worker->kernel, worker->options->dump, &entries));
	vp_buffer_printf(&worker->answer, "wrote %zx\n", entries);
	return NULL;
}

static struct vp_error *worker_check(struct worker *worker)
{
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(worker->dump);

	VP_TRY(vp_guest_kernel_check(&worker->kernel));
	vp_guest_runtimes_step(runtimes, &worker->kernel);
	vp_guest_runtimes_list(runtimes, &worker->answer);
	if (worker->unwinder)
		vp_guest_unwinder_list(worker->unwinder, &worker->answer);
	return NULL;
}

static void worker_take_hit(struct worker *worker, bool method, struct vp_cursor *words)
{
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(worker->dump);
	uint64_t tgid = vp_cursor_hex(words), addr = vp_cursor_hex(words);
	uint64_t time = vp_cursor_hex(words);

	if (!vp_cursor_ok(words))
		return;
	if (method)
		vp_guest_runtimes_hit_methods(runtimes, &worker->kernel, (uint32_t)tgid, &addr, 1,
					      time);
	else
		vp_guest_runtimes_hit(runtimes, &worker->kernel, (uint32_t)tgid, &addr, 1, time);
}

/* Inserts interpreter frames into the chain, and looks up their names. */
static void put_interpreted(struct worker *worker, struct vp_stack_job *job)
{
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(worker->dump);
	const struct vp_interpreted *frames = &job->interpreted;
	uint64_t methods[VP_INTERPRETED_FRAMES], low, high;
	uint32_t tgid = job->stack.guest_pid;

	if (!frames->count || frames->count > VP_INTERPRETED_FRAMES ||
	    !vp_guest_runtimes_loop(runtimes, tgid, &low, &high))
		return;
	vp_interpreted_merge(job, low, high);
	for (uint32_t i = 0; i < frames->count; i++)
		methods[i] = frames->frames[i] & ~7ULL;
	vp_guest_runtimes_hit_methods(runtimes, &worker->kernel, tgid, methods, frames->count,
				      job->stack.time);
}

/* Replaces addresses in V8's code by functions of JavaScript, and looks up their names. */
static void worker_put_v8(struct worker *worker, const struct vp_user_program *program,
			  const struct vp_stack_job *job, struct vp_user_chain *chain)
{
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(worker->dump);
	uint32_t tgid = job->stack.guest_pid;
	uint64_t functions[VP_CHAIN_LONGEST];
	struct vp_guest_v8_code code;

	if (!vp_guest_runtimes_v8(runtimes, tgid, &code))
		return;
	unsigned count = vp_v8_frames_put(&code, program, chain, functions);
	if (count)
		vp_guest_runtimes_hit_methods(runtimes, &worker->kernel, tgid, functions, count,
					      job->stack.time);
}

/* Replaces interpreted frames of Java by methods, adds inlined ones, and looks up their names. */
static void worker_put_java(struct worker *worker, const struct vp_stack_job *job,
			    struct vp_user_chain *chain)
{
	struct vp_guest_runtimes *runtimes = vp_guest_dump_runtimes(worker->dump);
	uint32_t tgid = job->stack.guest_pid;
	uint64_t time = job->stack.time;
	struct vp_java_found found;

	vp_java_frames_put(&worker->java, chain, &found);
	if (found.n_code)
		vp_guest_runtimes_hit(runtimes, &worker->kernel, tgid, found.code, found.n_code,
				      time);
	if (found.n_methods)
		vp_guest_runtimes_hit_methods(runtimes, &worker->kernel, tgid, found.methods,
					      found.n_methods, time);
}

static void worker_begin_stack(void *context, const struct vp_user_program *program,
			       const struct vp_stack_job *job)
{
	struct worker *worker = context;
	uint32_t tgid = job->stack.guest_pid;

	worker->java =
	    (struct vp_java_stack){.program = program, .tgid = tgid, .time = job->stack.time};
	worker->is_java =
	    vp_guest_runtimes_java(vp_guest_dump_runtimes(worker->dump), tgid, &worker->java.vm);
	if (worker->is_java && !worker->java_frames)
		worker->java_frames = vp_java_frames_new();
	worker->java.frames = worker->java_frames;
}

static enum vp_user_step worker_step(void *context, struct vp_user_registers *now, bool exact)
{
	struct worker *worker = context;

	return worker->is_java ? vp_java_frames_step(&worker->java, now, exact) : VP_USER_STEP_NONE;
}

static void worker_name_frames(void *context, const struct vp_user_program *program,
			       const struct vp_stack_job *job, struct vp_user_chain *chain)
{
	struct worker *worker = context;

	if (worker->is_java)
		worker_put_java(worker, job, chain);
	else
		worker_put_v8(worker, program, job, chain);
}

/* Copies a request, without the unused part of its stack. */
static void copy_request(struct vp_stack_job *to, const struct vp_stack_job *from)
{
	memcpy(to, from, offsetof(struct vp_stack_job, stack.stack));
	if (to->stack.bytes <= sizeof(to->stack.stack)) /* others are rejected */
		memcpy(to->stack.stack, from->stack.stack, to->stack.bytes);
	to->interpreted.count = from->interpreted.count;
	if (to->interpreted.count > VP_INTERPRETED_FRAMES)
		to->interpreted.count = VP_INTERPRETED_FRAMES;
	memcpy(to->interpreted.frames, from->interpreted.frames,
	       to->interpreted.count * sizeof(*to->interpreted.frames));
	to->count = 0;
}

/* Unwinds a copy of the job, so that the other side reads only the result. */
static void unwind_one(struct worker *worker, struct vp_stack_job *to)
{
	const struct vp_runtime_frames runtimes = {worker_begin_stack, worker_step,
						   worker_name_frames, worker};
	struct vp_stack_job *job = &worker->job;

	copy_request(job, to);
	if (worker->found) {
		vp_guest_unwinder_run(worker->unwinder, &worker->kernel, &runtimes, job);
		put_interpreted(worker, job);
	}
	to->end = job->end;
	to->flags = job->flags;
	to->needed = job->needed;
	memcpy(to->ips, job->ips, job->count * sizeof(*to->ips));
	__atomic_store_n(&to->count, job->count, __ATOMIC_RELEASE);
}

/* Unwinds the stacks of a request. Sets `done` even without a kernel: the recorder waits for it. */
static void worker_unwind(struct worker *worker, struct vp_cursor *words)
{
	struct vp_stack_jobs *jobs = worker->options->jobs;
	uint64_t request = vp_cursor_hex(words), count = vp_cursor_hex(words);

	if (!jobs || !vp_cursor_ok(words) || count > VP_STACK_JOBS)
		return;
	if (!worker->unwinder)
		worker->unwinder = vp_guest_unwinder_new();
	for (uint64_t i = 0; i < count; i++)
		unwind_one(worker, &jobs->at[i]);
	__atomic_store_n(&jobs->done, request, __ATOMIC_RELEASE);
}

/* Reads missing unwind tables from the first descriptor that was passed. */
static void worker_take_file(struct worker *worker, struct vp_cursor *words)
{
	struct vp_build_id id;

	if (!worker->n_passed)
		return;
	int fd = worker->passed[0];
	memmove(worker->passed, worker->passed + 1, --worker->n_passed * sizeof(*worker->passed));
	if (worker->unwinder && vp_build_id_parse(vp_cursor_word(words), &id) && id.size)
		vp_guest_unwinder_take_file(worker->unwinder, &id, fd);
	close(fd);
}

/* Serves a request; true: it has a reply. */
static bool worker_serve(struct worker *worker, struct vp_slice line)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice what = vp_cursor_word(&words);
	struct vp_error *error = NULL;

	if (vp_slice_is(what, "unwind")) {
		worker_unwind(worker, &words);
		return false;
	} else if (vp_slice_is(what, "file")) {
		worker_take_file(worker, &words);
		return false;
	} else if (vp_slice_is(what, "find")) {
		error = worker_find(worker, &words);
	} else if (vp_slice_is(what, "memory")) {
		end_scan(worker); /* the memory has changed */
		worker_change_memory(worker->options->memory, &words);
		return false;
	} else if (!worker->found) {
		error = vp_error_new("the kernel has not been found yet");
	} else if (vp_slice_is(what, "check")) {
		error = worker_check(worker);
	} else if (vp_slice_is(what, "tasks")) {
		error = list_tasks(worker);
	} else if (vp_slice_is(what, "see")) {
		uint64_t address = vp_cursor_hex(&words), tgid = vp_cursor_hex(&words);
		vp_guest_dump_see(worker->dump, &worker->kernel, address, (uint32_t)tgid,
				  vp_cursor_hex(&words));
		return false;
	} else if (vp_slice_is(what, "hit") || vp_slice_is(what, "method")) {
		worker_take_hit(worker, vp_slice_is(what, "method"), &words);
		return false;
	} else if (vp_slice_is(what, "dump")) {
		error = write_dump(worker, vp_cursor_hex(&words) != 0);
	} else if (vp_slice_is(what, "orc")) {
		error = write_orc(worker);
	} else {
		error = vp_error_new("unknown request");
	}
	if (error)
		put_error(worker, error);
	vp_buffer_string(&worker->answer, ".\n");
	return true;
}

static void parse_packs(struct worker *worker)
{
	for (size_t i = 0; i < worker->options->n_packs; i++) {
		const struct vp_buffer *text = &worker->options->packs[i];
		struct vp_kernel_pack pack;
		struct vp_error *error =
		    vp_kernel_pack_parse("a cached pack", text->bytes, text->size, &pack);
		if (!error)
			vp_vec_push(&worker->packs, pack);
		vp_error_free(error);
	}
}

/* Keeps the descriptor of a message. */
static void take_passed(struct worker *worker, struct msghdr *message)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(message);
	int fd;

	if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
	    header->cmsg_len != CMSG_LEN(sizeof(fd)))
		return;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	if (worker->n_passed < MAX_PASSED)
		worker->passed[worker->n_passed++] = fd;
	else
		close(fd);
}

/* Receives requests, with a descriptor at most. */
static ssize_t worker_receive(struct worker *worker, char *bytes, size_t size)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {bytes, size};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	ssize_t got = vp_recvmsg(worker->options->channel, &message, MSG_CMSG_CLOEXEC);

	if (got > 0)
		take_passed(worker, &message);
	return got;
}

void vp_guest_worker_run(const struct vp_guest_worker_options *options)
{
	struct worker worker = {.options = options, .dump = vp_guest_dump_new()};
	struct vp_buffer requests = {0};
	char bytes[LONGEST_REQUEST];
	ssize_t got;

	parse_packs(&worker);
	while ((got = worker_receive(&worker, bytes, sizeof(bytes))) > 0) {
		vp_buffer_append(&requests, bytes, (size_t)got);
		struct vp_cursor cursor = vp_cursor_of(requests.bytes, requests.size);
		const char *end;
		while ((end = memchr(cursor.next, '\n', vp_cursor_left(&cursor)))) {
			struct vp_slice line;
			worker.answer.size = 0;
			if (vp_cursor_line(&cursor, &line) && worker_serve(&worker, line) &&
			    vp_fd_write_all(options->channel, worker.answer.bytes,
					    worker.answer.size))
				break;
		}
		size_t left = vp_cursor_left(&cursor);
		memmove(requests.bytes, cursor.next, left);
		requests.size = left;
	}
	end_scan(&worker);
	for (unsigned i = 0; i < worker.n_passed; i++)
		close(worker.passed[i]);
	vp_guest_unwinder_free(worker.unwinder);
	vp_java_frames_free(worker.java_frames);
	vp_guest_dump_free(worker.dump);
	vp_guest_kernel_deinit(&worker.kernel);
	vp_vec_deinit(&worker.packs);
	vp_buffer_deinit(&worker.answer);
	vp_buffer_deinit(&requests);
}
