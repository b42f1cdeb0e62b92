/* SPDX-License-Identifier: GPL-2.0-or-later */
/* vperf top: live vCPU accounting. */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "analyze/account/account.h"
#include "analyze/account/account_tables.h"
#include "analyze/common/table.h"
#include "analyze/report/live.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/vec.h"
#include "cmd/common/choice.h"
#include "cmd/common/options.h"
#include "cmd/common/terminal.h"
#include "cmd/common/verb.h"
#include "cmd/host/top_functions.h"
#include "collect/programs/account_source.h"
#include "collect/programs/hypervisor.h"
#include "render/render_account.h"
#include "render/render_table.h"
#include "render/top.h"
#include "schema/records.h"
#include "schema/vm.h"
#include "session/account_writer.h"
#include "session/hypervisor_choice.h"

static const struct vp_verb verb;
static volatile sig_atomic_t stop_wanted;

enum by { BY_VCPU, BY_FUNCTION, BY_PROCESS };
enum { EXIT_ROWS = 10, STEAL_ROWS = 12, GATHER_MS = 100 };
#define MIN_DELAY_NS 100000000ULL
#define MAX_DELAY_NS (86400 * 1000000000ULL)
#define USUAL_DELAY_NS 1000000000ULL
#define USUAL_DELAY_OF_FUNCTIONS_NS 2000000000ULL

const struct vp_verb *vp_verb_top(void)
{
	return &verb;
}

struct top {
	uint64_t count, delay_ns; /* delay 0: the default */
	uint64_t limit;
	const char *vm, *by;
	enum by chosen;
	struct vp_format_words format;
	bool json, csv; /* the chosen format */
	struct vp_texts operands;
	vp_vms vms;
	struct vp_account account; /* of the present interval */
	bool on_terminal, utf8, missed;
	uint64_t lines; /* number of CSV updates so far */
	double shown_seconds;
	struct vp_account shown; /* shown on the terminal */
	struct vp_live live;
	struct vp_top screen;
};

static void cmd_top_on_signal(int signal)
{
	stop_wanted = 1;
}

static void cmd_top_take(void *context, struct vp_record_header *record)
{
	struct top *top = context;
	uint32_t pid = ((struct vp_vcpu_account *)record)->vm; /* VMs are not numbered */

	if (record->id == VP_ID_vcpu_account && !vp_vms_latest(&top->vms, pid))
		vp_hypervisor_here()->scan_one(&top->vms, pid, false);
	vp_account_take(&top->account, record);
}

enum { TABLES = 3 };

static void put_screen_json(const struct vp_table *tables, double seconds, struct vp_buffer *out)
{
	static const char *const keys[TABLES] = {"vcpus", "exits", "thieves"};
	struct vp_json json = vp_json_to(out);

	vp_json_answer(&json);
	vp_json_line(&json);
	vp_json_fixed(&json, "seconds", seconds, 9);
	for (size_t i = 0; i < TABLES; i++)
		vp_render_table_json(&tables[i], keys[i], &json);
	vp_json_line(&json);
	vp_json_object_end(&json);
	vp_buffer_string(out, "\n");
}

static void put_screen_text(const struct vp_table *tables, double seconds, struct vp_buffer *out)
{
	vp_buffer_printf(out, "vperf top: %zu vCPUs, %.3f s\n\n", vp_table_rows(&tables[0]),
			 seconds);
	if (!vp_table_rows(&tables[0]))
		vp_buffer_string(out, "No VM is running.\n\n");
	for (size_t i = 0; i < TABLES; i++) {
		if (!vp_table_rows(&tables[i]))
			continue;
		vp_render_table_text(&tables[i], false, out);
		vp_buffer_string(out, "\n");
	}
}

/* Rows of vCPUs, each with the end time of the interval. */
static void put_screen_csv(const struct vp_table *vcpus, bool with_keys, struct vp_buffer *out)
{
	size_t columns = vcpus->columns.count;
	uint64_t now = vp_clock_read().realtime;
	struct vp_table table = {0};

	vp_table_column_add(&table, "time_ns", "Time", "ns", VP_CELL_TIME);
	vp_vec_each (&vcpus->columns, column)
		vp_vec_push(&table.columns, *column);
	for (size_t i = 0; i < vcpus->cells.count; i++) {
		if (i % columns == 0)
			vp_table_count(&table, now);
		vp_vec_push(&table.cells, vcpus->cells.at[i]);
	}
	vp_render_table_csv(&table, with_keys, out);
	vp_table_deinit(&table);
}

static struct vp_error *put_update(struct top *top, double seconds, struct vp_buffer *out)
{
	struct vp_account_view view;
	struct vp_table tables[TABLES] = {0};

