/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/python.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "runtime/characters.h"

enum {
	MAX_INTERPRETERS = 64,
	MAX_PYTHON_THREADS = 1024,
	LONGEST_FUNCTION = 256, /* characters */
	LONGEST_FILE = 1024,
	LARGEST_OFFSET = 1 << 20, /* PyInterpreterState has 500 KiB in 3.13 */
	LARGEST_OBJECT = 4096,
	MAX_NATIVE_ID = 1 << 22, /* PID_MAX_LIMIT */
};
/* Upper limit of user space with 5 levels of page tables. */
#define PYTHON_USER_END (1ULL << 56)

/* Words of struct _Py_DebugOffsets that are needed. */
enum debug_offset {
	DEBUG_INTERPRETERS,
	DEBUG_INTERPRETER_NEXT,
	DEBUG_INTERPRETER_THREADS,
	DEBUG_THREAD_NEXT,
	DEBUG_THREAD_FRAME,
	DEBUG_THREAD_NATIVE_ID,
	DEBUG_FRAME_PREVIOUS,
	DEBUG_FRAME_CODE,
	DEBUG_FRAME_OWNER,
	DEBUG_CODE_FILENAME,
	DEBUG_CODE_QUALNAME,
	DEBUG_OBJECT_TYPE,
	DEBUG_TEXT_STATE,
	DEBUG_TEXT_LENGTH,
	DEBUG_ASCII_SIZE,
	DEBUG_OFFSETS,
};
/* Places of the cookie and what follows it, the same in all versions; words that are read. */
enum { DEBUG_COOKIE, DEBUG_VERSION, DEBUG_FREE_THREADED, DEBUG_WORDS = 81 };
typedef uint8_t debug_places[DEBUG_OFFSETS];

/* Include/internal/pycore_runtime.h */
static const debug_places places_of_13 = {
    [DEBUG_INTERPRETERS] = 5,    [DEBUG_INTERPRETER_NEXT] = 8, [DEBUG_INTERPRETER_THREADS] = 9,
    [DEBUG_THREAD_NEXT] = 21,    [DEBUG_THREAD_FRAME] = 23,    [DEBUG_THREAD_NATIVE_ID] = 25,
    [DEBUG_FRAME_PREVIOUS] = 29, [DEBUG_FRAME_CODE] = 30,      [DEBUG_FRAME_OWNER] = 33,
    [DEBUG_CODE_FILENAME] = 35,  [DEBUG_CODE_QUALNAME] = 37,   [DEBUG_OBJECT_TYPE] = 45,
    [DEBUG_TEXT_STATE] = 68,     [DEBUG_TEXT_LENGTH] = 69,     [DEBUG_ASCII_SIZE] = 70,
};

/* Include/internal/pycore_debug_offsets.h */
static const debug_places places_of_14 = {
    [DEBUG_INTERPRETERS] = 5,    [DEBUG_INTERPRETER_NEXT] = 8, [DEBUG_INTERPRETER_THREADS] = 9,
    [DEBUG_THREAD_NEXT] = 24,    [DEBUG_THREAD_FRAME] = 26,    [DEBUG_THREAD_NATIVE_ID] = 28,
    [DEBUG_FRAME_PREVIOUS] = 32, [DEBUG_FRAME_CODE] = 33,      [DEBUG_FRAME_OWNER] = 36,
    [DEBUG_CODE_FILENAME] = 40,  [DEBUG_CODE_QUALNAME] = 42,   [DEBUG_OBJECT_TYPE] = 51,
    [DEBUG_TEXT_STATE] = 78,     [DEBUG_TEXT_LENGTH] = 79,     [DEBUG_ASCII_SIZE] = 80,
};

/* A supported version. Others are rejected: frames differ between versions. */
struct python_version {
	uint32_t minor;
	const uint8_t
	    *debug_places; /* CPython's own offsets replace those of `layout`; NULL: none */
	struct vp_python_layout layout;
};

