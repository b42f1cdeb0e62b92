/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of a recording in order of time, with names. */
#ifndef VP_ANALYZE_TRACE_SCRIPT_H
#define VP_ANALYZE_TRACE_SCRIPT_H

#include "analyze/common/health.h"
#include "analyze/trace/script_classes.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"
#include "schema/vm.h"

struct vp_script_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns, inclusive */
	const char *vm;    /* name, or pid of its VMM; NULL: all */
	const int *pcpus;  /* only these */
	size_t n_pcpus;    /* 0: all */
	bool has_tid;
	uint32_t tid; /* thread that was running, or that the event is about: of the host, or with
			 `vm` also of its guest */
	const char *const *events; /* names; empty: all events */
	size_t n_events;
};

/* In text output: the comm of an unknown thread, as in ftrace. */
#define VP_SCRIPT_NO_COMM "<...>"

/* A field of an event: a number of a type, or text. */
struct vp_script_field {
	const char *name;
	size_t name_size;
	uint32_t column; /* index in vp_script_columns() */
	const struct vp_event_field *type;
	struct vp_event_value value;
	const char *text;  /* cleaned, or NULL */
	size_t text_size;  /* of a text that is not NULL */
	const char *words; /* cleaned; replaces the number in text output; or NULL */
};

struct vp_script_event {
	uint64_t time;
	uint32_t pcpu;      /* VP_NO_PCPU: none */
	bool of_guest;      /* an event of the guest's kernel: `tid` and `comm` are the guest's */
	bool of_hypervisor; /* an event of the hypervisor: `pcpu` is its number; `vm` and `vcpu`
			       were running */
	bool has_tid, has_vcpu;
	uint32_t tid, vcpu;
	const char *comm, *vm; /* cleaned, or NULL: unknown, or none */
	uint32_t guest;        /* for a guest's event: index of the VM */
	const char *name;
	size_t name_size;
	VP_VEC(struct vp_script_field) fields;
};

/* A host thread. */
struct vp_script_thread {
	const char *comm;       /* NULL: unknown */
	const struct vp_vm *vm; /* NULL: not a vCPU thread */
	uint32_t vcpu;
	uint32_t comm_size;
};

/* An event of the host whose class is plain, unread; or any other event. */
struct vp_script_plain {
	const struct vp_script_event *event; /* NULL: it is plain */
	/* A plain event: */
	uint32_t id; /* of the class */
	uint32_t pcpu;
	uint64_t time;
	/* Number of changes of threads' names so far: they are the same as long as it is. */
	uint64_t changes;
	const char *fields; /* valid until the next event; see vp_script_number() */
};

struct vp_script;

struct vp_error *vp_script_open(const char *directory, const struct vp_script_options *options,
				struct vp_script **ret) VP_MUST_CHECK;
void vp_script_close(struct vp_script *script);
/* The next selected event, or NULL at the end; valid until the next call. */
const struct vp_script_event *vp_script_next(struct vp_script *script);
/* The same for options without `vm` and `tid`, by which an event is selected after it was read.
 * False at the end. */
bool vp_script_next_plain(struct vp_script *script, struct vp_script_plain *ret);
/* Reads the plain event that was returned last. */
const struct vp_script_event *vp_script_read_plain(struct vp_script *script)
    __attribute__((returns_nonnull));
/* The letter of ps for a thread's state as in `prev_state`. */
char vp_script_state_letter(uint64_t state, bool preempted);
/* The host thread as known now, valid until the next event. The idle task, 0, is that of the
 * pCPU. */
const struct vp_script_thread *vp_script_thread(struct vp_script *script, uint32_t tid,
						uint32_t pcpu);
const struct vp_script_classes *vp_script_host_classes(const struct vp_script *script);
/* Cleaned. */
const char *vp_script_vm_name(const struct vp_script *script, const struct vp_vm *vm);
/* Names of all possible fields. */
const struct vp_intern *vp_script_columns(const struct vp_script *script);
/* Problems of the recording; complete after the last event. */
const vp_sentences *vp_script_notes(const struct vp_script *script);

#endif
