/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/runtimes.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/lines.h"
#include "guestmem/memory/memory.h"
#include "guestmem/symbols/elf_segments.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/tasks.h"
#include "runtime/java.h"
#include "runtime/java_names.h"
#include "runtime/java_tables.h"
#include "runtime/process_memory.h"

enum {
	MAX_JAVA = 256, /* maximum number of processes of a guest */
	MAX_SEGMENTS = 32,
	MAX_EXPORTS = 1 << 14, /* libjvm.so has 1,100 */
	LONGEST_EXPORT = 64,
	MAX_REPORTED = 20,
	MAX_STARTS = 300, /* checks of a VM without a code heap: ten per second */
	MAX_TABLES = 20,  /* attempts to read the tables */
	/* Opening processes takes at most a tenth of a pCPU, even with forged data … */
	REST_PARTS = 9,
	MAX_DEBT_NS = 200000000, /* … after that time, which the first ones may use at once */
	EXPORTS = 3,             /* index among the sections of struct vp_elf_segments */
	EXPORT_NAMES = 4,        /* the same */
	EXPORTS_AT_ONCE = 64,
};
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)
/* Interval of searching for a process whose task is gone. */
#define LOST_NS 1000000000ULL

/* JAVA_STARTING: no code heap so far. */
enum java_state { JAVA_STARTING, JAVA_KNOWN, JAVA_UNREADABLE };

struct java {
	uint32_t space, tgid;
	uint64_t root, place; /* page tables, and address of a task */
	uint64_t lost;        /* time since which no task was found */
	enum java_state state;
	unsigned starts; /* number of checks while starting */
	bool has_tables;
	/* libjvm.so: */
	uint64_t file, base; /* its struct file, and load address: addresses in the process minus
				those in the file */
	Elf64_Phdr segments[MAX_SEGMENTS];
	unsigned n_segments;
	struct vp_java_vm vm; /* the memory is set in struct reading */
	uint64_t low, high, interpreter_low, interpreter_high;
	struct vp_java_names names;
	char *problem;
	bool damaged;
};

struct vp_guest_runtimes {
	VP_VEC(struct java *) java; /* in order of discovery */
	uint64_t debt, looked;      /* ns: time spent opening; time of the last update */
	struct vp_guest_lines lines;
};

/* Access to a process's memory during one check. */
struct reading {
	struct java *java;
	struct vp_guest_kernel kernel; /* with cached lines */
	struct vp_guest_view view;     /* with the process's page tables */
	struct vp_process_memory memory;
};

struct vp_guest_runtimes *vp_guest_runtimes_new(void)
{
	return vp_alloc(sizeof(struct vp_guest_runtimes));
}

void vp_guest_runtimes_free(struct vp_guest_runtimes *runtimes)
{
	if (!runtimes)
		return;
	vp_vec_each (&runtimes->java, at) {
		vp_java_names_deinit(&(*at)->names);
		free((*at)->problem);
		free(*at);
	}
	vp_vec_deinit(&runtimes->java);
	free(runtimes);
}

/* Constants of the library that the process has not accessed are only in the page cache. */
static bool read_library(const struct reading *reading, uint64_t addr, void *bytes, size_t size)
{
	const struct java *java = reading->java;
	struct vp_guest_file file;
	uint64_t at = addr - java->base;

	for (unsigned i = 0; i < java->n_segments; i++) {
		const Elf64_Phdr *segment = &java->segments[i];
		uint64_t inside = at - segment->p_vaddr;
		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) &&
		    at >= segment->p_vaddr && inside < segment->p_filesz &&
		    size <= segment->p_filesz - inside)
			return vp_guest_file_open(&reading->kernel, java->file, &file) &&
			       vp_guest_file_read(&file, segment->p_offset + inside, bytes, size);
	}
	return false;
}

static bool read_process(void *context, uint64_t addr, void *bytes, size_t size)
{
	const struct reading *reading = context;

	if (addr >= USER_END || size > USER_END - addr)
		return false;
	return vp_guest_view_read(&reading->view, addr, bytes, size) ||
	       read_library(reading, addr, bytes, size);
}

