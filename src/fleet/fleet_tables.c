/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/fleet_tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/vec.h"

static const char *label_of(const struct vp_fleet_series *series, enum vp_fleet_label label)
{
	return series->labels[label];
}

static bool fleet_is_same(const struct vp_fleet_series *one, const struct vp_fleet_series *other,
			  enum vp_fleet_label label)
{
	return !strcmp(one->labels[label], other->labels[label]);
}

/* Removes the port of an instance HOST:PORT. */
static const char *fleet_host_of(struct vp_fleet *fleet, const char *instance)
{
	const char *colon = strrchr(instance, ':');
	bool has_port = colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
	char *host =
	    has_port ? vp_strndup(instance, (size_t)(colon - instance)) : vp_strdup(instance);

	vp_vec_push(&fleet->texts, host);
	return host;
}

static struct vp_error *fleet_ask(const struct vp_fleet_engine *engine,
				  const struct vp_fleet_options *options, enum vp_fleet_query query,
				  const vp_fleet_texts *vms, const vp_fleet_texts *thieves,
				  struct vp_fleet *fleet)
{
	struct vp_buffer text = {0};

	vp_fleet_query_put(options, query, vms, thieves, &text);
	struct vp_error *error =
	    engine->ask(engine->context, vp_buffer_text(&text), &fleet->answers[query]);
	vp_buffer_deinit(&text);
	return error;
}

/* Collects the distinct values of a label. */
static void fleet_add_names(const struct vp_fleet_answer *answer, enum vp_fleet_label label,
			    vp_fleet_texts *ret)
{
	vp_vec_each (&answer->series, series) {
		bool known = false;
		vp_vec_each (ret, name)
			known |= !strcmp(*name, label_of(series, label));
		if (!known)
			vp_vec_push(ret, series->labels[label]);
	}
}

/* The value of the series that has the same values as `of` for the labels in the bit set `same`;
 * `otherwise`: not found. */
static double fleet_value_of(const struct vp_fleet_answer *answer, const struct vp_fleet_series *of,
			     unsigned same, double otherwise)
{
	vp_vec_each (&answer->series, series) {
		bool alike = true;
		for (unsigned label = 0; label < VP_FLEET_LABELS; label++)
			alike &= !(same & 1U << label) ||
				 fleet_is_same(series, of, (enum vp_fleet_label)label);
		if (alike)
			return series->value;
	}
	return otherwise;
}

static const char *fleet_recording_of(const struct vp_fleet *fleet,
				      const struct vp_fleet_series *of)
{
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_RECORDINGS].series, series)
		if (fleet_is_same(series, of, VP_FLEET_INSTANCE))
			return label_of(series, VP_FLEET_RECORDING);
	return NULL;
}

static const struct vp_fleet_series *fleet_info_of(const struct vp_fleet *fleet,
						   const struct vp_fleet_series *of)
{
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_INFO].series, series)
		if (fleet_is_same(series, of, VP_FLEET_INSTANCE) &&
		    fleet_is_same(series, of, VP_FLEET_VM))
			return series;
	return NULL;
}

/* Other hosts that have the VM at the moment: a migrating VM is on two. Under KubeVirt, VMs of the
 * same name in different namespaces have the same uuid. */
static const char *fleet_also_on(struct vp_fleet *fleet, const struct vp_fleet_series *of)
{
	const struct vp_fleet_series *own = fleet_info_of(fleet, of);
	struct vp_buffer text = {0};

	if (!own || !*label_of(own, VP_FLEET_UUID))
		return NULL;
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_INFO].series, series)
		if (fleet_is_same(series, own, VP_FLEET_UUID) &&
		    fleet_is_same(series, own, VP_FLEET_NAMESPACE) &&
		    !fleet_is_same(series, own, VP_FLEET_INSTANCE))
			vp_buffer_printf(&text, "%s%s", text.size ? " " : "",
					 fleet_host_of(fleet, label_of(series, VP_FLEET_INSTANCE)));
	if (!text.size) {
		vp_buffer_deinit(&text);
		return NULL;
	}
	char *hosts = vp_strdup(vp_buffer_text(&text));
	vp_buffer_deinit(&text);
	vp_vec_push(&fleet->texts, hosts);
	return hosts;
}

static void fleet_put_uuid(const struct vp_fleet *fleet, const struct vp_fleet_series *of,
			   struct vp_table *table)
{
	const struct vp_fleet_series *info = fleet_info_of(fleet, of);

