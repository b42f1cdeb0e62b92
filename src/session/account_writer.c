/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "session/account_writer.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "bpf/account_abi.h"
#include "collect/programs/identity.h"
#include "schema/account_grade.h"
#include "schema/account_terms.h"
#include "schema/exit_reason.h"

enum { COPY_TRIES = 1000 };
/*
 * Grace period before the slot of an exited vCPU is reused, ns: waiters may still report it as the
 * thief.
 */
#define RELEASE_AFTER 10000000000ULL
/* Minimum time that an inactive thief keeps its entry in the source's table; and when the table is
 * more than half full. */
#define IDLE_NS 10000000000ULL
#define IDLE_WHEN_FULL_NS 1000000000ULL

/* The counts of a vCPU recorded so far. */
struct known {
	uint64_t time; /* time of the last record */
	uint64_t seen; /* time at which its slot was last found in use */
	uint32_t vm;   /* number of its VM; 0: not looked up yet */
	uint64_t states[VP_STATES];
	struct vp_account_vcpu counters;
	struct vp_account_exit *exits; /* VP_EXIT_REASONS */
	bool ended;
};

struct device_name {
	char text[VP_COMM_SIZE];
};

/* A thief, with the counts recorded so far. */
struct known_thief {
	struct vp_thief_key key;
	struct vp_thief_cost cost;
	uint64_t changed; /* time of its last increase */
	bool is_listed;   /* present in the source's table at the last scan */
};

/* Mean time of exits for a reason. */
struct mean {
	uint32_t reason;
	uint64_t ns;
};

struct vp_account_writer {
	struct vp_account_ops ops;
	struct vp_account_source *source;
	const vp_vms *vms;
	uint32_t vendor;
	vp_account_fn take;
	void *context;
	vp_account_vm_id vm_id; /* NULL: VMs are numbered by pid */
	uint64_t now;
	struct known *known;      /* by slot */
	struct vp_map thief_keys; /* index in `thieves` */
	VP_VEC(struct known_thief) thieves;
	struct vp_account_lost lost;
	vp_cgroups cgroups;
	struct vp_map device_numbers; /* index in `devices` */
	VP_VEC(struct device_name) devices;
	VP_VEC(struct vp_vcpu_span) states; /* spans not emitted yet */
	VP_VEC(struct mean) means;
	uint64_t means_at;                             /* time of the computation */
	struct vp_account_exit exits[VP_EXIT_REASONS]; /* of the vCPU that is being written */
};

struct vp_error *vp_account_writer_open(const struct vp_account_ops *ops, const vp_vms *vms,
					uint32_t vendor,
					const struct vp_account_source_options *options,
					vp_account_fn take, void *context,
					struct vp_account_writer **ret)
{
	struct vp_account_source *source = NULL;

	VP_TRY(ops->open(vms, options, &source));
	struct vp_account_writer *writer = vp_alloc(sizeof(*writer));
	*writer = (struct vp_account_writer){.ops = vp_account_ops_complete(ops),
					     .source = source,
					     .vms = vms,
					     .vendor = vendor,
					     .take = take,
					     .context = context};
	writer->known = vp_alloc(writer->ops.slots(source) * sizeof(*writer->known));
	*ret = writer;
	return NULL;
}

struct vp_account_source *vp_account_writer_source(const struct vp_account_writer *writer,
						   const struct vp_account_ops **ops)
{
	*ops = &writer->ops;
	return writer->source;
}

void vp_account_writer_number_vms(struct vp_account_writer *writer, vp_account_vm_id vm_id)
{
	writer->vm_id = vm_id;
}

void vp_account_writer_free(struct vp_account_writer *writer)
{
	if (!writer)
		return;
	for (size_t i = 0; i < writer->ops.slots(writer->source); i++)
		free(writer->known[i].exits);
	free(writer->known);
	writer->ops.free(writer->source);
	vp_map_deinit(&writer->thief_keys);
	vp_vec_deinit(&writer->thieves);
	vp_cgroups_deinit(&writer->cgroups);
	vp_map_deinit(&writer->device_numbers);
	vp_vec_deinit(&writer->devices);
	vp_vec_deinit(&writer->states);
	vp_vec_deinit(&writer->means);
	free(writer);
}

vp_cgroups *vp_account_writer_cgroups(struct vp_account_writer *writer)
{
	return &writer->cgroups;
}

