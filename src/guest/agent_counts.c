/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts events of this kernel for the host, which reads the counts from guest memory: see
 * protocol/counts_protocol.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/io.h"
#include "base/macros.h"
#include "guest/agent.h"
#include "guest/agent_counts.h"
#include "guest/counts.skel.h"
#include "guest/cpus.h"
#include "guest/physical.h"
#include "protocol/counts_protocol.h"

struct session {
	const struct vp_counts_request *request;
	struct vp_counts_bpf *programs;
	volatile struct vp_counts_cell *cells; /* NULL: not mapped yet */
	size_t size;                           /* bytes mapped */
	uint32_t n_cells;
	uint32_t counted; /* bits of enum vp_guest_count */
	struct vp_buffer answer;
	uint64_t lines;
};

struct program {
	struct bpf_program *program;
	uint32_t events;      /* events that it counts */
	bool traces_function; /* needs function tracing (fexit), which some kernels lack */
};

enum { N_PROGRAMS = 7 };

static void list_programs(const struct vp_counts_bpf *programs, struct program list[N_PROGRAMS])
{
	/* Alternatives for the same events: a later one replaces an earlier one. */
	const struct program all[N_PROGRAMS] = {
	    {programs->progs.on_switch, 1U << VP_GUEST_switches, false},
	    {programs->progs.on_fault, 1U << VP_GUEST_faults | 1U << VP_GUEST_major_faults, true},
	    {programs->progs.on_fault_begin, 1U << VP_GUEST_faults, false},
	    {programs->progs.on_interrupt, 1U << VP_GUEST_interrupts, false},
	    {programs->progs.on_timer, 1U << VP_GUEST_timer, false},
	    {programs->progs.on_fork, 1U << VP_GUEST_forks, false},
	    {programs->progs.on_system_call, 1U << VP_GUEST_system_calls, false},
	};

	memcpy(list, all, sizeof(all));
}

/* Loads the programs for the requested events. */
static int agent_counts_load(struct session *session, bool trace_functions)
{
	struct program list[N_PROGRAMS];

	session->programs = vp_counts_bpf__open();
	if (!session->programs)
		return -errno;
	list_programs(session->programs, list);
	for (size_t i = 0; i < N_PROGRAMS; i++)
		bpf_program__set_autoload(list[i].program,
					  (trace_functions || !list[i].traces_function) &&
					      list[i].events & session->request->events);
	int result = bpf_map__set_max_entries(session->programs->maps.cells, session->n_cells);
	if (!result)
		result = vp_counts_bpf__load(session->programs);
	if (result) {
		vp_counts_bpf__destroy(session->programs);
		session->programs = NULL;
	}
	return result;
}

static struct vp_error *load_programs(struct session *session)
{
	int result = agent_counts_load(session, true);

	if (result)
		result = agent_counts_load(session, false);
	return result ? vp_error_errno(-result, "cannot load the counting programs") : NULL;
}

static struct vp_error *map_cells(struct session *session)
{
	size_t page = (size_t)getpagesize(), size = session->n_cells * sizeof(*session->cells);

	session->size = (size + page - 1) / page * page;
	void *cells = mmap(NULL, session->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bpf_map__fd(session->programs->maps.cells), 0);
	if (cells == MAP_FAILED)
		return vp_error_errno(errno, "cannot map the counts");
	session->cells = cells;
	return NULL;
}

/* In this order: the program that invalidates the marker, the marker, the counting programs. The
 * host trusts counts only while the marker is valid. */
static struct vp_error *start_counting(struct session *session)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct program list[N_PROGRAMS];

	if (bpf_prog_test_run_opts(bpf_program__fd(session->programs->progs.own), &options))
		return vp_error_errno(errno, "cannot run a program in the kernel");
	/* Links live as long as this process, which ends with the session. */
	if (!bpf_program__attach(session->programs->progs.on_exit))
		return vp_error_errno(errno, "cannot watch for process exits");
	session->cells[0].words[VP_COUNTS_MARKER_WORD] = session->request->marker;
	list_programs(session->programs, list);
	for (size_t i = 0; i < N_PROGRAMS; i++)
		if (bpf_program__autoload(list[i].program) &&
		    list[i].events & session->request->events & ~session->counted &&
		    bpf_program__attach(list[i].program))
			session->counted |= list[i].events;
	session->counted &= session->request->events;
	return NULL;
}

