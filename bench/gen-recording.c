/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Makes a synthetic recording (it says so in its note) or a perf.data of N samples, for timing
 * reports: gen-recording [-z] [--all | --vms M | --changes KIND] N DIR | gen-recording --perf N
 * FILE PROGRAM. --all: also call chains of the host's processes, N/10 intervals of vCPUs and N/5
 * events.
 * --vms: of M VMs, of which two have symbol maps. --changes: with migrations, renames, process
 * lifetimes, a VM that ends; KIND is ticks, chains, idle (pCPUs without samples) or events (samples
 * have periods). -z: streams are compressed.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gen.h"
#include "maps/writer.h"
#include "store/packet_zstd.h"
#include "store/recording.h"
#include "store/trace_writer.h"

enum { CHAIN = 7, AMD_INTR = 0x60, AMD_HLT = 0x78, AMD_NPF = 0x400 };

static VP_NORETURN void die(struct vp_error *error)
{
	fprintf(stderr, "gen-recording: %s\n", vp_error_message(error));
	exit(1);
}

static void check(struct vp_error *error)
{
	if (error)
		die(error);
}

struct wanted {
	uint64_t samples, vms;
	bool all, compressed;
	const char *changes; /* NULL: none */
};

static bool changes_are(const struct wanted *wanted, const char *kind)
{
	return wanted->changes && !strcmp(wanted->changes, kind);
}

/* Which vCPU is on a pCPU: each has one of each VM, and they take turns, many of them shorter ones.
 */
static uint32_t vm_of(uint64_t vms, uint32_t pcpu, uint64_t tick)
{
	return (uint32_t)((vms > GEN_VMS ? tick * GEN_PCPUS : tick / 16) + pcpu) % (uint32_t)vms;
}

/* Of many VMs these are close together, as no pid is larger than 2^22. */
static uint32_t pid_of(uint64_t vms, uint32_t vm)
{
	return vms > GEN_VMS ? GEN_VMM + vm * (GEN_PCPUS + 1) : GEN_VMM * (vm + 1);
}

static void sample_of(uint64_t *state, uint64_t vms, uint32_t pcpu, uint64_t tick,
		      union vp_any_record *record)
{
	uint64_t what = gen_random(state) % 100, process = gen_random(state) % GEN_PROCESSES;
	uint32_t vm = vm_of(vms, pcpu, tick);
	uint32_t pid = pid_of(vms, vm), tid = pid + 1 + pcpu;
	uint64_t time = GEN_START + tick * GEN_PERIOD + 1000 * pcpu;

	if (what < 75) {
		bool kernel = what < 15;
		record->guest_sample = (struct vp_guest_sample){
		    .time = time,
		    .id = VP_ID_guest_sample,
		    .vm = pid,
		    .tid = tid,
		    .mode = kernel ? VP_MODE_GUEST_KERNEL : VP_MODE_GUEST_USER,
		    .ip = gen_address(state, kernel ? GEN_KERNEL_TEXT : GEN_TEXT),
		    .as_root = 0x10000 * (process + 1),
		    .vcpu = pcpu,
		    .exit_reason = AMD_INTR,
		    .vendor = VP_VENDOR_AMD,
		    .flags = VP_HAS_EXIT_REASON | VP_HAS_AS_ROOT | VP_HAS_CPL,
		    .cpl = kernel ? 0 : 3};
	} else if (what < 85) {
		record->vcpu_sample =
		    (struct vp_vcpu_sample){.time = time,
					    .id = VP_ID_vcpu_sample,
					    .vm = pid,
					    .tid = tid,
					    .mode = VP_MODE_KERNEL,
					    .ip = gen_address(state, GEN_KERNEL_TEXT),
					    .vcpu = pcpu,
					    .exit_reason = what < 80 ? AMD_NPF : AMD_HLT,
					    .vendor = VP_VENDOR_AMD,
					    .flags = VP_HAS_EXIT_REASON};
	} else {
		bool idle = what >= 90;
		record->host_sample = (struct vp_host_sample){
		    .time = time,
		    .id = VP_ID_host_sample,
		    .pid = idle ? 0 : pid,
		    .tid = idle ? 0 : tid,
		    .mode = idle ? VP_MODE_KERNEL : VP_MODE_USER,
		    .ip = gen_address(state, idle ? GEN_KERNEL_TEXT : GEN_TEXT)};
	}
}

