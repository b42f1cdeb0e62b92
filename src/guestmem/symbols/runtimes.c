/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/symbols/runtimes.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "guestmem/kernel/kernel.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/lines.h"
#include "guestmem/memory/memory.h"
#include "guestmem/symbols/elf_segments.h"
#include "guestmem/tasks/pagecache.h"
#include "guestmem/tasks/tasks.h"
#include "maps/format.h"
#include "runtime/code_names.h"
#include "runtime/java.h"
#include "runtime/java_names.h"
#include "runtime/java_tables.h"
#include "runtime/process_memory.h"
#include "runtime/python.h"
#include "runtime/python_names.h"
#include "runtime/v8.h"
#include "runtime/v8_names.h"

enum {
	MAX_RUNTIMES = 1024, /* maximum number of processes of a guest */
	MAX_SEGMENTS = 32,
	MAX_EXPORTS = 1 << 17,   /* libjvm.so has 1,100, python3.11 2,200, node 75,000 */
	LARGEST_NAMES = 8 << 20, /* bytes of exported names: node has 5.3 MB */
	MAX_REPORTED = 20,
	MAX_STARTS = 300, /* checks of a VM without a code heap: ten per second */
	MAX_TABLES = 20,  /* attempts to read the tables */
	/* Opening processes takes at most a tenth of a pCPU, even with forged data … */
	REST_PARTS = 9,
	MAX_DEBT_NS = 200000000, /* … after that time, which the first ones may use at once */
	EXPORTS = 3,             /* index among the sections of struct vp_elf_segments */
	EXPORT_NAMES = 4,        /* the same */
	EXPORTS_AT_ONCE = 64,
	MAX_SYMBOLS = 32,
	MAX_FILES = 64, /* cached files */
};
/* Upper limit of user space with 5 levels of page tables. */
#define USER_END (1ULL << 56)
/* Maximum size of V8's code range: 512 MiB. Generated code farther away is not V8's. */
#define LARGEST_CODE (1ULL << 30)
/* Interval of searching for a process whose task is gone. */
#define LOST_NS 1000000000ULL

enum runtime_kind { RUNTIME_JAVA, RUNTIME_PYTHON, RUNTIME_V8 };

/* RUNTIME_STARTING: no code heap so far, or tables that cannot be read. */
enum runtime_state { RUNTIME_STARTING, RUNTIME_KNOWN, RUNTIME_UNREADABLE, RUNTIME_ENDED };

_Static_assert((unsigned)VP_JAVA_SYMBOLS <= MAX_SYMBOLS &&
		   (unsigned)VP_PYTHON_SYMBOLS <= MAX_SYMBOLS &&
		   (unsigned)VP_V8_SYMBOLS <= MAX_SYMBOLS,
	       "the symbols of all runtimes");

/* An exported symbol of a library, as in the file; `value` 0: not found. */
struct export
{
	uint64_t value, size;
};

struct runtime_thread {
	uint64_t state;
	uint32_t tid, native_id;
};

/* A process with a runtime. */
struct runtime {
	enum runtime_kind kind;
	uint32_t space, tgid;
	uint64_t root, place; /* page tables, and address of a task */
	uint64_t lost;        /* time since which no task was found */
	enum runtime_state state;
	unsigned starts; /* number of checks while starting */
	bool has_tables;
	/* The library: */
	bool has_base;
	uint64_t file, base; /* its struct file, and load address: addresses in the process minus
				those in the file */
	Elf64_Phdr segments[MAX_SEGMENTS];
	unsigned n_segments;
	/* Java: ranges of generated code, and of the interpreter in it. Python: ranges of the
	 * interpreter's code, and of the function that executes frames. V8: ranges of generated
	 * code, and of V8's own. */
	uint64_t low, high, interpreter_low, interpreter_high;
	struct vp_java_vm vm; /* the memory is set in struct reading */
	struct vp_python python;
	struct vp_v8 v8;
	VP_VEC(struct runtime_thread) threads; /* Python only */
	struct vp_code_names names;
	char *problem;
	bool damaged;
};

/* Cached symbols of a library, which several processes may map. */
struct known_file {
	struct vp_build_id id;
	enum runtime_kind kind;
	struct export exports[MAX_SYMBOLS];
};

struct vp_guest_runtimes {
	VP_VEC(struct runtime *) all; /* in order of discovery */
	uint64_t debt, looked;        /* ns: time spent opening; time of the last update */
	struct known_file files[MAX_FILES];
	unsigned n_files;
	struct vp_guest_lines lines;
};

