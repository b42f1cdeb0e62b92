/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the recorder share. */
#ifndef VP_RECORDING_RECORDER_PRIVATE_H
#define VP_RECORDING_RECORDER_PRIVATE_H

#include "base/alloc.h"
#include "base/map.h"
#include "collect/host_maps.h"
#include "collect/sampler.h"
#include "recording/account_writer.h"
#include "recording/guest_watch.h"
#include "recording/notices.h"
#include "recording/recorder.h"
#include "recording/trace_writer.h"

/* Of a pCPU: what its records said last. */
struct stream {
	uint32_t tid; /* the thread whose name was given */
	char comm[VP_COMM_SIZE];
	uint64_t late_from;                /* a sample after this time is more than a period late */
	uint64_t lost;                     /* records lost before this drain */
	bool may_fill;                     /* a gap in this drain is no loss: nothing was lost */
	uint32_t vcpu_pid, vcpu_tid, vcpu; /* VMM, thread and its vCPU that were noted last */
};

struct vp_recorder {
	struct vp_recorder_options options;
	struct vp_recording about;
	struct vp_trigger trigger;
	struct vp_sampler *sampler; /* NULL: only the account is recorded */
	struct vp_account_writer *account;
	struct vp_trace_writer *trace;
	int lock; /* on the directory */
	struct vp_host_maps *host_maps;
	struct vp_guest_watch *guest_watch; /* NULL: guests' memory is not read */
	vp_vms vms;
	struct vp_map vcpu_tids; /* (VMM's pid, vCPU) -> tid, as written to `vms` */
	struct vp_map no_vms;    /* pids that were looked at and have no VM */
	bool vms_changed;
	uint64_t seconds;              /* of slow work done */
	uint64_t next_second;          /* when to look for what changes slowly */
	VP_VEC(struct stream) streams; /* by pCPU */
	uint64_t samples, late;
	vp_notices notices;
	bool said_unwritten;
};

#define NOTICE(recorder, ...) vp_vec_push(&(recorder)->notices, vp_format(__VA_ARGS__))

bool vp_recorder_is_chosen(const struct vp_recorder *recorder, const struct vp_vm *vm);
/* The VM of that process, found now if it is new; NULL if the process has none (any more). */
struct vp_vm *vp_recorder_vm(struct vp_recorder *recorder, uint32_t pid);
void vp_recorder_say(const struct vp_recorder *recorder, bool only_agents_left, const char *what);

/* What is known of that pCPU's records. */
struct stream *vp_recorder_stream(struct vp_recorder *recorder, uint32_t pcpu);
/* Takes a vp_records_taker's records to the trace; `context` is the recorder. */
void vp_recorder_take(void *context, uint32_t pcpu, char *records, size_t size);

/* Map text of the host, and of the guests by their memory and by their agents. */
struct vp_error *vp_recorder_write_host_maps(struct vp_recorder *recorder) VP_MUST_CHECK;
struct vp_error *vp_recorder_read_guests(struct vp_recorder *recorder) VP_MUST_CHECK;
void vp_recorder_ask_agents(struct vp_recorder *recorder);

#endif
