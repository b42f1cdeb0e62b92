/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf selftest: runs known work in its own guest, and compares it with vperf's reports. */
#include <errno.h>
#include <json-c/json.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"
#include "cmd/common/choice.h"
#include "cmd/common/command.h"
#include "cmd/common/options.h"
#include "cmd/common/verb.h"
#include "cmd/host/selftest_steps.h"
#include "host/host.h"
#include "schema/records.h"
#include "selftest/facts.h"
#include "selftest/verdict.h"
#include "xen/xen_hypervisor.h"

enum { MAX_SECONDS = 60, MAX_TEXT = 1 << 20 };

static const struct vp_verb verb;

const struct vp_verb *vp_verb_selftest(void)
{
	return &verb;
}

struct selftest {
	struct vp_format_words format;
	bool json, quiet, keep;
	const char *output, *cpu;
	uint64_t timeout; /* ns */
	struct vp_texts operands;
	struct vp_checks checks;
	int status;
};

/* A reason why no part of the test can run, or NULL. */
static struct vp_error *expect_kvm_host(void)
{
	if (geteuid())
		return vp_error_new("only root can run it: it starts a guest and records the host");
	if (vp_xen_is_dom0())
		return vp_error_new("this is a Xen dom0; its guest needs KVM");
	if (access("/dev/kvm", R_OK | W_OK))
		return vp_error_errno(errno, "cannot use /dev/kvm; load kvm_amd or kvm_intel, and "
					     "enable virtualization in the firmware");
	if (vp_host_vendor() == VP_VENDOR_UNKNOWN)
		return vp_error_new("this host's KVM is not supported: neither kvm_amd nor "
				    "kvm_intel is loaded");
	if (access(VP_HOST_BTF, R_OK))
		return vp_error_errno(errno, "cannot read " VP_HOST_BTF
					     "; vperf needs a kernel with CONFIG_DEBUG_INFO_BTF");
	return NULL;
}

/* The pCPU for the guest: that of -C, otherwise the last one that this process may use. */
static struct vp_error *choose_pcpu(const char *word, int *ret)
{
	cpu_set_t may;
	char *end = NULL;
	long wanted = word ? strtol(word, &end, 10) : -1;

	if (word && (end == word || *end || wanted < 0 || wanted >= CPU_SETSIZE))
		return vp_error_usage("option --cpu: expected the number of a pCPU, not '%s'",
				      word);
	CPU_ZERO(&may);
	if (sched_getaffinity(0, sizeof(may), &may))
		return vp_error_errno(errno, "cannot read which pCPUs this process may use");
	for (int pcpu = 0; pcpu < CPU_SETSIZE; pcpu++)
		if (CPU_ISSET((size_t)pcpu, &may) && (!word || pcpu == wanted))
			*ret = pcpu;
	if (word && *ret != wanted)
		return vp_error_usage("option --cpu: pCPU %ld is not online", wanted);
	return NULL;
}

/* The value of a line "NAME : VALUE" in /proc/cpuinfo, to be freed. */
static char *cpuinfo_value(const char *name)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read("/proc/cpuinfo", MAX_TEXT, &text);
	const char *at = error ? NULL : strstr(vp_buffer_text(&text), name);
	const char *colon = at ? strchr(at, ':') : NULL;
	char *value = colon ? vp_strndup(colon + 1 + (colon[1] == ' '),
					 strcspn(colon + 1, "\n") - (colon[1] == ' '))
			    : vp_strdup("unknown");

	vp_error_free(error);
	vp_buffer_deinit(&text);
	return value;
}

/* Facts about the host, without names of machines, users and VMs. */
struct host {
	struct utsname kernel;
	char *cpu, *microcode;
	long pcpus;
	int pcpu;
	bool emulated;
};

static struct host host_read(int pcpu)
{
	struct host host = {.pcpus = sysconf(_SC_NPROCESSORS_ONLN), .pcpu = pcpu};
	struct vp_buffer text = {0};

