// Command gvisor-responder serves echo, discard and chargen on gVisor's network stack, over a TUN
// descriptor inherited from the test bed.
//
// Everything waits in the runtime's epoll or on the stack's own timers: a virtual clock only moves
// while everything sleeps.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"syscall"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	name      = "gvisor-responder"
	nic       = tcpip.NICID(1)
	prefixLen = 24
)

type options struct {
	fd               int
	address, gateway netip.Addr
	mtu              uint
	congestion       string
}

func parse() (options, error) {
	var chosen options
	flag.IntVar(&chosen.fd, "fd", -1, "descriptor of the TUN")
	flag.TextVar(&chosen.address, "address", netip.Addr{}, "own IPv4 address")
	flag.TextVar(&chosen.gateway, "gateway", netip.Addr{}, "IPv4 address of the next hop")
	flag.UintVar(&chosen.mtu, "mtu", 1500, "largest packet in octets")
	flag.StringVar(&chosen.congestion, "congestion", "reno", "reno or cubic")
	flag.Parse()
	if chosen.fd < 0 || !chosen.address.Is4() || !chosen.gateway.Is4() {
		return chosen, errors.New("--fd N, --address A.B.C.D and --gateway A.B.C.D are required")
	}
	return chosen, nil
}

func newStack(link stack.LinkEndpoint, chosen options) (*stack.Stack, error) {
	network := stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{
			tcp.NewProtocol, icmp.NewProtocol4,
		},
	})
	congestion := tcpip.CongestionControlOption(chosen.congestion)
	if err := network.SetTransportProtocolOption(tcp.ProtocolNumber, &congestion); err != nil {
		return nil, fmt.Errorf("congestion control %s: %s", chosen.congestion, err)
	}
	if err := network.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("the interface: %s", err)
	}
	address := tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{
			Address:   tcpip.AddrFrom4(chosen.address.As4()),
			PrefixLen: prefixLen,
		},
	}
	if err := network.AddProtocolAddress(nic, address, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("address %s: %s", chosen.address, err)
	}
	network.SetRouteTable([]tcpip.Route{{
		Destination: header.IPv4EmptySubnet,
		Gateway:     tcpip.AddrFrom4(chosen.gateway.As4()),
		NIC:         nic,
	}})
	return network, nil
}

// ownerPipe tells whether standard input is a pipe, whose end means that the owner is gone.
func ownerPipe() bool {
	status, err := os.Stdin.Stat()
	return err == nil && status.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func run() error {
	chosen, err := parse()
	if err != nil {
		return err
	}
	// One processor is plenty, and a runtime with idle ones looks for work in vain.
	runtime.GOMAXPROCS(1)
	if err := syscall.SetNonblock(chosen.fd, true); err != nil {
		return fmt.Errorf("the TUN descriptor: %w", err)
	}
	link := newTun(os.NewFile(uintptr(chosen.fd), "tun"), uint32(chosen.mtu))
	network, err := newStack(link, chosen)
	if err != nil {
		return err
	}
	if err := listen(network); err != nil {
		return err
	}
	over := make(chan error, 2)
	go func() { over <- link.receive() }()
	if ownerPipe() {
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			over <- err
		}()
	}
	fmt.Println("ready")
	return <-over
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
		os.Exit(1)
	}
}
