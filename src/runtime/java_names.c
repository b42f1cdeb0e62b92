/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "runtime/java_names.h"

#include "base/buffer.h"
#include "base/intern.h"
#include "base/map.h"
#include "runtime/code_names.h"
#include "runtime/java_scopes.h"
#include "runtime/process_memory.h"

static uint64_t identity_of(const struct vp_java_code *code)
{
	return vp_hash64(code->method + ((uint64_t)code->compile_id << 32)) ^
	       vp_hash64(code->end - code->start + ((uint64_t)code->kind << 60));
}

/* Notes code, or a part of it, at birth->from_ns. Its name is read if it is new: that of `method`,
 * or the one given by HotSpot. */
static bool take(struct vp_code_names *names, const struct vp_java_vm *vm,
		 struct vp_code_birth *birth, uint64_t method, const char *given)
{
	struct vp_code_birth *known = vp_code_names_known(names, birth->addr, birth->identity);
	struct vp_buffer name = {0};

	birth->last_ns = birth->from_ns;
	if (known) {
		vp_code_names_again(names, known, birth->from_ns);
		return true;
	}
	bool named = !method || vp_java_method_name(vm, method, &name);
	if (!method)
		vp_buffer_string(&name, given);
	if (named)
		birth->name = vp_intern_string(&names->texts, vp_buffer_text(&name));
	vp_buffer_deinit(&name);
	return named && vp_code_names_add(names, birth);
}

static bool names_take(struct vp_code_names *names, const struct vp_java_vm *vm,
		       const struct vp_java_code *code, uint64_t time_ns)
{
	struct vp_code_birth birth = {.addr = code->start,
				      .size = code->end - code->start,
				      .from_ns = time_ns,
				      .identity = identity_of(code)};

	return take(names, vm, &birth, code->kind == VP_JAVA_METHOD ? code->method : 0, code->name);
}

/* Notes the instructions around a sampled one that are of the same method, inlined or not. */
static bool take_scope(struct vp_code_names *names, const struct vp_java_vm *vm,
		       const struct vp_java_code *code, uint64_t addr, uint64_t time_ns)
{
	struct vp_java_scope scope;
	uint64_t begin;

	if (code->kind != VP_JAVA_METHOD || !vp_java_code_begin(vm, code, &begin) || addr < begin ||
	    !vp_java_scopes_read(vm, code, addr - begin, &scope))
		return true;
	struct vp_code_birth birth = {.addr = begin + scope.begin,
				      .size = scope.end - scope.begin,
				      .from_ns = time_ns,
				      .identity = ~identity_of(code)};
	return take(names, vm, &birth, scope.n_inlined ? scope.inlined[0] : code->method, NULL);
}

bool vp_java_names_see(struct vp_code_names *names, const struct vp_java_vm *vm, uint64_t addr,
		       uint64_t time_ns, struct vp_java_code *ret)
{
	struct vp_java_code code = {0};
	bool done = vp_java_code_find(vm, addr, &code) && names_take(names, vm, &code, time_ns) &&
		    take_scope(names, vm, &code, addr, time_ns);

	names->failed += !done;
	if (ret)
		*ret = code;
	return done;
}

static bool identity_of_method(void *context, uint64_t method, uint64_t *ret)
{
	const struct vp_java_vm *vm = context;

	return vp_process_u64(vm->memory, method + vm->tables.at.method_const, ret);
}

static bool name_of_method(void *context, uint64_t method, struct vp_buffer *name)
{
	return vp_java_method_name(context, method, name);
}

bool vp_java_names_see_method(struct vp_code_names *names, struct vp_java_vm *vm, uint64_t method,
			      uint64_t time_ns)
{
	const struct vp_code_source source = {identity_of_method, name_of_method, vm};

	return vp_code_names_see(names, &source, method, time_ns);
}

struct all {
	struct vp_code_names *names;
	const struct vp_java_vm *vm;
	uint64_t time_ns;
};

static bool take_one(void *context, const struct vp_java_code *code)
{
	const struct all *all = context;

	all->names->failed += !names_take(all->names, all->vm, code, all->time_ns);
	return all->names->births.count < VP_CODE_MAX_NAMES;
}

void vp_java_names_see_all(struct vp_code_names *names, const struct vp_java_vm *vm,
			   uint64_t time_ns, bool *damaged)
{
	struct all all = {names, vm, time_ns};

	vp_java_code_each(vm, take_one, &all, damaged);
}