static void put_counts_line(struct session *session, const struct vp_counts_line *line)
{
	vp_counts_line_write(line, &session->answer);
	session->lines++;
}

static struct vp_error *put_index(struct session *session, uint32_t vcpu, enum vp_guest_count event,
				  uint32_t cell, int pagemap)
{
	struct vp_counts_line line = {.kind = VP_COUNTS_ADDRESS, .vcpu = vcpu, .event = event};

	VP_TRY(vp_guest_physical(&session->cells[cell].words[event], pagemap, &line.number));
	put_counts_line(session, &line);
	return NULL;
}

struct placing {
	struct session *session;
	int pagemap;
};

static struct vp_error *agent_counts_put_cpu(void *context, uint32_t cpu, uint32_t vcpu)
{
	const struct placing *placing = context;
	struct session *session = placing->session;

	for (uint32_t i = 0; i < VP_GUEST_COUNT && cpu + 1 < session->n_cells; i++)
		if (session->counted >> i & 1)
			VP_TRY(put_index(session, vcpu, (enum vp_guest_count)i,
					 i == VP_GUEST_forks ? 0 : cpu + 1, placing->pagemap));
	return NULL;
}

static struct vp_error *agent_counts_make_answer(struct session *session)
{
	VP_AUTO_CLOSE int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct vp_counts_line line = {.kind = VP_COUNTS_HEAD, .number = 1};
	uint32_t without = session->request->events & ~session->counted;

	if (pagemap < 0)
		return vp_error_errno(errno, "cannot open '/proc/self/pagemap'");
	put_counts_line(session, &line);
	line.kind = VP_COUNTS_MARKER;
	VP_TRY(vp_guest_physical(&session->cells[0].words[VP_COUNTS_MARKER_WORD], pagemap,
				 &line.number));
	put_counts_line(session, &line);
	VP_TRY(vp_guest_cpus(agent_counts_put_cpu, &(struct placing){session, pagemap}));
	line.kind = VP_COUNTS_WITHOUT;
	for (line.event = 0; line.event < VP_GUEST_COUNT; line.event++)
		if (without >> line.event & 1)
			put_counts_line(session, &line);
	line = (struct vp_counts_line){.kind = VP_COUNTS_END, .number = session->lines};
	put_counts_line(session, &line);
	return NULL;
}

static struct vp_error *agent_counts_begin(struct session *session)
{
	int cpus = libbpf_num_possible_cpus();

	if (cpus < 0)
		return vp_error_errno(-cpus, "cannot count the CPUs");
	session->n_cells = (uint32_t)cpus + 1;
	VP_TRY(load_programs(session));
	VP_TRY(map_cells(session));
	VP_TRY(start_counting(session));
	return agent_counts_make_answer(session);
}

/* Until the host disconnects, or the lease expires. */
static void serve_until_closed(int fd)
{
	const struct timeval lease = {.tv_sec = VP_COUNTS_LEASE_S};
	static const char too_long[] = "error timeout: no request from the host\n";
	char bytes[64];
	ssize_t got;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lease, sizeof(lease));
	do
		got = vp_read(fd, bytes, sizeof(bytes));
	while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0 && errno == EAGAIN) {
		int ignored = vp_fd_write_all(fd, too_long, sizeof(too_long) - 1);
		(void)ignored;
	}
}

/* Exiting ends the programs, and one of them invalidates the marker: there is no other clean-up
 * path. */
int vp_counts_serve(int fd, const struct vp_counts_request *request)
{
	struct session session = {.request = request};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct vp_error *error = agent_counts_begin(&session);
	if (error) {
		session.answer.size = 0;
		vp_buffer_printf(&session.answer, "error %s\n", vp_error_message(error));
	}
	int result = vp_fd_write_all(fd, session.answer.bytes, session.answer.size);
	if (!error && !result)
		serve_until_closed(fd);
	vp_error_free(error);
	vp_buffer_deinit(&session.answer);
	return result;
}
