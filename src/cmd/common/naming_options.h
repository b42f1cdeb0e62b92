/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options for names of code, shared by the commands that resolve them. */
#ifndef VP_CMD_COMMON_NAMING_OPTIONS_H
#define VP_CMD_COMMON_NAMING_OPTIONS_H

#include "analyze/common/naming.h"
#include "base/macros.h"
#include "cmd/common/options.h"

struct vp_naming_words {
	const char *symfs;
	bool no_host_files;
	struct vp_texts guests, kallsyms;
};

#define VP_NAMING_OPTIONS(words)                                                                   \
	{0,                                                                                        \
	 "guest",                                                                                  \
	 VP_OPTION_TEXTS,                                                                          \
	 &(words)->guests,                                                                         \
	 "NAME=FILE",                                                                              \
	 "output of 'vperf-agent dump FILE' in this VM's guest; can be repeated"},                 \
	    {0,                                                                                    \
	     "kallsyms",                                                                           \
	     VP_OPTION_TEXTS,                                                                      \
	     &(words)->kallsyms,                                                                   \
	     "NAME=FILE",                                                                          \
	     "System.map or kallsyms of this VM's guest, or of 'host'; can be repeated"},          \
	    {0,                                                                                    \
	     "symfs",                                                                              \
	     VP_OPTION_TEXT,                                                                       \
	     &(words)->symfs,                                                                      \
	     "DIR",                                                                                \
	     "look for files with symbols under DIR"},                                             \
	{                                                                                          \
		0, "no-host-files", VP_OPTION_FLAG, &(words)->no_host_files, NULL,                 \
		    "use no files of this machine for names, only the recording"                   \
	}

/* Parses the options for the recording in `directory`; NAME=FILE is split in place in argv. */
struct vp_error *vp_naming_words_check(const struct vp_naming_words *words, const char *directory,
				       struct vp_naming_options *ret) VP_MUST_CHECK;
void vp_naming_words_deinit(struct vp_naming_words *words, struct vp_naming_options *options);

#endif
