/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples in the format of perf script with call chains (--ns): a line with thread, CPU, time,
 * period and event, then a line per frame, innermost first. A guest process is prefixed with its
 * VM: VM/PROCESS.
 */
#include <inttypes.h>

#include "analyze/profile/frame.h"
#include "analyze/report/export.h"
#include "analyze/report/export_queue.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/macros.h"
#include "export/export_text.h"
#include "export/exporters.h"
#include "schema/weighting.h"
#include "store/recording.h"

#define SECOND 1000000000

struct script {
	struct vp_export_texts vms, processes, functions, modules, guest_modules;
	char *event;
	uint64_t unit; /* ns per sample, as perf's periods of a clock; or 0 */
};

/* Replaces blanks, because readers split fields at them. */
static void export_script_put_word(const char *text, struct vp_buffer *out)
{
	size_t from = out->size;

	vp_export_put_clean(text, out);
	for (size_t i = from; i < out->size; i++)
		if (out->bytes[i] == ' ')
			out->bytes[i] = '_';
}

static void export_script_put_vm(const char *name, struct vp_buffer *out)
{
	export_script_put_word(name, out);
	vp_buffer_string(out, "/");
}

/* Without a replacement, "web server 2" would be read as process 2. */
static void put_process(const char *name, struct vp_buffer *out)
{
	bool has_number = false;

	for (const char *at = name; *at; at++)
		has_number |= at[0] == ' ' && at[1] >= '0' && at[1] <= '9';
	(has_number || name[0] == ' ' || name[0] == '#'
	     ? export_script_put_word
	     : vp_export_put_clean)(name[0] ? name : "-", out);
}

/* perf's names of the kernels. */
static void export_script_put_file(const char *name, const char *kernel, struct vp_buffer *out)
{
	vp_buffer_string(out, " (");
	if (strcmp(name, "[kernel]") != 0)
		export_script_put_word(name, out);
	else
		vp_buffer_string(out, kernel);
	vp_buffer_string(out, ")");
}

static void put_module(const char *name, struct vp_buffer *out)
{
	export_script_put_file(name, "[kernel.kallsyms]", out);
}

static void put_guest_module(const char *name, struct vp_buffer *out)
{
	export_script_put_file(name, "[guest.kernel.kallsyms]", out);
}

static char *export_script_event_of(const struct vp_recording *recording)
{
	struct vp_buffer name = {0};

	export_script_put_word(recording->trigger[0] ? recording->trigger : "samples", &name);
	char *event = vp_strdup(vp_buffer_text(&name));
	vp_buffer_deinit(&name);
	return event;
}

static void export_script_begin(struct vp_export *export)
{
	const struct vp_recording *recording = &export->report->recording;
	struct script *script = export->state;

	script->event = export_script_event_of(recording);
	script->unit = recording->weighting == VP_WEIGHTING_TICKS ? recording->period_ns : 1;
	script->vms = (struct vp_export_texts){
	    .text = vp_export_vm, .put = export_script_put_vm, .unknown = ""};
	script->processes =
	    (struct vp_export_texts){.text = vp_export_text, .put = put_process, .unknown = ""};
	script->functions = (struct vp_export_texts){
	    .text = vp_export_text, .put = vp_export_put_clean, .unknown = "[unknown]"};
	script->modules = (struct vp_export_texts){
	    .text = vp_export_text, .put = put_module, .unknown = " ([unknown])"};
	script->guest_modules = script->modules;
	script->guest_modules.put = put_guest_module;
}

/* Maximum length of a sample's lines, and of each of its frames, without texts. */
enum { LINES = 256, LINE_OF_FRAME = 64 };

static char *put_when(char *at, uint32_t pcpu, uint64_t time)
{
	*at++ = ' ';
	if (pcpu != VP_NONE) {
		*at++ = '[';
		at = vp_put_padded(at, pcpu, 3, '0');
		at = vp_put_text(at, "] ");
	}
	at = vp_put_padded(at, time / SECOND, 5, ' ');
	*at++ = '.';
	at = vp_put_padded(at, time % SECOND, 9, '0');
	return vp_put_text(at, ": ");
}

static struct vp_export_texts *modules_of(struct script *script, const struct vp_frame *frame)
{
	return frame->vm == VP_NONE ? &script->modules : &script->guest_modules;
}

