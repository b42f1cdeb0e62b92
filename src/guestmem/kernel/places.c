/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "guestmem/kernel/places.h"

#include <elf.h>
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "guestmem/kernel/arm_code.h"
#include "guestmem/kernel/kallsyms.h"
#include "guestmem/kernel/pack.h"
#include "guestmem/memory/guest_view.h"
#include "guestmem/memory/memory.h"

enum {
	SMALLEST_BTF = 1024, /* a kernel's BTF has megabytes */
	LARGEST_BTF = 64 << 20,
	COMM = 16,
	MAX_TID = 4 << 20,
	PAGE = 4096,
	CACHE_LINE = 64, /* alignment of run queues */
	MAX_TRIED = 4,   /* CPUs whose run queue is looked for */
	MODULE_NAME = 56,
	LARGEST_FUNCTION = 16384,
	MODULE_READS = 1 << 16, /* of list entries; a kernel's image has some hundred lists */
};

static void put_place(struct vp_pack_symbol *symbol, uint64_t offset)
{
	if (offset < VP_PACK_NONE)
		*symbol = (struct vp_pack_symbol){(uint32_t)offset, false};
}

static bool is_unknown(struct vp_pack_symbol symbol)
{
	return symbol.offset == VP_PACK_NONE;
}

static void find_banner(struct vp_kernel_pack *pack, const struct vp_buffer *image)
{
	static const char text[] = "Linux version ";
	const char *end = image->bytes + image->size, *from = image->bytes;

	while ((from = memmem(from, (size_t)(end - from), text, sizeof(text) - 1))) {
		const char *digit = from + sizeof(text) - 1;
		if (digit < end && *digit >= '0' && *digit <= '9') {
			put_place(&pack->symbol.banner, (uint64_t)(from - image->bytes));
			return;
		}
		from = digit;
	}
}

/* Finds the kernel's build-id note: the last one in the image. Notes of vDSOs are skipped: their
 * page starts with an ELF header. */
static void find_notes(struct vp_kernel_pack *pack, const struct vp_buffer *image)
{
	static const char head[] = "\4\0\0\0\24\0\0\0\3\0\0\0GNU";
	const size_t size = sizeof(head) + 20;
	const char *end = image->bytes + image->size, *from = image->bytes;

	while ((from = memmem(from, (size_t)(end - from), head, sizeof(head)))) {
		uint64_t at = (uint64_t)(from - image->bytes), page = at / PAGE * PAGE;
		bool in_file = !memcmp(image->bytes + page, ELFMAG, SELFMAG);
		if (!in_file && at % 4 == 0 && (size_t)(end - from) >= size) {
			put_place(&pack->symbol.start_notes, at);
			put_place(&pack->symbol.stop_notes, at + size);
		}
		from += sizeof(head);
	}
}

static bool is_btf_header(const struct btf_header *header)
{
	return header->magic == BTF_MAGIC && header->version == BTF_VERSION && !header->flags &&
	       header->hdr_len == sizeof(*header) && !header->type_off &&
	       header->type_len == header->str_off && header->type_len >= SMALLEST_BTF &&
	       header->type_len <= LARGEST_BTF && header->str_len <= LARGEST_BTF;
}

static void find_btf(struct vp_kernel_pack *pack, const struct vp_buffer *image)
{
	struct btf_header header;

	for (size_t at = 0; at + sizeof(header) < image->size; at += 4) {
		memcpy(&header, image->bytes + at, sizeof(header));
		uint64_t size = sizeof(header) + (uint64_t)header.str_off + header.str_len;
		if (!is_btf_header(&header) || size > image->size - at)
			continue;
		put_place(&pack->symbol.start_btf, at);
		put_place(&pack->symbol.stop_btf, at + size);
		return;
	}
}

void vp_guest_places_find(struct vp_kernel_pack *pack, const struct vp_buffer *image)
{
	find_banner(pack, image);
	find_notes(pack, image);
	find_btf(pack, image);
}

