/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Call chains of a real Java VM, stopped at random instructions: compiled, inlined and interpreted
 * methods, and Java code that native code calls. JAVA names another one than that in PATH. */
#include "live_runtime.h"
#include "unit.h"

#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "guestreader/java_frames.h"
#include "guestreader/unwind_tables.h"
#include "runtime/java_names.h"

enum { STOPS = 600, MAX_MAPPINGS = 512, LEAST_RIGHT = 97 /* percent */ };

/* A loop that is not counted has debug information.
 * main → outer → middle → (reflection, by native code) → inner → tiny, which is inlined, and deep,
 * a recursion. */
static const char program[] =
    "import java.lang.reflect.Method;\n"
    "public class Chains {\n"
    "  static long sink;\n"
    "  static long tiny(long x) {\n"
    "    for (int i = 0; i < 300; i += 1 + (int)(x >>> 63)) x = x * 31 + (x >> 7);\n"
    "    return x;\n"
    "  }\n"
    "  static long deep(int n, long x) { return n == 0 ? tiny(x) : deep(n - 1, x + n) + 1; }\n"
    "  public static long inner(long x) { for (int i = 0; i < 50; i++) x = deep(5, x); return x; "
    "}\n"
    "  static long middle(Method m, long x) throws Exception { return (Long) m.invoke(null, x); }\n"
    "  static long outer(Method m, long x) throws Exception { return middle(m, x) + 1; }\n"
    "  public static void main(String[] a) throws Exception {\n"
    "    Method m = Chains.class.getMethod(\"inner\", long.class);\n"
    "    for (int i = 0; i < 3000; i++) sink = outer(m, sink);\n"
    "    System.out.println(\"ready\"); System.out.flush();\n"
    "    while (true) sink = outer(m, sink);\n"
    "  }\n"
    "}\n";

struct live_mapping {
	uint64_t start, end, pgoff;
	bool is_code;
	int32_t table;
	char path[256];
};

struct live_java {
	pid_t pid;
	int memory;
	struct live_mapping mappings[MAX_MAPPINGS];
	unsigned n_mappings;
	struct vp_unwind_tables *tables;
	struct vp_java_stack stack;
};

static bool read_live(void *context, uint64_t addr, void *bytes, size_t size)
{
	const struct live_java *java = context;

	return pread(java->memory, bytes, size, (off_t)addr) == (ssize_t)size;
}

static bool read_file(void *context, uint64_t offset, void *bytes, size_t size)
{
	return pread(*(int *)context, bytes, size, (off_t)offset) == (ssize_t)size;
}

static int32_t table_of(const struct live_java *java, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat status;

	if (fd < 0 || fstat(fd, &status)) /* [vdso] */
		return VP_NO_UNWIND_TABLE;
	const struct vp_unwind_file file = {.key = status.st_ino,
					    .size = (uint64_t)status.st_size,
					    .read = read_file,
					    .context = &fd};
	int32_t table = vp_unwind_tables_add(java->tables, &file);
	close(fd);
	return table;
}

/* Reads the process's mappings; returns where libjvm.so is loaded. */
static uint64_t read_mappings(struct live_java *java, char library[256])
{
	char name[64], line[8192], rights[8];
	uint64_t base = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", java->pid);
	FILE *maps = fopen(name, "r");
	assert_non_null(maps);
	java->n_mappings = 0;
	while (fgets(line, sizeof(line), maps) && java->n_mappings < MAX_MAPPINGS) {
		struct live_mapping mapping = {.table = VP_NO_UNWIND_TABLE};
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &mapping.start, &mapping.end,
			   rights, &mapping.pgoff, mapping.path) < 4)
			continue;
		if (!base && strstr(mapping.path, "/libjvm.so")) {
			base = mapping.start;
			strcpy(library, mapping.path);
		}
		mapping.is_code = strchr(rights, 'x');
		if (!mapping.is_code)
			continue;
		if (mapping.path[0] == '/')
			mapping.table = table_of(java, mapping.path);
		java->mappings[java->n_mappings++] = mapping;
	}
	fclose(maps);
	return base;
}

static const struct live_mapping *live_mapping_of(const struct live_java *java, uint64_t addr)
{
	for (unsigned i = 0; i < java->n_mappings; i++)
		if (addr >= java->mappings[i].start && addr < java->mappings[i].end)
			return &java->mappings[i];
	return NULL;
}

static enum vp_cfi_result find_live(void *context, uint64_t addr, struct vp_cfi_row *row,
				    struct vp_slice *expressions)
{
	const struct live_java *java = context;
	const struct live_mapping *mapping = live_mapping_of(java, addr);
	uint32_t work = 1 << 20;

	return mapping && mapping->table != VP_NO_UNWIND_TABLE
		   ? vp_unwind_tables_find(java->tables, mapping->table,
					   addr - mapping->start + mapping->pgoff, &work, row,
					   expressions)
		   : VP_CFI_NONE;
}

