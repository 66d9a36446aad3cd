/* The standard services on lwIP, over a TUN descriptor inherited from the test bed.
 *
 * The library is built for an operating system with its own thread. Here the stack is driven by
 * this one thread through the raw interface instead, so that a timer is never started late by a
 * sleeping other thread. The thread blocks in poll until a packet arrives or the stack's next
 * timer is due: a virtual clock only moves while everything sleeps. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lwip/init.h>
#include <lwip/timeouts.h>

#include "services.h"
#include "tun.h"

#define NAME "lwip-responder"

static void usage(const char *problem, const char *what) {
  fprintf(stderr,
          NAME ": %s %s; usage: " NAME
               " --fd N --address A.B.C.D --gateway A.B.C.D [--mtu N]\n",
          problem, what);
  exit(2);
}

static void fail(const char *what) {
  fprintf(stderr, NAME ": %s: %s\n", what, strerror(errno));
  exit(1);
}

static int number(const char *text, int least, int most) {
  char *end;
  long value = strtol(text, &end, 10);

  if (*text == '\0' || *end != '\0' || value < least || value > most) {
    usage("not a usable number:", text);
  }
  return (int)value;
}

static void parse(int count, char **words, struct tun *tun, ip4_addr_t *address,
                  ip4_addr_t *gateway) {
  int addresses = 0;

  tun->fd = -1;
  tun->mtu = 1500;
  for (int at = 1; at < count; at += 2) {
    const char *option = words[at], *value = words[at + 1];

    if (value == NULL) {
      usage("no value after", option);
    } else if (strcmp(option, "--fd") == 0) {
      tun->fd = number(value, 0, 1 << 20);
    } else if (strcmp(option, "--mtu") == 0) {
      tun->mtu = (u16_t)number(value, 68, 65535);
    } else if (strcmp(option, "--address") == 0 && ip4addr_aton(value, address)) {
      addresses |= 1;
    } else if (strcmp(option, "--gateway") == 0 && ip4addr_aton(value, gateway)) {
      addresses |= 2;
    } else {
      usage("cannot use option", option);
    }
  }
  if (tun->fd < 0 || addresses != 3) {
    usage("missing", "--fd, --address or --gateway");
  }
}

/* Standard input when it is a pipe, whose end means that the owner is gone; else nothing. */
static int owner_pipe(void) {
  struct stat status;
  int known = fstat(STDIN_FILENO, &status) == 0;

  return known && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) ? STDIN_FILENO : -1;
}

/* Block until the TUN or the owner's pipe is readable or the next timer is due; true when the
 * pipe has ended. A negative descriptor is one that poll does not look at. */
static int wait_for_work(int fd, int owner) {
  struct pollfd watched[] = {{fd, POLLIN, 0}, {owner, POLLIN, 0}};
  u32_t sleeptime = sys_timeouts_sleeptime();
  int timeout = sleeptime > INT32_MAX ? -1 : (int)sleeptime;
  char ignored[256];

  if (poll(watched, 2, timeout) < 0) {
    if (errno != EINTR) {
      fail("poll");
    }
    return 0;
  }
  return watched[1].revents != 0 && read(owner, ignored, sizeof ignored) <= 0;
}

int main(int count, char **words) {
  static struct tun tun;
  ip4_addr_t address, gateway;
  int flags, owner = owner_pipe();

  parse(count, words, &tun, &address, &gateway);
  flags = fcntl(tun.fd, F_GETFL);
  if (flags < 0 || fcntl(tun.fd, F_SETFL, flags | O_NONBLOCK) < 0) {
    fail("the TUN descriptor");
  }
  srand((unsigned)time(NULL)); /* lwIP draws its local port numbers from rand. */
  lwip_init();
  if (!tun_add(&tun, &address, &gateway) || !services_listen()) {
    fprintf(stderr, NAME ": lwIP refused the interface or a listener\n");
    return 1;
  }
  puts("ready");
  fflush(stdout);

  do {
    if (!tun_read(&tun)) {
      fail("reading the TUN");
    }
    sys_check_timeouts();
  } while (!wait_for_work(tun.fd, owner));
  return 0;
}
