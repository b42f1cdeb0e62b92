/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording's account, read. */
#include <inttypes.h>
#include <string.h>

#include "analyze/account.h"
#include "base/text.h"
#include "recording/trace_reader.h"

#define NOTE(book, ...) vp_vec_push(&(book)->notes, vp_format(__VA_ARGS__))

/* Ticks of the trace, and those of them that came late: what had the pCPU at their time is a guess.
 */
struct ticks {
	uint64_t all, late;
};

static void count_tick(const struct vp_record_header *record, struct ticks *ticks)
{
	uint32_t flags;

	if (record->id == VP_ID_host_sample)
		flags = ((const struct vp_host_sample *)record)->flags;
	else if (record->id == VP_ID_vcpu_sample)
		flags = ((const struct vp_vcpu_sample *)record)->flags;
	else if (record->id == VP_ID_guest_sample)
		flags = ((const struct vp_guest_sample *)record)->flags;
	else
		return;
	ticks->all++;
	ticks->late += (flags & VP_LATE) != 0;
}

static struct ticks read_records(struct vp_account_book *book, vp_stream_readers *streams)
{
	const struct vp_record_header *record;
	struct ticks ticks = {0};

	vp_vec_each (streams, stream)
		while ((record = vp_stream_next(*stream))) {
			count_tick(record, &ticks);
			vp_account_take(&book->account, record);
		}
	return ticks;
}

static void note_losses(struct vp_account_book *book)
{
	const struct vp_account_loss *lost = &book->account.lost;

	if (lost->vcpus)
		NOTE(book, "%" PRIu64 " events were of vCPUs that the account had no place for",
		     (uint64_t)lost->vcpus);
	if (lost->thieves)
		NOTE(book,
		     "%" PRIu64
		     " pieces of stolen time were taken by thieves beyond the table: there "
		     "is their sum by vCPU, not who each was",
		     (uint64_t)lost->thieves);
	if (lost->sites)
		NOTE(book,
		     "%" PRIu64 " exits are not in the account by function: there were too many "
		     "places",
		     (uint64_t)lost->sites);
}

static void clean_names(struct vp_account_book *book)
{
	vp_vec_each (&book->account.thefts, theft) {
		VP_AUTO_FREE char *comm = vp_text_cleaned(theft->comm);
		snprintf(theft->comm, sizeof(theft->comm), "%s", comm);
	}
	vp_vec_each (&book->cgroups, cgroup) {
		char *path = cgroup->path;
		cgroup->path = vp_text_cleaned(path);
		free(path);
	}
}

static struct vp_error *read_all(struct vp_account_book *book)
{
	VP_AUTO_FREE char *host = vp_format("%s/host", book->path);
	vp_stream_readers streams = {0};
	struct vp_health health = {.classes = VP_STREAMS(VP_STREAM_PCPU) |
					      VP_STREAMS(VP_STREAM_ACCOUNT) |
					      VP_STREAMS(VP_STREAM_STATES)};
	const struct vp_recording *recording = &book->recording;

	VP_TRY(vp_cgroups_read(book->path, &book->cgroups));
	VP_TRY(vp_trace_open(host, health.classes, &streams));
	struct ticks ticks = read_records(book, &streams);
	vp_health_add(&streams, &health);
	vp_health_sentences(&health, recording, &book->notes);
	vp_health_deinit(&health);
	vp_trace_close(&streams);
	clean_names(book);
	note_losses(book);
	uint64_t end = recording->end;
	book->duration = end > recording->start ? (double)(end - recording->start) / 1e9 : 0;
	/* An interrupted recording does not say how many ticks were due. */
	bool comparable = ticks.all && recording->by_time && book->duration > 0;
	double due = book->duration * 1e9 / (double)recording->period_ns * recording->pcpus;
	double sure = (double)(ticks.all - ticks.late);
	double missing = comparable && sure < due ? 1 - sure / due : 0;
	vp_account_check(&book->account, comparable ? recording->period_ns : 0, missing,
			 &book->checks);
	vp_vec_each (&book->account.times, times)
		if (times->wall)
			return NULL;
	return vp_error_new("the recording '%s' has no account of vCPUs: no VM ran, or it was made "
			    "with --no-account",
			    book->path);
}

struct vp_error *vp_account_book_open(const char *path, struct vp_account_book *ret)
{
	*ret = (struct vp_account_book){.path = path};
	vp_account_init(&ret->account, &ret->vms);
	struct vp_error *error = vp_recording_open(path, &ret->recording, &ret->vms, &ret->notes);
	if (!error)
		error = read_all(ret);
	if (error)
		vp_account_book_close(ret);
	return error;
}

void vp_account_book_close(struct vp_account_book *book)
{
	vp_recording_deinit(&book->recording);
	vp_vms_deinit(&book->vms);
	vp_cgroups_deinit(&book->cgroups);
	vp_account_deinit(&book->account);
	vp_vec_each (&book->notes, note)
		free(*note);
	vp_vec_deinit(&book->notes);
}
