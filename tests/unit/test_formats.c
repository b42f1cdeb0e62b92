/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What exporters write of samples, slices and periods of two VMs that are made by hand. */
#include "unit.h"

#include <stdio.h>

#include "cmd/common/formats.h"

enum text { WORK, MAIN, READ, APP, KERNEL, SERVER, WEB, VM0, IDLE, FUNNY, TEXTS };

/* The number of the second VM: the second one whose process had that number. */
enum { SECOND = 2000 | 1 << VP_PID_BITS };

static const char *const texts[TEXTS] = {
    [WORK] = "work",       [MAIN] = "main",       [READ] = "sys_read", [APP] = "/bin/app",
    [KERNEL] = "[kernel]", [SERVER] = "server",   [WEB] = "web srv 2", [VM0] = "[vm0]",
    [IDLE] = "[idle]",     [FUNNY] = "=a;\"b\\,c"};

static struct vp_vm vms[] = {{.pid = 1000, .name = (char *)"vm0"},
			     {.pid = 2000, .nth = 1, .name = (char *)"v m,1"}};

#define FRAME(which, name, file, of, number, machine, cpu)                                         \
	{                                                                                          \
		.kind = VP_KIND_##which, .function = name, .module = file, .process = of,          \
		.pid = number, .vm = machine, .vcpu = cpu                                          \
	}

static const struct vp_frame host[] = {FRAME(USER, MAIN, APP, SERVER, 77, VP_NONE, VP_NONE),
				       FRAME(KERNEL, READ, KERNEL, SERVER, 77, VP_NONE, VP_NONE)},
			     guest[] = {FRAME(USER, MAIN, APP, WEB, 71, 1, 1),
					FRAME(USER, WORK, APP, WEB, 71, 1, 1)},
			     guest_os[] = {FRAME(KERNEL, VP_NONE, KERNEL, VP_NONE, VP_NONE, 0, 0)},
			     other[] = {FRAME(USER, FUNNY, VP_NONE, SERVER, 72, 0, 0)},
			     vm[] = {FRAME(VM, VM0, VP_NONE, SERVER, 1000, 0, 1)},
			     idle[] = {
				 FRAME(IDLE, IDLE, VP_NONE, VP_NONE, VP_NONE, VP_NONE, VP_NONE)};
static const struct vp_frame_address addresses[] = {{0x400123, 0x400100}, {0xffffffff81000040, 0}};

#define SAMPLE(at, of, number, of_pid, of_tid, on)                                                 \
	{                                                                                          \
		.time = 1000000000ULL + (at), .weight = number, .pcpu = on, .pid = of_pid,         \
		.tid = of_tid, .frames = of, .addresses = addresses, .count = VP_ARRAY_SIZE(of)    \
	}

static const struct vp_sample samples[] = {SAMPLE(5, host, 1, 77, 78, 0),
					   SAMPLE(1001, guest, 1, 2000, 2002, 1),
					   SAMPLE(2002, guest_os, 1, 1000, 1001, 0),
					   SAMPLE(3003, vm, 1, 1000, 1002, VP_NONE),
					   SAMPLE(4004, idle, 3, 0, 0, 12),
					   SAMPLE(999999999, guest, 2, 2000, 2002, 1),
					   SAMPLE(2000000000, other, 1, 1000, 1001, 0)};

static const struct vp_state_slice slices[] = {{.begin = 1000000100,
						.end = 1000001700,
						.vm = 1,
						.vcpu = 1,
						.pcpu = 3,
						.state = "halted",
						.reason = "HLT"},
					       {.begin = 1000000200,
						.end = 1000002800,
						.vm = 0,
						.vcpu = 0,
						.pcpu = VP_NONE,
						.state = "blocked"}};

static const struct vp_track_slice periods[] = {{.track = VP_TRACK_PCPU,
						 .state = VP_TRACK_RUNNING,
						 .begin = 1000000300,
						 .end = 1000000900,
						 .pcpu = 2,
						 .tid = 88,
						 .comm = "task"},
						{.track = VP_TRACK_PCPU,
						 .state = VP_TRACK_RUNNING,
						 .begin = 1000000900,
						 .end = 1000001900,
						 .pcpu = 2,
						 .tid = 1001,
						 .comm = "CPU 0/KVM",
						 .has_vcpu = true,
						 .vm = 1000,
						 .vcpu = 0},
						{.track = VP_TRACK_PCPU,
						 .state = VP_TRACK_IDLE,
						 .begin = 1000001900,
						 .end = 1000002000,
						 .pcpu = 0},
						{.track = VP_TRACK_VCPU,
						 .state = VP_TRACK_GUEST,
						 .begin = 1000000950,
						 .end = 1000001850,
						 .pcpu = 2,
						 .tid = 1001,
						 .has_vcpu = true,
						 .vm = 1000,
						 .vcpu = 0,
						 .has_guest = true,
						 .guest_tid = 6,
						 .guest_pid = 5,
						 .guest_comm = "worker",
						 .certainty = VP_TRACK_EXACT},
						{.track = VP_TRACK_VCPU,
						 .state = VP_TRACK_WAKING,
						 .begin = 1000003000,
						 .end = 1000004000,
						 .pcpu = 1,
						 .tid = 2002,
						 .has_vcpu = true,
						 .vm = SECOND,
						 .vcpu = 1,
						 .has_waker = true,
						 .waker_tid = 99,
						 .waker_pcpu = 3,
						 .waker_comm = "waker",
						 .has_thief = true,
						 .thief_tid = 88,
						 .thief_comm = "thief",
						 .wait_begin = 1000003000},
						{.track = VP_TRACK_VCPU,
						 .state = VP_TRACK_WAKING,
						 .begin = 1000004000,
						 .end = 1000005000,
						 .pcpu = VP_NO_PCPU,
						 .tid = 2003,
						 .has_vcpu = true,
						 .vm = SECOND,
						 .vcpu = VP_VCPU_UNKNOWN,
						 .has_waker = true,
						 .wait_begin = 1000003000,
						 .wait_ends = true}};

const char *__wrap_vp_tracks_vm(struct vp_tracks *tracks, uint32_t number);

const char *__wrap_vp_tracks_vm(struct vp_tracks *tracks, uint32_t number)
{
	return number == 1000 ? "vm0" : "v m,1";
}

