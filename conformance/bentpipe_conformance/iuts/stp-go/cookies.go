package main

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
)

const (
	goodFor      = 600 * time.Second // STP-CC-035
	rememberFor  = 900 * time.Second // STP-CC-038
	cookieLength = 16                // a number and a code of 8 octets each
	maxUsed      = 1 << 14           // used cookies remembered
	maxKept      = 1 << 10           // cookies of others kept for later calls
)

type verdict int

const (
	bad verdict = iota
	good
	used
)

// usedCookie is one that has opened a connection.
type usedCookie struct {
	number uint64
	from   netip.AddrPort
}

// issuer makes and judges the cookies of an endpoint that listens (section 5.2). The number in a
// cookie is the time at which it was made, in nanoseconds, or one more than the number before.
type issuer struct {
	secret []byte
	last   uint64
	used   []usedCookie // by rising number, and so by age
	// bars are the latest used numbers that came with the V flag; no earlier cookie of the address is
	// good any more.
	bars map[netip.AddrPort]uint64
}

func (i *issuer) bake(number uint64, caller netip.AddrPort) []byte {
	address := caller.Addr().As16()
	cookie := binary.BigEndian.AppendUint64(nil, number)
	code := hmac.New(sha256.New, i.secret)
	code.Write(cookie)
	code.Write(address[:])
	code.Write(binary.BigEndian.AppendUint16(nil, caller.Port()))
	return code.Sum(cookie)[:cookieLength]
}

// fresh makes a cookie later than all before.
func (i *issuer) fresh(now instant, caller netip.AddrPort) []byte {
	i.last = max(i.last+1, uint64(now))
	return i.bake(i.last, caller)
}

func (i *issuer) judge(now instant, caller netip.AddrPort, cookie []byte) verdict {
	if len(cookie) != cookieLength {
		return bad
	}
	number := binary.BigEndian.Uint64(cookie)
	if !hmac.Equal(cookie, i.bake(number, caller)) {
		return bad
	}
	i.forget(now)
	if _, found := i.find(number); found {
		return used
	}
	if now-instant(number) > goodFor || number <= i.bars[caller] {
		return bad
	}
	return good
}

func (i *issuer) find(number uint64) (int, bool) {
	return slices.BinarySearchFunc(i.used, number, func(u usedCookie, n uint64) int {
		return cmp.Compare(u.number, n)
	})
}

// forget drops what is too old; a bar that old bars no good cookie any more.
func (i *issuer) forget(now instant) {
	for len(i.used) > 0 && now-instant(i.used[0].number) > rememberFor {
		if oldest := i.used[0]; i.bars[oldest.from] == oldest.number {
			delete(i.bars, oldest.from)
		}
		i.used = i.used[1:]
	}
}

func (i *issuer) room() bool { return len(i.used) < maxUsed }

// use remembers a good cookie by which a connection is opened. With the V flag it makes those made
// before it void.
func (i *issuer) use(caller netip.AddrPort, cookie []byte, void bool) {
	number := binary.BigEndian.Uint64(cookie)
	at, _ := i.find(number)
	i.used = slices.Insert(i.used, at, usedCookie{number, caller})
	if void {
		i.bars[caller] = number
	}
}

// token is a cookie of somebody else, and what came with it.
type token struct {
	from   netip.AddrPort
	cookie []byte
	maxSD  int // 0: none came
	at     instant
}

// newToken copies the cookie, which is part of a packet that has arrived.
func newToken(now instant, from netip.AddrPort, maxSD int, cookie []byte) token {
	return token{from, bytes.Clone(cookie), maxSD, now}
}

// purse keeps the cookies that later calls may use, and what has to be known of the calls before
// for that (STP-CC-039).
type purse struct {
	tokens []token // in the order in which they came
	past   map[netip.AddrPort]past
}

// past counts the calls to an address that have ended in state 2 and whose BEGIN carried a cookie; the
// start of the endpoint is one more. Their BEGINs may still be under way and have to be kept from
// opening anything.
type past struct {
	ended  int
	barred int // as many of them had ended when a call was made that has opened a connection since
}

func newPurse() purse { return purse{past: map[netip.AddrPort]past{}} }

// calls is how many calls to an address have ended so that past counts them, the start among them.
func (u *purse) calls(to netip.AddrPort) int { return 1 + u.past[to].ended }

// void tells whether a call that was made after so many others had ended needs the V flag.
func (u *purse) void(to netip.AddrPort, calls int) bool { return calls > u.past[to].barred }

// opened notes that a BEGIN of a call has opened a connection.
func (u *purse) opened(to netip.AddrPort, calls int) {
	before := u.past[to]
	before.barred = max(before.barred, calls)
	u.past[to] = before
}

// ended notes the end of a call in state 2 whose BEGIN carried a cookie; the cookies kept so far are of
// no use after it.
func (u *purse) ended(to netip.AddrPort) {
	before := u.past[to]
	before.ended++
	u.past[to] = before
	u.tokens = slices.DeleteFunc(u.tokens, func(t token) bool { return t.from == to })
}

func (u *purse) put(t token) {
	if len(u.tokens) >= maxKept {
		u.tokens = slices.Delete(u.tokens, 0, 1)
	}
	u.tokens = append(u.tokens, t)
}

// take gives away the first cookie that came from an address, if it is not too old (STP-CC-040).
func (u *purse) take(now instant, from netip.AddrPort) token {
	u.tokens = slices.DeleteFunc(u.tokens, func(t token) bool { return now-t.at > goodFor })
	at := slices.IndexFunc(u.tokens, func(t token) bool { return t.from == from })
	if at < 0 {
		return token{from: from}
	}
	first := u.tokens[at]
	u.tokens = slices.Delete(u.tokens, at, at+1)
	return first
}