/* Access to a process's memory during one check. */
struct reading {
	struct runtime *runtime;
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
	vp_vec_each (&runtimes->all, at) {
		vp_code_names_deinit(&(*at)->names);
		vp_vec_deinit(&(*at)->threads);
		free((*at)->problem);
		free(*at);
	}
	vp_vec_deinit(&runtimes->all);
	free(runtimes);
}

/* Reads constants of the library from the page cache: pages that the process has not accessed are
 * only there. */
static bool read_library(const struct reading *reading, uint64_t addr, void *bytes, size_t size)
{
	const struct runtime *runtime = reading->runtime;
	struct vp_guest_file file;
	uint64_t at = addr - runtime->base;

	for (unsigned i = 0; i < runtime->n_segments; i++) {
		const Elf64_Phdr *segment = &runtime->segments[i];
		uint64_t inside = at - segment->p_vaddr;
		if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W) &&
		    at >= segment->p_vaddr && inside < segment->p_filesz &&
		    size <= segment->p_filesz - inside)
			return vp_guest_file_open(&reading->kernel, runtime->file, &file) &&
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
static bool is_its_task(const struct runtime *runtime, const struct vp_guest_task *task)
{
	return task->tgid == runtime->tgid && task->root == runtime->root && task->root;
}

struct finding {
	struct runtime *runtime;
	bool found;
};

static bool runtimes_look_at(void *context, const struct vp_guest_task *task)
{
	struct finding *finding = context;

	finding->found = is_its_task(finding->runtime, task);
	if (finding->found)
		finding->runtime->place = task->address;
	return !finding->found;
}

/* Whether the process is still running. The thread seen before may have ended. */
static bool still_runs(struct runtime *runtime, const struct vp_guest_kernel *kernel)
{
	struct finding finding = {.runtime = runtime};
	struct vp_guest_task task;
	uint64_t now = vp_clock_monotonic();
	bool damaged;

	if (vp_guest_task_read(kernel, runtime->place, &task) && is_its_task(runtime, &task))
		return true;
	if (runtime->lost && now - runtime->lost < LOST_NS)
		return false;
	vp_guest_tasks_each(kernel, runtimes_look_at, &finding, &damaged);
	runtime->lost = finding.found ? 0 : now;
	return finding.found;
}

/* Starts access to the process's memory; false: it has ended. */
static bool reading_begin(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			  struct runtime *runtime, struct reading *ret)
{
	*ret = (struct reading){.runtime = runtime, .kernel = *kernel};
	vp_guest_lines_begin(&runtimes->lines, kernel->view.memory);
	ret->kernel.view.memory = &runtimes->lines.memory;
	if (!still_runs(runtime, &ret->kernel))
		return false;
	ret->view = (struct vp_guest_view){.memory = &runtimes->lines.memory,
					   .root = runtime->root,
					   .paging = kernel->view.paging};
	ret->memory = (struct vp_process_memory){read_process, ret};
	runtime->vm.memory = &ret->memory;
	runtime->python.memory = &ret->memory;
	runtime->v8.memory = &ret->memory;
	return true;
}

/* Reads the library's program headers, and the offset of the mapping. */
static bool read_segments(const struct vp_guest_file *file, const struct vp_guest_mapping *mapping,
			  struct runtime *runtime)
{
	Elf64_Ehdr header;

