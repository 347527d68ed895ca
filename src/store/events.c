/* Events: what the core reports is noted in the public request, and handed out from there. A request has a place for
 * each kind of event, so that nothing grows when nobody takes them. */
#include "store/state.h"

#include <sys/eventfd.h>

/* ---- noting (the store's thread; the mutex is held) ---- */

static void note_load(struct fc_load *load, enum fc_event_kind kind, const struct fc_core_load *core_load,
		      uint32_t layer)
{
	load->blocks = core_load->result.blocks;
	switch (kind) {
	case FC_EVENT_LAYER:
		if (layer < load->layers_told)
			load->layers_told = 0; /* it started over */
		load->layers_in_place = layer + 1;
		break;
	case FC_EVENT_READY:
		load->tell_ready = true;
		break;
	case FC_EVENT_LOADED:
		load->tell_loaded = true;
		load->has_ended = true;
		load->result = core_load->result;
		break;
	default:
		break;
	}
}

static void note_save(struct fc_save *save, enum fc_event_kind kind, const struct fc_core_save *core_save)
{
	save->result = core_save->result;
	save->is_saved = true;
	if (kind == FC_EVENT_SAVED) {
		save->tell_saved = true;
		save->is_final = core_save->result.code != FC_OK;
	} else {
		save->tell_durable = true;
		save->is_final = true;
	}
}

void fc_store_on_event(void *context, enum fc_event_kind kind, struct fc_core_load *core_load,
		       struct fc_core_save *core_save, uint32_t layer)
{
	struct fc_store *store = context;
	if (store->remote != NULL)
		fc_report_event(&store->report, kind, core_load, core_save, layer, fc_clock_real_ns());
	struct fc_load *load = core_load == NULL ? NULL : core_load->owner;
	struct fc_save *save = core_save == NULL ? NULL : core_save->owner;
	struct fc_request *request = load != NULL ? &load->request : save != NULL ? &save->request : NULL;
	if (request == NULL)
		return; /* freed by its owner */
	pthread_mutex_lock(&store->mutex);
	if (load != NULL)
		note_load(load, kind, core_load, layer);
	else
		note_save(save, kind, core_save);
	if (!fc_link_is_linked(&request->pending_link))
		fc_list_push(&store->pending, &request->pending_link);
	fc_store_announce(store);
	pthread_mutex_unlock(&store->mutex);
}

/* ---- taking ---- */

static bool take_load_event(struct fc_load *load, struct fc_event *event)
{
	event->load = load;
	event->blocks = load->blocks;
	if (load->layers_told < load->layers_in_place) {
		event->kind = FC_EVENT_LAYER;
		event->layer = load->layers_told++;
	} else if (load->tell_ready) {
		event->kind = FC_EVENT_READY;
		load->tell_ready = false;
	} else if (load->tell_loaded) {
		event->kind = FC_EVENT_LOADED;
		load->tell_loaded = false;
	} else {
		return false;
	}
	return true;
}

static bool take_save_event(struct fc_save *save, struct fc_event *event)
{
	event->save = save;
	if (save->tell_saved) {
		event->kind = FC_EVENT_SAVED;
		save->tell_saved = false;
	} else if (save->tell_durable) {
		event->kind = FC_EVENT_DURABLE;
		save->tell_durable = false;
	} else {
		return false;
	}
	return true;
}

static bool take_event(struct fc_request *request, struct fc_event *event)
{
	*event = (struct fc_event){.user = request->user};
	if (request->is_load)
		return take_load_event(fc_container_of(request, struct fc_load, request), event);
	return take_save_event(fc_container_of(request, struct fc_save, request), event);
}

size_t fc_store_events(struct fc_store *store, struct fc_event *events, size_t event_max)
{
	size_t count = 0;
	if (store == NULL || events == NULL)
		return 0;
	pthread_mutex_lock(&store->mutex);
	while (count < event_max && !fc_list_is_empty(&store->pending)) {
		struct fc_request *request = fc_container_of(store->pending.next, struct fc_request, pending_link);
		if (take_event(request, &events[count]))
			count++;
		else
			fc_list_remove(&request->pending_link);
	}
	eventfd_t value;
	if (fc_list_is_empty(&store->pending))
		(void)eventfd_read(store->event_fd, &value);
	pthread_mutex_unlock(&store->mutex);
	return count;
}

int fc_store_fd(const struct fc_store *store)
{
	return store == NULL ? -1 : store->event_fd;
}
