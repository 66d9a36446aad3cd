// Command stp-go serves echo, discard and chargen over STP/1, and calls others on request. It is
// written from the specification alone.
//
// One goroutine does everything; it sleeps in a read whose deadline is the next timer, so that a
// virtual clock can move.
package main

import (
	"bufio"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	name            = "stp-go"
	leastMaxSD      = 512   // STP-PF-010
	mostMaxSD       = 65400 // with headers, in one UDP datagram
	mostCredit      = 1 << 20
	mostConnections = 10_000 // fewer than there are local ports
)

type options struct {
	listen string
	ip     int
	log    bool
	config
}

func parseOptions(arguments []string) (options, error) {
	var chosen options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&chosen.listen, "listen", "", "own `ADDRESS:UDPPORT`; only ADDRESS with --ip")
	flags.IntVar(&chosen.ip, "ip", 0, "carry packets directly in IP, with this `protocol` number")
	flags.IntVar(&chosen.maxSD, "max-sd", 1200, "most `octets` of user data in a packet")
	flags.IntVar(&chosen.initialWindow, "initial-window", 4, "initial congestion window in `SDs`")
	flags.IntVar(&chosen.credit, "credit", 1024, "most `SDs` held for the user of a connection")
	flags.IntVar(&chosen.window, "window", 1024, "most `SDs` sent and not yet acknowledged")
	flags.IntVar(&chosen.connections, "connections", 256, "most connections at once")
	flags.IntVar(&chosen.rate, "rate", 0, "most `bit/s` of a whole endpoint's SDs, 0 for no limit")
	path := flags.String("path-class", "geo", "timers for `geo`, leo or vbdc")
	keepAlive := flags.Int("keep-alive", 600, "`seconds` without a packet until an idle end asks")
	flags.BoolVar(&chosen.log, "log", false, "tell on standard error what discard has read")
	flags.SetOutput(io.Discard) // an error is one sentence, not the whole list
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(os.Stdout)
			flags.PrintDefaults()
		}
		return chosen, err
	}
	switch *path {
	case "geo", "leo":
		chosen.initialInterval = time.Second
	case "vbdc":
		chosen.initialInterval = 3 * time.Second
	default:
		return chosen, fmt.Errorf("--path-class can be geo, leo or vbdc, not %q", *path)
	}
	for _, bound := range []struct {
		option             string
		value, least, most int
	}{
		{"max-sd", chosen.maxSD, leastMaxSD, mostMaxSD},
		{"initial-window", chosen.initialWindow, 1, 10},
		{"credit", chosen.credit, earlyCredit, mostCredit},
		{"window", chosen.window, earlyCredit, mostCredit},
		{"connections", chosen.connections, 1, mostConnections},
		{"rate", chosen.rate, 0, 1 << 40},
		{"keep-alive", *keepAlive, 15, 7200},
	} {
		if bound.value < bound.least || bound.value > bound.most {
			return chosen, fmt.Errorf(
				"--%s must be %d to %d, not %d", bound.option, bound.least, bound.most, bound.value,
			)
		}
	}
	if flags.NArg() > 0 || chosen.listen == "" {
		return chosen, errors.New("--listen ADDRESS:UDPPORT is required, and no other words")
	}
	chosen.keepAlive = time.Duration(*keepAlive) * time.Second
	chosen.maxSTAT = maxSTAT(chosen.maxSD)
	chosen.overhead = overhead(chosen.listen, chosen.ip != 0)
	chosen.random = func() uint32 {
		var octets [4]byte
		_, _ = crand.Read(octets[:]) // never fails (crypto/rand)
		return binary.BigEndian.Uint32(octets[:])
	}
	return chosen, nil
}

// maxSTAT is section 8's number of elements that fit where an SDP of this size fits.
func maxSTAT(maxSD int) int {
	most := (fixedLength[typeSDP] + maxSD - fixedLength[typeSTAT]) / 4
	return min(67, most-(1-most%2))
}

// overhead is what IP, and UDP, put in front of a packet, in octets (STP-CG-009 counts IP packets).
func overhead(listen string, overIP bool) int {
	address, err := netip.ParseAddr(listen)
	if err != nil {
		with, _ := netip.ParseAddrPort(listen) // what is neither, the link refuses
		address = with.Addr()
	}
	octets := 20
	if address.Is6() {
		octets = 40
	}
	if !overIP {
		octets += 8
	}
	return octets
}

// inbox holds lines for the one goroutine that does the work, and wakes it.
type inbox struct {
	mutex  sync.Mutex
	lines  []string
	closed bool
	link   link
}

// add must wake a reader that is about to sleep as well as one that sleeps: both it and sleep set
// the deadline under the lock.
func (i *inbox) add(line string, closed bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if closed {
		i.closed = true
	} else {
		i.lines = append(i.lines, line)
	}
	_ = i.link.setDeadline(time.Unix(1, 0))
}

// take empties the inbox and sets the deadline of the next read.
func (i *inbox) take(deadline time.Time) (lines []string, closed bool, err error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	lines, i.lines = i.lines, nil
	if len(lines) == 0 && !i.closed {
		err = i.link.setDeadline(deadline)
	}
	return lines, i.closed, err
}

func (i *inbox) fill(source io.Reader, closing bool) {
	scanner := bufio.NewScanner(source)
	for scanner.Scan() {
		i.add(scanner.Text(), false)
	}
	if closing {
		i.add("", true)
	}
}

// ownerPipe tells whether standard input is a pipe, whose end means that the owner is gone.
func ownerPipe() bool {
	status, err := os.Stdin.Stat()
	return err == nil && status.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

func run() error {
	chosen, err := parseOptions(os.Args[1:])
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(1) // idle ones would look for work in vain
	var wire link
	if chosen.ip != 0 {
		wire, err = openIP(chosen.listen, chosen.ip)
	} else {
		wire, err = openUDP(chosen.listen)
	}
	if err != nil {
		return err
	}
	var log func(string)
	if chosen.log {
		log = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	ep := newEndpoint(chosen.config, standardServices(log), wire.send)
	ep.pseudo = wire.pseudo
	box := &inbox{link: wire}
	go box.fill(os.Stdin, ownerPipe())
	fmt.Println("ready")
	return serve(ep, wire, box, chosen.ip != 0)
}

// serve moves packets, lines and time into the core until the owner is gone.
func serve(ep *endpoint, wire link, box *inbox, overIP bool) error {
	start := time.Now()
	clock := func() instant { return time.Since(start) }
	work := &desk{
		ep: ep, overIP: overIP, clock: clock, report: func(line string) { fmt.Println(line) },
	}
	space := make([]byte, largestPacket)
	for {
		var wake time.Time // none
		if deadline := ep.deadline(); deadline != never {
			wake = start.Add(deadline)
		}
		lines, closed, err := box.take(wake)
		if err != nil || closed {
			return err
		}
		if len(lines) > 0 {
			for _, line := range lines {
				if asked, err := parseCommand(line); err != nil {
					fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
				} else {
					work.obey(asked)
				}
			}
			continue
		}
		length, from, err := wire.read(space)
		switch {
		case err == nil:
			ep.receive(clock(), from, space[:length])
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err
		}
		ep.tick(clock())
	}
}

func main() {
	err := run()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, err)
		os.Exit(1)
	}
}