	if (!vp_guest_file_read(file, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
	    header.e_phnum > MAX_SEGMENTS ||
	    !vp_guest_file_read(file, header.e_phoff, runtime->segments,
				header.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	runtime->n_segments = header.e_phnum;
	for (unsigned i = 0; i < runtime->n_segments; i++) {
		const Elf64_Phdr *segment = &runtime->segments[i];
		uint64_t start = segment->p_offset & ~(VP_GUEST_PAGE - 1ULL);
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    mapping->pgoff < start || mapping->pgoff - start >= segment->p_filesz)
			continue;
		/* V8 maps its own code, inside a segment, a second time. */
		if (runtime->kind == RUNTIME_V8 && mapping->pgoff != start)
			return false;
		runtime->base =
		    mapping->start - (segment->p_vaddr - segment->p_offset + mapping->pgoff);
		runtime->has_base = true;
		return true;
	}
	return false;
}

static const char *symbol_name(enum runtime_kind kind, unsigned number)
{
	switch (kind) {
	case RUNTIME_JAVA:
		return vp_java_symbol_name((enum vp_java_symbol)number);
	case RUNTIME_PYTHON:
		return vp_python_symbol_name((enum vp_python_symbol)number);
	default:
		return vp_v8_symbol_name((enum vp_v8_symbol)number);
	}
}

static unsigned symbol_count(enum runtime_kind kind)
{
	static const unsigned counts[] = {[RUNTIME_JAVA] = VP_JAVA_SYMBOLS,
					  [RUNTIME_PYTHON] = VP_PYTHON_SYMBOLS,
					  [RUNTIME_V8] = VP_V8_SYMBOLS};

	return counts[kind];
}

/* Reads the names of exported symbols; names on missing pages are empty. */
static void read_names(const struct vp_guest_file *file, const Elf64_Shdr *names,
		       struct vp_buffer *ret)
{
	uint64_t size = names->sh_size < LARGEST_NAMES ? names->sh_size : LARGEST_NAMES;
	char *to = vp_buffer_extend(ret, (size_t)size + 1);

	memset(to, 0, (size_t)size + 1);
	for (uint64_t at = 0, piece; at < size; at += piece) {
		piece = VP_GUEST_PAGE - (names->sh_offset + at) % VP_GUEST_PAGE;
		piece = piece < size - at ? piece : size - at;
		if (!vp_guest_file_read(file, names->sh_offset + at, to + at, (size_t)piece))
			memset(to + at, 0, (size_t)piece);
	}
}

/* Notes one exported symbol, if it is needed. */
static void take_export(const struct vp_buffer *names, const Elf64_Sym *symbol,
			enum runtime_kind kind, struct export *exports)
{
	if (!symbol->st_value || symbol->st_name >= names->size)
		return;
	for (unsigned i = 0; i < symbol_count(kind); i++)
		if (!strcmp(names->bytes + symbol->st_name, symbol_name(kind, i)))
			exports[i] = (struct export){symbol->st_value, symbol->st_size};
}

static void find_exports(const struct vp_guest_file *file, const struct runtime *runtime,
			 struct export *exports)
{
	struct vp_elf_segments found;
	Elf64_Sym some[EXPORTS_AT_ONCE];
	struct vp_buffer names = {0};

	if (!vp_elf_segments_find(file, runtime->segments, runtime->n_segments, &found))
		return;
	const Elf64_Shdr *table = &found.sections[EXPORTS];
	uint64_t count = table->sh_size / sizeof(*some);
	count = count < MAX_EXPORTS ? count : MAX_EXPORTS;
	read_names(file, &found.sections[EXPORT_NAMES], &names);
	for (uint64_t i = 0; i < count; i += EXPORTS_AT_ONCE) {
		uint64_t n = count - i < EXPORTS_AT_ONCE ? count - i : EXPORTS_AT_ONCE;
		if (!vp_guest_file_read(file, table->sh_offset + i * sizeof(*some), some,
					(size_t)n * sizeof(*some)))
			continue;
		for (uint64_t j = 0; j < n; j++)
			take_export(&names, &some[j], runtime->kind, exports);
	}
	vp_buffer_deinit(&names);
}

static bool has_all(enum runtime_kind kind, const struct export *exports)
{
	uint64_t values[MAX_SYMBOLS];
	bool all = true;

	for (unsigned i = 0; i < symbol_count(kind); i++) {
		values[i] = exports[i].value;
		all = all && values[i];
	}
	return kind == RUNTIME_V8 ? vp_v8_has_symbols(values) : all;
}

/* The same, with a cache of other processes' libraries. */
static void find_exports_once(struct vp_guest_runtimes *runtimes, const struct vp_guest_file *file,
			      const struct runtime *runtime, struct export *exports)
{
	struct known_file now = {.kind = runtime->kind};
	bool has_id = vp_guest_file_build_id(file, &now.id);

	for (unsigned i = 0; i < runtimes->n_files && has_id; i++) {
		const struct known_file *known = &runtimes->files[i];
		if (known->kind == now.kind && !memcmp(&known->id, &now.id, sizeof(now.id))) {
			memcpy(exports, known->exports, sizeof(known->exports));
			return;
		}
	}
	find_exports(file, runtime, exports);
	if (!has_id || !has_all(runtime->kind, exports) || runtimes->n_files == MAX_FILES)
		return;
	memcpy(now.exports, exports, sizeof(now.exports));
	runtimes->files[runtimes->n_files++] = now;
}

static void set_problem(struct runtime *runtime, struct vp_error *error)
{
	free(runtime->problem);
	runtime->problem = vp_strdup(vp_error_message(error));
	vp_error_free(error);
}

/* Notes the range of Java's interpreter, which is a single block. */
static bool note_interpreter(void *context, const struct vp_java_code *code)
{
	struct runtime *runtime = context;

	if (code->kind != VP_JAVA_INTERPRETER)
		return true;
	runtime->interpreter_low = code->start;
	runtime->interpreter_high = code->end;
	return false;
}

static void note_bounds(struct runtime *runtime)
{
	runtime->low = UINT64_MAX;
	runtime->high = 0;
	for (unsigned i = 0; i < runtime->vm.n_heaps; i++) {
		const struct vp_java_heap *heap = &runtime->vm.heaps[i];
		runtime->low = heap->low < runtime->low ? heap->low : runtime->low;
		runtime->high = heap->high > runtime->high ? heap->high : runtime->high;
	}
}

/* Notes the range of the function that executes frames, and of the segment that contains it. */
static void note_python_code(struct runtime *runtime, const struct export *loop)
{
	for (unsigned i = 0; i < runtime->n_segments; i++) {
		const Elf64_Phdr *segment = &runtime->segments[i];
		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    loop->value < segment->p_vaddr ||
		    loop->value - segment->p_vaddr >= segment->p_memsz)
			continue;
		runtime->low = runtime->base + segment->p_vaddr;
		runtime->high = runtime->low + segment->p_memsz;
	}
	runtime->interpreter_low = runtime->base + loop->value;
	runtime->interpreter_high = runtime->interpreter_low + loop->size;
}

static const char *library_name(enum runtime_kind kind)
{
	static const char *const names[] = {[RUNTIME_JAVA] = "libjvm.so",
					    [RUNTIME_PYTHON] = "the interpreter",
					    [RUNTIME_V8] = "the file with V8"};

	return names[kind];
}

static struct vp_error *read_tables(struct vp_guest_runtimes *runtimes, struct runtime *runtime,
				    const struct reading *reading)
{
	struct export exports[MAX_SYMBOLS] = {0};
	uint64_t symbols[MAX_SYMBOLS];
	struct vp_guest_file file;

	if (runtime->has_tables)
		return NULL;
	if (!vp_guest_file_open(&reading->kernel, runtime->file, &file))
		return vp_error_new("%s cannot be read", library_name(runtime->kind));
	find_exports_once(runtimes, &file, runtime, exports);
	for (unsigned i = 0; i < MAX_SYMBOLS; i++)
		symbols[i] = exports[i].value ? runtime->base + exports[i].value : 0;
	if (runtime->kind == RUNTIME_JAVA) {
		VP_TRY(vp_java_tables_read(&reading->memory, symbols, &runtime->vm.tables));
	} else if (runtime->kind == RUNTIME_V8) {
		VP_TRY(vp_v8_open(&reading->memory, symbols, &runtime->v8));
	} else {
		VP_TRY(vp_python_open(&reading->memory, symbols, &runtime->python));
		note_python_code(runtime, &exports[VP_PYTHON_LOOP]);
	}
	runtime->has_tables = true;
	runtime->starts = 0;
	return NULL;
}

static bool take_thread(void *context, const struct vp_python_thread *seen)
{
	struct runtime *runtime = context;

	vp_vec_push(&runtime->threads, ((struct runtime_thread){.state = seen->state,
								.tid = seen->native_id,
								.native_id = seen->native_id}));
	return true;
}

/* Reads the process's threads. In a container their ids are those of its pid namespace; then only
 * the first thread, the last one in the list, is known: its tid is the process's pid. */
static void read_threads(struct runtime *runtime)
{
	bool known = false;

	runtime->threads.count = 0;
	if (!vp_python_threads_each(&runtime->python, take_thread, runtime))
		runtime->damaged = true;
	vp_vec_each (&runtime->threads, thread)
		known |= thread->tid == runtime->tgid;
	if (known || !runtime->threads.count)
		return;
	struct runtime_thread first = runtime->threads.at[runtime->threads.count - 1];
	first.tid = runtime->tgid;
	runtime->threads.at[0] = first;
	runtime->threads.count = 1;
}

/* Executable mappings of V8 while they are read: the largest group of them that fits into a code
 * range. */
struct v8_code {
	const struct runtime *runtime;
	uint64_t vdso;
	uint64_t low, high, bytes; /* of the last group */
	uint64_t best_low, best_high, best_bytes;
};

/* Whether the mapping is not where the loader put that part of the file: V8 maps its own code a
 * second time, near generated code. */
static bool is_copy(const struct runtime *runtime, const struct vp_guest_mapping *mapping)
{
	if (mapping->file != runtime->file)
		return false;
	for (unsigned i = 0; i < runtime->n_segments; i++) {
		const Elf64_Phdr *segment = &runtime->segments[i];
		uint64_t start = segment->p_offset & ~(VP_GUEST_PAGE - 1ULL);
		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    mapping->pgoff >= start &&
		    mapping->pgoff - segment->p_offset + VP_GUEST_PAGE <
			segment->p_filesz + VP_GUEST_PAGE)
			return mapping->start != runtime->base + segment->p_vaddr +
						     (mapping->pgoff - segment->p_offset);
	}
	return false;
}

