/* flatcaked's settings: what its file, variables and flags come to, and what every complaint names. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/option.h"
#include "daemon/settings.h"

static char file_path[64];

static int make_file(void **state)
{
	(void)state;
	strcpy(file_path, "/tmp/flatcake-settings-XXXXXX");
	int fd = mkstemp(file_path);
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(file_path);
}

struct attempt {
	struct fc_daemon_settings settings;
	int status;
	char out[65536], err[4096];
};

/* Calls the program's front with a file of this text and one more argument (NULL: none). */
static void call(struct attempt *attempt, const char *yaml, char *argument, char *variable)
{
	FILE *file = fopen(file_path, "w");
	assert_non_null(file);
	assert_true(fputs(yaml, file) >= 0);
	assert_int_equal(fclose(file), 0);
	char *argv[] = {"flatcaked", "--config", file_path, argument, NULL};
	char *environment[] = {variable, NULL};
	memset(attempt, 0, sizeof(*attempt));
	FILE *out = fmemopen(attempt->out, sizeof(attempt->out), "w"),
	     *err = fmemopen(attempt->err, sizeof(attempt->err), "w");
	attempt->status = fc_daemon_front(argument != NULL ? 4 : 3, argv, environment, out, err, &attempt->settings);
	fclose(out);
	fclose(err);
}

static struct attempt attempt;

static void expect_refused(const char *yaml, const char *place, const char *words)
{
	char where[128];
	call(&attempt, yaml, NULL, NULL);
	snprintf(where, sizeof(where), "%s%s", place[0] == ':' ? file_path : "", place);
	if (attempt.status != 2 || strstr(attempt.err, where) == NULL || strstr(attempt.err, words) == NULL)
		fail_msg("%s\nstatus %d, wanted \"%s\" and \"%s\", got: %s", yaml, attempt.status, where, words,
			 attempt.err);
}

static void a_file_variables_and_flags_are_put_together(void **state)
{
	(void)state;
	call(&attempt,
	     "ssd: 2GiB\nmemory: 64MiB\nmodel: llama-3.1-8b\nblock_tokens: 32\nhttp_listen: '[::1]:9200'\nlog_format: "
	     "json\n"
	     "lease_timeout: 90s\nnamespaces:\n  - name: team-a\n    uid: 1001\n    quota: 1GiB\n  - gid: 7\n    name: "
	     "b\n",
	     "--memory=128MiB", "FLATCAKE_LOG_LEVEL=debug");
	assert_string_equal(attempt.err, "");
	assert_int_equal(attempt.status, -1);
	const struct fc_daemon_settings *settings = &attempt.settings;
	assert_int_equal(settings->store.ssd_bytes, UINT64_C(2) << 30);
	assert_int_equal(settings->store.memory_bytes, UINT64_C(128) << 20);
	assert_string_equal(settings->store.ssd_path, "/var/lib/flatcake/ssd.arena");
	assert_string_equal(settings->store.geometry->name, "llama-3.1-8b");
	assert_int_equal(settings->geometry.block_tokens, 32);
	assert_true(settings->http.is_on && settings->http.is_loopback);
	assert_int_equal(settings->http.address.ss_family, AF_INET6);
	assert_int_equal(settings->log_format, FC_LOG_FORMAT_JSON);
	assert_int_equal(settings->log_level, FC_LOG_DEBUG);
	assert_int_equal(settings->config.lease_timeout_ns, UINT64_C(90000000000));
	assert_int_equal(settings->config.namespace_count, 2);
	const struct fc_config_namespace *spaces = settings->config.namespaces;
	assert_string_equal(spaces[0].name, "team-a");
	assert_int_equal(spaces[0].uid, 1001);
	assert_int_equal(spaces[0].gid, FC_CONFIG_ANYBODY);
	assert_int_equal(spaces[0].quota_bytes, 1 << 30);
	assert_string_equal(spaces[1].name, "b");
	assert_int_equal(spaces[1].gid, 7);
	assert_int_equal(spaces[1].quota_bytes, 0);
	fc_daemon_settings_free(&attempt.settings);
}

