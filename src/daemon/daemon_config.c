/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/daemon_config.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/report/diagnose_rules.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/text.h"
#include "schema/account_grade.h"
#include "schema/trace_event.h"

enum { FILE_LIMIT = 1 << 20 };

#define SECOND 1000000000ULL
#define DAY (24 * 3600 * SECOND)
#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define TIB (1ULL << 40)

enum value_type { DURATION, SIZE, NUMBER, TEXT };

/* A key, and its valid values. "off" is stored as 0. */
struct key {
	const char *section, *name;
	enum value_type type;
	size_t offset; /* in the configuration */
	uint64_t least, most;
	bool may_be_off;
	/* The mistake in a text, or NULL. */
	char *(*wrong)(const char *text);
};

/* "expected …, not 'TEXT' (did you mean …?)" */
static char *not_one_of(const char *text, const char *names)
{
	struct vp_nearest nearest;

	vp_nearest_init(&nearest, (struct vp_slice){text, strlen(text)});
	vp_nearest_add_words(&nearest, names);
	VP_AUTO_FREE char *hint = vp_nearest_text(&nearest);
	return vp_format("expected %s, not '%s'%s", names, text, hint);
}

static char *wrong_path(const char *text)
{
	return text[0] == '/' ? NULL : vp_format("expected an absolute path, not '%s'", text);
}

static char *wrong_account(const char *text)
{
	enum vp_account_grade grade;

	return vp_account_grade_parse(text, &grade) ? NULL
						    : not_one_of(text, "exact, sampled or states");
}

static char *wrong_events(const char *text)
{
	unsigned sets;
	VP_AUTO_ERROR struct vp_error *error = vp_trace_sets_parse(text, &sets);

	return error ? vp_strdup(vp_error_message(error)) : NULL;
}

static bool is_rule(const char *id)
{
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rules[i].id, id))
			return true;
	return false;
}

static char *no_such_rule(const char *id)
{
	struct vp_nearest nearest;
	size_t count;
	const struct vp_rule *rules = vp_rules(&count);

	vp_nearest_init(&nearest, (struct vp_slice){id, strlen(id)});
	for (size_t i = 0; i < count; i++)
		vp_nearest_add(&nearest, rules[i].id);
	VP_AUTO_FREE char *hint = vp_nearest_text(&nearest);
	return vp_format("there is no rule '%s'%s: vperf-diagnose(1) lists them", id, hint);
}

