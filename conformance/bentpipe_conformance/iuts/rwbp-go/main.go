// Command rwbp-go is an endpoint of RWBP/1, written from its specification alone. It serves echo,
// discard and chargen over a TUN descriptor inherited from the test bed, and makes the calls that it
// reads from its standard input.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	name          = "rwbp-go"
	largestPacket = 65535
)

type settings struct {
	fd       int
	address  netip.Addr
	mtu      int
	rwbp     bool
	interval uint
	buffer   uint
	// Of the link with a rate and a gateway, if there is one.
	linkAddress, gateway netip.Addr
	linkRate             float64
}

func parseFlags() (settings, error) {
	var chosen settings
	flag.IntVar(&chosen.fd, "fd", -1, "descriptor of the TUN")
	flag.TextVar(&chosen.address, "address", netip.Addr{}, "own IPv4 address")
	flag.IntVar(&chosen.mtu, "mtu", 1500, "largest packet in octets")
	flag.BoolVar(&chosen.rwbp, "rwbp", false, "offer and accept RWBP on this link")
	flag.UintVar(&chosen.interval, "interval", 8, "how many segments the peer acknowledges at once")
	flag.UintVar(&chosen.buffer, "buffer", 1<<19, "octets of the receive buffer of a connection")
	flag.TextVar(&chosen.linkAddress, "link-address", netip.Addr{}, "own IPv4 address on the link with a rate or a gateway")
	flag.Float64Var(&chosen.linkRate, "link-rate", 0, "rate of that link in bit/s, 0 for none")
	flag.TextVar(&chosen.gateway, "gateway", netip.Addr{}, "IPv4 address of its gateway")
	flag.Parse()
	switch {
	case chosen.fd < 0 || !chosen.address.Is4():
		return chosen, errors.New("--fd N and --address A.B.C.D are required")
	case (chosen.linkRate != 0 || chosen.gateway.IsValid()) && !chosen.linkAddress.Is4():
		return chosen, errors.New("--link-rate and --gateway need a --link-address")
	case chosen.linkRate < 0 || chosen.gateway.IsValid() && !chosen.gateway.Is4():
		return chosen, errors.New("--link-rate must not be negative, --gateway be A.B.C.D")
	case chosen.mtu < headers+smallestUnit || chosen.mtu > largestPacket:
		return chosen, errors.New("--mtu must be 88 to 65535")
	case chosen.interval < 1 || chosen.interval > 255:
		return chosen, errors.New("--interval must be 1 to 255")
	case chosen.buffer < 4*uint(chosen.mtu-headers) || chosen.buffer > 1<<30:
		return chosen, errors.New("--buffer must be four segments at least, and 2^30 at most")
	}
	return chosen, nil
}

// told is a user that reports how its connection has failed.
type told struct {
	user
	peer string
}

func (t told) gone(err error) { fmt.Fprintf(os.Stderr, "%s: call to %s: %s\n", name, t.peer, err) }

// operator makes the calls that are wanted.
type operator struct {
	endpoint *endpoint
	calls    []*connection
}

// obey carries out one line: "open ADDRESS PORT [chargen|discard|echo|OCTETS]", or "abort".
func (o *operator) obey(line string, now instant) error {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return nil
	case words[0] == "abort":
		o.endpoint.now = now
		for _, c := range o.calls {
			c.abort(nil)
		}
		o.calls = nil
		return nil
	case words[0] == "open" && (len(words) == 3 || len(words) == 4):
		return o.open(words[1:], now)
	}
	return fmt.Errorf("%q is no command", line)
}

func (o *operator) open(words []string, now instant) error {
	peer, err := netip.ParseAddr(words[0])
	if err != nil || !peer.Is4() {
		return fmt.Errorf("%q is no IPv4 address", words[0])
	}
	port, err := strconv.ParseUint(words[1], 10, 16)
	if err != nil {
		return fmt.Errorf("%q is no port", words[1])
	}
	owner, err := caller(words[2:], port)
	if err != nil {
		return err
	}
	report := told{owner, netip.AddrPortFrom(peer, uint16(port)).String()}
	c, err := o.endpoint.call(peer.As4(), uint16(port), report, now)
	if err != nil {
		return err
	}
	o.calls = append(o.calls[max(0, len(o.calls)-mostConnections):], c)
	return nil
}