static bool is_live_code(void *context, uint64_t addr)
{
	return live_mapping_of(context, addr);
}

static bool is_live_generated(void *context, uint64_t addr)
{
	const struct live_mapping *mapping = live_mapping_of(context, addr);

	return mapping && !mapping->path[0];
}

static enum vp_user_step step_live(void *context, struct vp_user_registers *now, bool exact)
{
	struct live_java *java = context;

	return vp_java_frames_step(&java->stack, now, exact);
}

static struct vp_user_registers registers_of(pid_t thread)
{
	struct user_regs_struct regs;

	assert_int_equal(ptrace(PTRACE_GETREGS, thread, NULL, &regs), 0);
	return (struct vp_user_registers){.known = (1U << VP_DWARF_X86_REGISTERS) - 1,
					  .value = {regs.rax, regs.rdx, regs.rcx, regs.rbx,
						    regs.rsi, regs.rdi, regs.rbp, regs.rsp, regs.r8,
						    regs.r9, regs.r10, regs.r11, regs.r12, regs.r13,
						    regs.r14, regs.r15, regs.rip}};
}

/* The name of generated code as a symbol map has it, or of a method at that address. */
static void name_of(const struct vp_java_vm *vm, uint64_t addr, struct vp_buffer *name)
{
	struct vp_code_names names = {0};

	if (vp_java_names_see(&names, vm, addr, 1, NULL)) /* the last one is that of the scope */
		vp_buffer_string(
		    name,
		    vp_intern_text(&names.texts, names.births.at[names.births.count - 1].name));
	else if (!vp_java_method_name(vm, addr & ~7ULL, name))
		name->size = 0;
	vp_code_names_deinit(&names);
}

/* Appends the name of a frame of the program, with a space. */
static void put_name(struct live_java *java, uint64_t addr, struct vp_buffer *list)
{
	const struct vp_process_memory memory = {read_live, java};
	struct vp_java_vm vm = java->stack.vm;
	struct vp_buffer name = {0};

	vm.memory = &memory;
	name_of(&vm, addr, &name);
	if (!strncmp(vp_buffer_text(&name), "Chains.", 7))
		vp_buffer_printf(list, "%s ", vp_buffer_text(&name) + 7);
	vp_buffer_deinit(&name);
}

/* Unwinds the thread's stack: the program's frames, outermost first. True: complete. */
static bool unwind(struct live_java *java, pid_t thread, struct vp_buffer *list)
{
	const struct vp_user_arch arch = vp_user_arch_x86();
	const struct vp_user_program user = {.arch = &arch,
					     .read = read_live,
					     .find = find_live,
					     .step = step_live,
					     .is_code = is_live_code,
					     .is_generated = is_live_generated,
					     .context = java};
	struct vp_user_registers registers = registers_of(thread);
	struct vp_java_found found;
	struct vp_user_chain chain;

	char library[256];

	read_mappings(java, library); /* the code cache grows */
	java->stack.program = &user;
	java->stack.time = vp_clock_monotonic();
	java->stack.reread = false;
	vp_user_chain_make(&user, &registers, &chain);
	vp_java_frames_put(&java->stack, &chain, &found);
	list->size = 0;
	for (uint32_t i = chain.count; i-- > 0;)
		put_name(java, chain.ips[i] - (i != 0), list);
	if (getenv("JAVA_SHOW"))
		for (uint32_t i = 0; i < chain.count; i++) {
			const struct live_mapping *mapping = live_mapping_of(java, chain.ips[i]);
			printf("  %lx %s\n", chain.ips[i], mapping ? mapping->path : "method");
		}
	java->stack.program = NULL;
	return chain.end == VP_CHAIN_WHOLE;
}

/* Whether the frames are those of the program, from main() on, as deep as it is. */
static bool is_in_tree(const char *frames)
{
	static const char *const tree[] = {"main ", "outer ", "middle ", "inner "};

	if (!*frames)
		return false;
	for (size_t i = 0; i < VP_ARRAY_SIZE(tree) && *frames; i++) {
		if (strncmp(frames, tree[i], strlen(tree[i])) != 0)
			return false;
		frames += strlen(tree[i]);
	}
	for (unsigned deep = 0; !strncmp(frames, "deep ", 5) && deep < 6; deep++)
		frames += 5;
	return !*frames || !strcmp(frames, "tiny ");
}

static pid_t main_thread(const struct live_java *java)
{
	char name[64];
	pid_t first = 0;

	/* The Java launcher runs main() in its first new thread. */
	snprintf(name, sizeof(name), "/proc/%d/task", java->pid);
	DIR *threads = opendir(name);
	assert_non_null(threads);
	for (const struct dirent *entry; (entry = readdir(threads));) {
		pid_t thread = atoi(entry->d_name);
		if (thread > java->pid && (!first || thread < first))
			first = thread;
	}
	closedir(threads);
	return first;
}

