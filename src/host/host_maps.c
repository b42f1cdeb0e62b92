/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/host_maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/seed.h"
#include "base/vec.h"
#include "host/host_images.h"
#include "host/host_jit.h"
#include "maps/mapped.h"
#include "maps/proc.h"
#include "maps/writer.h"

enum {
	PATH_BYTES = 1 << 20,      /* of a program's mappings */
	ALL_PATH_BYTES = 64 << 20, /* of all mappings */
	ALL_MAPPINGS = 1 << 21,
	READ_PER_SECOND = 32 << 20, /* bytes of /proc/PID/maps */
	READ_AT_END = 512 << 20,
	MAX_PENDING = 1 << 16,
	FEW = 64, /* unused spaces up to this number are kept */
};
#define SECOND 1000000000ULL
#define NONE UINT32_MAX

struct mapping {
	uint64_t start, end, pgoff;
	uint32_t path; /* index in `paths` */
};

/* A program since its exec; shared by its spaces of different names. */
struct program {
	uint64_t identity; /* vp_proc_program(); 0: it has exited */
	uid_t uid;         /* owner; -1: the process has exited */
	VP_VEC(struct mapping) mappings;
	size_t path_bytes;
	bool cut;
};

struct space {
	uint32_t pid, program;
	char comm[16]; /* "": unknown */
	uint64_t start, end,
	    seen; /* start 0: before the recording; end 0: still running; seen 0: no sample yet */
};

struct process {
	uint32_t latest; /* index of the newest space */
	uint32_t spaces;
	uint64_t second; /* second of the newest spaces, and their number in it */
	uint32_t in_fallback;
	bool is_same; /* in that second, the same program was found under several names */
};

/* Arguments of a vp_host_maps_note_sample() that waits while a map is written. */
struct seen {
	uint32_t pid;
	bool has_comm;
	char comm[16];
	uint64_t time;
};

struct losses {
	uint64_t unseen; /* samples of programs whose mappings were not read */
	uint64_t stale;  /* samples of programs under a name that was not kept */
	uint64_t cut;    /* programs with more mappings than are kept */
	uint64_t unread; /* programs that exited before their mappings were read */
};

struct vp_host_maps {
	VP_VEC(struct space) spaces;
	VP_VEC(struct program) programs;
	VP_VEC(struct process) processes;
	struct vp_intern paths;
	VP_VEC(struct vp_mapped)
	images;              /* by path, with the present or last process that mapped it */
	struct vp_map known; /* pid -> process */
	size_t n_mappings, path_bytes;
	uint64_t second; /* second of the newest sample, and in it: */
	uint32_t in_fallback;
	size_t may_read;
	struct losses lost, reported;
	bool is_writing; /* a map is being written: spaces and images must not change … */
	VP_VEC(struct seen) pending; /* … new samples wait here */
	const struct vp_meanwhile *meanwhile;
	VP_VEC(char *) problems;
};

struct vp_host_maps *vp_host_maps_new(void)
{
	struct vp_host_maps *maps = vp_alloc(sizeof(*maps));

	maps->may_read = READ_PER_SECOND;
	return maps;
}

/* Frees everything that a new state does not reuse. */
static void drop_tables(struct vp_host_maps *maps)
{
	vp_vec_each (&maps->programs, program)
		vp_vec_deinit(&program->mappings);
	vp_vec_deinit(&maps->programs);
	vp_vec_deinit(&maps->spaces);
	vp_vec_deinit(&maps->processes);
	vp_intern_deinit(&maps->paths);
	vp_vec_deinit(&maps->images);
	vp_map_deinit(&maps->known);
}

void vp_host_maps_free(struct vp_host_maps *maps)
{
	if (!maps)
		return;
	drop_tables(maps);
	vp_vec_deinit(&maps->pending);
	vp_vec_each (&maps->problems, problem)
		free(*problem);
	vp_vec_deinit(&maps->problems);
	free(maps);
}

