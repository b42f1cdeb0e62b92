/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The events of a recording one after another, in order of time, with names. */
#ifndef VP_ANALYZE_TRACE_SCRIPT_H
#define VP_ANALYZE_TRACE_SCRIPT_H

#include "analyze/common/health.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"

struct vp_script_options {
	uint64_t from, to; /* CLOCK_MONOTONIC, ns: both are included */
	const char *vm;    /* name, or pid of its VMM; NULL: all */
	const int *pcpus;  /* only of these */
	size_t n_pcpus;    /* 0: of all */
	bool has_tid;
	uint32_t tid;              /* that had the pCPU, or that the event is about: a thread of
				      the host, or with `vm` of its guest, too */
	const char *const *events; /* names; none: all that are events */
	size_t n_events;
};

/* For people: the comm of a thread without one, as in ftrace. */
#define VP_SCRIPT_NO_COMM "<...>"

/* A field of an event: a value of a type, or text. */
struct vp_script_field {
	const char *name;
	size_t name_size;
	uint32_t column; /* its index in vp_script_columns() */
	const struct vp_event_field *type;
	struct vp_event_value value;
	const char *text;  /* clean, or NULL */
	const char *words; /* clean: instead in text for people; or NULL */
};

struct vp_script_event {
	uint64_t time;
	uint32_t pcpu;      /* VP_NO_PCPU: of none */
	bool of_guest;      /* the guest's own: `tid` and `comm` are, too */
	bool of_hypervisor; /* its own: `pcpu` is, too, and `vm` and `vcpu` had it */
	bool has_tid, has_vcpu;
	uint32_t tid, vcpu;
	const char *comm, *vm; /* clean, or NULL: not known, none */
	uint32_t guest;        /* of a guest's own: index of its VM in the list of VMs */
	const char *name;
	VP_VEC(struct vp_script_field) fields;
};

struct vp_script;

struct vp_error *vp_script_open(const char *directory, const struct vp_script_options *options,
				struct vp_script **ret) VP_MUST_CHECK;
void vp_script_close(struct vp_script *script);
/* The next one that is asked for, or NULL at the end; valid until the next call. */
const struct vp_script_event *vp_script_next(struct vp_script *script);
/* Names of all fields that there may be. */
const struct vp_intern *vp_script_columns(const struct vp_script *script);
/* Problems of the recording; valid after the last event. */
const vp_sentences *vp_script_notes(const struct vp_script *script);

#endif
