/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestreader/unwinder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/io.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/lines.h"
#include "guestmem/memory/memory.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/process.h"
#include "guestmem/tasks/tasks.h"
#include "guestreader/stack_job.h"
#include "guestreader/unwind_tables.h"
#include "maps/format.h"
#include "schema/chain_end.h"
#include "schema/user_stack.h"
#include "unwind/cfi.h"
#include "unwind/quick_chain.h"
#include "unwind/user_arch.h"
#include "unwind/user_chain.h"

enum {
	MAX_PROCESSES = 4096,
	MAX_MAPPINGS = 1 << 18, /* of all processes */
	LARGEST_VDSO = 64 << 10,
	/* Work limit per second in units of a DWARF instruction (about 5 ns), and cost of other
	 * work. */
	WORK_PER_SECOND = 32 << 20,
	WORK_OF_ROW = 64,
	WORK_OF_GUESS = 6,   /* looking up an address in the mappings */
	WORK_OF_READ = 400,  /* of guest memory, through page tables */
	WORK_OF_PAGE = 1000, /* the same, a whole page */
	PAGES = 8,           /* cached for a stack */
	KEPT_PAGES = 128,    /* for processes that have ended */
	KEPT_GUESSES = 64,
	WORK_OF_MAPPING = 1000,
	WORK_OF_FILE = 1 << 13,
};
#define SECOND 1000000000ULL
/* Minimum intervals between reads of a process's mappings. A process that has just begun still maps
 * its libraries: the interval doubles from read to read. */
#define FIRST_AGAIN_NS 2000000ULL
#define LAST_AGAIN_NS 100000000ULL
/* Bits of CR3 that distinguish processes: with page-table isolation each process has two
 * adjacent tables. */
#define X86_ROOT_BITS 0x000fffffffffe000ULL

struct unwinder_mapping {
	uint64_t start, end, pgoff;
	uint64_t file;        /* a struct file; 0: none */
	uint64_t inode, size; /* of the file; 0: unknown */
	int32_t table;
};

struct process {
	uint32_t tgid;
	uint64_t task, root;                      /* of the last job; of the last read */
	uint64_t view_root;                       /* page tables of the view */
	uint64_t again_at;                        /* ns; the earliest next read */
	uint64_t again_ns;                        /* the last interval between reads */
	uint32_t version;                         /* of the mappings, unique */
	bool incomplete;                          /* mappings are missing: a limit was exceeded */
	VP_VEC(struct unwinder_mapping) mappings; /* sorted by address */
};

/* A page of the process, read while a stack is unwound. */
struct unwinder_page {
	uint64_t address; /* 1: none */
	char bytes[VP_GUEST_PAGE];
};

/* A page of a stack outside the copies, or of code, as it was read for an earlier sample of the
 * process. */
struct kept_page {
	uint64_t task, root, address; /* address 0: none */
	char bytes[VP_GUEST_PAGE];
};

/* The last guess of a thread. */
struct kept_guess {
	uint64_t task;
	uint32_t version; /* of the process's mappings */
	struct vp_user_guess guess;
};

struct vp_guest_unwinder {
	struct vp_unwind_tables *tables;
	VP_VEC(struct process) processes;
	struct vp_map by_tgid;
	size_t n_mappings;
	uint32_t versions; /* the last one of a process's mappings */
	struct vp_quick_rows quick;
	struct vp_guest_lines lines;
	uint64_t second;
	uint32_t work;
	struct unwinder_page pages[PAGES]; /* of the stack that is being unwound … */
	unsigned n_pages;                  /* … and the number of them that were read */
	struct kept_page kept[KEPT_PAGES];
	unsigned n_kept; /* pages that were kept */
	struct kept_guess guesses[KEPT_GUESSES];
};

struct vp_guest_unwinder *vp_guest_unwinder_new(void)
{
	struct vp_guest_unwinder *unwinder = vp_alloc(sizeof(*unwinder));

	unwinder->tables = vp_unwind_tables_new();
	return unwinder;
}