/* The number of a path; adds an image for a new one. */
static uint32_t path_number(struct vp_host_maps *maps, const char *path)
{
	uint32_t number = vp_intern_string(&maps->paths, path);

	while (maps->images.count <= number) {
		maps->path_bytes += strlen(path) + 1;
		vp_vec_push(&maps->images, (struct vp_mapped){0});
	}
	return number;
}

static void note_image(struct vp_host_maps *maps, const struct mapping *mapping, uint32_t pid)
{
	struct vp_mapped *image = &maps->images.at[mapping->path];

	image->pid = pid;
	image->start = mapping->start;
	image->end = mapping->end;
}

static uint64_t host_maps_hash_of(const struct mapping *mapping)
{
	const uint64_t words[] = {mapping->start, mapping->end, mapping->pgoff, mapping->path};

	return XXH3_64bits_withSeed(words, sizeof(words), vp_hash_seed());
}

struct reading {
	struct vp_host_maps *maps;
	uint32_t pid, program;
	struct vp_map known; /* hashes of the program's mappings */
};

static bool has_room(const struct vp_host_maps *maps, const struct program *program, size_t path)
{
	return program->mappings.count < VP_HOST_MAPS_MAPPINGS && maps->n_mappings < ALL_MAPPINGS &&
	       program->path_bytes + path <= PATH_BYTES &&
	       maps->path_bytes + path <= ALL_PATH_BYTES;
}

static bool host_maps_take_mapping(void *context, const struct vp_proc_mapping *seen)
{
	struct reading *reading = context;
	struct vp_host_maps *maps = reading->maps;
	struct program *program = &maps->programs.at[reading->program];
	size_t length = strlen(seen->path) + 1;
	bool is_new;

	if (!has_room(maps, program, length))
		return false;
	struct mapping mapping = {.path = path_number(maps, seen->path),
				  .start = seen->start,
				  .end = seen->end,
				  .pgoff = seen->pgoff};
	note_image(maps, &mapping, reading->pid);
	vp_map_insert(&reading->known, host_maps_hash_of(&mapping), 0, &is_new);
	if (is_new) {
		vp_vec_push(&program->mappings, mapping);
		program->path_bytes += length;
		maps->n_mappings++;
	}
	return true;
}

/* Adds the process's present mappings to its program. `bytes`: maximum size of the text. */
static void host_maps_read_mappings(struct vp_host_maps *maps, uint32_t pid, uint32_t number,
				    size_t *bytes)
{
	struct reading reading = {.maps = maps, .pid = pid, .program = number};
	struct program *program = &maps->programs.at[number];
	bool is_new;

	vp_vec_each (&program->mappings, mapping)
		vp_map_insert(&reading.known, host_maps_hash_of(mapping), 0, &is_new);
	bool stopped =
	    vp_proc_mappings(pid, bytes, host_maps_take_mapping, &reading) == VP_PROC_STOPPED;
	vp_map_deinit(&reading.known);
	program = &maps->programs.at[number];
	if (stopped && !*bytes)
		maps->lost.unread++;
	else if (stopped && !program->cut)
		maps->lost.cut++;
	program->cut |= stopped && *bytes;
}

/* Whether the process still has the name; true if unknown. */
static bool host_maps_has_name(uint32_t pid, const char *comm)
{
	char now[16] = "";

	return !comm[0] || (vp_proc_comm(pid, now) && !strncmp(now, comm, sizeof(now)));
}

/* Whether the space belongs to a program other than `comm`; stores a missing name. */
static bool is_other_program(struct space *space, const char *comm)
{
	if (!space->comm[0])
		memcpy(space->comm, comm, strnlen(comm, sizeof(space->comm) - 1));
	return strncmp(space->comm, comm, sizeof(space->comm) - 1) != 0;
}

static struct process *process_of(const struct vp_host_maps *maps, uint32_t pid)
{
	const uint32_t *known = vp_map_find(&maps->known, pid);

	return known ? &maps->processes.at[*known] : NULL;
}

