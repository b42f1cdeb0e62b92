/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "host/domain_file.h"

#include <expat.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "base/macros.h"

enum { PATH_SIZE = 512 };

struct parsing {
	XML_Parser parser;
	struct vp_domain_file *ret;
	char path[PATH_SIZE]; /* of the open elements */
	size_t size;          /* of the path */
	unsigned too_deep;    /* open elements that the path has no space for */
	char *text;           /* field for the text of the open element, or NULL */
	bool has_domain;
};

/* Namespaces, as XML_ParserCreateNS() puts them before names, and their short forms here. */
static const struct {
	const char *uri, *prefix;
} namespaces[] = {
    {"http://openstack.org/xmlns/libvirt/nova/", "nova:"},
    {"http://kubevirt.io", "kubevirt:"},
};

/* Elements with a text, or with an attribute. */
static const struct {
	const char *path, *attribute;
	size_t field;
} elements[] = {
    {"/domain/uuid", NULL, offsetof(struct vp_domain_file, uuid)},
    {"/domain/metadata/nova:instance/nova:name", NULL, offsetof(struct vp_domain_file, title)},
    {"/domain/metadata/nova:instance/nova:owner/nova:project", NULL,
     offsetof(struct vp_domain_file, tenant)},
    {"/domain/metadata/nova:instance/nova:owner/nova:project", "uuid",
     offsetof(struct vp_domain_file, project)},
    {"/domain/metadata/kubevirt:kubevirt/kubevirt:uid", NULL, offsetof(struct vp_domain_file, id)},
};

static void append_text(char *field, const char *text, size_t size)
{
	size_t used = strlen(field), left = VP_DOMAIN_TEXT - 1 - used;

	memcpy(field + used, text, size < left ? size : left);
	field[used + (size < left ? size : left)] = 0;
}

/* "URI local" to "prefix:local"; names of other namespaces get a prefix that matches nothing. */
static void put_name(const char *name, char *ret, size_t size)
{
	const char *blank = strrchr(name, ' ');
	const char *prefix = blank ? "?:" : "";

	for (size_t i = 0; blank && i < VP_ARRAY_SIZE(namespaces); i++)
		if (!strncmp(name, namespaces[i].uri, strlen(namespaces[i].uri)))
			prefix = namespaces[i].prefix;
	snprintf(ret, size, "/%s%s", prefix, blank ? blank + 1 : name);
}

static void take_element(struct parsing *parsing, const char *path, const char **attributes)
{
	for (size_t i = 0; i < VP_ARRAY_SIZE(elements); i++) {
		char *field = (char *)parsing->ret + elements[i].field;
		if (strcmp(path, elements[i].path) != 0 || field[0])
			continue;
		if (!elements[i].attribute)
			parsing->text = field;
		for (const char **at = attributes; elements[i].attribute && *at; at += 2)
			if (!strcmp(at[0], elements[i].attribute))
				append_text(field, at[1], strlen(at[1]));
	}
}

static void XMLCALL on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
	struct parsing *parsing = context;
	char step[PATH_SIZE];

	put_name(name, step, sizeof(step));
	parsing->text = NULL;
	size_t size = strlen(step);
	if (parsing->too_deep || parsing->size + size >= PATH_SIZE) {
		parsing->too_deep++;
		return;
	}
	memcpy(parsing->path + parsing->size, step, size + 1);
	parsing->size += size;
	const char *path = parsing->path;
	if (!strncmp(path, "/domstatus/", 11))
		path += strlen("/domstatus");
	parsing->has_domain |= !strcmp(path, "/domain");
	take_element(parsing, path, attributes);
}

/* A name has no slash. */
static void XMLCALL on_end(void *context, const XML_Char *name)
{
	struct parsing *parsing = context;

	parsing->text = NULL;
	if (parsing->too_deep) {
		parsing->too_deep--;
		return;
	}
	char *slash = strrchr(parsing->path, '/');
	parsing->size = slash ? (size_t)(slash - parsing->path) : 0;
	parsing->path[parsing->size] = 0;
}

static void XMLCALL on_text(void *context, const XML_Char *text, int size)
{
	struct parsing *parsing = context;

	if (parsing->text)
		append_text(parsing->text, text, (size_t)size);
}

/* libvirt writes no document type; entities could make much of little. */
static void XMLCALL on_doctype(void *context, const XML_Char *name, const XML_Char *system,
			       const XML_Char *public, int has_subset)
{
	XML_StopParser(((struct parsing *)context)->parser, XML_FALSE);
}

bool vp_domain_xml_parse(const char *text, size_t size, unsigned long salt,
			 struct vp_domain_file *ret)
{
	struct parsing parsing = {.ret = ret};

	*ret = (struct vp_domain_file){0};
	parsing.parser = XML_ParserCreateNS(NULL, ' ');
	if (!parsing.parser || size > VP_DOMAIN_FILE_MOST) {
		XML_ParserFree(parsing.parser);
		return false;
	}
	XML_SetHashSalt(parsing.parser, salt);
	XML_SetUserData(parsing.parser, &parsing);
	XML_SetElementHandler(parsing.parser, on_start, on_end);
	XML_SetCharacterDataHandler(parsing.parser, on_text);
	XML_SetStartDoctypeDeclHandler(parsing.parser, on_doctype);
	bool ok = XML_Parse(parsing.parser, text, (int)size, XML_TRUE) == XML_STATUS_OK &&
		  parsing.has_domain;
	XML_ParserFree(parsing.parser);
	if (!ok)
		*ret = (struct vp_domain_file){0};
	return ok;
}

/* "uuid=U,base64=1,manufacturer=…" */
static void take_smbios(struct vp_slice value, struct vp_domain_file *ret)
{
	static const char key[] = "uuid=";

	for (size_t i = 0; i + sizeof(key) - 1 <= value.size; i++) {
		size_t from = i + sizeof(key) - 1, to = from;
		if ((i && value.bytes[i - 1] != ',') ||
		    memcmp(value.bytes + i, key, sizeof(key) - 1) != 0)
			continue;
		while (to < value.size && value.bytes[to] != ',')
			to++;
		ret->uuid[0] = 0;
		append_text(ret->uuid, value.bytes + from, to - from);
		return;
	}
}

/* Sections of snapshots follow the present configuration. */
void vp_proxmox_conf_parse(const char *text, size_t size, struct vp_domain_file *ret)
{
	struct vp_cursor cursor = vp_cursor_of(text, size);
	struct vp_slice line;

	*ret = (struct vp_domain_file){0};
	while (vp_cursor_line(&cursor, &line) && !(line.size && line.bytes[0] == '[')) {
		const char *colon = line.size ? memchr(line.bytes, ':', line.size) : NULL;
		if (!colon || line.bytes[0] == '#')
			continue;
		struct vp_slice key = {line.bytes, (size_t)(colon - line.bytes)};
		struct vp_slice value = {colon + 1, line.size - key.size - 1};
		while (value.size && value.bytes[0] == ' ') {
			value.bytes++;
			value.size--;
		}
		if (vp_slice_is(key, "smbios1"))
			take_smbios(value, ret);
		if (vp_slice_is(key, "name")) {
			ret->title[0] = 0;
			append_text(ret->title, value.bytes, value.size);
		}
	}
}
