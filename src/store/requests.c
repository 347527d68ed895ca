/* Public loads and saves: each is a small struct of the caller's that follows a request of the core's. */
#include "store/state.h"

#include "base/check.h"
#include "store/fork.h"

#include <stdlib.h>
#include <string.h>

/* ---- where the engine's KV lies ---- */

/* From the base to the last byte of the last piece of the last slot, in numbers that an address can be. */
static int check_reach(const struct fc_paged_layer *paged, uint64_t piece_bytes, uint32_t group, uint32_t layer,
		       struct fc_error *error)
{
	uint64_t slots_bytes, pieces_bytes, end;
	if (!fc_mul_overflows(paged->slot_count - 1, paged->slot_stride_bytes, &slots_bytes) &&
	    !fc_mul_overflows(paged->piece_count - 1, paged->piece_stride_bytes, &pieces_bytes) &&
	    !fc_add_overflows(slots_bytes, pieces_bytes, &end) && !fc_add_overflows(end, piece_bytes, &end) &&
	    !fc_add_overflows(end, (uintptr_t)paged->base, &end) && end <= UINTPTR_MAX)
		return FC_OK;
	return fc_error_set(error, FC_EINVAL,
			    "kv: group %u layer %u: %llu slots %llu bytes apart, of %u pieces %llu bytes apart, end "
			    "behind the last address",
			    group, layer, (unsigned long long)paged->slot_count,
			    (unsigned long long)paged->slot_stride_bytes, paged->piece_count,
			    (unsigned long long)paged->piece_stride_bytes);
}

static int check_layer(const struct fc_geometry *geometry, uint32_t group, uint32_t layer,
		       const struct fc_paged_layer *paged, struct fc_error *error)
{
	uint64_t slice_bytes = geometry->groups[group].slice_bytes[layer];
	if (paged->base == NULL || paged->slot_count == 0)
		return fc_error_set(error, FC_EINVAL, "kv: group %u layer %u has no memory or no slots", group, layer);
	if (paged->piece_count == 0 || slice_bytes % paged->piece_count != 0)
		return fc_error_set(error, FC_EINVAL,
				    "kv: group %u layer %u: %u pieces for a slice of %llu bytes; a divisor "
				    "of it is allowed",
				    group, layer, paged->piece_count, (unsigned long long)slice_bytes);
	uint64_t piece_bytes = slice_bytes / paged->piece_count;
	if (paged->slot_count > 1 && paged->slot_stride_bytes < piece_bytes)
		return fc_error_set(
			error, FC_EINVAL, "kv: group %u layer %u: slots %llu bytes apart; at least %llu are needed",
			group, layer, (unsigned long long)paged->slot_stride_bytes, (unsigned long long)piece_bytes);
	if (paged->piece_count > 1 && paged->piece_stride_bytes < piece_bytes)
		return fc_error_set(
			error, FC_EINVAL, "kv: group %u layer %u: pieces %llu bytes apart; at least %llu are needed",
			group, layer, (unsigned long long)paged->piece_stride_bytes, (unsigned long long)piece_bytes);
	return check_reach(paged, piece_bytes, group, layer, error);
}

static int check_layers(const struct fc_geometry *geometry, const struct fc_paged_layer *layers, struct fc_error *error)
{
	for (uint32_t group = 0; group < geometry->group_count; group++) {
		for (uint32_t layer = 0; layer < geometry->layer_count; layer++) {
			if (geometry->groups[group].slice_bytes[layer] == 0)
				continue;
			int code = check_layer(geometry, group, layer, &layers[group * geometry->layer_count + layer],
					       error);
			if (code != FC_OK)
				return code;
		}
	}
	return FC_OK;
}

int fc_kv_register(struct fc_store *store, const struct fc_paged_layer *layers, struct fc_kv **result,
		   struct fc_error *error)
{
	int code = fc_store_check_pointer("kv: result", result, error);
	if (code != FC_OK)
		return code;
	*result = NULL;
	code = fc_store_check_pointer("kv: store", store, error);
	if (code == FC_OK)
		code = fc_store_check_pointer("kv: layers", layers, error);
	if (code == FC_OK)
		code = check_layers(&store->geometry, layers, error);
	if (code != FC_OK)
		return code;
	uint64_t count = (uint64_t)store->geometry.group_count * store->geometry.layer_count;
	struct fc_kv *kv = calloc(1, sizeof(*kv) + count * sizeof(*layers));
	if (kv == NULL)
		return fc_error_set(error, FC_ENOMEM, "kv: %s", fc_code_text(FC_ENOMEM));
	kv->store = store;
	kv->layer_count = count;
	memcpy(kv->layers, layers, count * sizeof(*layers));
	*result = kv;
	return FC_OK;
}

