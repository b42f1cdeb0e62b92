/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "xen/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

#define PRIVCMD "/dev/xen/privcmd"
#define SECOND 1000000000ULL

enum {
	PAGE = 4096,
	WINDOW = 16,   /* pages mapped together for a small read */
	WINDOWS = 256, /* cached */
	MAX = 512,     /* maximum pages per mapping */
	TABLES = 64,   /* cached machine frames */
};
#define NO_FRAME ((1ULL << 40) - 1) /* an unused frame number that mapping requests accept */

/* The kernel's include/uapi/xen/privcmd.h. */
struct map_batch {
	unsigned num;
	uint16_t domain;
	uint64_t address;
	const uint64_t *frames;
	int *errors;
};
/* Entries of page tables. */
#define ENTRY_ADDRESS 0x000ffffffffff000ULL
enum { ENTRY_PRESENT = 1, ENTRY_LARGE = 0x80 };

#define RESTRICT_REQUEST _IOC(_IOC_NONE, 'P', 6, sizeof(uint16_t))
_Static_assert(VP_XEN_MAP_REQUEST == _IOC(_IOC_NONE, 'P', 4, sizeof(struct map_batch)),
	       "IOCTL_PRIVCMD_MMAPBATCH_V2");

struct window {
	char *at;       /* NULL: unused */
	uint64_t first; /* first frame */
	uint64_t
	    until; /* CLOCK_MONOTONIC, ns: its frames may belong to another domain afterwards */
	uint32_t there; /* bit mask of its mapped pages */
};

/* A PV guest's table of its machine frames (P2M): an array in its virtual memory. */
struct own_table {
	uint64_t root; /* machine address of its page tables; 0: not a PV guest */
	uint64_t address, count;
	uint64_t page, page_frame; /* the last translated page, and its frame */
};

struct vp_xen_foreign {
	int fd;
	uint16_t domain;
	vp_xen_map map;
	void *context; /* of `map` */
	struct window windows[WINDOWS];
	struct window tables[TABLES]; /* of a PV guest: single machine frames */
	struct own_table own;
};

struct vp_error *vp_xen_foreign_open(uint16_t domain, int *ret)
{
	int fd = open(PRIVCMD, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return vp_error_errno(errno, "cannot open '" PRIVCMD "'");
	if (ioctl(fd, RESTRICT_REQUEST, &domain)) {
		struct vp_error *error = vp_error_errno(
		    errno, "this host's kernel cannot restrict '" PRIVCMD "' to a domain");
		close(fd);
		return error;
	}
	*ret = fd;
	return NULL;
}

static char *map_by_privcmd(void *context, const uint64_t *frames, size_t pages, int *errors)
{
	const struct vp_xen_foreign *foreign = context;
	char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, foreign->fd, 0);

	if (at == MAP_FAILED)
		return NULL;
	struct map_batch batch = {.num = (unsigned)pages,
				  .domain = foreign->domain,
				  .address = (uintptr_t)at,
				  .frames = frames,
				  .errors = errors};
	/* ENOENT: some pages are paged out, see `errors`. */
	if (!ioctl(foreign->fd, VP_XEN_MAP_REQUEST, &batch) || errno == ENOENT)
		return at;
	munmap(at, pages * PAGE);
	return NULL;
}

struct vp_xen_foreign *vp_xen_foreign_new(int fd, uint16_t domain)
{
	struct vp_xen_foreign *foreign = vp_alloc(sizeof(*foreign));

	*foreign = (struct vp_xen_foreign){
	    .fd = fd, .domain = domain, .map = map_by_privcmd, .context = foreign};
	return foreign;
}

struct vp_xen_foreign *vp_xen_foreign_new_by(vp_xen_map map, void *context)
{
	struct vp_xen_foreign *foreign = vp_alloc(sizeof(*foreign));

	*foreign = (struct vp_xen_foreign){.fd = -1, .map = map, .context = context};
	return foreign;
}

static void close_window(struct window *window, size_t pages)
{
	if (window->at)
		munmap(window->at, pages * PAGE);
	window->at = NULL;
}

void vp_xen_foreign_drop(struct vp_xen_foreign *foreign)
{
	for (size_t i = 0; i < WINDOWS; i++)
		close_window(&foreign->windows[i], WINDOW);
	for (size_t i = 0; i < TABLES; i++)
		close_window(&foreign->tables[i], 1);
}

void vp_xen_foreign_free(struct vp_xen_foreign *foreign)
{
	if (!foreign)
		return;
	vp_xen_foreign_drop(foreign);
	free(foreign);
}

/* Reads a word of a machine frame owned by the guest. */
static bool read_machine(struct vp_xen_foreign *foreign, uint64_t address, uint64_t *ret)
{
	uint64_t frame = address / PAGE, now = vp_clock_monotonic();
	struct window *window = &foreign->tables[frame % TABLES];
	int error = 0;

	/* The address may be the guest's choice: a word must not continue on the next page. */
	if (address % sizeof(*ret))
		return false;
	if (!window->at || window->first != frame || now >= window->until) {
		close_window(window, 1);
		*window = (struct window){.at = foreign->map(foreign->context, &frame, 1, &error),
					  .first = frame,
					  .until = now + SECOND};
		window->there = !error;
	}
	if (!window->at || !window->there)
		return false;
	memcpy(ret, window->at + address % PAGE, sizeof(*ret));
	return true;
}

