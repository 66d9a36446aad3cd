package main

import (
	"crypto/sha256"
	"fmt"
	"hash"
)

// app is the user of one connection. step is called when there may be something to read or room to
// write; it must not block. over is called once, with nil if both streams have ended well.
type app interface {
	step(c *conn)
	over(c *conn, outcome error)
}

// What a user does with a connection.

func (c *conn) read() []byte      { return c.rcv.read() }
func (c *conn) ended() bool       { return c.rcv.ended() }
func (c *conn) room() int         { return c.snd.room() }
func (c *conn) write(data []byte) { c.snd.buffer = append(c.snd.buffer, data...) }
func (c *conn) close()            { c.snd.closing = true }

const (
	portEcho    = 7
	portDiscard = 9
	portChargen = 19
)

// pattern is one period, and a bit, of the stream of section 11: octet i is (i XOR (i >> 8)) AND 255.
var pattern = func() []byte {
	octets := make([]byte, 2<<16)
	for i := range octets {
		octets[i] = byte(i ^ i>>8)
	}
	return octets
}()

// patternAt is a part of the endless stream, at most 65,536 octets.
func patternAt(offset, length int) []byte {
	start := offset % (1 << 16)
	return pattern[start : start+min(length, 1<<16)]
}

type echo struct{ quiet }

func (*echo) step(c *conn) {
	for c.room() > 0 {
		data := c.read()
		if data == nil {
			break
		}
		c.write(data)
	}
	if c.ended() {
		c.close()
	}
}

type discard struct {
	octets int
	digest hash.Hash // nil if nobody wants to know
	report func(line string)
}

func (d *discard) step(c *conn) {
	for data := c.read(); data != nil; data = c.read() {
		d.octets += len(data)
		if d.digest != nil {
			d.digest.Write(data)
		}
	}
	if c.ended() {
		c.close()
	}
}

func (d *discard) over(c *conn, outcome error) {
	if d.digest != nil {
		d.report(fmt.Sprintf(
			"discard %s octets=%d sha256=%x", word(outcome), d.octets, d.digest.Sum(nil),
		))
	}
}

type chargen struct {
	quiet
	offset int
}

func (g *chargen) step(c *conn) {
	for c.read() != nil {
	}
	if c.ended() {
		c.close()
		return
	}
	for room := c.room(); room > 0; room = c.room() {
		data := patternAt(g.offset, room)
		c.write(data)
		g.offset += len(data)
	}
}

// quiet tells nobody how a connection ended.
type quiet struct{}

func (quiet) over(*conn, error) {}

func word(outcome error) string {
	if outcome == nil {
		return "ok"
	}
	return "failed: " + outcome.Error() + ";"
}

// standardServices are those of section 11; report, if there is one, is told what discard has read.
func standardServices(report func(line string)) map[uint16]func() app {
	return map[uint16]func() app{
		portEcho: func() app { return &echo{} },
		portDiscard: func() app {
			if report == nil {
				return &discard{}
			}
			return &discard{digest: sha256.New(), report: report}
		},
		portChargen: func() app { return &chargen{} },
	}
}
