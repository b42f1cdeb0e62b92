/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/guests/guest_answer.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/io.h"

enum {
	PIECE = 65536,
	MAX_ANSWER = 64 << 20,
	MAX_CPUS = 8192,
	MAX_PROCESSES = 1 << 17,
	MAX_RUNTIMES = 8192, /* with threads */
};

/* Whether the last line of the reply has arrived. */
static bool guest_answer_is_whole(const struct vp_buffer *answer)
{
	size_t size = answer->size;

	return size >= 2 && !memcmp(answer->bytes + size - 2, ".\n", 2) &&
	       (size == 2 || answer->bytes[size - 3] == '\n');
}

static struct vp_error *said_error(struct vp_slice answer)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	while (vp_cursor_line(&cursor, &line)) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		if (!vp_slice_is(vp_cursor_word(&words), "error"))
			continue;
		struct vp_buffer text = {0};
		vp_maps_unescape(vp_cursor_rest(&words), &text);
		struct vp_error *error = vp_error_new("%s", vp_buffer_text(&text));
		vp_buffer_deinit(&text);
		return error;
	}
	return NULL;
}

struct vp_error *vp_guest_answer_take(int channel, int timeout_ms, struct vp_buffer *inbuf,
				      bool *done, struct vp_slice *answer)
{
	struct pollfd ready = {.fd = channel, .events = POLLIN};

	*done = guest_answer_is_whole(inbuf);
	while (!*done && vp_poll(&ready, 1, timeout_ms) > 0) {
		char *room = vp_buffer_extend(inbuf, PIECE);
		ssize_t got = vp_recv(channel, room, PIECE, MSG_DONTWAIT);
		inbuf->size -= PIECE - (size_t)(got > 0 ? got : 0);
		if (!got || (got < 0 && errno != EAGAIN))
			return vp_error_new("the guest memory reader has died");
		if (inbuf->size > MAX_ANSWER)
			return vp_error_new(
			    "malformed reply from the guest memory reader: too long");
		*done = guest_answer_is_whole(inbuf);
	}
	if (!*done)
		return NULL;
	*answer = (struct vp_slice){inbuf->bytes, inbuf->size - 2};
	return said_error(*answer);
}

static char *rest_of(struct vp_cursor *words)
{
	struct vp_buffer text = {0};

	vp_maps_unescape(vp_cursor_rest(words), &text);
	char *copy = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	return copy;
}

static bool guest_answer_take_kernel(struct vp_cursor *words, struct vp_guest_finding *finding)
{
	finding->text = vp_cursor_hex(words);
	finding->gpa = vp_cursor_hex(words);
	finding->size = vp_cursor_hex(words);
	finding->direct_map = vp_cursor_hex(words);
	finding->paging = vp_paging_x86((unsigned)vp_cursor_hex(words));
	finding->cached = vp_cursor_hex(words);
	finding->scanned = vp_cursor_hex(words);
	finding->derived = vp_cursor_hex(words);
	bool known = vp_build_id_parse(vp_cursor_word(words), &finding->build_id);
	free(finding->banner);
	finding->banner = rest_of(words);
	return known && vp_cursor_ok(words);
}

static bool take_count(struct vp_cursor *words, struct vp_guest_finding *finding)
{
	struct vp_guest_count_address address = {.vcpu = (uint32_t)vp_cursor_hex(words)};
	uint64_t count = vp_cursor_hex(words);

	address.count = (enum vp_guest_count)count;
	address.gpa = vp_cursor_hex(words);
	address.narrow = vp_cursor_hex(words) != 0;
	if (!vp_cursor_ok(words) || count >= VP_GUEST_COUNT ||
	    finding->counts.count == MAX_CPUS * VP_GUEST_COUNT)
		return false;
	vp_vec_push(&finding->counts, address);
	return true;
}

