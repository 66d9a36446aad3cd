------------------------------ MODULE RwbpFlow -------------------------------
(* RWBP's flow control (ZB03 section III.A): back-pressure from the downstream proxy and the gateway   *)
(* through the upstream proxy to the TCP sources, so that no queue ever overflows.                     *)
(*                                                                                                    *)
(* Every connection runs  source -> wire -> receive buffer -> send buffer -> IP queue -> gateway's     *)
(* queue -> satellite -> downstream buffer -> user.  Packets are counted, not numbered. All limits are  *)
(* absolute counts, so that an old report is never more generous than a new one. A packet lost on the   *)
(* satellite link is sent again; it keeps its place in the downstream buffer.                           *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Connections,    \* a set
    Packets,        \* to transfer on each connection
    ReceiveBuffer,  \* upstream proxy, per connection
    SendBuffer,     \* upstream proxy, per connection: packets not yet given to IP
    IpQueue,        \* upstream proxy, shared
    GatewayQueue,   \* satellite gateway, shared
    Window,         \* downstream buffer, per connection
    Losses,         \* budget of packets lost on the satellite link
    Stalled         \* connections whose user never reads

VARIABLES
    offered,        \* sent by the source
    tcpLimit,       \* the newest TCP window the source knows, as an absolute limit
    received,       \* arrived in the receive buffer
    moved,          \* moved to the send buffer
    again,          \* lost on the satellite link and waiting in the send buffer
    sent,           \* given to IP for the first time
    window,         \* the newest downstream window known, as an absolute limit
    ip,             \* the IP queue, connections by packet
    gatewayCredit,  \* the newest gateway limit known
    toGateway,      \* packets ever passed to the gateway
    gateway,        \* the gateway's queue
    passed,         \* packets ever passed on by the gateway
    satellite,      \* packets under way
    arrived,        \* in the downstream buffer or beyond
    consumed,       \* read by the downstream user
    losses,
    last            \* connection served last by the scheduler

perFlow == <<offered, tcpLimit, received, moved, again, sent, window, arrived, consumed>>
shared  == <<ip, gatewayCredit, toGateway, gateway, passed, satellite, losses, last>>
vars == <<perFlow, shared>>

Zero == [c \in Connections |-> 0]
Nobody == 0

Init ==
    /\ offered = Zero /\ received = Zero /\ moved = Zero /\ again = Zero /\ sent = Zero
    /\ arrived = Zero /\ consumed = Zero
    /\ tcpLimit = [c \in Connections |-> ReceiveBuffer]
    /\ window = [c \in Connections |-> Window]
    /\ ip = <<>> /\ gateway = <<>> /\ satellite = <<>>
    /\ gatewayCredit = GatewayQueue /\ toGateway = 0 /\ passed = 0
    /\ losses = Losses /\ last = Nobody

Plus(counts, c) == [counts EXCEPT ![c] = @ + 1]

InReceiveBuffer(c) == received[c] - moved[c]
InSendBuffer(c)    == moved[c] - sent[c] + again[c]

----------------------------------------------------------------------------
(* RWBP-FC-001: the source stays within the TCP window. *)
MayOffer(c) == offered[c] < tcpLimit[c]

Offer(c) ==
    /\ offered[c] < Packets /\ MayOffer(c)
    /\ offered' = Plus(offered, c)
    /\ UNCHANGED <<tcpLimit, received, moved, again, sent, window, arrived, consumed, shared>>

Receive(c) ==
    /\ received[c] < offered[c]
    /\ received' = Plus(received, c)
    /\ UNCHANGED <<offered, tcpLimit, moved, again, sent, window, arrived, consumed, shared>>

AdvertiseTcp(c) ==
    /\ tcpLimit[c] < moved[c] + ReceiveBuffer
    /\ tcpLimit' = [tcpLimit EXCEPT ![c] = moved[c] + ReceiveBuffer]
    /\ UNCHANGED <<offered, received, moved, again, sent, window, arrived, consumed, shared>>

(* RWBP-FC-002: a blocking write. A lost packet comes back into the room it left, so that room is      *)
(* kept for everything not yet acknowledged.                                                          *)
MayMove(c) == moved[c] - arrived[c] < SendBuffer

Move(c) ==
    /\ InReceiveBuffer(c) > 0 /\ MayMove(c)
    /\ moved' = Plus(moved, c)
    /\ UNCHANGED <<offered, tcpLimit, received, again, sent, window, arrived, consumed, shared>>

(* RWBP-FC-003: new packets only within the window; the paper's "greater than one" read as "at least   *)
(* one". *)
WindowOpen(c) == window[c] - sent[c] >= 1

(* RWBP-FC-004 *)
IpHasRoom == Len(ip) < IpQueue

Sendable(c) == again[c] > 0 \/ (sent[c] < moved[c] /\ WindowOpen(c))

(* RWBP-FC-005: round robin. With two connections: not the same again while the other one has a turn.  *)
HasTurn(c) == c # last \/ \A d \in Connections \ {c} : ~Sendable(d)

Schedule(c) ==
    /\ Sendable(c) /\ IpHasRoom /\ HasTurn(c)
    /\ ip' = Append(ip, c)
    /\ IF again[c] > 0
       THEN again' = [again EXCEPT ![c] = @ - 1] /\ UNCHANGED sent
       ELSE sent' = Plus(sent, c) /\ UNCHANGED again
    /\ last' = c
    /\ UNCHANGED <<offered, tcpLimit, received, moved, window, arrived, consumed,
                   gatewayCredit, toGateway, gateway, passed, satellite, losses>>

(* RWBP-FC-006: only within the gateway's credit. *)
CreditOpen == toGateway < gatewayCredit

PassToGateway ==
    /\ ip # <<>> /\ CreditOpen
    /\ gateway' = Append(gateway, Head(ip)) /\ ip' = Tail(ip)
    /\ toGateway' = toGateway + 1
    /\ UNCHANGED <<perFlow, gatewayCredit, passed, satellite, losses, last>>

(* The limit the gateway's credit names: absolute. *)
GatewayLimit == passed + GatewayQueue

GrantCredit ==
    /\ gatewayCredit # GatewayLimit
    /\ gatewayCredit' = GatewayLimit
    /\ UNCHANGED <<perFlow, ip, toGateway, gateway, passed, satellite, losses, last>>

Uplink ==
    /\ gateway # <<>> /\ Len(satellite) < 1
    /\ satellite' = Append(satellite, Head(gateway)) /\ gateway' = Tail(gateway)
    /\ passed' = passed + 1
    /\ UNCHANGED <<perFlow, ip, gatewayCredit, toGateway, losses, last>>

Arrive ==
    /\ satellite # <<>>
    /\ arrived' = Plus(arrived, Head(satellite)) /\ satellite' = Tail(satellite)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, again, sent, window, consumed,
                   ip, gatewayCredit, toGateway, gateway, passed, losses, last>>

Lose ==
    /\ satellite # <<>> /\ losses > 0
    /\ again' = Plus(again, Head(satellite)) /\ satellite' = Tail(satellite)
    /\ losses' = losses - 1
    /\ UNCHANGED <<offered, tcpLimit, received, moved, sent, window, arrived, consumed,
                   ip, gatewayCredit, toGateway, gateway, passed, last>>

HasArrived(c) == consumed[c] < arrived[c]

Consume(c) ==
    /\ HasArrived(c) /\ c \notin Stalled
    /\ consumed' = Plus(consumed, c)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, again, sent, window, arrived, shared>>

(* What the downstream proxy advertises: RWBP-FC-003. *)
DownstreamLimit(c) == consumed[c] + Window

AdvertiseWindow(c) ==
    /\ window[c] # DownstreamLimit(c)
    /\ window' = [window EXCEPT ![c] = DownstreamLimit(c)]
    /\ UNCHANGED <<offered, tcpLimit, received, moved, again, sent, arrived, consumed, shared>>

Flow(c) == \/ Offer(c) \/ Receive(c) \/ AdvertiseTcp(c) \/ Move(c) \/ Schedule(c) \/ Consume(c)
           \/ AdvertiseWindow(c)
Shared == PassToGateway \/ GrantCredit \/ Uplink \/ Arrive

Next == (\E c \in Connections : Flow(c)) \/ Shared \/ Lose

Spec == Init /\ [][Next]_vars
FairSpec == /\ Spec /\ \A c \in Connections : WF_vars(Flow(c)) /\ SF_vars(Schedule(c))
            /\ WF_vars(Shared)

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ \A c \in Connections :
        /\ 0 <= consumed[c] /\ consumed[c] <= arrived[c] /\ arrived[c] <= sent[c]
        /\ sent[c] <= moved[c] /\ moved[c] <= received[c] /\ received[c] <= offered[c]
        /\ offered[c] <= Packets /\ again[c] \in 0..Losses
    /\ losses \in 0..Losses

(* RWBP-FC-001 *)
ReceiveBufferSuffices == \A c \in Connections : InReceiveBuffer(c) <= ReceiveBuffer
(* RWBP-FC-002 *)
SendBufferSuffices == \A c \in Connections : InSendBuffer(c) <= SendBuffer
(* RWBP-FC-004 *)
IpQueueSuffices == Len(ip) <= IpQueue
(* RWBP-FC-006 *)
GatewayQueueSuffices == Len(gateway) <= GatewayQueue
(* RWBP-FC-003 *)
DownstreamBufferSuffices == \A c \in Connections : arrived[c] - consumed[c] <= Window

(* RWBP-FC-005 *)
RoundRobin ==
    [][\A c \in Connections :
          (last = c /\ last' = c /\ ip' # ip /\ Len(ip') > Len(ip)) =>
              \A d \in Connections \ {c} : ~Sendable(d)]_vars

(* RWBP-FC-007: a connection whose user does not read holds up nobody else, and everybody is served.   *)
OthersComplete == \A c \in Connections \ Stalled : <>(consumed[c] = Packets)

Items == [i \in 1..Packets |-> i - 1]
Service(c) == INSTANCE ReliableFifo WITH
    accepted <- offered[c], delivered <- SubSeq(Items, 1, consumed[c])
DeliveredIsPrefix == \A c \in Connections : Service(c)!DeliveredIsPrefix
RefinesService ==
    /\ \A c \in Connections : Service(c)!Init
    /\ [][\A c \in Connections : Service(c)!Next \/ UNCHANGED Service(c)!fifoVars]_vars

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverSourceBlocked == ~\E c \in Connections : offered[c] < Packets /\ offered[c] = moved[c] + ReceiveBuffer
                                              /\ moved[c] - arrived[c] = SendBuffer
NeverIpFull == Len(ip) < IpQueue
NeverGatewayFull == Len(gateway) < GatewayQueue
NeverWindowClosed == ~\E c \in Connections : arrived[c] - consumed[c] = Window
NeverAgain == \A c \in Connections : again[c] = 0
==============================================================================