static void account_writer_emit(struct vp_account_writer *writer, void *record, uint16_t id)
{
	struct vp_record_header *header = record;

	header->id = id;
	header->time = writer->now;
	writer->take(writer->context, header);
}

/* The number of the VM of the vCPU in that slot; until that is known, the pid of its VMM. */
static uint32_t vm_of_slot(const struct vp_account_writer *writer, size_t slot, uint32_t pid)
{
	return writer->known[slot].vm ? writer->known[slot].vm : pid;
}

/* The vCPU's number in the VM with number `vm_id`. */
static uint32_t account_writer_number_of(const struct vp_account_writer *writer, uint32_t vm_id,
					 const struct vp_account_vcpu *vcpu)
{
	if (vcpu->flags & VP_NUMBER_KNOWN)
		return vcpu->number;
	const struct vp_vm *vm = vp_vms_find(writer->vms, vm_id);
	if (!vm)
		return vcpu->number;
	vp_vec_each (&vm->vcpus, known)
		if (known->tid == vcpu->tid)
			return known->number;
	return vcpu->number;
}

/* Adds the time of the present state. */
static void close_state(struct vp_account_vcpu *vcpu, uint64_t now)
{
	uint32_t state = vcpu->state == VP_STATE_UNKNOWN ? vcpu->asleep : vcpu->state;

	if (state < VP_STATES && now > vcpu->since)
		vcpu->states[state] += now - vcpu->since;
}

/* The increase of each state. A state may have decreased (kernel time that turns out to be
 * polling): that is subtracted from the largest increase. */
static void take_gains(struct known *known, const struct vp_account_vcpu *vcpu,
		       uint64_t gains[VP_STATES])
{
	int64_t gain[VP_STATES], missing = 0;
	size_t most = 0;

	for (size_t i = 0; i < VP_STATES; i++) {
		gain[i] = (int64_t)(vcpu->states[i] - known->states[i]);
		if (gain[i] < 0) {
			missing -= gain[i];
			gain[i] = 0;
		}
		most = gain[i] > gain[most] ? i : most;
	}
	gain[most] = gain[most] > missing ? gain[most] - missing : 0;
	for (size_t i = 0; i < VP_STATES; i++) {
		gains[i] = (uint64_t)gain[i];
		known->states[i] += gains[i];
	}
}

static void write_states(struct vp_account_writer *writer, struct known *known,
			 const struct vp_account_vcpu *vcpu)
{
	const struct vp_account_vcpu *before = &known->counters;
	uint64_t gains[VP_STATES];

	/* The copy may be later than `now`: it has the events up to `since`. */
	uint64_t end = known->ended                ? vcpu->end
		       : vcpu->since > writer->now ? vcpu->since
						   : writer->now;
	take_gains(known, vcpu, gains);
	struct vp_vcpu_account record = {
	    .vm = known->vm,
	    .tid = vcpu->tid ? vcpu->tid : before->tid,
	    .vcpu = account_writer_number_of(writer, known->vm, vcpu),
	    .flags = known->ended ? VP_ENDED : 0,
	    .begin = known->time ? known->time : vcpu->begin,
	    .end = end,
	    .guest = gains[VP_STATE_GUEST],
	    .kernel = gains[VP_STATE_KERNEL],
	    .poll = gains[VP_STATE_POLL],
	    .vmm = gains[VP_STATE_VMM],
	    .halted = gains[VP_STATE_HALTED],
	    .waiting = gains[VP_STATE_WAITING],
	    .waking = gains[VP_STATE_WAKING],
	    .preempted = gains[VP_STATE_PREEMPTED],
	    .throttled = gains[VP_STATE_THROTTLED],
	    .irq = gains[VP_STATE_IRQ],
	    .exits = vcpu->exits - before->exits,
	    .wakeups = vcpu->wakeups - before->wakeups,
	    .preemptions = vcpu->preemptions - before->preemptions,
	    .polls = vcpu->polls - before->polls,
	    .poll_wasted = vcpu->poll_wasted - before->poll_wasted,
	};
	known->time = end;
	account_writer_emit(writer, &record, VP_ID_vcpu_account);
}