/* Walks the guest kernel's page tables for an address in the P2M. */
static bool foreign_walk(struct vp_xen_foreign *foreign, uint64_t address, uint64_t *frame)
{
	uint64_t entry = foreign->own.root;

	for (int shift = 39; shift >= 12; shift -= 9) {
		uint64_t table = entry & ENTRY_ADDRESS;
		if (!read_machine(foreign, table + 8 * (address >> shift & 511), &entry) ||
		    !(entry & ENTRY_PRESENT))
			return false;
		if (shift == 21 && entry & ENTRY_LARGE) {
			*frame = (entry & ENTRY_ADDRESS) / PAGE + (address >> 12 & 511);
			return true;
		}
	}
	*frame = (entry & ENTRY_ADDRESS) / PAGE;
	return true;
}

static uint64_t machine_frame(struct vp_xen_foreign *foreign, uint64_t frame)
{
	struct own_table *own = &foreign->own;
	uint64_t address = own->address + 8 * frame, entry;

	if (frame >= own->count)
		return NO_FRAME;
	if (own->page != address / PAGE) {
		own->page = 0;
		if (!foreign_walk(foreign, address, &own->page_frame))
			return NO_FRAME;
		own->page = address / PAGE;
	}
	if (!read_machine(foreign, own->page_frame * PAGE + address % PAGE, &entry))
		return NO_FRAME;
	return entry < NO_FRAME ? entry : NO_FRAME; /* bits 62 and 63: not its own */
}

/* Maps `count` of the guest's frames. */
static char *foreign_map(struct vp_xen_foreign *foreign, uint64_t first, size_t pages, int *errors)
{
	uint64_t frames[MAX] = {0};

	for (size_t i = 0; i < pages; i++)
		frames[i] = foreign->own.root ? machine_frame(foreign, first + i) : first + i;
	return foreign->map(foreign->context, frames, pages, errors);
}

/* struct shared_info of 64-bit x86 (Xen's public/xen.h): `arch` follows 32 vCPUs, two bitmaps of
 * event channels and the wall clock. */
enum {
	ARCH = 32 * 64 + 2 * 512 + 16,
	MAX_PFN = ARCH,
	P2M_CR3 = ARCH + 24,
	P2M_ADDRESS = ARCH + 32
};

bool vp_xen_foreign_is_pv(struct vp_xen_foreign *foreign, uint64_t shared_info)
{
	struct own_table own = {0};
	uint64_t at = shared_info * PAGE;

	if (!read_machine(foreign, at + MAX_PFN, &own.count) ||
	    !read_machine(foreign, at + P2M_CR3, &own.root) ||
	    !read_machine(foreign, at + P2M_ADDRESS, &own.address))
		return false;
	foreign->own = own;
	return own.root != 0;
}

static const struct window *window_of(struct vp_xen_foreign *foreign, uint64_t frame)
{
	uint64_t first = frame / WINDOW * WINDOW, now = vp_clock_monotonic();
	struct window *window = &foreign->windows[frame / WINDOW % WINDOWS];
	int errors[WINDOW];

	if (window->at && window->first == first && now < window->until)
		return window;
	close_window(window, WINDOW);
	*window = (struct window){.at = foreign_map(foreign, first, WINDOW, errors),
				  .first = first,
				  .until = now + SECOND};
	for (unsigned i = 0; window->at && i < WINDOW; i++)
		window->there |= errors[i] ? 0 : 1U << i;
	return window;
}

/* Within a page. */
static bool read_small(struct vp_xen_foreign *foreign, uint64_t address, char *to, size_t size)
{
	uint64_t frame = address / PAGE;
	const struct window *window = window_of(foreign, frame);

	if (!window->at || !(window->there >> (frame - window->first) & 1))
		return false;
	memcpy(to, window->at + (address - window->first * PAGE), size);
	return true;
}

/* Whole pages. */
static bool read_large(struct vp_xen_foreign *foreign, uint64_t frame, char *to, size_t pages)
{
	int errors[MAX];
	char *at = foreign_map(foreign, frame, pages, errors);
	bool good = at != NULL;

	for (size_t i = 0; good && i < pages; i++)
		good = !errors[i];
	if (good)
		memcpy(to, at, pages * PAGE);
	if (at)
		munmap(at, pages * PAGE);
	return good;
}

bool vp_xen_foreign_read(struct vp_xen_foreign *foreign, uint64_t address, void *bytes, size_t size)
{
	char *to = bytes;

	while (size) {
		size_t inside = address % PAGE, piece = PAGE - inside;
		size_t pages = inside ? 0 : size / PAGE;
		pages = pages < MAX ? pages : MAX;
		if (pages >= WINDOW) {
			piece = pages * PAGE;
			if (!read_large(foreign, address / PAGE, to, pages))
				return false;
		} else {
			piece = piece < size ? piece : size;
			if (!read_small(foreign, address, to, piece))
				return false;
		}
		address += piece;
		to += piece;
		size -= piece;
	}
	return true;
}

void vp_xen_foreign_backed(struct vp_xen_foreign *foreign, uint64_t address, size_t pages,
			   unsigned char *ret)
{
	int errors[MAX];

	for (size_t done = 0, piece; done < pages; done += piece) {
		piece = pages - done < MAX ? pages - done : MAX;
		char *at = foreign_map(foreign, address / PAGE + done, piece, errors);
		for (size_t i = 0; i < piece; i++)
			ret[done + i] = at && !errors[i];
		if (at)
			munmap(at, piece * PAGE);
	}
}