/* Whether another space is within the limits; counts it if so. */
static bool may_add(struct vp_host_maps *maps, struct process *process, uint64_t time)
{
	uint64_t second = time / SECOND;

	if (second > maps->second) {
		maps->second = second;
		maps->in_fallback = 0;
		maps->may_read = READ_PER_SECOND;
	}
	if (process && process->second != second) {
		process->second = second;
		process->in_fallback = 0;
		process->is_same = false;
	}
	if (maps->in_fallback >= VP_HOST_MAPS_PER_SECOND ||
	    maps->spaces.count >= VP_HOST_MAPS_SPACES ||
	    (process && (process->in_fallback >= VP_HOST_MAPS_PROCESS_PER_SECOND ||
			 process->spaces >= VP_HOST_MAPS_PROCESS_SPACES)))
		return false;
	maps->in_fallback++;
	if (process)
		process->in_fallback++;
	return true;
}

static void push_space(struct vp_host_maps *maps, const struct space *space)
{
	bool is_new;
	uint32_t *known =
	    vp_map_insert(&maps->known, space->pid, (uint32_t)maps->processes.count, &is_new);

	if (is_new)
		vp_vec_push(&maps->processes, (struct process){0});
	maps->processes.at[*known].latest = (uint32_t)maps->spaces.count;
	maps->processes.at[*known].spaces++;
	vp_vec_push(&maps->spaces, *space);
}

/* The owner of the process; -1 if it has exited. */
static uid_t user_of(uint32_t pid)
{
	VP_AUTO_FREE char *path = vp_format("/proc/%u", pid);
	struct stat status;

	return stat(path, &status) ? (uid_t)-1 : status.st_uid;
}

/* Reads nothing if the process has exited, or runs another program: its samples stay unresolved. */
static uint32_t new_program(struct vp_host_maps *maps, const struct space *space, uint64_t identity)
{
	uint32_t number = (uint32_t)maps->programs.count;

	vp_vec_push(&maps->programs,
		    ((struct program){.identity = identity, .uid = user_of(space->pid)}));
	if (identity && host_maps_has_name(space->pid, space->comm))
		host_maps_read_mappings(maps, space->pid, number, &maps->may_read);
	return number;
}

/* Over the limit: if only the name has changed, the previous space stays in use. */
static void refuse_space(struct vp_host_maps *maps, struct space *before, uint64_t time)
{
	struct process *process = before ? process_of(maps, before->pid) : NULL;

	if (process && !before->end && !process->is_same)
		process->is_same =
		    vp_proc_program(before->pid) == maps->programs.at[before->program].identity;
	if (process && !before->end && process->is_same) {
		maps->lost.stale++;
		return;
	}
	maps->lost.unseen++;
	if (process && !before->end)
		before->end = time;
}

/* Adds a space of the process; `before`: its previous space under another name, or NULL. */
static void add_space(struct vp_host_maps *maps, struct space *before, uint32_t pid,
		      const char *comm, uint64_t time)
{
	struct space space = {.pid = pid, .start = before ? time : 0, .seen = time};

	if (!may_add(maps, process_of(maps, pid), time)) {
		refuse_space(maps, before, time);
		return;
	}
	uint64_t identity = vp_proc_program(pid);
	bool same = before && identity && identity == maps->programs.at[before->program].identity;
	if (before && !before->end)
		before->end = time;
	if (comm)
		memcpy(space.comm, comm, strnlen(comm, sizeof(space.comm) - 1));
	space.program = same ? before->program : new_program(maps, &space, identity);
	push_space(maps, &space);
}

/* At once, or after the map is written. */
static void host_maps_add_or_queue(struct vp_host_maps *maps, struct space *before, uint32_t pid,
				   const char *comm, uint64_t time)
{
	struct seen seen = {.pid = pid, .has_comm = comm != NULL, .time = time};

	if (!maps->is_writing) {
		add_space(maps, before, pid, comm, time);
		return;
	}
	if (maps->pending.count == MAX_PENDING) {
		maps->lost.unseen++;
		return;
	}
	if (comm)
		memcpy(seen.comm, comm, strnlen(comm, sizeof(seen.comm) - 1));
	vp_vec_push(&maps->pending, seen);
}