static void write_wakes(struct vp_account_writer *writer, const struct known *known,
			const struct vp_account_vcpu *vcpu)
{
	const struct vp_account_vcpu *before = &known->counters;

	for (uint16_t bucket = 0; bucket < VP_WAKE_BUCKETS; bucket++) {
		struct vp_wake_bucket record = {
		    .bucket = bucket,
		    .vm = known->vm,
		    .vcpu = account_writer_number_of(writer, known->vm, vcpu),
		    .count = vcpu->wakes[bucket] - before->wakes[bucket],
		    .ns = vcpu->wake_ns[bucket] - before->wake_ns[bucket]};
		if (record.count)
			account_writer_emit(writer, &record, VP_ID_wake_bucket);
	}
}

/* A consistent copy, unless exits are too frequent. */
static void copy_exit(const struct vp_account_exit *exit, struct vp_account_exit *ret)
{
	for (int tries = 0; tries < COPY_TRIES; tries++) {
		memcpy(ret, exit, sizeof(*ret));
		const volatile struct vp_account_exit *now = exit;
		if (now->count == ret->count && now->waking == ret->waking &&
		    now->stolen == ret->stolen)
			return;
	}
}

static uint64_t kernel_time_of(const struct vp_account_exit *exit)
{
	uint64_t others = exit->poll + exit->vmm + exit->stolen + exit->blocked + exit->waking;

	return exit->total > others ? exit->total - others : 0; /* it may have changed meanwhile */
}

/* Moves time that was taken for the guest's. */
static void take_from_guest(struct vp_account_vcpu *vcpu, enum vp_state state, uint64_t ns)
{
	uint64_t guest = vcpu->states[VP_STATE_GUEST], taken = ns < guest ? ns : guest;

	vcpu->states[VP_STATE_GUEST] -= taken;
	vcpu->states[state] += taken;
}

/*
 * A timed exit represents the untimed ones before it, but nothing represents those after the last
 * one: there may be no other. Until there is, each takes the mean kernel time of the reason's, u of
 * them u times the mean of W exits. The variance, with s^2 as in vp_exit_timing_variance(): u s^2
 * for these exits and u^2 s^2 (sum of w * w) / (W * W) for the mean.
 */
static void settle_exit(struct vp_account_vcpu *vcpu, const struct vp_account_exit *before,
			struct vp_account_exit *exit)
{
	uint64_t represented = exit->count - exit->untimed, kernel = kernel_time_of(exit);

	if (exit->untimed && represented && exit->untimed <= exit->count) {
		double untimed = exit->untimed, all = (double)represented;
		kernel += (uint64_t)((double)kernel / all * untimed);
		exit->weights += (uint64_t)(untimed + untimed * untimed / all *
							  ((double)exit->weights + all) / all);
	}
	/* Recorded time is never taken back. */
	if (kernel < kernel_time_of(before))
		kernel = kernel_time_of(before);
	if (exit->weights < before->weights)
		exit->weights = before->weights;
	uint64_t more = kernel - kernel_time_of(exit);
	exit->total += more;
	take_from_guest(vcpu, VP_STATE_KERNEL, more);
}

/* The same for interrupts that hit the guest. Returns their time, ns. */
static uint64_t settle_interrupts(const struct vp_account_vcpu *before,
				  struct vp_account_vcpu *vcpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < VP_IRQ_SOURCES; i++) {
		uint64_t untimed = vcpu->irq_untimed[i], count = vcpu->irq_count[i];
		uint64_t ns = vcpu->irq_ns[i];
		if (untimed < count)
			ns += untimed * (ns / (count - untimed));
		if (ns < before->irq_ns[i])
			ns = before->irq_ns[i];
		sum += ns - vcpu->irq_ns[i];
		vcpu->irq_ns[i] = ns;
	}
	take_from_guest(vcpu, VP_STATE_IRQ, sum);
	return sum;
}

/* Time of interrupts is part of the time of their exits. */
static void add_interrupts(const struct vp_account_exit *before, struct vp_account_exit *exit,
			   uint64_t ns)
{
	uint64_t recorded = before->stolen > exit->stolen ? before->stolen - exit->stolen : 0;
	uint64_t more = ns > recorded ? ns : recorded;

	exit->stolen += more;
	exit->total += more;
}