static void forget_processes(struct vp_guest_unwinder *unwinder)
{
	vp_vec_each (&unwinder->processes, process)
		vp_vec_deinit(&process->mappings);
	unwinder->processes.count = 0;
	unwinder->n_mappings = 0;
	vp_map_deinit(&unwinder->by_tgid);
}

void vp_guest_unwinder_free(struct vp_guest_unwinder *unwinder)
{
	if (!unwinder)
		return;
	forget_processes(unwinder);
	vp_vec_deinit(&unwinder->processes);
	vp_unwind_tables_free(unwinder->tables);
	free(unwinder);
}

/* Subtracts work from this second's limit; false: exceeded. */
static bool spend(struct vp_guest_unwinder *unwinder, uint32_t work)
{
	if (unwinder->work < work) {
		unwinder->work = 0;
		return false;
	}
	unwinder->work -= work;
	return true;
}

struct mappings_reading {
	const struct vp_guest_task *task;
	struct vp_guest_unwinder *unwinder;
	const struct vp_guest_kernel *kernel;
	struct process *process, before;
	uint64_t vdso;
};

static bool read_page_cache(void *context, uint64_t offset, void *bytes, size_t size)
{
	return vp_guest_file_read(context, offset, bytes, size);
}

static uint64_t key_of_file(const struct vp_guest_file *file)
{
	struct vp_build_id id;
	uint64_t hash = 0, words[(sizeof(id.bytes) + 7) / 8] = {0};

	if (!vp_guest_file_build_id(file, &id))
		return vp_guest_file_print(file);
	memcpy(words, id.bytes, sizeof(id.bytes));
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		hash = vp_hash64(hash ^ words[i]) + i;
	return hash | 1;
}

/* The tables of a file; false: it cannot be identified. */
static bool source_of(struct vp_guest_file *file, struct vp_unwind_file *ret)
{
	*ret = (struct vp_unwind_file){
	    .key = key_of_file(file), .size = file->size, .read = read_page_cache, .context = file};
	return ret->key != 0;
}

/* Names the file's copy on the host, if pages of its table are missing. */
static void name_copy(struct mappings_reading *reading, const struct vp_guest_file *file,
		      const struct unwinder_mapping *mapping)
{
	struct vp_unwind_tables *tables = reading->unwinder->tables;
	struct vp_buffer path = {0};
	struct vp_build_id id;

	if (mapping->table == VP_NO_UNWIND_TABLE ||
	    !vp_unwind_tables_wants_copy(tables, mapping->table) ||
	    !spend(reading->unwinder, WORK_OF_FILE) || !vp_guest_file_build_id(file, &id))
		return;
	/* A copy is found by its build-id, too. */
	if (!vp_guest_path(reading->kernel, reading->task, mapping->file, &path))
		path.size = 0;
	vp_unwind_tables_name_copy(tables, mapping->table, &id, vp_buffer_text(&path));
	vp_buffer_deinit(&path);
}

/* Finds the table of a mapping's file. */
static void find_table(struct mappings_reading *reading, struct unwinder_mapping *ret)
{
	struct vp_guest_file file;
	struct vp_unwind_file source;

	if (!vp_guest_file_open(reading->kernel, ret->file, &file))
		return;
	ret->inode = file.inode;
	ret->size = file.size;
	/* A process may map a file several times. */
	vp_vec_each (&reading->process->mappings, mapping) {
		if (mapping->file == ret->file) {
			ret->table = mapping->table;
			return;
		}
	}
	/* Kernels reuse the address of a struct file: after execve() it may be of another file. */
	vp_vec_each (&reading->before.mappings, mapping) {
		if (mapping->file == ret->file && mapping->inode == file.inode &&
		    mapping->size == file.size && mapping->table != VP_NO_UNWIND_TABLE) {
			ret->table = mapping->table;
			return;
		}
	}
	if (!spend(reading->unwinder, WORK_OF_FILE)) {
		reading->process->incomplete = true;
	} else if (source_of(&file, &source)) {
		ret->table = vp_unwind_tables_add(reading->unwinder->tables, &source);
		name_copy(reading, &file, ret);
	}
}

