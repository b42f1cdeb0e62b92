/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fetch/http_fetch.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/confine.h"
#include "base/file.h"
#include "base/io.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/worker_process.h"

/* Time that the process gets in addition to the request's. */
enum { GRACE_SECONDS = 5 };

/* Header of the process's message, followed by the body or an error message. */
struct head {
	uint32_t status; /* 0: no response */
	uint32_t size;
};

struct receiving {
	struct vp_buffer bytes;
	size_t limit;
	bool too_large;
};

static size_t fetch_take(char *bytes, size_t size, size_t count, void *context)
{
	struct receiving *receiving = context;

	receiving->too_large |= receiving->bytes.size + size * count > receiving->limit;
	if (receiving->too_large)
		return 0;
	vp_buffer_append(&receiving->bytes, bytes, size * count);
	return size * count;
}

static void fetch_send(int channel, uint32_t status, const void *bytes, size_t size)
{
	const struct head head = {status, (uint32_t)size};

	if (!vp_fd_write_all(channel, (const char *)&head, sizeof(head)))
		(void)!vp_fd_write_all(channel, bytes, size);
}

static void fetch_fail(int channel, const char *why)
{
	fetch_send(channel, 0, why, strlen(why));
}

static void set_protocols(CURL *curl)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static struct curl_slist *headers_of(const struct vp_fetch *fetch)
{
	/* Disables "Expect: 100-continue", with which curl waits up to a second before sending a
	 * large body. */
	struct curl_slist *list = curl_slist_append(NULL, "Expect:");

	if (fetch->type) {
		VP_AUTO_FREE char *type = vp_format("Content-Type: %s", fetch->type);
		list = curl_slist_append(list, type);
	}
	for (size_t i = 0; i < fetch->n_headers; i++)
		list = curl_slist_append(list, fetch->headers[i]);
	return list;
}

static void set_request(CURL *curl, const struct vp_fetch *fetch, struct receiving *receiving,
			struct curl_slist *headers)
{
	curl_easy_setopt(curl, CURLOPT_URL, fetch->url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "vperf/" VPERF_VERSION);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)fetch->seconds);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, fetch_take);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, receiving);
	if (fetch->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, fetch->ca_file);
	if (fetch->type) {
		curl_easy_setopt(curl, CURLOPT_POST, 1L);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, fetch->body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)fetch->size);
	}
	set_protocols(curl);
}

/* Runs in the confined process. */
static void fetch_work(void *context, int channel)
{
	const struct vp_fetch *fetch = context;
	struct receiving receiving = {.limit = fetch->limit};
	char problem[CURL_ERROR_SIZE] = "";
	long status = 0;

	/* Loads all libraries before the process is confined. */
	CURL *curl = curl_global_init(CURL_GLOBAL_ALL) ? NULL : curl_easy_init();
	struct vp_error *error = vp_confine_to_asking(&channel);
	if (!curl || error) {
		fetch_fail(channel, error ? vp_error_message(error) : "libcurl cannot start");
		vp_error_free(error);
		return;
	}
	set_request(curl, fetch, &receiving, headers_of(fetch));
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
	CURLcode result = curl_easy_perform(curl);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	if (receiving.too_large)
		fetch_fail(channel, "the answer is too large");
	else if (result != CURLE_OK || status <= 0)
		fetch_fail(channel, problem[0] ? problem : curl_easy_strerror(result));
	else
		fetch_send(channel, (uint32_t)status, receiving.bytes.bytes, receiving.bytes.size);
}

static bool fetch_read(int channel, void *bytes, size_t size, uint64_t end)
{
	for (size_t got = 0; got < size;) {
		uint64_t now = vp_clock_monotonic();
		struct pollfd ready = {.fd = channel, .events = POLLIN};
		if (now >= end || vp_poll(&ready, 1, (int)((end - now) / 1000000) + 1) <= 0)
			return false;
		ssize_t more = vp_read(channel, (char *)bytes + got, size - got);
		if (more <= 0)
			return false;
		got += (size_t)more;
	}
	return true;
}

static struct vp_error *fetch_receive(const struct vp_fetch *fetch, int channel, unsigned *status,
				      struct vp_buffer *answer)
{
	uint64_t end =
	    vp_clock_monotonic() + (fetch->seconds + GRACE_SECONDS) * UINT64_C(1000000000);
	struct head head;
	size_t before = answer->size;

	if (!fetch_read(channel, &head, sizeof(head), end) ||
	    head.size > fetch->limit + CURL_ERROR_SIZE + VP_FETCH_HEADERS_SIZE)
		return vp_error_new("%s: no answer", fetch->url);
	void *room = vp_buffer_extend(answer, head.size);
	if (head.size && !fetch_read(channel, room, head.size, end))
		return vp_error_new("%s: the answer is cut off", fetch->url);
	*status = head.status;
	if (head.status)
		return NULL;
	VP_AUTO_FREE char *why = vp_text_cleaned(vp_buffer_text(answer) + before);
	answer->size = before;
	return vp_error_new("%s: %s", fetch->url, why);
}

struct vp_error *vp_fetch(const struct vp_fetch *fetch, unsigned *status, struct vp_buffer *answer)
{
	struct vp_worker_process worker;

	VP_TRY(vp_worker_process_start(SOCK_STREAM, fetch_work, (void *)fetch, &worker));
	struct vp_error *error = fetch_receive(fetch, worker.channel, status, answer);
	vp_worker_process_end(&worker);
	return error;
}

struct vp_error *vp_fetch_headers(const char *path, struct vp_buffer *text, const char ***ret,
				  size_t *count)
{
	VP_VEC(const char *) lines = {0};
	unsigned number = 0;

	VP_TRY(vp_file_read(path, VP_FETCH_HEADERS_SIZE, text));
	(void)vp_buffer_text(text);
	for (char *line = text->bytes, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = 0;
		line[strcspn(line, "\r")] = 0;
		number++;
		if (!*line || *line == '#')
			continue;
		if (!strchr(line, ':') || !vp_text_is_clean(line)) {
			vp_vec_deinit(&lines);
			return vp_error_new("%s:%u: expected a header such as 'X-Scope-OrgID: a'",
					    path, number);
		}
		vp_vec_push(&lines, line);
	}
	*ret = lines.at;
	*count = lines.count;
	return NULL;
}
