/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "analyze/model/interval_bins.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/macros.h"

enum { MAX_SUBJECTS = 64, MIN_BINS = 16, MAX_BINS = 1000 };

static int by_intervals(const void *a, const void *b)
{
	const struct vp_interval_bins_subject *left = a, *right = b;

	if (left->intervals != right->intervals)
		return left->intervals < right->intervals ? 1 : -1;
	return left->name < right->name ? -1 : left->name > right->name;
}

static uint32_t subject_of(struct vp_interval_bins *bins, const struct vp_interval_recording *rec,
			   const struct vp_interval_row *row)
{
	VP_AUTO_FREE char *name = vp_interval_subject(rec, row);

	return vp_intern_string(&bins->texts, name);
}

/* Chooses the subjects with the most intervals; `of_row` gets the index of each row's subject. */
static void choose_subjects(struct vp_interval_bins *bins, const struct vp_interval_recording *rec,
			    uint32_t *of_row)
{
	for (size_t i = 0; i < rec->rows.count; i++) {
		of_row[i] = subject_of(bins, rec, &rec->rows.at[i]);
		if (of_row[i] == bins->subjects.count)
			vp_vec_push(&bins->subjects,
				    ((struct vp_interval_bins_subject){.name = of_row[i]}));
		bins->subjects.at[of_row[i]].intervals++;
	}
	if (bins->subjects.count)
		qsort(bins->subjects.at, bins->subjects.count, sizeof(*bins->subjects.at),
		      by_intervals);
	if (bins->subjects.count > MAX_SUBJECTS) {
		bins->left_out = bins->subjects.count - MAX_SUBJECTS;
		bins->subjects.count = MAX_SUBJECTS;
	}
}

static void choose_width(struct vp_interval_bins *bins, const struct vp_interval_recording *rec,
			 size_t most)
{
	uint64_t end = 0;
	size_t numbers = bins->subjects.count * (bins->events + 1);
	size_t room = numbers ? most / numbers : 0;

	bins->begin = UINT64_MAX;
	vp_vec_each (&rec->rows, row) {
		bins->begin = row->head.begin < bins->begin ? row->head.begin : bins->begin;
		end = row->head.time > end ? row->head.time : end;
	}
	bins->count = room < MIN_BINS ? MIN_BINS : room > MAX_BINS ? MAX_BINS : (uint32_t)room;
	bins->width = end > bins->begin ? (end - bins->begin) / bins->count + 1 : 1;
}

static void add_value(double *sum, double value)
{
	if (!isnan(value))
		*sum = isnan(*sum) ? value : *sum + value;
}

static void interval_bins_add_row(struct vp_interval_bins *bins,
				  const struct vp_interval_recording *rec,
				  const struct vp_interval_row *row, size_t first)
{
	uint64_t since = row->head.time - bins->begin;
	size_t bin = (size_t)(since / bins->width);
	double *sums = &bins->values.at[first + bin * (bins->events + 1)];

	if (row->head.time < bins->begin || bin >= bins->count)
		return;
	for (size_t i = 0; i < bins->events; i++)
		add_value(&sums[i], vp_interval_estimate(&rec->cells.at[row->cells + i]));
	add_value(&sums[bins->events], (double)(row->head.time - row->head.begin));
}

void vp_interval_bins_make(const struct vp_interval_recording *rec, size_t most,
			   struct vp_interval_bins *ret)
{
	uint32_t *of_row = vp_realloc_array(NULL, rec->rows.count + 1, sizeof(*of_row));
	size_t per_subject, *first;

	*ret = (struct vp_interval_bins){.events = rec->recipe.events.count};
	choose_subjects(ret, rec, of_row);
	choose_width(ret, rec, most);
	per_subject = ret->count * (ret->events + 1);
	first = vp_realloc_array(NULL, ret->texts.strings.count + 1, sizeof(*first));
	memset(first, 0xff, (ret->texts.strings.count + 1) * sizeof(*first));
	for (size_t i = 0; i < ret->subjects.count; i++) {
		ret->subjects.at[i].first = i * per_subject;
		first[ret->subjects.at[i].name] = i * per_subject;
	}
	for (size_t i = 0; i < ret->subjects.count * per_subject; i++)
		vp_vec_push(&ret->values, NAN);
	for (size_t i = 0; i < rec->rows.count; i++)
		if (first[of_row[i]] != SIZE_MAX)
			interval_bins_add_row(ret, rec, &rec->rows.at[i], first[of_row[i]]);
	free(first);
	free(of_row);
}

void vp_interval_bins_deinit(struct vp_interval_bins *bins)
{
	vp_intern_deinit(&bins->texts);
	vp_vec_deinit(&bins->subjects);
	vp_vec_deinit(&bins->values);
}
