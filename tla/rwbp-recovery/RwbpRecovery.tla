---------------------------- MODULE RwbpRecovery ----------------------------
(* RWBP's error control (ZB03 section III.B): loss detection by the right edge, on a FIFO link that   *)
(* loses packets and acknowledgments, with a timer as the last resort.                                *)
(*                                                                                                    *)
(* Packets are numbered 0..Packets-1. Time is abstracted away: the timer is ideal (it expires only    *)
(* when nothing is left in the network) plus EarlyTimeouts expiries at any moment.                    *)
EXTENDS Integers, Sequences, FiniteSets, Operators, Channel

CONSTANTS
    Packets,        \* packets to transfer
    Window,         \* receive buffer, in packets
    DataCapacity,   \* packets that fit into the link
    AckCapacity,    \* acknowledgments that fit into the return link
    Blocks,         \* SACK blocks in one acknowledgment
    DataLosses,     \* budget of lost packets
    AckLosses,      \* budget of lost acknowledgments
    EarlyTimeouts   \* budget of premature timer expiries

VARIABLES
    sndNxt,         \* next packet never sent
    sndUna,         \* cumulatively acknowledged
    released,       \* packets known to have arrived; their buffers are free (RWBP-EC-006)
    rightEdge,      \* highest packet known to have arrived, -1 at first
    transmissions,  \* unacknowledged packets in order of transmission, copies included
    lost,           \* packets inferred lost and not yet retransmitted
    link,           \* packets under way
    held,           \* packets that have arrived
    delivered,      \* sequence handed to the user
    newest,         \* the latest arrival; its run comes first in an acknowledgment
    ackDue,         \* something arrived since the last acknowledgment
    ackLink,        \* acknowledgments under way
    dataLosses, ackLosses, earlyTimeouts,
    spurious        \* ghost: a packet was inferred lost that had arrived or was under way

senderVars   == <<sndNxt, sndUna, released, rightEdge, transmissions, lost, spurious>>
receiverVars == <<held, delivered, newest, ackDue>>
budgets      == <<dataLosses, ackLosses, earlyTimeouts>>
vars == <<senderVars, receiverVars, link, ackLink, budgets>>

All == 0..(Packets - 1)

(* First packet that has not been delivered.                                                          *)
RcvNxt == Len(delivered)

Init ==
    /\ sndNxt = 0 /\ sndUna = 0 /\ released = {} /\ rightEdge = -1
    /\ transmissions = <<>> /\ lost = {} /\ spurious = FALSE
    /\ link = <<>> /\ ackLink = <<>>
    /\ held = {} /\ delivered = <<>> /\ newest = -1 /\ ackDue = FALSE
    /\ dataLosses = DataLosses /\ ackLosses = AckLosses /\ earlyTimeouts = EarlyTimeouts

----------------------------------------------------------------------------
(* Sender *)

Transmit(packet) ==
    /\ HasRoom(link, DataCapacity, 1)
    /\ link' = Append(link, packet)
    /\ transmissions' = Append(transmissions, packet)

WindowOpen == sndNxt < sndUna + Window

(* RWBP-EC-004: retransmissions go before new packets. *)
NewMayGo == lost = {}

SendNew ==
    /\ NewMayGo /\ sndNxt < Packets /\ WindowOpen
    /\ Transmit(sndNxt)
    /\ sndNxt' = sndNxt + 1
    /\ UNCHANGED <<sndUna, released, rightEdge, lost, spurious, receiverVars, ackLink, budgets>>

Retransmit ==
    /\ lost # {}
    /\ Transmit(Lowest(lost))
    /\ lost' = lost \ {Lowest(lost)}
    /\ UNCHANGED <<sndNxt, sndUna, released, rightEdge, spurious, receiverVars, ackLink, budgets>>

FirstAt(list, packet) == Lowest({i \in DOMAIN list : list[i] = packet})
LastAt(list, packet)  == Highest({i \in DOMAIN list : list[i] = packet})

(* RWBP-EC-002: a packet is lost iff its last transmission precedes the first transmission of the     *)
(* right-edge packet. The first one, because only of that it is certain that everything before it     *)
(* has left the link.                                                                                 *)
InferredLost(list, edge, gone) ==
    {p \in Contents(list) : p \notin gone /\ LastAt(list, p) < FirstAt(list, edge)}

(* RWBP-EC-003: the right edge is a running maximum. *)
NewEdge(old, reported) == Highest({old} \cup reported)

(* Which entries the transmission list keeps: those of packets neither arrived nor awaiting           *)
(* retransmission.                                                                                    *)
Keeps(packet, gone, missing) == packet \notin gone \cup missing

ReceiveAck ==
    /\ ackLink # <<>>
    /\ LET ack      == Head(ackLink)
           reported == (0..(ack.cum - 1)) \cup ack.sack
           gone     == released \cup reported
           edge     == NewEdge(rightEdge, reported)
           missing  == IF edge > rightEdge THEN InferredLost(transmissions, edge, gone) ELSE {}
       IN /\ ackLink' = Tail(ackLink)
          /\ sndUna' = Max(sndUna, ack.cum)
          /\ released' = gone
          /\ rightEdge' = edge
          /\ lost' = (lost \ gone) \cup missing
          /\ transmissions' = SelectSeq(transmissions, LAMBDA p : Keeps(p, gone, missing))
          /\ spurious' = (spurious \/ missing \cap (held \cup Contents(link)) # {})
    /\ UNCHANGED <<sndNxt, link, receiverVars, budgets>>

Outstanding == {p \in All : p < sndNxt} \ released

NothingUnderWay == link = <<>> /\ ackLink = <<>> /\ ~ackDue /\ lost = {}

(* RWBP-EC-005: the timer runs as long as anything is outstanding. *)
TimerArmed == Outstanding # {}

(* RWBP-EC-007: two copies of the earliest outstanding packet. *)
Repaired == Lowest(Outstanding)
Copies(packet) == <<packet, packet>>

Expire ==
    /\ TimerArmed
    /\ HasRoom(link, DataCapacity, 2)
    /\ link' = link \o Copies(Repaired)
    /\ transmissions' = transmissions \o Copies(Repaired)
    /\ lost' = lost \ {Repaired}
    /\ UNCHANGED <<sndNxt, sndUna, released, rightEdge, spurious, receiverVars, ackLink>>

Timeout == NothingUnderWay /\ Expire /\ UNCHANGED budgets

EarlyTimeout ==
    /\ earlyTimeouts > 0 /\ ~NothingUnderWay
    /\ Expire
    /\ earlyTimeouts' = earlyTimeouts - 1
    /\ UNCHANGED <<dataLosses, ackLosses>>

----------------------------------------------------------------------------
(* Receiver *)

(* RWBP-EC-008: the receiver keeps what it has reported. *)
Kept(packets) == packets

(* Appends what has become deliverable: the run that begins at the first packet not yet delivered.    *)
Deliver(done, packets, arrival) ==
    LET end == Lowest({n \in Len(done)..Packets : n \notin packets})
    IN done \o [i \in 1..(end - Len(done)) |-> Len(done) + i - 1]

(* Whether a packet may be taken in before the acknowledgment that is due has been sent. When to       *)
(* acknowledge is left open; RWBP-AK-003 is stricter.                                                  *)
MayTake == TRUE

ReceiveData ==
    /\ link # <<>> /\ MayTake
    /\ held' = Kept(held) \cup {Head(link)}
    /\ delivered' = Deliver(delivered, held', Head(link))
    /\ newest' = Head(link)
    /\ ackDue' = TRUE
    /\ link' = Tail(link)
    /\ UNCHANGED <<senderVars, ackLink, budgets>>

