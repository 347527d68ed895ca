/* What the daemon stands on: arenas, locks, core, server; opened in this order, and closed in reverse. */
#include "daemon/daemon.h"

#include "base/check.h"
#include "device/host.h"
#include "host/alloc.h"
#include "host/random_bits.h"
#include "media/ssd.h"
#include "store/arenas.h"
#include "store/core_opts.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define OWN_DESCRIPTORS 64u
#define PAGES_BYTES_PER_S (256ull << 20) /* that a slow machine clears */

int fc_daemon_make_parent(const char *path, struct fc_error *error)
{
	char *copy = strdup(path);
	if (copy == NULL)
		return fc_error_set(error, FC_ENOMEM, "%s: no memory", path);
	const char *parent = dirname(copy);
	int code = FC_OK;
	if (mkdir(parent, 0700) != 0 && errno != EEXIST)
		code = fc_error_set(error, FC_ESYSTEM, "%s: mkdir: %s", parent, strerror(errno));
	free(copy);
	return code;
}

/* A client costs one descriptor and, while it is let in, three more for a moment. The soft limit is ours to raise. */
static void make_room_for_descriptors(const struct fc_config *config)
{
	struct rlimit limit;
	uint64_t wanted = config->clients_max + 2 * config->http_connections_max + OWN_DESCRIPTORS;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = fc_min_u64(limit.rlim_max, wanted);
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
		fc_log(FC_LOG_WARNING, "fallback",
		       "%llu descriptors may be open (RLIMIT_NOFILE), clients_max and http_connections need %llu: when "
		       "none is left, who connects is turned away",
		       (unsigned long long)limit.rlim_cur, (unsigned long long)wanted);
}

/* Every page of a memory arena is taken before it is used, which takes its time. */
static void ask_for_time(const struct fc_daemon *daemon, uint64_t memory_bytes)
{
	fc_notify_extend(&daemon->notify, (60 + memory_bytes / PAGES_BYTES_PER_S) * 1000000000ull);
}

static int open_arenas(struct fc_daemon *daemon, struct fc_error *error)
{
	const struct fc_store_opts *store = &daemon->settings->store;
	struct fc_arenas_opts arenas = {
		.geometry = &daemon->settings->geometry,
		.memory_bytes = store->memory_bytes,
		.ssd_bytes = store->ssd_bytes,
		.memory_path = store->memory_path,
		.ssd_path = store->ssd_path,
		.queue_depth = store->queue_depth,
		.transfer_bytes = store->transfer_bytes,
	};
	int code = FC_OK;
	ask_for_time(daemon, arenas.memory_bytes);
	if (arenas.ssd_bytes > 0)
		code = fc_daemon_make_parent(arenas.ssd_path, error);
	if (code == FC_OK && arenas.memory_bytes > 0)
		code = fc_daemon_make_parent(arenas.memory_path, error);
	if (code == FC_OK)
		code = fc_arenas_open(daemon->media, &arenas, error);
	return code;
}

static int open_locks(struct fc_daemon *daemon, struct fc_error *error)
{
	const char *path = daemon->settings->config.lock_path;
	int arena_fd = daemon->media[FC_SSD] == NULL ? -1 : fc_ssd_fd(daemon->media[FC_SSD]);
	int code = fc_daemon_make_parent(path, error);
	return code == FC_OK ? fc_locks_open(&daemon->locks, path, arena_fd, error) : code;
}

/* ---- namespaces ---- */

static int make_namespaces(struct fc_daemon *daemon, struct fc_error *error)
{
	const struct fc_config *config = &daemon->settings->config;
	size_t count = config->namespace_count;
	daemon->owners = calloc(count + 1, sizeof(*daemon->owners));
	daemon->namespaces = calloc(count + 1, sizeof(*daemon->namespaces));
	daemon->ids = calloc(2 * (count + 1), sizeof(*daemon->ids));
	if (daemon->owners == NULL || daemon->namespaces == NULL || daemon->ids == NULL)
		return fc_error_set(error, FC_ENOMEM, "namespaces: no memory");
	daemon->owner_count = (uint32_t)count;
	/* Of names that are taken as they come, the one that is known before. */
	if (count == 0 && !config->has_namespaces)
		daemon->owners[daemon->owner_count++].tag = fc_server_namespace_tag("");
	for (size_t i = 0; i < count; i++) {
		const struct fc_config_namespace *from = &config->namespaces[i];
		uint32_t *ids = &daemon->ids[2 * i];
		ids[0] = (uint32_t)from->uid;
		ids[1] = (uint32_t)from->gid;
		daemon->owners[i].tag = fc_server_namespace_tag(from->name);
		daemon->owners[i].name = from->name;
		daemon->owners[i].bytes_max = from->quota_bytes;
		daemon->namespaces[i] = (struct fc_server_namespace_opts){
			.name = from->name,
			.uids = &ids[0],
			.uid_count = from->uid != FC_CONFIG_ANYBODY,
			.gids = &ids[1],
			.gid_count = from->gid != FC_CONFIG_ANYBODY,
		};
		for (size_t j = 0; j < i; j++)
			if (daemon->owners[j].tag == daemon->owners[i].tag)
				return fc_error_set(
					error, FC_EINVAL,
					"namespaces: \"%s\" and \"%s\" have the same 16-bit tag (%04x); one "
					"of them needs another name",
					daemon->namespaces[j].name, from->name, daemon->owners[i].tag);
	}
	return FC_OK;
}