static void open_java(struct live_java *java)
{
	const struct vp_process_memory memory = {read_live, java};
	uint64_t symbols[VP_JAVA_SYMBOLS] = {0};
	char name[64], library[256] = "";

	snprintf(name, sizeof(name), "/proc/%d/mem", java->pid);
	java->memory = open(name, O_RDONLY);
	assert_true(java->memory >= 0);
	java->tables = vp_unwind_tables_new();
	java->stack = (struct vp_java_stack){.frames = vp_java_frames_new(), .tgid = 1, .time = 1};
	java->stack.vm.memory = &memory;
	uint64_t base = read_mappings(java, library);
	live_runtime_symbols(library, base, (const char *(*)(unsigned))vp_java_symbol_name,
			     VP_JAVA_SYMBOLS, symbols);
	expect_no_error(vp_java_tables_read(&memory, symbols, &java->stack.vm.tables));
	expect_no_error(vp_java_heaps_read(&java->stack.vm));
}

static uint64_t cpu_time(const struct live_java *java, pid_t thread)
{
	char name[64];
	uint64_t ns = 0;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/schedstat", java->pid, thread);
	FILE *file = fopen(name, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &ns), 1);
	fclose(file);
	return ns;
}

/* The Java VM uses signals itself, and a traced thread stops for them. */
static void deliver(pid_t thread, int status)
{
	assert_true(WIFSTOPPED(status));
	ptrace(PTRACE_CONT, thread, NULL, (void *)(long)WSTOPSIG(status));
}

/* Waits until the thread has executed for a while, also on a busy machine. */
static void let_run(const struct live_java *java, pid_t thread, unsigned us)
{
	uint64_t end = cpu_time(java, thread) + us * 1000ULL;

	do {
		int status;
		usleep(us);
		if (waitpid(thread, &status, __WALL | WNOHANG) == thread)
			deliver(thread, status);
	} while (cpu_time(java, thread) < end);
}

static void stop(pid_t thread)
{
	int status;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
	for (;;) {
		assert_int_equal(waitpid(thread, &status, __WALL), thread);
		if (status >> 16 == PTRACE_EVENT_STOP)
			return;
		deliver(thread, status);
	}
}

/* `with_tiny`: most stops are in tiny(), which has its own frame or debug information there. */
static void check_chains(const char *option, bool with_tiny)
{
	const char *path = getenv("JAVA") ? getenv("JAVA") : "java";
	const char *const command[] = {path,
				       "-XX:CompileCommand=quiet",
				       option,
				       "-Dsun.reflect.inflationThreshold=2147483647",
				       "-Djdk.reflect.useNativeAccessorOnly=true",
				       "-XX:CICompilerCount=2",
				       "Chains.java",
				       NULL};
	struct live_java java = {0};
	struct vp_buffer list = {0};
	unsigned whole = 0, right = 0, deep = 0, deepest = 0;

	if (!live_runtime_start(command, "Chains.java", program, &java.pid)) {
		waitpid(java.pid, NULL, 0);
		skip();
	}
	open_java(&java);
	pid_t thread = main_thread(&java);
	assert_int_equal(ptrace(PTRACE_SEIZE, thread, NULL, NULL), 0);
	for (unsigned i = 0; i < STOPS; i++) {
		let_run(&java, thread, 1000 + i % 7 * 100);
		stop(thread);
		bool complete = unwind(&java, thread, &list);
		whole += complete;
		if (is_in_tree(vp_buffer_text(&list)) && complete)
			right++;
		else
			print_message("%s: %s\n", complete ? "complete" : "incomplete",
				      vp_buffer_text(&list));
		deep += strstr(vp_buffer_text(&list), "inner deep") != NULL;
		deepest +=
		    strstr(vp_buffer_text(&list), "deep deep deep deep deep deep tiny") != NULL;
		ptrace(PTRACE_CONT, thread, NULL, NULL);
	}
	kill(java.pid, SIGKILL);
	waitpid(thread, NULL, __WALL); /* a traced thread is waited for by itself */
	waitpid(java.pid, NULL, 0);
	close(java.memory);
	vp_java_frames_free(java.stack.frames);
	vp_unwind_tables_free(java.tables);
	vp_buffer_deinit(&list);
	print_message("%s: of %u chains %u are complete, %u right, %u down to tiny()\n", option,
		      STOPS, whole, right, deepest);
	assert_true(right * 100 >= STOPS * LEAST_RIGHT);
	assert_true(deep * 2 > STOPS);
	assert_true(!with_tiny || deepest * 2 > STOPS);
}

static void test_compiled(void **state)
{
	(void)state;
	check_chains("-Xmixed", true);
}

static void test_interpreted(void **state)
{
	(void)state;
	check_chains("-XX:CompileCommand=exclude,Chains.*", true);
}

static void test_first_compiler(void **state)
{
	(void)state;
	check_chains("-XX:TieredStopAtLevel=1", true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_compiled),
						  cmocka_unit_test(test_first_compiler),
						  cmocka_unit_test(test_interpreted)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