void fc_kv_free(struct fc_kv *kv)
{
	free(kv);
}

static int check_kv(const struct fc_store *store, const struct fc_kv *kv, const char *what, struct fc_error *error)
{
	if (kv == NULL || kv->store != store)
		return fc_error_set(error, FC_EINVAL, "%s: kv is %s", what, kv == NULL ? "NULL" : "of another store");
	return FC_OK;
}

/* ---- loads ---- */

struct load_command {
	struct fc_command command;
	const struct fc_load_opts *opts;
	struct fc_load *load;
	struct fc_error *error;
	int code;
};

static void run_load_submit(struct fc_store *store, struct fc_command *command)
{
	struct load_command *load = fc_container_of(command, struct load_command, command);
	load->code = store->is_ending ? fc_fork_refuse(store, "load", load->error)
				      : fc_core_load_submit(store->core, load->opts, load->opts->kv->layers, load->load,
							    &load->load->core_load, load->error);
	fc_store_answer(store, command);
}

int fc_load_submit(struct fc_store *store, const struct fc_load_opts *opts, struct fc_load **result,
		   struct fc_error *error)
{
	int code = fc_store_check_pointer("load: result", result, error);
	if (code != FC_OK)
		return code;
	*result = NULL;
	code = fc_store_check_pointer("load: store", store, error);
	if (code == FC_OK)
		code = fc_store_check_pointer("load: options", opts, error);
	if (code == FC_OK)
		code = check_kv(store, opts->kv, "load", error);
	if (code != FC_OK)
		return code;
	struct fc_load *load = calloc(1, sizeof(*load));
	if (load == NULL)
		return fc_error_set(error, FC_ENOMEM, "load: %s", fc_code_text(FC_ENOMEM));
	load->request = (struct fc_request){.store = store, .user = opts->user, .is_load = true};
	*result = load; /* before the first event can name it */
	fc_store_hold(store);
	struct load_command command = {.command.run = run_load_submit, .opts = opts, .load = load, .error = error};
	if (!fc_store_run(store, &command.command))
		command.code = fc_fork_refuse(store, "load", error);
	if (command.code != FC_OK) {
		*result = NULL;
		fc_store_release(store, &load->request);
		free(load);
	}
	return command.code;
}

static void run_load_cancel(struct fc_store *store, struct fc_command *command)
{
	fc_core_load_cancel(store->core, fc_container_of(command, struct load_command, command)->load->core_load);
	fc_store_answer(store, command);
}

void fc_load_cancel(struct fc_load *load)
{
	if (load == NULL)
		return;
	struct load_command command = {.command.run = run_load_cancel, .load = load};
	(void)fc_store_run(load->request.store, &command.command); /* else it has ended */
}

int fc_load_wait(struct fc_load *load, struct fc_load_result *result)
{
	if (load == NULL)
		return FC_EINVAL;
	struct fc_store *store = load->request.store;
	pthread_mutex_lock(&store->mutex);
	while (!load->has_ended && !store->is_inherited)
		pthread_cond_wait(&store->changed, &store->mutex);
	if (!load->has_ended)
		load->result.code = fc_fork_refuse(store, "load", &load->result.error);
	if (result != NULL)
		*result = load->result;
	int code = load->result.code;
	pthread_mutex_unlock(&store->mutex);
	return code;
}

static void run_load_free(struct fc_store *store, struct fc_command *command)
{
	struct fc_core_load *core_load = fc_container_of(command, struct load_command, command)->load->core_load;
	core_load->owner = NULL;
	if (!store->is_ending)
		fc_core_load_free(store->core, core_load);
	fc_store_answer(store, command);
}

void fc_load_free(struct fc_load *load)
{
	if (load == NULL)
		return;
	fc_load_cancel(load);
	(void)fc_load_wait(load, NULL);
	struct load_command command = {.command.run = run_load_free, .load = load};
	(void)fc_store_run(load->request.store, &command.command);
	fc_store_release(load->request.store, &load->request);
	free(load);
}

