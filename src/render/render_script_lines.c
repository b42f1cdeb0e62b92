/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "render/render_script.h"

#include <stdio.h>
#include <string.h>

#include "analyze/trace/script.h"
#include "analyze/trace/script_classes.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock_text.h"
#include "base/macros.h"
#include "base/vec.h"
#include "schema/event_class.h"

#define SECOND 1000000000

enum {
	LABEL = VP_PUT_BLOCK,
	TITLE = 2 * VP_PUT_BLOCK,
	THREADS = 256,
	MEMOS = 256, /* a power of two */
	KEY = 2,     /* words of a record that is looked up */
	MEMO_HEAD = 2 * VP_PUT_BLOCK,
	MEMO_TAIL = 5 * VP_PUT_BLOCK,
	MEMO_USUAL = 3 * VP_PUT_BLOCK,
	PCPUS = 64,
	GUEST = 2 * VP_PUT_BLOCK
};

/* A text that is copied in blocks. */
struct label {
	size_t size;
	char text[LABEL];
};

/* "NAME=VALUE ", and for another thread also "COMM-NAME=COMM ". */
struct step {
	enum vp_script_role role;
	const struct vp_script_part *part;
	const struct vp_script_part *preempted; /* of a thread's state; or NULL */
	struct label name, comm_name;
};

/* The lines of a class. */
struct line {
	const struct vp_script_part *tid; /* the running thread; NULL: the class has no plan */
	size_t title_size;
	char title[TITLE];  /* "EVENT: " */
	size_t room;        /* maximum size of a line */
	bool is_short;      /* the fields have at most KEY words: … */
	uint64_t mask[KEY]; /* … these bits */
	VP_VEC(struct step) steps;
};

/* Texts of a thread. They depend on its number, name and vCPU only. */
struct line_thread {
	uint64_t valid;     /* number of changes for which they are valid, + 1 */
	uint32_t tid, pcpu; /* pCPU: of the idle task */
	const char *comm;
	size_t guest_size; /* "vm=NAME vcpu=NUMBER " */
	struct label head; /* columns of name and number */
	struct label number, name;
	char guest[GUEST];
};

/* A line that was made before, apart from its time: events with the same fields are frequent. */
struct line_memo {
	uint64_t valid; /* number of changes for which it is valid, + 1 */
	uint64_t fields[KEY];
	uint32_t id, pcpu;
	size_t head_size, tail_size; /* before and after the time */
	char head[MEMO_HEAD], tail[MEMO_TAIL];
};

struct line_pcpu {
	bool used;
	uint32_t pcpu;
	struct label text; /* "[NUMBER] " */
};

struct vp_script_lines {
	struct vp_script *script;
	struct vp_script_layout layout; /* for all other events */
	VP_VEC(struct line) lines;      /* by id of the host's class */
	uint64_t valid;                 /* number of changes of names, + 1 */
	uint64_t second;                /* start of the second in `seconds`, ns */
	struct label seconds;           /* "SECONDS." */
	char digits[1000][4];           /* "000" to "999" */
	struct line_thread threads[THREADS];
	struct line_pcpu pcpus[PCPUS];
	struct line_memo memos[MEMOS];
};

/* A line being made; NULL end: it has to be made in the usual way. */
struct made_line {
	char *head, *time, *tail, *end;
};

bool vp_script_lines_fit(const struct vp_script_layout *layout,
			 const struct vp_script_options *options)
{
	return layout->shown == VP_SHOW_ALL && layout->clock.form == VP_CLOCK_FORM_HOST &&
	       !options->vm && !options->has_tid;
}

/* False: too long. */
static bool label_set(struct label *label, const struct vp_buffer *text)
{
	if (text->size > sizeof(label->text))
		return false;
	memcpy(label->text, text->bytes, text->size);
	label->size = text->size;
	return true;
}

static inline char *label_put(char *at, const struct label *label)
{
	memcpy(at, label->text, sizeof(label->text));
	return at + label->size;
}

static bool label_set_name(struct label *label, const struct vp_script_column *column)
{
	struct vp_buffer text = {0};

	vp_buffer_append(&text, column->name, column->name_size);
	vp_buffer_string(&text, "=");
	bool fits = label_set(label, &text);
	vp_buffer_deinit(&text);
	return fits;
}

static bool line_add_step(struct line *line, const struct vp_script_part *part)
{
	struct step step = {.role = part->role, .part = part};

	if (!label_set_name(&step.name, &part->column) ||
	    (part->role == VP_SCRIPT_OTHER_TID &&
	     !label_set_name(&step.comm_name, &part->comm_column)))
		return false;
	vp_vec_push(&line->steps, step);
	line->room += 5 * VP_PUT_BLOCK;
	return true;
}

