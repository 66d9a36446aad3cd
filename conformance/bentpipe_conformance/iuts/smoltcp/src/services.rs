//! Echo (RFC 862), discard (RFC 863) and chargen (RFC 864, as an endless stream).

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};

const RECEIVE_BUFFER: usize = 256 * 1024;
const SEND_BUFFER: usize = 256 * 1024;
/// Listening sockets per service: smoltcp turns a listener into the connection it accepts, so
/// this is how many connections may be opened in one go.
const BACKLOG: usize = 8;
/// Above this many connections the oldest is reset, lest peers that vanished use up the memory.
const CONNECTIONS: usize = 256;

#[derive(Clone, Copy)]
enum Service {
    Echo,
    Discard,
    Chargen,
}

const SERVICES: [(u16, Service); 3] = [
    (7, Service::Echo),
    (9, Service::Discard),
    (19, Service::Chargen),
];

/// One socket and the service behind it, whether listening or connected.
struct Worker {
    handle: SocketHandle,
    port: u16,
    service: Service,
    /// Octets of the generated stream handed to the stack so far.
    generated: u64,
}

/// The three services with all their sockets.
pub struct Services {
    sockets: SocketSet<'static>,
    workers: Vec<Worker>,
    congestion: CongestionControl,
}

impl Services {
    /// Listen on all three ports.
    pub fn new(congestion: CongestionControl) -> Self {
        let mut services = Services {
            sockets: SocketSet::new(Vec::new()),
            workers: Vec::new(),
            congestion,
        };
        services.refill();
        services
    }

    /// The sockets, for the interface to poll.
    pub fn sockets(&mut self) -> &mut SocketSet<'static> {
        &mut self.sockets
    }

    /// Move data between the sockets and their services; true when the stack has news to send.
    pub fn serve(&mut self) -> bool {
        let mut news = false;
        for worker in &mut self.workers {
            let socket = self.sockets.get_mut::<Socket>(worker.handle);
            news |= match worker.service {
                Service::Echo => echo(socket),
                Service::Discard => discard(socket),
                Service::Chargen => chargen(socket, &mut worker.generated),
            };
        }
        self.drop_closed();
        self.refill();
        news | self.reset_oldest()
    }

    /// Forget sockets that are closed and have sent their last reset.
    fn drop_closed(&mut self) {
        let sockets = &mut self.sockets;
        self.workers.retain(|worker| {
            let socket = sockets.get::<Socket>(worker.handle);
            let over = socket.state() == State::Closed && socket.remote_endpoint().is_none();
            if over {
                sockets.remove(worker.handle);
            }
            !over
        });
    }

    /// Keep `BACKLOG` listeners on every port.
    fn refill(&mut self) {
        for (port, service) in SERVICES {
            let listening = self
                .workers
                .iter()
                .filter(|worker| worker.port == port)
                .filter(|worker| self.sockets.get::<Socket>(worker.handle).is_listening())
                .count();
            for _ in listening..BACKLOG {
                let mut socket = Socket::new(
                    SocketBuffer::new(vec![0; RECEIVE_BUFFER]),
                    SocketBuffer::new(vec![0; SEND_BUFFER]),
                );
                socket.set_congestion_control(self.congestion);
                socket.listen(port).expect("a fresh socket can listen");
                let handle = self.sockets.add(socket);
                self.workers.push(Worker {
                    handle,
                    port,
                    service,
                    generated: 0,
                });
            }
        }
    }

    fn reset_oldest(&mut self) -> bool {
        let connections: Vec<SocketHandle> = self
            .workers
            .iter()
            .map(|worker| worker.handle)
            .filter(|&handle| {
                let socket = self.sockets.get::<Socket>(handle);
                socket.is_open() && !socket.is_listening()
            })
            .collect();
        let excess = connections.len().saturating_sub(CONNECTIONS);
        for &handle in &connections[..excess] {
            self.sockets.get_mut::<Socket>(handle).abort();
        }
        excess > 0
    }
}

/// The peer has closed its side and everything it sent has been read.
fn exhausted(socket: &Socket) -> bool {
    let open_here = matches!(socket.state(), State::CloseWait);
    open_here && !socket.may_recv() && !socket.can_recv()
}

fn finish_when_exhausted(socket: &mut Socket) -> bool {
    let over = exhausted(socket);
    if over {
        socket.close();
    }
    over
}

fn echo(socket: &mut Socket) -> bool {
    let mut moved = false;
    while socket.can_recv() && socket.can_send() {
        let room = socket.send_capacity() - socket.send_queue();
        let mut chunk = [0; 4096];
        let wanted = room.min(chunk.len());
        let Ok(got) = socket.recv_slice(&mut chunk[..wanted]) else {
            break;
        };
        // `room` made sure that the whole chunk fits.
        let _ = socket.send_slice(&chunk[..got]);
        moved = true;
    }
    moved | finish_when_exhausted(socket)
}

fn discard(socket: &mut Socket) -> bool {
    drain(socket) | finish_when_exhausted(socket)
}

fn chargen(socket: &mut Socket, generated: &mut u64) -> bool {
    let mut moved = drain(socket);
    if exhausted(socket) {
        socket.close();
        return true;
    }
    while socket.can_send() {
        let written = socket.send(|room| {
            for (index, place) in room.iter_mut().enumerate() {
                *place = octet(*generated + index as u64);
            }
            (room.len(), room.len())
        });
        match written {
            Ok(count) if count > 0 => *generated += count as u64,
            _ => break,
        }
        moved = true;
    }
    moved
}

/// The octet at `offset` of the generated stream, the same in every responder.
fn octet(offset: u64) -> u8 {
    (offset ^ offset >> 8) as u8
}

fn drain(socket: &mut Socket) -> bool {
    let mut moved = false;
    while socket.can_recv() {
        if socket.recv(|data| (data.len(), ())).is_err() {
            break;
        }
        moved = true;
    }
    moved
}
