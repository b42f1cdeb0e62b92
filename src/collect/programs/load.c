/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/programs/load.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "collect/programs/exit_event.h"
#include "collect/programs/svm_data.h"
#include "host/host.h"
#include "host/kernel_btf.h"
#include "host/source.h"

static int share_exit_event(const struct vp_programs_load *load, const struct bpf_object *object)
{
	return load->exit_event
		   ? vp_exit_event_share(load->exit_event,
					 bpf_object__find_map_by_name(object, "last_exit"))
		   : 0;
}

/* *direct: load with direct reads of the VMCB; result: whether that succeeded. */
static struct vp_error *load_fitted(const struct vp_programs_load *load,
				    const struct vp_btf_open_opts *fitting, bool *direct)
{
	struct bpf_object_skeleton *skeleton = NULL;
	struct vp_error *error = load->open(load->context, &fitting->options, &skeleton);
	struct vp_svm_data svm_data = {.fd = -1};
	const bool wanted = *direct;

	*direct = false;
	VP_TRY(error);
	if (load->set_svm_data) {
		*direct = vp_svm_data_open(*skeleton->obj, wanted, fitting->kernel, &svm_data);
		load->set_svm_data(load->context, *direct);
	}
	int result = share_exit_event(load, *skeleton->obj);
	if (!result)
		result = bpf_object__load_skeleton(skeleton);
	vp_svm_data_close(&svm_data);
	return result ? vp_host_load_error(result, load->name) : NULL;
}

static struct vp_error *load_once(const struct vp_programs_load *load, bool *direct)
{
	struct vp_btf_open_opts fitting;

	VP_TRY(vp_host_expect_btf(load->name));
	vp_btf_open_opts_init(&fitting, load->kernel, load->elf, load->elf_size);
	struct vp_error *error = load_fitted(load, &fitting, direct);
	vp_btf_open_opts_deinit(&fitting);
	return error;
}

struct vp_error *vp_programs_load(const struct vp_programs_load *load)
{
	bool direct = true;
	struct vp_error *error = load_once(load, &direct);

	if (!error || !direct)
		return error;
	vp_error_free(error);
	load->close(load->context);
	direct = false;
	return load_once(load, &direct);
}

void vp_missing_add(char **missing, const char *limitation)
{
	char *before = *missing;

	*missing = vp_format("%s%s%s", before ? before : "", before ? "; " : "", limitation);
	free(before);
}

/* False: the program is required. */
static bool note_missing(const struct vp_programs_attach *attach, const char *name, char **missing)
{
	for (size_t i = 0; i < attach->n_optional; i++) {
		if (strcmp(name, attach->optional[i].name) != 0)
			continue;
		if (!attach->is_missed || attach->is_missed(attach->context, i))
			vp_missing_add(missing, attach->optional[i].cost);
		return true;
	}
	return attach->is_needed && !attach->is_needed(name);
}

struct vp_error *vp_programs_attach(const struct bpf_object *object,
				    const struct vp_programs_attach *attach, vp_links *links,
				    char **missing)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object) {
		if (!bpf_program__autoload(program) ||
		    (attach->is_attached && !attach->is_attached(program)))
			continue;
		struct bpf_link *link = bpf_program__attach(program);
		if (link)
			vp_vec_push(links, link);
		else if (!note_missing(attach, bpf_program__name(program), missing))
			return vp_error_errno(errno, "cannot attach to '%s'",
					      bpf_program__section_name(program));
	}
	return NULL;
}

void vp_links_deinit(vp_links *links)
{
	vp_vec_each (links, link)
		bpf_link__destroy(*link);
	vp_vec_deinit(links);
}