static bool read_image(void *context, uint64_t offset, void *bytes, size_t size)
{
	const struct vp_buffer *image = context;

	if (offset > image->size || size > image->size - offset)
		return false;
	memcpy(bytes, image->bytes + offset, size);
	return true;
}

static struct vp_guest_view view_of(const struct vp_guest_kernel *kernel,
				    const struct process *process)
{
	struct vp_guest_view view = kernel->view;

	view.root = process->view_root;
	return view;
}

static int32_t table_of_vdso(struct mappings_reading *reading,
			     const struct vp_guest_mapping *mapping)
{
	const struct vp_guest_view view = view_of(reading->kernel, reading->process);
	struct vp_buffer image = {0};
	int32_t table = VP_NO_UNWIND_TABLE;
	uint64_t size = mapping->end - mapping->start;

	if (size > LARGEST_VDSO || !spend(reading->unwinder, WORK_OF_FILE))
		return table;
	char *to = vp_buffer_extend(&image, size);
	if (vp_guest_view_read(&view, mapping->start, to, size)) {
		struct vp_unwind_file file = {.size = size, .read = read_image, .context = &image};
		for (uint64_t at = 0, word; at + sizeof(word) <= size; at += sizeof(word)) {
			memcpy(&word, to + at, sizeof(word));
			file.key = vp_hash64(file.key ^ word) + at;
		}
		table = vp_unwind_tables_add(reading->unwinder->tables, &file);
	}
	vp_buffer_deinit(&image);
	return table;
}

static void unwinder_take_mapping(void *context, const struct vp_guest_mapping *seen)
{
	struct mappings_reading *reading = context;
	struct vp_guest_unwinder *unwinder = reading->unwinder;
	struct unwinder_mapping mapping = {.start = seen->start,
					   .end = seen->end,
					   .pgoff = seen->pgoff,
					   .file = seen->file,
					   .table = VP_NO_UNWIND_TABLE};

	if (unwinder->n_mappings == MAX_MAPPINGS || !spend(unwinder, WORK_OF_MAPPING)) {
		reading->process->incomplete = true;
		return;
	}
	if (seen->file)
		find_table(reading, &mapping);
	else if (seen->start == reading->vdso)
		mapping.table = table_of_vdso(reading, seen);
	vp_vec_push(&reading->process->mappings, mapping);
	unwinder->n_mappings++;
}

/* Reads the process's mappings. */
static void read_process(struct vp_guest_unwinder *unwinder, const struct vp_guest_kernel *kernel,
			 struct process *process)
{
	struct mappings_reading reading = {
	    .unwinder = unwinder, .process = process, .before = *process};
	struct vp_guest_kernel near = *kernel;
	struct vp_guest_task task;

	vp_guest_lines_begin(&unwinder->lines, kernel->view.memory);
	near.view.memory = &unwinder->lines.memory;
	reading.kernel = &near;
	reading.task = &task;
	if (kernel->pack.derived || !vp_guest_task_read(&near, process->task, &task) ||
	    task.tgid != process->tgid || !task.mm || !task.root)
		return;
	process->view_root = task.root;
	process->version = ++unwinder->versions;
	process->incomplete = false;
	if (kernel->pack.at.mm_vdso == VP_PACK_NONE ||
	    !vp_guest_view_u64(&near.view, task.mm + kernel->pack.at.mm_vdso, &reading.vdso))
		reading.vdso = 0;
	unwinder->n_mappings -= process->mappings.count;
	process->mappings = (__typeof__(process->mappings)){0};
	vp_guest_mappings_each(&near, task.mm, unwinder_take_mapping, &reading);
	vp_vec_deinit(&reading.before.mappings);
}

static void read_process_at(struct vp_guest_unwinder *unwinder,
			    const struct vp_guest_kernel *kernel, struct process *process,
			    uint64_t now)
{
	uint64_t twice = 2 * process->again_ns;

	process->again_ns = !twice ? FIRST_AGAIN_NS : twice < LAST_AGAIN_NS ? twice : LAST_AGAIN_NS;
	process->again_at = now + process->again_ns;
	read_process(unwinder, kernel, process);
}

