/* `flatcake doctor`: what this machine offers, and for each lack one line that says what to do. The examinations are in
 * doctor_system.c, doctor_hardware.c and doctor_disk.c; this file keeps the findings and prints them. */
#include "cli/doctor.h"

#include "base/check.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/table.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
	[FC_FINDING_GOOD] = "ok",
	[FC_FINDING_ABSENT] = "none",
	[FC_FINDING_LACK] = "lack",
	[FC_FINDING_FATAL] = "unusable",
};

struct fc_finding *fc_doctor_add(struct fc_doctor *doctor, const char *name, enum fc_finding_state state,
				 const char *format, ...)
{
	fc_check(doctor->finding_count < FC_FINDINGS_MAX);
	struct fc_finding *finding = &doctor->findings[doctor->finding_count++];
	*finding = (struct fc_finding){.name = name, .state = state};
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(finding->value, sizeof(finding->value), format, arguments);
	va_end(arguments);
	return finding;
}

void fc_doctor_advise(struct fc_finding *finding, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(finding->advice, sizeof(finding->advice), format, arguments);
	va_end(arguments);
}

static int print_findings(const struct fc_doctor *doctor, FILE *file)
{
	struct fc_table table;
	fc_table_init(&table, "lll");
	for (size_t index = 0; index < doctor->finding_count; index++) {
		const struct fc_finding *finding = &doctor->findings[index];
		fc_table_cell(&table, "%s", state_names[finding->state]);
		fc_table_cell(&table, "%s", finding->name);
		fc_table_cell(&table, "%s", finding->value);
		if (finding->advice[0] == '\0')
			continue;
		fc_table_cell(&table, "%s", "");
		fc_table_cell(&table, "%s", "");
		fc_table_cell(&table, "-> %s", finding->advice);
	}
	int code = fc_table_print(&table, file);
	fc_table_deinit(&table);
	return code;
}

static json_t *finding_to_json(const struct fc_finding *finding)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:s}", "name", finding->name, "state", state_names[finding->state],
				   "value", finding->value, "advice", finding->advice);
	if (object == NULL || finding->unit == NULL)
		return object;
	if (json_object_set_new(object, "number", json_real(finding->number)) == 0 &&
	    json_object_set_new(object, "unit", json_string(finding->unit)) == 0)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *findings_to_json(const struct fc_doctor *doctor, bool is_usable)
{
	json_t *list = json_array();
	for (size_t index = 0; list != NULL && index < doctor->finding_count; index++) {
		if (json_array_append_new(list, finding_to_json(&doctor->findings[index])) != 0) {
			json_decref(list);
			list = NULL;
		}
	}
	return list == NULL ? NULL : json_pack("{s:b, s:o}", "usable", is_usable, "findings", list);
}

static const struct fc_finding *find_fatal(const struct fc_doctor *doctor)
{
	for (size_t index = 0; index < doctor->finding_count; index++) {
		if (doctor->findings[index].state == FC_FINDING_FATAL)
			return &doctor->findings[index];
	}
	return NULL;
}

int fc_command_doctor(const struct fc_config *config, struct fc_error *error)
{
	struct fc_doctor doctor = {.finding_count = 0};
	int code = FC_OK;
	fc_doctor_examine_system(&doctor);
	fc_doctor_examine_disk(&doctor, config->dir);
	fc_doctor_examine_hardware(&doctor);
	const struct fc_finding *fatal = find_fatal(&doctor);
	if (!fc_json_replaces_text(config) && print_findings(&doctor, stdout) != FC_OK)
		return fc_error_set(error, FC_ENOMEM, "cannot print the findings");
	if (config->json_path != NULL)
		code = fc_json_write(config->json_path, findings_to_json(&doctor, fatal == NULL), error);
	if (code == FC_OK && fatal != NULL)
		code = fc_error_set(error, FC_ESYSTEM, "FlatCake cannot work here: %s: %s", fatal->name, fatal->value);
	return code;
}
