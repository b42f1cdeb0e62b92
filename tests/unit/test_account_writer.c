/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The account's records from a source whose counters the test sets: one vCPU, and who took its
 * time. */
#include "unit.h"

#include "recording/account_writer.h"

enum { ROOM = 40, PID = 1000, TID = 1001, SECOND = 1000000000 };

struct entry {
	struct vp_thief_key key;
	struct vp_thief_cost cost;
};

struct vp_account_source {
	VP_VEC(struct entry) table;
	struct vp_thief_cost others;
};
static struct vp_account_source source;
static uint64_t recorded_ns, recorded_count, records; /* of thieves, in all */

static struct vp_error *open_source(const vp_vms *vms,
				    const struct vp_account_source_options *options,
				    struct vp_account_source **ret)
{
	*ret = &source;
	return NULL;
}

static void begin_source(struct vp_account_source *own, const vp_vms *vms, uint64_t now)
{
}

static void free_source(struct vp_account_source *own)
{
	vp_vec_deinit(&own->table);
}

static size_t places(const struct vp_account_source *own)
{
	return 1;
}

static bool vcpu_at(const struct vp_account_source *own, size_t place, struct vp_account_vcpu *ret)
{
	*ret = (struct vp_account_vcpu){
	    .pid = PID, .tid = TID, .since = SECOND, .begin = SECOND, .state = VP_STATE_GUEST};
	return true;
}

static void release(struct vp_account_source *own, const uint32_t *at, size_t count)
{
	assert_int_equal(count, 0);
}

static const struct vp_account_exit *exits(const struct vp_account_source *own, size_t place)
{
	static const struct vp_account_exit none[VP_EXIT_REASONS];

	return none;
}

static const struct vp_account_site *sites(const struct vp_account_source *own, size_t place)
{
	static const struct vp_account_site none[VP_EXIT_SITES];

	return none;
}

static void thieves(const struct vp_account_source *own,
		    void (*take)(void *context, const void *key, const void *cost), void *context)
{
	const struct vp_thief_key many = {.kind = VP_BY_MANY, .state = VP_STATE_PREEMPTED};

	vp_vec_each (&own->table, entry)
		take(context, &entry->key, &entry->cost);
	if (own->others.count)
		take(context, &many, &own->others);
}

static void forget(const struct vp_account_source *own, const struct vp_thief_key *keys,
		   size_t count, void (*take)(void *context, const void *key, const void *cost),
		   void *context)
{
	struct vp_account_source *changed = &source;

	for (size_t i = 0; i < count; i++)
		for (size_t at = 0; at < changed->table.count; at++)
			if (!memcmp(&changed->table.at[at].key, &keys[i], sizeof(keys[i]))) {
				changed->table.at[at].cost.ns += 3; /* meanwhile */
				take(context, &keys[i], &changed->table.at[at].cost);
				changed->table.at[at] = changed->table.at[--changed->table.count];
				break;
			}
}

static size_t most_thieves(const struct vp_account_source *own)
{
	return ROOM;
}

static void old_sites(const struct vp_account_source *own,
		      void (*take)(void *context, const void *key, const void *cost), void *context)
{
}

static bool task(const struct vp_account_source *own, uint32_t tid, struct vp_account_task *ret)
{
	*ret = (struct vp_account_task){.comm = "thief", .pid = tid};
	return true;
}

static struct vp_account_lost lost(const struct vp_account_source *own)
{
	return (struct vp_account_lost){.thieves = own->others.count};
}

static const struct vp_account_ops ops = {.open = open_source,
					  .begin = begin_source,
					  .free = free_source,
					  .places = places,
					  .vcpu = vcpu_at,
					  .release = release,
					  .exits = exits,
					  .sites = sites,
					  .thieves = thieves,
					  .forget_thieves = forget,
					  .most_thieves = most_thieves,
					  .old_sites = old_sites,
					  .task = task,
					  .lost = lost};

/* As the program in the kernel does: the entry's counts grow, or a new one is made if there is
 * room. */
static void steal(uint32_t tid, uint64_t ns)
{
	const struct vp_thief_key key = {
	    .kind = VP_BY_TASK, .state = VP_STATE_PREEMPTED, .id = tid};

	vp_vec_each (&source.table, entry)
		if (entry->key.id == tid) {
			entry->cost.ns += ns;
			entry->cost.count++;
			return;
		}
	if (source.table.count < ROOM) {
		vp_vec_push(&source.table, ((struct entry){key, {ns, 1}}));
		return;
	}
	source.others.ns += ns;
	source.others.count++;
}

static void take_record(void *context, struct vp_record_header *record)
{
	const struct vp_thief *thief = (const void *)record;

	if (record->id != VP_ID_thief)
		return;
	records++;
	recorded_ns += thief->ns;
	recorded_count += thief->count;
	assert_int_equal(thief->kind, VP_BY_TASK);
	assert_string_equal(thief->comm, "thief");
}

static struct vp_account_writer *open_writer(void)
{
	static const vp_vms none = {0};
	struct vp_account_writer *writer;

	source = (struct vp_account_source){0};
	recorded_ns = recorded_count = records = 0;
	expect_no_error(
	    vp_account_writer_open(&ops, &none, VP_VENDOR_AMD, NULL, take_record, NULL, &writer));
	vp_account_writer_begin(writer, SECOND);
	return writer;
}

/* Threads that come and go, for hours: each has its name, and the table never fills up. */
static void test_thieves_are_named_for_ever(void **state)
{
	struct vp_account_writer *writer = open_writer();
	uint64_t stolen = 0, now = SECOND;

	for (uint32_t second = 1; second <= 5000; second++) {
		for (uint32_t i = 0; i < 8; i++) {
			steal(100 + second * 8 + i, 1000 + i);
			stolen += 1000 + i;
		}
		now += SECOND;
		vp_account_writer_write(writer, now, false);
		assert_true(source.table.count <= ROOM);
	}
	/* Each entry that was removed got 3 ns more before its removal. */
	uint64_t gone = 5000 * 8 - source.table.count;
	assert_int_equal(recorded_ns, stolen + 3 * gone);
	assert_int_equal(recorded_count, 5000 * 8);
	assert_int_equal(source.others.count, 0);
	vp_account_writer_free(writer);
}

/* One that takes time again, long after it was forgotten: only what is new is recorded. */
static void test_thief_comes_back(void **state)
{
	struct vp_account_writer *writer = open_writer();

	steal(7, 5000);
	vp_account_writer_write(writer, 2ULL * SECOND, false);
	assert_int_equal(recorded_ns, 5000);
	vp_account_writer_write(writer, 5ULL * SECOND, false);
	assert_int_equal(source.table.count, 1); /* there is room: it stays for a while */
	vp_account_writer_write(writer, 30ULL * SECOND, false);
	assert_int_equal(source.table.count, 0);
	assert_int_equal(recorded_ns, 5003);
	steal(7, 200);
	vp_account_writer_write(writer, 31ULL * SECOND, false);
	assert_int_equal(recorded_ns, 5203);
	steal(7, 10);
	vp_account_writer_write(writer, 32ULL * SECOND, true);
	assert_int_equal(recorded_ns, 5213);
	assert_int_equal(records, 4);
	vp_account_writer_free(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_thieves_are_named_for_ever),
	    cmocka_unit_test(test_thief_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