/* Whether the idle task of that CPU is at `address`: its name is swapper/CPU, and its pid 0. */
static bool is_idle_task(const struct vp_guest_kernel *kernel, uint64_t address, uint32_t cpu)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	char name[COMM], expected[COMM];
	uint32_t tgid, pid;

	snprintf(expected, sizeof(expected), "swapper/%u", cpu);
	return address % 8 == 0 &&
	       vp_guest_view_read(view, address + pack->at.task_comm, name, sizeof(name)) &&
	       !strncmp(name, expected, sizeof(name)) &&
	       vp_guest_view_u32(view, address + pack->at.task_pid, &pid) &&
	       vp_guest_view_u32(view, address + pack->at.task_tgid, &tgid) && !pid && !tgid;
}

/* Whether the first task is at `address`: the next one in the list of all tasks points back to
 * it. */
static bool is_first_task(const struct vp_guest_kernel *kernel, uint64_t address)
{
	uint64_t link = address + kernel->pack.at.task_tasks, next, back;

	return is_idle_task(kernel, address, 0) && vp_guest_view_u64(&kernel->view, link, &next) &&
	       vp_guest_view_u64(&kernel->view, next + 8, &back) && back == link;
}

static void find_init_task(struct vp_guest_kernel *kernel, const struct vp_buffer *image)
{
	static const char name[] = "swapper/0";
	struct vp_kernel_pack *pack = &kernel->pack;
	const char *end = image->bytes + image->size, *from = image->bytes;

	while ((from = memmem(from, (size_t)(end - from), name, sizeof(name)))) {
		uint64_t at = (uint64_t)(from - image->bytes) - pack->at.task_comm;
		if (at < image->size && is_first_task(kernel, kernel->text + at)) {
			put_place(&pack->symbol.init_task, at);
			return;
		}
		from += sizeof(name);
	}
}

/* Whether a CPU's current task may be at `address`: its idle task, or one with a name and valid
 * ids. */
static bool is_current_task(const struct vp_guest_kernel *kernel, uint64_t address, uint32_t cpu)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	char name[COMM];
	uint32_t tgid, pid;

	return is_idle_task(kernel, address, cpu) ||
	       (address >> 63 && address % 8 == 0 &&
		vp_guest_view_read(view, address + pack->at.task_comm, name, sizeof(name)) &&
		name[0] && memchr(name, 0, sizeof(name)) &&
		vp_guest_view_u32(view, address + pack->at.task_pid, &pid) && pid &&
		pid <= MAX_TID && vp_guest_view_u32(view, address + pack->at.task_tgid, &tgid) &&
		tgid && tgid <= MAX_TID);
}

/* Whether a CPU's run queue is at `queue`: it points to its idle task and to its current one. */
static bool is_runqueue(const struct vp_guest_kernel *kernel, uint64_t queue)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t idle, current;
	uint32_t cpu;

	return vp_guest_view_u64(view, queue + pack->at.rq_idle, &idle) && idle >> 63 &&
	       vp_guest_view_u32(view, queue + pack->at.rq_cpu, &cpu) &&
	       is_idle_task(kernel, idle, cpu) &&
	       vp_guest_view_u64(view, queue + pack->at.rq_curr, &current) &&
	       is_current_task(kernel, current, cpu);
}

/* Finds the run queue in the image: `after` a multiple of `step`, where the most per-CPU bases lead
 * to a CPU's. From a wrong place, some may, but not all. False: no place, or several. */
static bool find_runqueues(const struct vp_guest_kernel *kernel, uint32_t step, uint32_t after,
			   uint64_t *ret)
{
	const struct vp_guest_view *view = &kernel->view;
	size_t most = 0, places = 0;

	for (uint64_t at = after; at < view->image_size; at += step) {
		size_t fits = 0;
		for (size_t i = 0, tried = 0; i < view->n_vcpus && tried < MAX_TRIED; i++) {
			uint64_t base = view->vcpus[i].tpidr1;
			tried += base != 0;
			fits += base && is_runqueue(kernel, kernel->text + at + base);
		}
		if (!fits || fits < most)
			continue;
		places = fits > most ? 1 : places + 1;
		if (fits > most)
			*ret = at;
		most = fits;
	}
	return places == 1;
}

/* Finds per-CPU variables by their offsets in the section, which BTF has since pahole 1.18 with
 * Linux 5.11. */
