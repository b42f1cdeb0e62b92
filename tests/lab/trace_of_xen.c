/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_of_xen FILE HZ: what vperf makes of a trace that xentrace wrote, as JSON: for each vCPU its
 * times by state, and its exits by reason. To compare with what xenalyze makes of it. HZ: of the
 * TSC.
 */
#include <stdio.h>

#include "base/file.h"
#include "xen/states.h"
#include "xen/xen_order.h"

enum { CPU_CHANGE = 0x0001f003, FILE_MAX = 1 << 30 };

typedef VP_VEC(struct vp_xen_traced) traced_records;

/* xentrace puts a record of its own before those of each pCPU: which one, and how many bytes
 * follow. */
static void read_all(const struct vp_buffer *file, double ns_per_tick, traced_records *ret)
{
	struct vp_cursor cursor = vp_cursor_of(file->bytes, file->size);
	uint64_t last[4096] = {0};
	uint32_t pcpu = 0;

	while (vp_cursor_left(&cursor) >= 4) {
		struct vp_cursor ahead = cursor;
		struct vp_xen_traced traced = {0};
		uint32_t head = vp_cursor_u32(&ahead);
		if ((head & 0x0fffffff) == CPU_CHANGE)
			pcpu = vp_cursor_u32(&ahead) % 4096;
		if (!vp_xen_record_read(&cursor, &traced.record))
			break;
		last[pcpu] = traced.record.tsc ? traced.record.tsc : last[pcpu];
		traced.pcpu = pcpu;
		traced.time = (uint64_t)((double)last[pcpu] * ns_per_tick);
		if (traced.record.event != VP_XEN_OTHER)
			vp_vec_push(ret, traced);
	}
}

static void print_vcpu(const struct vp_xen_states *states, uint32_t place)
{
	const struct vp_account_vcpu *vcpu = &states->vcpus[place];

	printf("%s{\"domain\": %u, \"vcpu\": %u, \"states\": [", place ? ",\n" : "", vcpu->pid - 1,
	       vcpu->number);
	for (int i = 0; i < VP_STATES; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)vcpu->states[i]);
	printf("], \"exits\": {");
	for (uint32_t i = 0; i < vcpu->reasons; i++)
		printf("%s\"%u\": %llu", i ? ", " : "", states->exits[place][i].reason,
		       (unsigned long long)states->exits[place][i].count);
	printf("}}");
}

int main(int argc, char **argv)
{
	struct vp_buffer file = {0};
	struct vp_xen_states states;
	struct vp_xen_order order = {0};
	traced_records records = {0};

	if (argc != 3 || !(strtod(argv[2], NULL) > 0))
		return 2;
	struct vp_error *error = vp_file_read(argv[1], FILE_MAX, &file);
	if (error) {
		fprintf(stderr, "%s\n", vp_error_message(error));
		return 1;
	}
	read_all(&file, 1e9 / strtod(argv[2], NULL), &records);
	vp_xen_order_find(&order, records.at, records.count);
	vp_xen_states_init(&states, VP_VENDOR_AMD, false);
	states.begin = records.count ? records.at[order.indices.at[0]].time : 0;
	vp_vec_each (&order.indices, place)
		vp_xen_states_take(&states, &records.at[*place]);
	printf("[");
	for (uint32_t place = 0; place < states.n_slots; place++)
		print_vcpu(&states, place);
	printf("]\n");
	vp_xen_states_deinit(&states);
	vp_xen_order_deinit(&order);
	vp_vec_deinit(&records);
	vp_buffer_deinit(&file);
	return 0;
}