	VP_TRY(vp_account_view_init(&view, &top->account, top->vm));
	view.seconds = seconds;
	vp_account_vcpus_table(&view, &tables[0]);
	view.limit = top->json ? 0 : EXIT_ROWS;
	vp_account_exits_table(&view, &tables[1]);
	view.limit = top->json ? 0 : STEAL_ROWS;
	vp_account_steal_table(&view, &tables[2]);
	if (top->json)
		put_screen_json(tables, seconds, out);
	else if (top->csv)
		put_screen_csv(&tables[0], !top->lines++, out);
	else
		put_screen_text(tables, seconds, out);
	for (size_t i = 0; i < TABLES; i++)
		vp_table_deinit(&tables[i]);
	vp_account_view_deinit(&view);
	return NULL;
}

/* Selects the VM chosen by keyboard, if the option allows it. */
static void cmd_top_choose_vm(struct vp_account_view *view, const struct vp_live_order *order)
{
	if (!order->has_vm)
		return;
	free(view->chosen);
	view->n_chosen = view->account->vms->count;
	view->chosen = vp_alloc(view->n_chosen + 1);
	view->chosen[order->vm] = true;
}

static struct vp_error *draw(struct top *top)
{
	struct vp_terminal_size size = vp_terminal_size();
	struct vp_table exits = {0}, thieves = {0};
	struct vp_buffer lines = {0}, out = {0};
	struct vp_account_view view;

	VP_TRY(vp_account_view_init(&view, &top->shown, top->vm));
	cmd_top_choose_vm(&view, &top->screen.order);
	view.seconds = top->shown_seconds;
	vp_account_exits_table(&view, &exits);
	vp_account_steal_table(&view, &thieves);
	const struct vp_top_screen screen = {.width = size.width,
					     .height = size.height,
					     .colour = !getenv("NO_COLOR"),
					     .utf8 = top->utf8,
					     .keys = vp_terminal_has_keys(),
					     .seconds = top->shown_seconds,
					     .live = &top->live,
					     .vms = &top->vms,
					     .exits = &exits,
					     .thieves = &thieves};
	vp_top_draw(&top->screen, &screen, &lines);
	vp_terminal_show(&lines, &out);
	struct vp_error *error = vp_verb_print(&out);
	vp_buffer_deinit(&lines);
	vp_buffer_deinit(&out);
	vp_table_deinit(&exits);
	vp_table_deinit(&thieves);
	vp_account_view_deinit(&view);
	return error;
}

/* Shows the account of the interval on the terminal, unless frozen. */
static struct vp_error *show_on_terminal(struct top *top, double seconds)
{
	struct vp_account_view view;

	if (top->screen.frozen) {
		top->missed = true;
		vp_account_deinit(&top->account);
		return NULL;
	}
	vp_account_deinit(&top->shown);
	top->shown = top->account;
	top->shown_seconds = seconds;
	if (top->missed)
		vp_live_miss(&top->live);
	top->missed = false;
	VP_TRY(vp_account_view_init(&view, &top->shown, top->vm));
	vp_live_take(&top->live, &view);
	vp_account_view_deinit(&view);
	return draw(top);
}

static struct vp_error *cmd_top_show(struct top *top, struct vp_account_writer *writer,
				     uint64_t begin, uint64_t now)
{
	double seconds = (double)(now - begin) / 1e9;
	struct vp_buffer out = {0};

	vp_account_init(&top->account, &top->vms);
	vp_account_writer_write(writer, now, false);
	if (top->on_terminal)
		return show_on_terminal(top, seconds);
	struct vp_error *error = put_update(top, seconds, &out);
	if (!error)
		error = vp_verb_print(&out);
	vp_buffer_deinit(&out);
	vp_account_deinit(&top->account);
	return error;
}

/* Handles the keys typed within that time. */
static struct vp_error *take_keys(struct top *top, int ms)
{
	char bytes[64];
	size_t count = vp_terminal_read(ms, bytes, sizeof(bytes));

	for (size_t i = 0; i < count; i++)
		vp_top_key(&top->screen, bytes[i], &top->live);
	stop_wanted |= top->screen.quit;
	if (!top->on_terminal || !top->live.updates || (!count && !vp_terminal_changed()))
		return NULL;
	return draw(top);
}

/* Waits until that time, a signal, or the key that quits. */
static struct vp_error *wait_until(struct top *top, struct vp_account_writer *writer, uint64_t time)
{
	const struct vp_account_ops *ops;
	struct vp_account_source *source = vp_account_writer_source(writer, &ops);

	for (uint64_t now; !stop_wanted && (now = vp_clock_monotonic()) < time;) {
		uint64_t ms = (time - now) / 1000000 + 1;
		VP_TRY(take_keys(top, ms > GATHER_MS ? GATHER_MS : (int)ms));
		ops->gather(source, vp_clock_monotonic());
	}
	return NULL;
}

static struct vp_error *watch(struct top *top, struct vp_account_writer *writer)
{
	const struct vp_account_ops *ops;
	struct vp_account_source *source = vp_account_writer_source(writer, &ops);

	VP_TRY(ops->prepare(source));
	uint64_t begin = vp_clock_monotonic();
	ops->begin(source, &top->vms, begin);
	for (uint64_t i = 0; !stop_wanted && (!top->count || i < top->count); i++) {
		VP_TRY(wait_until(top, writer, begin + top->delay_ns));
		if (top->screen.quit)
			break;
		uint64_t now = vp_clock_monotonic();
		VP_TRY(cmd_top_show(top, writer, begin, now));
		begin = now;
	}
	return NULL;
}