static void find_percpu(struct vp_kernel_pack *pack, const struct vp_guest_kernel *kernel,
			const struct vp_guest_btf *btf, uint32_t runqueues)
{
	const struct {
		const char *name;
		struct vp_pack_symbol *symbol;
	} variables[] = {{"__entry_task", &pack->symbol.entry_task},
			 {"runqueues", &pack->symbol.runqueues},
			 {"vm_event_states", &pack->symbol.vm_event_states},
			 {"kstat", &pack->symbol.kstat}};
	uint64_t place;
	uint32_t at;

	if (!find_runqueues(kernel, PAGE, runqueues, &place))
		return;
	for (size_t i = 0; i < VP_ARRAY_SIZE(variables); i++)
		if (vp_guest_btf_percpu(btf, variables[i].name, &at))
			put_place(variables[i].symbol, place - runqueues + at);
}

/* Offsets in the image. */
struct function {
	const char *name;
	uint64_t begin, end;
};

/* Symbols are in the order of their addresses, which are offsets here. */
static bool find_function(void *context, const struct vp_kallsyms_symbol *symbol)
{
	struct function *function = context;

	if (!function->begin && !strcmp(symbol->name, function->name)) {
		function->begin = symbol->addr;
		function->end = symbol->addr + LARGEST_FUNCTION;
	} else if (function->begin && symbol->addr > function->begin) {
		if (symbol->addr < function->end)
			function->end = symbol->addr;
		return false;
	}
	return true;
}

static bool function_of(const struct vp_kernel_pack *pack, const struct vp_buffer *image,
			const char *name, struct function *ret)
{
	*ret = (struct function){.name = name};
	return vp_kallsyms_each(&pack->kallsyms, image->bytes, image->size, find_function, ret) &&
	       ret->begin < ret->end && ret->end <= image->size;
}

/* Whether a CPU has something that may be a count there. */
static bool is_count(const struct vp_guest_kernel *kernel, uint64_t at)
{
	const struct vp_guest_view *view = &kernel->view;
	uint64_t count;

	for (size_t i = 0; i < view->n_vcpus; i++)
		if (view->vcpus[i].tpidr1 &&
		    vp_guest_view_u64(view, kernel->text + at + view->vcpus[i].tpidr1, &count) &&
		    count && !(count >> 48))
			return true;
	return false;
}

/* Sets the per-CPU variable that has the first count of the function, `inside` bytes after its
 * start. */
static void put_counts(struct vp_pack_symbol *symbol, const struct vp_guest_kernel *kernel,
		       const struct vp_buffer *image, const char *name, uint64_t inside)
{
	struct function function;
	uint64_t at;

	if (function_of(&kernel->pack, image, name, &function) &&
	    vp_arm_code_find_percpu(image->bytes + function.begin, function.end - function.begin,
				    function.begin, &at) &&
	    at % 8 == 0 && at >= inside && at < image->size && is_count(kernel, at))
		put_place(symbol, at - inside);
}

/* Finds the run queue by its contents, and counts by the code that increments them. The run queue's
 * current task is that of __entry_task, apart from the middle of a switch. */
static void find_percpu_by_contents(struct vp_kernel_pack *pack,
				    const struct vp_guest_kernel *kernel,
				    const struct vp_buffer *image)
{
	uint64_t place;

	if (!find_runqueues(kernel, CACHE_LINE, 0, &place))
		return;
	put_place(&pack->symbol.runqueues, place);
	put_place(&pack->symbol.entry_task, place + pack->at.rq_curr);
	if (pack->value.pgfault != VP_PACK_NONE)
		put_counts(&pack->symbol.vm_event_states, kernel, image, "handle_mm_fault",
			   8ULL * pack->value.pgfault);
	if (pack->at.kstat_irqs != VP_PACK_NONE)
		put_counts(&pack->symbol.kstat, kernel, image, "handle_percpu_devid_irq",
			   pack->at.kstat_irqs);
}

