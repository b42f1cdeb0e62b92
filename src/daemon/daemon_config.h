/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The configuration of vperfd: a file of sections "[name]" and lines "key = value". */
#ifndef VP_DAEMON_DAEMON_CONFIG_H
#define VP_DAEMON_DAEMON_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/macros.h"

#define VP_DAEMON_CONFIG "/etc/vperf/vperfd.conf"
/* Default of the key account, and of vperf record where it has a choice. */
#define VP_DAEMON_ACCOUNT "sampled"

struct vp_daemon_config {
	/* [store] */
	char *directory;
	uint64_t rotate_ns, rotate_bytes; /* limits at which the next recording starts */
	uint64_t keep_ns, keep_bytes, free_bytes;
	uint64_t spool_bytes; /* maximum size of the spool; 0: no spool */
	/* [record] */
	uint64_t frequency;   /* Hz; 0: no samples */
	uint64_t compression; /* zstd level; 0: uncompressed */
	uint64_t names_ns;    /* maximum time between writes of names; 0: only at the end */
	char *account;        /* "exact", "sampled" or "states" */
	/* [flight] */
	uint64_t flight_bytes; /* 0: no flight recorder */
	char *flight_events;   /* sets of --trace */
	/* [rules] */
	uint64_t rules_ns; /* interval of evaluations; 0: no rules */
	uint64_t least;    /* minimum share of a VM's time, in percent, for a finding to trigger
			      something */
	uint64_t again_ns; /* minimum time between triggers, per rule and VM */
	uint64_t samples_ns, samples_frequency; /* 0: no samples */
	char *ignore;                           /* ids of rules to ignore, separated by blanks */
	/* [http] */
	char *listen;     /* ADDRESS:PORT, or "off" */
	char *web_config; /* file with TLS and users; "": none */
	/* [profiles] */
	char *profiles_url;    /* "off": profiles are not sent */
	char *profiles_format; /* "otlp", "pyroscope" or "parca" */
	char *profiles_ca;     /* file with trusted certificates; "": those of the system */
	char *header_file;     /* file with HTTP headers for the server; "": none */
	uint64_t window_ns;    /* length of a profile */
};

/* Sets the defaults. */
void vp_daemon_config_init(struct vp_daemon_config *config);
void vp_daemon_config_deinit(struct vp_daemon_config *config);
/* Parses `size` bytes of text, overriding defaults. Errors name `path`, the line, the section and
 * the key, with a suggestion for an unknown name. */
struct vp_error *vp_daemon_config_parse(const char *path, const char *text, size_t size,
					struct vp_daemon_config *ret) VP_MUST_CHECK;
/* The same for a file. */
struct vp_error *vp_daemon_config_read(const char *path,
				       struct vp_daemon_config *ret) VP_MUST_CHECK;

#endif
