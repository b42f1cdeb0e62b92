/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What filling 64 MiB of new memory costs this thread. */
#include <err.h>
#include <stdio.h>
#include <sys/mman.h>
#include <vperf/counters.h>

enum { SIZE = 64 << 20 };

int main(void)
{
	const char *const events[] = {"page-faults", "task-clock"};
	struct vperf_counters *counters;
	struct vperf_error error;
	uint64_t values[2];
	volatile char *memory =
	    mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || madvise((void *)memory, SIZE, MADV_NOHUGEPAGE))
		err(1, "memory");
	if (vperf_counters_open(events, 2, NULL, &counters, &error))
		errx(1, "%s", error.text);
	vperf_counters_start(counters);
	for (size_t at = 0; at < SIZE; at += 4096)
		memory[at] = 1;
	vperf_counters_stop(counters, values);
	printf("%llu page faults, %.1f ms of CPU time\n", (unsigned long long)values[0],
	       (double)values[1] / 1e6);
	vperf_counters_close(counters);
}