	uname(&host.kernel);
	host.cpu = cpuinfo_value("model name");
	host.microcode = cpuinfo_value("microcode");
	vp_error_free(vp_file_read("/proc/cpuinfo", MAX_TEXT, &text));
	host.emulated = strstr(vp_buffer_text(&text), " hypervisor") != NULL;
	vp_buffer_deinit(&text);
	return host;
}

static void cmd_selftest_host_deinit(struct host *host)
{
	free(host->cpu);
	free(host->microcode);
}

static void cmd_selftest_put_host(const struct host *host, struct vp_buffer *out)
{
	VP_AUTO_FREE char *cpu = vp_text_cleaned(host->cpu);

	vp_buffer_printf(out, "# vperf selftest: vperf %s, kernel %s, %s, %ld pCPUs%s\n",
			 VPERF_VERSION, host->kernel.release, cpu, host->pcpus,
			 host->emulated ? ", in a virtual machine" : "");
	vp_buffer_printf(out, "# its guest ran on pCPU %d\n\n", host->pcpu);
}

static bool is_private(struct json_object *probe)
{
	struct json_object *name;

	return json_object_object_get_ex(probe, "name", &name) &&
	       !strcmp(json_object_get_string(name), "running VMs");
}

/* The array of features in the output of `vperf check --json`, and its size. */
static struct json_object *probes_of(struct json_object *check, size_t *count)
{
	struct json_object *probes = NULL;

	*count = 0;
	if (json_object_object_get_ex(check, "features", &probes) &&
	    json_object_is_type(probes, json_type_array))
		*count = json_object_array_length(probes);
	return probes;
}

/* The features of `vperf check`, except the one with names of VMs. */
static void put_probes(const char *probes, struct vp_buffer *out)
{
	struct json_object *check = json_tokener_parse(probes), *name, *found, *detail;
	size_t count;
	struct json_object *all = probes_of(check, &count);

	vp_buffer_string(out, "\nFeatures of this host (vperf check):\n");
	for (size_t i = 0; i < count; i++) {
		struct json_object *probe = json_object_array_get_idx(all, i);
		if (!is_private(probe) && json_object_object_get_ex(probe, "name", &name) &&
		    json_object_object_get_ex(probe, "found", &found) &&
		    json_object_object_get_ex(probe, "detail", &detail))
			vp_buffer_printf(
			    out, "%-4s %-25s %s\n", json_object_get_boolean(found) ? "yes" : "no",
			    json_object_get_string(name), json_object_get_string(detail));
	}
	json_object_put(check);
}

static void put_probes_json(const char *probes, struct vp_json *json)
{
	struct json_object *check = json_tokener_parse(probes);
	size_t count;
	struct json_object *all = probes_of(check, &count);

	vp_json_array(json, "probes");
	for (size_t i = 0; i < count; i++) {
		struct json_object *probe = json_object_array_get_idx(all, i);
		if (!is_private(probe))
			vp_json_raw(json, NULL, json_object_to_json_string(probe));
	}
	vp_json_array_end(json);
	json_object_put(check);
}