static char *note = (char *)"a note";

static struct vp_report report_of(enum vp_weighting weighting)
{
	struct vp_report report = {.path = "made",
				   .duration = 2.5,
				   .lost = 4,
				   .recording = {.hostname = (char *)"here",
						 .kernel = (char *)"6.1",
						 .trigger = (char *)"cpu clock",
						 .pcpus = 2,
						 .weighting = weighting,
						 .period_ns = 1000}};

	report.notes.at = &note;
	report.notes.count = 1;
	return report;
}

/* All of it, in the order that exporters may expect. */
static void write_all(const char *format, enum vp_weighting weighting, struct vp_buffer *out)
{
	const struct vp_exporter *exporter = vp_export_format_named(format)->exporter();
	struct vp_report report = report_of(weighting);
	struct vp_export export = {.report = &report, .out = out};

	export.texts.at = (const char **)texts;
	export.texts.count = TEXTS;
	export.vms.at = vms;
	export.vms.count = VP_ARRAY_SIZE(vms);
	export.state = vp_alloc(exporter->state_size + 1);
	if (exporter->begin)
		exporter->begin(&export);
	for (unsigned i = 0; i < VP_ARRAY_SIZE(samples); i++)
		exporter->sample(&export, &samples[i]);
	for (unsigned i = 0; exporter->slice && i < VP_ARRAY_SIZE(slices); i++)
		exporter->slice(&export, &slices[i]);
	for (unsigned i = 0; exporter->track_slice && i < VP_ARRAY_SIZE(periods); i++)
		exporter->track_slice(&export, &periods[i]);
	if (exporter->end)
		exporter->end(&export);
	if (exporter->deinit)
		exporter->deinit(export.state);
	free(export.state);
}

static void expect_text(const char *format, enum vp_weighting weighting, const char *expected)
{
	struct vp_buffer out = {0};

	write_all(format, weighting, &out);
	assert_string_equal(vp_buffer_text(&out), expected);
	vp_buffer_deinit(&out);
}

/* Protocol buffers as text: "FIELD:NUMBER", "FIELD'TEXT'", "FIELD{…}", "FIELD[NUMBER …]". Which
 * fields are messages and which packed numbers, is known by their place. */
struct shape {
	const char *messages, *packed, *bytes; /* " A.B.C " */
};