	vp_table_text(table, info && *label_of(info, VP_FLEET_UUID) ? label_of(info, VP_FLEET_UUID)
								    : NULL);
}

static void fleet_make_vcpus(struct vp_fleet *fleet)
{
	struct vp_table *table = &fleet->tables[VP_FLEET_VCPUS];

	vp_table_column_add(table, "steal", "Steal", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "instance", "Instance", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vcpu", "vCPU", "", VP_CELL_TEXT);
	vp_table_column_add(table, "recording", "Recording", "", VP_CELL_TEXT);
	vp_table_column_add(table, "uuid", "UUID", "", VP_CELL_TEXT);
	vp_table_column_add(table, "also_on", "Also on", "", VP_CELL_TEXT);
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_VCPUS].series, series) {
		vp_table_percent(table, 100 * series->value);
		vp_table_text(table, fleet_host_of(fleet, label_of(series, VP_FLEET_INSTANCE)));
		vp_table_text(table, label_of(series, VP_FLEET_VM));
		vp_table_text(table, label_of(series, VP_FLEET_VCPU));
		vp_table_text(table, fleet_recording_of(fleet, series));
		fleet_put_uuid(fleet, series, table);
		vp_table_text(table, fleet_also_on(fleet, series));
	}
	vp_table_sort(table, 0);
}

/* Steal in the other direction. */
static double fleet_back(const struct vp_fleet *fleet, const struct vp_fleet_series *of)
{
	struct vp_fleet_series swapped = *of;

	swapped.labels[VP_FLEET_VM] = of->labels[VP_FLEET_THIEF];
	swapped.labels[VP_FLEET_THIEF] = of->labels[VP_FLEET_VM];
	return fleet_value_of(&fleet->answers[VP_FLEET_QUERY_BACK], &swapped,
			      1U << VP_FLEET_INSTANCE | 1U << VP_FLEET_VM | 1U << VP_FLEET_THIEF,
			      0);
}

static void fleet_make_pairs(struct vp_fleet *fleet)
{
	struct vp_table *table = &fleet->tables[VP_FLEET_PAIRS];

	vp_table_column_add(table, "steal", "Steal", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "back", "Back", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "instance", "Instance", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	vp_table_column_add(table, "thief", "Thief", "", VP_CELL_TEXT);
	vp_table_column_add(table, "recording", "Recording", "", VP_CELL_TEXT);
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_PAIRS].series, series) {
		vp_table_percent(table, 100 * series->value);
		vp_table_percent(table, 100 * fleet_back(fleet, series));
		vp_table_text(table, fleet_host_of(fleet, label_of(series, VP_FLEET_INSTANCE)));
		vp_table_text(table, label_of(series, VP_FLEET_VM));
		vp_table_text(table, label_of(series, VP_FLEET_THIEF));
		vp_table_text(table, fleet_recording_of(fleet, series));
	}
	vp_table_sort(table, 0);
}

static void fleet_make_hosts(struct vp_fleet *fleet)
{
	struct vp_table *table = &fleet->tables[VP_FLEET_HOSTS];
	const unsigned host = 1U << VP_FLEET_INSTANCE;

	vp_table_column_add(table, "waiting", "Waiting", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "overcommit", "Overcommit", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "instance", "Instance", "", VP_CELL_TEXT);
	vp_table_column_add(table, "vms", "VMs", "", VP_CELL_COUNT);
	vp_table_column_add(table, "recording", "Recording", "", VP_CELL_TEXT);
	vp_vec_each (&fleet->answers[VP_FLEET_QUERY_WAITING].series, series) {
		const struct vp_fleet_answer *answers = fleet->answers;
		double vms = fleet_value_of(&answers[VP_FLEET_QUERY_VMS], series, host, -1);
		vp_table_percent(table, 100 * series->value);
		vp_table_percent(table, 100 * fleet_value_of(&answers[VP_FLEET_QUERY_OVERCOMMIT],
							     series, host, 0));
		vp_table_text(table, fleet_host_of(fleet, label_of(series, VP_FLEET_INSTANCE)));
		vp_table_count(table, vms < 0 ? VP_CELL_NO_COUNT : (uint64_t)vms);
		vp_table_text(table, fleet_recording_of(fleet, series));
	}
	vp_table_sort(table, 0);
}