static bool guest_answer_take_finding(struct vp_slice line, struct vp_guest_finding *finding)
{
	struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
	struct vp_slice what = vp_cursor_word(&words);

	if (vp_slice_is(what, "kernel"))
		return guest_answer_take_kernel(&words, finding);
	const struct {
		const char *name;
		char **text;
	} texts[] = {
	    {"pack", &finding->pack}, {"lacks", &finding->lacks}, {"dropped", &finding->dropped}};
	for (size_t i = 0; i < VP_ARRAY_SIZE(texts); i++)
		if (vp_slice_is(what, texts[i].name)) {
			free(*texts[i].text);
			*texts[i].text = rest_of(&words);
			return true;
		}
	if (vp_slice_is(what, "arm64")) {
		uint64_t page_bits = vp_cursor_hex(&words), va_bits = vp_cursor_hex(&words);
		uint64_t wide = vp_cursor_hex(&words);
		finding->paging = vp_paging_arm((unsigned)page_bits, (unsigned)va_bits, wide != 0);
		finding->kernel_root = vp_cursor_hex(&words);
		return vp_cursor_ok(&words) && page_bits < 64 && va_bits < 64 &&
		       finding->paging.levels;
	}
	if (vp_slice_is(what, "searching")) {
		finding->searching = true;
		finding->searched = vp_cursor_hex(&words);
		finding->to_search = vp_cursor_hex(&words);
		return vp_cursor_ok(&words);
	}
	if (vp_slice_is(what, "banner")) {
		finding->banner_gpa = vp_cursor_hex(&words);
		return vp_cursor_ok(&words);
	}
	if (vp_slice_is(what, "count"))
		return take_count(&words, finding);
	if (vp_slice_is(what, "at")) {
		finding->off_tid = (uint32_t)vp_cursor_hex(&words);
		finding->off_tgid = (uint32_t)vp_cursor_hex(&words);
		finding->off_comm = (uint32_t)vp_cursor_hex(&words);
		finding->off_stack = (uint32_t)vp_cursor_hex(&words);
		finding->off_mm = (uint32_t)vp_cursor_hex(&words);
		finding->off_pgd = (uint32_t)vp_cursor_hex(&words);
		return vp_cursor_ok(&words);
	}
	struct vp_guest_current_address cpu = {.vcpu = (uint32_t)vp_cursor_hex(&words)};
	cpu.cpu = (uint32_t)vp_cursor_hex(&words);
	cpu.current_gpa = vp_cursor_hex(&words);
	cpu.chosen_gpa = vp_cursor_hex(&words);
	if (!vp_slice_is(what, "cpu") || !vp_cursor_ok(&words) || finding->cpus.count == MAX_CPUS)
		return false;
	vp_vec_push(&finding->cpus, cpu);
	return true;
}

struct vp_error *vp_guest_finding_parse(struct vp_slice answer, struct vp_guest_finding *ret)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	*ret = (struct vp_guest_finding){0};
	while (vp_cursor_line(&cursor, &line))
		if (!guest_answer_take_finding(line, ret)) {
			vp_guest_finding_deinit(ret);
			return vp_error_new("malformed reply from the guest memory reader");
		}
	if (ret->banner || ret->searching)
		return NULL;
	vp_guest_finding_deinit(ret);
	return vp_error_new("no reply from the guest memory reader");
}

void vp_guest_finding_deinit(struct vp_guest_finding *finding)
{
	free(finding->banner);
	free(finding->pack);
	free(finding->lacks);
	free(finding->dropped);
	vp_vec_deinit(&finding->cpus);
	vp_vec_deinit(&finding->counts);
	*finding = (struct vp_guest_finding){0};
}

struct vp_error *vp_guest_processes_parse(struct vp_slice answer, vp_guest_processes *processes,
					  bool *damaged)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	*damaged = false;
	while (vp_cursor_line(&cursor, &line) && processes->count < MAX_PROCESSES) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		struct vp_slice what = vp_cursor_word(&words);
		if (vp_slice_is(what, "damaged")) {
			*damaged = true;
			continue;
		}
		struct vp_guest_process process = {.tgid = (uint32_t)vp_cursor_hex(&words)};
		process.root = vp_cursor_hex(&words);
		if (!vp_slice_is(what, "task") || !vp_cursor_ok(&words))
			return vp_error_new("malformed reply from the guest memory reader");
		process.comm = rest_of(&words);
		vp_vec_push(processes, process);
	}
	return NULL;
}

void vp_guest_processes_deinit(vp_guest_processes *processes)
{
	vp_vec_each (processes, process)
		free(process->comm);
	vp_vec_deinit(processes);
}

