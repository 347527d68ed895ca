/* flatcaked: one store for all engine processes of a node (docs/daemon.md). */
#include "daemon/daemon.h"

#include <unistd.h>

int main(int argc, char **argv)
{
	static struct fc_daemon_settings settings; /* refers to itself */
	int status = fc_daemon_front(argc, argv, environ, stdout, stderr, &settings);
	if (status >= 0)
		return status;
	status = fc_daemon_serve(&settings);
	fc_daemon_settings_free(&settings);
	return status;
}
