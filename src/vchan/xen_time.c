/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vchan/xen_time.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/vec.h"

#define KALLSYMS "/proc/kallsyms"
#define KCORE "/proc/kcore"

enum {
	MAX_CPUS = 4096,
	MAX_SEGMENTS = 512,
	TRIES = 100,
	TIME_OFFSET = 32, /* of struct vcpu_time_info in struct vcpu_info */
	MAX_SHIFT = 31,
	FRAC_BITS = 48
};

/* As written by Xen; odd version: an update is in progress. */
struct time_info {
	uint32_t version, pad;
	uint64_t tsc, ns;
	uint32_t mul;
	int8_t shift;
	uint8_t flags, pad2[2];
};
_Static_assert(sizeof(struct time_info) == 32, "as in Xen's public/xen.h");

struct vp_xen_times {
	int memory;                   /* the kernel's memory (/proc/kcore) */
	VP_VEC(Elf64_Phdr) segments;  /* mapping from kernel addresses to file offsets */
	uint64_t info, number, bases; /* addresses; the first two are per-CPU offsets */
};

bool vp_xen_time_is_sane(const struct vp_xen_time *time)
{
	return time->mul >= 1U << 16 && time->shift >= -MAX_SHIFT && time->shift <= MAX_SHIFT;
}

static uint64_t scale(const struct vp_xen_time *time, uint64_t ticks)
{
	unsigned __int128 wide = ticks;

	wide = time->shift < 0 ? wide >> -time->shift : wide << time->shift;
	return (uint64_t)((wide & UINT64_MAX) * time->mul >> 32);
}

static uint64_t unscale(const struct vp_xen_time *time, uint64_t ns)
{
	unsigned __int128 wide = ((unsigned __int128)ns << 32) / time->mul;

	return (uint64_t)(time->shift < 0 ? wide << -time->shift : wide >> time->shift);
}

uint64_t vp_xen_time_at(const struct vp_xen_time *time, uint64_t tsc)
{
	return tsc >= time->tsc ? time->ns + scale(time, tsc - time->tsc)
				: time->ns - scale(time, time->tsc - tsc);
}

uint64_t vp_xen_time_ticks(const struct vp_xen_time *time, uint64_t ns)
{
	return ns >= time->ns ? time->tsc + unscale(time, ns - time->ns)
			      : time->tsc - unscale(time, time->ns - ns);
}

/* Ticks of `own` per tick of `other`, in units of 2^-FRAC_BITS; 0: out of range. */
static uint64_t ratio_of(const struct vp_xen_time *own, const struct vp_xen_time *other)
{
	int shift = FRAC_BITS + other->shift - own->shift;

	if (shift < 0 || shift > 95) /* `mul` has 32 bits */
		return 0;
	unsigned __int128 ratio = ((unsigned __int128)other->mul << shift) / own->mul;
	return ratio <= UINT64_MAX >> 4 ? (uint64_t)ratio : 0;
}

struct vp_xen_relation vp_xen_relate(const struct vp_xen_time *own, const struct vp_xen_time *other)
{
	uint64_t then = vp_xen_time_ticks(other, own->ns);
	bool is_alike = own->mul == other->mul && own->shift == other->shift;
	struct vp_xen_relation ret = {.ratio = is_alike ? 0 : ratio_of(own, other)};

	ret.frac_bits = ret.ratio ? FRAC_BITS : 0;
	uint64_t scaled =
	    ret.ratio ? (uint64_t)((unsigned __int128)then * ret.ratio >> FRAC_BITS) : then;
	ret.offset = (int64_t)(own->tsc - scaled);
	return ret;
}

static bool read_kernel(const struct vp_xen_times *times, uint64_t address, void *ret, size_t size)
{
	vp_vec_each (&times->segments, segment) {
		uint64_t inside = address - segment->p_vaddr;
		if (address < segment->p_vaddr || inside >= segment->p_memsz ||
		    size > segment->p_memsz - inside)
			continue;
		return vp_pread(times->memory, ret, size, (off_t)(segment->p_offset + inside)) ==
		       (ssize_t)size;
	}
	return false;
}

