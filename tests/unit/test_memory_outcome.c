/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/file.h"
#include "base/macros.h"
#include "schema/memory_outcome.h"
#include "schema/vm.h"
#include "store/recording.h"

#define NAME "test_memory_outcome.rec"

static const struct {
	struct vp_memory_outcome outcome;
	const char *text;
} all[] = {
    {{.status = VP_MEMORY_READ,
      .scanned = 1,
      .uses = 1 << VP_MEMORY_SAMPLES | 1 << VP_MEMORY_SWITCHES,
      .counts = {[VP_MEMORY_SAMPLES] = {7, 1}, [VP_MEMORY_SWITCHES] = {30, 2}},
      .lost_ns = 1500000000,
      .problem = "the guest rebooted"},
     "ok: kernel found by memory scan, symbols and BTF read; 7 samples named, 1 not, "
     "30 guest switches observed, 2 to unreadable tasks; lost for 1.5 s: the guest rebooted"},
    {{.status = VP_MEMORY_READ,
      .cached = 1,
      .uses = 1 << VP_MEMORY_EXITS | 1 << VP_MEMORY_COUNTERS,
      .counts = {[VP_MEMORY_EXITS] = {5, 6}, [VP_MEMORY_COUNTERS] = {3, 2}}},
     "ok: kernel found by registers, cached kernel pack; 5 exits named, 6 not, 3 counters of 2 "
     "vCPUs"},
    {{.status = VP_MEMORY_DERIVED,
      .uses = 1 << VP_MEMORY_SAMPLES,
      .counts = {[VP_MEMORY_SAMPLES] = {1, 0}}},
     "the kernel has no BTF: tasks are known, process mappings are not; 1 samples named, 0 not"},
    {{.status = VP_MEMORY_VM_ENDED},
     "the VM ended: mappings date from when each process was first seen; symbols of kernel "
     "modules and files are missing"},
    {{.status = VP_MEMORY_SEARCHING},
     "the guest's kernel was not found before the recording ended"},
    {{.status = VP_MEMORY_SEARCHING, .searched = 2 << 20, .to_search = 128 << 20},
     "the guest's kernel was not found before the recording ended: 2 of 128 MiB of its memory "
     "were searched"},
    {{.status = VP_MEMORY_FAILED, .problem = "memory encrypted (TDX)"}, "memory encrypted (TDX)"},
    {{.status = VP_MEMORY_FAILED}, "no reason is known"},
    {{.status = VP_MEMORY_SHARED},
     "several VMs share its process: their memory cannot be distinguished"}};

static void test_texts(void **state)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(all); i++) {
		VP_AUTO_FREE char *text = vp_memory_outcome_text(&all[i].outcome);

		assert_string_equal(text, all[i].text);
	}
}

static void expect_vms(const char *lines, const char *const *texts, size_t n)
{
	vp_vms vms = {0};
	FILE *file = fopen(NAME "/vms", "w");

	assert_non_null(file);
	fputs(lines, file);
	fclose(file);
	expect_no_error(vp_vms_read(NAME, &vms));
	assert_int_equal(vms.count, n);
	for (size_t i = 0; i < n; i++)
		assert_string_equal(vms.at[i].memory, texts[i]);
	vp_vms_deinit(&vms);
}

/* The numbers are stored, and the sentence is made when they are read. */
static void test_recording(void **state)
{
	vp_vms vms = {0}, read = {0};

	mkdir(NAME, 0700);
	for (uint32_t i = 0; i < VP_ARRAY_SIZE(all); i++) {
		struct vp_vm vm = vp_vm_of_id(100 + i);
		struct vp_memory_outcome outcome = all[i].outcome;

		vm.name = vp_strdup("g");
		vm.uuid = vp_strdup("");
		outcome.problem = outcome.problem ? vp_strdup(outcome.problem) : NULL;
		vp_vm_set_memory_outcome(&vm, &(struct vp_memory_outcome){0});
		vp_vm_set_memory_outcome(&vm, &outcome);
		vp_vec_push(&vms, vm);
	}
	expect_no_error(vp_vms_write(NAME, &vms));
	expect_no_error(vp_vms_read(NAME, &read));
	assert_int_equal(read.count, VP_ARRAY_SIZE(all));
	for (size_t i = 0; i < read.count; i++) {
		assert_string_equal(read.at[i].memory, all[i].text);
		assert_true(read.at[i].has_memory_outcome);
	}
	vp_vms_deinit(&read);
	vp_vms_deinit(&vms);
	struct vp_buffer file = {0};
	expect_no_error(vp_file_read(NAME "/vms", 1 << 20, &file));
	assert_null(strstr(vp_buffer_text(&file), "kernel found"));
	vp_buffer_deinit(&file);
}

/* The sentence of a recording before 0.3 stays as it is; one of a newer vperf is left out. */
static void test_other_versions(void **state)
{
	mkdir(NAME, 0700);
	expect_vms("vperf-vms 8\n"
		   "vm 1 1 0 0 0 1 0 - a\nmemory ok: kernel found by registers, as it was said\n"
		   "vm 2 2 0 0 0 1 0 - b\nmemory-outcome 6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 new\n"
		   "vm 3 3 0 0 0 1 0 - c\nmemory-outcome 0 0 1 0 0 0 17 1 2 0 0 0 0 0 0\n",
		   (const char *const[]){"ok: kernel found by registers, as it was said", "",
					 "ok: kernel found by registers, cached kernel pack; 1 "
					 "samples named, 2 not"},
		   3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts),
					   cmocka_unit_test(test_recording),
					   cmocka_unit_test(test_other_versions)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
