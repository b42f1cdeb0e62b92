/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/instrument_account.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "collect/guests/guest_answer.h"
#include "collect/guests/guest_watch.h"
#include "collect/programs/hypervisor.h"
#include "collect/programs/identity.h"
#include "schema/memory_outcome.h"
#include "schema/records.h"
#include "session/account_writer.h"
#include "session/admit.h"
#include "session/hypervisor_choice.h"
#include "session/identity_user.h"
#include "session/instrument.h"
#include "session/session_flight.h"
#include "store/cgroups.h"
#include "store/packet.h"
#include "store/recording.h"
#include "store/sample_counts.h"
#include "store/trace_writer.h"

struct account {
	struct vp_instrument base;
	struct vp_account_source_options options;
	struct vp_account_writer *writer;
	const struct vp_account_ops *ops;
	struct vp_account_source *source; /* owned by the writer */
	struct vp_admission admission;
};

static struct account *account_instrument_of(const struct vp_instrument *instrument)
{
	return (struct account *)instrument;
}

/* The VM may be new. */
static uint32_t instrument_account_number_vm(void *context, uint32_t pid, uint32_t tid)
{
	const struct account *account = context;

	return vp_session_vm_id(account->base.session, pid, tid);
}

static bool is_site(const struct vp_record_header *header)
{
	return header->id == VP_ID_exit_site || header->id == VP_ID_exit_site_detail ||
	       header->id == VP_ID_exit_site_address || header->id == VP_ID_exit_site_waits;
}

static void take_account(void *context, struct vp_record_header *header)
{
	struct account *account = context;
	struct vp_session *session = account->base.session;
	const enum vp_stream_class kind =
	    header->id == VP_ID_vcpu_span ? VP_STREAM_STATES : VP_STREAM_ACCOUNT;

	/* Sites cover the time since the start of the recorder, which is not in snapshots. */
	if (is_site(header) && vp_session_options(session)->flight)
		return;
	vp_admit(session, &account->admission, header);
	vp_trace_append(vp_session_trace(session), (struct vp_stream_id){kind, VP_NO_PCPU}, header);
}

static struct vp_error *account_instrument_open(struct vp_instrument *instrument,
						struct vp_services *services)
{
	struct account *account = account_instrument_of(instrument);
	struct vp_session *session = instrument->session;

	bool has_rip =
	    !vp_session_hypervisor(session)->has_processes || vp_session_enable_exit_rip(session);
	account->options.exit_event = services->exit_event;
	account->options.kernel = vp_session_kernel_btf(session);
	account->options.guest_sampler = services->guest_sampler;
	account->options.watch = vp_session_condition_watch(session);
	const struct vp_hypervisor *hypervisor = vp_session_hypervisor(session);
	VP_TRY(vp_account_writer_open(hypervisor->account(), vp_session_vms(session),
				      hypervisor->vendor(), &account->options, take_account,
				      account, &account->writer));
	account->source = vp_account_writer_source(account->writer, &account->ops);
	services->exit_programs = account->ops->programs(account->source);
	vp_account_writer_number_vms(account->writer, instrument_account_number_vm);
	const char *missing = account->ops->missing(account->source);
	if (missing)
		VP_NOTICE(session, "vCPU accounting is limited on this kernel: %s", missing);
	if (!has_rip)
		VP_NOTICE(session, "VM exits have no guest RIP: the kernel has no event "
				   "'kvm:kvm_exit'");
	return NULL;
}

/* Outcome for exits caused by guest code. */
static void instrument_account_count_named(void *context, uint32_t pid,
					   const struct vp_guest_finding *finding,
					   struct vp_memory_outcome *ret)
{
	struct vp_identity_counts counts = vp_identity_counts(context, pid, finding);

	vp_memory_outcome_count(ret, VP_MEMORY_EXITS, counts.good, counts.failed);
}

static void account_describe(const struct vp_instrument *instrument, struct vp_recording *info)
{
	info->account_grade = account_instrument_of(instrument)->options.grade;
}

static void account_watch_guests(struct vp_instrument *instrument)
{
	const struct account *account = account_instrument_of(instrument);
	struct vp_identity *identity = account->ops->identity(account->source);

	if (!identity)
		return;
	const struct vp_guest_watch_client user =
	    vp_identity_client(identity, "exits", instrument_account_count_named);
	vp_session_watch_guests(instrument->session, &user);
}