/* Copies the vCPU's exits, with the estimated time of those that no timed one represents yet. */
static void take_exits(struct vp_account_writer *writer, size_t slot, const struct known *known,
		       struct vp_account_vcpu *vcpu)
{
	const struct vp_account_exit *exits = writer->ops.exits(writer->source, slot);
	uint64_t interrupts = settle_interrupts(&known->counters, vcpu), most = 0;
	size_t reasons = vcpu->reasons < VP_EXIT_REASONS ? vcpu->reasons : VP_EXIT_REASONS;
	size_t hits = VP_EXIT_REASONS; /* nearly all of the exits that are only for interrupts */

	for (size_t i = 0; i < reasons; i++) {
		copy_exit(&exits[i], &writer->exits[i]);
		settle_exit(vcpu, &known->exits[i], &writer->exits[i]);
		uint64_t count = writer->exits[i].count;
		if (!vp_exit_reason_is_interrupt(writer->vendor, writer->exits[i].reason) ||
		    count <= most)
			continue;
		most = count;
		hits = i;
	}
	for (size_t i = 0; i < reasons; i++)
		add_interrupts(&known->exits[i], &writer->exits[i], i == hits ? interrupts : 0);
}

static void write_buckets(struct vp_account_writer *writer, const struct vp_exit_account *exit,
			  const uint32_t *before, const uint32_t *after)
{
	for (uint32_t bucket = 0; bucket < VP_BUCKETS; bucket++) {
		struct vp_exit_bucket record = {.vm = exit->vm,
						.vcpu = exit->vcpu,
						.reason = exit->reason,
						.vendor = exit->vendor,
						.bucket = bucket,
						.count = after[bucket] - before[bucket]};
		if (record.count)
			account_writer_emit(writer, &record, VP_ID_exit_bucket);
	}
}

static void write_sampling(struct vp_account_writer *writer, const struct vp_exit_account *exit,
			   const struct vp_account_exit *before,
			   const struct vp_account_exit *after)
{
	struct vp_exit_sampling record = {.vm = exit->vm,
					  .vcpu = exit->vcpu,
					  .reason = exit->reason,
					  .vendor = exit->vendor,
					  .timed = after->timed - before->timed,
					  .sum = after->sum - before->sum,
					  .squares = after->squares - before->squares,
					  .weights = after->weights - before->weights};

	if (record.timed || record.weights)
		account_writer_emit(writer, &record, VP_ID_exit_sampling);
}

static void write_exit(struct vp_account_writer *writer, uint32_t vm_id,
		       const struct vp_account_vcpu *vcpu, const struct vp_account_exit *before,
		       const struct vp_account_exit *after)
{
	struct vp_exit_account record = {
	    .vm = vm_id,
	    .vcpu = account_writer_number_of(writer, vm_id, vcpu),
	    .reason = after->reason,
	    .vendor = writer->vendor,
	    .count = after->count - before->count,
	    .total = after->total - before->total,
	    .max = after->max,
	    .poll = after->poll - before->poll,
	    .vmm = after->vmm - before->vmm,
	    .stolen = after->stolen - before->stolen,
	    .blocked = after->blocked - before->blocked,
	    .waking = after->waking - before->waking,
	};

	record.kernel = kernel_time_of(after) - kernel_time_of(before);
	account_writer_emit(writer, &record, VP_ID_exit_account);
	write_buckets(writer, &record, before->buckets, after->buckets);
	write_sampling(writer, &record, before, after);
}

static void write_exits(struct vp_account_writer *writer, struct known *known,
			const struct vp_account_vcpu *vcpu)
{
	for (uint32_t i = 0; i < vcpu->reasons && i < VP_EXIT_REASONS; i++) {
		const struct vp_account_exit *after = &writer->exits[i];
		struct vp_account_exit *before = &known->exits[i];
		if (after->count == before->count && after->total == before->total)
			continue;
		write_exit(writer, known->vm, vcpu, before, after);
		*before = *after;
	}
}

