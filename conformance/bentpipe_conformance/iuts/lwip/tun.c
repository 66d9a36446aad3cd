#include "tun.h"

#include <errno.h>
#include <unistd.h>

#include <lwip/ip.h>
#include <lwip/pbuf.h>

#define LARGEST_PACKET 65535

static err_t output(struct netif *netif, struct pbuf *packet, const ip4_addr_t *next_hop) {
  static char flat[LARGEST_PACKET];
  const struct tun *tun = netif->state;
  u16_t length = pbuf_copy_partial(packet, flat, sizeof flat, 0);

  (void)next_hop;
  /* A packet the kernel refuses is a lost packet: recovering it is the stack's business. */
  if (write(tun->fd, flat, length) < 0) {
    return ERR_IF;
  }
  return ERR_OK;
}

static err_t initialise(struct netif *netif) {
  const struct tun *tun = netif->state;

  netif->name[0] = 's';
  netif->name[1] = 'a';
  netif->mtu = tun->mtu;
  netif->output = output;
  return ERR_OK;
}

int tun_add(struct tun *tun, const ip4_addr_t *address, const ip4_addr_t *gateway) {
  ip4_addr_t netmask;

  IP4_ADDR(&netmask, 255, 255, 255, 0);
  if (netif_add(&tun->netif, address, &netmask, gateway, tun, initialise, ip_input) == NULL) {
    return 0;
  }
  netif_set_default(&tun->netif);
  netif_set_link_up(&tun->netif);
  netif_set_up(&tun->netif);
  return 1;
}

int tun_read(struct tun *tun) {
  static char flat[LARGEST_PACKET];

  for (;;) {
    ssize_t length = read(tun->fd, flat, sizeof flat);
    struct pbuf *packet;

    if (length < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    if (length == 0) {
      errno = ENODEV;
      return 0;
    }
    packet = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
    if (packet == NULL) {
      continue;
    }
    pbuf_take(packet, flat, (u16_t)length);
    if (tun->netif.input(packet, &tun->netif) != ERR_OK) {
      pbuf_free(packet);
    }
  }
}
