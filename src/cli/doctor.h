/* What the parts of `flatcake doctor` share: a list of findings. */
#ifndef FC_CLI_DOCTOR_H
#define FC_CLI_DOCTOR_H

#include "base/error.h"

enum fc_finding_state {
	FC_FINDING_GOOD,
	FC_FINDING_ABSENT, /* optional, and not here */
	FC_FINDING_LACK,   /* FlatCake works, but not as well as it could */
	FC_FINDING_FATAL,  /* FlatCake cannot work here */
};

struct fc_finding {
	const char *name;
	enum fc_finding_state state;
	char value[192];
	char advice[256]; /* what to do about it; "" when all is well */
	double number;    /* the measured quantity, for the JSON output */
	const char *unit; /* NULL: there is none */
};

#define FC_FINDINGS_MAX 24

struct fc_doctor {
	struct fc_finding findings[FC_FINDINGS_MAX];
	size_t finding_count;
};

/* Adds a finding whose value is printed from `format`. */
struct fc_finding *fc_doctor_add(struct fc_doctor *doctor, const char *name, enum fc_finding_state state,
				 const char *format, ...) FC_PRINTF(4, 5);
void fc_doctor_advise(struct fc_finding *finding, const char *format, ...) FC_PRINTF(2, 3);

/* Processor, memory, huge pages, io_uring, locked memory, fio. */
void fc_doctor_examine_system(struct fc_doctor *doctor);

/* GPU, GPUDirect Storage, RDMA, NVMe over Fabrics. */
void fc_doctor_examine_hardware(struct fc_doctor *doctor);

/* The disk below `dir`: space, direct I/O, speed. Writes a file of 256 MiB that has no name and so never stays. */
void fc_doctor_examine_disk(struct fc_doctor *doctor, const char *dir);

#endif