/* Finds the stack's process. Reads its mappings if it is new, runs another program, or is
 * incomplete. */
static struct process *find_process(struct vp_guest_unwinder *unwinder,
				    const struct vp_guest_kernel *kernel,
				    const struct vp_user_stack *stack)
{
	bool is_new;

	if (unwinder->processes.count == MAX_PROCESSES || unwinder->n_mappings == MAX_MAPPINGS)
		forget_processes(unwinder);
	uint32_t *known = vp_map_insert(&unwinder->by_tgid, stack->guest_pid,
					(uint32_t)unwinder->processes.count, &is_new);
	if (is_new)
		vp_vec_push(&unwinder->processes, ((struct process){.tgid = stack->guest_pid}));
	struct process *process = &unwinder->processes.at[*known];
	const uint64_t root_bits =
	    kernel->view.memory->arch == VP_GUEST_X86_64 ? X86_ROOT_BITS : ~0ULL;
	bool other = (process->root ^ stack->as_root) & root_bits;
	process->task = stack->task;
	if (is_new || ((other || process->incomplete) && stack->time > process->again_at)) {
		process->root = stack->as_root;
		if (other)
			process->again_ns = 0;
		read_process_at(unwinder, kernel, process, stack->time);
	}
	return process;
}

/* A stack that is being unwound. */
struct unwinding {
	struct vp_guest_unwinder *unwinder;
	const struct vp_guest_kernel *kernel;
	struct process *process;
	const struct vp_user_stack *stack;
	const struct vp_runtime_frames *runtimes; /* NULL: none */
	bool has_lines;                           /* unwinder->lines are current … */
	bool has_memory;                          /* … and the process had its memory then */
	bool read_later; /* data outside the copy was read, later than the sample */
	uint64_t needed; /* bytes of the stack, from the start of the copy on */
	struct unwinder_mapping last;
};

