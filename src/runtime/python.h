/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads and functions of a Python process (CPython) from its own data in memory: thread states,
 * which lead to the frames, and names of code objects. The layout is in a table per version; since
 * 3.13, CPython's own offsets for debuggers are used. Lists are bounded, and objects are accepted
 * only if their invariants hold. */
#ifndef VP_RUNTIME_PYTHON_H
#define VP_RUNTIME_PYTHON_H

#include "base/buffer.h"
#include "base/error.h"
#include "base/macros.h"
#include "runtime/process_memory.h"

/* Exported symbols of the interpreter. */
enum vp_python_symbol {
	VP_PYTHON_RUNTIME,
	VP_PYTHON_VERSION,
	VP_PYTHON_CODE_TYPE,
	VP_PYTHON_UNICODE_TYPE,
	VP_PYTHON_LOOP, /* the function that executes frames */
	VP_PYTHON_SYMBOLS,
};

enum { VP_PYTHON_DIRECT = 0xffff };

/* Offsets of struct members. */
struct vp_python_layout {
	uint32_t runtime_interpreters;
	uint32_t interpreter_next, interpreter_threads;
	uint32_t thread_next, thread_native_id;
	/* Pointer to the innermost frame: a member of the thread state (VP_PYTHON_DIRECT), or of a
	 * struct to which the thread state points. */
	uint32_t thread_frame, frame_in;
	uint32_t frame_code, frame_previous, frame_owner;
	/* Owner byte of the outermost frame that a C function executes; with `entry_is_empty`, that
	 * frame belongs to no Python function. */
	uint8_t entry_value;
	uint8_t entry_is_empty;
	uint32_t object_type;
	uint32_t code_filename, code_qualname;
	uint32_t text_length, text_state;
	uint32_t ascii_size, compact_size; /* offset of the characters */
};

/* Failures of name lookups. */
enum vp_python_failure {
	VP_PYTHON_UNREADABLE,
	VP_PYTHON_NO_CODE, /* not a code object */
	VP_PYTHON_NO_TEXT, /* the name is not a valid string */
	VP_PYTHON_FAILURES,
};

struct vp_python {
	const struct vp_process_memory *memory;
	uint64_t runtime, code_type, text_type;
	uint32_t version; /* for example 0x030b02f0: 3.11.2 */
	struct vp_python_layout layout;
	uint64_t failures[VP_PYTHON_FAILURES];
};

/* A thread that executes Python code. */
struct vp_python_thread {
	uint64_t state;     /* address of its PyThreadState */
	uint32_t native_id; /* tid, in the pid namespace of the process */
};

/* Name of the symbol in .dynsym. */
const char *vp_python_symbol_name(enum vp_python_symbol symbol);
/* Reads version and layout. `symbols`: addresses in the process; 0: missing. Errors: an unsupported
 * version, or invalid offsets. */
struct vp_error *vp_python_open(const struct vp_process_memory *memory,
				const uint64_t symbols[VP_PYTHON_SYMBOLS],
				struct vp_python *ret) VP_MUST_CHECK;
/* Calls `each` for every thread, until it returns false; false: the list is incomplete. */
bool vp_python_threads_each(const struct vp_python *python,
			    bool (*each)(void *context, const struct vp_python_thread *thread),
			    void *context);
/* Computes a value that changes if the code object at that address is replaced; false: no code
 * object. */
bool vp_python_code_identity(struct vp_python *python, uint64_t code, uint64_t *ret) VP_MUST_CHECK;
/* Appends "py::function:file", as in Python's perf maps; false: no name. */
bool vp_python_code_name(struct vp_python *python, uint64_t code,
			 struct vp_buffer *name) VP_MUST_CHECK;

#endif
