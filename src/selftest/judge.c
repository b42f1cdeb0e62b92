/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of a self-test, from its facts. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "selftest/facts.h"
#include "selftest/guest.h"
#include "selftest/verdict.h"

enum {
	EDGE_NS = 2000000,   /* differences of statistics and a recording at start and end, ns */
	CLOCK_NS = 50000000, /* delay until the guest runs, and after it, on a shared pCPU */
	MAX_COST = 5,        /* percent of a busy guest's time; … */
	/* … on processors so slow that a sample costs more, the time of this many loops per sample:
	 * 6042 instructions. `vperf record` takes 5254 per sample, within 15% (bench/README.md). */
	SAMPLE_LOOPS = 1007,
	MAX_NOISE = 20, /* no verdict if the same work without a recording varies by more percent */
	SIGMAS = 4,
};

static const double cpu_time_share = 0.02; /* allowed between two measurements */
static const double ms = 1e6;

static double judge_between(struct vp_guest_cpu_time from, struct vp_guest_cpu_time to)
{
	return (double)(to.at - from.at);
}

/* Time during which the thread neither ran nor waited for a pCPU. */
static double slept(struct vp_guest_cpu_time from, struct vp_guest_cpu_time to)
{
	double ran = (double)(to.run - from.run), waited = (double)(to.delay - from.delay);

	return fmax(judge_between(from, to) - ran - waited, 0);
}

/* ns of CPU time per thousand loops. */
static double pace(const struct vp_guest_done *done)
{
	double waited = (double)(done->busy.delay - done->begin.delay);

	return 1000 * (judge_between(done->begin, done->busy) - waited) / (double)done->loops;
}

static double cpu_time_bound(double ns)
{
	return (cpu_time_share * ns + EDGE_NS) / ms;
}

static void judge_trigger(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const char *name = "samples: by a hardware counter";

	if (!facts->no_counter) {
		vp_check_same(checks, name, "cycles", facts->quiet_recording.trigger);
		return;
	}
	vp_check_not_possible(checks, name, "");
	vp_check_explain(checks, "%s; samples come from %s", facts->no_counter,
			 facts->quiet_recording.trigger);
}

static void judge_samples(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const struct vp_selftest_recording *recording = &facts->quiet_recording;
	double busy = recording->hot_ns + recording->cold_ns;
	double late = recording->ticks ? recording->late / recording->ticks : 0;

	vp_check_near(checks, "samples: share of " VP_GUEST_HOT, "%", VP_GUEST_HOT_PERCENT,
		      busy > 0 ? 100 * recording->hot_ns / busy : NAN,
		      vp_share_bound(VP_GUEST_HOT_PERCENT, recording->samples, late));
	vp_check_near(
	    checks, "samples: with a function's name", "%", 100,
	    recording->sampled_ns > 0 ? 100 * recording->named_ns / recording->sampled_ns : NAN, 0);
}

/*
 * Compares guest time by samples with the accounting of the same recording. No timer interrupt is
 * delivered within the handler of the previous one, so a guest sample also represents the handler's
 * time: the sampled time is between guest time and guest time plus interrupts.
 */
static void judge_sampled_time(const struct vp_selftest_recording *recording,
			       struct vp_checks *checks)
{
	double ticks = recording->period_ns > 0 && !recording->by_time
			   ? recording->wall / recording->period_ns
			   : recording->samples;
	double share = recording->wall > 0 ? recording->guest / recording->wall : 0;
	double late = recording->ticks ? recording->late / recording->ticks : 0;

	vp_check_near(checks, "samples: time in the guest", "ms",
		      (recording->guest + recording->interrupted / 2) / ms,
		      recording->sampled_ns / ms,
		      (vp_share_bound(100 * share, ticks, late) / 100 * recording->wall +
		       recording->interrupted / 2) /
			  ms);
}

static void judge_clock(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const struct vp_selftest_recording *recording = &facts->quiet_recording;
	const struct vp_guest_done *done = &facts->quiet;
	bool within = recording->first >= done->begin.at && recording->last <= done->busy.at;

	vp_check_near(checks, "clock: time from first to last sample", "ms",
		      judge_between(done->begin, done->busy) / ms,
		      (double)(recording->last - recording->first) / ms,
		      (CLOCK_NS + cpu_time_share * judge_between(done->begin, done->busy)) / ms);
	vp_check_same(checks, "clock: samples within the work's time", "all",
		      !recording->first ? "none"
		      : within          ? "all"
					: "not all");
}

static void judge_rips(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	judge_samples(facts, checks);
	judge_clock(facts, checks);
}

static void judge_account(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const struct vp_selftest_recording *recording = &facts->quiet_recording;
	const struct vp_guest_done *done = &facts->quiet;
	double ran = (double)(done->end.run - done->begin.run);
	double asleep = slept(done->busy, done->end);

	vp_check_near(checks, "account: sum of all states", "ms", recording->wall / ms,
		      recording->states / ms, recording->wall / ms / 1000);
	/* Some kernels charge interrupts to the thread, others do not. */
	vp_check_near(checks, "account: time on the pCPU", "ms", ran / ms,
		      (recording->guest + recording->kernel + recording->poll + recording->vmm +
		       recording->interrupted) /
			  ms,
		      cpu_time_bound(ran) + recording->interrupted / ms);
	vp_check_near(checks, "account: time halted", "ms", asleep / ms, recording->halted / ms,
		      cpu_time_bound(asleep));
}