static const struct python_version versions[] = {
    {11,
     NULL,
     {.runtime_interpreters = 40,
      .interpreter_next = 0,
      .interpreter_threads = 16,
      .thread_next = 8,
      .thread_native_id = 160,
      .thread_frame = 56, /* cframe */
      .frame_in = 8,      /* its current_frame */
      .frame_code = 32,
      .frame_previous = 48,
      .frame_owner = 68, /* is_entry */
      .entry_value = 1,
      .object_type = 8,
      .code_filename = 112,
      .code_qualname = 128,
      .text_length = 16,
      .text_state = 32,
      .ascii_size = 48,
      .compact_size = 72}},
    {12,
     NULL,
     {.runtime_interpreters = 40,
      .interpreter_next = 0,
      .interpreter_threads = 72,
      .thread_next = 8,
      .thread_native_id = 144,
      .thread_frame = 56, /* cframe */
      .frame_in = 0,      /* its current_frame */
      .frame_code = 0,
      .frame_previous = 8,
      .frame_owner = 70,
      .entry_value = 3, /* FRAME_OWNED_BY_CSTACK */
      .entry_is_empty = 1,
      .object_type = 8,
      .code_filename = 112,
      .code_qualname = 128,
      .text_length = 16,
      .text_state = 32,
      .ascii_size = 40,
      .compact_size = 56}},
    {13,
     places_of_13,
     {.frame_in = VP_PYTHON_DIRECT,
      .entry_value = 3, /* FRAME_OWNED_BY_CSTACK */
      .entry_is_empty = 1,
      .compact_size = 16 /* more than ascii_size */}},
    {14,
     places_of_14,
     {.frame_in = VP_PYTHON_DIRECT,
      .entry_value = 3, /* FRAME_OWNED_BY_INTERPRETER */
      .entry_is_empty = 1,
      .compact_size = 16 /* more than ascii_size */}},
};

const char *vp_python_symbol_name(enum vp_python_symbol symbol)
{
	static const char *const names[] = {[VP_PYTHON_RUNTIME] = "_PyRuntime",
					    [VP_PYTHON_VERSION] = "Py_Version",
					    [VP_PYTHON_CODE_TYPE] = "PyCode_Type",
					    [VP_PYTHON_UNICODE_TYPE] = "PyUnicode_Type",
					    [VP_PYTHON_LOOP] = "_PyEval_EvalFrameDefault"};

	return names[symbol];
}

/* Reads one of CPython's own offsets; false: invalid. */
static bool take_offset(uint64_t offset, uint32_t largest, uint32_t align, uint32_t *ret)
{
	*ret = (uint32_t)offset;
	return offset < largest && offset % align == 0;
}

static bool take_offsets(const uint64_t *words, const uint8_t *places,
			 struct vp_python_layout *layout)
{
	const struct {
		enum debug_offset from;
		uint32_t largest, align;
		uint32_t *to;
	} offsets[] = {
	    {DEBUG_INTERPRETERS, LARGEST_OFFSET, 8, &layout->runtime_interpreters},
	    {DEBUG_INTERPRETER_NEXT, LARGEST_OFFSET, 8, &layout->interpreter_next},
	    {DEBUG_INTERPRETER_THREADS, LARGEST_OFFSET, 8, &layout->interpreter_threads},
	    {DEBUG_THREAD_NEXT, LARGEST_OBJECT, 8, &layout->thread_next},
	    {DEBUG_THREAD_FRAME, LARGEST_OBJECT, 8, &layout->thread_frame},
	    {DEBUG_THREAD_NATIVE_ID, LARGEST_OBJECT, 8, &layout->thread_native_id},
	    {DEBUG_FRAME_PREVIOUS, LARGEST_OBJECT, 8, &layout->frame_previous},
	    {DEBUG_FRAME_CODE, LARGEST_OBJECT, 8, &layout->frame_code},
	    {DEBUG_FRAME_OWNER, LARGEST_OBJECT, 1, &layout->frame_owner},
	    {DEBUG_CODE_FILENAME, LARGEST_OBJECT, 8, &layout->code_filename},
	    {DEBUG_CODE_QUALNAME, LARGEST_OBJECT, 8, &layout->code_qualname},
	    {DEBUG_OBJECT_TYPE, LARGEST_OBJECT, 8, &layout->object_type},
	    {DEBUG_TEXT_STATE, LARGEST_OBJECT, 4, &layout->text_state},
	    {DEBUG_TEXT_LENGTH, LARGEST_OBJECT, 8, &layout->text_length},
	    {DEBUG_ASCII_SIZE, LARGEST_OBJECT, 8, &layout->ascii_size},
	};

