/* The main program of a fuzz target in an ordinary build: hands it every file that is named, or lies in a folder that
 * is named, and says how many there were. An input that fails ends the process; the file was named before it was run.
 */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static unsigned input_count;

static void run_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	fuzz_check(file != NULL && fstat(fileno(file), &status) == 0, "%s: cannot be opened", path);
	size_t size = (size_t)status.st_size;
	uint8_t *bytes = malloc(size + 1);
	fuzz_check(bytes != NULL && fread(bytes, 1, size, file) == size, "%s: cannot be read", path);
	fclose(file);
	uint8_t *exact = fuzz_exact(bytes, size);
	free(bytes);
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	input_count++;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void run_folder(const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_visible, alphasort);
	fuzz_check(count >= 0, "%s: cannot be read", folder);
	for (int i = 0; i < count; i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		run_file(path);
		free(entries[i]);
	}
	free(entries);
}

int main(int argument_count, char **arguments)
{
	for (int i = 1; i < argument_count; i++) {
		struct stat status;
		fuzz_check(stat(arguments[i], &status) == 0, "%s: is not there", arguments[i]);
		if (S_ISDIR(status.st_mode))
			run_folder(arguments[i]);
		else
			run_file(arguments[i]);
	}
	printf("%u inputs\n", input_count);
	return input_count > 0 ? 0 : 1;
}