/* ---- core and server ---- */

static void on_core_event(void *context, enum fc_event_kind kind, struct fc_core_load *load, struct fc_core_save *save,
			  uint32_t layer)
{
	/* The daemon submits no loads or saves to its own core, and only those have events. */
	(void)context;
	(void)kind;
	(void)load;
	(void)save;
	(void)layer;
}

static int open_core(struct fc_daemon *daemon, struct fc_error *error)
{
	struct fc_core_opts opts;
	int code = fc_store_core_opts(&opts, &daemon->settings->store, daemon->media, &daemon->alloc, error);
	if (code != FC_OK)
		return code;
	opts.catalog.owners = daemon->owners;
	opts.catalog.owner_count = daemon->owner_count;
	opts.device = daemon->device;
	/* What moves bytes here is spilling, one segment at a time. */
	opts.load_streams = opts.save_streams = opts.requests_max = 1;
	opts.is_ssd_shared = true;
	opts.event_cb = on_core_event;
	opts.context = daemon;
	return fc_core_open(&daemon->core, &opts, fc_daemon_on_opened, error);
}

void fc_daemon_hint(const struct fc_daemon *daemon, int code)
{
	const struct fc_config *config = &daemon->settings->config;
	if (code == FC_EGEOMETRY || code == FC_EFORMAT)
		fc_log(FC_LOG_ERROR, "hint",
		       "what is there does not belong to these settings: an arena may be another daemon's, also when "
		       "that is not running. Give this one files of its own (ssd_path is %s, memory_path is %s), or "
		       "the model, scale and block_tokens that the arenas were made with",
		       config->ssd_path, config->memory_path);
}

int fc_daemon_open(struct fc_daemon *daemon, struct fc_error *error)
{
	daemon->alloc = fc_alloc_system();
	make_room_for_descriptors(&daemon->settings->config);
	int code = fc_random_bits(&daemon->instance, sizeof(daemon->instance), error);
	if (code == FC_OK)
		code = make_namespaces(daemon, error);
	if (code == FC_OK)
		code = fc_device_host(&daemon->device, error);
	if (code == FC_OK)
		code = open_arenas(daemon, error);
	if (code == FC_OK)
		code = open_locks(daemon, error);
	if (code == FC_OK)
		code = open_core(daemon, error);
	return code;
}

static struct fc_uuid store_uuid(const struct fc_daemon *daemon)
{
	const struct fc_catalog *catalog = fc_core_catalog(daemon->core);
	const struct fc_superblock *superblock = fc_catalog_superblock(catalog, FC_SSD);
	if (superblock == NULL)
		superblock = fc_catalog_superblock(catalog, FC_MEMORY);
	fc_check(superblock != NULL);
	return superblock->uuid;
}

int fc_daemon_open_server(struct fc_daemon *daemon, struct fc_error *error)
{
	const struct fc_config *config = &daemon->settings->config;
	struct fc_server_opts opts = {
		.alloc = &daemon->alloc,
		.clock = fc_clock_real(),
		.core = daemon->core,
		.geometry = &daemon->settings->geometry,
		.media = {daemon->media[FC_MEMORY], daemon->media[FC_SSD]},
		.instance = daemon->instance,
		.store = store_uuid(daemon),
		.namespaces = daemon->namespaces,
		.namespace_count = (uint32_t)config->namespace_count,
		.is_closed = config->has_namespaces,
		.is_fenced = true,
		.has_output = fc_daemon_has_output,
		.wants_close = fc_daemon_wants_close,
		.event = fc_daemon_on_event,
		.context = daemon,
	};
	fc_server_limits_init(&opts.limits);
	opts.limits.clients_max = (uint32_t)config->clients_max;
	opts.limits.requests_max = (uint32_t)config->requests_max;
	opts.limits.reserved_bytes_max = config->reserved_bytes_max;
	opts.limits.reserved_share = config->reserved_share;
	opts.limits.reserved_old_ns = config->reserved_old_ns;
	opts.limits.unsent_bytes_max = config->unsent_bytes_max;
	opts.limits.hello_timeout_ns = config->hello_timeout_ns;
	opts.limits.lease_timeout_ns = config->lease_timeout_ns;
	opts.limits.io_timeout_ns = config->io_timeout_ns;
	return fc_server_open(&daemon->server, &opts, error);
}

void fc_daemon_close(struct fc_daemon *daemon)
{
	fc_server_free(daemon->server);
	fc_daemon_forget_connections(daemon);
	fc_core_free(daemon->core);
	fc_daemon_close_arena(daemon);
	fc_locks_close(daemon->locks);
	for (int medium = 0; medium < FC_MEDIUM_COUNT; medium++)
		fc_media_close(daemon->media[medium]);
	fc_device_close(daemon->device);
	free(daemon->owners);
	free(daemon->namespaces);
	free(daemon->ids);
}
