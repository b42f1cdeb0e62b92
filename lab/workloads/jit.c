/*
 * jit [--seconds S]
 *
 * Generated code with a perf map: three quarters of the time in jit_hot, one quarter in jit_cold,
 * both written into anonymous memory and named in /tmp/perf-PID.map as a JIT compiler does.
 */
#include "common.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
/* mov rax, rdi; 1: dec rax; jnz 1b; ret: one loop per count in the first argument */
static const unsigned char loop_code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
#elif defined(__aarch64__)
/* 1: subs x0, x0, #1; b.ne 1b; ret */
static const unsigned char loop_code[] = {0x00, 0x04, 0x00, 0xf1, 0xe1, 0xff,
					  0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6};
#else
#error "write the loop for this processor"
#endif

enum { COLD_AT = 2048, CODE_SIZE = 4096, COUNT = 200000 };

static void write_map(const unsigned char *code)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		work_usage("cannot write %s", path);
	fprintf(map, "%lx %zx jit_hot\n", (unsigned long)code, sizeof(loop_code));
	fprintf(map, "%lx %zx jit_cold\n", (unsigned long)code + COLD_AT, sizeof(loop_code));
	fclose(map);
}

int main(int argc, char **argv)
{
	unsigned char *code;

	work_init("jit");
	if (argc == 3 && !strcmp(argv[1], "--seconds"))
		work_limit(work_number(argv[1], argv[2]));
	else if (argc != 1)
		work_usage("expected nothing or --seconds S");
	code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		work_usage("cannot map memory for code");
	memcpy(code, loop_code, sizeof(loop_code));
	memcpy(code + COLD_AT, loop_code, sizeof(loop_code));
	__builtin___clear_cache((char *)code, (char *)code + CODE_SIZE);
	write_map(code);

	void (*hot)(unsigned long) = (void (*)(unsigned long))code;
	void (*cold)(unsigned long) = (void (*)(unsigned long))(code + COLD_AT);
	while (!work_over()) {
		hot(3 * COUNT);
		cold(COUNT);
	}
	work_summary();
	return 0;
}
