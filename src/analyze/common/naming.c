/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/common/naming.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/intern.h"
#include "maps/maps.h"
#include "timeline/guests.h"

/* Error of an unrelated clock: all lifetimes of a CR3 are equally near. */
#define NO_CLOCK_ERROR (UINT64_MAX / 4)
#define ROUNDING_NS 1000

#define HOST "host" /* in place of a VM's name */

static const char *file_of(const vp_naming_files *files, const char *vm)
{
	vp_vec_each (files, file)
		if (!strcmp(file->vm, vm))
			return file->path;
	return NULL;
}

static struct vp_error *check_files(const vp_naming_files *files, const vp_vms *vms,
				    const char *option, bool host_too)
{
	vp_vec_each (files, file) {
		bool found = host_too && !strcmp(file->vm, HOST);
		vp_vec_each (vms, vm)
			found |= !strcmp(vm->name, file->vm);
		if (!found)
			return vp_error_new("--%s %s=%s: the recording has no VM named '%s'",
					    option, file->vm, file->path, file->vm);
	}
	return NULL;
}

static void note_warnings(struct vp_naming *naming, const char *path, const struct vp_maps *maps)
{
	if (!maps->warning_count)
		return;
	vp_vec_push(&naming->notes, vp_format("'%s': %llu malformed lines were skipped; %s", path,
					      (unsigned long long)maps->warning_count,
					      maps->warnings.count ? maps->warnings.at[0] : ""));
}

/* Reads a symbol map, or stores the reason in the machine's state. */
static void machine_load(struct vp_naming *naming, const char *path,
			 const struct vp_names_options *options, struct vp_naming_machine *machine)
{
	if (access(path, F_OK) && errno == ENOENT) {
		machine->state = vp_strdup("none");
		return;
	}
	struct vp_error *error = vp_names_load(path, options, &machine->names);
	if (error) {
		machine->state = vp_strdup(vp_error_message(error));
		vp_error_free(error);
		return;
	}
	const struct vp_maps *maps = vp_names_maps(machine->names);
	machine->complete = maps->complete;
	machine->state = vp_strdup(maps->complete ? "complete" : "cut off");
	note_warnings(naming, path, maps);
}

/* Without valid tables, the kernel part of call chains is missing, which a note reports. */
static void load_unwind_tables(struct vp_naming *naming, const char *path,
			       struct vp_naming_machine *machine)
{
	if (access(path, F_OK) && errno == ENOENT)
		return;
	struct vp_error *error = vp_orc_load(path, &machine->unwind);
	if (error)
		vp_vec_push(&naming->notes, vp_strdup(vp_error_message(error)));
	else if (!machine->unwind.whole)
		vp_vec_push(&naming->notes, vp_format("'%s' is truncated", path));
	vp_error_free(error);
}

static void set_clock(struct vp_naming_machine *machine)
{
	const struct vp_clock_map *map = &machine->clock;
	struct vp_names_clock clock = {.instants = map->instants, .error_ns = map->error_ns};

	for (unsigned i = 0; i < map->instants; i++) {
		clock.machine_ns[i] = map->guest_ns[i];
		clock.host_ns[i] = map->host_ns[i];
	}
	if (map->basis == VP_CLOCK_UNKNOWN)
		clock.error_ns = NO_CLOCK_ERROR;
	vp_names_set_clock(machine->names, &clock);
}

/* `dumped` means that the symbol map was made at the recording's end, not at another time. */
static void relate_clocks(const struct vp_recording *recording, const struct vp_host_clock *host,
			  const struct vp_vm *vm, bool dumped, struct vp_naming_machine *machine)
{
	const struct vp_maps *maps = vp_names_maps(machine->names);
	VP_VEC(struct vp_clock_pair) pairs = {0};
	uint64_t end = recording->end ? recording->end : recording->start;

	if (maps->from_memory) {
		machine->clock = (struct vp_clock_map){.basis = VP_CLOCK_SAME};
		set_clock(machine);
		return;
	}
	vp_vec_each (&maps->clocks, clock)
		vp_vec_push(&pairs,
			    ((struct vp_clock_pair){clock->mono_ns, clock->tsc, clock->error_ns}));
	vp_clock_map_by_tsc(host, vm, pairs.at, pairs.count, recording->start, end,
			    &machine->clock);
	if (machine->clock.basis == VP_CLOCK_UNKNOWN && dumped && pairs.count && recording->end)
		vp_clock_map_by_dump(pairs.at[pairs.count - 1].ns, recording->end, &machine->clock);
	vp_vec_deinit(&pairs);
	set_clock(machine);
}

