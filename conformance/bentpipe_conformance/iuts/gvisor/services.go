package main

import (
	"fmt"
	"io"
	"net"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// listen starts echo (RFC 862), discard (RFC 863) and chargen (RFC 864, as an endless stream).
func listen(network *stack.Stack) error {
	for port, serve := range map[uint16]func(net.Conn){7: echo, 9: discard, 19: chargen} {
		where := tcpip.FullAddress{NIC: nic, Port: port}
		listener, err := gonet.ListenTCP(network, where, ipv4.ProtocolNumber)
		if err != nil {
			return fmt.Errorf("listening on port %d: %w", port, err)
		}
		go accept(listener, serve)
	}
	return nil
}

func accept(listener net.Listener, serve func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			serve(connection)
		}()
	}
}

func echo(connection net.Conn) {
	_, _ = io.Copy(connection, connection)
}

func discard(connection net.Conn) {
	_, _ = io.Copy(io.Discard, connection)
}

// The generated stream is these characters over and over.
const (
	firstCharacter = 33
	cycle          = 94
)

var characters = func() []byte {
	several := make([]byte, 64*cycle)
	for index := range several {
		several[index] = byte(firstCharacter + index%cycle)
	}
	return several
}()

func chargen(connection net.Conn) {
	go func() {
		discard(connection)
		// The peer has finished: a writer waiting for room must not wait for ever.
		_ = connection.SetWriteDeadline(time.Unix(1, 0))
	}()
	generated := 0
	for {
		written, err := connection.Write(characters[generated%cycle:])
		if err != nil {
			return
		}
		generated += written
	}
}