static uint64_t varint(const unsigned char **at)
{
	uint64_t value = 0;

	for (unsigned shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

static void dump(const struct shape *shape, const char *path, const unsigned char *at,
		 const unsigned char *end, struct vp_buffer *out)
{
	while (at < end) {
		uint64_t key = varint(&at);
		char own[64], word[68];
		snprintf(own, sizeof(own), "%s%s%u", path, path[0] ? "." : "",
			 (unsigned)(key >> 3));
		snprintf(word, sizeof(word), " %s ", own);
		vp_buffer_printf(out, " %u", (unsigned)(key >> 3));
		if (key % 8 == 0) {
			vp_buffer_printf(out, ":%llu", (unsigned long long)varint(&at));
			continue;
		}
		if (key % 8 == 1) {
			uint64_t value;
			memcpy(&value, at, sizeof(value));
			at += sizeof(value);
			vp_buffer_printf(out, "=%llu", (unsigned long long)value);
			continue;
		}
		assert_int_equal(key % 8, 2);
		uint64_t size = varint(&at);
		assert_true(size <= (uint64_t)(end - at));
		if (strstr(shape->messages, word)) {
			vp_buffer_string(out, "{");
			dump(shape, own, at, at + size, out);
			vp_buffer_string(out, " }");
		} else if (strstr(shape->packed, word)) {
			vp_buffer_string(out, "[");
			for (const unsigned char *to = at; to < at + size;)
				vp_buffer_printf(out, " %llu", (unsigned long long)varint(&to));
			vp_buffer_string(out, " ]");
		} else if (shape->bytes && strstr(shape->bytes, word)) {
			vp_buffer_printf(out, "(%u bytes)", (unsigned)size);
		} else {
			vp_buffer_printf(out, "'%.*s'", (int)size, (const char *)at);
		}
		at += size;
		if (!path[0])
			vp_buffer_string(out, "\n");
	}
}

static void expect_protobuf(const char *format, enum vp_weighting weighting,
			    const struct shape *shape, const char *expected, bool is_begin)
{
	struct vp_buffer out = {0}, text = {0};

	write_all(format, weighting, &out);
	dump(shape, "", (const unsigned char *)out.bytes,
	     (const unsigned char *)out.bytes + out.size, &text);
	if (is_begin)
		text.bytes[strlen(expected)] = 0;
	assert_string_equal(vp_buffer_text(&text), expected);
	vp_buffer_deinit(&out);
	vp_buffer_deinit(&text);
}

static void test_folded(void **state)
{
	expect_text("folded", VP_WEIGHTING_TICKS,
		    "host;server;main;sys_read_[k] 1\n"
		    "[v m,1];web srv 2;main;work 1\n"
		    "[vm0];[unknown];[unknown]_[k] 1\n"
		    "host;[vm0] 1\n"
		    "host;[idle] 3\n"
		    "[v m,1];web srv 2;main;work 2\n"
		    "[vm0];server;=a:\"b\\,c 1\n");
}

/* The stacks and frames of both files of speedscope: their weights differ. */
#define SPEEDSCOPE_STACKS                                                                          \
	"[0,1,2,3],\n"                                                                             \
	"[4,5,2,6],\n"                                                                             \
	"[7,8,9],\n"                                                                               \
	"[0,10],\n"                                                                                \
	"[0,11],\n"                                                                                \
	"[4,5,2,6],\n"                                                                             \
	"[7,1,12]],\n"
#define SPEEDSCOPE_FRAMES                                                                          \
	"\"shared\":{\"frames\":[{\"name\": \"host\"}\n"                                           \
	", {\"name\": \"server\"}\n"                                                               \
	", {\"name\": \"main\", \"file\": \"/bin/app\"}\n"                                         \
	", {\"name\": \"sys_read\", \"file\": \"[kernel]\"}\n"                                     \
	", {\"name\": \"v m,1\"}\n"                                                                \
	", {\"name\": \"web srv 2\"}\n"                                                            \
	", {\"name\": \"work\", \"file\": \"/bin/app\"}\n"                                         \
	", {\"name\": \"vm0\"}\n"                                                                  \
	", {\"name\": \"[unknown]\"}\n"                                                            \
	", {\"name\": \"[unknown]\", \"file\": \"[kernel]\"}\n"                                    \
	", {\"name\": \"[vm0]\"}\n"                                                                \
	", {\"name\": \"[idle]\"}\n"                                                               \
	", {\"name\": \"=a;\\\"b\\\\,c\"}\n"                                                       \
	"]}}\n"

static void test_speedscope(void **state)
{
	expect_text("speedscope", VP_WEIGHTING_TICKS,
		    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		    "\"exporter\":\"vperf " VPERF_VERSION "\",\"activeProfileIndex\":0,"
		    "\"profiles\":[{\"type\":\"sampled\",\"name\":\"vperf\",\"samples\":["
		    "\n" SPEEDSCOPE_STACKS
		    "\"weights\":[1000,1000,1000,1000,3000,2000,1000],\"unit\":\"nanoseconds\","
		    "\"startValue\":0,\"endValue\":10000}],\n" SPEEDSCOPE_FRAMES);
	expect_text("speedscope", VP_WEIGHTING_EVENTS,
		    "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		    "\"exporter\":\"vperf " VPERF_VERSION "\",\"activeProfileIndex\":0,"
		    "\"profiles\":[{\"type\":\"sampled\",\"name\":\"vperf\",\"samples\":["
		    "\n" SPEEDSCOPE_STACKS
		    "\"weights\":[1,1,1,1,3,2,1],\"unit\":\"none\",\"startValue\":0,\"endValue\":"
		    "10}],\n" SPEEDSCOPE_FRAMES);
}

static void test_csv(void **state)
{
	expect_text("csv", VP_WEIGHTING_TICKS,
		    "type,begin_ns,end_ns,samples,pcpu,vm,vcpu,process,pid,tid,state,reason,"
		    "function,module,stack,guest_process,guest_pid,guest_tid,thief,thief_tid\n"
		    "sample,1000000005,1000000005,1,0,,,server,77,78,kernel,,sys_read,[kernel],"
		    "\"main;sys_read\",,,,,\n"
		    "sample,1000001001,1000001001,1,1,\"v m,1\",1,web srv 2,71,2002,user,,work,"
		    "/bin/app,\"main;work\",,,,,\n"
		    "sample,1000002002,1000002002,1,0,vm0,0,,,1001,kernel,,,[kernel],\"[unknown]\","
		    ",,,,\n"
		    "sample,1000003003,1000003003,1,,vm0,1,server,1000,1002,vm,,[vm0],,"
		    "\"[vm0]\",,,,,\n"
		    "sample,1000004004,1000004004,3,12,,,,,,idle,,[idle],,\"[idle]\",,,,,\n"
		    "sample,1999999999,1999999999,2,1,\"v m,1\",1,web srv 2,71,2002,user,,work,"
		    "/bin/app,\"main;work\",,,,,\n"
		    "sample,3000000000,3000000000,1,0,vm0,0,server,72,1001,user,,\"'=a;\"\"b\\,"
		    "c\",,\"=a:\"\"b\\,c\",,,,,\n"
		    "slice,1000000100,1000001700,,3,\"v m,1\",1,,,,halted,HLT,,,,,,,,\n"
		    "slice,1000000200,1000002800,,,vm0,0,,,,blocked,,,,,,,,,\n"
		    "pcpu,1000000300,1000000900,,2,,,task,,88,running,,,,,,,,,\n"
		    "pcpu,1000000900,1000001900,,2,vm0,0,CPU 0/KVM,,1001,running,,,,,,,,,\n"
		    "pcpu,1000001900,1000002000,,0,,,,,0,idle,,,,,,,,,\n"
		    "vcpu,1000000950,1000001850,,2,vm0,0,,,1001,guest,,,,,worker,5,6,,\n"
		    "vcpu,1000003000,1000004000,,1,\"v m,1\",1,,,2002,waking,,,,,,,,thief,88\n"
		    "vcpu,1000004000,1000005000,,,\"v m,1\",,,,2003,waking,,,,,,,,,\n");
}

static void test_jsonl(void **state)
{
	expect_text(
	    "jsonl", VP_WEIGHTING_TIME,
	    "{\"version\": 1, \"type\": \"recording\", \"path\": \"made\", \"hostname\": \"here\", "
	    "\"kernel\": "
	    "\"6.1\", \"pcpus\": 2, \"sampling_event\": \"cpu clock\", \"trigger\": \"cpu clock\", "
	    "\"period_ns\": 1000, \"unit\": "
	    "\"ns\"}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1000000005, \"weight\": 1, \"pcpu\": 0, \"vm\": "
	    "null, \"vcpu\": null, \"process\": \"server\", \"pid\": 77, \"host_pid\": 77, "
	    "\"host_tid\": 78, \"frames\": [{\"function\": \"main\", \"module\": \"/bin/app\", "
	    "\"kind\": \"user\"}, {\"function\": \"sys_read\", \"module\": \"[kernel]\", \"kind\": "
	    "\"kernel\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1000001001, \"weight\": 1, \"pcpu\": 1, \"vm\": "
	    "\"v m,1\", \"vcpu\": 1, \"process\": \"web srv 2\", \"pid\": 71, \"host_pid\": 2000,"
	    " \"host_tid\": 2002, \"frames\": [{\"function\": \"main\", \"module\": \"/bin/app\","
	    " \"kind\": \"user\"}, {\"function\": \"work\", \"module\": \"/bin/app\", \"kind\": "
	    "\"user\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1000002002, \"weight\": 1, \"pcpu\": 0, \"vm\": "
	    "\"vm0\", \"vcpu\": 0, \"process\": null, \"pid\": null, \"host_pid\": 1000, "
	    "\"host_tid\": 1001, \"frames\": [{\"function\": null, \"module\": \"[kernel]\", "
	    "\"kind\": \"kernel\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1000003003, \"weight\": 1, \"pcpu\": null, "
	    "\"vm\": \"vm0\", \"vcpu\": 1, \"process\": \"server\", \"pid\": 1000, \"host_pid\": "
	    "1000, \"host_tid\": 1002, \"frames\": [{\"function\": \"[vm0]\", \"module\": null,"
	    " \"kind\": \"vm\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1000004004, \"weight\": 3, \"pcpu\": 12, "
	    "\"vm\": null, \"vcpu\": null, \"process\": null, \"pid\": null, \"host_pid\": 0, "
	    "\"host_tid\": 0, \"frames\": [{\"function\": \"[idle]\", \"module\": null, "
	    "\"kind\": \"idle\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 1999999999, \"weight\": 2, \"pcpu\": 1, \"vm\": "
	    "\"v m,1\", \"vcpu\": 1, \"process\": \"web srv 2\", \"pid\": 71, \"host_pid\": 2000,"
	    " \"host_tid\": 2002, \"frames\": [{\"function\": \"main\", \"module\": \"/bin/app\","
	    " \"kind\": \"user\"}, {\"function\": \"work\", \"module\": \"/bin/app\", \"kind\": "
	    "\"user\"}]}\n"
	    "{\"type\": \"sample\", \"time_ns\": 3000000000, \"weight\": 1, \"pcpu\": 0, \"vm\": "
	    "\"vm0\", \"vcpu\": 0, \"process\": \"server\", \"pid\": 72, \"host_pid\": 1000, "
	    "\"host_tid\": 1001, \"frames\": [{\"function\": \"=a;\\\"b\\\\,c\", \"module\": null, "
	    "\"kind\": \"user\"}]}\n"
	    "{\"type\": \"slice\", \"begin_ns\": 1000000100, \"end_ns\": 1000001700, \"vm\": "
	    "\"v m,1\", \"vcpu\": 1, \"pcpu\": 3, \"state\": \"halted\", \"reason\": \"HLT\"}\n"
	    "{\"type\": \"slice\", \"begin_ns\": 1000000200, \"end_ns\": 1000002800, \"vm\": "
	    "\"vm0\", \"vcpu\": 0, \"pcpu\": null, \"state\": \"blocked\", \"reason\": null}\n"
	    "{\"type\": \"track_slice\", \"track\": \"pcpu\", \"lane\": \"pcpu\", \"begin_ns\": "
	    "1000000300, \"end_ns\": "
	    "1000000900, \"pcpu\": 2, \"state\": \"running\", \"tid\": 88, \"comm\": \"task\", "
	    "\"vm\": null, \"vcpu\": null, \"guest_tid\": null, \"guest_pid\": null, "
	    "\"guest_comm\": null, \"certainty\": null, \"switches\": 0, \"thief_tid\": null,"
	    " \"thief_comm\": null}\n"
	    "{\"type\": \"track_slice\", \"track\": \"pcpu\", \"lane\": \"pcpu\", \"begin_ns\": "
	    "1000000900, \"end_ns\": "
	    "1000001900, \"pcpu\": 2, \"state\": \"running\", \"tid\": 1001, \"comm\": \"CPU "
	    "0/KVM\", \"vm\": \"vm0\", \"vcpu\": 0, \"guest_tid\": null, \"guest_pid\": null, "
	    "\"guest_comm\": null, \"certainty\": null, \"switches\": 0, \"thief_tid\": null,"
	    " \"thief_comm\": null}\n"
	    "{\"type\": \"track_slice\", \"track\": \"pcpu\", \"lane\": \"pcpu\", \"begin_ns\": "
	    "1000001900, \"end_ns\": "
	    "1000002000, \"pcpu\": 0, \"state\": \"idle\", \"tid\": 0, \"comm\": null, \"vm\": "
	    "null, \"vcpu\": null, \"guest_tid\": null, \"guest_pid\": null, \"guest_comm\": "
	    "null, \"certainty\": null, \"switches\": 0, \"thief_tid\": null, "
	    "\"thief_comm\": null}\n"
	    "{\"type\": \"track_slice\", \"track\": \"vcpu\", \"lane\": \"vcpu\", \"begin_ns\": "
	    "1000000950, \"end_ns\": "
	    "1000001850, \"pcpu\": 2, \"state\": \"guest\", \"tid\": 1001, \"comm\": null, "
	    "\"vm\": \"vm0\", \"vcpu\": 0, \"guest_tid\": 6, \"guest_pid\": 5, \"guest_comm\": "
	    "\"worker\", \"certainty\": \"exact\", \"switches\": 0, \"thief_tid\": null, "
	    "\"thief_comm\": null}\n"
	    "{\"type\": \"track_slice\", \"track\": \"vcpu\", \"lane\": \"vcpu\", \"begin_ns\": "
	    "1000003000, \"end_ns\": "
	    "1000004000, \"pcpu\": 1, \"state\": \"waking\", \"tid\": 2002, \"comm\": null, "
	    "\"vm\": \"v m,1\", \"vcpu\": 1, \"guest_tid\": null, \"guest_pid\": null, "
	    "\"guest_comm\": null, \"certainty\": null, \"switches\": 0, \"thief_tid\": 88, "
	    "\"thief_comm\": \"thief\"}\n"
	    "{\"type\": \"track_slice\", \"track\": \"vcpu\", \"lane\": \"vcpu\", \"begin_ns\": "
	    "1000004000, \"end_ns\": "
	    "1000005000, \"pcpu\": null, \"state\": \"waking\", \"tid\": 2003, \"comm\": null, "
	    "\"vm\": \"v m,1\", \"vcpu\": null, \"guest_tid\": null, \"guest_pid\": null, "
	    "\"guest_comm\": null, \"certainty\": null, \"switches\": 0, \"thief_tid\": null,"
	    " \"thief_comm\": null}\n"
	    "{\"type\": \"end\", \"lost\": 4, \"notes\": [\"a note\"]}\n");
}

static void test_script(void **state)
{
	expect_text("script", VP_WEIGHTING_TICKS,
		    "server    78 [000]     1.000000005:       1000 cpu_clock: \n"
		    "\tffffffff81000040 sys_read+0xffffffff81000040 ([kernel.kallsyms])\n"
		    "\t          400123 main+0x23 (/bin/app)\n"
		    "\n"
		    "v_m,1/web_srv_2    71 [001]     1.000001001:       1000 cpu_clock: \n"
		    "\tffffffff81000040 work+0xffffffff81000040 (/bin/app)\n"
		    "\t          400123 main+0x23 (/bin/app)\n"
		    "\n"
		    "vm0/:1001  1001 [000]     1.000002002:       1000 cpu_clock: \n"
		    "\t          400123 [unknown] ([guest.kernel.kallsyms])\n"
		    "\n"
		    "vm0/server  1000     1.000003003:       1000 cpu_clock: \n"
		    "\t          400123 [vm0]+0x23 ([unknown])\n"
		    "\n"
		    "swapper     0 [012]     1.000004004:       3000 cpu_clock: \n"
		    "\t          400123 [idle]+0x23 ([unknown])\n"
		    "\n"
		    "v_m,1/web_srv_2    71 [001]     1.999999999:       2000 cpu_clock: \n"
		    "\tffffffff81000040 work+0xffffffff81000040 (/bin/app)\n"
		    "\t          400123 main+0x23 (/bin/app)\n"
		    "\n"
		    "vm0/server    72 [000]     3.000000000:       1000 cpu_clock: \n"
		    "\t          400123 =a;\"b\\,c+0x23 ([unknown])\n"
		    "\n");
}

static void test_chrome(void **state)
{
	expect_text(
	    "chrome", VP_WEIGHTING_EVENTS,
	    "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
	    "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
	    "\"host\"}},"
	    "\n"
	    "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"pCPU "
	    "0\"}},\n"
	    "{\"ph\":\"i\",\"pid\":0,\"tid\":0,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1000000.005,"
	    "\"name\":\"sys_read\",\"args\":{\"events\":1,\"kind\":\"kernel\",\"process\":"
	    "\"server\","
	    "\"module\":\"[kernel]\",\"stack\":[\"main\",\"sys_read\"]}},\n"
	    "{\"ph\":\"M\",\"pid\":4196304,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":"
	    "\"v "
	    "m,1\"}},\n"
	    "{\"ph\":\"M\",\"pid\":4196304,\"tid\":1,\"name\":\"thread_name\","
	    "\"args\":{\"name\":\"vCPU 1\"}},\n"
	    "{\"ph\":\"i\",\"pid\":4196304,\"tid\":1,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1000001."
	    "001,"
	    "\"name\":\"work\",\"args\":{\"events\":1,\"kind\":\"user\",\"process\":\"web srv 2\","
	    "\"module\":\"/bin/app\",\"stack\":[\"main\",\"work\"]}},\n"
	    "{\"ph\":\"M\",\"pid\":1000,\"tid\":0,\"name\":\"process_name\","
	    "\"args\":{\"name\":\"vm0\"}},\n"
	    "{\"ph\":\"M\",\"pid\":1000,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":"
	    "\"vCPU "
	    "0\"}},\n"
	    "{\"ph\":\"i\",\"pid\":1000,\"tid\":0,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1000002."
	    "002,"
	    "\"name\":\"[unknown]\",\"args\":{\"events\":1,\"kind\":\"kernel\",\"process\":\"["
	    "unknown]"
	    "\","
	    "\"module\":\"[kernel]\",\"stack\":[\"[unknown]\"]}},\n"
	    "{\"ph\":\"M\",\"pid\":1000,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":"
	    "\"vCPU "
	    "1\"}},\n"
	    "{\"ph\":\"i\",\"pid\":1000,\"tid\":1,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1000003."
	    "003,"
	    "\"name\":\"[vm0]\",\"args\":{\"events\":1,\"kind\":\"vm\",\"process\":\"server\","
	    "\"module\":\"[unknown]\",\"stack\":[\"[vm0]\"]}},\n"
	    "{\"ph\":\"M\",\"pid\":0,\"tid\":12,\"name\":\"thread_name\",\"args\":{\"name\":\"pCPU "
	    "12\"}},\n"
	    "{\"ph\":\"i\",\"pid\":0,\"tid\":12,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1000004.004,"
	    "\"name\":\"[idle]\",\"args\":{\"events\":3,\"kind\":\"idle\",\"process\":\"[unknown]"
	    "\","
	    "\"module\":\"[unknown]\",\"stack\":[\"[idle]\"]}},\n"
	    "{\"ph\":\"i\",\"pid\":4196304,\"tid\":1,\"s\":\"t\",\"cat\":\"sample\",\"ts\":1999999."
	    "999,"
	    "\"name\":\"work\",\"args\":{\"events\":2,\"kind\":\"user\",\"process\":\"web srv 2\","
	    "\"module\":\"/bin/app\",\"stack\":[\"main\",\"work\"]}},\n"
	    "{\"ph\":\"i\",\"pid\":1000,\"tid\":0,\"s\":\"t\",\"cat\":\"sample\",\"ts\":3000000."
	    "000,"
	    "\"name\":\"=a;\\\"b\\\\,c\",\"args\":{\"events\":1,\"kind\":\"user\",\"process\":"
	    "\"server\","
	    "\"module\":\"[unknown]\",\"stack\":[\"=a;\\\"b\\\\,c\"]}},\n"
	    "{\"ph\":\"X\",\"pid\":4196304,\"tid\":1,\"ts\":1000000.100,\"dur\":1.600,"
	    "\"cat\":\"vcpu\",\"name\":\"halted\",\"args\":{\"reason\":\"HLT\"}},\n"
	    "{\"ph\":\"X\",\"pid\":1000,\"tid\":0,\"ts\":1000000.200,\"dur\":2.600,\"cat\":"
	    "\"vcpu\","
	    "\"name\":\"blocked\"},\n"
	    "{\"ph\":\"M\",\"pid\":0,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"pCPU "
	    "2\"}},\n"
	    "{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"ts\":1000000.300,\"dur\":0.600,\"cat\":\"pcpu\","
	    "\"name\":\"task/88\"},\n"
	    "{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"ts\":1000000.900,\"dur\":1.000,\"cat\":\"pcpu\","
	    "\"name\":\"vm0/0\"},\n"
	    "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":1000001.900,\"dur\":0.100,\"cat\":\"pcpu\","
	    "\"name\":\"idle\"},\n"
	    "{\"ph\":\"X\",\"pid\":1000,\"tid\":0,\"ts\":1000000.950,\"dur\":0.900,\"cat\":"
	    "\"vcpu\","
	    "\"name\":\"guest\"},\n"
	    "{\"ph\":\"M\",\"pid\":1073742824,\"tid\":0,\"name\":\"process_name\","
	    "\"args\":{\"name\":\"vm0: threads\"}},\n"
	    "{\"ph\":\"M\",\"pid\":1073742824,\"tid\":6,\"name\":\"thread_name\","
	    "\"args\":{\"name\":\"worker\"}},\n"
	    "{\"ph\":\"X\",\"pid\":1073742824,\"tid\":6,\"ts\":1000000.950,\"dur\":0.900,"
	    "\"cat\":\"thread\",\"name\":\"guest\"},\n"
	    "{\"ph\":\"X\",\"pid\":4196304,\"tid\":1,\"ts\":1000003.000,\"dur\":1.000,"
	    "\"cat\":\"vcpu\",\"name\":\"waking\",\"args\":{\"thief\":\"thief\",\"thief_tid\":88}},"
	    "\n"
	    "{\"ph\":\"M\",\"pid\":0,\"tid\":3,\"name\":\"thread_name\",\"args\":{\"name\":\"pCPU "
	    "3\"}},\n"
	    "{\"ph\":\"s\",\"pid\":0,\"tid\":3,\"cat\":\"wakeup\",\"name\":\"wakeup\","
	    "\"ts\":1000003.000,\"id\":1},\n"
	    "{\"ph\":\"f\",\"pid\":4196304,\"tid\":1,\"bp\":\"e\",\"cat\":\"wakeup\",\"name\":"
	    "\"wakeup\","
	    "\"ts\":1000003.000,\"id\":1},\n"
	    "{\"ph\":\"M\",\"pid\":4196304,\"tid\":2003,\"name\":\"thread_name\","
	    "\"args\":{\"name\":\"vCPU 2003\"}},\n"
	    "{\"ph\":\"X\",\"pid\":4196304,\"tid\":2003,\"ts\":1000004.000,\"dur\":1.000,"
	    "\"cat\":\"vcpu\",\"name\":\"waking\"}\n"
	    "],\"otherData\":{\"tool\": \"vperf " VPERF_VERSION
	    "\", \"hostname\": \"here\", \"lost\": 4, "
	    "\"notes\": [\"a note\"]}}\n");
}

/* perfetto.protos.Trace: packets with track events, interned data, track descriptors, samples. */
static void test_perfetto(void **state)
{
	static const struct shape shape = {
	    " 1 1.11 1.12 1.60 1.66 1.11.4 1.12.5 1.12.6 1.12.7 1.12.17 1.12.19 ", ""};

	expect_protobuf("perfetto", VP_WEIGHTING_TICKS, &shape,
			" 1{ 10:1 13:3 12{ 5{ 1:1 2'host' } 6{ 1:1 2:1 } 5{ 1:2 2'server' } 6{ "
			"1:2 2:2 } 5{ 1:3 2'main' } 17{ 1:1 2'/bin/app' } 19{ 1:1 7:1 } 6{ 1:3 "
			"2:3 3:1 } 5{ 1:4 2'sys_read' } 17{ 1:2 2'[kernel]' } 19{ 1:2 7:2 } 6{ "
			"1:4 2:4 3:2 } 7{ 2:1 2:2 2:3 2:4 1:1 } } }\n"
			" 1{ 8:1000000005 10:1 13:2 66{ 1:0 2:77 3:78 4:1 5:1 6:1 } }\n"
			" 1{ 10:1 13:2 12{ 5{ 1:5 2'v m,1' } 6{ 1:5 2:5 } 5{ 1:6 2'web srv 2' } "
			"6{ 1:6 2:6 } 5{ 1:7 2'work' } 6{ 1:7 2:7 3:1 } 7{ 2:5 2:6 2:3 2:7 1:2 } "
			"} }\n"
			" 1{ 8:1000001001 10:1 13:2 66{ 1:1 2:2000 3:2002 4:2 5:5 6:1 } }\n"
			" 1{ 10:1 13:2 12{ 5{ 1:8 2'vm0' } 6{ 1:8 2:8 } 5{ 1:9 2'[unknown]' } 6{ "
			"1:9 2:9 } 5{ 1:10 2'[unknown]' } 6{ 1:10 2:10 3:2 } 7{ 2:8 2:9 2:10 1:3 "
			"} } }\n"
			" 1{ 8:1000002002 10:1 13:2 66{ 1:0 2:1000 3:1001 4:3 5:4 6:1 } }\n"
			" 1{ 10:1 13:2 12{ 5{ 1:11 2'[vm0]' } 6{ 1:11 2:11 } 7{ 2:1 2:11 1:4 } } "
			"}\n"
			" 1{ 8:1000003003 10:1 13:2 66{ 2:1000 3:1002 4:4 5:3 6:1 } }\n"
			" 1{ 10:1 13:2 12{ 5{ 1:12 2'[idle]' } 6{ 1:12 2:12 } 7{ 2:1 2:12 1:5 } "
			"} }\n"
			" 1{ 8:1000004004 10:1 13:2 66{ 1:12 2:0 3:0 4:5 5:1 6:3 } }\n"
			" 1{ 8:1999999999 10:1 13:2 66{ 1:1 2:2000 3:2002 4:2 5:5 6:2 } }\n"
			" 1{ 10:1 13:2 12{ 5{ 1:13 2'=a;\"b\\,c' } 6{ 1:13 2:13 } 7{ 2:8 2:2 2:13 "
			"1:6 } } }\n"
			" 1{ 8:3000000000 10:1 13:2 66{ 1:0 2:1000 3:1001 4:6 5:5 6:1 } }\n"
			" 1{ 10:1 13:2 60{ 1:3459890950598295552 2'v m,1' 11:3 12:1 } }\n"
			" 1{ 10:1 13:2 60{ 1:4612812455205142529 2'vCPU 1' 5:3459890950598295552 "
			"11:3 12:1 } }\n"
			" 1{ 8:1000000100 10:1 13:2 11{ 9:1 11:4612812455205142529 23'halted' 4{ "
			"10'reason' 6'HLT' } } }\n"
			" 1{ 8:1000001700 10:1 13:2 11{ 9:2 11:4612812455205142529 } }\n"
			" 1{ 10:1 13:2 60{ 1:3458764782255996928 2'vm0' 11:3 12:1 } }\n"
			" 1{ 10:1 13:2 60{ 1:4611686286862843904 2'vCPU 0' 5:3458764782255996928 "
			"11:3 12:0 } }\n"
			" 1{ 8:1000000200 10:1 13:2 11{ 9:1 11:4611686286862843904 23'blocked' } "
			"}\n"
			" 1{ 8:1000002800 10:1 13:2 11{ 9:2 11:4611686286862843904 } }\n"
			" 1{ 10:1 13:2 60{ 1:1152921504606846976 2'Host' 11:3 12:0 } }\n"
			" 1{ 10:1 13:2 60{ 1:2305843009213693954 2'pCPU 2' 5:1152921504606846976 "
			"11:3 12:2 } }\n"
			" 1{ 8:1000000300 10:1 13:2 11{ 9:1 11:2305843009213693954 23'task/88' } "
			"}\n"
			" 1{ 8:1000000900 10:1 13:2 11{ 9:2 11:2305843009213693954 } }\n"
			" 1{ 8:1000000900 10:1 13:2 11{ 9:1 11:2305843009213693954 23'vm0/0' } }\n"
			" 1{ 8:1000001900 10:1 13:2 11{ 9:2 11:2305843009213693954 } }\n"
			" 1{ 10:1 13:2 60{ 1:2305843009213693952 2'pCPU 0' 5:1152921504606846976 "
			"11:3 12:0 } }\n"
			" 1{ 8:1000001900 10:1 13:2 11{ 9:1 11:2305843009213693952 23'idle' } }\n"
			" 1{ 8:1000002000 10:1 13:2 11{ 9:2 11:2305843009213693952 } }\n"
			" 1{ 8:1000000950 10:1 13:2 11{ 9:1 11:4611686286862843904 23'guest' } }\n"
			" 1{ 8:1000001850 10:1 13:2 11{ 9:2 11:4611686286862843904 } }\n"
			" 1{ 10:1 13:2 60{ 1:5764607791469690880 2'Threads' "
			"5:3458764782255996928 11:3 12:4294967295 } }\n"
			" 1{ 10:1 13:2 60{ 1:6917529296076537862 2'worker/6' "
			"5:5764607791469690880 11:3 12:6 } }\n"
			" 1{ 8:1000000950 10:1 13:2 11{ 9:1 11:6917529296076537862 23'guest' 4{ "
			"10'certainty' 6'exact' } } }\n"
			" 1{ 8:1000001850 10:1 13:2 11{ 9:2 11:6917529296076537862 } }\n"
			" 1{ 10:1 13:2 60{ 1:2305843009213693955 2'pCPU 3' 5:1152921504606846976 "
			"11:3 12:3 } }\n"
			" 1{ 8:1000003000 10:1 13:2 11{ 9:3 11:2305843009213693955 23'wakeup' "
			"47=1 4{ 10'waker' 6'waker' } } }\n"
			" 1{ 8:1000003000 10:1 13:2 11{ 9:1 11:4612812455205142529 23'waking' "
			"47=1 4{ 10'thief' 6'thief' } } }\n"
			" 1{ 8:1000004000 10:1 13:2 11{ 9:2 11:4612812455205142529 } }\n"
			" 1{ 10:1 13:2 60{ 1:4612812455205144531 2'vCPU 2003' "
			"5:3459890950598295552 11:3 12:2003 } }\n"
			" 1{ 8:1000004000 10:1 13:2 11{ 9:1 11:4612812455205144531 23'waking' } "
			"}\n"
			" 1{ 8:1000005000 10:1 13:2 11{ 9:2 11:4612812455205144531 } }\n",
			false);
}

/* perftools.profiles.Profile. */
static void test_pprof(void **state)
{
	static const struct shape shape = {" 1 2 3 4 5 11 2.3 4.4 ", " 2.1 2.2 "};

	expect_protobuf("pprof", VP_WEIGHTING_TICKS, &shape,
			" 6''\n"
			" 6'samples'\n"
			" 6'count'\n"
			" 1{ 1:1 2:2 }\n"
			" 6'time'\n"
			" 6'nanoseconds'\n"
			" 1{ 1:3 2:4 }\n"
			" 11{ 1:3 2:4 }\n"
			" 12:1000 10:2500000000 6'sys_read'\n"
			" 6'[kernel]'\n"
			" 3{ 1:1 5:6 7:1 }\n"
			" 5{ 1:1 2:5 3:5 4:6 }\n"
			" 4{ 1:1 2:1 4{ 1:1 } }\n"
			" 6'main'\n"
			" 6'/bin/app'\n"
			" 3{ 1:2 5:8 7:1 }\n"
			" 5{ 1:2 2:7 3:7 4:8 }\n"
			" 4{ 1:2 2:2 4{ 1:2 } }\n"
			" 6'vm'\n"
			" 6'host'\n"
			" 6'state'\n"
			" 6'kernel'\n"
			" 6'process'\n"
			" 6'server'\n"
			" 6'pid'\n"
			" 6'number'\n"
			" 2{ 1[ 1 2 ] 2[ 1 1000 ] 3{ 1:9 2:10 } 3{ 1:11 2:12 } 3{ 1:13 2:14 } 3{ "
			"1:15 3:77 4:16 } }\n"
			" 6'work'\n"
			" 5{ 1:3 2:17 3:17 4:8 }\n"
			" 4{ 1:3 2:2 4{ 1:3 } }\n"
			" 6'v m,1'\n"
			" 6'vcpu'\n"
			" 6'user'\n"
			" 6'web srv 2'\n"
			" 2{ 1[ 3 2 ] 2[ 1 1000 ] 3{ 1:9 2:18 } 3{ 1:19 3:1 4:16 } 3{ 1:11 2:20 "
			"} 3{ 1:13 2:21 } 3{ 1:15 3:71 4:16 } }\n"
			" 6'[unknown]'\n"
			" 5{ 1:4 2:22 3:22 4:6 }\n"
			" 4{ 1:4 2:1 4{ 1:4 } }\n"
			" 6'vm0'\n"
			" 2{ 1[ 4 ] 2[ 1 1000 ] 3{ 1:9 2:23 } 3{ 1:19 3:0 4:16 } 3{ 1:11 2:12 } "
			"}\n"
			" 6'[vm0]'\n"
			" 5{ 1:5 2:24 3:24 4:0 }\n"
			" 4{ 1:5 4{ 1:5 } }\n"
			" 2{ 1[ 5 ] 2[ 1 1000 ] 3{ 1:9 2:23 } 3{ 1:19 3:1 4:16 } 3{ 1:11 2:9 } "
			"3{ 1:13 2:14 } 3{ 1:15 3:1000 4:16 } }\n"
			" 6'[idle]'\n"
			" 5{ 1:6 2:25 3:25 4:0 }\n"
			" 4{ 1:6 4{ 1:6 } }\n"
			" 6'idle'\n"
			" 2{ 1[ 6 ] 2[ 3 3000 ] 3{ 1:9 2:10 } 3{ 1:11 2:26 } }\n"
			" 2{ 1[ 3 2 ] 2[ 2 2000 ] 3{ 1:9 2:18 } 3{ 1:19 3:1 4:16 } 3{ 1:11 2:20 "
			"} 3{ 1:13 2:21 } 3{ 1:15 3:71 4:16 } }\n"
			" 6'=a;\"b\\,c'\n"
			" 5{ 1:7 2:27 3:27 4:0 }\n"
			" 4{ 1:7 4{ 1:7 } }\n"
			" 2{ 1[ 7 ] 2[ 1 1000 ] 3{ 1:9 2:23 } 3{ 1:19 3:0 4:16 } 3{ 1:11 2:20 } "
			"3{ 1:13 2:14 } 3{ 1:15 3:72 4:16 } }\n"
			" 6'a note'\n"
			" 13:28",
			false);
	expect_protobuf("pprof", VP_WEIGHTING_TIME, &shape,
			" 6''\n"
			" 6'time'\n"
			" 6'nanoseconds'\n"
			" 1{ 1:1 2:2 }\n"
			" 11{ 1:1 2:2 }\n"
			" 12:1000 10:2500000000 ",
			true);
	expect_protobuf("pprof", VP_WEIGHTING_EVENTS, &shape,
			" 6''\n"
			" 6'cpu clock'\n"
			" 6'count'\n"
			" 1{ 1:1 2:2 }\n"
			" 10:2500000000 ",
			true);
}

/* opentelemetry.proto.profiles.v1development.ProfilesData: a resource for each machine. */
static void test_otlp(void **state)
{
	static const struct shape shape = {
	    " 1 2 1.1 1.1.1 1.1.1.2 1.2 1.2.1 1.2.2 1.2.2.1 1.2.2.2 1.2.2.5 2.1 2.2 2.2.3 2.3 2.4 "
	    "2.6 2.6.2 2.7 ",
	    " 1.2.2.2.2 1.2.2.2.4 2.7.1 ", " 1.2.2.7 "};

	expect_protobuf("otlp", VP_WEIGHTING_TICKS, &shape,
			" 1{ 1{ 1{ 1'service.name' 2{ 1'vperf' } } 1{ 1'host.name' 2{"
			" 1'here' } } } 2{ 1{ 1'vperf' 2'" VPERF_VERSION "' } 2{ 1{ 1:10 2:11 }"
			" 2{ 1:1 2[ 1 ] 4[ 1000 ] } 3=0 4:2500000000 5{ 1:10 2:11 }"
			" 6:1000 7(16 bytes) } } }\n"
			" 1{ 1{ 1{ 1'service.name' 2{ 1'vperf' } } 1{ 1'host.name' 2{"
			" 1'here' } } 1{ 1'vm' 2{ 1'v m,1' } } } 2{ 1{ 1'vperf'"
			" 2'" VPERF_VERSION "' } 2{ 1{ 1:10 2:11 } 2{ 1:2 2[ 2 ] 4[ 1000 ] } 2{"
			" 1:2 2[ 2 ] 4[ 2000 ] } 3=0 4:2500000000 5{ 1:10 2:11 }"
			" 6:1000 7(16 bytes) } } }\n"
			" 1{ 1{ 1{ 1'service.name' 2{ 1'vperf' } } 1{ 1'host.name' 2{"
			" 1'here' } } 1{ 1'vm' 2{ 1'vm0' } } } 2{ 1{ 1'vperf'"
			" 2'" VPERF_VERSION "' } 2{ 1{ 1:10 2:11 } 2{ 1:3 4[ 1000 ] } 2{ 1:4 2[ 1"
			" ] 4[ 1000 ] } 2{ 1:5 2[ 1 ] 4[ 1000 ] } 3=0 4:2500000000 5{"
			" 1:10 2:11 } 6:1000 7(16 bytes) } } }\n"
			" 2{ 1{ } 2{ } 3{ } 4{ } 6{ } 7{ } 5'' 5'sys_read'"
			" 5'[kernel]' 1{ 4:2 } 3{ 1:1 2:1 3:2 } 2{ 1:1 3{ 1:1 } }"
			" 5'main' 5'/bin/app' 1{ 4:4 } 3{ 1:3 2:3 3:4 } 2{ 1:2 3{ 1:2"
			" } } 7{ 1[ 1 2 ] } 5'process.executable.name' 6{ 1:5 2{"
			" 1'server' } } 5'work' 3{ 1:6 2:6 3:4 } 2{ 1:2 3{ 1:3 } } 7{"
			" 1[ 3 2 ] } 6{ 1:5 2{ 1'web srv 2' } } 5'[unknown]' 3{ 1:7"
			" 2:7 3:2 } 2{ 1:1 3{ 1:4 } } 7{ 1[ 4 ] } 5'[vm0]' 3{ 1:8 2:8"
			" } 2{ 3{ 1:5 } } 7{ 1[ 5 ] } 5'=a;\"b\\,c' 3{ 1:9 2:9 } 2{ 3{"
			" 1:6 } } 7{ 1[ 6 ] } 5'cpu' 5'nanoseconds' }\n",
			false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_folded),   cmocka_unit_test(test_speedscope),
	    cmocka_unit_test(test_csv),      cmocka_unit_test(test_jsonl),
	    cmocka_unit_test(test_script),   cmocka_unit_test(test_chrome),
	    cmocka_unit_test(test_perfetto), cmocka_unit_test(test_pprof),
	    cmocka_unit_test(test_otlp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