static void unknown_keys_stop_the_start_by_file_line_and_key(void **state)
{
	(void)state;
	expect_refused("ssd: 1GiB\nmemroy: 1GiB\n", ":2: ", "unknown key \"memroy\" (did you mean memory?)");
	expect_refused("rate: 3\n", ":1: ", "unknown key \"rate\""); /* another program's */
	expect_refused("check_config: on\n", ":1: ", "unknown key \"check_config\"");
	expect_refused("namespaces:\n  - name: a\n    quotta: 1\n", ":3: ", "unknown key \"quotta\" of a namespace");
	expect_refused("teams:\n  - name: a\n", ":2: ", "only \"namespaces\" takes a list, not \"teams\"");
	assert_null(strstr(attempt.err, "prefill"));
}

static void values_that_do_not_fit_are_named(void **state)
{
	(void)state;
	expect_refused("http_listen: nowhere\n", "http_listen", "127.0.0.1:9117");
	expect_refused("http_listen: '127.0.0.1:70000'\n", "http_listen", "70000");
	expect_refused("http_listen: '::1:9117'\n", "http_listen", "[::1]:9117");
	expect_refused("http_listen: '0.0.0.0:9117'\n", "http_listen", "http_token_file is needed");
	expect_refused("socket: run/sock\n", "socket", "an absolute path");
	expect_refused("socket_group: vllm\n", "socket_group", "socket_mode is owner");
	expect_refused("ssd: 0\nmemory: 0\n", "", "both 0");
	expect_refused("ssd: 1GiB\nssd: 2GiB\n", ":2: ", "stands twice");
	expect_refused("drain_timeout: 0\n", ":1: drain_timeout", "10ms to 24h");
	expect_refused("log_level: loud\n", ":1: log_level", "error, warning, info or debug");
	expect_refused("namespaces:\n  - uid: 3\n", ":2: ", "without a name");
	expect_refused("namespaces:\n  - name: a\n  - name: a\n", ":3: ", "stands twice, first in line 2");
	expect_refused("namespaces:\n  - name: a\n    name: b\n", ":3: ", "stands twice in this entry");
	expect_refused("namespaces:\n  - name: a/b\n", ":2: ", "letters, digits");
	expect_refused("namespaces:\n  - name: a\n    uid: root\n", ":3: ", "a whole number");
	expect_refused("namespaces:\n  - a\n", ":2: ", "key: value");
	expect_refused("namespaces:\n  - {}\n", ":2: ", "must not be empty");
	expect_refused("namespaces:\n  - name: [a]\n", ":2: ", "single word");
	expect_refused("namespaces:\n  - name: a\nnamespaces:\n  - name: b\n", ":4: ", "stands twice");
	expect_refused("model: gpt-0\n", "model", "llama-3.1-70b");
	expect_refused("ssd: [1, 2]\n", ":1: ", "key: value");
}

static void check_config_reads_the_token_as_the_start_does(void **state)
{
	(void)state;
	call(&attempt, "http_token_file: /etc/passwd\n", "--check-config", NULL);
	assert_int_equal(attempt.status, 2);
	assert_non_null(strstr(attempt.err, "/etc/passwd has mode"));
	call(&attempt, "http_token_file: /nowhere/token\n", "--check-config", NULL);
	assert_int_not_equal(attempt.status, 0);
	assert_non_null(strstr(attempt.err, "/nowhere/token: No such file"));
}

static void an_empty_list_of_namespaces_means_nobody(void **state)
{
	(void)state;
	call(&attempt, "namespaces: []\n", "--check-config", NULL);
	assert_int_equal(attempt.status, 0);
	assert_non_null(strstr(attempt.out, "nobody is let in"));
}

