/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exits --mmio N
 *
 * Leaves the guest a known number of times: reads of an address that belongs to no device, through
 * /dev/mem, which the VMM answers.
 */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MMIO_PAGE 0x0b800000 /* of QEMU's machine virt: before its platform bus */

__attribute__((noinline)) static void exits_mmio(volatile uint32_t *page, uint64_t n)
{
	while (n--)
		(void)*page;
}

int main(int argc, char **argv)
{
	work_init("exits");
	if (argc != 3 || strcmp(argv[1], "--mmio"))
		work_usage("expected --mmio N");
	uint64_t n = (uint64_t)work_number(argv[1], argv[2]);
	int fd = open("/dev/mem", O_RDONLY | O_SYNC | O_CLOEXEC);
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, MMIO_PAGE);

	if (page == MAP_FAILED)
		work_usage("--mmio: /dev/mem: %s", strerror(errno));
	exits_mmio(page, n);
	printf("exits: mmio=%llu\n", (unsigned long long)n);
	work_summary();
	return 0;
}