static void set_preempted(struct line *line, const struct vp_script_part *part)
{
	vp_vec_each (&line->steps, step)
		if (step->role == VP_SCRIPT_STATE)
			step->preempted = part;
}

static bool line_add_part(struct line *line, const struct vp_script_part *part)
{
	switch (part->role) {
	case VP_SCRIPT_HIDDEN:
	case VP_SCRIPT_PREEMPTED:
		return true;
	case VP_SCRIPT_TID:
	case VP_SCRIPT_PREV_TID:
		if (line->tid)
			return false;
		line->tid = part;
		return part->role == VP_SCRIPT_TID || line_add_step(line, part);
	default:
		return line_add_step(line, part);
	}
}

/* False: the class has no plan. */
static bool line_make_steps(struct line *line, const struct vp_script_class *class)
{
	if (!class->event || !class->chosen || !class->is_plain ||
	    class->name_size + 2 > sizeof(line->title))
		return false;
	vp_vec_each (&class->parts, part)
		if (!line_add_part(line, part))
			return false;
	vp_vec_each (&class->parts, part)
		if (part->role == VP_SCRIPT_PREEMPTED)
			set_preempted(line, part);
	return line->tid;
}

static void line_make(struct line *line, const struct vp_script_class *class)
{
	*line = (struct line){.room = MEMO_HEAD + MEMO_TAIL + 6 * VP_PUT_BLOCK + TITLE + GUEST};
	if (!line_make_steps(line, class)) {
		vp_vec_deinit(&line->steps);
		line->tid = NULL;
		return;
	}
	size_t size = class->event->fixed_size;
	line->is_short = size <= sizeof(line->mask);
	if (line->is_short)
		memset(line->mask, 0xff, size);
	memcpy(line->title, class->name, class->name_size);
	memcpy(line->title + class->name_size, ": ", 2);
	line->title_size = class->name_size + 2;
}

static void line_set_second(struct vp_script_lines *lines, uint64_t second)
{
	char *end = vp_put_padded(lines->seconds.text, second, 5, ' ');

	*end = '.';
	lines->seconds.size = (size_t)(end + 1 - lines->seconds.text);
	lines->second = second * SECOND;
}

struct vp_script_lines *vp_script_lines_new(struct vp_script *script)
{
	const struct vp_script_classes *classes = vp_script_host_classes(script);
	struct vp_script_lines *lines = vp_alloc(sizeof(*lines));

	lines->script = script;
	lines->layout.shown = VP_SHOW_ALL;
	line_set_second(lines, 0);
	for (unsigned i = 0; i < VP_ARRAY_SIZE(lines->digits); i++)
		snprintf(lines->digits[i], sizeof(lines->digits[i]), "%03u", i);
	vp_vec_each (&classes->all, class)
		line_make(vp_vec_push_slot(&lines->lines), class);
	return lines;
}

void vp_script_lines_free(struct vp_script_lines *lines)
{
	vp_vec_each (&lines->lines, line)
		vp_vec_deinit(&line->steps);
	vp_vec_deinit(&lines->lines);
	free(lines);
}

static bool line_thread_set_guest(struct line_thread *texts, const struct vp_script *script,
				  const struct vp_script_thread *thread)
{
	struct vp_buffer text = {0};

	texts->guest_size = 0;
	if (!thread->vm)
		return true;
	vp_buffer_string(&text, "vm=");
	vp_buffer_string(&text, vp_script_vm_name(script, thread->vm));
	vp_buffer_string(&text, " vcpu=");
	vp_buffer_count(&text, thread->vcpu);
	vp_buffer_string(&text, " ");
	bool fits = text.size <= sizeof(texts->guest);
	if (fits) {
		texts->guest_size = text.size;
		memcpy(texts->guest, text.bytes, text.size);
	}
	vp_buffer_deinit(&text);
	return fits;
}

static bool line_thread_set_names(struct line_thread *texts, const struct vp_script_thread *thread,
				  uint32_t tid)
{
	struct vp_buffer head = {0}, number = {0}, name = {0};

	vp_script_put_thread(thread->comm, true, tid, VP_SHOW_COMM | VP_SHOW_TID, &head);
	vp_buffer_count(&number, tid);
	vp_buffer_string(&number, " ");
	vp_buffer_string(&name, thread->comm ? thread->comm : VP_SCRIPT_NO_COMM);
	vp_buffer_string(&name, " ");
	bool fits = label_set(&texts->head, &head) && label_set(&texts->number, &number) &&
		    label_set(&texts->name, &name);
	vp_buffer_deinit(&head);
	vp_buffer_deinit(&number);
	vp_buffer_deinit(&name);
	return fits;
}