static void name_interrupt(uint32_t kind, uint32_t id, char name[VP_COMM_SIZE])
{
	/* enum { HI_SOFTIRQ, … } of linux/interrupt.h */
	static const char *const soft[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					   "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
	static const char *const vectors[] = {[VP_IRQ_LOCAL_TIMER] = "local_timer",
					      [VP_IRQ_RESCHEDULE] = "reschedule",
					      [VP_IRQ_CALL_FUNCTION] = "call_function",
					      [VP_IRQ_CALL_FUNCTION_SINGLE] = "call_function_1",
					      [VP_IRQ_WORK] = "irq_work"};

	if (kind == VP_BY_SOFTIRQ && id < VP_ARRAY_SIZE(soft))
		strcpy(name, soft[id]);
	else if (kind == VP_BY_VECTOR && id < VP_ARRAY_SIZE(vectors) && vectors[id])
		strcpy(name, vectors[id]);
}

/* A directory in /proc/irq/NUMBER has the name of each of its handlers. */
static void account_writer_find_device(uint32_t number, char name[VP_COMM_SIZE])
{
	VP_AUTO_FREE char *path = vp_format("/proc/irq/%u", number);
	DIR *directory = opendir(path);

	for (struct dirent *entry; directory && (entry = readdir(directory));)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
			snprintf(name, VP_COMM_SIZE, "%.15s", entry->d_name);
			break;
		}
	if (directory)
		closedir(directory);
}

/* Cached: reading /proc/irq dominates the cost of a thief record. */
static void name_device(struct vp_account_writer *writer, uint32_t number, char name[VP_COMM_SIZE])
{
	bool inserted;
	uint32_t index = *vp_map_insert(&writer->device_numbers, number,
					(uint32_t)writer->devices.count, &inserted);

	if (inserted) {
		vp_vec_push(&writer->devices, (struct device_name){0});
		account_writer_find_device(number, writer->devices.at[index].text);
	}
	memcpy(name, writer->devices.at[index].text, VP_COMM_SIZE);
}

/* Source of the interrupts of a row of the vCPU's counters. */
static void identify_interrupt(struct vp_account_writer *writer, const struct vp_account_vcpu *vcpu,
			       uint32_t row, struct vp_thief *record)
{
	record->kind = row < VP_IRQ_LOCAL_TIMER ? VP_BY_SOFTIRQ : VP_BY_VECTOR;
	record->number = row;
	if (!vcpu->irq_device[row]) {
		name_interrupt(record->kind, row, record->comm);
		return;
	}
	record->kind = VP_BY_DEVICE;
	record->number = vcpu->irq_device[row] - VP_IRQ_DEVICE;
	name_device(writer, record->number, record->comm);
}

static void write_interrupts(struct vp_account_writer *writer, const struct known *known,
			     const struct vp_account_vcpu *vcpu)
{
	for (uint32_t i = 0; i < VP_IRQ_SOURCES; i++) {
		struct vp_thief record = {
		    .vm = known->vm,
		    .vcpu = account_writer_number_of(writer, known->vm, vcpu),
		    .state = VP_STATE_IRQ,
		    .ns = vcpu->irq_ns[i] - known->counters.irq_ns[i],
		    .count = vcpu->irq_count[i] - known->counters.irq_count[i],
		};
		if (!record.ns && !record.count)
			continue;
		identify_interrupt(writer, vcpu, i, &record);
		account_writer_emit(writer, &record, VP_ID_thief);
	}
}

static void write_vcpu(struct vp_account_writer *writer, size_t slot)
{
	struct known *known = &writer->known[slot];
	struct vp_account_vcpu vcpu;

	if (!known->ended && !writer->ops.vcpu(writer->source, slot, &vcpu))
		return;
	known->seen = writer->now;
	if (known->ended)
		return;
	if (!known->exits)
		known->exits = vp_alloc(VP_EXIT_REASONS * sizeof(*known->exits));
	known->ended = vcpu.state == VP_STATE_GONE;
	close_state(&vcpu, writer->now);
	if (!known->vm)
		known->vm =
		    writer->vm_id ? writer->vm_id(writer->context, vcpu.pid, vcpu.tid) : vcpu.pid;
	take_exits(writer, slot, known, &vcpu);
	write_states(writer, known, &vcpu);
	write_wakes(writer, known, &vcpu);
	write_exits(writer, known, &vcpu);
	write_interrupts(writer, known, &vcpu);
	known->counters = vcpu;
}

/* The vCPU in that slot, as of this second: copying all counters again for each thief would cost
 * more than the rest of accounting. Otherwise, for a vCPU that started since, a copy in *room.
 * NULL: the slot is free. */
static const struct vp_account_vcpu *vcpu_of_slot(const struct vp_account_writer *writer,
						  size_t slot, struct vp_account_vcpu *room)
{
	if (slot < writer->ops.slots(writer->source) && writer->known[slot].seen == writer->now)
		return &writer->known[slot].counters;
	return writer->ops.vcpu(writer->source, slot, room) ? room : NULL;
}

