/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A domain's memory, mapped page by page, of a guest that lies about its page tables and where its
 * frames are, and of which frames vanish: what is read, what is said to be there, and who runs. The
 * first bytes choose; the rest is its few frames, over and over.
 */
#include <string.h>
#include <sys/mman.h>

#include "xen/foreign.h"
#include "xen/xen_guest_current.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { PAGE = 4096, FRAMES = 64, READS = 8 };

struct memory {
	const uint8_t *bytes;
	size_t size;
	uint8_t missing; /* of so many frames one */
	unsigned maps, vanish_after;
};

static void fill(const struct memory *memory, uint64_t frame, char *page)
{
	size_t begin = (size_t)(frame % FRAMES) * PAGE % memory->size;
	size_t first = memory->size - begin < PAGE ? memory->size - begin : PAGE;

	memcpy(page, memory->bytes + begin, first);
}

/* A page that is not there is not to be touched: it is mapped so that it cannot be. */
static char *map(void *context, const uint64_t *frames, size_t pages, int *errors)
{
	struct memory *memory = context;
	char *at =
	    mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || ++memory->maps > memory->vanish_after) {
		if (at != MAP_FAILED)
			munmap(at, pages * PAGE);
		return NULL;
	}
	for (size_t i = 0; i < pages; i++) {
		errors[i] = frames[i] >> 40 || (memory->missing && frames[i] % memory->missing ==
								       memory->missing - 1u);
		fill(memory, frames[i], at + i * PAGE);
		mprotect(at + i * PAGE, PAGE, errors[i] ? PROT_NONE : PROT_READ);
	}
	return at;
}

static bool read_foreign(void *context, uint64_t address, void *bytes, size_t size)
{
	return vp_xen_foreign_read(context, address, bytes, size);
}

static uint64_t word_at(const uint8_t *bytes, size_t place)
{
	uint64_t word;

	memcpy(&word, bytes + place, sizeof(word));
	return word;
}

static void find_task(struct vp_xen_foreign *foreign, const uint8_t *bytes)
{
	const struct vp_xen_memory memory = {read_foreign, foreign};
	const struct vp_guest_finding finding = {.text = 0xffffffff81000000,
						 .gpa = 0x1000000,
						 .size = 0x2000000,
						 .direct_map = 0xffff888000000000,
						 .off_tid = word_at(bytes, 0) & 0xffff,
						 .off_tgid = (word_at(bytes, 0) & 0xffff) + 4,
						 .off_comm = word_at(bytes, 2) & 0xffff,
						 .off_mm = word_at(bytes, 4) & 0xffff,
						 .off_pgd = word_at(bytes, 6) & 0xffff};
	struct vp_xen_kernel kernel;
	struct vp_xen_task task;
	struct vp_error *error = vp_xen_kernel_init(&finding, &kernel);

	if (!error && vp_xen_task_read(&kernel, &memory, word_at(bytes, 8), word_at(bytes, 16),
				       bytes[0] & 1, &task))
		task.comm[sizeof(task.comm) - 1] = 0;
	vp_error_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	enum { HEAD = 32 };
	static char to[256 << 10];
	unsigned char backed[1024];

	if (size <= HEAD + 8)
		return 0;
	struct memory memory = {.bytes = bytes + HEAD,
				.size = size - HEAD,
				.missing = bytes[24],
				.vanish_after = 16u + bytes[25]};
	struct vp_xen_foreign *foreign = vp_xen_foreign_new_by(map, &memory);
	bool pv = bytes[26] & 1 && vp_xen_foreign_is_pv(foreign, word_at(bytes, 16));
	find_task(foreign, bytes);
	for (unsigned i = 0; i < READS; i++) {
		uint64_t address = word_at(bytes, i * 3) >> (bytes[27] & 63);
		size_t length = (size_t)(word_at(bytes, i) % sizeof(to)) >> (i % 4 * 5);
		if (!vp_xen_foreign_read(foreign, address, to, length) && i % 4 == 3)
			vp_xen_foreign_drop(foreign);
	}
	vp_xen_foreign_backed(foreign, word_at(bytes, 8) >> (bytes[27] & 63),
			      pv ? sizeof(backed) : bytes[28], backed);
	vp_xen_foreign_free(foreign);
	return 0;
}
