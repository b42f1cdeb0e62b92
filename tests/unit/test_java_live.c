/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of Java methods from the memory of a real Java VM, without any options to it. JAVA names
 * another one than that in PATH. */
#include "live_runtime.h"
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/java.h"

/* Two methods that are compiled, and one that is called a few times only. */
static const char program[] =
    "public class Burn {\n"
    "  static long spinFast(long n) { long s = 0; for (long i = 0; i < n; i++) s += i * i ^ s; "
    "return s; }\n"
    "  static double spinSlow(int n) { double s = 0; for (int i = 1; i < n; i++) s += "
    "Math.sqrt(i); "
    "return s; }\n"
    "  public static void main(String[] a) throws Exception {\n"
    "    long s = 0; double d = 0;\n"
    "    for (int i = 0; i < 20000; i++) { s += spinFast(2000); d += spinSlow(500); }\n"
    "    System.out.println(\"ready\"); System.out.flush();\n"
    "    while (true) { s += spinFast(2000); d += spinSlow(500); if (s == 42 && d == 1) return; }\n"
    "  }\n"
    "}\n";

struct java {
	pid_t pid;
	int memory;
	uint64_t symbols[VP_JAVA_SYMBOLS];
};

static bool live_read(void *context, uint64_t addr, void *bytes, size_t size)
{
	const struct java *java = context;

	return pread(java->memory, bytes, size, (off_t)addr) == (ssize_t)size;
}

/* Starts it and waits for its word; false: there is no Java here. */
static bool java_start(struct java *java)
{
	const char *path = getenv("JAVA") ? getenv("JAVA") : "java";
	const char *const command[] = {path, getenv("JAVA_MAIN") ? "Burn" : "Burn.java", NULL};

	return live_runtime_start(command, "Burn.java", program, &java->pid);
}

/* Where libjvm.so is loaded, and its path. */
static uint64_t libjvm(const struct java *java, char path[4096])
{
	char name[64], line[8192];
	uint64_t start = 0;

	snprintf(name, sizeof(name), "/proc/%d/maps", java->pid);
	FILE *maps = fopen(name, "r");
	assert_non_null(maps);
	while (!start && fgets(line, sizeof(line), maps)) {
		line[strcspn(line, "\n")] = 0;
		const char *at = strchr(line, '/');
		if (!at || !strstr(at, "/libjvm.so"))
			continue;
		snprintf(path, 4096, "%s", at);
		start = strtoull(line, NULL, 16);
	}
	fclose(maps);
	return start;
}

/* The addresses of the exported variables, by section headers. */
static void find_symbols(struct java *java)
{
	char path[4096] = "";
	uint64_t base = libjvm(java, path);
	int fd = open(path, O_RDONLY);
	struct stat status;

	assert_true(fd >= 0 && !fstat(fd, &status));
	const char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(file != MAP_FAILED);
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
	for (unsigned i = 0; i < header->e_shnum; i++) {
		if (sections[i].sh_type != SHT_DYNSYM)
			continue;
		const Elf64_Sym *table = (const void *)(file + sections[i].sh_offset);
		const char *names = file + sections[sections[i].sh_link].sh_offset;
		for (size_t j = 0; j < sections[i].sh_size / sizeof(*table); j++)
			for (unsigned k = 0; k < VP_JAVA_SYMBOLS; k++)
				if (!strcmp(names + table[j].st_name, vp_java_symbol_name(k)))
					java->symbols[k] = base + table[j].st_value;
	}
	munmap((void *)file, (size_t)status.st_size);
	close(fd);
}

struct seen {
	const struct vp_java_vm *vm;
	unsigned methods, named, interpreters, stubs, found_again;
	bool fast, slow;
};

static bool take_code(void *context, const struct vp_java_code *code)
{
	struct seen *seen = context;
	struct vp_buffer name = {0};
	struct vp_java_code again;

	seen->found_again += vp_java_code_find(seen->vm, (code->start + code->end) / 2, &again) &&
			     again.start == code->start && again.end == code->end;
	seen->methods += code->kind == VP_JAVA_METHOD;
	seen->interpreters += code->kind == VP_JAVA_INTERPRETER;
	seen->stubs += code->kind == VP_JAVA_STUB;
	if (code->kind == VP_JAVA_METHOD && vp_java_method_name(seen->vm, code->method, &name)) {
		seen->named++;
		seen->fast |= !strcmp(vp_buffer_text(&name), "Burn.spinFast");
		seen->slow |= !strcmp(vp_buffer_text(&name), "Burn.spinSlow");
		if (getenv("JAVA_SHOW"))
			printf("%lx %lx %u %u %s\n", code->start, code->end, code->compile_id,
			       code->level, vp_buffer_text(&name));
	} else if (getenv("JAVA_SHOW")) {
		printf("%lx %lx [%s]\n", code->start, code->end, code->name);
	}
	vp_buffer_deinit(&name);
	return true;
}

static void test_methods_of_a_real_vm(void **state)
{
	struct java java = {0};
	struct vp_process_memory memory = {live_read, &java};
	struct vp_java_vm vm = {.memory = &memory};
	struct seen seen = {.vm = &vm};
	char name[64];
	bool damaged;

	(void)state;
	if (!java_start(&java)) {
		waitpid(java.pid, NULL, 0);
		skip();
	}
	snprintf(name, sizeof(name), "/proc/%d/mem", java.pid);
	java.memory = open(name, O_RDONLY);
	assert_true(java.memory >= 0);
	find_symbols(&java);
	struct vp_error *error = vp_java_tables_read(&memory, java.symbols, &vm.tables);
	if (error)
		print_error("%s\n", vp_error_message(error));
	assert_null(error);
	assert_null(vp_java_heaps_read(&vm));
	kill(java.pid, SIGSTOP);
	vp_java_code_each(&vm, take_code, &seen, &damaged);
	kill(java.pid, SIGKILL);
	waitpid(java.pid, NULL, 0);
	close(java.memory);
	print_message("%u methods, %u named, %u stubs, %u found again\n", seen.methods, seen.named,
		      seen.stubs, seen.found_again);
	assert_false(damaged);
	assert_true(seen.fast && seen.slow);
	assert_true(seen.methods > 5);
	assert_int_equal(seen.named, seen.methods);
	assert_int_equal(seen.interpreters, 1);
	assert_true(seen.stubs > 5);
	assert_int_equal(seen.found_again, seen.methods + seen.interpreters + seen.stubs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_methods_of_a_real_vm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