static const struct unwinder_mapping *mapping_among(const struct process *process, uint64_t address)
{
	size_t low = 0, high = process->mappings.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (process->mappings.at[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->mappings.count && process->mappings.at[low].start <= address
		   ? &process->mappings.at[low]
		   : NULL;
}

static const struct unwinder_mapping *unwinder_mapping_of(struct unwinding *unwinding,
							  uint64_t address)
{
	struct process *process = unwinding->process;
	uint64_t now = unwinding->stack->time;
	const struct unwinder_mapping *mapping;

	if (address - unwinding->last.start < unwinding->last.end - unwinding->last.start)
		return &unwinding->last;
	mapping = mapping_among(process, address);
	if (!mapping && now > process->again_at) {
		unwinding->has_lines = false;
		read_process_at(unwinding->unwinder, unwinding->kernel, process, now);
		mapping = mapping_among(process, address);
	}
	if (mapping)
		unwinding->last = *mapping;
	return mapping;
}

/* Starts reading of the present memory. The page tables of a process that has ended may be those of
 * another one by now. */
static void begin_lines(struct unwinding *unwinding)
{
	struct vp_guest_unwinder *unwinder = unwinding->unwinder;
	const struct process *process = unwinding->process;
	struct vp_guest_kernel near = *unwinding->kernel;
	struct vp_guest_task task;

	vp_guest_lines_begin(&unwinder->lines, unwinding->kernel->view.memory);
	near.view.memory = &unwinder->lines.memory;
	unwinding->has_lines = true;
	unwinding->has_memory = process->view_root &&
				vp_guest_task_read(&near, process->task, &task) &&
				task.tgid == process->tgid && task.root == process->view_root;
}

/* Reads guest memory in its present state, through page tables. */
static bool read_view(struct unwinding *unwinding, uint64_t address, void *bytes, size_t size)
{
	struct vp_guest_view view = view_of(unwinding->kernel, unwinding->process);

	if (!unwinding->has_lines)
		begin_lines(unwinding);
	view.memory = &unwinding->unwinder->lines.memory;
	return unwinding->has_memory && (int64_t)address > 0 &&
	       vp_guest_view_read(&view, address, bytes, size);
}

static struct unwinder_page *cached_page(struct vp_guest_unwinder *unwinder, uint64_t address)
{
	for (unsigned i = 0; i < PAGES; i++)
		if (unwinder->pages[i].address == address)
			return &unwinder->pages[i];
	return NULL;
}

/* The page of the process that was kept, or with `place` where it is kept from now on. */
static struct kept_page *kept_page(struct unwinding *unwinding, uint64_t address, bool place)
{
	struct vp_guest_unwinder *unwinder = unwinding->unwinder;
	const struct process *process = unwinding->process;

	for (unsigned i = 0; i < KEPT_PAGES; i++) {
		struct kept_page *kept = &unwinder->kept[i];
		if (kept->address == address && kept->task == process->task &&
		    kept->root == process->root)
			return kept;
	}
	if (!place)
		return NULL;
	struct kept_page *kept = &unwinder->kept[unwinder->n_kept++ % KEPT_PAGES];
	kept->address = address;
	kept->task = process->task;
	kept->root = process->root;
	return kept;
}

/* Reads a page of code, or of the stack. If the process has ended, outer frames are still as they
 * were at an earlier sample. */
static bool read_whole_page(struct unwinding *unwinding, uint64_t start, char *bytes)
{
	bool found = read_view(unwinding, start, bytes, VP_GUEST_PAGE);
	struct kept_page *kept = kept_page(unwinding, start, found);

	if (!kept)
		return found;
	memcpy(found ? kept->bytes : bytes, found ? bytes : kept->bytes, VP_GUEST_PAGE);
	return true;
}

/* Reads code, or the stack outside the copy. Outer frames are near each other: a page is read
 * once. */
static bool read_now(struct unwinding *unwinding, uint64_t address, void *bytes, size_t size)
{
	struct vp_guest_unwinder *unwinder = unwinding->unwinder;
	uint64_t start = address & ~(VP_GUEST_PAGE - 1ULL), at = address - start;
	struct unwinder_page *page = cached_page(unwinder, start);

	if (size > VP_GUEST_PAGE - at)
		return spend(unwinder, WORK_OF_READ) && read_view(unwinding, address, bytes, size);
	if (!page) {
		page = &unwinder->pages[unwinder->n_pages++ % PAGES];
		page->address = 1;
		if (!spend(unwinder, WORK_OF_PAGE) ||
		    !read_whole_page(unwinding, start, page->bytes))
			return false;
		page->address = start;
	}
	memcpy(bytes, page->bytes + at, size);
	return true;
}

/* Reads data outside the copy, later than the sample. */
static VP_NOINLINE bool read_outside(struct unwinding *unwinding, uint64_t address, void *bytes,
				     size_t size)
{
	uint64_t end = address + size - unwinding->stack->from;

	if (!mapping_among(unwinding->process, address)) {
		unwinding->read_later = true;
		/* Further away, it is not this stack. */
		if (end > unwinding->needed && end <= VP_USER_STACK_BYTES)
			unwinding->needed = end;
	}
	return read_now(unwinding, address, bytes, size);
}

static bool unwinder_read(void *context, uint64_t address, void *bytes, size_t size)
{
	struct unwinding *unwinding = context;
	const struct vp_user_stack *stack = unwinding->stack;
	uint64_t at = address - stack->from;

	if (at >= stack->bytes || size > stack->bytes - at)
		return read_outside(unwinding, address, bytes, size);
	if (at + size > unwinding->needed)
		unwinding->needed = at + size;
	if (size == sizeof(uint64_t)) /* nearly always */
		memcpy(bytes, stack->stack + at, sizeof(uint64_t));
	else
		memcpy(bytes, stack->stack + at, size);
	return true;
}

/* The vDSO has no file either, and is part of the kernel. */
static bool unwinder_is_generated(void *context, uint64_t address)
{
	const struct unwinder_mapping *mapping = unwinder_mapping_of(context, address);

	return mapping && !mapping->file && mapping->table == VP_NO_UNWIND_TABLE;
}

static bool unwinder_is_code(void *context, uint64_t address)
{
	return unwinder_mapping_of(context, address);
}

/* A word of the stack is rarely one: mappings are not read again. */
static bool unwinder_has_table(void *context, uint64_t address)
{
	struct unwinding *unwinding = context;
	const struct unwinder_mapping *mapping = spend(unwinding->unwinder, WORK_OF_GUESS)
						     ? mapping_among(unwinding->process, address)
						     : NULL;

	return mapping && mapping->table != VP_NO_UNWIND_TABLE;
}

/* Tries missing pages of the table again: the guest may have loaded them meanwhile. True: tried. */
static bool read_missing(struct unwinding *unwinding, const struct unwinder_mapping *mapping)
{
	struct vp_unwind_tables *tables = unwinding->unwinder->tables;
	struct vp_guest_file file;
	struct vp_unwind_file source;

	if (!mapping->file ||
	    !vp_unwind_tables_lacks(tables, mapping->table, unwinding->stack->time) ||
	    !spend(unwinding->unwinder, WORK_OF_FILE) ||
	    !vp_guest_file_open(unwinding->kernel, mapping->file, &file) ||
	    !source_of(&file, &source))
		return false;
	vp_unwind_tables_complete(tables, mapping->table, &source);
	return true;
}

static enum vp_cfi_result unwinder_find(void *context, uint64_t address, struct vp_cfi_row *row,
					struct vp_slice *expressions)
{
	struct unwinding *unwinding = context;
	struct vp_guest_unwinder *unwinder = unwinding->unwinder;
	const struct unwinder_mapping *mapping = unwinder_mapping_of(unwinding, address);

	if (!mapping || mapping->table == VP_NO_UNWIND_TABLE || !spend(unwinder, WORK_OF_ROW))
		return VP_CFI_NONE;
	uint64_t offset = address - mapping->start + mapping->pgoff;
	enum vp_cfi_result result = vp_unwind_tables_find(unwinder->tables, mapping->table, offset,
							  &unwinder->work, row, expressions);
	if (result != VP_CFI_FOUND && read_missing(unwinding, mapping))
		result = vp_unwind_tables_find(unwinder->tables, mapping->table, offset,
					       &unwinder->work, row, expressions);
	if (result == VP_CFI_FOUND && unwinding->kernel->view.memory->arch == VP_GUEST_X86_64)
		vp_quick_rows_put(&unwinder->quick, unwinding->process->version, address, row);
	return result;
}

static enum vp_user_step unwinder_step(void *context, struct vp_user_registers *now, bool exact)
{
	const struct vp_runtime_frames *runtimes = ((struct unwinding *)context)->runtimes;

	return runtimes ? runtimes->step(runtimes->context, now, exact) : VP_USER_STEP_NONE;
}

/* Makes the chain whole by a guess, if possible. */
static void guess_chain(struct unwinding *unwinding, const struct vp_user_program *program,
			const struct vp_user_registers *registers, struct vp_user_chain *chain)
{
	const bool read_later = unwinding->read_later;
	const uint64_t needed = unwinding->needed;
	struct vp_user_chain guessed;

	if (vp_user_chain_guess(program, registers, &guessed)) {
		*chain = guessed;
	} else {
		unwinding->read_later = read_later;
		unwinding->needed = needed;
	}
}

/* By rows that were used before, if possible, as for most stacks. */
static void make_chain(struct unwinding *unwinding, const struct vp_user_program *program,
		       const struct vp_user_registers *registers, struct vp_user_chain *ret)
{
	struct vp_guest_unwinder *unwinder = unwinding->unwinder;

	if (vp_quick_chain_make(&unwinder->quick, unwinding->process->version, program, registers,
				ret) &&
	    spend(unwinder, WORK_OF_ROW * ret->by_table))
		return;
	unwinding->read_later = false;
	vp_user_chain_make(program, registers, ret);
	if (ret->end != VP_CHAIN_WHOLE && ret->end != VP_CHAIN_TOO_DEEP)
		guess_chain(unwinding, program, registers, ret);
}

static struct vp_user_guess *last_guess(const struct unwinding *unwinding)
{
	const uint64_t task = unwinding->stack->task;
	const uint32_t version = unwinding->process->version;
	struct kept_guess *kept = &unwinding->unwinder->guesses[vp_hash64(task) % KEPT_GUESSES];

	if (kept->task != task || kept->version != version)
		*kept = (struct kept_guess){.task = task, .version = version};
	return &kept->guess;
}

void vp_guest_unwinder_run(struct vp_guest_unwinder *unwinder, const struct vp_guest_kernel *kernel,
			   const struct vp_runtime_frames *runtimes, struct vp_stack_job *job)
{
	const struct vp_user_stack *stack = &job->stack;
	struct vp_user_registers registers = {.known = stack->known};
	struct vp_user_chain chain;

	job->count = 0;
	if (stack->time / SECOND != unwinder->second) {
		unwinder->second = stack->time / SECOND;
		unwinder->work = WORK_PER_SECOND;
	}
	if (stack->bytes > sizeof(stack->stack))
		return;
	struct unwinding unwinding = {.unwinder = unwinder,
				      .kernel = kernel,
				      .process = find_process(unwinder, kernel, stack),
				      .stack = stack,
				      .runtimes = runtimes};
	if (!unwinding.process->mappings.count)
		return;
	for (unsigned i = 0; i < PAGES; i++)
		unwinder->pages[i].address = 1;
	memcpy(registers.value, stack->registers, sizeof(registers.value));
	const struct vp_user_arch arch = kernel->view.memory->arch == VP_GUEST_ARM64
					     ? vp_user_arch_arm(kernel->view.paging.va_bits)
					     : vp_user_arch_x86();
	const struct vp_user_program program = {.arch = &arch,
						.read = unwinder_read,
						.find = unwinder_find,
						.is_generated = unwinder_is_generated,
						.step = unwinder_step,
						.is_code = unwinder_is_code,
						.has_table = unwinder_has_table,
						.last = last_guess(&unwinding),
						.context = &unwinding};
	if (runtimes)
		runtimes->begin(runtimes->context, &program, job);
	make_chain(&unwinding, &program, &registers, &chain);
	if (runtimes)
		runtimes->name(runtimes->context, &program, job, &chain);
	job->needed = (uint32_t)unwinding.needed;
	job->end = (uint16_t)chain.end;
	job->flags = (chain.by_table ? VP_CHAIN_BY_TABLES : 0) |
		     (chain.has_link ? VP_CHAIN_LINK : 0) | (chain.guessed ? VP_CHAIN_GUESSED : 0) |
		     (unwinding.read_later ? VP_CHAIN_READ_LATER : 0);
	memcpy(job->ips, chain.ips, chain.count * sizeof(*chain.ips));
	__atomic_store_n(&job->count, chain.count, __ATOMIC_RELEASE);
}

static void put_wanted_file(void *context, const struct vp_build_id *build_id, const char *path)
{
	struct vp_buffer *answer = context;

	vp_buffer_string(answer, "file ");
	vp_build_id_put(build_id, answer);
	vp_buffer_string(answer, " ");
	vp_maps_escape(path, answer);
	vp_buffer_string(answer, "\n");
}

void vp_guest_unwinder_list(struct vp_guest_unwinder *unwinder, struct vp_buffer *answer)
{
	vp_unwind_tables_each_copy(unwinder->tables, put_wanted_file, answer);
}

static bool read_descriptor(void *context, uint64_t offset, void *bytes, size_t size)
{
	const int *fd = context;

	return offset <= INT64_MAX && vp_pread(*fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

void vp_guest_unwinder_take_file(struct vp_guest_unwinder *unwinder,
				 const struct vp_build_id *build_id, int fd)
{
	const struct vp_unwind_file copy = {
	    .size = INT64_MAX, .read = read_descriptor, .context = &fd};

	vp_unwind_tables_take_copy(unwinder->tables, build_id, &copy);
}
