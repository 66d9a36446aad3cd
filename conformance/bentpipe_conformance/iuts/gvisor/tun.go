package main

import (
	"os"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

const largestPacket = 65535

// tun is a link endpoint over a TUN descriptor that somebody else opened. It borrows everything
// but the way out from the channel endpoint, whose queue would only delay and drop packets.
type tun struct {
	*channel.Endpoint
	file *os.File
}

func newTun(file *os.File, mtu uint32) *tun {
	return &tun{Endpoint: channel.New(0, mtu, ""), file: file}
}

// WritePackets sends the packets at once, in order.
func (t *tun) WritePackets(packets stack.PacketBufferList) (int, tcpip.Error) {
	for _, packet := range packets.AsSlice() {
		contents := packet.ToBuffer()
		// A packet the kernel refuses is a lost packet: recovering it is the stack's business.
		_, _ = t.file.Write(contents.Flatten())
		contents.Release()
	}
	return packets.Len(), nil
}

// receive hands every arriving packet to the stack until the interface dies.
func (t *tun) receive() error {
	space := make([]byte, largestPacket)
	for {
		length, err := t.file.Read(space)
		if err != nil {
			return err
		}
		packet := stack.NewPacketBuffer(stack.PacketBufferOptions{
			Payload: buffer.MakeWithData(space[:length]),
		})
		t.InjectInbound(ipv4.ProtocolNumber, packet)
		packet.DecRef()
	}
}