/* The texts of the thread, which are not known to be valid; NULL: too long. */
static const struct line_thread *line_thread_make(struct vp_script_lines *lines,
						  struct line_thread *texts, uint32_t tid,
						  uint32_t pcpu)
{
	const struct vp_script_thread *thread = vp_script_thread(lines->script, tid, pcpu);
	bool is_same =
	    texts->valid && texts->tid == tid && texts->pcpu == pcpu && texts->comm == thread->comm;
	bool fits = is_same || (line_thread_set_guest(texts, lines->script, thread) &&
				line_thread_set_names(texts, thread, tid));

	texts->valid = fits ? lines->valid : 0;
	texts->tid = tid;
	texts->pcpu = pcpu;
	texts->comm = thread->comm;
	return fits ? texts : NULL;
}

static inline const struct line_thread *line_thread_of(struct vp_script_lines *lines, uint32_t tid,
						       uint32_t pcpu)
{
	uint32_t of = tid ? 0 : pcpu; /* idle tasks differ */
	struct line_thread *texts = &lines->threads[(tid ^ of) % THREADS];

	return texts->tid == tid && texts->pcpu == of && texts->valid == lines->valid
		   ? texts
		   : line_thread_make(lines, texts, tid, of);
}

static inline char *line_put_pcpu(struct vp_script_lines *lines, uint32_t pcpu, char *at)
{
	struct line_pcpu *text = &lines->pcpus[pcpu % PCPUS];

	if (!text->used || text->pcpu != pcpu) {
		struct vp_buffer made = {0};
		vp_script_put_pcpu(pcpu, &made);
		label_set(&text->text, &made); /* 13 bytes at most */
		vp_buffer_deinit(&made);
		text->used = true;
		text->pcpu = pcpu;
	}
	return label_put(at, &text->text);
}

static inline char *line_put_time(struct vp_script_lines *lines, uint64_t time, char *at)
{
	if (time - lines->second >= SECOND)
		line_set_second(lines, time / SECOND);
	uint32_t ns = (uint32_t)(time - lines->second);
	at = label_put(at, &lines->seconds);
	memcpy(at, lines->digits[ns / 1000000], 4);
	memcpy(at + 3, lines->digits[ns / 1000 % 1000], 4);
	memcpy(at + 6, lines->digits[ns % 1000], 4);
	memcpy(at + 9, ": ", 2);
	return at + 11;
}

static inline char *step_put_state(const struct step *step, const char *fields, char *at)
{
	bool preempted = step->preempted && vp_script_number(step->preempted, fields);

	*at++ = vp_script_state_letter(vp_script_number(step->part, fields), preempted);
	if (preempted)
		*at++ = '+';
	*at++ = ' ';
	return at;
}

/* NULL: a text is too long. The rest of the line fits at `at`. */
static inline char *step_put(struct vp_script_lines *lines, const struct step *step,
			     const struct vp_script_plain *event, const struct line_thread *current,
			     char *at)
{
	const struct line_thread *other;

	at = label_put(at, &step->name);
	switch (step->role) {
	case VP_SCRIPT_PREV_TID:
		return label_put(at, &current->number);
	case VP_SCRIPT_OTHER_TID:
		other = line_thread_of(lines, (uint32_t)vp_script_number(step->part, event->fields),
				       event->pcpu);
		if (!other)
			return NULL;
		at = label_put(label_put(at, &other->number), &step->comm_name);
		return label_put(at, &other->name);
	case VP_SCRIPT_STATE:
		return step_put_state(step, event->fields, at);
	default:
		at = vp_script_put_number(at, step->part->field,
					  vp_script_number(step->part, event->fields));
		*at = ' ';
		return at + 1;
	}
}

static struct made_line line_put(struct vp_script_lines *lines, const struct line *line,
				 const struct vp_script_plain *event, char *at)
{
	const struct line_thread *current = line_thread_of(
	    lines, (uint32_t)vp_script_number(line->tid, event->fields), event->pcpu);
	struct made_line made = {.head = at};

	if (!current)
		return made;
	made.time = line_put_pcpu(lines, event->pcpu, label_put(at, &current->head));
	made.tail = line_put_time(lines, event->time, made.time);
	at = vp_put_blocks(made.tail, line->title, line->title_size);
	at = vp_put_blocks(at, current->guest, current->guest_size);
	vp_vec_each (&line->steps, step) {
		at = step_put(lines, step, event, current, at);
		if (!at)
			return made;
	}
	at[-1] = '\n';
	made.end = at;
	return made;
}