static void take_v8_code(void *context, const struct vp_guest_mapping *mapping)
{
	struct v8_code *code = context;

	if (mapping->file ? !is_copy(code->runtime, mapping) : mapping->start == code->vdso)
		return;
	if (!code->high || mapping->end - code->low > LARGEST_CODE) {
		code->low = mapping->start;
		code->bytes = 0;
	}
	code->high = mapping->end;
	code->bytes += mapping->end - mapping->start;
	if (code->bytes <= code->best_bytes)
		return;
	code->best_low = code->low;
	code->best_high = code->high;
	code->best_bytes = code->bytes;
}

/* Finds V8's generated code. */
static struct vp_error *read_v8_code(struct runtime *runtime, const struct reading *reading)
{
	const struct vp_guest_kernel *kernel = &reading->kernel;
	struct v8_code code = {.runtime = runtime};
	struct vp_guest_task task;

	if (!vp_guest_task_read(kernel, runtime->place, &task) || !task.mm)
		return vp_error_new("its mappings cannot be read");
	if (kernel->pack.at.mm_vdso == VP_PACK_NONE ||
	    !vp_guest_view_u64(&kernel->view, task.mm + kernel->pack.at.mm_vdso, &code.vdso))
		code.vdso = 0;
	vp_guest_mappings_each(kernel, task.mm, take_v8_code, &code);
	runtime->low = code.best_low;
	runtime->high = code.best_high;
	vp_v8_find_blob(&runtime->v8);
	runtime->interpreter_low = runtime->v8.blob_low;
	runtime->interpreter_high = runtime->v8.blob_high;
	return NULL;
}