static struct vp_error *account_instrument_prepare(struct vp_instrument *instrument)
{
	const struct account *account = account_instrument_of(instrument);

	return account->ops->prepare(account->source);
}

static struct vp_error *account_start(struct vp_instrument *instrument, uint64_t now)
{
	const struct account *account = account_instrument_of(instrument);

	account->ops->begin(account->source, vp_session_vms(instrument->session), now);
	return NULL;
}

static struct vp_error *account_instrument_drain(struct vp_instrument *instrument)
{
	const struct account *account = account_instrument_of(instrument);

	/* The source must be emptied frequently. */
	account->ops->gather(account->source, vp_clock_monotonic());
	if (account->options.with_states)
		vp_account_writer_write_states(account->writer, false);
	return NULL;
}

static void account_second(struct vp_instrument *instrument, uint64_t now)
{
	struct vp_session *session = instrument->session;

	vp_account_writer_write(account_instrument_of(instrument)->writer, now, false);
	vp_sample_counts_write(vp_session_sample_counts(session), now, vp_session_trace(session));
}

static struct vp_error *account_stop(struct vp_instrument *instrument)
{
	const struct account *account = account_instrument_of(instrument);

	account->ops->end(account->source);
	return NULL;
}

static struct vp_error *account_put_files(struct vp_instrument *instrument, const char *directory)
{
	vp_cgroups *cgroups = vp_account_writer_cgroups(account_instrument_of(instrument)->writer);

	vp_cgroups_find(cgroups);
	return vp_cgroups_write(directory, cgroups);
}

static struct vp_error *account_finish(struct vp_instrument *instrument, uint64_t end)
{
	struct account *account = account_instrument_of(instrument);

	vp_account_writer_write(account->writer, end, true);
	vp_sample_counts_write(vp_session_sample_counts(instrument->session), end,
			       vp_session_trace(instrument->session));
	if (account->options.with_states)
		vp_account_writer_write_states(account->writer, true);
	return account_put_files(instrument, vp_session_directory(instrument->session));
}

/* Events lost on the way; those missed by the accounting are in an account_loss record. */
static uint64_t account_instrument_lost(const struct vp_instrument *instrument,
					struct vp_stream_id id)
{
	const struct account *account = account_instrument_of(instrument);

	if (account->writer && id.kind == VP_STREAM_ACCOUNT)
		return account->ops->lost_events(account->source);
	return account->writer && account->options.with_states && id.kind == VP_STREAM_STATES
		   ? account->ops->lost_states(account->source)
		   : 0;
}

static void account_put_total(const struct vp_instrument *instrument, struct vp_buffer *out)
{
}

static void account_instrument_free(struct vp_instrument *instrument)
{
	vp_account_writer_free(account_instrument_of(instrument)->writer);
	free(instrument);
}

#define OPS(own_streams, is_often)                                                                 \
	{                                                                                          \
		.name = "account", .classes = (own_streams), .needs_names = true,                  \
		.provides = VP_SERVICE_EXIT_PROGRAMS, .uses = VP_SERVICE_GUEST_SAMPLER,            \
		.often = (is_often), .describe = account_describe,                                 \
		.open = account_instrument_open, .watch_guests = account_watch_guests,             \
		.prepare = account_instrument_prepare, .start = account_start,                     \
		.drain = account_instrument_drain, .second = account_second, .stop = account_stop, \
		.finish = account_finish, .put_files = account_put_files,                          \
		.lost = account_instrument_lost, .put_total = account_put_total,                   \
		.free = account_instrument_free                                                    \
	}

struct vp_instrument *vp_instrument_account(const struct vp_account_source_options *options)
{
	static const struct vp_instrument_ops sums = OPS(VP_STREAMS(VP_STREAM_ACCOUNT), false);
	static const struct vp_instrument_ops gathered_sums =
	    OPS(VP_STREAMS(VP_STREAM_ACCOUNT), true);
	static const struct vp_instrument_ops sums_and_states =
	    OPS(VP_STREAMS(VP_STREAM_ACCOUNT) | VP_STREAMS(VP_STREAM_STATES), true);
	struct account *account = vp_alloc(sizeof(*account));
	bool often = vp_hypervisor_here()->account()->often;

	account->base.ops = options->with_states ? &sums_and_states
			    : often              ? &gathered_sums
						 : &sums;
	account->base.absence = "no vCPU accounting";
	account->options = *options;
	return &account->base;
}