static void run_take(struct fc_store *store, struct fc_command *command)
{
	struct load_command *take = fc_container_of(command, struct load_command, command);
	struct fc_core_load *core_load;
	take->code = fc_core_ready_take(store->core, &core_load);
	take->load = take->code == FC_OK ? core_load->owner : NULL;
	fc_store_answer(store, command);
}

int fc_ready_take(struct fc_store *store, struct fc_load **load)
{
	struct load_command command = {.command.run = run_take};
	if (load == NULL)
		return FC_EINVAL;
	*load = NULL;
	if (store == NULL)
		return FC_EINVAL;
	if (!fc_store_run(store, &command.command))
		command.code = FC_ECANCELED;
	*load = command.load;
	return command.code;
}

/* ---- saves ---- */

struct save_command {
	struct fc_command command;
	const struct fc_save_opts *opts;
	struct fc_save *save;
	struct fc_error *error;
	int code;
};

static void run_save_submit(struct fc_store *store, struct fc_command *command)
{
	struct save_command *save = fc_container_of(command, struct save_command, command);
	save->code = store->is_ending ? fc_fork_refuse(store, "save", save->error)
				      : fc_core_save_submit(store->core, save->opts, save->opts->kv->layers, save->save,
							    &save->save->core_save, save->error);
	fc_store_answer(store, command);
}

int fc_save_submit(struct fc_store *store, const struct fc_save_opts *opts, struct fc_save **result,
		   struct fc_error *error)
{
	int code = fc_store_check_pointer("save: result", result, error);
	if (code != FC_OK)
		return code;
	*result = NULL;
	code = fc_store_check_pointer("save: store", store, error);
	if (code == FC_OK)
		code = fc_store_check_pointer("save: options", opts, error);
	if (code == FC_OK)
		code = check_kv(store, opts->kv, "save", error);
	if (code != FC_OK)
		return code;
	struct fc_save *save = calloc(1, sizeof(*save));
	if (save == NULL)
		return fc_error_set(error, FC_ENOMEM, "save: %s", fc_code_text(FC_ENOMEM));
	save->request = (struct fc_request){.store = store, .user = opts->user};
	*result = save;
	fc_store_hold(store);
	struct save_command command = {.command.run = run_save_submit, .opts = opts, .save = save, .error = error};
	if (!fc_store_run(store, &command.command))
		command.code = fc_fork_refuse(store, "save", error);
	if (command.code != FC_OK) {
		*result = NULL;
		fc_store_release(store, &save->request);
		free(save);
	}
	return command.code;
}

static void run_save_cancel(struct fc_store *store, struct fc_command *command)
{
	fc_core_save_cancel(store->core, fc_container_of(command, struct save_command, command)->save->core_save);
	fc_store_answer(store, command);
}

void fc_save_cancel(struct fc_save *save)
{
	if (save == NULL)
		return;
	struct save_command command = {.command.run = run_save_cancel, .save = save};
	(void)fc_store_run(save->request.store, &command.command); /* else it has ended */
}

int fc_save_wait(struct fc_save *save, bool until_durable, struct fc_save_result *result)
{
	if (save == NULL)
		return FC_EINVAL;
	struct fc_store *store = save->request.store;
	pthread_mutex_lock(&store->mutex);
	while (!(until_durable ? save->is_final : save->is_saved) && !store->is_inherited)
		pthread_cond_wait(&store->changed, &store->mutex);
	if (!(until_durable ? save->is_final : save->is_saved))
		save->result.code = fc_fork_refuse(store, "save", &save->result.error);
	if (result != NULL)
		*result = save->result;
	int code = save->result.code;
	if (code == FC_OK && until_durable)
		code = save->result.durable_code;
	pthread_mutex_unlock(&store->mutex);
	return code;
}

static void run_save_free(struct fc_store *store, struct fc_command *command)
{
	struct fc_core_save *core_save = fc_container_of(command, struct save_command, command)->save->core_save;
	core_save->owner = NULL;
	if (!store->is_ending)
		fc_core_save_free(store->core, core_save);
	fc_store_answer(store, command);
}

void fc_save_free(struct fc_save *save)
{
	if (save == NULL)
		return;
	fc_save_cancel(save);
	(void)fc_save_wait(save, false, NULL);
	struct save_command command = {.command.run = run_save_free, .save = save};
	(void)fc_store_run(save->request.store, &command.command);
	fc_store_release(save->request.store, &save->request);
	free(save);
}