static void check_config_says_what_it_means_and_runs_nothing(void **state)
{
	(void)state;
	call(&attempt, "ssd: 2GiB\nnamespaces:\n  - name: team-a\n", "--check-config", NULL);
	assert_int_equal(attempt.status, 0);
	assert_non_null(strstr(attempt.out, "ssd: 2147483648 bytes in /var/lib/flatcake/ssd.arena\n"));
	assert_non_null(strstr(attempt.out, "namespace: team-a\n"));
	assert_non_null(strstr(attempt.out, "the settings are right\n"));
	call(&attempt, "", "more", NULL);
	assert_int_equal(attempt.status, 2);
	assert_non_null(strstr(attempt.err, "unexpected argument \"more\""));
}

static void help_and_version_need_no_settings(void **state)
{
	(void)state;
	call(&attempt, "nonsense", "--help", NULL);
	assert_int_equal(attempt.status, 0);
	assert_non_null(strstr(attempt.out, "--lease-timeout DURATION"));
	assert_null(strstr(attempt.out, "--prefill"));
	call(&attempt, "nonsense", "--version", NULL);
	assert_int_equal(attempt.status, 0);
	assert_int_equal(strncmp(attempt.out, "flatcaked ", 10), 0);
}

static char *read_source(const char *name)
{
	char path[4096];
	static char text[131072];
	const char *folder = getenv("FC_SOURCE_DIR");
	snprintf(path, sizeof(path), "%s/%s", folder != NULL ? folder : ".", name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	return text;
}

static void the_manual_page_is_what_the_program_prints(void **state)
{
	(void)state;
	call(&attempt, "", "--manual", NULL);
	assert_int_equal(attempt.status, 0);
	if (strcmp(read_source("packaging/flatcaked.8"), attempt.out) != 0)
		fail_msg("packaging/flatcaked.8 is out of date; run: make man");
}

/* Every key of the file stands in the example, behind "# " or not, and the example as it is, as well as with every key
 * taken out of its comment, is accepted. */
static void the_example_has_every_key_and_is_right(void **state)
{
	(void)state;
	static char whole[131072];
	char *text = read_source("packaging/flatcaked.yaml");
	call(&attempt, text, "--check-config", NULL);
	assert_string_equal(attempt.err, "");
	size_t used = 0;
	for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1) {
		if (at[0] == '#' && (at[1] != ' ' || at[2] == ' '))
			at++; /* "#key: value" is a setting that is not made */
		size_t len = strcspn(at, "\n") + 1;
		memcpy(whole + used, at, len);
		used += len;
	}
	whole[used] = '\0';
	call(&attempt, whole, NULL, NULL); /* its token file is not here to be looked at */
	assert_string_equal(attempt.err, "");
	for (size_t row = 0; fc_option_at(row) != NULL; row++) {
		const struct fc_option *option = fc_option_at(row);
		char key[FC_OPTION_NAME_BYTES + 2] = "\n";
		fc_option_spell(option, FC_SPELLING_KEY, key + 1);
		strcat(key, ": ");
		bool is_wanted = (option->commands & FC_COMMAND_DAEMON) != 0 && !option->is_command_line_only;
		if (is_wanted && strstr(whole, key) == NULL)
			fail_msg("packaging/flatcaked.yaml does not have%s", key);
	}
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) { /* prints the manual page, where there is no flatcaked yet to do it */
		fc_daemon_manual(stdout);
		return 0;
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_variables_and_flags_are_put_together),
		cmocka_unit_test(unknown_keys_stop_the_start_by_file_line_and_key),
		cmocka_unit_test(values_that_do_not_fit_are_named),
		cmocka_unit_test(check_config_reads_the_token_as_the_start_does),
		cmocka_unit_test(an_empty_list_of_namespaces_means_nobody),
		cmocka_unit_test(check_config_says_what_it_means_and_runs_nothing),
		cmocka_unit_test(help_and_version_need_no_settings),
		cmocka_unit_test(the_manual_page_is_what_the_program_prints),
		cmocka_unit_test(the_example_has_every_key_and_is_right),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