void vp_guest_places_find_tasks(struct vp_guest_kernel *kernel, const struct vp_buffer *image,
				const struct vp_guest_btf *btf)
{
	struct vp_kernel_pack *pack = &kernel->pack;
	uint32_t runqueues;

	if (pack->at.task_comm == VP_PACK_NONE || pack->at.task_pid == VP_PACK_NONE ||
	    pack->at.task_tgid == VP_PACK_NONE || pack->at.task_tasks == VP_PACK_NONE)
		return;
	if (is_unknown(pack->symbol.init_task))
		find_init_task(kernel, image);
	if (!is_unknown(pack->symbol.entry_task) || pack->at.rq_idle == VP_PACK_NONE ||
	    pack->at.rq_cpu == VP_PACK_NONE || pack->at.rq_curr == VP_PACK_NONE)
		return;
	if (vp_guest_btf_percpu(btf, "runqueues", &runqueues))
		find_percpu(pack, kernel, btf, runqueues);
	else
		find_percpu_by_contents(pack, kernel, image);
}

static bool is_module_name(const char *name)
{
	static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789_-";
	size_t length = strnlen(name, MODULE_NAME);

	return length && length < MODULE_NAME && strspn(name, characters) == length;
}

/* Whether the list entry at `link` is a module's. */
static bool is_module(const struct vp_guest_kernel *kernel, uint64_t link)
{
	const struct vp_kernel_pack *pack = &kernel->pack;
	const struct vp_guest_view *view = &kernel->view;
	uint64_t module = link - pack->at.module_list, tables;
	char name[MODULE_NAME];

	return vp_guest_view_read(view, module + pack->at.module_name, name, sizeof(name)) &&
	       is_module_name(name) &&
	       vp_guest_view_u64(view, module + pack->at.module_kallsyms, &tables) && tables >> 63;
}

/* Whether a list of modules, which is not empty, has its head there: each entry points back to the
 * one before it. */
static bool is_list_of_modules(const struct vp_guest_kernel *kernel, uint64_t head,
			       const uint64_t head_links[2], unsigned *reads)
{
	uint64_t at = head_links[0], before = head, links[2];

	for (; at != head && *reads; before = at, at = links[0]) {
		--*reads;
		if (!vp_guest_view_read(&kernel->view, at, links, sizeof(links)) ||
		    links[1] != before || !is_module(kernel, at))
			return false;
	}
	return at == head && before == head_links[1];
}

/* Whether the value may point to a module, which is not in the image. Code has no such values. */
static bool may_be_module(const struct vp_guest_kernel *kernel, uint64_t value)
{
	const struct vp_guest_view *view = &kernel->view;

	return value % 8 == 0 && value >= -(1ULL << view->paging.va_bits) &&
	       value - kernel->text >= view->image_size;
}

void vp_guest_places_find_modules(struct vp_guest_kernel *kernel, const struct vp_buffer *image)
{
	struct vp_kernel_pack *pack = &kernel->pack;
	unsigned reads = MODULE_READS;
	uint64_t links[2];

	if (!is_unknown(pack->symbol.modules) || pack->at.module_list == VP_PACK_NONE ||
	    pack->at.module_name == VP_PACK_NONE || pack->at.module_kallsyms == VP_PACK_NONE)
		return;
	for (size_t at = 0; at + sizeof(links) <= image->size && reads; at += sizeof(*links)) {
		memcpy(links, image->bytes + at, sizeof(links));
		if (!may_be_module(kernel, links[0]) || !may_be_module(kernel, links[1]) ||
		    !is_list_of_modules(kernel, kernel->text + at, links, &reads))
			continue;
		put_place(&pack->symbol.modules, at);
		return;
	}
}

void vp_guest_places_find_forks(struct vp_kernel_pack *pack, const struct vp_buffer *image)
{
	struct function function;
	uint64_t at, forks;

	if (!is_unknown(pack->symbol.total_forks) ||
	    !function_of(pack, image, "copy_process", &function))
		return;
	if (!vp_arm_code_find_increment(image->bytes + function.begin,
					function.end - function.begin, function.begin, &at) ||
	    at % sizeof(forks) || at >= image->size || image->size - at < sizeof(forks))
		return;
	memcpy(&forks, image->bytes + at, sizeof(forks));
	if (forks)
		put_place(&pack->symbol.total_forks, at);
}
