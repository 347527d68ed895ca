#include "sim/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	double probability;
} faults_known[FC_FAULT_COUNT] = {
	[FC_FAULT_READ_ERROR] = {"read-error", 0.003},
	[FC_FAULT_WRITE_ERROR] = {"write-error", 0.005},
	[FC_FAULT_SYNC_ERROR] = {"sync-error", 0.02},
	[FC_FAULT_STICKY_ERROR] = {"sticky-error", 0.0005},
	[FC_FAULT_SHORT_READ] = {"short-read", 0.003},
	[FC_FAULT_SHORT_WRITE] = {"short-write", 0.005},
	[FC_FAULT_FULL] = {"full", 0.005},
	[FC_FAULT_STUCK] = {"stuck", 0.0005},
	[FC_FAULT_LATE] = {"late", 0.001},
	[FC_FAULT_FLIP_PAYLOAD] = {"flip-payload", 0.02},
	[FC_FAULT_FLIP_HEADER] = {"flip-header", 0.01},
	[FC_FAULT_FLIP_TABLE] = {"flip-table", 0.01},
	[FC_FAULT_FLIP_SUPERBLOCK] = {"flip-superblock", 0.005},
	[FC_FAULT_CRASH] = {"crash", 0.01},
	[FC_FAULT_POWER] = {"power", 0.01},
	[FC_FAULT_TORN] = {"torn", 0.5},
	[FC_FAULT_REORDERED] = {"reordered", 0.5},
	[FC_FAULT_CLOCK_JUMP] = {"clock-jump", 0.003},
	[FC_FAULT_ALLOCATION] = {"allocation", 0.01},
	[FC_FAULT_VANISH] = {"vanish", 0.03},
	[FC_FAULT_ENGINE_CRASH] = {"engine-crash", 0.02},
	[FC_FAULT_CUT] = {"cut", 0.03},
	[FC_FAULT_DEAF] = {"deaf", 0.005},
	[FC_FAULT_STRANGER] = {"stranger", 0.01},
	[FC_FAULT_STOPPED] = {"stopped", 0.005},
	[FC_FAULT_MUTE] = {"mute", 0.01},
	[FC_FAULT_BLOCKED] = {"blocked", 0.0002},
	[FC_FAULT_TRUNCATED] = {"truncated", 0.001},
	[FC_FAULT_REMOVED] = {"removed", 0.001},
	[FC_FAULT_REPLACED] = {"replaced", 0.001},
};

const char *fc_sim_fault_name(enum fc_sim_fault fault)
{
	return faults_known[fault].name;
}

double fc_sim_fault_default(enum fc_sim_fault fault)
{
	return faults_known[fault].probability;
}

static int refuse(const char *text, struct fc_error *error)
{
	char names[512] = "";
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", fault == 0 ? "" : ", ", faults_known[fault].name);
	}
	return fc_error_set(error, FC_EINVAL, "--fault %s: NAME=P is allowed, P from 0 to 1, NAME one of %s", text,
			    names);
}

int fc_sim_fault_parse(struct fc_sim_faults *faults, const char *text, struct fc_error *error)
{
	const char *equals = strchr(text, '=');
	if (equals == NULL || equals[1] == '\0')
		return refuse(text, error);
	char *end;
	double probability = strtod(equals + 1, &end);
	if (*end != '\0' || !(probability >= 0 && probability <= 1))
		return refuse(text, error);
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++) {
		const char *name = faults_known[fault].name;
		if (strlen(name) != (size_t)(equals - text) || strncmp(name, text, (size_t)(equals - text)) != 0)
			continue;
		faults->probability[fault] = probability;
		faults->is_fixed[fault] = true;
		return FC_OK;
	}
	return refuse(text, error);
}

void fc_sim_faults_choose(struct fc_sim_faults *faults, struct fc_random *random)
{
	double kind = fc_random_unit(random);
	double share = kind < 0.25 ? 0 : kind < 0.875 ? 0.2 : 1;
	for (int fault = 0; fault < FC_FAULT_COUNT; fault++) {
		double scale = fc_sim_happens(random, 0.2) ? 4 : 1; /* now and then a lot of it */
		bool is_chosen = fc_random_unit(random) < share;
		if (faults->is_fixed[fault])
			continue;
		double probability = faults_known[fault].probability * scale;
		faults->probability[fault] = !is_chosen ? 0 : probability > 1 ? 1 : probability;
	}
}