static char *wrong_rules(const char *text)
{
	VP_AUTO_FREE char *words = vp_strdup(text);
	char *rest = NULL;

	for (char *word = strtok_r(words, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
		if (!is_rule(word))
			return no_such_rule(word);
	return NULL;
}

/* Whether it is an address in numbers; an IPv6 one is in brackets. */
static bool is_address(const char *text, size_t size)
{
	unsigned char address[sizeof(struct in6_addr)];
	bool in_brackets = size > 2 && text[0] == '[' && text[size - 1] == ']';
	VP_AUTO_FREE char *host =
	    in_brackets ? vp_strndup(text + 1, size - 2) : vp_strndup(text, size);

	return !size || inet_pton(in_brackets ? AF_INET6 : AF_INET, host, address) == 1;
}

/* ADDRESS:PORT, both in numbers. */
static char *wrong_listen(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;

	if (digits && digits <= 5 && !colon[1 + digits] && atoi(colon + 1) <= UINT16_MAX &&
	    is_address(text, (size_t)(colon - text)))
		return NULL;
	return vp_format("expected a numeric address and a port, such as 127.0.0.1:9757 or "
			 "[::1]:9757, or off, not '%s'",
			 text);
}

static char *wrong_url(const char *text)
{
	return strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0
		   ? vp_format("expected http://..., https://... or off, not '%s'", text)
		   : NULL;
}

static char *wrong_profiles_format(const char *text)
{
	return strcmp(text, "otlp") != 0 && strcmp(text, "pyroscope") != 0 &&
		       strcmp(text, "parca") != 0
		   ? not_one_of(text, "otlp, pyroscope or parca")
		   : NULL;
}

#define KEY(section, name, type, field, ...)                                                       \
	{                                                                                          \
		section, name, type, offsetof(struct vp_daemon_config, field), __VA_ARGS__         \
	}

static const struct key keys[] = {
    KEY("store", "directory", TEXT, directory, 0, 0, false, wrong_path),
    KEY("store", "rotate-every", DURATION, rotate_ns, 10 * SECOND, 7 * DAY, false),
    KEY("store", "rotate-size", SIZE, rotate_bytes, MIB, TIB, false),
    KEY("store", "keep-for", DURATION, keep_ns, 60 * SECOND, 3660 * DAY, true),
    KEY("store", "keep-size", SIZE, keep_bytes, 2 * MIB, 1024 * TIB, true),
    KEY("store", "keep-free", SIZE, free_bytes, MIB, 1024 * TIB, true),
    KEY("store", "spool-size", SIZE, spool_bytes, MIB, 1024 * TIB, true),
    KEY("record", "frequency", NUMBER, frequency, 1, 10000, true),
    KEY("record", "compression", NUMBER, compression, 1, 22, true),
    KEY("record", "names-every", DURATION, names_ns, 15 * SECOND, DAY, true),
    KEY("record", "account", TEXT, account, 0, 0, false, wrong_account),
    KEY("flight", "size", SIZE, flight_bytes, MIB, TIB, true),
    KEY("flight", "events", TEXT, flight_events, 0, 0, false, wrong_events),
    KEY("rules", "every", DURATION, rules_ns, SECOND, 3600 * SECOND, true),
    KEY("rules", "least", NUMBER, least, 1, 100, false),
    KEY("rules", "again-after", DURATION, again_ns, SECOND, 30 * DAY, false),
    KEY("rules", "samples", DURATION, samples_ns, SECOND, 3600 * SECOND, true),
    KEY("rules", "samples-frequency", NUMBER, samples_frequency, 1, 100000, false),
    KEY("rules", "ignore", TEXT, ignore, 0, 0, false, wrong_rules),
    KEY("http", "listen", TEXT, listen, 0, 0, true, wrong_listen),
    KEY("http", "web-config", TEXT, web_config, 0, 0, false, wrong_path),
    KEY("profiles", "url", TEXT, profiles_url, 0, 0, true, wrong_url),
    KEY("profiles", "format", TEXT, profiles_format, 0, 0, false, wrong_profiles_format),
    KEY("profiles", "ca-file", TEXT, profiles_ca, 0, 0, false, wrong_path),
    KEY("profiles", "header-file", TEXT, header_file, 0, 0, false, wrong_path),
    KEY("profiles", "window", DURATION, window_ns, 10 * SECOND, DAY, false),
};

void vp_daemon_config_init(struct vp_daemon_config *config)
{
	*config = (struct vp_daemon_config){
	    .directory = vp_strdup("/var/lib/vperf"),
	    .rotate_ns = 3600 * SECOND,
	    .rotate_bytes = GIB,
	    .keep_ns = 7 * DAY,
	    .keep_bytes = 20 * GIB,
	    .free_bytes = 2 * GIB,
	    .frequency = 19,
	    .compression = 1,
	    .names_ns = 600 * SECOND,
	    .account = vp_strdup(VP_DAEMON_ACCOUNT),
	    .flight_events = vp_strdup("sched,kvm,irq"),
	    .rules_ns = 5 * SECOND,
	    .least = 10,
	    .again_ns = 1800 * SECOND,
	    .samples_ns = 60 * SECOND,
	    .samples_frequency = 997,
	    .ignore = vp_strdup(""),
	    .listen = vp_strdup("127.0.0.1:9757"),
	    .web_config = vp_strdup(""),
	    .profiles_url = vp_strdup("off"),
	    .profiles_format = vp_strdup("otlp"),
	    .profiles_ca = vp_strdup(""),
	    .header_file = vp_strdup(""),
	    .window_ns = 300 * SECOND,
	};
}

static char **daemon_config_text(struct vp_daemon_config *config, const struct key *key)
{
	return (char **)((char *)config + key->offset);
}

void vp_daemon_config_deinit(struct vp_daemon_config *config)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (keys[i].type == TEXT) {
			char **text = daemon_config_text(config, &keys[i]);
			free(*text);
			*text = NULL;
		}
}

/* Position of the parser. */
struct place {
	const char *path;
	size_t line;
	char *section;                     /* current section; NULL: none yet */
	size_t lines[VP_ARRAY_SIZE(keys)]; /* of each key; 0: not given */
};

static struct vp_slice trimmed(struct vp_slice text)
{
	static const char blanks[] = " \t\r";

	while (text.size && strchr(blanks, text.bytes[0])) {
		text.bytes++;
		text.size--;
	}
	while (text.size && strchr(blanks, text.bytes[text.size - 1]))
		text.size--;
	return text;
}

/* A word of the file, cleaned for error messages. */
static char *shown(struct vp_slice word)
{
	struct vp_buffer clean = {0};

	vp_text_clean(word.bytes, word.size < 200 ? word.size : 200, &clean);
	char *text = vp_strdup(vp_buffer_text(&clean));
	vp_buffer_deinit(&clean);
	return text;
}

static bool is_section(const char *name)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, name))
			return true;
	return false;
}

static struct vp_error *take_section(struct place *place, struct vp_slice line)
{
	struct vp_nearest nearest;

