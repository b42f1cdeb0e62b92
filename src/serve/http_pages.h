/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Documents in memory shared by two processes: one writes, the other reads, neither blocks. */
#ifndef VP_SERVE_HTTP_PAGES_H
#define VP_SERVE_HTTP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct vp_http_pages;

/* Memory for `count` documents of at most `room` bytes; NULL: no memory (errno). */
struct vp_http_pages *vp_http_pages_make(size_t count, size_t room);
void vp_http_pages_free(struct vp_http_pages *pages);
size_t vp_http_pages_count(const struct vp_http_pages *pages);
/* False: too large. */
bool vp_http_page_write(struct vp_http_pages *pages, size_t number, const void *bytes, size_t size);
/* CLOCK_MONOTONIC of the latest write, ns; 0: none yet. */
uint64_t vp_http_page_written(const struct vp_http_pages *pages, size_t number);
/* Appends the latest complete contents of the document; false: none yet. */
bool vp_http_page_read(const struct vp_http_pages *pages, size_t number, struct vp_buffer *ret);

#endif