/* Loads the agent's map, as a fallback of the map from guest memory, or as the only one. */
static void load_agent(struct vp_naming *naming, const char *path,
		       const struct vp_names_options *options, const struct vp_recording *recording,
		       const struct vp_host_clock *host, const struct vp_vm *vm,
		       struct vp_naming_machine *machine)
{
	struct vp_naming_machine agent = {0};

	if (access(path, F_OK) && errno == ENOENT)
		return;
	machine_load(naming, path, options, &agent);
	if (agent.names)
		relate_clocks(recording, host, vm, true, &agent);
	if (!machine->names) {
		free(machine->state);
		agent.kernel = machine->kernel;
		*machine = agent;
		return;
	}
	machine->agent_state = agent.state;
	machine->agent_clock = agent.clock;
	vp_names_set_fallback(machine->names, agent.names);
}

static struct vp_error *vm_load(const struct vp_naming_options *options, const vp_vms *vms,
				const struct vp_vm *vm, const struct vp_recording *recording,
				const struct vp_host_clock *host, struct vp_naming *naming)
{
	const char *given = file_of(&options->maps, vm->name);
	const char *kernel = file_of(&options->kernels, vm->name);
	VP_AUTO_FREE char *own = vp_recording_maps_path(options->directory, vms, vm);
	struct vp_naming_machine *machine = vp_vec_push_slot(&naming->vms);
	/* Paths in guest texts are arbitrary: files of this machine are not the guest's. */
	struct vp_names_options how = {.root = options->symfs,
				       .no_files = !options->symfs,
				       .map_only = options->no_host_files};

	*machine = (struct vp_naming_machine){0};
	machine_load(naming, given ? given : own, &how, machine);
	if (given && !machine->names)
		return vp_error_new("cannot use '%s' for VM '%s': %s", given, vm->name,
				    strcmp(machine->state, "none") ? machine->state
								   : "no such file");
	if (kernel)
		VP_TRY(vp_names_load_kallsyms(kernel, &machine->kernel));
	if (machine->names)
		relate_clocks(recording, host, vm, !given, machine);
	if (!given) {
		VP_AUTO_FREE char *said = vp_recording_agent_path(options->directory, vms, vm);
		load_agent(naming, said, &how, recording, host, vm, machine);
	}
	if (recording->chains) {
		VP_AUTO_FREE char *tables = vp_recording_orc_path(options->directory, vms, vm);
		load_unwind_tables(naming, tables, machine);
	}
	return NULL;
}

/* Notes about the host's map are notes about missing names. */
static void naming_note_missing(struct vp_naming_machine *host)
{
	if (!host->complete || !vp_names_maps(host->names)->notes.count)
		return;
	host->complete = false;
	free(host->state);
	host->state = vp_strdup("incomplete");
}

enum { MAX_FILES_NAMED = 4 };

/* Removes duplicates: several machines may have used the same file. */
static void without_repeats(vp_names_paths *paths)
{
	struct vp_intern known = {0};
	size_t kept = 0;

	for (size_t i = 0; i < paths->count; i++) {
		size_t before = known.strings.count;
		vp_intern_string(&known, paths->at[i]);
		if (known.strings.count > before)
			paths->at[kept++] = paths->at[i];
	}
	paths->count = kept;
	vp_intern_deinit(&known);
}

char *vp_naming_files_used(const struct vp_naming *naming)
{
	vp_names_paths paths = {0};
	struct vp_buffer list = {0};
	char *ret = NULL;

	if (naming->host.names)
		vp_names_files_used(naming->host.names, &paths);
	vp_vec_each (&naming->vms, vm)
		if (vm->names)
			vp_names_files_used(vm->names, &paths);
	without_repeats(&paths);
	for (size_t i = 0; i < paths.count && i < MAX_FILES_NAMED; i++)
		vp_buffer_printf(&list, "%s%s", i ? ", " : "", paths.at[i]);
	if (paths.count > MAX_FILES_NAMED)
		vp_buffer_printf(&list, ", and %zu more", paths.count - MAX_FILES_NAMED);
	if (paths.count)
		ret =
		    vp_format("function names of %zu file%s were read on this machine, by build-id "
			      "(--no-host-files: only from the recording): %s",
			      paths.count, paths.count == 1 ? "" : "s", vp_buffer_text(&list));
	vp_buffer_deinit(&list);
	vp_vec_deinit(&paths);
	return ret;
}

