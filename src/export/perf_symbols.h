/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Assigns artificial addresses to functions, and writes the files in which perf looks up their
 * names: kallsyms of each machine in kcore_dir and kcore_dir__PID, and an ELF file with symbols but
 * no code per module.
 */
#ifndef VP_EXPORT_PERF_SYMBOLS_H
#define VP_EXPORT_PERF_SYMBOLS_H

#include "analyze/common/key_set.h"
#include "base/error.h"
#include "base/intern.h"
#include "base/macros.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/vm.h"

/* Address range for 16 million functions. */
#define VP_PERF_KERNEL 0xffffff8000000000ULL
#define VP_PERF_KERNEL_SIZE 0x1000000000ULL
#define VP_PERF_MODULE_SIZE 0x10000000ULL

enum { VP_PERF_NO_PID = 1 << 23 }; /* above the kernel's maximum */

typedef VP_VEC(uint32_t) vp_perf_functions; /* indices of texts */

struct vp_perf_symbols {
	const char *directory; /* absolute */
	struct vp_intern texts;
	struct vp_key_set functions; /* kernel or module, text */
	VP_VEC(uint32_t) indexes;    /* index of each in the list of its kernel or module */
	vp_perf_functions *kernels;  /* one per machine; the first is the host's */
	size_t n_kernels;
	struct vp_map module_of_text;
	VP_VEC(struct {
		char *path;
		vp_perf_functions functions;
	})
	modules;
};

/* `directory` is not copied. */
void vp_perf_symbols_init(struct vp_perf_symbols *symbols, const char *directory);
void vp_perf_symbols_deinit(struct vp_perf_symbols *symbols);

/* Address of a function; `vm`: index in the list of VMs, or UINT32_MAX for the host. */
uint64_t vp_perf_kernel_function(struct vp_perf_symbols *symbols, uint32_t vm,
				 const char *function);
uint64_t vp_perf_module_function(struct vp_perf_symbols *symbols, uint32_t module,
				 const char *function);
/* The number of the module with that name; its file; its address in all address spaces. */
uint32_t vp_perf_module(struct vp_perf_symbols *symbols, const char *name);
const char *vp_perf_module_path(const struct vp_perf_symbols *symbols, uint32_t module);
uint64_t vp_perf_module_begin(uint32_t module);
/* A cleaned copy: perf prints texts unescaped. */
char *vp_perf_clean(const char *text) VP_MUST_CHECK;

struct vp_error *vp_perf_symbols_write(const struct vp_perf_symbols *symbols,
				       const vp_vms *vms) VP_MUST_CHECK;

#endif