Runs == LET firsts == {p \in held : p > RcvNxt /\ p - 1 \notin held}
        IN {{p \in held : p >= f /\ \A q \in f..p : q \in held} : f \in firsts}

(* The run with the latest arrival, then the highest ones, as many as there are blocks.               *)
ChosenRuns ==
    LET rank(run) == IF newest \in run THEN Packets ELSE Highest(run)
    IN {run \in Runs : Cardinality({r \in Runs : rank(r) > rank(run)}) < Blocks}

(* When to acknowledge is left open: any number of arrivals may share an acknowledgment.              *)
SendAck ==
    /\ ackDue /\ HasRoom(ackLink, AckCapacity, 1)
    /\ ackLink' = Append(ackLink, [cum |-> RcvNxt, sack |-> UNION ChosenRuns])
    /\ ackDue' = FALSE
    /\ newest' = -1
    /\ UNCHANGED <<senderVars, held, delivered, link, budgets>>

----------------------------------------------------------------------------
(* Link *)

LoseData ==
    /\ link # <<>> /\ dataLosses > 0
    /\ link' = Tail(link)
    /\ dataLosses' = dataLosses - 1
    /\ UNCHANGED <<senderVars, receiverVars, ackLink, ackLosses, earlyTimeouts>>

LoseAck ==
    /\ ackLink # <<>> /\ ackLosses > 0
    /\ ackLink' = Tail(ackLink)
    /\ ackLosses' = ackLosses - 1
    /\ UNCHANGED <<senderVars, receiverVars, link, dataLosses, earlyTimeouts>>