static struct vp_error *cmd_top_choose_all(struct top *top)
{
	static const char *const names[] = {"vcpu", "function", "process"};
	size_t by = BY_VCPU;
	const char *format;

	if (top->operands.count)
		return vp_error_usage(
		    "unexpected argument '%s': to read a recording use 'vperf account'",
		    top->operands.at[0]);
	if (top->by)
		VP_TRY(vp_choose("by", top->by, names, VP_ARRAY_SIZE(names), &by));
	top->chosen = (enum by)by;
	if (top->limit && top->chosen == BY_VCPU)
		return vp_error_usage("--limit works only with --by function or process");
	if (!top->delay_ns)
		top->delay_ns =
		    top->chosen == BY_VCPU ? USUAL_DELAY_NS : USUAL_DELAY_OF_FUNCTIONS_NS;
	if (top->delay_ns < MIN_DELAY_NS || top->delay_ns > MAX_DELAY_NS)
		return vp_error_usage("option --delay: expected 0.1 to 86400 seconds");
	VP_TRY(vp_choose_table_format(&top->format, &format));
	top->json = !strcmp(format, "json");
	top->csv = !strcmp(format, "csv");
	if (geteuid() != 0)
		return vp_error_new("watching the host requires root (try sudo)");
	return NULL;
}

static struct vp_error *by_function(const struct top *top)
{
	const struct vp_top_functions_options options = {.count = top->count,
							 .delay_ns = top->delay_ns,
							 .limit = top->limit,
							 .vm = top->vm,
							 .by_process = top->chosen == BY_PROCESS,
							 .json = top->json,
							 .csv = top->csv};

	return vp_top_functions(&options);
}

static struct vp_error *top_with(void *context)
{
	struct top *top = context;
	struct vp_account_writer *writer = NULL;
	struct sigaction action = {.sa_handler = cmd_top_on_signal};

	VP_TRY(cmd_top_choose_all(top));
	if (top->chosen != BY_VCPU)
		return by_function(top);
	const struct vp_hypervisor *hypervisor = vp_hypervisor_here();
	VP_TRY(hypervisor->scan(&top->vms, true));
	const struct vp_account_source_options options = {0};
	VP_TRY(vp_account_writer_open(hypervisor->account(), &top->vms, hypervisor->vendor(),
				      &options, cmd_top_take, top, &writer));
	const struct vp_account_ops *ops;
	const struct vp_account_source *source = vp_account_writer_source(writer, &ops);
	if (ops->missing(source))
		vp_verb_say("top", ops->missing(source));
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	top->on_terminal = !top->json && !top->csv && vp_terminal_begin();
	struct vp_error *error = watch(top, writer);
	vp_terminal_end();
	vp_account_writer_free(writer);
	return error;
}

static int run_top(int argc, char **argv)
{
	struct top top = {.screen.order.sort = VP_LIVE_STEAL};
	const struct vp_option options[] = {
	    {'n', "count", VP_OPTION_COUNT, &top.count, "N",
	     "exit after N updates (default: at Ctrl-C)"},
	    {'d', "delay", VP_OPTION_SECONDS, &top.delay_ns, "S",
	     "seconds between updates, such as 0.5 (default: 1; 2 for functions and processes)"},
	    {0, "by", VP_OPTION_TEXT, &top.by, "WHAT",
	     "vcpu: exact times; function or process: samples of the host and of all guests, by "
	     "share (default: vcpu)"},
	    {0, "limit", VP_OPTION_COUNT, &top.limit, "N",
	     "print only the first N functions or processes (default: all that fit the terminal)"},
	    {0, "vm", VP_OPTION_NAMES, &top.vm, "NAME",
	     "only this VM (name, or pid of its VMM); can be repeated"},
	    {0, "format", VP_OPTION_TEXT, &top.format.format, "FORMAT",
	     "text, json (one object per update) or csv (a line per row and update) (default: "
	     "text)"},
	    {0, "json", VP_OPTION_FLAG, &top.format.json, NULL, "same as --format json"},
	    {0, "csv", VP_OPTION_FLAG, &top.format.csv, NULL, "same as --format csv"},
	};
	setlocale(LC_CTYPE, "");
	top.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	int status = vp_verb_run(&verb, options, VP_ARRAY_SIZE(options), argc, argv, &top.operands,
				 top_with, &top);

	vp_account_deinit(&top.shown);
	vp_live_deinit(&top.live);
	vp_vms_deinit(&top.vms);
	return status;
}

static const struct vp_verb verb = {
    .name = "top",
    .usage = "[-n COUNT] [-d SECONDS] [--by vcpu|function|process] [--vm NAME] [--format FORMAT]",
    .summary = "live view of vCPU time, VM exits and steal, or of functions",
    .run = run_top,
};
