package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/netip"
	"strconv"
	"strings"
)

const defaultOctets = 2000

// caller is the user of a connection that a line on standard input asked for.
type caller struct {
	number  int
	service uint16
	octets  int // to be sent to echo and discard, to be received from chargen
	started instant
	report  func(line string)
	clock   func() instant

	sent, got int
	digest    hash.Hash // of what is received; with discard, of what is sent
	wrong     bool
}

func (u *caller) step(c *conn) {
	for data := c.read(); data != nil; data = c.read() {
		u.check(data)
	}
	if u.service == portChargen {
		if u.got >= u.octets {
			c.close()
		}
		return
	}
	for u.sent < u.octets && c.room() > 0 {
		data := patternAt(u.sent, min(c.room(), u.octets-u.sent))
		c.write(data)
		u.sent += len(data)
		if u.service == portDiscard {
			u.digest.Write(data)
		}
	}
	if u.sent == u.octets {
		c.close()
	}
}

// check compares what arrives with the pattern; what chargen sends after enough is not counted.
func (u *caller) check(data []byte) {
	if u.service == portChargen {
		data = data[:min(len(data), max(0, u.octets-u.got))]
	}
	if u.service != portDiscard {
		for at := 0; at < len(data); at += 1 << 16 {
			part := data[at:min(len(data), at+1<<16)]
			u.wrong = u.wrong || !bytes.Equal(part, patternAt(u.got+at, len(part)))
		}
		u.digest.Write(data)
	}
	u.got += len(data)
}

func (u *caller) over(c *conn, outcome error) {
	expected := u.octets
	if u.service == portDiscard {
		expected = 0
	}
	if outcome == nil && (u.wrong || u.got != expected) {
		outcome = fmt.Errorf("%d octets received, not the %d expected ones", u.got, expected)
	}
	u.report(fmt.Sprintf(
		"open %d %s sent=%d received=%d sha256=%x seconds=%.3f", u.number, word(outcome), u.sent,
		u.got, u.digest.Sum(nil), (u.clock() - u.started).Seconds(),
	))
}

// command is one line on standard input.
type command struct {
	abort   bool
	to      netip.AddrPort
	service uint16
	octets  int
}

const usage = "say open ADDRESS UDPPORT 7|9|19 [OCTETS], or abort"

// parseCommand reads one line.
func parseCommand(line string) (command, error) {
	words := strings.Fields(line)
	if len(words) == 1 && words[0] == "abort" {
		return command{abort: true}, nil
	}
	if len(words) < 4 || len(words) > 5 || words[0] != "open" {
		return command{}, fmt.Errorf("%q is no command; %s", line, usage)
	}
	address, err := netip.ParseAddr(words[1])
	if err != nil {
		return command{}, fmt.Errorf("%q is no IP address; %s", words[1], usage)
	}
	port, err := strconv.ParseUint(words[2], 10, 16)
	if err != nil {
		return command{}, fmt.Errorf("%q is no UDP port; %s", words[2], usage)
	}
	asked := command{to: netip.AddrPortFrom(address, uint16(port)), octets: defaultOctets}
	switch words[3] {
	case "7":
		asked.service = portEcho
	case "9":
		asked.service = portDiscard
	case "19":
		asked.service = portChargen
	default:
		return command{}, fmt.Errorf("%q is no service; %s", words[3], usage)
	}
	if len(words) == 5 {
		asked.octets, err = strconv.Atoi(words[4])
		if err != nil || asked.octets < 0 {
			return command{}, fmt.Errorf("%q is no number of octets; %s", words[4], usage)
		}
	}
	return asked, nil
}

// desk carries out commands and numbers the calls.
type desk struct {
	ep     *endpoint
	overIP bool // where there are no UDP ports
	clock  func() instant
	report func(line string)
	calls  int
}

func (d *desk) obey(asked command) {
	now := d.clock()
	if asked.abort {
		d.ep.abortCalls(now)
		return
	}
	d.calls++
	if d.overIP {
		asked.to = netip.AddrPortFrom(asked.to.Addr(), 0)
	}
	user := &caller{
		number: d.calls, service: asked.service, octets: asked.octets, started: now,
		report: d.report, clock: d.clock, digest: sha256.New(),
	}
	if err := d.ep.call(now, asked.to, asked.service, user); err != nil {
		d.report(fmt.Sprintf("open %d failed: %s", d.calls, err))
	}
}
