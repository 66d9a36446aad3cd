package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

const (
	socketBuffer  = 4 << 20
	largestPacket = 65535
)

// link carries packets: UDP (STP-PF-014) or IP itself (STP-PF-015).
type link interface {
	read(space []byte) (int, netip.AddrPort, error)
	send(to netip.AddrPort, octets []byte) // what cannot be sent is lost
	setDeadline(when time.Time) error
	pseudo(peer netip.Addr, length int) uint64
}

type udpLink struct{ *net.UDPConn }

func openUDP(where string) (link, error) {
	address, err := netip.ParseAddrPort(where)
	if err != nil {
		return nil, fmt.Errorf("--listen needs ADDRESS:UDPPORT, not %q", where)
	}
	network := "udp6"
	if address.Addr().Is4() {
		network = "udp4"
	}
	socket, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(address))
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", where, err)
	}
	// The kernel may give less; then a burst may lose packets, which STP repairs.
	_ = socket.SetReadBuffer(socketBuffer)
	_ = socket.SetWriteBuffer(socketBuffer)
	return udpLink{socket}, dontFragment(socket, address.Addr())
}

func (l udpLink) read(space []byte) (int, netip.AddrPort, error) {
	return l.ReadFromUDPAddrPort(space)
}

func (l udpLink) send(to netip.AddrPort, octets []byte) {
	_, _ = l.WriteToUDPAddrPort(octets, to)
}

func (l udpLink) setDeadline(when time.Time) error { return l.SetReadDeadline(when) }

// pseudo is nothing: UDP's checksum covers the addresses (section 3.2).
func (udpLink) pseudo(netip.Addr, int) uint64 { return 0 }

type ipLink struct {
	*net.IPConn
	own      netip.Addr
	protocol int
}

func openIP(where string, protocol int) (link, error) {
	address, err := netip.ParseAddr(where)
	if err != nil || address.IsUnspecified() {
		return nil, fmt.Errorf("--listen needs one own IP address with --ip, not %q", where)
	}
	if protocol != 253 && protocol != 254 {
		return nil, fmt.Errorf("--ip can be 253 or 254, not %d", protocol)
	}
	network := fmt.Sprintf("ip6:%d", protocol)
	if address.Is4() {
		network = fmt.Sprintf("ip4:%d", protocol)
	}
	socket, err := net.ListenIP(network, &net.IPAddr{IP: address.AsSlice(), Zone: address.Zone()})
	if err != nil {
		return nil, fmt.Errorf("cannot receive IP protocol %d (it needs root): %w", protocol, err)
	}
	_ = socket.SetReadBuffer(socketBuffer)
	_ = socket.SetWriteBuffer(socketBuffer)
	return ipLink{socket, address, protocol}, dontFragment(socket, address)
}

func (l ipLink) read(space []byte) (int, netip.AddrPort, error) {
	length, from, err := l.ReadFromIP(space)
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	address, ok := netip.AddrFromSlice(from.IP)
	if !ok {
		return 0, netip.AddrPort{}, errors.New("a packet without an address")
	}
	return length, netip.AddrPortFrom(address.Unmap().WithZone(from.Zone), 0), nil
}

func (l ipLink) send(to netip.AddrPort, octets []byte) {
	peer := net.IPAddr{IP: to.Addr().AsSlice(), Zone: to.Addr().Zone()}
	_, _ = l.WriteToIP(octets, &peer)
}

func (l ipLink) setDeadline(when time.Time) error { return l.SetReadDeadline(when) }

// pseudo adds RFC 9293's or RFC 8200's pseudo-header; their sums do not depend on the direction.
func (l ipLink) pseudo(peer netip.Addr, length int) uint64 {
	sum := sum16(l.own.AsSlice(), sum16(peer.AsSlice(), 0))
	return sum16(binary.BigEndian.AppendUint32(nil, uint32(length)), sum) + uint64(l.protocol)
}

// dontFragment sets DF on what is sent (STP-PF-016).
func dontFragment(socket syscall.Conn, own netip.Addr) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	err = raw.Control(func(descriptor uintptr) {
		if own.Is4() {
			refused = syscall.SetsockoptInt(
				int(descriptor), syscall.IPPROTO_IP, syscall.IP_MTU_DISCOVER,
				syscall.IP_PMTUDISC_DO,
			)
		} else {
			refused = syscall.SetsockoptInt(
				int(descriptor), syscall.IPPROTO_IPV6, syscall.IPV6_MTU_DISCOVER,
				syscall.IPV6_PMTUDISC_DO,
			)
		}
	})
	return errors.Join(err, refused)
}