void vp_host_maps_note_sample(struct vp_host_maps *maps, uint32_t pid, const char *comm,
			      uint64_t time)
{
	struct process *process = process_of(maps, pid);
	struct space *latest = process ? &maps->spaces.at[process->latest] : NULL;

	if (!latest) {
		host_maps_add_or_queue(maps, NULL, pid, comm, time);
		return;
	}
	if (time > latest->seen)
		latest->seen = time;
	/* Samples of different pCPUs are not in order of time: this one may be of the previous
	 * program. */
	if (!comm || time < latest->start)
		return;
	if (latest->end ? time >= latest->end : is_other_program(latest, comm))
		host_maps_add_or_queue(maps, latest, pid, comm, time);
}

static void host_maps_add_pending(struct vp_host_maps *maps)
{
	vp_vec_each (&maps->pending, seen)
		vp_host_maps_note_sample(maps, seen->pid, seen->has_comm ? seen->comm : NULL,
					 seen->time);
	vp_vec_deinit(&maps->pending);
}

/* Copies the program with its mappings to the new state; returns its number there. */
static uint32_t move_program(struct vp_host_maps *maps, uint32_t number, struct vp_host_maps *kept)
{
	struct program program = maps->programs.at[number];

	maps->programs.at[number].mappings.at = NULL;
	vp_vec_each (&program.mappings, mapping) {
		const struct vp_mapped *image = &maps->images.at[mapping->path];
		mapping->path = path_number(kept, vp_intern_text(&maps->paths, mapping->path));
		if (!kept->images.at[mapping->path].end)
			kept->images.at[mapping->path] = *image;
	}
	kept->n_mappings += program.mappings.count;
	vp_vec_push(&kept->programs, program);
	return (uint32_t)kept->programs.count - 1;
}

static void move_space(struct vp_host_maps *maps, struct space *space, uint32_t *numbers,
		       struct vp_host_maps *kept)
{
	const struct process *process = process_of(maps, space->pid);
	uint32_t *number = &numbers[space->program];

	if (*number == NONE)
		*number = move_program(maps, space->program, kept);
	space->program = *number;
	/* The process that mapped the image last may have exited. */
	vp_vec_each (&kept->programs.at[*number].mappings, mapping)
		note_image(kept, mapping, space->pid);
	push_space(kept, space);
	struct process *own = process_of(kept, space->pid);
	own->second = process->second;
	own->in_fallback = process->in_fallback;
	own->is_same = process->is_same;
}

static void keep_from(struct vp_host_maps *maps, uint64_t time)
{
	struct vp_host_maps kept = {.second = maps->second,
				    .in_fallback = maps->in_fallback,
				    .may_read = maps->may_read,
				    .lost = maps->lost,
				    .reported = maps->reported};
	uint32_t *numbers = vp_realloc_array(NULL, maps->programs.count + 1, sizeof(*numbers));

	memset(numbers, 0xff, (maps->programs.count + 1) * sizeof(*numbers));
	vp_vec_each (&maps->spaces, space)
		if (space->seen >= time)
			move_space(maps, space, numbers, &kept);
	free(numbers);
	drop_tables(maps);
	memcpy(&kept.problems, &maps->problems, sizeof(kept.problems));
	*maps = kept;
}

void vp_host_maps_forget(struct vp_host_maps *maps, uint64_t time)
{
	size_t old = 0;

	vp_vec_each (&maps->spaces, space)
		old += space->seen < time;
	/* Dropping copies all remaining spaces: only if enough are unused. */
	if (old > FEW && old > maps->spaces.count / 4)
		keep_from(maps, time);
}

void vp_host_maps_count(const struct vp_host_maps *maps, size_t *spaces, size_t *mappings)
{
	*spaces = maps->spaces.count;
	*mappings = maps->n_mappings;
}

