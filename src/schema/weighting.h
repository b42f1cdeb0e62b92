/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef VP_SCHEMA_WEIGHTING_H
#define VP_SCHEMA_WEIGHTING_H

/* The weight of a sample. */
enum vp_weighting {
	VP_WEIGHTING_TICKS, /* 1: a tick of a clock */
	VP_WEIGHTING_TIME,  /* ns since the previous sample of its pCPU */
	VP_WEIGHTING_EVENTS /* events of the trigger that it stands for: its period */
};

#endif