// caller is the user of a call: a service, or so many octets sent, or read from chargen.
func caller(words []string, port uint64) (user, error) {
	if len(words) == 0 {
		words = []string{"chargen"}
	}
	switch words[0] {
	case "chargen":
		return &chargen{}, nil
	case "discard":
		return &discard{}, nil
	case "echo":
		return &echo{}, nil
	}
	octets, err := strconv.ParseUint(words[0], 10, 31)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is neither a service nor a number of octets", words[0])
	case port == 19:
		return &take{left: int(octets)}, nil
	}
	return &chargen{limited: true, left: int(octets)}, nil
}

// readPackets passes on what arrives until the interface dies.
func readPackets(file *os.File, packets chan<- []byte, over chan<- error) {
	space := make([]byte, largestPacket)
	for {
		length, err := file.Read(space)
		if err != nil {
			over <- err
			return
		}
		packets <- append([]byte(nil), space[:length]...)
	}
}

// readCommands passes on the lines of standard input; its end means that the owner is gone.
func readCommands(lines chan<- string, over chan<- error) {
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		lines <- scanner.Text()
	}
	over <- scanner.Err()
}

// ownerPipe tells whether standard input is a pipe.
func ownerPipe() bool {
	status, err := os.Stdin.Stat()
	return err == nil && status.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func run() error {
	chosen, err := parseFlags()
	if err != nil {
		return err
	}
	// One processor is plenty, and a runtime with idle ones looks for work in vain.
	runtime.GOMAXPROCS(1)
	if err := syscall.SetNonblock(chosen.fd, true); err != nil {
		return fmt.Errorf("the TUN descriptor: %w", err)
	}
	file := os.NewFile(uintptr(chosen.fd), "tun")
	// A packet the kernel refuses is a lost packet.
	leave := func(packet []byte) { _, _ = file.Write(packet) }
	endpoints := []*endpoint{newEndpoint(chosen.address.As4(), chosen.mtu, leave)}
	if chosen.linkAddress.IsValid() {
		behind := newEndpoint(chosen.linkAddress.As4(), chosen.mtu, leave)
		behind.uplink.rate = chosen.linkRate
		if chosen.gateway.IsValid() {
			gateway := address(chosen.gateway.As4())
			behind.uplink.gateway = &gateway
		}
		endpoints = append(endpoints, behind)
	}
	for _, each := range endpoints {
		each.rwbp = chosen.rwbp
		each.interval = uint8(chosen.interval)
		each.receiveBuffer = uint32(chosen.buffer)
	}

	packets, lines, over := make(chan []byte), make(chan string), make(chan error, 2)
	go readPackets(file, packets, over)
	if ownerPipe() {
		go readCommands(lines, over)
	}
	fmt.Println("ready")
	return loop(endpoints, packets, lines, over)
}

// nap is how long to sleep before something is due in so long. A kernel may end a long wait for
// descriptors up to half a percent of it late (0.1 s at most), which is more than the 0.05 s of section
// 2; so the loop wakes up early, and sleeps again for what is left.
func nap(left time.Duration) time.Duration {
	if left > time.Second {
		return left - left/50
	}
	return left
}

// loop is where everything happens, one event after the other.
func loop(endpoints []*endpoint, packets <-chan []byte, lines <-chan string, over <-chan error) error {
	began := time.Now()
	operator := &operator{endpoint: endpoints[0]}
	alarm := time.NewTimer(0)
	for {
		deadline := never
		for _, each := range endpoints {
			deadline = min(deadline, each.deadline())
		}
		if deadline == never {
			alarm.Stop()
		} else {
			alarm.Reset(nap(deadline - time.Since(began)))
		}
		select {
		case packet := <-packets:
			for _, each := range endpoints {
				each.receive(packet, time.Since(began))
			}
		case line := <-lines:
			if err := operator.obey(line, time.Since(began)); err != nil {
				fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
			}
		case err := <-over:
			return err
		case <-alarm.C:
			for _, each := range endpoints {
				each.advance(time.Since(began))
			}
		}
	}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
		os.Exit(1)
	}
}