/* Reads the mappings of running programs again. */
static void host_maps_read_again(struct vp_host_maps *maps)
{
	size_t bytes = READ_AT_END;

	vp_vec_each (&maps->processes, process) {
		const struct space *space = &maps->spaces.at[process->latest];
		uint64_t identity = maps->programs.at[space->program].identity;
		if (!space->end && identity && vp_proc_program(space->pid) == identity)
			host_maps_read_mappings(maps, space->pid, space->program, &bytes);
	}
}

static void host_maps_write_images(struct vp_host_maps *maps, struct vp_maps_writer *writer,
				   bool with_symbols, struct vp_error **problem)
{
	for (uint32_t i = 0; i < maps->images.count; i++)
		maps->images.at[i].path = vp_intern_text(&maps->paths, i);
	size_t unread;

	*problem = vp_host_images_write(writer, maps->images.at, maps->images.count, with_symbols,
					maps->meanwhile, &unread);
	if (unread)
		vp_maps_write_note(writer,
				   "%zu files of host programs could not be read, or were replaced "
				   "since: their functions have no names",
				   unread);
	if (with_symbols)
		vp_mapped_write_vdso(writer);
}

static bool has_generated_code(const struct vp_host_maps *maps, const struct program *program)
{
	vp_vec_each (&program->mappings, mapping)
		if (!vp_mapped_is_file(vp_intern_text(&maps->paths, mapping->path)))
			return true;
	return false;
}

/* Writes symbols of JIT-compiled code. `first`: the first space of each program. */
static void host_maps_write_jit(const struct vp_host_maps *maps, const uint32_t *first,
				struct vp_maps_writer *writer, struct vp_error **problem)
{
	VP_VEC(struct vp_host_jit) jits = {0};

	vp_vec_each (&maps->processes, process) {
		const struct space *space = &maps->spaces.at[process->latest];
		const struct program *program = &maps->programs.at[space->program];
		if (program->identity && has_generated_code(maps, program))
			vp_vec_push(&jits,
				    ((struct vp_host_jit){.space = first[space->program],
							  .pid = space->pid,
							  .uid = program->uid,
							  .is_alive = vp_proc_program(space->pid) ==
								      program->identity}));
	}
	*problem = vp_host_jit_write(writer, jits.at, jits.count, maps->meanwhile);
	vp_vec_deinit(&jits);
}

/* Further spaces of a program inherit its mappings, as a child process does. */
static void host_maps_write_spaces(const struct vp_host_maps *maps, uint32_t *first,
				   struct vp_maps_writer *writer)
{
	memset(first, 0xff, (maps->programs.count + 1) * sizeof(*first));
	for (uint32_t i = 0; i < maps->spaces.count; i++) {
		const struct space *space = &maps->spaces.at[i];
		vp_maps_write_space(writer, i, space->pid, 0, space->start, space->end,
				    space->comm);
		if (first[space->program] == NONE)
			first[space->program] = i;
		else
			vp_maps_write_fork(writer, i, first[space->program]);
	}
	for (uint32_t i = 0; i < maps->programs.count; i++)
		vp_vec_each (&maps->programs.at[i].mappings, mapping)
			vp_maps_write_mapping(writer, first[i], mapping->start, mapping->end,
					      mapping->pgoff, 0,
					      &maps->images.at[mapping->path].build_id,
					      vp_intern_text(&maps->paths, mapping->path));
}

/* Writes a note to the map; also queues it for the user if `more` exceeds the last reported
 * value. */
static void host_maps_report(struct vp_host_maps *maps, struct vp_maps_writer *writer,
			     char *sentence, bool more)
{
	vp_maps_write_note(writer, "%s", sentence);
	if (more)
		vp_vec_push(&maps->problems, sentence);
	else
		free(sentence);
}

