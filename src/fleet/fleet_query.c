/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/fleet_query.h"

#include <inttypes.h>
#include <string.h>

/* Appends a name as a regular expression that matches only this name, within a PromQL string. Names
 * come from tenants. */
static void query_put_name(const char *name, struct vp_buffer *out)
{
	for (; *name; name++) {
		if (*name == '\\')
			vp_buffer_string(out, "\\\\\\\\");
		else if (*name == '"')
			vp_buffer_string(out, "\\\"");
		else if (strchr(".+*?()|[]{}^$", *name))
			vp_buffer_printf(out, "\\\\%c", *name);
		else
			vp_buffer_append(out, name, 1);
	}
}

static void query_put_names(const char *label, const vp_fleet_texts *names, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%s=~\"", label);
	for (size_t i = 0; i < names->count; i++) {
		vp_buffer_string(out, i ? "|" : "");
		query_put_name(names->at[i], out);
	}
	vp_buffer_string(out, "\",");
}

/* Appends NAME{MATCHERS}; the user's matchers come last. */
static void query_put_metric(const struct vp_fleet_options *options, const char *name,
			     const char *matcher, const vp_fleet_texts *vms,
			     const vp_fleet_texts *thieves, struct vp_buffer *out)
{
	vp_buffer_printf(out, "%s{%s", name, matcher);
	if (vms)
		query_put_names("vm", vms, out);
	if (thieves)
		query_put_names("thief", thieves, out);
	vp_buffer_printf(out, "%s}", options->match);
}

static void query_put_steal(const struct vp_fleet_options *options, const char *by,
			    const vp_fleet_texts *vms, const char *offset, struct vp_buffer *out)
{
	vp_buffer_printf(out, "sum by (%s) (rate(", by);
	query_put_metric(options, "vperf_vcpu_stolen_seconds_total", "", vms, NULL, out);
	vp_buffer_printf(out, "[%" PRIu64 "s]%s))", options->range_s, offset);
}

static void query_put_pairs(const struct vp_fleet_options *options, const vp_fleet_texts *vms,
			    const vp_fleet_texts *thieves, struct vp_buffer *out)
{
	vp_buffer_string(out, "sum by (instance, vm, thief) (rate(");
	query_put_metric(options, "vperf_vm_stolen_by_seconds_total", "kind=\"vm\",", vms, thieves,
			 out);
	vp_buffer_printf(out, "[%" PRIu64 "s])) > 0", options->range_s);
}

static void query_put_change(const struct vp_fleet_options *options, const char *which,
			     struct vp_buffer *out)
{
	vp_buffer_printf(out, "%s(%" PRIu64 ", ", which, options->limit);
	query_put_steal(options, "vm", NULL, "", out);
	vp_buffer_string(out, " - ");
	query_put_steal(options, "vm", NULL, " offset 1d", out);
	vp_buffer_string(out, ")");
}

static void query_put_top(const struct vp_fleet_options *options, const char *by,
			  struct vp_buffer *out)
{
	vp_buffer_printf(out, "topk(%" PRIu64 ", ", options->limit);
	query_put_steal(options, by, NULL, "", out);
	vp_buffer_string(out, " > 0)");
}

void vp_fleet_query_put(const struct vp_fleet_options *options, enum vp_fleet_query query,
			const vp_fleet_texts *vms, const vp_fleet_texts *thieves,
			struct vp_buffer *out)
{
	switch (query) {
	case VP_FLEET_QUERY_VCPUS:
		query_put_top(options, "instance, vm, vcpu", out);
		break;
	case VP_FLEET_QUERY_PAIRS:
		vp_buffer_printf(out, "topk(%" PRIu64 ", ", options->limit);
		query_put_pairs(options, NULL, NULL, out);
		vp_buffer_string(out, ")");
		break;
	case VP_FLEET_QUERY_BACK:
		query_put_pairs(options, vms, thieves, out);
		break;
	case VP_FLEET_QUERY_WAITING:
		query_put_top(options, "instance", out);
		break;
	case VP_FLEET_QUERY_OVERCOMMIT:
		vp_buffer_string(out, "max by (instance) (");
		query_put_metric(options, "vperf_vm_finding_ratio", "rule=\"overcommit\",", NULL,
				 NULL, out);
		vp_buffer_string(out, ")");
		break;
	case VP_FLEET_QUERY_VMS:
		vp_buffer_string(out, "count by (instance) (");
		query_put_metric(options, "vperf_vm_info", "", NULL, NULL, out);
		vp_buffer_string(out, ")");
		break;
	case VP_FLEET_QUERY_WORSE:
		query_put_change(options, "topk", out);
		break;
	case VP_FLEET_QUERY_BETTER:
		query_put_change(options, "bottomk", out);
		break;
	case VP_FLEET_QUERY_STEAL:
		query_put_steal(options, "vm", vms, "", out);
		break;
	case VP_FLEET_QUERY_RECORDINGS:
		query_put_metric(options, "vperf_recording_info", "", NULL, NULL, out);
		break;
	case VP_FLEET_QUERY_INFO:
		query_put_metric(options, "vperf_vm_info", "", vms, NULL, out);
		break;
	case VP_FLEET_QUERIES:
		break;
	}
}