static void fleet_put_changes(struct vp_fleet *fleet, enum vp_fleet_query query, bool worse,
			      struct vp_table *table)
{
	vp_vec_each (&fleet->answers[query].series, series) {
		if (worse ? series->value <= 0 : series->value >= 0)
			continue;
		double now = fleet_value_of(&fleet->answers[VP_FLEET_QUERY_STEAL], series,
					    1U << VP_FLEET_VM, series->value);
		vp_table_percent(table, 100 * series->value);
		vp_table_percent(table, 100 * now);
		vp_table_percent(table, 100 * (now - series->value));
		vp_table_text(table, label_of(series, VP_FLEET_VM));
	}
}

/* Steal of a VM is summed over all hosts that it was on. */
static void fleet_make_changes(struct vp_fleet *fleet)
{
	struct vp_table *table = &fleet->tables[VP_FLEET_CHANGES];

	vp_table_column_add(table, "change", "Change", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "now", "Now", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "day_before", "Day before", "%", VP_CELL_PERCENT);
	vp_table_column_add(table, "vm", "VM", "", VP_CELL_TEXT);
	fleet_put_changes(fleet, VP_FLEET_QUERY_WORSE, true, table);
	fleet_put_changes(fleet, VP_FLEET_QUERY_BETTER, false, table);
	vp_table_sort(table, 0);
}

/* Queries that need no names from other replies. */
static struct vp_error *fleet_ask_first(const struct vp_fleet_engine *engine,
					const struct vp_fleet_options *options,
					struct vp_fleet *fleet)
{
	static const enum vp_fleet_query first[] = {
	    VP_FLEET_QUERY_VCPUS,      VP_FLEET_QUERY_PAIRS,     VP_FLEET_QUERY_WAITING,
	    VP_FLEET_QUERY_OVERCOMMIT, VP_FLEET_QUERY_VMS,       VP_FLEET_QUERY_WORSE,
	    VP_FLEET_QUERY_BETTER,     VP_FLEET_QUERY_RECORDINGS};

	for (size_t i = 0; i < VP_ARRAY_SIZE(first); i++)
		VP_TRY(fleet_ask(engine, options, first[i], NULL, NULL, fleet));
	return NULL;
}

static struct vp_error *fleet_ask_named(const struct vp_fleet_engine *engine,
					const struct vp_fleet_options *options,
					struct vp_fleet *fleet)
{
	vp_fleet_texts vms = {0}, victims = {0}, thieves = {0}, changed = {0};
	struct vp_error *error = NULL;

	fleet_add_names(&fleet->answers[VP_FLEET_QUERY_VCPUS], VP_FLEET_VM, &vms);
	fleet_add_names(&fleet->answers[VP_FLEET_QUERY_PAIRS], VP_FLEET_VM, &victims);
	fleet_add_names(&fleet->answers[VP_FLEET_QUERY_PAIRS], VP_FLEET_THIEF, &thieves);
	fleet_add_names(&fleet->answers[VP_FLEET_QUERY_WORSE], VP_FLEET_VM, &changed);
	fleet_add_names(&fleet->answers[VP_FLEET_QUERY_BETTER], VP_FLEET_VM, &changed);
	if (vms.count)
		error = fleet_ask(engine, options, VP_FLEET_QUERY_INFO, &vms, NULL, fleet);
	if (!error && victims.count)
		error = fleet_ask(engine, options, VP_FLEET_QUERY_BACK, &thieves, &victims, fleet);
	if (!error && changed.count)
		error = fleet_ask(engine, options, VP_FLEET_QUERY_STEAL, &changed, NULL, fleet);
	vp_vec_deinit(&vms);
	vp_vec_deinit(&victims);
	vp_vec_deinit(&thieves);
	vp_vec_deinit(&changed);
	return error;
}

struct vp_error *vp_fleet_make(const struct vp_fleet_engine *engine,
			       const struct vp_fleet_options *options, struct vp_fleet *ret)
{
	*ret = (struct vp_fleet){0};
	struct vp_error *error = fleet_ask_first(engine, options, ret);
	if (!error)
		error = fleet_ask_named(engine, options, ret);
	if (error) {
		vp_fleet_deinit(ret);
		return error;
	}
	fleet_make_vcpus(ret);
	fleet_make_pairs(ret);
	fleet_make_hosts(ret);
	fleet_make_changes(ret);
	return NULL;
}

void vp_fleet_deinit(struct vp_fleet *fleet)
{
	for (size_t i = 0; i < VP_FLEET_TABLES; i++)
		vp_table_deinit(&fleet->tables[i]);
	for (size_t i = 0; i < VP_FLEET_QUERIES; i++)
		vp_fleet_answer_deinit(&fleet->answers[i]);
	vp_vec_each (&fleet->texts, text)
		free(*text);
	vp_vec_deinit(&fleet->texts);
}