static void parse_python(struct vp_cursor *words, struct vp_guest_python *ret)
{
	uint32_t *const offsets[] = {&ret->native_id,   &ret->frame,         &ret->frame_in,
				     &ret->code,        &ret->previous,      &ret->owner,
				     &ret->entry_value, &ret->entry_is_empty};

	for (size_t i = 0; i < VP_ARRAY_SIZE(offsets); i++)
		*offsets[i] = (uint32_t)vp_cursor_hex(words);
}

/* The kind of a line about a process; false: unknown. */
static bool kind_of(struct vp_slice word, enum vp_guest_runtime_kind *ret)
{
	static const char *const words[] = {[VP_RUNTIME_JAVA] = "java",
					    [VP_RUNTIME_PYTHON] = "python",
					    [VP_RUNTIME_V8] = "v8",
					    [VP_RUNTIME_THREAD] = "thread"};

	for (size_t i = 0; i < VP_ARRAY_SIZE(words); i++)
		if (vp_slice_is(word, words[i])) {
			*ret = (enum vp_guest_runtime_kind)i;
			return true;
		}
	return false;
}

/* Parses a line about a process or a thread. */
static bool parse_runtime(struct vp_cursor *words, struct vp_guest_runtime *ret)
{
	struct vp_slice what = vp_cursor_word(words);

	*ret = (struct vp_guest_runtime){.tgid = (uint32_t)vp_cursor_hex(words)};
	if (!kind_of(what, &ret->kind))
		return false;
	if (ret->kind == VP_RUNTIME_THREAD) {
		ret->tid = (uint32_t)vp_cursor_hex(words);
		ret->state = vp_cursor_hex(words);
		ret->native_id = (uint32_t)vp_cursor_hex(words);
	} else {
		ret->low = vp_cursor_hex(words);
		ret->high = vp_cursor_hex(words);
		ret->interpreter_low = vp_cursor_hex(words);
		ret->interpreter_high = vp_cursor_hex(words);
	}
	if (ret->kind == VP_RUNTIME_PYTHON)
		parse_python(words, &ret->python);
	if (ret->kind == VP_RUNTIME_V8) {
		ret->v8.context_below = (uint32_t)vp_cursor_hex(words);
		ret->v8.function_below = (uint32_t)vp_cursor_hex(words);
		ret->v8.shared = (uint32_t)vp_cursor_hex(words);
	}
	return vp_cursor_ok(words) && !vp_cursor_left(words);
}

struct vp_error *vp_guest_runtimes_parse(struct vp_slice answer, vp_guest_runtime_list *list,
					 bool *starting)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	list->count = 0;
	*starting = false;
	while (vp_cursor_line(&cursor, &line) && list->count < MAX_RUNTIMES) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		struct vp_guest_runtime runtime;
		struct vp_cursor first = words;
		if (vp_slice_is(line, "starting"))
			*starting = true;
		else if (vp_slice_is(vp_cursor_word(&first), "file"))
			continue;
		else if (parse_runtime(&words, &runtime))
			vp_vec_push(list, runtime);
		else
			return vp_error_new("malformed reply from the guest memory reader");
	}
	return NULL;
}

void vp_guest_wanted_files_parse(struct vp_slice answer, vp_guest_wanted_files *files)
{
	struct vp_cursor cursor = vp_cursor_of(answer.bytes, answer.size);
	struct vp_slice line = {0};

	while (vp_cursor_line(&cursor, &line) && files->count < VP_GUEST_FILES) {
		struct vp_cursor words = vp_cursor_of(line.bytes, line.size);
		struct vp_guest_wanted_file file;
		struct vp_buffer path = {0};
		if (!vp_slice_is(vp_cursor_word(&words), "file") ||
		    !vp_build_id_parse(vp_cursor_word(&words), &file.build_id) ||
		    !file.build_id.size)
			continue;
		vp_maps_unescape(vp_cursor_word(&words), &path);
		file.path = vp_strdup(vp_buffer_text(&path));
		vp_buffer_deinit(&path);
		vp_vec_push(files, file);
	}
}

void vp_guest_wanted_files_deinit(vp_guest_wanted_files *files)
{
	vp_vec_each (files, file)
		free(file->path);
	vp_vec_deinit(files);
}
