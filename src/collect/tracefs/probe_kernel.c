/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/tracefs/probe_kernel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/btf.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"

enum {
	KALLSYMS_MAX = 256 << 20,
	MAX_REGISTERS = 6, /* x86-64; arm64 has two more */
	MAX_NESTED = 16,
};

/* Parses a line of kallsyms: "ffffffff81000000 T name\t[module]"; false: not a function. */
static bool read_symbol(struct vp_slice line, uint64_t *address, struct vp_slice *name,
			struct vp_slice *module)
{
	struct vp_cursor cursor = vp_cursor_of(line.bytes, line.size);

	*address = vp_cursor_hex(&cursor);
	struct vp_slice kind = vp_cursor_word(&cursor);
	*name = vp_cursor_word(&cursor);
	bool good = vp_cursor_ok(&cursor) && kind.size == 1 && strchr("tTwW", kind.bytes[0]);
	*module = (struct vp_slice){0};
	if (vp_cursor_left(&cursor) > 2) {
		*module = vp_cursor_rest(&cursor);
		module->bytes++;
		module->size -= 2;
		if (vp_slice_is(*module, "bpf") || !memcmp(module->bytes, "__builtin", 9))
			return false;
	}
	return good;
}

static struct vp_error *no_function(const char *name, struct vp_slice symbols)
{
	struct vp_cursor lines = vp_cursor_of(symbols.bytes, symbols.size);
	struct vp_slice line, found, module;
	struct vp_nearest nearest;
	uint64_t address;

	vp_nearest_init(&nearest, (struct vp_slice){name, strlen(name)});
	while (vp_cursor_line(&lines, &line)) {
		if (!read_symbol(line, &address, &found, &module) || found.size >= VP_NEAREST_SIZE)
			continue;
		VP_AUTO_FREE char *copy = vp_strndup(found.bytes, found.size);
		vp_nearest_add(&nearest, copy);
	}
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	VP_AUTO_FREE char *clean = vp_text_cleaned(name);
	return vp_error_usage("the kernel has no function '%s'%s", clean, near);
}

static struct vp_error *find_symbol(struct vp_probe_function *own, struct vp_slice symbols)
{
	struct vp_cursor lines = vp_cursor_of(symbols.bytes, symbols.size);
	struct vp_slice line, name, module;
	uint64_t address, first = 0;
	unsigned count = 0;

	while (vp_cursor_line(&lines, &line)) {
		if (!read_symbol(line, &address, &name, &module) || !vp_slice_is(name, own->name) ||
		    (count && address == first))
			continue;
		first = address;
		count++;
		if (module.size && module.size < sizeof(own->module))
			memcpy(own->module, module.bytes, module.size);
	}
	if (count > 1)
		return vp_error_usage(
		    "the kernel has %u functions named '%s': expected a unique name", count,
		    own->name);
	return count ? NULL : no_function(own->name, symbols);
}

struct vp_error *vp_probe_function_find(const struct vp_probe_definition *definition,
					const char *kallsyms, struct vp_probe_function *ret)
{
	struct vp_buffer symbols = {0};

	*ret = (struct vp_probe_function){.name = definition->function};
	struct vp_error *error = vp_file_read(kallsyms, KALLSYMS_MAX, &symbols);
	if (!error)
		error = find_symbol(ret, (struct vp_slice){symbols.bytes, symbols.size});
	vp_buffer_deinit(&symbols);
	if (error)
		return error;
	ret->kernel = btf__load_vmlinux_btf();
	ret->own = ret->kernel && ret->module[0] ? btf__load_module_btf(ret->module, ret->kernel)
						 : ret->kernel;
	return NULL;
}

void vp_probe_function_deinit(struct vp_probe_function *function)
{
	if (function->own != function->kernel)
		btf__free(function->own);
	btf__free(function->kernel);
}

/* Skips typedefs and qualifiers. */
static const struct btf_type *plain(const struct btf *btf, uint32_t id)
{
	int plain_id = btf__resolve_type(btf, id);

	return plain_id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)plain_id);
}