	for (size_t i = 0; i < VP_ARRAY_SIZE(offsets); i++)
		if (!take_offset(words[places[offsets[i].from]], offsets[i].largest,
				 offsets[i].align, offsets[i].to))
			return false;
	layout->compact_size += layout->ascii_size;
	return layout->frame_previous != layout->frame_code &&
	       layout->code_filename != layout->code_qualname;
}

static struct vp_error *read_debug_offsets(struct vp_python *python, const uint8_t *places)
{
	static const char cookie[8] = "xdebugpy";
	uint64_t words[DEBUG_WORDS];

	if (!vp_process_read(python->memory, python->runtime, words, sizeof(words)))
		return vp_error_new("_PyRuntime cannot be read");
	if (memcmp(&words[DEBUG_COOKIE], cookie, sizeof(cookie)) != 0 ||
	    words[DEBUG_VERSION] != python->version)
		return vp_error_new("_PyRuntime has no offsets for debuggers");
	if (words[DEBUG_FREE_THREADED])
		return vp_error_new("Python without a GIL is not supported");
	if (!take_offsets(words, places, &python->layout))
		return vp_error_new("_PyRuntime has invalid offsets for debuggers");
	return NULL;
}

struct vp_error *vp_python_open(const struct vp_process_memory *memory,
				const uint64_t symbols[VP_PYTHON_SYMBOLS], struct vp_python *ret)
{
	uint64_t version;

	for (unsigned i = 0; i < VP_PYTHON_SYMBOLS; i++)
		if (!symbols[i])
			return vp_error_new("the interpreter does not export %s",
					    vp_python_symbol_name((enum vp_python_symbol)i));
	if (!vp_process_u64(memory, symbols[VP_PYTHON_VERSION], &version))
		return vp_error_new("Py_Version cannot be read");
	*ret = (struct vp_python){.memory = memory,
				  .runtime = symbols[VP_PYTHON_RUNTIME],
				  .code_type = symbols[VP_PYTHON_CODE_TYPE],
				  .text_type = symbols[VP_PYTHON_UNICODE_TYPE],
				  .version = (uint32_t)version};
	for (size_t i = 0; i < VP_ARRAY_SIZE(versions); i++)
		if (version >> 16 == (3U << 8 | versions[i].minor)) {
			ret->layout = versions[i].layout;
			return versions[i].debug_places
				   ? read_debug_offsets(ret, versions[i].debug_places)
				   : NULL;
		}
	return vp_error_new("Python %" PRIu64 ".%" PRIu64 " is not supported", version >> 24,
			    version >> 16 & 0xff);
}

/* Reads a pointer to an object; false: unreadable, or an impossible address. */
static bool read_pointer(const struct vp_python *python, uint64_t addr, uint64_t *ret)
{
	return vp_process_u64(python->memory, addr, ret) && *ret % 8 == 0 && *ret < PYTHON_USER_END;
}

bool vp_python_threads_each(const struct vp_python *python,
			    bool (*each)(void *context, const struct vp_python_thread *thread),
			    void *context)
{
	const struct vp_python_layout *at = &python->layout;
	unsigned interpreters = 0, threads = 0;
	uint64_t interpreter, id;
	struct vp_python_thread thread;

	if (!read_pointer(python, python->runtime + at->runtime_interpreters, &interpreter))
		return false;
	while (interpreter) {
		if (interpreters++ == MAX_INTERPRETERS ||
		    !read_pointer(python, interpreter + at->interpreter_threads, &thread.state))
			return false;
		while (thread.state) {
			if (threads++ == MAX_PYTHON_THREADS ||
			    !vp_process_u64(python->memory, thread.state + at->thread_native_id,
					    &id))
				return false;
			thread.native_id = (uint32_t)id;
			/* 0: the thread is starting. */
			if (id && id < MAX_NATIVE_ID && !each(context, &thread))
				return true;
			if (!read_pointer(python, thread.state + at->thread_next, &thread.state))
				return false;
		}
		if (!read_pointer(python, interpreter + at->interpreter_next, &interpreter))
			return false;
	}
	return true;
}

