/* Echo (RFC 862), discard (RFC 863) and chargen (RFC 864, as an endless stream). */
#ifndef BENTPIPE_SERVICES_H
#define BENTPIPE_SERVICES_H

/* Listen on ports 7, 9 and 19; false when lwIP refuses. */
int services_listen(void);

#endif