/* Whether it is a task of the process with the same page tables. */
static bool is_its_task(const struct java *java, const struct vp_guest_task *task)
{
	return task->tgid == java->tgid && task->root == java->root && task->root;
}

struct finding {
	struct java *java;
	bool found;
};

static bool runtimes_look_at(void *context, const struct vp_guest_task *task)
{
	struct finding *finding = context;

	finding->found = is_its_task(finding->java, task);
	if (finding->found)
		finding->java->place = task->address;
	return !finding->found;
}

/* Whether the process is still running. The thread seen before may have ended. */
static bool still_runs(struct java *java, const struct vp_guest_kernel *kernel)
{
	struct finding finding = {.java = java};
	struct vp_guest_task task;
	uint64_t now = vp_clock_monotonic();
	bool damaged;

	if (vp_guest_task_read(kernel, java->place, &task) && is_its_task(java, &task))
		return true;
	if (java->lost && now - java->lost < LOST_NS)
		return false;
	vp_guest_tasks_each(kernel, runtimes_look_at, &finding, &damaged);
	java->lost = finding.found ? 0 : now;
	return finding.found;
}

/* Starts access to the process's memory; false: it has ended. */
static bool reading_begin(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			  struct java *java, struct reading *ret)
{
	*ret = (struct reading){.java = java, .kernel = *kernel};
	vp_guest_lines_begin(&runtimes->lines, kernel->view.memory);
	ret->kernel.view.memory = &runtimes->lines.memory;
	if (!still_runs(java, &ret->kernel))
		return false;
	ret->view = (struct vp_guest_view){
	    .memory = &runtimes->lines.memory, .root = java->root, .paging = kernel->view.paging};
	ret->memory = (struct vp_process_memory){read_process, ret};
	java->vm.memory = &ret->memory;
	return true;
}

/* Reads the library's program headers, and the offset of the mapping. */
static bool read_segments(const struct vp_guest_file *file, const struct vp_guest_mapping *mapping,
			  struct java *java)
{
	Elf64_Ehdr header;