static struct vp_error *read_code(struct runtime *runtime, const struct reading *reading)
{
	if (runtime->kind == RUNTIME_JAVA)
		return vp_java_heaps_read(&runtime->vm);
	if (runtime->kind == RUNTIME_V8)
		return read_v8_code(runtime, reading);
	read_threads(runtime);
	return NULL;
}

/* Reads the runtime's tables, and then its code: Java's names, or Python's threads. */
static void runtime_open(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			 struct runtime *runtime)
{
	struct reading reading;

	if (runtime->starts++ == (runtime->has_tables ? MAX_STARTS : MAX_TABLES))
		runtime->state = RUNTIME_UNREADABLE;
	if (runtime->state != RUNTIME_STARTING ||
	    !reading_begin(runtimes, kernel, runtime, &reading))
		return;
	struct vp_error *error = read_tables(runtimes, runtime, &reading);
	if (!error)
		error = read_code(runtime, &reading);
	if (error) {
		set_problem(runtime, error);
		return;
	}
	runtime->state = RUNTIME_KNOWN;
	if (runtime->kind != RUNTIME_JAVA)
		return;
	note_bounds(runtime);
	vp_java_code_each(&runtime->vm, note_interpreter, runtime, &runtime->damaged);
	vp_java_names_see_all(&runtime->names, &runtime->vm, vp_clock_monotonic(),
			      &runtime->damaged);
}

/* Reads the list of threads, or V8's code, again. */
static void runtime_update(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   struct runtime *runtime)
{
	struct reading reading;
	bool was_lost = runtime->lost != 0;

	if (reading_begin(runtimes, kernel, runtime, &reading)) {
		runtime->damaged = false;
		vp_error_free(read_code(runtime, &reading));
	} else if (was_lost && vp_clock_monotonic() - runtime->lost < LOST_NS) {
		return; /* between two searches of the process */
	} else if (was_lost) {
		runtime->state = RUNTIME_ENDED;
		runtime->threads.count = 0;
	}
}

static void in_time(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
		    struct runtime *runtime,
		    void (*what)(struct vp_guest_runtimes *runtimes,
				 const struct vp_guest_kernel *kernel, struct runtime *runtime))
{
	uint64_t start = vp_clock_monotonic(), paid = (start - runtimes->looked) / REST_PARTS;

	runtimes->debt -= paid < runtimes->debt ? paid : runtimes->debt;
	runtimes->looked = start;
	if (runtimes->debt > MAX_DEBT_NS)
		return;
	what(runtimes, kernel, runtime);
	runtimes->debt += vp_clock_monotonic() - start;
}