static const struct btf_type *prototype_of(const struct vp_probe_function *function)
{
	int id = function->own
		     ? btf__find_by_name_kind(function->own, function->name, BTF_KIND_FUNC)
		     : 0;
	const struct btf_type *type = id > 0 ? btf__type_by_id(function->own, (uint32_t)id) : NULL;
	const struct btf_type *proto = type ? btf__type_by_id(function->own, type->type) : NULL;

	return proto && btf_is_func_proto(proto) ? proto : NULL;
}

/* A value while its members are resolved: the expression for the kernel. */
struct value {
	const struct btf *btf;
	uint32_t type;
	char *base;      /* "$arg1", "+24($arg1)" */
	uint64_t offset; /* the value is in memory at this offset from `base` … */
	bool in_memory;  /* … or it is `base` */
};

static char *probe_kernel_text_of(const struct value *value, uint64_t offset)
{
	return value->in_memory ? vp_format("+%" PRIu64 "(%s)", offset, value->base)
				: vp_strdup(value->base);
}

/* Searches unnamed structs and unions, too; *offset is in bits. */
static const struct btf_member *probe_kernel_find_member(const struct btf *btf,
							 const struct btf_type *type,
							 struct vp_slice name, uint64_t *offset,
							 int depth)
{
	for (uint32_t i = 0; i < btf_vlen(type) && depth < MAX_NESTED; i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *its = btf__name_by_offset(btf, member->name_off);
		uint64_t before = *offset;
		*offset += btf_member_bit_offset(type, i);
		if (its && its[0] && vp_slice_is(name, its))
			return btf_member_bitfield_size(type, i) ? NULL : member;
		const struct btf_type *inner = plain(btf, member->type);
		const struct btf_member *found =
		    its && !its[0] && inner && btf_is_composite(inner)
			? probe_kernel_find_member(btf, inner, name, offset, depth + 1)
			: NULL;
		if (found)
			return found;
		*offset = before;
	}
	return NULL;
}

static struct vp_error *no_member(const struct btf *btf, const struct btf_type *type,
				  const struct vp_probe_definition *definition,
				  struct vp_slice name)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, name);
	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const char *its = btf__name_by_offset(btf, btf_members(type)[i].name_off);
		if (its && its[0])
			vp_nearest_add(&nearest, its);
	}
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("event '%s': struct %s has no member '%.*s' that is not a bit "
			      "field%s",
			      definition->text, btf__name_by_offset(btf, type->name_off),
			      (int)name.size, name.bytes, near);
}

/* "->member" of a pointer, ".member" of a struct. */
static struct vp_error *go_to_member(struct value *value,
				     const struct vp_probe_definition *definition,
				     struct vp_slice name)
{
	const struct btf_type *type = plain(value->btf, value->type);
	uint64_t bits = 0;

	if (type && btf_is_ptr(type)) {
		char *base = probe_kernel_text_of(value, value->offset);
		free(value->base);
		value->base = base;
		value->offset = 0;
		value->in_memory = true;
		type = plain(value->btf, type->type);
	}
	if (!type || !btf_is_composite(type) || !value->in_memory)
		return vp_error_usage(
		    "event '%s': '%.*s' is a member of something that is not a struct",
		    definition->text, (int)name.size, name.bytes);
	const struct btf_member *member =
	    probe_kernel_find_member(value->btf, type, name, &bits, 0);
	if (!member)
		return no_member(value->btf, type, definition, name);
	value->offset += bits / 8;
	value->type = member->type;
	return NULL;
}

/* The kernel's name for a type of that size and signedness; NULL: not a number. */
static const char *kernel_type(const struct btf *btf, uint32_t id)
{
	static const char *const names[3][4] = {
	    {"u8", "u16", "u32", "u64"}, {"s8", "s16", "s32", "s64"}, {"x8", "x16", "x32", "x64"}};
	const struct btf_type *type = plain(btf, id);
	uint32_t size = !type ? 0 : btf_is_ptr(type) ? 8 : type->size;
	int row = 0;

	if (!type || !(btf_is_ptr(type) || btf_is_int(type) || btf_is_any_enum(type)))
		return NULL;
	if (btf_is_ptr(type))
		row = 2;
	else if (btf_is_int(type) && btf_int_encoding(type) & BTF_INT_SIGNED)
		row = 1;
	return size == 1   ? names[row][0]
	       : size == 2 ? names[row][1]
	       : size == 4 ? names[row][2]
	       : size == 8 ? names[row][3]
			   : NULL;
}

