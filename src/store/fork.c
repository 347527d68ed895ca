#include "store/fork.h"

#include "media/memory.h"
#include "media/ssd.h"
#include "store/state.h"

#include <pthread.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER; /* the list */
static struct fc_link stores = {&stores, &stores};

static void prepare(void)
{
	pthread_mutex_lock(&registry);
	fc_list_for_each(link, &stores)
	{
		struct fc_store *store = fc_container_of(link, struct fc_store, fork_link);
		pthread_mutex_lock(&store->descriptors);
		pthread_mutex_lock(&store->mutex);
	}
}

static void go_on(struct fc_store *store)
{
	pthread_mutex_unlock(&store->mutex);
	pthread_mutex_unlock(&store->descriptors);
}

static void in_parent(void)
{
	fc_list_for_each(link, &stores)
	{
		go_on(fc_container_of(link, struct fc_store, fork_link));
	}
	pthread_mutex_unlock(&registry);
}

static void close_descriptor(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Media are not closed, which would wait for threads that are not here: their descriptors are. */
static void abandon(struct fc_store *store)
{
	if (store->media[FC_MEMORY] != NULL)
		fc_memory_abandon(store->media[FC_MEMORY]);
	if (store->media[FC_SSD] != NULL)
		fc_ssd_abandon(store->media[FC_SSD]);
	if (store->remote != NULL)
		fc_remote_abandon(store->remote);
	close_descriptor(&store->wake_fd);
	close_descriptor(&store->event_fd);
	store->is_inherited = store->has_ended = true;
	/* Whoever waited for it is not here. */
	(void)pthread_cond_init(&store->changed, NULL);
}

static void in_child(void)
{
	struct fc_link *link;
	while ((link = fc_list_pop(&stores)) != NULL) {
		struct fc_store *store = fc_container_of(link, struct fc_store, fork_link);
		abandon(store);
		go_on(store);
	}
	pthread_mutex_unlock(&registry);
}

static void install(void)
{
	(void)pthread_atfork(prepare, in_parent, in_child); /* without memory for it children keep what they inherit */
}

void fc_fork_watch(struct fc_store *store)
{
	(void)pthread_once(&once, install);
	pthread_mutex_lock(&registry);
	fc_list_push(&stores, &store->fork_link);
	pthread_mutex_unlock(&registry);
}

void fc_fork_unwatch(struct fc_store *store)
{
	pthread_mutex_lock(&registry);
	fc_list_remove(&store->fork_link);
	pthread_mutex_unlock(&registry);
}

int fc_fork_refuse(const struct fc_store *store, const char *what, struct fc_error *error)
{
	if (store->is_inherited)
		return fc_error_set(error, FC_ECANCELED,
				    "%s: the store was opened by the parent of this process, and does not live on in a "
				    "child that was forked; open one here",
				    what);
	return fc_error_set(error, FC_ECANCELED, "%s: the store is being closed", what);
}
