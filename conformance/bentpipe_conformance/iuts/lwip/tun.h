/* A network interface for lwIP over a TUN descriptor that somebody else opened. */
#ifndef BENTPIPE_TUN_H
#define BENTPIPE_TUN_H

#include <lwip/netif.h>

struct tun {
  int fd;
  u16_t mtu;
  struct netif netif;
};

/* Add the interface to the stack and make it the default one; false when lwIP refuses. */
int tun_add(struct tun *tun, const ip4_addr_t *address, const ip4_addr_t *gateway);

/* Hand every packet that waits on the descriptor to the stack; false when it has died (errno). */
int tun_read(struct tun *tun);

#endif