	if (line.size < 2 || line.bytes[line.size - 1] != ']') {
		VP_AUTO_FREE char *text = shown(line);
		return vp_error_new("%s:%zu: expected [SECTION], not '%s'", place->path,
				    place->line, text);
	}
	struct vp_slice word = trimmed((struct vp_slice){line.bytes + 1, line.size - 2});
	free(place->section);
	place->section = shown(word);
	if (is_section(place->section))
		return NULL;
	vp_nearest_init(&nearest, word);
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (!i || strcmp(keys[i].section, keys[i - 1].section) != 0)
			vp_nearest_add(&nearest, keys[i].section);
	VP_AUTO_FREE char *hint = vp_nearest_text(&nearest);
	return vp_error_new("%s:%zu: there is no section [%s]%s: expected store, record, flight, "
			    "rules, http or profiles",
			    place->path, place->line, place->section, hint);
}

static struct vp_error *unknown_key(const struct place *place, struct vp_slice word)
{
	VP_AUTO_FREE char *name = shown(word);
	struct vp_nearest nearest;

	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (vp_slice_is(word, keys[i].name))
			return vp_error_new("%s:%zu: key '%s' is of section [%s], not [%s]",
					    place->path, place->line, name, keys[i].section,
					    place->section);
	vp_nearest_init(&nearest, word);
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, place->section))
			vp_nearest_add(&nearest, keys[i].name);
	VP_AUTO_FREE char *hint = vp_nearest_text(&nearest);
	return vp_error_new("%s:%zu: section [%s] has no key '%s'%s", place->path, place->line,
			    place->section, name, hint);
}

struct unit {
	const char *name;
	uint64_t factor;
};
static const struct unit durations[] = {
    {"ms", 1000000},      {"s", SECOND}, {"m", 60 * SECOND}, {"min", 60 * SECOND},
    {"h", 3600 * SECOND}, {"d", DAY},    {NULL, 0}};
static const struct unit sizes[] = {{"B", 1},   {"K", 1024}, {"M", MIB},
				    {"G", GIB}, {"T", TIB},  {NULL, 0}};
static const struct unit numbers[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(enum value_type type)
{
	return type == DURATION ? durations : type == SIZE ? sizes : numbers;
}

/* Parses an integer with its unit. */
static bool read_amount(struct vp_slice word, const struct unit *units, uint64_t *ret)
{
	uint64_t number = 0;
	size_t digits = 0;

	for (; digits < word.size && word.bytes[digits] >= '0' && word.bytes[digits] <= '9';
	     digits++)
		if (__builtin_mul_overflow(number, 10ULL, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(word.bytes[digits] - '0'), &number))
			return false;
	struct vp_slice unit = trimmed((struct vp_slice){word.bytes + digits, word.size - digits});
	for (; digits && units->name; units++)
		if (vp_slice_is(unit, units->name))
			return !__builtin_mul_overflow(number, units->factor, ret);
	return false;
}

static void put_amount(const struct unit *units, uint64_t amount, struct vp_buffer *out)
{
	const struct unit *best = units;

	for (; units->name; units++)
		if (amount % units->factor == 0 && units->factor > best->factor)
			best = units;
	vp_buffer_printf(out, "%" PRIu64 "%s", amount / best->factor, best->name);
}

static struct vp_error *wrong_value(const struct place *place, const struct key *key,
				    struct vp_slice value)
{
	static const char *const kinds[] = {"a time such as 30s, 10m, 1h or 7d",
					    "a size such as 512M or 10G", "a number", ""};
	VP_AUTO_FREE char *text = shown(value);
	struct vp_buffer range = {0};

	put_amount(units_of(key->type), key->least, &range);
	vp_buffer_string(&range, " to ");
	put_amount(units_of(key->type), key->most, &range);
	struct vp_error *error =
	    vp_error_new("%s:%zu: key '%s' in [%s]: expected %s, %s%s, not '%s'", place->path,
			 place->line, key->name, key->section, kinds[key->type],
			 vp_buffer_text(&range), key->may_be_off ? ", or off" : "", text);
	vp_buffer_deinit(&range);
	return error;
}

static struct vp_error *set_text(const struct place *place, const struct key *key,
				 struct vp_slice value, char **ret)
{
	free(*ret);
	*ret = vp_strndup(value.bytes, value.size);
	if (strlen(*ret) != value.size || !vp_text_is_clean(*ret))
		return vp_error_new("%s:%zu: key '%s' in [%s]: the value has characters that are "
				    "not text",
				    place->path, place->line, key->name, key->section);
	if (!key->wrong || (key->may_be_off && !strcmp(*ret, "off")) ||
	    (!value.size && key->wrong == wrong_path && strcmp(key->name, "directory") != 0))
		return NULL;
	VP_AUTO_FREE char *wrong = key->wrong(*ret);
	return wrong ? vp_error_new("%s:%zu: key '%s' in [%s]: %s", place->path, place->line,
				    key->name, key->section, wrong)
		     : NULL;
}

static struct vp_error *set_value(const struct place *place, const struct key *key,
				  struct vp_slice value, struct vp_daemon_config *config)
{
	uint64_t amount = 0;

	if (key->type == TEXT)
		return set_text(place, key, value, daemon_config_text(config, key));
	bool off = vp_slice_is(value, "off");
	if (off ? !key->may_be_off
		: !read_amount(value, units_of(key->type), &amount) || amount < key->least ||
		      amount > key->most)
		return wrong_value(place, key, value);
	memcpy((char *)config + key->offset, &amount, sizeof(amount));
	return NULL;
}

/* A key may be given once. */
static struct vp_error *note_line(struct place *place, size_t index)
{
	size_t before = place->lines[index];

	place->lines[index] = place->line;
	return before ? vp_error_new("%s:%zu: key '%s' in [%s] is given twice, before in line %zu",
				     place->path, place->line, keys[index].name,
				     keys[index].section, before)
		      : NULL;
}

static struct vp_error *take_assignment(struct place *place, struct vp_slice line,
					struct vp_daemon_config *config)
{
	const char *equals = memchr(line.bytes, '=', line.size);

	if (!equals) {
		VP_AUTO_FREE char *text = shown(line);
		return vp_error_new("%s:%zu: expected KEY = VALUE, not '%s'", place->path,
				    place->line, text);
	}
	struct vp_slice name =
	    trimmed((struct vp_slice){line.bytes, (size_t)(equals - line.bytes)});
	struct vp_slice value =
	    trimmed((struct vp_slice){equals + 1, line.size - (size_t)(equals + 1 - line.bytes)});
	if (!place->section) {
		VP_AUTO_FREE char *text = shown(name);
		return vp_error_new("%s:%zu: key '%s' before the first [SECTION]", place->path,
				    place->line, text);
	}
	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i].section, place->section) && vp_slice_is(name, keys[i].name)) {
			VP_TRY(note_line(place, i));
			return set_value(place, &keys[i], value, config);
		}
	return unknown_key(place, name);
}