static bool python_fail(struct vp_python *python, enum vp_python_failure failure)
{
	python->failures[failure]++;
	return false;
}

/* Reads the pointers to the code object's file name and function name. */
static bool read_code(struct vp_python *python, uint64_t code, uint64_t *file, uint64_t *function)
{
	const struct vp_python_layout *at = &python->layout;
	uint64_t type;

	if (!code || code % 8 || code >= PYTHON_USER_END)
		return python_fail(python, VP_PYTHON_NO_CODE);
	if (!vp_process_u64(python->memory, code + at->object_type, &type))
		return python_fail(python, VP_PYTHON_UNREADABLE);
	if (type != python->code_type)
		return python_fail(python, VP_PYTHON_NO_CODE);
	if (!vp_process_u64(python->memory, code + at->code_filename, file) ||
	    !vp_process_u64(python->memory, code + at->code_qualname, function))
		return python_fail(python, VP_PYTHON_UNREADABLE);
	return true;
}

bool vp_python_code_identity(struct vp_python *python, uint64_t code, uint64_t *ret)
{
	uint64_t file, function;

	if (!read_code(python, code, &file, &function))
		return false;
	*ret = vp_hash64(file) ^ vp_hash64(~function);
	return true;
}

/* Bits of PyASCIIObject.state in 3.11 to 3.14. Kind: size of a character. Compact: the characters
 * follow the struct. */
enum { STATE_KIND_SHIFT = 2, STATE_KIND_MASK = 7, STATE_COMPACT = 1 << 5, STATE_ASCII = 1 << 6 };

/* Appends a string object, at most `most` characters. */
static bool put_text(struct vp_python *python, uint64_t object, uint64_t most,
		     struct vp_buffer *text)
{
	const struct vp_python_layout *at = &python->layout;
	unsigned char bytes[LONGEST_FILE * 4];
	uint64_t type, length;
	uint32_t state;

	if (!object || object % 8 || object >= PYTHON_USER_END)
		return python_fail(python, VP_PYTHON_NO_TEXT);
	if (!vp_process_u64(python->memory, object + at->object_type, &type) ||
	    !vp_process_u64(python->memory, object + at->text_length, &length) ||
	    !vp_process_u32(python->memory, object + at->text_state, &state))
		return python_fail(python, VP_PYTHON_UNREADABLE);
	uint32_t size = state >> STATE_KIND_SHIFT & STATE_KIND_MASK;
	bool is_ascii = state & STATE_ASCII;
	if (type != python->text_type || !(state & STATE_COMPACT) || !length ||
	    length > INT64_MAX || (size != 1 && size != 2 && size != 4) || (is_ascii && size != 1))
		return python_fail(python, VP_PYTHON_NO_TEXT);
	most = length < most ? length : most;
	if (!vp_process_read(python->memory,
			     object + (is_ascii ? at->ascii_size : at->compact_size), bytes,
			     (size_t)most * size))
		return python_fail(python, VP_PYTHON_UNREADABLE);
	for (uint64_t i = 0; i < most; i++) {
		uint32_t c = 0;
		memcpy(&c, bytes + i * size, size);
		vp_put_character(text, c);
	}
	return true;
}

bool vp_python_code_name(struct vp_python *python, uint64_t code, struct vp_buffer *name)
{
	uint64_t file, function;
	size_t before = name->size;

	if (!read_code(python, code, &file, &function))
		return false;
	vp_buffer_string(name, "py::");
	bool done = put_text(python, function, LONGEST_FUNCTION, name);
	vp_buffer_string(name, ":");
	done = done && put_text(python, file, LONGEST_FILE, name);
	if (!done)
		name->size = before;
	return done;
}