static void cmd_selftest_put_json(const struct vp_checks *checks, const struct host *host,
				  const char *probes, struct vp_buffer *out)
{
	struct vp_json json = vp_json_to(out);

	vp_json_pretty(&json, true);
	vp_json_answer(&json);
	vp_json_text(&json, "vperf", VPERF_VERSION);
	vp_json_text(&json, "kernel", host->kernel.release);
	vp_json_text(&json, "machine", host->kernel.machine);
	vp_json_text(&json, "cpu", host->cpu);
	vp_json_text(&json, "microcode", host->microcode);
	vp_json_count(&json, "pcpus", (uint64_t)host->pcpus);
	vp_json_count(&json, "pcpu", (uint64_t)host->pcpu);
	vp_json_bool(&json, "virtual_machine", host->emulated);
	vp_json_count(&json, "ok", vp_checks_count(checks, VP_VERDICT_OK));
	vp_json_count(&json, "failed", vp_checks_count(checks, VP_VERDICT_FAILED));
	vp_json_count(&json, "not_possible", vp_checks_count(checks, VP_VERDICT_NOT_POSSIBLE));
	vp_checks_put_json(checks, &json);
	put_probes_json(probes, &json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static struct vp_error *print_results(const struct selftest *selftest,
				      const struct vp_selftest *test)
{
	struct host host = host_read(test->pcpu);
	struct vp_buffer out = {0};
	struct vp_error *error;

	if (selftest->json) {
		cmd_selftest_put_json(&selftest->checks, &host, test->probes, &out);
		error = vp_verb_print(&out);
	} else {
		cmd_selftest_put_host(&host, &out);
		vp_checks_put_text(&selftest->checks, &out);
		error = vp_verb_print(&out);
		put_probes(test->probes, &out);
	}
	if (!error && selftest->output)
		error = vp_verb_write(selftest->output, &out);
	vp_buffer_deinit(&out);
	cmd_selftest_host_deinit(&host);
	return error;
}

static struct vp_error *selftest_with(void *context)
{
	struct selftest *selftest = context;
	struct vp_selftest test = {.quiet = selftest->quiet || !isatty(STDERR_FILENO),
				   .channel = -1};
	const char *format;
	struct timespec now;

	if (selftest->operands.count)
		return vp_error_usage("unexpected argument '%s'", selftest->operands.at[0]);
	VP_TRY(vp_choose_text_or_json(&selftest->format, &format));
	selftest->json = !strcmp(format, "json");
	VP_TRY(choose_pcpu(selftest->cpu, &test.pcpu));
	VP_TRY(expect_kvm_host());
	clock_gettime(CLOCK_MONOTONIC, &now);
	test.deadline = (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec +
			(selftest->timeout ? selftest->timeout : MAX_SECONDS * 1000000000ULL);
	vp_command_catch_signals();
	struct vp_error *error = vp_selftest_run(&test);
	if (!error) {
		vp_facts_judge(&test.facts, &selftest->checks);
		selftest->status = vp_checks_status(&selftest->checks);
		error = print_results(selftest, &test);
	}
	if (selftest->keep && test.folder)
		fprintf(stderr, "vperf selftest: the recordings are in %s\n", test.folder);
	vp_selftest_deinit(&test, selftest->keep);
	vp_checks_deinit(&selftest->checks);
	return error;
}

static int run_selftest(int argc, char **argv)
{
	struct selftest selftest = {0};
	const struct vp_option options[] = {
	    {'C', "cpu", VP_OPTION_TEXT, &selftest.cpu, "N",
	     "pCPU that the guest runs on (default: the last one)"},
	    {'o', "output", VP_OPTION_TEXT, &selftest.output, "FILE",
	     "also write a report for a bug: the results and facts about this host"},
	    {0, "format", VP_OPTION_TEXT, &selftest.format.format, "FORMAT",
	     "text or json, also of the report that -o writes (default: text)"},
	    {0, "json", VP_OPTION_FLAG, &selftest.format.json, NULL, "same as --format json"},
	    {0, "keep", VP_OPTION_FLAG, &selftest.keep, NULL,
	     "keep the recordings, and print where they are"},
	    {0, "timeout", VP_OPTION_SECONDS, &selftest.timeout, "TIME",
	     "give up after this time (default: 60s)"},
	    {'q', "quiet", VP_OPTION_FLAG, &selftest.quiet, NULL, "no progress"},
	};
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv,
				 &selftest.operands, selftest_with, &selftest);

	return status ? status : selftest.status;
}

static const struct vp_verb verb = {
    .name = "selftest",
    .usage = "[-C N] [-o FILE] [--format FORMAT] [OPTION]...",
    .summary = "run known work in a small guest and check vperf's reports of it",
    .run = run_selftest,
};
