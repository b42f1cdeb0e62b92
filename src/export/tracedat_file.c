/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File layout: trace-cmd.dat(5). Events within pages: the kernel's include/linux/ring_buffer.h. */
#include "export/tracedat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/io.h"

enum {
	PAGE_HEAD = 16,    /* u64 time, u64 bytes of events */
	LONGEST_DATA = 28, /* maximum number of words whose count is in an event's header */
	TIME_EXTEND = 30,
	DELTA_BITS = 27
};

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

struct vp_error *vp_dat_pages_init(struct vp_dat_pages *pages, const char *directory)
{
	VP_AUTO_FREE char *path = vp_format("%s/pages-XXXXXX", directory);

	*pages = (struct vp_dat_pages){.fd = mkstemp(path)};
	if (pages->fd < 0)
		return vp_error_errno(errno, "cannot write into '%s'", directory);
	unlink(path);
	return NULL;
}

void vp_dat_pages_deinit(struct vp_dat_pages *pages)
{
	if (pages->fd >= 0)
		close(pages->fd);
	pages->fd = -1;
}

void vp_dat_cpu_deinit(struct vp_dat_cpu *cpu)
{
	vp_vec_deinit(&cpu->pages);
	vp_buffer_deinit(&cpu->page);
}

static void end_page(struct vp_dat_cpu *cpu, struct vp_dat_pages *pages)
{
	uint64_t size = cpu->page.size - PAGE_HEAD;

	memcpy(cpu->page.bytes + sizeof(uint64_t), &size, sizeof(size));
	vp_buffer_fill(&cpu->page, 0, VP_DAT_PAGE - cpu->page.size);
	int status = vp_fd_write_all(pages->fd, cpu->page.bytes, VP_DAT_PAGE);
	if (status && !pages->failure)
		pages->failure = -status;
	vp_vec_push(&cpu->pages, pages->count++);
	cpu->page.size = 0;
}

static void tracedat_file_put_word(struct vp_buffer *out, uint32_t word)
{
	vp_buffer_append(out, &word, sizeof(word));
}

static void begin_page(struct vp_dat_cpu *cpu, uint64_t time)
{
	vp_buffer_append(&cpu->page, &time, sizeof(time));
	vp_buffer_fill(&cpu->page, 0, PAGE_HEAD - sizeof(time));
	cpu->last = time;
}

bool vp_dat_cpu_put(struct vp_dat_cpu *cpu, struct vp_dat_pages *pages, uint64_t time,
		    const void *bytes, size_t size)
{
	size_t words = (size + 3) / 4;
	size_t needed = 8 + (words > LONGEST_DATA ? 8 : 4) + 4 * words;

	if (needed > VP_DAT_PAGE - PAGE_HEAD)
		return false;
	if (cpu->page.size && cpu->page.size + needed > VP_DAT_PAGE)
		end_page(cpu, pages);
	if (!cpu->page.size)
		begin_page(cpu, time);
	uint64_t delta = time - cpu->last;
	if (delta >> DELTA_BITS) {
		tracedat_file_put_word(&cpu->page, TIME_EXTEND | (uint32_t)(delta << 5));
		tracedat_file_put_word(&cpu->page, (uint32_t)(delta >> DELTA_BITS));
		delta = 0;
	}
	bool is_short = words <= LONGEST_DATA;
	tracedat_file_put_word(&cpu->page,
			       (is_short ? (uint32_t)words : 0) | (uint32_t)(delta << 5));
	if (!is_short)
		tracedat_file_put_word(&cpu->page, (uint32_t)(4 + 4 * words));
	vp_buffer_append(&cpu->page, bytes, size);
	vp_buffer_fill(&cpu->page, 0, 4 * words - size);
	cpu->last = time;
	return true;
}

void vp_dat_option(struct vp_buffer *options, uint16_t id, const void *bytes, size_t size)
{
	vp_buffer_append(options, &id, sizeof(id));
	tracedat_file_put_word(options, (uint32_t)size);
	vp_buffer_append(options, bytes, size);
}