/* The later line of two keys, of which at least one is given. */
static size_t line_of(const struct place *place, const char *one, const char *other)
{
	size_t ret = 0;

	for (size_t i = 0; i < VP_ARRAY_SIZE(keys); i++)
		if ((!strcmp(keys[i].name, one) || !strcmp(keys[i].name, other)) &&
		    place->lines[i] > ret)
			ret = place->lines[i];
	return ret;
}

/* Checks keys that depend on each other. */
static struct vp_error *check_all(const struct place *place, const struct vp_daemon_config *config)
{
	if (!strcmp(config->account, "states") && !config->frequency)
		return vp_error_new("%s:%zu: 'account = states' in [record] needs samples: "
				    "expected a frequency",
				    place->path, line_of(place, "account", "frequency"));
	/* The open recording cannot be removed: rotate-size must leave enough other recordings to
	 * remove. */
	if (config->keep_bytes && config->rotate_bytes > config->keep_bytes / 2)
		return vp_error_new("%s:%zu: key 'rotate-size' in [store]: expected at most half "
				    "of keep-size",
				    place->path, line_of(place, "rotate-size", "keep-size"));
	return NULL;
}

static struct vp_error *take_line(struct place *place, struct vp_slice line,
				  struct vp_daemon_config *config)
{
	line = trimmed(line);
	if (!line.size || line.bytes[0] == '#' || line.bytes[0] == ';')
		return NULL;
	if (line.bytes[0] == '[')
		return take_section(place, line);
	return take_assignment(place, line, config);
}

struct vp_error *vp_daemon_config_parse(const char *path, const char *text, size_t size,
					struct vp_daemon_config *ret)
{
	struct vp_cursor cursor = vp_cursor_of(text, size);
	struct place place = {.path = path};
	struct vp_error *error = NULL;
	struct vp_slice line;

	vp_daemon_config_init(ret);
	vp_cursor_skip_mark(&cursor);
	while (!error && vp_cursor_line(&cursor, &line)) {
		place.line++;
		error = take_line(&place, line, ret);
	}
	free(place.section);
	if (!error)
		error = check_all(&place, ret);
	if (error)
		vp_daemon_config_deinit(ret);
	return error;
}

struct vp_error *vp_daemon_config_read(const char *path, struct vp_daemon_config *ret)
{
	struct vp_buffer text = {0};
	struct vp_error *error = vp_file_read(path, FILE_LIMIT, &text);

	if (!error)
		error = vp_daemon_config_parse(path, text.bytes, text.size, ret);
	vp_buffer_deinit(&text);
	return error;
}