	if (!vp_guest_file_read(file, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phnum > MAX_SEGMENTS ||
	    !vp_guest_file_read(file, header.e_phoff, java->segments,
				header.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	java->n_segments = header.e_phnum;
	for (unsigned i = 0; i < java->n_segments; i++) {
		const Elf64_Phdr *segment = &java->segments[i];
		uint64_t start = segment->p_offset & ~(VP_GUEST_PAGE - 1ULL);
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    mapping->pgoff < start || mapping->pgoff - start >= segment->p_filesz)
			continue;
		java->base =
		    mapping->start - (segment->p_vaddr - segment->p_offset + mapping->pgoff);
		return true;
	}
	return false;
}

/* Notes one exported symbol, if it is needed. */
static void take_export(const struct vp_guest_file *file, const Elf64_Shdr *names,
			const Elf64_Sym *symbol, uint64_t base, uint64_t symbols[VP_JAVA_SYMBOLS])
{
	char name[LONGEST_EXPORT];
	uint64_t left = names->sh_size - symbol->st_name;

	if (!symbol->st_value || symbol->st_name >= names->sh_size ||
	    !vp_guest_file_read(file, names->sh_offset + symbol->st_name, name,
				left < sizeof(name) ? (size_t)left : sizeof(name)) ||
	    !memchr(name, 0, left < sizeof(name) ? (size_t)left : sizeof(name)))
		return;
	for (unsigned i = 0; i < VP_JAVA_SYMBOLS; i++)
		if (!strcmp(name, vp_java_symbol_name((enum vp_java_symbol)i)))
			symbols[i] = base + symbol->st_value;
}

static void find_exports(const struct vp_guest_file *file, const struct java *java,
			 uint64_t symbols[VP_JAVA_SYMBOLS])
{
	struct vp_elf_segments found;
	Elf64_Sym some[EXPORTS_AT_ONCE];

	if (!vp_elf_segments_find(file, java->segments, java->n_segments, &found))
		return;
	const Elf64_Shdr *table = &found.sections[EXPORTS];
	uint64_t count = table->sh_size / sizeof(*some);
	count = count < MAX_EXPORTS ? count : MAX_EXPORTS;
	for (uint64_t i = 0; i < count; i += EXPORTS_AT_ONCE) {
		uint64_t n = count - i < EXPORTS_AT_ONCE ? count - i : EXPORTS_AT_ONCE;
		if (!vp_guest_file_read(file, table->sh_offset + i * sizeof(*some), some,
					(size_t)n * sizeof(*some)))
			continue;
		for (uint64_t j = 0; j < n; j++)
			take_export(file, &found.sections[EXPORT_NAMES], &some[j], java->base,
				    symbols);
	}
}

static void set_problem(struct java *java, struct vp_error *error)
{
	free(java->problem);
	java->problem = vp_strdup(vp_error_message(error));
	vp_error_free(error);
}

/* Notes the ranges of code. The interpreter is a single block. */
static bool note_interpreter(void *context, const struct vp_java_code *code)
{
	struct java *java = context;

	if (code->kind != VP_JAVA_INTERPRETER)
		return true;
	java->interpreter_low = code->start;
	java->interpreter_high = code->end;
	return false;
}

static void note_bounds(struct java *java)
{
	bool damaged;

	java->low = UINT64_MAX;
	java->high = 0;
	for (unsigned i = 0; i < java->vm.n_heaps; i++) {
		const struct vp_java_heap *heap = &java->vm.heaps[i];
		java->low = heap->low < java->low ? heap->low : java->low;
		java->high = heap->high > java->high ? heap->high : java->high;
	}
	if (!java->interpreter_high)
		vp_java_code_each(&java->vm, note_interpreter, java, &damaged);
}

static struct vp_error *read_tables(struct java *java, const struct reading *reading)
{
	uint64_t symbols[VP_JAVA_SYMBOLS] = {0};
	struct vp_guest_file file;

	if (java->has_tables)
		return NULL;
	if (!vp_guest_file_open(&reading->kernel, java->file, &file))
		return vp_error_new("libjvm.so cannot be read");
	find_exports(&file, java, symbols);
	VP_TRY(vp_java_tables_read(&reading->memory, symbols, &java->vm.tables));
	java->has_tables = true;
	java->starts = 0;
	return NULL;
}

/* Reads the tables, and then the names of all present code. */
static void java_open(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
		      struct java *java)
{
	struct reading reading;

	if (java->starts++ == (java->has_tables ? MAX_STARTS : MAX_TABLES))
		java->state = JAVA_UNREADABLE;
	if (java->state != JAVA_STARTING || !reading_begin(runtimes, kernel, java, &reading))
		return;
	struct vp_error *error = read_tables(java, &reading);
	if (!error)
		error = vp_java_heaps_read(&java->vm);
	if (error) {
		set_problem(java, error);
		return;
	}
	java->state = JAVA_KNOWN;
	note_bounds(java);
	vp_java_names_see_all(&java->names, &java->vm, vp_clock_monotonic(), &java->damaged);
}

static void open_in_time(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			 struct java *java)
{
	uint64_t start = vp_clock_monotonic(), paid = (start - runtimes->looked) / REST_PARTS;

	runtimes->debt -= paid < runtimes->debt ? paid : runtimes->debt;
	runtimes->looked = start;
	if (runtimes->debt > MAX_DEBT_NS)
		return;
	java_open(runtimes, kernel, java);
	runtimes->debt += vp_clock_monotonic() - start;
}

static bool is_libjvm(const char *path)
{
	static const char name[] = "/libjvm.so";
	size_t size = strlen(path);

	return size >= sizeof(name) - 1 && !strcmp(path + size - (sizeof(name) - 1), name);
}

/* The latest one with that pid. */
static struct java *java_of(const struct vp_guest_runtimes *runtimes, uint32_t tgid)
{
	for (size_t i = runtimes->java.count; i-- > 0;)
		if (runtimes->java.at[i]->tgid == tgid)
			return runtimes->java.at[i];
	return NULL;
}

void vp_guest_runtimes_add(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   const struct vp_guest_library *library)
{
	const struct vp_guest_task *task = library->task;
	const struct java *known = java_of(runtimes, task->tgid);
	struct vp_guest_file file;

	if (!is_libjvm(library->path) || (known && known->space == library->space) ||
	    runtimes->java.count == MAX_JAVA)
		return;
	struct java *java = vp_alloc(sizeof(*java));
	*java = (struct java){.space = library->space,
			      .tgid = task->tgid,
			      .root = task->root,
			      .place = task->address,
			      .file = library->mapping->file};
	vp_vec_push(&runtimes->java, java);
	if (!vp_guest_file_open(kernel, java->file, &file) ||
	    !read_segments(&file, library->mapping, java)) {
		java->state = JAVA_UNREADABLE;
		set_problem(java, vp_error_new("the headers of libjvm.so cannot be read"));
		return;
	}
	open_in_time(runtimes, kernel, java);
}

void vp_guest_runtimes_step(struct vp_guest_runtimes *runtimes,
			    const struct vp_guest_kernel *kernel)
{
	vp_vec_each (&runtimes->java, java)
		if ((*java)->state == JAVA_STARTING)
			open_in_time(runtimes, kernel, *java);
}

/* Code heaps grow. */
static bool begin_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
		      uint32_t tgid, struct reading *reading)
{
	struct java *java = java_of(runtimes, tgid);

	if (!java || java->state != JAVA_KNOWN || !reading_begin(runtimes, kernel, java, reading))
		return false;
	struct vp_error *error = vp_java_heaps_read(&java->vm);
	bool done = !error;
	vp_error_free(error);
	java->names.failed += !done;
	return done;
}

void vp_guest_runtimes_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   uint32_t tgid, uint64_t addr, uint64_t time)
{
	struct reading reading;

	if (begin_hit(runtimes, kernel, tgid, &reading))
		vp_java_names_see(&reading.java->names, &reading.java->vm, addr, time, NULL);
}

