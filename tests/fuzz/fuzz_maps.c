/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Map text from a guest: parse it, then look up addresses at its edges. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "symbol/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Whatever the guest wrote, a name does no harm to a terminal. */
static void check_clean(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			abort();
}

static void check_name(const struct vp_name *name)
{
	check_clean(name->function);
	check_clean(name->module);
	check_clean(name->comm);
}

static void look_up(struct vp_names *names, uint32_t space, uint64_t addr, uint64_t time)
{
	struct vp_name name;

	vp_names_find(names, space, false, addr, time, &name);
	check_name(&name);
	vp_names_find(names, space, true, addr, time, &name);
	check_name(&name);
}

static void look_up_all(struct vp_names *names)
{
	const struct vp_maps *maps = vp_names_maps(names);
	size_t count = maps->spaces.count < 16 ? maps->spaces.count : 16;

	for (uint32_t i = 0; i < count; i++) {
		const struct vp_maps_space *space = &maps->spaces.at[i];
		uint64_t times[] = {0, space->start_ns, space->end_ns, UINT64_MAX};
		for (size_t t = 0; t < VP_ARRAY_SIZE(times); t++) {
			vp_names_space_by_root(names, space->root, times[t]);
			vp_names_space_by_pid(names, space->tgid, times[t]);
			for (uint64_t addr = 0; addr < 0x10000; addr += 0x400)
				look_up(names, i, addr, times[t]);
			look_up(names, i, UINT64_MAX, times[t]);
		}
	}
	for (size_t i = 0; i < maps->kernel.count && i < 16; i++) {
		look_up(names, VP_NAMES_NO_SPACE, maps->kernel.at[i].addr, 0);
		look_up(names, VP_NAMES_NO_SPACE, maps->kernel.at[i].addr - 1, 0);
	}
}

/* The same text once more, with another clock: it both agrees and contradicts. */
static void add_second(struct vp_names *names, const char *path,
		       const struct vp_names_options *options)
{
	struct vp_names *second;
	struct vp_error *error = vp_names_load(path, options, &second);

	if (error)
		abort();
	vp_names_set_fallback(names, second);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct vp_names_options options = {.no_files = true};
	static const struct vp_names_clock clock = {
	    .instants = 2, .machine_ns = {5, UINT64_MAX}, .host_ns = {UINT64_MAX, 7}};
	struct vp_names *names;
	struct vp_error *error;
	char path[64];
	int fd = memfd_create("maps", MFD_CLOEXEC);

	if (fd < 0 || vp_fd_write_all(fd, bytes, size))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = vp_names_load(path, &options, &names);
	if (!error) {
		look_up_all(names);
		vp_names_set_clock(names, &clock);
		look_up_all(names);
		add_second(names, path, &options);
		look_up_all(names);
		for (uint32_t i = 0; i < 4; i++) /* and spaces that only the second has */
			look_up(names, (uint32_t)vp_names_maps(names)->spaces.count + i, 0x400, 5);
		vp_names_free(names);
	}
	vp_error_free(error);
	error = vp_names_load_kallsyms(path, &names);
	if (!error) {
		look_up_all(names);
		vp_names_free(names);
	}
	vp_error_free(error);
	close(fd);
	return 0;
}
