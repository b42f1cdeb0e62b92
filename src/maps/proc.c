/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/io.h"
#include "base/map.h"
#include "maps/format.h"

enum {
	MAX_MAPS_AT_ONCE = 64 << 10,
	MAX_CPUINFO = 64 << 20,
	MAX_NOTES = 1 << 20,
	MAX_STATS = 1 << 16
};
/* Limit per read: the kernel returns a page of lines at a time. */
enum { MAX_SYMBOLS_AT_ONCE = 16 * 1024 };

/* "7f00-7f01 r-xp 00001000 08:01 42      /usr/bin/true" */
static bool proc_parse_mapping(struct vp_slice line, struct vp_proc_mapping *mapping,
			       struct vp_buffer *path)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice range = vp_cursor_word(&words);
	struct vp_slice access = vp_cursor_word(&words);
	const char *dash = memchr(range.bytes, '-', range.size);

	if (!dash || access.size < 3 || access.bytes[2] != 'x')
		return false;
	struct vp_cursor start = vp_cursor_of(range.bytes, (size_t)(dash - range.bytes));
	struct vp_cursor end =
	    vp_cursor_of(dash + 1, range.size - 1 - (size_t)(dash - range.bytes));
	mapping->start = vp_cursor_hex(&start);
	mapping->end = vp_cursor_hex(&end);
	mapping->pgoff = vp_cursor_hex(&words);
	vp_cursor_word(&words); /* device */
	vp_cursor_word(&words); /* inode */
	struct vp_slice rest = vp_cursor_rest(&words);
	path->size = 0;
	vp_buffer_append(path, rest.bytes, rest.size);
	if (!rest.size)
		vp_buffer_string(path, "//anon");
	mapping->path = vp_buffer_text(path);
	return vp_cursor_ok(&start) && vp_cursor_ok(&end) && vp_cursor_ok(&words);
}

struct mappings_reading {
	bool (*each)(void *context, const struct vp_proc_mapping *mapping);
	void *context;
	struct vp_buffer path;
};

/* Parses complete lines until `each` returns false, which is then the result; *used: parsed
 * bytes. */
static bool take_mappings(struct mappings_reading *reading, const char *bytes, size_t size,
			  size_t *used)
{
	struct vp_proc_mapping mapping;
	const char *end;

	for (*used = 0; (end = memchr(bytes + *used, '\n', size - *used));) {
		struct vp_slice line = {bytes + *used, (size_t)(end - bytes) - *used};
		*used += line.size + 1;
		if (proc_parse_mapping(line, &mapping, &reading->path) &&
		    !reading->each(reading->context, &mapping))
			return false;
	}
	return true;
}

/* A line has a path of at most PATH_MAX bytes, each escaped to at most four. */
static enum vp_proc_mappings proc_read_mappings(int fd, size_t *most,
						struct mappings_reading *reading)
{
	char bytes[MAX_MAPS_AT_ONCE];
	size_t kept = 0, used;
	ssize_t got;

	while ((got = vp_read(fd, bytes + kept, sizeof(bytes) - kept)) > 0) {
		kept += (size_t)got;
		bool more = take_mappings(reading, bytes, kept, &used) && (size_t)got < *most;
		*most -= (size_t)got < *most ? (size_t)got : *most;
		if (!more)
			return VP_PROC_STOPPED;
		kept -= used;
		memmove(bytes, bytes + used, kept);
	}
	return got ? VP_PROC_GONE : VP_PROC_ALL;
}

enum vp_proc_mappings
vp_proc_mappings(uint32_t pid, size_t *bytes,
		 bool (*each)(void *context, const struct vp_proc_mapping *mapping), void *context)
{
	VP_AUTO_FREE char *file = vp_format("/proc/%u/maps", pid);
	struct mappings_reading reading = {each, context, {0}};
	VP_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return VP_PROC_GONE;
	if (!*bytes)
		return VP_PROC_STOPPED;
	enum vp_proc_mappings result = proc_read_mappings(fd, bytes, &reading);
	vp_buffer_deinit(&reading.path);
	return result;
}

struct vp_error *vp_proc_processes(void (*each)(void *context, uint32_t pid), void *context)
{
	DIR *folder = opendir("/proc");