/* Whether the file may be a runtime, from its name. */
static bool is_library(const char *path, enum runtime_kind *kind)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (!strcmp(name, "libjvm.so"))
		*kind = RUNTIME_JAVA;
	else if (!strncmp(name, "python3", 7) || !strncmp(name, "libpython3", 10))
		*kind = RUNTIME_PYTHON;
	else if (!strcmp(name, "node") || !strcmp(name, "nodejs") ||
		 !strncmp(name, "libnode.so", 10))
		*kind = RUNTIME_V8;
	else
		return false;
	return true;
}

/* Returns the latest entry with that pid. */
static struct runtime *runtime_of(const struct vp_guest_runtimes *runtimes, uint32_t tgid)
{
	for (size_t i = runtimes->all.count; i-- > 0;)
		if (runtimes->all.at[i]->tgid == tgid)
			return runtimes->all.at[i];
	return NULL;
}

/* Returns the process's entry for a library, new if necessary; NULL: not needed. A program linked
 * with libpython or libnode has the interpreter in that library. */
static struct runtime *entry_of(struct vp_guest_runtimes *runtimes,
				const struct vp_guest_library *library, enum runtime_kind kind)
{
	struct runtime *known = runtime_of(runtimes, library->task->tgid);

	if (known && known->space == library->space)
		return known->kind == kind && kind != RUNTIME_JAVA &&
			       known->state != RUNTIME_KNOWN &&
			       (known->file != library->mapping->file || !known->has_base)
			   ? known
			   : NULL;
	if (runtimes->all.count == MAX_RUNTIMES)
		return NULL;
	struct runtime *runtime = vp_alloc(sizeof(*runtime));
	vp_vec_push(&runtimes->all, runtime);
	return runtime;
}

void vp_guest_runtimes_add(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   const struct vp_guest_library *library)
{
	const struct vp_guest_task *task = library->task;
	enum runtime_kind kind;
	struct vp_guest_file file;

	struct runtime *runtime =
	    is_library(library->path, &kind) ? entry_of(runtimes, library, kind) : NULL;
	if (!runtime)
		return;
	free(runtime->problem);
	*runtime = (struct runtime){.kind = kind,
				    .space = library->space,
				    .tgid = task->tgid,
				    .root = task->root,
				    .place = task->address,
				    .file = library->mapping->file};
	if (!vp_guest_file_open(kernel, runtime->file, &file) ||
	    !read_segments(&file, library->mapping, runtime)) {
		runtime->state = RUNTIME_UNREADABLE;
		set_problem(runtime,
			    vp_error_new("the headers of %s cannot be read", library_name(kind)));
		return;
	}
	in_time(runtimes, kernel, runtime, runtime_open);
}

void vp_guest_runtimes_step(struct vp_guest_runtimes *runtimes,
			    const struct vp_guest_kernel *kernel)
{
	vp_vec_each (&runtimes->all, runtime) {
		if ((*runtime)->state == RUNTIME_STARTING)
			in_time(runtimes, kernel, *runtime, runtime_open);
		else if ((*runtime)->state == RUNTIME_KNOWN && (*runtime)->kind != RUNTIME_JAVA)
			in_time(runtimes, kernel, *runtime, runtime_update);
	}
}

/* Starts access to the process's memory. Reads Java's code heaps again, since they grow. */
static bool begin_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
		      struct runtime *runtime, struct reading *reading)
{
	if (!runtime || runtime->state != RUNTIME_KNOWN ||
	    !reading_begin(runtimes, kernel, runtime, reading))
		return false;
	if (runtime->kind != RUNTIME_JAVA)
		return true;
	struct vp_error *error = vp_java_heaps_read(&runtime->vm);
	bool done = !error;
	vp_error_free(error);
	if (done)
		note_bounds(runtime);
	runtime->names.failed += !done;
	return done;
}

void vp_guest_runtimes_hit(struct vp_guest_runtimes *runtimes, const struct vp_guest_kernel *kernel,
			   uint32_t tgid, const uint64_t *addrs, unsigned count, uint64_t time)
{
	struct runtime *runtime = runtime_of(runtimes, tgid);
	struct reading reading;

	if (runtime && runtime->kind == RUNTIME_JAVA &&
	    begin_hit(runtimes, kernel, runtime, &reading))
		for (unsigned i = 0; i < count; i++)
			vp_java_names_see(&runtime->names, &runtime->vm, addrs[i], time, NULL);
}

