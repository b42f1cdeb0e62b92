/* storm_child MICROSECONDS: burns so much CPU time in storm_work() and ends; started by forkstorm.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static void storm_work(uint64_t ns)
{
	uint64_t until = cpu_ns() + ns;
	volatile uint64_t sink = 0;

	while (cpu_ns() < until)
		for (int i = 0; i < 2000; i++)
			sink = sink + 1;
}

int main(int argc, char **argv)
{
	storm_work((argc > 1 ? strtoull(argv[1], NULL, 10) : 0) * 1000);
	return 0;
}