static void name_thief(struct vp_account_writer *writer, const struct vp_thief_key *key,
		       struct vp_thief *record)
{
	struct vp_account_vcpu room;
	struct vp_account_task task;
	const struct vp_account_vcpu *vcpu =
	    key->kind == VP_BY_VCPU ? vcpu_of_slot(writer, key->id, &room) : NULL;

	if (vcpu) {
		record->thief_pid = vm_of_slot(writer, key->id, vcpu->pid);
		record->number = account_writer_number_of(writer, record->thief_pid, vcpu);
	} else if (key->kind == VP_BY_TASK && writer->ops.task(writer->source, key->id, &task)) {
		record->thief_pid = task.pid;
		record->cgroup = task.cgroup;
		record->flags = task.kernel_thread;
		memcpy(record->comm, task.comm, sizeof(record->comm));
		vp_cgroups_note(&writer->cgroups, task.cgroup);
	} else if (key->kind == VP_BY_DEVICE) {
		name_device(writer, key->id, record->comm);
	}
}

static void write_thief(void *context, const void *thief_key, const void *thief_cost)
{
	struct vp_account_writer *writer = context;
	const struct vp_thief_key *key = thief_key;
	const struct vp_thief_cost *cost = thief_cost;
	struct vp_account_vcpu room;
	uint64_t number;
	bool inserted;

	memcpy(&number, key, sizeof(number));
	uint32_t index =
	    *vp_map_insert(&writer->thief_keys, number, (uint32_t)writer->thieves.count, &inserted);
	if (inserted)
		vp_vec_push(&writer->thieves,
			    ((struct known_thief){.key = *key, .changed = writer->now}));
	struct known_thief *known = &writer->thieves.at[index];
	struct vp_thief_cost *before = &known->cost;
	known->is_listed = true;
	if (cost->ns == before->ns)
		return;
	const struct vp_account_vcpu *vcpu = vcpu_of_slot(writer, key->vcpu, &room);
	if (!vcpu)
		return;
	uint32_t vm_id = vm_of_slot(writer, key->vcpu, vcpu->pid);
	struct vp_thief record = {
	    .vm = vm_id,
	    .vcpu = account_writer_number_of(writer, vm_id, vcpu),
	    .state = key->state,
	    .kind = key->kind,
	    .number = key->id,
	    .ns = cost->ns - before->ns,
	    .count = cost->count - before->count,
	};
	name_thief(writer, key, &record);
	*before = *cost;
	known->changed = writer->now;
	account_writer_emit(writer, &record, VP_ID_thief);
}

/* With sampled timing: mean kernel time of timed exits for the reason; 0: none was timed. */
static uint64_t mean_of_reason(struct vp_account_writer *writer, uint32_t reason)
{
	uint64_t timed = 0, sum = 0;

	if (writer->means_at != writer->now)
		writer->means.count = 0;
	writer->means_at = writer->now;
	vp_vec_each (&writer->means, known)
		if (known->reason == reason)
			return known->ns;
	for (size_t slot = 0; slot < writer->ops.slots(writer->source); slot++) {
		const struct vp_account_exit *exits = writer->known[slot].exits;
		for (size_t i = 0; exits && i < VP_EXIT_REASONS; i++) {
			if (exits[i].reason != reason)
				continue;
			timed += exits[i].timed;
			sum += exits[i].sum;
		}
	}
	const struct mean mean = {reason, timed ? sum * VP_TIMING_UNIT_NS / timed : 0};
	vp_vec_push(&writer->means, mean);
	return mean.ns;
}

/* Including the estimated time of exits since the last timed one at the site. */
static uint64_t ns_of_site(struct vp_account_writer *writer, uint32_t reason, uint64_t ns,
			   uint64_t untimed)
{
	return untimed ? ns + untimed * mean_of_reason(writer, reason) : ns;
}

static uint16_t id_of_site(const struct vp_site_key *key, const struct vp_site_cost *cost)
{
	if (cost->idle || cost->stolen)
		return VP_ID_exit_site_waits;
	if (key->address != VP_NO_ADDRESS)
		return VP_ID_exit_site_address;
	return key->detail_kind ? VP_ID_exit_site_detail : VP_ID_exit_site;
}