/* The host's processes are all called from one function, and then by any. */
static void put_chain(struct vp_trace_writer *writer, uint64_t *state, uint32_t pcpu,
		      const union vp_any_record *record)
{
	const struct vp_host_sample *sample = &record->host_sample;
	struct vp_chain_frames chain = {.time = sample->time,
					.id = VP_ID_chain_frames,
					.tid = sample->tid,
					.mode = VP_MODE_USER,
					.count = CHAIN,
					.ips = {sample->ip}};

	for (uint32_t i = 1; i < CHAIN; i++)
		chain.ips[i] = i + 1 < CHAIN ? gen_address(state, GEN_TEXT) : GEN_TEXT;
	vp_trace_append(writer, vp_stream_of_pcpu(pcpu), &chain);
}

static bool has_chain(const union vp_any_record *record)
{
	return record->header.id == VP_ID_host_sample && record->host_sample.pid;
}

static uint64_t end_of(uint64_t samples)
{
	return GEN_START + samples / GEN_PCPUS * GEN_PERIOD;
}

static void write_changes(struct vp_trace_writer *writer, const struct wanted *wanted,
			  const vp_vms *vms)
{
	struct gen_changes changes = {.samples = wanted->samples,
				      .end = end_of(wanted->samples),
				      .chains = changes_are(wanted, "chains"),
				      .gaps = changes_are(wanted, "idle"),
				      .periods = changes_are(wanted, "events")};

	for (size_t i = 0; i < vms->count; i++) {
		changes.ids[i] = vp_vm_id(&vms->at[i]);
		changes.tids[i] = vms->at[i].vcpus.at[0].tid - 1;
	}
	gen_changes(writer, &changes);
}

static void write_samples(struct vp_trace_writer *writer, const struct wanted *wanted)
{
	uint64_t state = 88172645463325252ULL;
	union vp_any_record record;

	for (uint64_t i = 0; i < wanted->samples; i++) {
		uint32_t pcpu = i % GEN_PCPUS;
		sample_of(&state, wanted->vms, pcpu, i / GEN_PCPUS, &record);
		if (wanted->all && has_chain(&record))
			put_chain(writer, &state, pcpu, &record);
		vp_trace_append(writer, vp_stream_of_pcpu(pcpu), &record);
	}
}

static void write_trace(const char *directory, const char *path, const struct wanted *wanted,
			const vp_vms *vms)
{
	static const uint8_t uuid[16] = "synthetic";
	struct vp_ctf_trace trace = {uuid, "synthetic", "host", 0};
	struct vp_trace_writer *writer;

	check(vp_trace_writer_create(path, &trace, &writer));
	if (wanted->compressed)
		vp_trace_writer_compress(writer, VP_ZSTD_LEVEL_MIN);
	if (wanted->changes)
		write_changes(writer, wanted, vms);
	else
		write_samples(writer, wanted);
	for (uint32_t pcpu = 0; pcpu < GEN_PCPUS; pcpu++)
		vp_trace_flush(writer, vp_stream_of_pcpu(pcpu), 0);
	if (wanted->all) {
		check(gen_intervals(directory, writer, wanted->samples / 10,
				    end_of(wanted->samples)));
		check(gen_events(writer, wanted->samples / 5, end_of(wanted->samples)));
	}
	int failure = vp_trace_take_failure(writer);
	if (failure)
		die(vp_error_errno(failure, "cannot write '%s'", path));
	vp_trace_writer_free(writer);
}