struct vp_error *vp_naming_load(const struct vp_naming_options *options,
				const struct vp_recording *recording, const vp_vms *vms,
				const vp_stream_readers *streams, struct vp_naming *ret)
{
	struct vp_host_clock clock;
	struct stat symfs;
	struct vp_names_options how = {.root = options->symfs, .map_only = options->no_host_files};
	VP_AUTO_FREE char *path = vp_recording_maps_path(options->directory, vms, NULL);
	struct vp_error *error = check_files(&options->maps, vms, "guest", false);

	*ret = (struct vp_naming){0};
	if (!error && options->symfs && (stat(options->symfs, &symfs) || !S_ISDIR(symfs.st_mode)))
		error =
		    vp_error_usage("option --symfs: there is no directory '%s'", options->symfs);
	if (!error)
		error = check_files(&options->kernels, vms, "kallsyms", true);
	if (error)
		return error;
	machine_load(ret, path, &how, &ret->host);
	const char *kernel = file_of(&options->kernels, HOST);
	if (kernel)
		error = vp_names_load_kallsyms(kernel, &ret->host.kernel);
	naming_note_missing(&ret->host);
	vp_host_clock_read(streams, &clock);
	vp_vec_each (vms, vm) {
		if (!error)
			error = vm_load(options, vms, vm, recording, &clock, ret);
	}
	if (error)
		vp_naming_deinit(ret);
	return error;
}

static void machine_deinit(struct vp_naming_machine *machine)
{
	vp_names_free(machine->names);
	vp_names_free(machine->kernel);
	vp_orc_deinit(&machine->unwind);
	free(machine->state);
	free(machine->agent_state);
}

void vp_naming_deinit(struct vp_naming *naming)
{
	machine_deinit(&naming->host);
	vp_vec_each (&naming->vms, machine)
		machine_deinit(machine);
	vp_vec_deinit(&naming->vms);
	vp_vec_each (&naming->notes, note)
		free(*note);
	vp_vec_deinit(&naming->notes);
	*naming = (struct vp_naming){0};
}

/* Converts a guest time to host time; the inverse of the conversion in symbol/. */
static uint64_t host_time(const struct vp_clock_map *map, uint64_t guest_ns)
{
	if (!map->instants)
		return guest_ns;
	__int128 since = (__int128)guest_ns - map->guest_ns[0];
	if (map->instants == 2 && map->guest_ns[1] > map->guest_ns[0])
		since = since * ((__int128)map->host_ns[1] - map->host_ns[0]) /
			((__int128)map->guest_ns[1] - map->guest_ns[0]);
	since += map->host_ns[0];
	return since < 0 ? 0 : since > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)since;
}

void vp_naming_lifetime(const struct vp_naming_machine *machine, uint32_t space, uint64_t *from,
			uint64_t *to)
{
	uint64_t start, end;

	*from = UINT64_MAX;
	*to = 0;
	if (!vp_names_life(machine->names, space, &start, &end))
		return;
	*from = start ? host_time(&machine->clock, start) + ROUNDING_NS : 0;
	*to = UINT64_MAX;
	if (end) {
		*to = host_time(&machine->clock, end);
		*to = *to > ROUNDING_NS ? *to - ROUNDING_NS : 0;
	}
}

/* Limits *from and *to to the interval around `time` that does not contain the process's start or
 * end; 0: unknown. */
static void period_cut(const struct vp_clock_map *map, uint64_t guest_ns, uint64_t time,
		       uint64_t *from, uint64_t *to)
{
	uint64_t at = guest_ns ? host_time(map, guest_ns) : 0;

	if (!guest_ns)
		return;
	if (time > ROUNDING_NS && time - ROUNDING_NS >= at)
		*from = at + ROUNDING_NS > *from ? at + ROUNDING_NS : *from;
	else if (at > ROUNDING_NS && at - ROUNDING_NS > time)
		*to = at - ROUNDING_NS - 1 < *to ? at - ROUNDING_NS - 1 : *to;
	else
		*from = *to = time;
}

void vp_naming_period(const struct vp_naming_machine *machine, uint64_t time, uint64_t *from,
		      uint64_t *to)
{
	uint64_t start, end;

	*from = 0;
	*to = UINT64_MAX;
	for (uint32_t space = 0; vp_names_life(machine->names, space, &start, &end); space++) {
		period_cut(&machine->clock, start, time, from, to);
		period_cut(&machine->clock, end, time, from, to);
	}
}

const struct vp_naming_machine *vp_naming_machine(const struct vp_naming *naming, uint32_t vm)
{
	static const struct vp_naming_machine nothing;

	if (vm == VP_NONE)
		return &naming->host;
	return vm < naming->vms.count ? &naming->vms.at[vm] : &nothing;
}