/* The contents of a tracefs file, with the size before them. */
static void put_sized(struct vp_buffer *out, const void *bytes, uint64_t size)
{
	vp_buffer_append(out, &size, sizeof(size));
	vp_buffer_append(out, bytes, size);
}

static void tracedat_file_put_head(const struct vp_dat_head *head, uint32_t cpus,
				   struct vp_buffer *out)
{
	static const char magic[] = "\x17\x08\x44tracing6"; /* with the NUL after the version */
	static const char options[10] = "options  ", pages[10] = "flyrecord";
	const uint16_t no_option = 0;

	vp_buffer_append(out, magic, sizeof(magic));
	vp_buffer_append(out, "\0\x08", 2); /* little endian; size of a long in bytes */
	tracedat_file_put_word(out, VP_DAT_PAGE);
	vp_buffer_append(out, "header_page", sizeof("header_page"));
	put_sized(out, header_page, sizeof(header_page) - 1);
	vp_buffer_append(out, "header_event", sizeof("header_event"));
	put_sized(out, header_event, sizeof(header_event) - 1);
	tracedat_file_put_word(out, 0); /* no formats of ftrace's own events */
	tracedat_file_put_word(out, head->n_systems);
	vp_buffer_append(out, head->systems.bytes, head->systems.size);
	tracedat_file_put_word(out, 0); /* no kallsyms */
	tracedat_file_put_word(out, 0); /* no formats of trace_printk() */
	put_sized(out, head->commands.bytes, head->commands.size);
	tracedat_file_put_word(out, cpus);
	vp_buffer_append(out, options, sizeof(options));
	vp_buffer_append(out, head->options.bytes, head->options.size);
	vp_buffer_append(out, &no_option, sizeof(no_option));
	vp_buffer_append(out, pages, sizeof(pages));
}

static void put_offsets(const vp_dat_cpus *cpus, struct vp_buffer *out)
{
	uint64_t begin = out->size + cpus->count * 2 * sizeof(uint64_t);
	uint64_t position = (begin + VP_DAT_PAGE - 1) / VP_DAT_PAGE * VP_DAT_PAGE;

	vp_vec_each (cpus, cpu) {
		uint64_t size = cpu->pages.count * VP_DAT_PAGE;
		vp_buffer_append(out, &position, sizeof(position));
		vp_buffer_append(out, &size, sizeof(size));
		position += size;
	}
	vp_buffer_fill(out, 0, (VP_DAT_PAGE - out->size % VP_DAT_PAGE) % VP_DAT_PAGE);
}

static int copy_pages(int to, const struct vp_dat_cpu *cpu, const struct vp_dat_pages *pages)
{
	char page[VP_DAT_PAGE];

	vp_vec_each (&cpu->pages, position) {
		ssize_t got =
		    vp_pread(pages->fd, page, sizeof(page), (off_t)(*position * VP_DAT_PAGE));
		if (got != sizeof(page))
			return got < 0 ? -errno : -EIO;
		int status = vp_fd_write_all(to, page, sizeof(page));
		if (status)
			return status;
	}
	return 0;
}

struct vp_error *vp_dat_write(const char *path, const struct vp_dat_head *head, vp_dat_cpus *cpus,
			      struct vp_dat_pages *pages)
{
	struct vp_buffer out = {0};
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int status = fd < 0 ? -errno : 0;

	vp_vec_each (cpus, cpu)
		if (cpu->page.size)
			end_page(cpu, pages);
	tracedat_file_put_head(head, (uint32_t)cpus->count, &out);
	put_offsets(cpus, &out);
	if (!status)
		status =
		    pages->failure ? -pages->failure : vp_fd_write_all(fd, out.bytes, out.size);
	vp_buffer_deinit(&out);
	for (size_t i = 0; !status && i < cpus->count; i++)
		status = copy_pages(fd, &cpus->at[i], pages);
	if (fd >= 0 && close(fd) && !status)
		status = -errno;
	return status ? vp_error_errno(-status, "cannot write '%s'", path) : NULL;
}
