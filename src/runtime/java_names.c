/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_names.h"

#include "base/buffer.h"
#include "runtime/process_memory.h"

/* Alignment of a Method. */
enum { METHOD_BYTES = 8 };

void vp_java_names_deinit(struct vp_java_names *names)
{
	vp_vec_deinit(&names->births);
	vp_map_deinit(&names->latest);
	vp_intern_deinit(&names->texts);
}

/* The latest code at that address if it has this identity; otherwise NULL. */
static struct vp_java_birth *names_known(struct vp_java_names *names, uint64_t addr,
					 uint64_t identity)
{
	const uint32_t *latest = vp_map_find(&names->latest, addr);
	struct vp_java_birth *birth = latest ? &names->births.at[*latest] : NULL;

	return birth && birth->identity == identity ? birth : NULL;
}

/* Extends the code's lifetime to another sample: samples of several pCPUs are not in time order.
 * The lifetime starts after the last sample of the address's previous code. */
static void names_again(struct vp_java_names *names, struct vp_java_birth *birth, uint64_t time_ns)
{
	uint64_t least = birth->before ? names->births.at[birth->before - 1].last_ns + 1 : 0;

	if (time_ns < birth->from_ns)
		birth->from_ns = time_ns > least ? time_ns : least;
	if (time_ns > birth->last_ns)
		birth->last_ns = time_ns;
}

static bool names_add(struct vp_java_names *names, const struct vp_java_birth *birth)
{
	bool is_new;

	if (names->births.count == VP_JAVA_MAX_NAMES)
		return false;
	uint32_t number = (uint32_t)names->births.count;
	uint32_t *latest = vp_map_insert(&names->latest, birth->addr, number, &is_new);
	vp_vec_push(&names->births, *birth);
	if (!is_new)
		names->births.at[number].before = *latest + 1;
	*latest = number;
	return true;
}

static uint64_t identity_of(const struct vp_java_code *code)
{
	return vp_hash64(code->method + ((uint64_t)code->compile_id << 32)) ^
	       vp_hash64(code->end - code->start + ((uint64_t)code->kind << 60));
}

static bool names_take(struct vp_java_names *names, const struct vp_java_vm *vm,
		       const struct vp_java_code *code, uint64_t time_ns)
{
	struct vp_java_birth birth = {.addr = code->start,
				      .size = code->end - code->start,
				      .from_ns = time_ns,
				      .last_ns = time_ns,
				      .identity = identity_of(code)};
	struct vp_java_birth *known = names_known(names, birth.addr, birth.identity);
	struct vp_buffer name = {0};

	if (known) {
		names_again(names, known, time_ns);
		return true;
	}
	if (code->kind != VP_JAVA_METHOD)
		vp_buffer_string(&name, code->name);
	else if (!vp_java_method_name(vm, code->method, &name))
		return false;
	birth.name = vp_intern_string(&names->texts, vp_buffer_text(&name));
	vp_buffer_deinit(&name);
	return names_add(names, &birth);
}

bool vp_java_names_see(struct vp_java_names *names, const struct vp_java_vm *vm, uint64_t addr,
		       uint64_t time_ns, struct vp_java_code *ret)
{
	struct vp_java_code code = {0};
	bool done = vp_java_code_find(vm, addr, &code) && names_take(names, vm, &code, time_ns);

	names->failed += !done;
	if (ret)
		*ret = code;
	return done;
}

bool vp_java_names_see_method(struct vp_java_names *names, const struct vp_java_vm *vm,
			      uint64_t method, uint64_t time_ns)
{
	struct vp_java_birth birth = {
	    .addr = method, .size = METHOD_BYTES, .from_ns = time_ns, .last_ns = time_ns};
	struct vp_buffer name = {0};

	if (!vp_process_u64(vm->memory, method + vm->tables.at.method_const, &birth.identity)) {
		names->failed++;
		return false;
	}
	struct vp_java_birth *known = names_known(names, method, birth.identity);
	if (known) {
		names_again(names, known, time_ns);
		return true;
	}
	bool done = vp_java_method_name(vm, method, &name);
	if (done) {
		birth.name = vp_intern_string(&names->texts, vp_buffer_text(&name));
		done = names_add(names, &birth);
	}
	vp_buffer_deinit(&name);
	names->failed += !done;
	return done;
}

struct all {
	struct vp_java_names *names;
	const struct vp_java_vm *vm;
	uint64_t time_ns;
};

static bool take_one(void *context, const struct vp_java_code *code)
{
	const struct all *all = context;

	all->names->failed += !names_take(all->names, all->vm, code, all->time_ns);
	return all->names->births.count < VP_JAVA_MAX_NAMES;
}

void vp_java_names_see_all(struct vp_java_names *names, const struct vp_java_vm *vm,
			   uint64_t time_ns, bool *damaged)
{
	struct all all = {names, vm, time_ns};

	vp_java_code_each(vm, take_one, &all, damaged);
}