	if (!folder)
		return vp_error_errno(errno, "cannot read '/proc'");
	for (struct dirent *entry; (entry = readdir(folder));) {
		struct vp_cursor name = vp_cursor_of(entry->d_name, strlen(entry->d_name));
		uint64_t pid = vp_cursor_decimal(&name);
		if (vp_cursor_ok(&name) && pid && pid <= UINT32_MAX)
			each(context, (uint32_t)pid);
	}
	closedir(folder);
	return NULL;
}

bool vp_proc_comm(uint32_t pid, char comm[16])
{
	VP_AUTO_FREE char *file = vp_format("/proc/%u/comm", pid);
	struct vp_buffer text = {0};
	VP_AUTO_ERROR struct vp_error *error = vp_file_read(file, 4096, &text);
	size_t size = text.size && text.bytes[text.size - 1] == '\n' ? text.size - 1 : text.size;

	if (!error)
		snprintf(comm, 16, "%.*s", (int)size, vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return !error;
}

/* Fields of /proc/PID/stat after the process name, which may contain any character. */
enum { STAT_STARTED = 19, STAT_CODE = 23, STAT_STACK = 25, STAT_FIELDS };

/* Reads the fields from STAT_STARTED on; all 0 if the process has exited. */
static void read_stat(uint32_t pid, uint64_t fields[STAT_FIELDS])
{
	VP_AUTO_FREE char *file = vp_format("/proc/%u/stat", pid);
	struct vp_buffer text = {0};
	VP_AUTO_ERROR struct vp_error *error = vp_file_read(file, 4096, &text);
	const char *name_end = error ? NULL : strrchr(vp_buffer_text(&text), ')');

	memset(fields, 0, STAT_FIELDS * sizeof(*fields));
	if (name_end && name_end[1] == ' ') {
		struct vp_cursor words = vp_cursor_of(name_end + 2, strlen(name_end + 2));
		for (int i = 0; i < STAT_STARTED; i++)
			vp_cursor_word(&words);
		for (int i = STAT_STARTED; i < STAT_FIELDS; i++)
			fields[i] = vp_cursor_decimal(&words);
	}
	vp_buffer_deinit(&text);
}

uint64_t vp_proc_start_time(uint32_t pid)
{
	uint64_t fields[STAT_FIELDS];

	read_stat(pid, fields);
	return fields[STAT_STARTED];
}

uint64_t vp_proc_program(uint32_t pid)
{
	VP_AUTO_FREE char *file = vp_format("/proc/%u/exe", pid);
	uint64_t fields[STAT_FIELDS];
	struct stat exe = {0};

	read_stat(pid, fields);
	if (!fields[STAT_STARTED])
		return 0;
	if (stat(file, &exe)) /* kernel threads have none */
		exe = (struct stat){0};
	const uint64_t parts[] = {fields[STAT_STARTED], fields[STAT_CODE], fields[STAT_STACK],
				  exe.st_dev, exe.st_ino};
	uint64_t hash = 0;
	for (size_t i = 0; i < VP_ARRAY_SIZE(parts); i++)
		hash = vp_hash64(hash ^ parts[i]);
	return hash ? hash : 1;
}

uint32_t vp_proc_inner_pid(uint32_t pid)
{
	VP_AUTO_FREE char *file = vp_format("/proc/%u/status", pid);
	struct vp_buffer text = {0};
	VP_AUTO_ERROR struct vp_error *error = vp_file_read(file, 1 << 20, &text);
	struct vp_cursor cursor = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line;

	while (!error && vp_cursor_line(&cursor, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		if (!vp_slice_is(vp_cursor_word(&words), "NSpid:"))
			continue;
		while (
		    vp_cursor_left(&words)) /* the last number is that in the innermost namespace */
			pid = (uint32_t)vp_cursor_decimal(&words);
	}
	vp_buffer_deinit(&text);
	return pid;
}

static bool cpu_has(const char *flags, size_t size, const char *flag)
{
	struct vp_cursor words = vp_cursor_of(flags, size);

	while (vp_cursor_left(&words))
		if (vp_slice_is(vp_cursor_word(&words), flag))
			return true;
	return false;
}

static void write_paging(struct vp_maps_writer *writer)
{
	struct vp_buffer text = {0};
	VP_AUTO_ERROR struct vp_error *error = vp_file_read("/proc/cpuinfo", MAX_CPUINFO, &text);
	struct vp_cursor cursor = vp_cursor_of(text.bytes, text.size);
	struct vp_slice line = {"", 0};

	while (!error && vp_cursor_line(&cursor, &line))
		if (line.size > 5 && !memcmp(line.bytes, "flags", 5))
			break;
	/* The kernel clears the flag la57 if it does not use five levels. */
	vp_maps_write_paging(writer, cpu_has(line.bytes, line.size, "la57") ? 5 : 4,
			     cpu_has(line.bytes, line.size, "pti"));
	vp_buffer_deinit(&text);
}

void vp_proc_write_machine(struct vp_maps_writer *writer, bool guest)
{
	struct vp_build_id id = {0};
	struct vp_buffer notes = {0};
	struct utsname names = {0};

	VP_AUTO_ERROR struct vp_error *error = vp_file_read("/sys/kernel/notes", MAX_NOTES, &notes);
	if (!error)
		vp_build_id_in_notes(notes.bytes, notes.size, &id);
	vp_buffer_deinit(&notes);
	uname(&names);
	vp_maps_write_machine(writer, guest, names.nodename);
	vp_maps_write_kernel(writer, names.release, &id);
	write_paging(writer);
}

/* Parses the address at the start of a line; *line: the rest. */
static uint64_t take_address(char **line)
{
	uint64_t addr = 0;
	int value;

	for (; (value = vp_hex_value(**line)) >= 0; ++*line)
		addr = addr << 4 | (uint64_t)value;
	return addr;
}

/* State of reading kallsyms. */
struct symbols_seen {
	bool any;         /* an address was seen */
	bool behind_text; /* the last one was a function's */
};

/* Writes a line of kallsyms, "ffffffff81000000 T name\t[module]", NUL-terminated; modifies it in
 * place. The kernel's symbols are sorted. After a function, only the first data symbol is written:
 * it ends the function. */
static void write_kernel_symbol(struct vp_maps_writer *writer, char *line, char *end,
				struct symbols_seen *seen)
{
	uint64_t addr = take_address(&line);

	if (!addr || end - line < 4 || line[0] != ' ' || line[2] != ' ')
		return;
	char type = line[1], *name = line + 3, *module = strchr(name, '\t');
	bool text = vp_maps_is_text(type), needed = text || seen->behind_text || module;
	seen->any = true;
	seen->behind_text = text;
	if (!needed)
		return;
	if (module) {
		*module = 0;
		module += 2; /* "\t[" */
		end[-1] = 0; /* ']' */
	}
	vp_maps_write_kernel_symbol(writer, addr, 0, type, name, module);
}

/* Writes complete lines; returns their size in bytes. */
static size_t write_kernel_symbols(struct vp_maps_writer *writer, char *bytes, size_t size,
				   struct symbols_seen *seen)
{
	char *line = bytes, *end;

	for (; (end = memchr(line, '\n', size - (size_t)(line - bytes))); line = end + 1) {
		*end = 0;
		write_kernel_symbol(writer, line, end, seen);
	}
	return (size_t)(line - bytes);
}

void vp_proc_write_kallsyms(struct vp_maps_writer *writer)
{
	VP_AUTO_CLOSE int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	char bytes[MAX_SYMBOLS_AT_ONCE];
	size_t kept = 0;
	ssize_t got;
	struct symbols_seen seen = {0};

	if (fd < 0) {
		vp_maps_write_note(writer,
				   "cannot open '/proc/kallsyms': %s, "
				   "so kernel functions have no names",
				   strerror(errno));
		return;
	}
	while ((got = vp_read(fd, bytes + kept, sizeof(bytes) - kept)) > 0) {
		kept += (size_t)got;
		size_t written = write_kernel_symbols(writer, bytes, kept, &seen);
		kept -= written;
		memmove(bytes, bytes + written, kept);
	}
	if (!seen.any)
		vp_maps_write_note(writer,
				   "'/proc/kallsyms' shows no addresses (see kptr_restrict), "
				   "so kernel functions have no names");
}

static uint64_t number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

struct vp_error *vp_proc_ftrace_lost(const char *instance, uint32_t cpu, uint64_t *ret)
{
	VP_AUTO_FREE char *path = vp_format("%s/per_cpu/cpu%" PRIu32 "/stats", instance, cpu);
	struct vp_buffer buffer = {0};
	struct vp_error *error = vp_file_read(path, MAX_STATS, &buffer);
	const char *text = vp_buffer_text(&buffer);

	*ret = number_after(text, "\noverrun: ") + number_after(text, "\ncommit overrun: ") +
	       number_after(text, "\ndropped events: ");
	vp_buffer_deinit(&buffer);
	return error;
}
