/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/http_pages.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

/* Each document has two buffers: the writer fills the one that is not the latest. */
struct page {
	_Atomic uint64_t version; /* finished versions; the latest is in buffer version % 2 */
	_Atomic uint64_t written; /* time of the latest version */
	size_t sizes[2];
};

struct vp_http_pages {
	size_t count, room, mapped;
	struct page pages[];
};

static char *page_at(const struct vp_http_pages *pages, size_t number, uint64_t version)
{
	char *first = (char *)&pages->pages[pages->count];

	return first + (2 * number + version % 2) * pages->room;
}

struct vp_http_pages *vp_http_pages_make(size_t count, size_t room)
{
	size_t mapped =
	    sizeof(struct vp_http_pages) + count * sizeof(struct page) + 2 * count * room;
	struct vp_http_pages *pages =
	    mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return NULL;
	pages->count = count;
	pages->room = room;
	pages->mapped = mapped;
	return pages;
}

void vp_http_pages_free(struct vp_http_pages *pages)
{
	if (pages)
		munmap(pages, pages->mapped);
}

size_t vp_http_pages_count(const struct vp_http_pages *pages)
{
	return pages->count;
}

bool vp_http_page_write(struct vp_http_pages *pages, size_t number, const void *bytes, size_t size)
{
	struct page *page = &pages->pages[number];
	uint64_t next = atomic_load(&page->version) + 1;

	if (size > pages->room)
		return false;
	memcpy(page_at(pages, number, next), bytes, size);
	page->sizes[next % 2] = size;
	atomic_store(&page->version, next);
	atomic_store(&page->written, vp_clock_monotonic());
	return true;
}

uint64_t vp_http_page_written(const struct vp_http_pages *pages, size_t number)
{
	return atomic_load(&pages->pages[number].written);
}

/* Repeats the copy if the writer may have overwritten it, which takes two writes in the
 * meantime. */
bool vp_http_page_read(const struct vp_http_pages *pages, size_t number, struct vp_buffer *ret)
{
	const struct page *page = &pages->pages[number];
	size_t before = ret->size;

	for (;;) {
		uint64_t version = atomic_load(&page->version);
		if (!version)
			return false;
		size_t size = page->sizes[version % 2];
		if (size <= pages->room)
			vp_buffer_append(ret, page_at(pages, number, version), size);
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load(&page->version) == version)
			return true;
		ret->size = before;
	}
}