/* All types of exit_site start with the fields of the previous type: detail, address, waits. */
static void write_site(struct vp_account_writer *writer, uint32_t vm_id,
		       const struct vp_site_key *key, const struct vp_site_cost *cost)
{
	struct vp_exit_site_waits record = {
	    .vm = vm_id,
	    .reason = key->reason,
	    .vendor = writer->vendor,
	    .flags = VP_SITE_KNOWN,
	    .ip = key->ip,
	    .as_root = key->cr3,
	    .count = cost->count,
	    .ns = ns_of_site(writer, key->reason, cost->ns, cost->untimed),
	    .last = cost->last,
	    .detail_kind = key->detail_kind,
	    .detail = key->detail,
	    .address = key->address,
	    .idle = cost->idle,
	    .stolen = cost->stolen};

	account_writer_emit(writer, &record, id_of_site(key, cost));
}

static void write_old_site(void *context, const void *key, const void *cost)
{
	const struct vp_site_key *site = key;

	/* For an evicted site, only the VMM's process is known. */
	write_site(context, site->pid, site, cost);
}

static void write_sites_of(struct vp_account_writer *writer, size_t slot)
{
	const struct known *known = &writer->known[slot];
	const struct vp_account_site *sites = writer->ops.sites(writer->source, slot);

	for (size_t i = 0; known->time && i < VP_EXIT_SITES; i++) {
		struct vp_site_key key = {.ip = sites[i].ip,
					  .cr3 = sites[i].cr3,
					  .address = sites[i].address,
					  .detail_kind = sites[i].detail_kind,
					  .detail = sites[i].detail,
					  .reason = sites[i].reason};
		struct vp_site_cost cost = {sites[i].count, sites[i].ns,     sites[i].last,
					    sites[i].idle,  sites[i].stolen, sites[i].untimed};
		if (cost.count)
			write_site(writer, known->vm, &key, &cost);
	}
}

static void write_sites(struct vp_account_writer *writer)
{
	for (size_t slot = 0; slot < writer->ops.slots(writer->source); slot++)
		write_sites_of(writer, slot);
	writer->ops.old_sites(writer->source, write_old_site, writer);
}

static void account_writer_write_losses(struct vp_account_writer *writer)
{
	struct vp_account_lost lost = writer->ops.lost(writer->source);
	struct vp_account_loss record = {
	    .vcpus = lost.vcpus, .thieves = lost.thieves, .sites = lost.sites};

	if (!memcmp(&lost, &writer->lost, sizeof(lost)))
		return;
	writer->lost = lost;
	account_writer_emit(writer, &record, VP_ID_account_loss);
}

/* Forgets the recorded thieves of that vCPU: counts of the slot's next vCPU start at 0. */
static void account_writer_forget_thieves(struct vp_account_writer *writer, uint32_t slot)
{
	vp_vec_each (&writer->thieves, thief)
		if (thief->key.vcpu == slot)
			thief->cost = (struct vp_thief_cost){0};
}

/* Drops thieves that are no longer in the source's table; the rest are renumbered. */
static void drop_unlisted_thieves(struct vp_account_writer *writer)
{
	size_t kept = 0;
	bool inserted;

	vp_map_deinit(&writer->thief_keys);
	vp_vec_each (&writer->thieves, thief) {
		uint64_t number;
		if (!thief->is_listed)
			continue;
		thief->is_listed = false;
		memcpy(&number, &thief->key, sizeof(number));
		vp_map_insert(&writer->thief_keys, number, (uint32_t)kept, &inserted);
		writer->thieves.at[kept++] = *thief;
	}
	writer->thieves.count = kept;
}

/* The table of threads has a fixed size: threads that took no time for a while are evicted. The
 * fuller the table, the shorter the time. */
static void recycle_thieves(struct vp_account_writer *writer)
{
	const struct vp_account_ops *ops = &writer->ops;
	VP_VEC(struct vp_thief_key) idle = {0};

	if (ops->forget_thieves) {
		bool full = writer->thieves.count > ops->max_thieves(writer->source) / 2;
		uint64_t idle_ns = full ? IDLE_WHEN_FULL_NS : IDLE_NS;
		vp_vec_each (&writer->thieves, thief)
			if (thief->is_listed && thief->key.kind != VP_BY_MANY &&
			    writer->now - thief->changed >= idle_ns)
				vp_vec_push(&idle, thief->key);
		ops->forget_thieves(writer->source, idle.at, idle.count, write_thief, writer);
		vp_vec_each (&idle, key) {
			uint64_t number;
			memcpy(&number, key, sizeof(number));
			writer->thieves.at[*vp_map_find(&writer->thief_keys, number)].is_listed =
			    false;
		}
	}
	drop_unlisted_thieves(writer);
	vp_vec_deinit(&idle);
}