/* Reads from the CPU's per-CPU area. */
static bool read_own(const struct vp_xen_times *times, uint32_t cpu, uint64_t address, void *ret,
		     size_t size)
{
	uint64_t base;

	return cpu < MAX_CPUS && read_kernel(times, times->bases + 8ULL * cpu, &base, 8) && base &&
	       read_kernel(times, base + address, ret, size);
}

/* The kernel's own symbols precede those of modules. */
static struct vp_error *find_symbols(struct vp_xen_times *times)
{
	VP_AUTO_FCLOSE FILE *file = fopen(KALLSYMS, "re");
	VP_AUTO_FREE char *line = NULL;
	bool has_info = false, has_number = false;
	size_t room = 0;
	char name[64];

	while (file && !(has_info && has_number && times->bases) &&
	       getline(&line, &room, file) > 0) {
		if (sscanf(line, "%*x %*c %63s", name) != 1)
			continue;
		uint64_t address = strtoull(line, NULL, 16);
		if (!strcmp(name, "xen_vcpu_info")) {
			times->info = address;
			has_info = true;
		} else if (!strcmp(name, "xen_vcpu_id")) {
			times->number = address;
			has_number = true;
		} else if (!strcmp(name, "__per_cpu_offset")) {
			times->bases = address;
		}
	}
	return has_info && has_number && times->bases
		   ? NULL
		   : vp_error_new("'" KALLSYMS "' does not have the addresses of a guest of Xen");
}

static struct vp_error *open_memory(struct vp_xen_times *times)
{
	Elf64_Ehdr head = {0};

	times->memory = open(KCORE, O_RDONLY | O_CLOEXEC);
	if (times->memory < 0)
		return vp_error_errno(errno, "cannot open '" KCORE "'");
	if (vp_pread(times->memory, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(Elf64_Phdr) ||
	    head.e_phnum > MAX_SEGMENTS)
		return vp_error_new("cannot read '" KCORE "'");
	for (unsigned i = 0; i < head.e_phnum; i++) {
		Elf64_Phdr segment;
		if (vp_pread(times->memory, &segment, sizeof(segment),
			     (off_t)(head.e_phoff + i * sizeof(segment))) != sizeof(segment))
			return vp_error_new("cannot read '" KCORE "'");
		if (segment.p_type == PT_LOAD)
			vp_vec_push(&times->segments, segment);
	}
	return NULL;
}

struct vp_error *vp_xen_times_open(struct vp_xen_times **ret)
{
	struct vp_xen_times *times = vp_alloc(sizeof(*times));
	struct vp_xen_time any;

	times->memory = -1;
	struct vp_error *error = find_symbols(times);
	if (!error)
		error = open_memory(times);
	if (!error && !vp_xen_times_read(times, 0, &any))
		error = vp_error_new("'" KCORE "' does not have Xen's time of CPU 0");
	if (error)
		vp_xen_times_close(times);
	else
		*ret = times;
	return error;
}

void vp_xen_times_close(struct vp_xen_times *times)
{
	if (!times)
		return;
	if (times->memory >= 0)
		close(times->memory);
	vp_vec_deinit(&times->segments);
	free(times);
}

bool vp_xen_times_read(const struct vp_xen_times *times, uint32_t cpu, struct vp_xen_time *ret)
{
	struct time_info info, again;

	for (int i = 0; i < TRIES; i++) {
		if (!read_own(times, cpu, times->info + TIME_OFFSET, &info, sizeof(info)) ||
		    !read_own(times, cpu, times->info + TIME_OFFSET, &again, sizeof(again)))
			return false;
		if (info.version & 1 || memcmp(&info, &again, sizeof(info)) != 0)
			continue;
		*ret = (struct vp_xen_time){info.tsc, info.ns, info.mul, info.shift};
		return vp_xen_time_is_sane(ret);
	}
	return false;
}

bool vp_xen_times_vcpu(const struct vp_xen_times *times, uint32_t cpu, uint32_t *ret)
{
	return read_own(times, cpu, times->number, ret, sizeof(*ret));
}