Next == \/ SendNew \/ Retransmit \/ ReceiveAck \/ Timeout \/ EarlyTimeout
        \/ ReceiveData \/ SendAck \/ LoseData \/ LoseAck

Progress == SendNew \/ Retransmit \/ ReceiveAck \/ Timeout \/ ReceiveData \/ SendAck

Spec == Init /\ [][Next]_vars

FairSpec == Spec /\ WF_vars(Progress)

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ sndNxt \in 0..Packets /\ sndUna \in 0..sndNxt
    /\ released \subseteq All /\ held \subseteq All /\ lost \subseteq All
    /\ rightEdge \in -1..(Packets - 1)
    /\ Contents(transmissions) \subseteq All /\ Contents(link) \subseteq All
    /\ Len(link) <= DataCapacity /\ Len(ackLink) <= AckCapacity
    /\ newest \in -1..(Packets - 1)
    /\ ackDue \in BOOLEAN /\ spurious \in BOOLEAN

(* RWBP-EC-006, RWBP-EC-008 *)
ReleasedHasArrived == released \subseteq held

(* RWBP-EC-001: the receive buffer never overflows. *)
BufferSuffices == \A p \in held : p < RcvNxt + Window

(* RWBP-EC-002 *)
NoSpuriousRetransmission == ~spurious

(* RWBP-EC-003 *)
RightEdgeNeverRetreats == [][rightEdge' >= rightEdge]_vars

(* RWBP-EC-004 *)
RetransmissionsGoFirst == [][sndNxt' > sndNxt => lost = {}]_vars

(* RWBP-EC-007: what leaves although nothing was taken for lost, and is not new, the timer sent; and   *)
(* so did a premature expiry.                                                                         *)
TimerSends == \/ earlyTimeouts' < earlyTimeouts
              \/ Len(link') > Len(link) /\ lost = {} /\ sndNxt' = sndNxt
TimeoutSendsTwoCopies ==
    [][TimerSends => LET first == Lowest((0..(sndNxt - 1)) \ released)
                     IN link' = link \o <<first, first>>]_vars

Done == released = All

(* RWBP-EC-005: something can always happen that leads on. *)
NoStall == \/ Done \/ ~NothingUnderWay
           \/ (sndNxt < Packets /\ WindowOpen)
           \/ TimerArmed

(* RWBP-EC-009 *)
EventuallyDone == <>Done

Items == [i \in 1..Packets |-> i - 1]
Service == INSTANCE ReliableFifo
    WITH accepted <- sndNxt, delivered <- delivered

DeliveredIsPrefix == Service!DeliveredIsPrefix      \* RWBP-EC-009
RefinesService == Service!Init /\ [][Service!Next]_(Service!fifoVars)
RefinesFairService == Service!Spec

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverLosesRetransmission == [][~\E p \in lost' \ lost : p <= rightEdge]_vars
NeverWindowStall ==
    ~(/\ NothingUnderWay /\ sndNxt = sndUna + Window /\ sndNxt < Packets
      /\ Cardinality(Outstanding) = 1 /\ rightEdge = sndNxt - 1)
NeverTailLoss == ~(NothingUnderWay /\ sndNxt = Packets /\ rightEdge < Packets - 1)
NeverTwoRuns == Cardinality(Runs) < 2
NeverThreeRuns == Cardinality(Runs) < 3
=============================================================================
