/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/kernel_btf.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/btf.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/macros.h"
#include "host/btf_excerpt.h"

/* KVM modules whose types the programs use. */
static const char *const modules[] = {"kvm", "kvm_amd", "kvm_intel"};

struct vp_kernel_btf {
	struct btf *all, *of_modules[VP_ARRAY_SIZE(modules)];
	bool asked, asked_module[VP_ARRAY_SIZE(modules)];
};

struct vp_kernel_btf *vp_kernel_btf_new(void)
{
	return vp_alloc(sizeof(struct vp_kernel_btf));
}

void vp_kernel_btf_forget(struct vp_kernel_btf *kernel)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(modules); i++)
		btf__free(kernel->of_modules[i]);
	btf__free(kernel->all);
	*kernel = (struct vp_kernel_btf){0};
}

void vp_kernel_btf_free(struct vp_kernel_btf *kernel)
{
	if (kernel)
		vp_kernel_btf_forget(kernel);
	free(kernel);
}

const struct btf *vp_kernel_btf_all(struct vp_kernel_btf *kernel)
{
	if (!kernel->asked)
		kernel->all = btf__load_vmlinux_btf();
	kernel->asked = true;
	return kernel->all;
}

static const struct btf *module_at(struct vp_kernel_btf *kernel, size_t i)
{
	if (vp_kernel_btf_all(kernel) && !kernel->asked_module[i])
		kernel->of_modules[i] = btf__load_module_btf(modules[i], kernel->all);
	kernel->asked_module[i] = true;
	return kernel->of_modules[i];
}

const struct btf *vp_kernel_btf_module(struct vp_kernel_btf *kernel, const char *module)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(modules); i++)
		if (!strcmp(modules[i], module))
			return module_at(kernel, i);
	return NULL;
}

static bool describes(const struct btf *btf, const char *name, const char *member)
{
	int id = btf ? btf__find_by_name_kind(btf, name, BTF_KIND_STRUCT) : 0;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	if (!type || !member)
		return type != NULL;
	for (int i = 0; i < btf_vlen(type); i++) {
		const char *found = btf__name_by_offset(btf, btf_members(type)[i].name_off);
		if (found && !strcmp(found, member))
			return true;
	}
	return false;
}

bool vp_kernel_btf_has_member(struct vp_kernel_btf *kernel, const char *module, const char *name,
			      const char *member)
{
	struct vp_kernel_btf *own = kernel ? NULL : vp_kernel_btf_new();
	struct vp_kernel_btf *asked = kernel ? kernel : own;
	bool found = describes(vp_kernel_btf_module(asked, module), name, member) ||
		     describes(vp_kernel_btf_all(asked), name, member);

	vp_kernel_btf_free(own);
	return found;
}

/* Writes the types to a memfd; -1: failed. */
static int put_types(const struct btf *types)
{
	uint32_t size;
	const void *bytes = btf__raw_data(types, &size);
	int fd = bytes ? memfd_create("types", MFD_CLOEXEC) : -1;

	if (fd < 0 || vp_write(fd, bytes, size) == (ssize_t)size)
		return fd;
	close(fd);
	return -1;
}

static int kernel_btf_find_types(struct vp_kernel_btf *kernel, const void *elf, size_t size)
{
	const struct btf *from[1 + VP_ARRAY_SIZE(modules)] = {vp_kernel_btf_all(kernel)};
	struct bpf_object *object = from[0] ? bpf_object__open_mem(elf, size, NULL) : NULL;
	struct btf *types = NULL;

	if (!object)
		return -1;
	for (size_t i = 0; i < VP_ARRAY_SIZE(modules); i++)
		from[1 + i] = module_at(kernel, i);
	if (bpf_object__btf(object))
		types = vp_btf_excerpt(from, VP_ARRAY_SIZE(from), bpf_object__btf(object));
	bpf_object__close(object);
	int fd = types ? put_types(types) : -1;
	btf__free(types);
	return fd;
}

void vp_btf_open_opts_init(struct vp_btf_open_opts *fitting, struct vp_kernel_btf *kernel,
			   const void *elf, size_t size)
{
	*fitting = (struct vp_btf_open_opts){.kernel = kernel ? kernel : vp_kernel_btf_new(),
					     .own = !kernel,
					     .options = {.sz = sizeof(fitting->options)}};
	fitting->fd = kernel_btf_find_types(fitting->kernel, elf, size);
	snprintf(fitting->path, sizeof(fitting->path), "/proc/self/fd/%d", fitting->fd);
	/* Unreadable if the program has file capabilities: /proc/self belongs to root then. */
	if (!access(fitting->path, R_OK))
		fitting->options.btf_custom_path = fitting->path;
}

void vp_btf_open_opts_deinit(struct vp_btf_open_opts *fitting)
{
	if (fitting->fd >= 0)
		close(fitting->fd);
	if (fitting->own)
		vp_kernel_btf_free(fitting->kernel);
	*fitting = (struct vp_btf_open_opts){.fd = -1};
}