void vp_guest_runtimes_hit_methods(struct vp_guest_runtimes *runtimes,
				   const struct vp_guest_kernel *kernel, uint32_t tgid,
				   const uint64_t *code, unsigned count, uint64_t time)
{
	struct runtime *runtime = runtime_of(runtimes, tgid);
	struct reading reading;
	bool reads = false;

	for (unsigned i = 0; runtime && i < count; i++) {
		if (vp_code_names_lately(&runtime->names, code[i], time))
			continue;
		if (!reads && !begin_hit(runtimes, kernel, runtime, &reading))
			return;
		reads = true;
		if (runtime->kind == RUNTIME_JAVA)
			vp_java_names_see_method(&runtime->names, &runtime->vm, code[i], time);
		else if (runtime->kind == RUNTIME_V8)
			vp_v8_names_see(&runtime->names, &runtime->v8, code[i], time);
		else
			vp_python_names_see(&runtime->names, &runtime->python, code[i], time);
	}
}

bool vp_guest_runtimes_java(const struct vp_guest_runtimes *runtimes, uint32_t tgid,
			    struct vp_java_vm *ret)
{
	const struct runtime *runtime = runtime_of(runtimes, tgid);

	if (!runtime || runtime->kind != RUNTIME_JAVA || runtime->state != RUNTIME_KNOWN)
		return false;
	*ret = runtime->vm;
	ret->memory = NULL;
	return true;
}

bool vp_guest_runtimes_v8(const struct vp_guest_runtimes *runtimes, uint32_t tgid,
			  struct vp_guest_v8_code *ret)
{
	const struct runtime *runtime = runtime_of(runtimes, tgid);

	if (!runtime || runtime->kind != RUNTIME_V8 || runtime->state != RUNTIME_KNOWN)
		return false;
	*ret = (struct vp_guest_v8_code){.low = runtime->low,
					 .high = runtime->high,
					 .blob_low = runtime->interpreter_low,
					 .blob_high = runtime->interpreter_high,
					 .layout = &runtime->v8.layout};
	return true;
}

bool vp_guest_runtimes_loop(const struct vp_guest_runtimes *runtimes, uint32_t tgid, uint64_t *low,
			    uint64_t *high)
{
	const struct runtime *runtime = runtime_of(runtimes, tgid);

	if (!runtime || runtime->kind != RUNTIME_PYTHON || runtime->state != RUNTIME_KNOWN)
		return false;
	*low = runtime->interpreter_low;
	*high = runtime->interpreter_high;
	return true;
}

static void list_python(const struct runtime *runtime, struct vp_buffer *answer)
{
	const struct vp_python_layout *at = &runtime->python.layout;

	vp_buffer_printf(answer, " %x %x %x %x %x %x %x %x\n", at->thread_native_id,
			 at->thread_frame, at->frame_in, at->frame_code, at->frame_previous,
			 at->frame_owner, at->entry_value, at->entry_is_empty);
	vp_vec_each (&runtime->threads, thread)
		vp_buffer_printf(answer, "thread %x %x %" PRIx64 " %x\n", runtime->tgid,
				 thread->tid, thread->state, thread->native_id);
}

void vp_guest_runtimes_list(const struct vp_guest_runtimes *runtimes, struct vp_buffer *answer)
{
	static const char *const words[] = {
	    [RUNTIME_JAVA] = "java", [RUNTIME_PYTHON] = "python", [RUNTIME_V8] = "v8"};

	vp_vec_each (&runtimes->all, at) {
		const struct runtime *runtime = *at;
		const struct vp_v8_layout *v8 = &runtime->v8.layout;
		if (runtime->state == RUNTIME_STARTING)
			vp_buffer_string(answer, "starting\n");
		if (runtime->state != RUNTIME_KNOWN)
			continue;
		vp_buffer_printf(answer, "%s %x %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64,
				 words[runtime->kind], runtime->tgid, runtime->low, runtime->high,
				 runtime->interpreter_low, runtime->interpreter_high);
		if (runtime->kind == RUNTIME_PYTHON)
			list_python(runtime, answer);
		else if (runtime->kind == RUNTIME_V8)
			vp_buffer_printf(answer, " %x %x %x\n", v8->context_below,
					 v8->function_below, v8->function_shared);
		else
			vp_buffer_string(answer, "\n");
	}
}

static void write_names(const struct runtime *runtime, struct vp_maps_writer *writer)
{
	vp_vec_each (&runtime->names.births, birth)
		vp_maps_write_jit_from(writer, runtime->space, birth->addr, birth->size,
				       vp_intern_text(&runtime->names.texts, birth->name),
				       birth->from_ns);
}