static size_t export_script_room_for(struct script *script, const struct vp_export *export,
				     const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	size_t room = LINES + strlen(script->event) +
		      vp_export_texts_room(&script->vms, export, inner->vm) +
		      vp_export_texts_room(&script->processes, export, inner->process);

	for (uint32_t i = 0; i < sample->count; i++) {
		const struct vp_frame *frame = &sample->frames[i];
		room += LINE_OF_FRAME;
		room += vp_export_texts_room(&script->functions, export, frame->function);
		room += vp_export_texts_room(modules_of(script, frame), export, frame->module);
	}
	return room;
}

/* Whether the text of an address is the address itself, not a function name. For a return address
 * it is the end of the call instruction. */
static bool is_unnamed(const char *text, const struct vp_frame_address *address)
{
	const char *plus = text ? strrchr(text, '+') : NULL;
	bool is_address = text && (!strncmp(text, "0x", 2) || !strcmp(text, VP_JIT_CODE) ||
				   (plus && !strncmp(plus, "+0x", 3)));

	return is_address && address->ip - address->start <= 1;
}

static char *export_script_put_frame(char *at, struct vp_export *export,
				     const struct vp_frame *frame,
				     const struct vp_frame_address *address)
{
	struct script *script = export->state;
	const char *text = vp_export_text(export, frame->function);
	bool is_unknown = is_unnamed(text, address);
	char number[32];

	*at++ = '\t';
	snprintf(number, sizeof(number), "%16" PRIx64 " ", address->ip);
	at = vp_put_text(at, number);
	at = is_unknown ? vp_put_text(at, "[unknown]")
			: vp_export_texts_put(&script->functions, frame->function, at);
	if (address->ip && text && !is_unknown) {
		snprintf(number, sizeof(number), "+0x%" PRIx64, address->ip - address->start);
		at = vp_put_text(at, number);
	}
	at = vp_export_texts_put(modules_of(script, frame), frame->module, at);
	*at = '\n';
	return at + 1;
}

/* perf prints the number of a thread without a name, and "swapper" for the idle task. */
static char *export_script_put_thread(char *at, const struct script *script,
				      const struct vp_sample *sample)
{
	const struct vp_frame *inner = &sample->frames[sample->count - 1];
	bool in_guest = inner->vm != VP_NONE, idle = inner->kind == VP_KIND_IDLE;
	uint32_t tid = idle && !in_guest                   ? 0
		       : in_guest && inner->pid != VP_NONE ? inner->pid
							   : sample->tid;
	char number[16], *start = at;

	at = vp_export_texts_put(&script->vms, inner->vm, at);
	if (inner->process != VP_NONE) {
		at = vp_export_texts_put(&script->processes, inner->process, at);
	} else if (idle) {
		at = vp_put_text(at, "swapper");
	} else {
		*at++ = ':';
		at = vp_put_count(at, tid);
	}
	if (at == start + 1) /* speedscope requires two characters before a blank */
		*at++ = ' ';
	snprintf(number, sizeof(number), " %5" PRIu32, tid);
	return vp_put_text(at, number);
}

static void export_script_put_sample(struct vp_export *export, const struct vp_sample *sample)
{
	struct script *script = export->state;
	char *at = vp_buffer_room(export->out, export_script_room_for(script, export, sample));

	at = export_script_put_thread(at, script, sample);
	at = put_when(at, sample->pcpu, sample->time);
	at = vp_put_padded(at, sample->weight * script->unit, 10, ' ');
	*at++ = ' ';
	at = vp_put_text(at, script->event);
	at = vp_put_text(at, ": \n");
	for (uint32_t i = sample->count; i-- > 0;)
		at = export_script_put_frame(at, export, &sample->frames[i], &sample->addresses[i]);
	*at++ = '\n';
	vp_buffer_end(export->out, at);
}

static void export_script_deinit(void *state)
{
	struct script *script = state;

	free(script->event);
	vp_export_texts_deinit(&script->vms);
	vp_export_texts_deinit(&script->processes);
	vp_export_texts_deinit(&script->functions);
	vp_export_texts_deinit(&script->modules);
	vp_export_texts_deinit(&script->guest_modules);
}

const struct vp_exporter *vp_exporter_script(void)
{
	static const struct vp_exporter exporter = {.state_size = sizeof(struct script),
						    .begin = export_script_begin,
						    .sample = export_script_put_sample,
						    .deinit = export_script_deinit};

	return &exporter;
}
