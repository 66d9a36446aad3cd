package main

// services are the test services of section 13, by port.
func services() map[uint16]func() user {
	return map[uint16]func() user{
		7:  func() user { return &echo{} },
		9:  func() user { return &discard{} },
		19: func() user { return &chargen{} },
	}
}

// quiet is a user that does not care how a connection fails.
type quiet struct{}

func (quiet) gone(error) {}

// echo returns what it receives.
type echo struct{ quiet }

func (*echo) pump(c *connection) {
	for {
		scratch := c.endpoint.scratch
		count := c.read(scratch[:min(len(scratch), c.room())])
		if count == 0 {
			break
		}
		c.write(scratch[:count])
	}
	if c.drained() {
		c.close()
	}
}

// discard reads, and forgets.
type discard struct{ quiet }

func (*discard) pump(c *connection) {
	c.skip()
	if c.drained() {
		c.close()
	}
}

// stream is one cycle of the octets of chargen.
var stream = func() []byte {
	cycle := make([]byte, 1<<16)
	for index := range cycle {
		cycle[index] = byte(index ^ index>>8)
	}
	return cycle
}()

// chargen sends octets without end, or as many as there is a limit.
type chargen struct {
	quiet
	limited bool
	left    int
	offset  int
}

func (g *chargen) pump(c *connection) {
	c.skip()
	if c.drained() {
		c.forgo()
		c.close()
		return
	}
	for room := c.room(); room > 0; room = c.room() {
		count := min(room, len(stream)-g.offset)
		if g.limited {
			count = min(count, g.left)
			g.left -= count
		}
		if count == 0 {
			c.close()
			return
		}
		c.write(stream[g.offset : g.offset+count])
		g.offset = (g.offset + count) % len(stream)
	}
}

// take reads so many octets and closes.
type take struct {
	quiet
	left int
}

func (t *take) pump(c *connection) {
	t.left -= int(c.receiver.readable())
	c.skip()
	if t.left <= 0 || c.drained() {
		c.close()
	}
}