static void write_problem(const struct runtime *runtime, struct vp_maps_writer *writer)
{
	if (runtime->state != RUNTIME_KNOWN)
		vp_maps_write_note(writer, "Java process %u: methods have no names: %s",
				   runtime->tgid, runtime->problem ? runtime->problem : "it ended");
	else if (runtime->names.births.count == VP_CODE_MAX_NAMES)
		vp_maps_write_note(writer,
				   "Java process %u: more than %d methods were compiled: "
				   "the names of the rest are missing",
				   runtime->tgid, VP_CODE_MAX_NAMES);
	else if (runtime->names.failed || runtime->damaged)
		vp_maps_write_note(
		    writer, "Java process %u: %" PRIu64 " times, code or a method had no name%s",
		    runtime->tgid, runtime->names.failed,
		    runtime->damaged ? "; the list of code was read in part" : "");
}

/* One note for all processes of a kind in the VM that have no names. */
static void write_unknown(const struct vp_guest_runtimes *runtimes, enum runtime_kind kind,
			  const char *language, struct vp_maps_writer *writer)
{
	const struct runtime *unknown = NULL;
	unsigned n_unknown = 0;

	vp_vec_each (&runtimes->all, at) {
		const struct runtime *runtime = *at;
		if (runtime->kind == kind &&
		    (runtime->state == RUNTIME_UNREADABLE ||
		     (runtime->state == RUNTIME_STARTING && runtime->problem))) {
			unknown = unknown ? unknown : runtime;
			n_unknown++;
		}
	}
	if (unknown)
		vp_maps_write_note(
		    writer, "%u %s processes: functions have no names: %s (process %u)", n_unknown,
		    language, unknown->problem ? unknown->problem : "they ended", unknown->tgid);
}

static void write_v8_problems(const struct vp_guest_runtimes *runtimes,
			      struct vp_maps_writer *writer)
{
	uint64_t failures[VP_V8_FAILURES] = {0}, failed = 0;
	unsigned without = 0;

	write_unknown(runtimes, RUNTIME_V8, "Node.js", writer);
	vp_vec_each (&runtimes->all, at) {
		const struct runtime *runtime = *at;
		failed += runtime->kind == RUNTIME_V8 ? runtime->names.failed : 0;
		for (unsigned i = 0; i < VP_V8_FAILURES; i++)
			failures[i] += runtime->v8.failures[i];
		without += runtime->kind == RUNTIME_V8 && runtime->state == RUNTIME_KNOWN &&
			   !runtime->interpreter_high;
	}
	if (without)
		vp_maps_write_note(writer,
				   "%u Node.js processes: V8's interpreter was not found; its "
				   "samples have no function unless V8 has copied it",
				   without);
	if (failed)
		vp_maps_write_note(writer,
				   "JavaScript: %" PRIu64 " times, a function had no name (%" PRIu64
				   " unreadable, %" PRIu64 " no function)",
				   failed, failures[VP_V8_UNREADABLE], failures[VP_V8_NO_FUNCTION]);
}

static void write_python_problems(const struct vp_guest_runtimes *runtimes,
				  struct vp_maps_writer *writer)
{
	uint64_t failures[VP_PYTHON_FAILURES] = {0}, failed = 0;

	write_unknown(runtimes, RUNTIME_PYTHON, "Python", writer);
	vp_vec_each (&runtimes->all, at) {
		const struct runtime *runtime = *at;
		failed += runtime->kind == RUNTIME_PYTHON ? runtime->names.failed : 0;
		for (unsigned i = 0; i < VP_PYTHON_FAILURES; i++)
			failures[i] += runtime->python.failures[i];
	}
	if (failed)
		vp_maps_write_note(writer,
				   "Python: %" PRIu64 " times, a function had no name (%" PRIu64
				   " unreadable, %" PRIu64 " no code object, %" PRIu64
				   " an invalid string)",
				   failed, failures[VP_PYTHON_UNREADABLE],
				   failures[VP_PYTHON_NO_CODE], failures[VP_PYTHON_NO_TEXT]);
}

void vp_guest_runtimes_write(struct vp_guest_runtimes *runtimes,
			     const struct vp_guest_kernel *kernel, struct vp_maps_writer *writer)
{
	unsigned reported = 0;

	vp_vec_each (&runtimes->all, at) {
		struct reading reading;
		struct runtime *runtime = *at;
		if (runtime->kind == RUNTIME_JAVA &&
		    runtime_of(runtimes, runtime->tgid) == runtime &&
		    begin_hit(runtimes, kernel, runtime, &reading))
			vp_java_names_see_all(&runtime->names, &runtime->vm, vp_clock_monotonic(),
					      &runtime->damaged);
		write_names(runtime, writer);
		if (runtime->kind == RUNTIME_JAVA && reported < MAX_REPORTED) {
			write_problem(runtime, writer);
			reported++;
		}
	}
	write_python_problems(runtimes, writer);
	write_v8_problems(runtimes, writer);
}
