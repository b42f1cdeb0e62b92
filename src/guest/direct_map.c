/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guest/direct_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#if defined(__x86_64__)

/* Bases without KASLR, by number of page-table levels (Documentation/arch/x86/x86_64/mm.rst). */
static const uint64_t usual_bases[] = {0xffff888000000000ULL, 0xff11000000000000ULL};

enum { PRESENT = 1, LARGE = 1 << 7 };
#define PHYSICAL 0x000ffffffffff000ULL
/* KASLR's granularity for the direct map. */
#define ALIGNMENT (1ULL << 30)
/* Candidate bases below a page table, in units of ALIGNMENT: first attempt, and last resort. */
enum { FEW_CANDIDATES = 64, MAX_CANDIDATES = 4096 };

/* Translates `address` with the tables at `pgd`, assuming that the direct map starts at `base`. */
static bool direct_map_walk(uint64_t pgd, uint64_t address, uint64_t base, unsigned levels,
			    vp_read_kernel *read, void *context, uint64_t *physical)
{
	uint64_t table = pgd;

	for (unsigned level = levels; level > 0; level--) {
		unsigned shift = 12 + 9 * (level - 1);
		uint64_t entry;
		if (!read(context, table + 8 * (address >> shift & 511), &entry) ||
		    !(entry & PRESENT))
			return false;
		if (level == 1 || (level <= 3 && (entry & LARGE))) {
			uint64_t inside = (1ULL << shift) - 1;
			*physical = (entry & PHYSICAL & ~inside) | (address & inside);
			return true;
		}
		table = base + (entry & PHYSICAL);
	}
	return false;
}

static bool is_base(uint64_t pgd, uint64_t base, vp_read_kernel *read, void *context)
{
	/* With five levels, kernel addresses start at 0xff00000000000000. */
	unsigned levels = pgd < 0xffff000000000000ULL ? 5 : 4;
	uint64_t physical;

	return base && base <= pgd &&
	       direct_map_walk(pgd, pgd, base, levels, read, context, &physical) &&
	       base + physical == pgd;
}

static uint64_t kernel_symbol(const char *symbol)
{
	VP_AUTO_FCLOSE FILE *file = fopen("/proc/kallsyms", "re");
	VP_AUTO_FREE char *line = NULL;
	size_t room = 0;
	char name[64];

	while (file && getline(&line, &room, file) > 0)
		if (sscanf(line, "%*x %*c %63s", name) == 1 && !strcmp(name, symbol))
			return strtoull(line, NULL, 16);
	return 0;
}

static uint64_t search(uint64_t pgd, unsigned candidates, vp_read_kernel *read, void *context)
{
	uint64_t base = pgd & -ALIGNMENT;

	for (unsigned i = 0; i < candidates; i++, base -= ALIGNMENT)
		if (is_base(pgd, base, read, context))
			return base;
	return 0;
}

uint64_t vp_direct_map_find(uint64_t pgd, vp_read_kernel *read, void *context)
{
	uint64_t base = search(pgd, FEW_CANDIDATES, read, context);

	if (base)
		return base;
	for (unsigned i = 0; i < VP_ARRAY_SIZE(usual_bases); i++)
		if (is_base(pgd, usual_bases[i], read, context))
			return usual_bases[i];
	/* Last, because reading kallsyms takes a second in a slow guest. */
	uint64_t variable = kernel_symbol("page_offset_base");
	if (variable && read(context, variable, &base) && is_base(pgd, base, read, context))
		return base;
	return search(pgd, MAX_CANDIDATES, read, context);
}

#else

uint64_t vp_direct_map_find(uint64_t pgd, vp_read_kernel *read, void *context)
{
	(void)pgd;
	(void)read;
	(void)context;
	return 0;
}

#endif