/* Process i of a machine lives from here … */
static uint64_t birth_of(const struct wanted *wanted, uint32_t i)
{
	uint64_t length = end_of(wanted->samples) - GEN_START;

	return wanted->changes && i % 2 ? GEN_START + length * i / (2 * GEN_PROCESSES) : 0;
}

/* … to here; 0: to the end. */
static uint64_t death_of(const struct wanted *wanted, uint32_t i)
{
	return wanted->changes && i % 3 == 1 ? end_of(wanted->samples) * 3 / 4 : 0;
}

static void write_clocks(struct vp_maps_writer *writer, const struct wanted *wanted)
{
	uint64_t end = end_of(wanted->samples);

	vp_maps_write_clock(writer, GEN_START, GEN_START, 10);
	vp_maps_write_clock(writer, end, end, 10);
}

static void write_maps(const char *path, bool guest, const char *name, const struct wanted *wanted)
{
	struct vp_maps_writer writer;
	struct vp_build_id id = {0};

	vp_maps_writer_init(&writer, -1);
	vp_maps_write_machine(&writer, guest, name);
	vp_maps_write_paging(&writer, 4, false);
	if (wanted->changes && guest)
		write_clocks(&writer, wanted);
	for (uint64_t i = 0; i < GEN_FUNCTIONS; i++) {
		VP_AUTO_FREE char *function = vp_format("kernel_function_%" PRIu64, i);
		vp_maps_write_kernel_symbol(&writer, GEN_KERNEL_TEXT + i * GEN_FUNCTION_SIZE,
					    GEN_FUNCTION_SIZE, 'T', function, NULL);
	}
	for (uint32_t i = 0; i < GEN_PROCESSES; i++) {
		VP_AUTO_FREE char *comm = vp_format("process%u", i);
		vp_maps_write_space(&writer, i + 1, guest ? 100 + i : GEN_VMM * (i + 1),
				    guest ? 0x10000ULL * (i + 1) : 0, birth_of(wanted, i),
				    death_of(wanted, i), comm);
		vp_maps_write_mapping(&writer, i + 1, GEN_TEXT,
				      GEN_TEXT + GEN_FUNCTIONS * GEN_FUNCTION_SIZE, GEN_TEXT_OFFSET,
				      0, &id, "/bin/program");
	}
	vp_maps_write_image(&writer, &id, "/bin/program");
	for (uint64_t i = 0; i < GEN_FUNCTIONS; i++) {
		VP_AUTO_FREE char *function = vp_format("function_%" PRIu64, i);
		vp_maps_write_symbol(&writer, GEN_TEXT_OFFSET + i * GEN_FUNCTION_SIZE,
				     GEN_FUNCTION_SIZE, function);
	}
	if (vp_maps_writer_finish(&writer))
		abort();
	check(vp_file_publish(path, writer.buffer.bytes, writer.buffer.size));
	vp_maps_writer_deinit(&writer);
}

static void write_about(const char *directory, const struct wanted *wanted, const vp_vms *vms)
{
	char note[] = "synthetic: made by bench/gen-recording, not by a machine";
	struct vp_recording about = {
	    .tool = VPERF_VERSION,
	    .hostname = "synthetic",
	    .kernel = "none",
	    .instruments = wanted->all ? "profile intervals trace" : "profile",
	    .chains = wanted->all || changes_are(wanted, "chains"),
	    .weighting = changes_are(wanted, "idle")     ? VP_WEIGHTING_TIME
			 : changes_are(wanted, "events") ? VP_WEIGHTING_EVENTS
							 : VP_WEIGHTING_TICKS,
	    .events = 1000,
	    .trigger = "cpu-clock",
	    .command = "",
	    .note = note,
	    .period_ns = GEN_PERIOD,
	    .by_time = !changes_are(wanted, "idle"),
	    .compression = wanted->compressed ? VP_ZSTD_LEVEL_MIN : 0,
	    .pcpus = GEN_PCPUS,
	    .start = GEN_START,
	    .end = end_of(wanted->samples),
	    .records = {[VP_STREAM_PCPU] = wanted->samples}};

	check(vp_recording_write(directory, &about));
	check(vp_vms_write(directory, vms));
}

