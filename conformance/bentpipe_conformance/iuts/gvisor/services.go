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

// stream is one cycle of the generated stream, which is the same in every responder.
var stream = func() []byte {
	cycle := make([]byte, 1<<16)
	for index := range cycle {
		cycle[index] = byte(index ^ index>>8)
	}
	return cycle
}()

func chargen(connection net.Conn) {
	go func() {
		discard(connection)
		// The peer has finished: a writer waiting for room must not wait for ever.
		_ = connection.SetWriteDeadline(time.Unix(1, 0))
	}()
	generated := 0
	for {
		written, err := connection.Write(stream[generated%len(stream):])
		if err != nil {
			return
		}
		generated += written
	}
}