/* Frees the slots of ended vCPUs after all of their records except exit sites were emitted. */
static void release_ended(struct vp_account_writer *writer)
{
	VP_VEC(uint32_t) ended = {0};

	for (uint32_t slot = 0; slot < writer->ops.slots(writer->source); slot++) {
		struct known *known = &writer->known[slot];
		if (!known->ended || writer->now < known->counters.end + RELEASE_AFTER)
			continue;
		write_sites_of(writer, slot);
		account_writer_forget_thieves(writer, slot);
		free(known->exits);
		*known = (struct known){0};
		vp_vec_push(&ended, slot);
	}
	writer->ops.release(writer->source, ended.at, ended.count);
	vp_vec_deinit(&ended);
}

void vp_account_writer_write(struct vp_account_writer *writer, uint64_t now, bool all)
{
	writer->now = writer->ops.gather(writer->source, now);
	for (size_t slot = 0; slot < writer->ops.slots(writer->source); slot++)
		write_vcpu(writer, slot);
	writer->ops.thieves(writer->source, write_thief, writer);
	if (all)
		write_sites(writer);
	account_writer_write_losses(writer);
	if (all) /* the last time */
		return;
	recycle_thieves(writer);
	release_ended(writer);
}

static void keep_state(void *context, struct vp_vcpu_span *record)
{
	struct vp_account_writer *writer = context;

	vp_vec_push(&writer->states, *record);
}

static int by_span_end(const void *a, const void *b)
{
	const struct vp_vcpu_span *left = a, *right = b;

	return (left->time > right->time) - (left->time < right->time);
}

static uint16_t number_of_thread(const struct vp_account_writer *writer,
				 const struct vp_vcpu_span *state)
{
	const struct vp_account_vcpu vcpu = {.tid = state->tid, .number = VP_VCPU_UNKNOWN};

	return (uint16_t)account_writer_number_of(writer, state->vm, &vcpu);
}

/* Keeps the spans that are still open at the end of the recording. */
static void keep_open_states(struct vp_account_writer *writer)
{
	struct vp_account_vcpu vcpu;

	for (size_t slot = 0; slot < writer->ops.slots(writer->source); slot++) {
		if (!writer->ops.vcpu(writer->source, slot, &vcpu))
			continue;
		uint32_t state = vcpu.state == VP_STATE_UNKNOWN ? vcpu.asleep : vcpu.state;
		if (state >= VP_STATES || vcpu.since >= writer->now)
			continue;
		bool has_reason = vcpu.flags & VP_REASON_KNOWN;
		struct vp_vcpu_span span = {
		    .time = writer->now,
		    .id = VP_ID_vcpu_span,
		    .flags = has_reason ? VP_HAS_EXIT_REASON : 0,
		    .vm = vcpu.pid,
		    .tid = vcpu.tid,
		    .vcpu = (uint16_t)account_writer_number_of(writer, vcpu.pid, &vcpu),
		    .state = (uint8_t)state,
		    .vendor = (uint8_t)writer->vendor,
		    .reason = has_reason ? vcpu.reason : 0,
		    .cpu = vcpu.cpu,
		    .ns = writer->now - vcpu.since,
		};
		vp_vec_push(&writer->states, span);
	}
}

void vp_account_writer_write_states(struct vp_account_writer *writer, bool last)
{
	writer->ops.drain(writer->source, keep_state, writer);
	if (last)
		keep_open_states(writer);
	if (writer->states.count)
		qsort(writer->states.at, writer->states.count, sizeof(*writer->states.at),
		      by_span_end);
	vp_vec_each (&writer->states, state) {
		if (state->vcpu == VP_VCPU_UNKNOWN)
			state->vcpu = number_of_thread(writer, state);
		writer->take(writer->context, (struct vp_record_header *)state);
	}
	writer->states.count = 0;
}