/* The fields are read as whole words: streams have VP_RECORD_ROOM bytes after each record. */
static inline struct line_memo *line_memo_find(struct vp_script_lines *lines,
					       const struct line *line,
					       const struct vp_script_plain *event,
					       uint64_t fields[KEY])
{
	memcpy(fields, event->fields, sizeof(line->mask));
	fields[0] &= line->mask[0];
	fields[1] &= line->mask[1];
	uint64_t hash =
	    (fields[0] ^ (fields[1] + event->id) << 20 ^ event->pcpu) * 0x9e3779b97f4a7c15;
	return &lines->memos[hash >> 32 & (MEMOS - 1)];
}

static inline bool line_memo_is(const struct line_memo *memo, const struct vp_script_lines *lines,
				const struct vp_script_plain *event, const uint64_t fields[KEY])
{
	return memo->valid == lines->valid && memo->fields[0] == fields[0] &&
	       memo->fields[1] == fields[1] && memo->id == event->id && memo->pcpu == event->pcpu;
}

static void line_memo_set(struct line_memo *memo, const struct vp_script_lines *lines,
			  const struct vp_script_plain *event, const uint64_t fields[KEY],
			  const struct made_line *made)
{
	memo->valid = lines->valid;
	memo->id = event->id;
	memo->pcpu = event->pcpu;
	memcpy(memo->fields, fields, sizeof(memo->fields));
	memo->head_size = (size_t)(made->time - made->head);
	memo->tail_size = (size_t)(made->end - made->tail);
	if (memo->head_size > MEMO_HEAD || memo->tail_size > MEMO_TAIL) {
		memo->valid = 0;
		return;
	}
	/* Both have blocks of room in the buffer. */
	memcpy(memo->head, made->head, MEMO_HEAD);
	memcpy(memo->tail, made->tail, MEMO_TAIL);
}

static inline char *line_memo_put(struct vp_script_lines *lines, const struct line_memo *memo,
				  uint64_t time, char *at)
{
	memcpy(at, memo->head, MEMO_HEAD / 2);
	if (memo->head_size > MEMO_HEAD / 2)
		memcpy(at + MEMO_HEAD / 2, memo->head + MEMO_HEAD / 2, MEMO_HEAD / 2);
	at = line_put_time(lines, time, at + memo->head_size);
	memcpy(at, memo->tail, MEMO_USUAL);
	if (memo->tail_size > MEMO_USUAL)
		memcpy(at + MEMO_USUAL, memo->tail + MEMO_USUAL, MEMO_TAIL - MEMO_USUAL);
	return at + memo->tail_size;
}

static char *line_put_again(struct vp_script_lines *lines, const struct line *line,
			    const struct vp_script_plain *event, char *at)
{
	uint64_t fields[KEY];
	struct line_memo *memo = line_memo_find(lines, line, event, fields);

	if (line_memo_is(memo, lines, event, fields))
		return line_memo_put(lines, memo, event->time, at);
	struct made_line made = line_put(lines, line, event, at);
	if (made.end)
		line_memo_set(memo, lines, event, fields, &made);
	return made.end;
}

static bool line_try(struct vp_script_lines *lines, const struct vp_script_plain *event,
		     struct vp_buffer *out)
{
	const struct line *line = &lines->lines.at[event->id];

	if (!line->tid)
		return false;
	char *at = vp_buffer_room(out, line->room);
	char *end = line->is_short ? line_put_again(lines, line, event, at)
				   : line_put(lines, line, event, at).end;
	if (end)
		vp_buffer_end(out, end);
	return end;
}

uint64_t vp_script_lines_put(struct vp_script_lines *lines, uint64_t limit, size_t size,
			     struct vp_buffer *out)
{
	struct vp_script_plain plain;
	uint64_t count = 0;

	while (count < limit && out->size < size && vp_script_next_plain(lines->script, &plain)) {
		count++;
		lines->valid = plain.changes + 1;
		if (!plain.event && line_try(lines, &plain, out))
			continue;
		const struct vp_script_event *event =
		    plain.event ? plain.event : vp_script_read_plain(lines->script);
		vp_script_format_named("text")->event(event, &lines->layout, out);
	}
	return count;
}
