/* Hardware that FlatCake can use and does not need: a GPU, GPUDirect Storage, RDMA, NVMe over Fabrics. The CUDA
 * libraries are asked for at run time, as one binary serves machines with and without them. */
#include "cli/doctor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The part of the CUDA driver interface that names devices. */
struct cuda {
	int (*init)(unsigned flags);
	int (*device_count)(int *count);
	int (*device_name)(char *name, int name_bytes, int device);
	int (*driver_version)(int *version);
};

static bool find_function(void *library, const char *name, void *function)
{
	void *found = dlsym(library, name);
	memcpy(function, &found, sizeof(found)); /* a data pointer becomes a function's, as dlsym() means it */
	return found != NULL;
}

static bool find_cuda(void *library, struct cuda *cuda)
{
	return find_function(library, "cuInit", &cuda->init) &&
	       find_function(library, "cuDeviceGetCount", &cuda->device_count) &&
	       find_function(library, "cuDeviceGetName", &cuda->device_name) &&
	       find_function(library, "cuDriverGetVersion", &cuda->driver_version);
}

/* True when there is a GPU to speak of. */
static bool examine_gpu_of(struct fc_doctor *doctor, void *library)
{
	struct cuda cuda;
	int count = 0, version = 0;
	char name[96] = "unknown";
	if (!find_cuda(library, &cuda) || cuda.init(0) != 0 || cuda.device_count(&count) != 0 || count == 0) {
		struct fc_finding *finding = fc_doctor_add(doctor, "GPU", FC_FINDING_ABSENT,
							   "CUDA driver library found, but no device answers");
		fc_doctor_advise(finding,
				 "see whether nvidia-smi lists a device, and whether this container was given it");
		return false;
	}
	cuda.device_name(name, sizeof(name), 0);
	cuda.driver_version(&version);
	fc_doctor_add(doctor, "GPU", FC_FINDING_GOOD, "%d, the first: %s; CUDA %d.%d", count, name, version / 1000,
		      version % 1000 / 10);
	return true;
}

static void examine_gpu(struct fc_doctor *doctor)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (library == NULL) {
		struct fc_finding *finding = fc_doctor_add(doctor, "GPU", FC_FINDING_ABSENT, "no CUDA driver library");
		fc_doctor_advise(finding, "if this machine has an NVIDIA GPU, install its driver; without one KV is "
					  "loaded into host memory");
		return;
	}
	bool has_gpu = examine_gpu_of(doctor, library);
	dlclose(library);
	if (!has_gpu)
		return;
	void *storage = dlopen("libcufile.so.0", RTLD_NOW);
	struct fc_finding *finding =
		fc_doctor_add(doctor, "GPUDirect Storage", storage != NULL ? FC_FINDING_GOOD : FC_FINDING_ABSENT, "%s",
			      storage != NULL ? "libcufile is here" : "no libcufile");
	if (storage == NULL)
		fc_doctor_advise(finding,
				 "install libcufile of the CUDA toolkit; without it reads pass through host memory");
	else
		dlclose(storage);
}

/* The first entry of a folder, and how many there are. */
static unsigned count_entries(const char *path, char *first, size_t first_bytes)
{
	DIR *folder = opendir(path);
	unsigned count = 0;
	for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] == '.')
			continue;
		if (count++ == 0)
			snprintf(first, first_bytes, "%s", entry->d_name);
	}
	if (folder != NULL)
		closedir(folder);
	return count;
}

static void examine_rdma(struct fc_doctor *doctor)
{
	char first[64];
	unsigned count = count_entries("/sys/class/infiniband", first, sizeof(first));
	if (count > 0) {
		fc_doctor_add(doctor, "RDMA", FC_FINDING_GOOD, "%u device%s, the first: %s", count,
			      count == 1 ? "" : "s", first);
		return;
	}
	struct fc_finding *finding = fc_doctor_add(doctor, "RDMA", FC_FINDING_ABSENT, "no device");
	fc_doctor_advise(finding,
			 "needed only to read other nodes' memory; load the adapter's driver, or rdma_rxe for a trial");
}

static void examine_fabrics(struct fc_doctor *doctor)
{
	bool is_host = access("/dev/nvme-fabrics", F_OK) == 0;
	bool is_target = access("/sys/kernel/config/nvmet", F_OK) == 0;
	if (is_host || is_target) {
		fc_doctor_add(doctor, "NVMe over Fabrics", FC_FINDING_GOOD, "%s%s%s", is_host ? "host" : "",
			      is_host && is_target ? " and " : "", is_target ? "target" : "");
		return;
	}
	struct fc_finding *finding =
		fc_doctor_add(doctor, "NVMe over Fabrics", FC_FINDING_ABSENT, "modules not loaded");
	fc_doctor_advise(
		finding,
		"needed only to read other nodes' SSDs; as root: modprobe nvme-tcp (host), nvmet-tcp (target)");
}

void fc_doctor_examine_hardware(struct fc_doctor *doctor)
{
	examine_gpu(doctor);
	examine_rdma(doctor);
	examine_fabrics(doctor);
}
