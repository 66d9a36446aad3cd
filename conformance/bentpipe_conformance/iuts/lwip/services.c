#include "services.h"

#include <stdint.h>
#include <stdlib.h>

#include <lwip/pbuf.h>
#include <lwip/tcp.h>

/* tcp_poll counts in half seconds: a service that ran out of memory tries again after one. */
#define RETRY_INTERVAL 2

enum service { ECHO, DISCARD, CHARGEN };

struct connection {
  enum service service;
  struct pbuf *received; /* echo: received octets not yet handed back */
  u16_t echoed;          /* octets of the first pbuf of `received` already handed back */
  uint64_t generated;    /* chargen: octets handed to the stack so far */
  int peer_finished;
};

/* One cycle of the generated stream, which is the same in every responder. */
#define CYCLE 65536
static unsigned char stream[CYCLE];

static u16_t at_most(size_t wanted, tcpwnd_size_t room) {
  size_t octets = wanted < room ? wanted : room;
  return (u16_t)(octets < 0xFFFF ? octets : 0xFFFF);
}

/* Queue as much of `octets` as the stack has memory for, and tell how much. In segments of a small
   MSS more octets than there are segments of memory never fit at once, however long one waits. */
static u16_t queue(struct tcp_pcb *pcb, const void *from, u16_t octets, u8_t flags) {
  while (octets > 0 && tcp_write(pcb, from, octets, flags) != ERR_OK) {
    octets /= 2;
  }
  return octets;
}

static void echo(struct tcp_pcb *pcb, struct connection *connection) {
  while (connection->received != NULL) {
    struct pbuf *first = connection->received;
    u16_t octets = at_most(first->len - connection->echoed, tcp_sndbuf(pcb));

    if (octets == 0 && connection->echoed < first->len) {
      return;
    }
    if (octets > 0) {
      const char *from = (const char *)first->payload + connection->echoed;
      octets = queue(pcb, from, octets, TCP_WRITE_FLAG_COPY);
      if (octets == 0) {
        return;
      }
      tcp_recved(pcb, octets);
      connection->echoed += octets;
    }
    if (connection->echoed == first->len) {
      connection->received = pbuf_free_header(first, first->len);
      connection->echoed = 0;
    }
  }
}

static void generate(struct tcp_pcb *pcb, struct connection *connection) {
  for (;;) {
    size_t phase = connection->generated % CYCLE;
    u16_t octets = at_most(CYCLE - phase, tcp_sndbuf(pcb));
    u8_t flags = TCP_WRITE_FLAG_COPY | TCP_WRITE_FLAG_MORE;

    octets = queue(pcb, stream + phase, octets, flags);
    if (octets == 0) {
      return;
    }
    connection->generated += octets;
  }
}

static void release(struct connection *connection) {
  if (connection->received != NULL) {
    pbuf_free(connection->received);
  }
  free(connection);
}

static void attach(struct tcp_pcb *pcb, struct connection *connection);

static void detach(struct tcp_pcb *pcb) {
  tcp_arg(pcb, NULL);
  tcp_recv(pcb, NULL);
  tcp_sent(pcb, NULL);
  tcp_err(pcb, NULL);
  tcp_poll(pcb, NULL, 0);
}

static void finish(struct tcp_pcb *pcb, struct connection *connection) {
  detach(pcb); /* First, because a successful tcp_close may free the pcb. */
  if (tcp_close(pcb) == ERR_OK) {
    release(connection);
  } else {
    attach(pcb, connection);
  }
}

/* Do what the service can do now; close when the peer has finished and nothing is left. */
static void serve(struct tcp_pcb *pcb, struct connection *connection) {
  if (connection->service == ECHO) {
    echo(pcb, connection);
  } else if (connection->service == CHARGEN && !connection->peer_finished) {
    generate(pcb, connection);
  }
  if (connection->peer_finished && connection->received == NULL) {
    finish(pcb, connection);
  } else {
    tcp_output(pcb);
  }
}

static err_t on_received(void *argument, struct tcp_pcb *pcb, struct pbuf *data, err_t error) {
  struct connection *connection = argument;

  (void)error;
  if (data == NULL) {
    connection->peer_finished = 1;
  } else if (connection->service != ECHO) {
    tcp_recved(pcb, data->tot_len);
    pbuf_free(data);
  } else if (connection->received == NULL) {
    connection->received = data;
  } else {
    pbuf_cat(connection->received, data);
  }
  serve(pcb, connection);
  return ERR_OK;
}

static err_t on_room(void *argument, struct tcp_pcb *pcb, u16_t acknowledged) {
  (void)acknowledged;
  serve(pcb, argument);
  return ERR_OK;
}

static err_t on_poll(void *argument, struct tcp_pcb *pcb) {
  serve(pcb, argument);
  return ERR_OK;
}

static void on_error(void *argument, err_t error) {
  (void)error;
  release(argument); /* lwIP has already freed the pcb. */
}

static void attach(struct tcp_pcb *pcb, struct connection *connection) {
  tcp_arg(pcb, connection);
  tcp_recv(pcb, on_received);
  tcp_sent(pcb, on_room);
  tcp_err(pcb, on_error);
  tcp_poll(pcb, on_poll, RETRY_INTERVAL);
}

static err_t on_accept(void *argument, struct tcp_pcb *pcb, err_t error) {
  struct connection *connection;

  if (error != ERR_OK || pcb == NULL) {
    return ERR_VAL;
  }
  connection = calloc(1, sizeof *connection);
  if (connection == NULL) {
    return ERR_MEM;
  }
  connection->service = (enum service)(uintptr_t)argument;
  attach(pcb, connection);
  serve(pcb, connection);
  return ERR_OK;
}

static int listen_on(u16_t port, enum service service) {
  struct tcp_pcb *pcb = tcp_new();

  if (pcb == NULL || tcp_bind(pcb, IP_ADDR_ANY, port) != ERR_OK) {
    return 0;
  }
  pcb = tcp_listen(pcb);
  if (pcb == NULL) {
    return 0;
  }
  tcp_arg(pcb, (void *)(uintptr_t)service);
  tcp_accept(pcb, on_accept);
  return 1;
}

int services_listen(void) {
  for (size_t index = 0; index < CYCLE; index++) {
    stream[index] = (unsigned char)(index ^ index >> 8);
  }
  return listen_on(7, ECHO) && listen_on(9, DISCARD) && listen_on(19, CHARGEN);
}