static void send_losses(struct vp_host_maps *maps, struct vp_maps_writer *writer,
			const struct vp_error *images, const struct vp_error *jit)
{
	const struct losses *lost = &maps->lost, *reported = &maps->reported;

	if (images)
		host_maps_report(
		    maps, writer,
		    vp_format("some files of host programs were not read (%s): some of their "
			      "functions have no names",
			      vp_error_message(images)),
		    true);
	if (jit)
		host_maps_report(maps, writer,
				 vp_format("some perf maps of host programs were not read (%s): "
					   "their JIT code has no names",
					   vp_error_message(jit)),
				 true);
	if (lost->unseen)
		host_maps_report(
		    maps, writer,
		    vp_format("%llu samples of host processes have no names: at most %d programs "
			      "or names per second of one process and %d of all are read",
			      (unsigned long long)lost->unseen, VP_HOST_MAPS_PROCESS_PER_SECOND,
			      VP_HOST_MAPS_PER_SECOND),
		    lost->unseen > reported->unseen);
	if (lost->stale)
		host_maps_report(
		    maps, writer,
		    vp_format("%llu samples of host processes are shown under a former name of "
			      "the process: at most %d names per second and %d in all are kept",
			      (unsigned long long)lost->stale, VP_HOST_MAPS_PROCESS_PER_SECOND,
			      VP_HOST_MAPS_PROCESS_SPACES),
		    lost->stale > reported->stale);
	if (lost->cut)
		host_maps_report(
		    maps, writer,
		    vp_format("%llu host programs have more than %d executable mappings: the "
			      "others have no names",
			      (unsigned long long)lost->cut, VP_HOST_MAPS_MAPPINGS),
		    lost->cut > reported->cut);
	if (lost->unread)
		host_maps_report(
		    maps, writer,
		    vp_format("%llu times the mappings of a host program were not read: they are "
			      "too many, or change too often",
			      (unsigned long long)lost->unread),
		    lost->unread > reported->unread);
	maps->reported = maps->lost;
}

static void host_maps_write_all(struct vp_host_maps *maps, struct vp_maps_writer *writer,
				bool with_symbols)
{
	VP_AUTO_FREE uint32_t *first =
	    vp_realloc_array(NULL, maps->programs.count + 1, sizeof(*first));
	VP_AUTO_ERROR struct vp_error *images = NULL, *jit = NULL;

	vp_proc_write_machine(writer, false);
	vp_proc_write_kallsyms(writer);
	host_maps_write_images(maps, writer, with_symbols, &images);
	host_maps_write_spaces(maps, first, writer);
	if (with_symbols)
		host_maps_write_jit(maps, first, writer, &jit);
	send_losses(maps, writer, images, jit);
}

struct vp_error *vp_host_maps_write(struct vp_host_maps *maps, const char *path, uint64_t from,
				    bool with_symbols, const struct vp_meanwhile *meanwhile)
{
	VP_AUTO_NEW_FILE struct vp_new_file file;
	struct vp_maps_writer writer;
	int result = vp_new_file_create(&file, path, 0644);

	if (result)
		return vp_error_errno(-result, "cannot create a file next to '%s'", path);
	if (from)
		keep_from(maps, from);
	host_maps_read_again(maps);
	maps->is_writing = true;
	maps->meanwhile = meanwhile;
	vp_maps_writer_init(&writer, file.fd);
	host_maps_write_all(maps, &writer, with_symbols);
	maps->is_writing = false;
	host_maps_add_pending(maps);
	result = vp_maps_writer_finish(&writer);
	vp_maps_writer_deinit(&writer);

	/* On a full disk the written part is kept: it is recognizably truncated. */
	if (!result || result == -ENOSPC || result == -EDQUOT) {
		int published = vp_new_file_publish(&file);
		result = published ? published : result;
	}
	return result ? vp_error_errno(-result, "cannot write '%s'", path) : NULL;
}

char *vp_host_maps_take_problem(struct vp_host_maps *maps)
{
	if (!maps->problems.count)
		return NULL;
	char *first = maps->problems.at[0];
	memmove(maps->problems.at, maps->problems.at + 1,
		--maps->problems.count * sizeof(*maps->problems.at));
	return first;
}