void vp_guest_runtimes_hit_method(struct vp_guest_runtimes *runtimes,
				  const struct vp_guest_kernel *kernel, uint32_t tgid,
				  uint64_t method, uint64_t time)
{
	struct reading reading;

	if (begin_hit(runtimes, kernel, tgid, &reading))
		vp_java_names_see_method(&reading.java->names, &reading.java->vm, method, time);
}

void vp_guest_runtimes_list(const struct vp_guest_runtimes *runtimes, struct vp_buffer *answer)
{
	vp_vec_each (&runtimes->java, at) {
		const struct java *java = *at;
		if (java->state == JAVA_STARTING)
			vp_buffer_string(answer, "starting\n");
		if (java->state == JAVA_KNOWN)
			vp_buffer_printf(
			    answer, "java %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 "\n",
			    java->tgid, java->low, java->high, java->interpreter_low,
			    java->interpreter_high);
	}
}

static void write_names(const struct java *java, struct vp_maps_writer *writer)
{
	vp_vec_each (&java->names.births, birth)
		vp_maps_write_jit_from(writer, java->space, birth->addr, birth->size,
				       vp_intern_text(&java->names.texts, birth->name),
				       birth->from_ns);
}

static void write_problem(const struct java *java, struct vp_maps_writer *writer)
{
	if (java->state != JAVA_KNOWN)
		vp_maps_write_note(writer, "Java process %u: methods have no names: %s", java->tgid,
				   java->problem ? java->problem : "it ended");
	else if (java->names.births.count == VP_JAVA_MAX_NAMES)
		vp_maps_write_note(writer,
				   "Java process %u: more than %d methods were compiled: "
				   "the names of the rest are missing",
				   java->tgid, VP_JAVA_MAX_NAMES);
	else if (java->names.failed || java->damaged)
		vp_maps_write_note(
		    writer, "Java process %u: %" PRIu64 " times, code or a method had no name%s",
		    java->tgid, java->names.failed,
		    java->damaged ? "; the list of code was read in part" : "");
}

void vp_guest_runtimes_write(struct vp_guest_runtimes *runtimes,
			     const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer)
{
	unsigned reported = 0;

	vp_vec_each (&runtimes->java, at) {
		struct reading reading;
		struct java *java = *at;
		if (begin_hit(runtimes, kernel, java->tgid, &reading) && reading.java == java)
			vp_java_names_see_all(&java->names, &java->vm, vp_clock_monotonic(),
					      &java->damaged);
		write_names(java, writer);
		if (reported < MAX_REPORTED) {
			write_problem(java, writer);
			reported++;
		}
	}
}