/* The second VM ends, and the third one has its pid. */
static void change_vms(vp_vms *vms, const struct wanted *wanted)
{
	uint64_t length = end_of(wanted->samples) - GEN_START;

	if (!wanted->changes)
		return;
	vms->at[1].end = GEN_START + length / 2;
	vms->at[2].pid = vms->at[1].pid;
	vms->at[2].nth = 1;
	vms->at[2].at_start = false;
	vms->at[2].start = vms->at[1].end + 1;
	vp_vec_each (vms, vm)
		vp_vec_each (&vm->vcpus, vcpu) {
			vcpu->has_tsc = true;
			vcpu->tsc_ratio = 1ULL << 32;
			vcpu->tsc_frac_bits = 32;
		}
}

static void write_recording(const char *directory, const struct wanted *wanted)
{
	VP_AUTO_FREE char *trace = vp_format("%s/host", directory);
	vp_vms vms = {0};

	if (mkdir(directory, 0755))
		die(vp_error_errno(errno, "cannot create '%s'", directory));
	for (uint32_t i = 0; i < wanted->vms; i++) {
		struct vp_vm vm = {
		    .pid = pid_of(wanted->vms, i), .at_start = true, .start = GEN_START};
		vm.name = vp_format("vm%u", i);
		vm.uuid = vp_strdup("");
		vm.agent = vp_strdup("");
		for (uint32_t j = 0; j < GEN_PCPUS; j++)
			vp_vm_vcpu(&vm, j)->tid = vm.pid + 1 + j;
		vp_vec_push(&vms, vm);
	}
	change_vms(&vms, wanted);
	write_about(directory, wanted, &vms);
	write_trace(directory, trace, wanted, &vms);
	VP_AUTO_FREE char *host = vp_recording_maps_path(directory, &vms, NULL);
	write_maps(host, false, "synthetic", wanted);
	vp_vec_each (&vms, vm) {
		if (vm - vms.at >= GEN_VMS)
			break;
		VP_AUTO_FREE char *guest = vp_recording_maps_path(directory, &vms, vm);
		write_maps(guest, true, vm->name, wanted);
	}
	vp_vms_deinit(&vms);
}

static int usage(void)
{
	fputs("usage: gen-recording [-z] [--all | --vms M | --changes KIND] N DIR | "
	      "gen-recording --perf N FILE PROGRAM\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"all", no_argument, NULL, 'a'},
						{"vms", required_argument, NULL, 'v'},
						{"changes", required_argument, NULL, 'c'},
						{"perf", no_argument, NULL, 'p'},
						{0}};
	struct wanted wanted = {.vms = GEN_VMS};
	bool perf = false;
	int option;

	while ((option = getopt_long(argc, argv, "z", options, NULL)) != -1) {
		if (option == '?')
			return usage();
		wanted.compressed |= option == 'z';
		wanted.all |= option == 'a';
		perf |= option == 'p';
		if (option == 'v')
			wanted.vms = strtoull(optarg, NULL, 10);
		if (option == 'c') {
			wanted.changes = optarg;
			wanted.vms = GEN_CHANGING_VMS;
		}
	}
	argv += optind;
	if (argc - optind != (perf ? 3 : 2))
		return usage();
	wanted.samples = strtoull(argv[0], NULL, 10);
	if (!wanted.samples || wanted.vms < GEN_VMS)
		return usage();
	if (wanted.changes && !changes_are(&wanted, "ticks") && !changes_are(&wanted, "chains") &&
	    !changes_are(&wanted, "idle") && !changes_are(&wanted, "events"))
		return usage();
	if (!perf)
		write_recording(argv[1], &wanted);
	else if (gen_perf_data(argv[1], argv[2], wanted.samples))
		die(vp_error_errno(errno, "cannot write '%s'", argv[1]));
	return 0;
}