static void judge_exit_kind(const struct vp_selftest_facts *facts, enum vp_guest_exit exit,
			    struct vp_checks *checks)
{
	const struct vp_guest_exit_kind *kind = vp_guest_exit_kind(exit);
	double expected = facts->work.exits[exit];
	bool has_rips = vp_guest_has_rip() && !facts->no_rips;

	if (!kind->check)
		return;
	if (has_rips) {
		vp_check_near(checks, kind->check, "", expected,
			      facts->quiet_recording.by_function[exit], 0);
	} else if (kind->others == VP_GUEST_OTHERS_UNKNOWN) {
		vp_check_not_possible(checks, kind->check, "");
		vp_check_explain(checks, "VM exits have no guest RIP here, so they cannot be "
					 "distinguished from others with the same reason");
	} else {
		vp_check_near(checks, kind->check, "", expected + kind->others,
			      facts->quiet_recording.by_reason[exit], 0);
	}
}

static void judge_exits(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	for (int i = 0; i < VP_GUEST_EXITS; i++)
		judge_exit_kind(facts, (enum vp_guest_exit)i, checks);
	const char *name = "exits: all, by KVM's statistics";
	double exits = (double)facts->quiet.stat_exits;
	/* The guest's last exit has no VM entry after it, which would complete it. */
	if (facts->quiet.has_stats)
		vp_check_near(checks, name, "", exits, facts->quiet_recording.exits,
			      2 + exits / 1000);
	else
		vp_check_not_possible(checks, name, "this kernel has no statistics of a vCPU");
}

static void judge_steal(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const struct vp_selftest_recording *recording = &facts->shared_recording;
	const struct vp_guest_done *done = &facts->shared;
	double waited = (double)(done->end.delay - done->begin.delay);
	double thief = (double)(facts->thief_end.run - facts->thief_begin.run);

	vp_check_near(checks, "steal: time stolen", "ms", waited / ms,
		      (recording->waking + recording->preempted + recording->throttled) / ms,
		      cpu_time_bound(waited) + recording->interrupted / ms);
	vp_check_near(checks, "steal: taken by the known thief", "ms", thief / ms,
		      recording->stolen_by_thief / ms,
		      cpu_time_bound(thief) + recording->interrupted / ms);
}

static void judge_counter(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	const struct vp_guest_done *done = &facts->before;
	const char *name = "counter: instructions in the guest";
	double expected = (double)done->instructions;

	if (done->has_counter)
		vp_check_near(checks, name, "", expected, (double)done->counted, expected / 1000);
	else
		vp_check_not_possible(checks, name, vp_guest_no_counter());
}

static void judge_cost(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	double before = pace(&facts->before), with = pace(&facts->quiet);
	double after = pace(&facts->after), without = (before + after) / 2;
	double noise = 100 * fabs(before - after) / without;
	const char *name = "cost: a busy guest's time";

	if (noise > MAX_NOISE) {
		vp_check_not_possible(checks, name, "");
		vp_check_explain(checks, "the same work without a recording varies by %.0f%%",
				 noise);
		return;
	}
	double period = facts->quiet_recording.period_ns;
	double of_samples = period > 0 ? SAMPLE_LOOPS * without / 10 / period : 0; /* percent */
	vp_check_most(checks, name, "%", 0, 100 * (with / without - 1),
		      fmax(MAX_COST, of_samples) + noise);
	vp_check_explain(checks, "the same work without a recording varies by %.2g%%", noise);
}

static void cannot(struct vp_checks *checks, const char *const *names, const char *why)
{
	for (; *names; names++)
		vp_check_not_possible(checks, *names, why);
}

void vp_facts_judge(const struct vp_selftest_facts *facts, struct vp_checks *checks)
{
	static const char *const of_samples[] = {"samples", "clock", NULL};
	static const char *const of_account[] = {"account", "exits", "steal", NULL};
	static const char *const of_rips[] = {"samples: share of " VP_GUEST_HOT, "clock", NULL};
	static const char *const of_recordings[] = {"lost records", "cost", NULL};

	if (facts->no_samples) {
		cannot(checks, of_samples, facts->no_samples);
	} else {
		judge_trigger(facts, checks);
		if (!vp_guest_has_rip())
			cannot(checks, of_rips, "samples have no guest RIP on this processor");
		else if (facts->no_rips && !facts->quiet_recording.hot_ns)
			cannot(checks, of_rips, facts->no_rips);
		else
			judge_rips(facts, checks);
		if (!facts->no_account)
			judge_sampled_time(&facts->quiet_recording, checks);
	}
	if (facts->no_account) {
		cannot(checks, of_account, facts->no_account);
	} else {
		judge_account(facts, checks);
		judge_exits(facts, checks);
		judge_steal(facts, checks);
	}
	judge_counter(facts, checks);
	if (vp_facts_records_nothing(facts)) {
		cannot(checks, of_recordings, "nothing can be recorded on this host");
		return;
	}
	vp_check_near(checks, "lost records", "", 0,
		      facts->quiet_recording.lost + facts->shared_recording.lost, 0);
	judge_cost(facts, checks);
}
