/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BPF programs for host-provided counters of this guest's threads. */
#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/error.h"
#include "base/io.h"
#include "guest/lend.skel.h"
#include "guest/lend_command.h"
#include "guest/lend_private.h"
#include "protocol/lent.h"

static struct vp_error *open_programs(struct vp_lend *lend)
{
	int result = -ENOENT;

	lend->programs = vp_lend_bpf__open();
	if (lend->programs)
		result = bpf_map__set_max_entries(lend->programs->maps.cells, lend->n_cells + 1);
	if (!result)
		result = bpf_map__set_max_entries(lend->programs->maps.threads,
						  VP_LENT_THREADS + lend->n_cells);
	if (!result)
		result = vp_lend_bpf__load(lend->programs);
	return result ? vp_error_errno(-result,
				       "cannot load the BPF programs for host-provided counters")
		      : NULL;
}

/* From here on only BPF programs and the host can write to the maps. */
static struct vp_error *freeze(struct vp_lend *lend)
{
	int cells = bpf_map__fd(lend->programs->maps.cells);

	if (bpf_map_freeze(cells) || bpf_map_freeze(bpf_map__fd(lend->programs->maps.threads)))
		return vp_error_errno(errno, "cannot make the host-provided counters read-only");
	void *memory =
	    mmap(NULL, lend->n_cells * sizeof(*lend->cells), PROT_READ, MAP_SHARED, cells, 0);
	if (memory == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the host-provided counters");
	lend->cells = memory;
	return NULL;
}

int vp_lend_command(const struct vp_lend *lend, enum vp_lend_command command, uint64_t argument)
{
	uint64_t arguments[2] = {command, argument};
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = arguments,
		    .ctx_size_in = sizeof(arguments));

	return bpf_prog_test_run_opts(bpf_program__fd(lend->programs->progs.command), &options);
}

/* Finds the device whose registers cause a VM exit; on x86, the BPF programs know the address. */
static struct vp_error *lend_kernel_find_device(struct vp_lend *lend)
{
#ifdef __aarch64__
	struct bpf_link *link = bpf_program__attach(lend->programs->progs.find_device);
	volatile unsigned long long *device = &lend->programs->bss->device;

	for (int i = 0; link && !*device && i < 200; i++)
		vp_sleep_us(5000);
	bpf_link__destroy(link);
	if (!*device)
		return vp_error_new("this guest's interrupt controller was not found");
#endif
	return NULL;
}

struct vp_error *vp_lend_load(struct vp_lend *lend)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0 || cpus > VP_LEND_MAX_CPUS)
		return vp_error_new("host-provided counters are limited to guests with %d CPUs",
				    VP_LEND_MAX_CPUS);
	lend->n_cells = (uint32_t)cpus;
	VP_TRY(open_programs(lend));
	VP_TRY(freeze(lend));
	lend->programs->bss->n_cpus = lend->n_cells;
	if (vp_lend_command(lend, VP_LEND_OWN, 0))
		return vp_error_errno(errno, "cannot run a program in the kernel");
	if (!bpf_program__attach(lend->programs->progs.on_exit))
		return vp_error_errno(errno, "cannot watch for process exits");
	return lend_kernel_find_device(lend);
}