static struct vp_error *probe_kernel_put_value(const struct value *value,
					       const struct vp_probe_definition *definition,
					       const struct vp_probe_argument *argument,
					       struct vp_buffer *out)
{
	const struct btf_type *type = plain(value->btf, value->type);
	VP_AUTO_FREE char *text = probe_kernel_text_of(value, value->offset);
	const char *usual = kernel_type(value->btf, value->type), *given = argument->type;
	bool is_string = given && (!strcmp(given, "string") || !strcmp(given, "ustring"));

	if (is_string && type && btf_is_ptr(type)) {
		vp_buffer_printf(out, "+0(%s):%s", text, given);
		return NULL;
	}
	if (!given && !usual)
		return vp_error_usage("event '%s': '%s' is not a number: expected one of its "
				      "members, or a type after it (%s:string)",
				      definition->text, argument->what, argument->what);
	vp_buffer_printf(out, "%s:%s", text, given ? given : usual);
	return NULL;
}

/* A parameter is assumed to be in a register if all previous ones are. */
static struct vp_error *find_parameter(const struct vp_probe_function *function,
				       const struct vp_probe_definition *definition,
				       struct vp_slice name, struct value *ret)
{
	const struct btf_type *proto = prototype_of(function);
	struct vp_nearest nearest;

	if (!proto)
		return vp_error_usage("event '%s': the kernel has no BTF for the parameters of "
				      "'%s': expected $arg1, $arg2 ... instead of '%.*s'",
				      definition->text, function->name, (int)name.size, name.bytes);
	vp_nearest_init(&nearest, name);
	for (uint32_t i = 0; i < btf_vlen(proto) && i < MAX_REGISTERS; i++) {
		const struct btf_param *parameter = &btf_params(proto)[i];
		const char *its = btf__name_by_offset(function->own, parameter->name_off);
		if (!kernel_type(function->own, parameter->type))
			break;
		if (its && vp_slice_is(name, its)) {
			*ret = (struct value){.btf = function->own,
					      .type = parameter->type,
					      .base = vp_format("$arg%" PRIu32, i + 1)};
			return NULL;
		}
		if (its)
			vp_nearest_add(&nearest, its);
	}
	VP_AUTO_FREE char *near = vp_nearest_text(&nearest);
	return vp_error_usage("event '%s': '%s' has no parameter '%.*s' in a register%s",
			      definition->text, function->name, (int)name.size, name.bytes, near);
}

static struct vp_error *put_path(const struct vp_probe_function *function,
				 const struct vp_probe_definition *definition,
				 const struct vp_probe_argument *argument, struct vp_buffer *out)
{
	const char *next = argument->what;
	struct vp_slice name = {next, strcspn(next, ".-")};
	struct value value = {0};
	struct vp_error *error = find_parameter(function, definition, name, &value);

	while (!error && *(next += name.size)) {
		next += next[0] == '-' && next[1] == '>' ? 2 : 1;
		name = (struct vp_slice){next, strcspn(next, ".-")};
		error = go_to_member(&value, definition, name);
	}
	if (!error)
		error = probe_kernel_put_value(&value, definition, argument, out);
	free(value.base);
	return error;
}

struct vp_error *vp_probe_function_argument(const struct vp_probe_function *function,
					    const struct vp_probe_definition *definition,
					    const struct vp_probe_argument *argument,
					    struct vp_buffer *out)
{
	const struct btf_type *proto = prototype_of(function);

	if (!vp_probe_argument_is_raw(argument)) {
		if (definition->at_return || definition->offset)
			return vp_error_usage(
			    "event '%s': parameters are only known at the start of a function: "
			    "expected $retval or a register, not '%s'",
			    definition->text, argument->what);
		return put_path(function, definition, argument, out);
	}
	vp_buffer_string(out, argument->what);
	const char *usual = proto && !strcmp(argument->what, "$retval")
				? kernel_type(function->own, proto->type)
				: NULL;
	if (argument->type || usual)
		vp_buffer_printf(out, ":%s", argument->type ? argument->type : usual);
	return NULL;
}
