--------------------------- MODULE SplitConnection ---------------------------
(* A connection that a box splits (PEP/1): two TCP connections, one for each end, and between them a    *)
(* bounded buffer for each direction. The box may crash at any moment, and either side may fail.        *)
(*                                                                                                    *)
(* Stream d goes from end d through the box to the other end. TCP itself is abstracted: what is sent    *)
(* arrives in order, once, as long as both know of the connection; octets are numbered from 1. What the *)
(* box has taken it has acknowledged, so that its sender does not have it any more.                     *)
EXTENDS Integers, Sequences

CONSTANTS
    Up, Down,   \* octets that end 1 and end 2 want to send
    Buffer,     \* octets that the box holds of one stream
    Window,     \* octets that an end holds for its user
    Stalled,    \* ends whose user never reads
    Crashes,    \* budget of crashes of the box
    Failures    \* budget of ends that reset, and of sides that fail

VARIABLES
    sent,       \* by stream: octets sent by its sender
    closed,     \* whether its sender has sent a FIN behind them
    limit,      \* how many the box has permitted, as an absolute limit
    taken,      \* octets taken, that is, acknowledged to the sender
    held,       \* those of them that the receiver has not acknowledged to the box
    unheard,    \* how many of these have arrived there nevertheless
    delivered,  \* octets that have arrived at the receiver
    read,       \* how many of them its user has read
    finTaken,   \* whether the box has the sender's FIN
    finAcked,   \* whether it has acknowledged that
    finGot,     \* whether the receiver has a FIN
    box,        \* "up", "down", or "new": started again, without memory
    side,       \* by end: whether the box still has a connection with it
    end,        \* by end: its connection is "open", or was "reset" for it, or it has "aborted" it
    crashes, failures

streams == <<sent, closed, limit, taken, held, unheard, delivered, read, finTaken, finAcked, finGot>>
vars == <<streams, box, side, end, crashes, failures>>

Ends == {1, 2}
Other(e) == 3 - e
Length(d) == IF d = 1 THEN Up ELSE Down

Init ==
    /\ sent = <<0, 0>> /\ taken = <<0, 0>> /\ read = <<0, 0>> /\ unheard = <<0, 0>>
    /\ limit = <<Buffer, Buffer>>
    /\ held = << <<>>, <<>> >> /\ delivered = << <<>>, <<>> >>
    /\ closed = <<FALSE, FALSE>> /\ finTaken = <<FALSE, FALSE>>
    /\ finAcked = <<FALSE, FALSE>> /\ finGot = <<FALSE, FALSE>>
    /\ box = "up" /\ side = <<TRUE, TRUE>> /\ end = <<"open", "open">>
    /\ crashes = Crashes /\ failures = Failures

Set(all, at, value) == [all EXCEPT ![at] = value]

(* Nothing more can happen to this end: both streams have ended for it. *)
Done(e) == finAcked[e] /\ finGot[Other(e)]

Serves(e) == box = "up" /\ side[e]

----------------------------------------------------------------------------
(* The ends *)

Send(d) ==
    /\ end[d] = "open" /\ ~closed[d] /\ sent[d] < Length(d) /\ sent[d] < limit[d]
    /\ sent' = Set(sent, d, sent[d] + 1)
    /\ UNCHANGED <<closed, limit, taken, held, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

Close(d) ==
    /\ end[d] = "open" /\ ~closed[d]
    /\ closed' = Set(closed, d, TRUE)
    /\ UNCHANGED <<sent, limit, taken, held, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

Read(d) ==
    /\ end[Other(d)] = "open" /\ Other(d) \notin Stalled /\ read[d] < Len(delivered[d])
    /\ read' = Set(read, d, read[d] + 1)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

----------------------------------------------------------------------------
(* The box, for stream d *)

(* What becomes of an octet that arrives. *)
Keep(d) == Append(held[d], taken[d] + 1)

Take(d) ==
    /\ Serves(d) /\ end[d] = "open" /\ taken[d] < sent[d]
    /\ taken' = Set(taken, d, taken[d] + 1) /\ held' = Set(held, d, Keep(d))
    /\ UNCHANGED <<sent, closed, limit, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

(* PEP-FB-002: no more than there is room for. *)
Limit(d) == taken[d] + Buffer - Len(held[d])

(* PEP-FB-003, PEP-FB-004 *)
MayPermit(d) == limit[d] < Limit(d)

Permit(d) ==
    /\ Serves(d) /\ end[d] = "open" /\ MayPermit(d)
    /\ limit' = Set(limit, d, Limit(d))
    /\ UNCHANGED <<sent, closed, taken, held, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

HasRoom(d) == Len(delivered[d]) - read[d] < Window

Deliver(d) ==
    /\ Serves(Other(d)) /\ end[Other(d)] = "open" /\ ~finGot[d]
    /\ unheard[d] < Len(held[d]) /\ HasRoom(d)
    /\ delivered' = Set(delivered, d, Append(delivered[d], held[d][unheard[d] + 1]))
    /\ unheard' = Set(unheard, d, unheard[d] + 1)
    /\ UNCHANGED <<sent, closed, limit, taken, held, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

(* The receiver's acknowledgment. *)
Confirm(d) ==
    /\ Serves(Other(d)) /\ unheard[d] > 0
    /\ held' = Set(held, d, Tail(held[d])) /\ unheard' = Set(unheard, d, unheard[d] - 1)
    /\ UNCHANGED <<sent, closed, limit, taken, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

TakeFin(d) ==
    /\ Serves(d) /\ end[d] = "open" /\ closed[d] /\ taken[d] = sent[d] /\ ~finTaken[d]
    /\ finTaken' = Set(finTaken, d, TRUE)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, read, finAcked, finGot,
                   box, side, end, crashes, failures>>

(* PEP-RE-003: only what the sender has ended is ended, and behind all that was taken. *)
MayEnd(d) == finTaken[d] /\ unheard[d] = Len(held[d])

(* PEP-RE-004, PEP-RE-009 *)
DeliverFin(d) ==
    /\ Serves(Other(d)) /\ end[Other(d)] = "open" /\ MayEnd(d) /\ ~finGot[d]
    /\ finGot' = Set(finGot, d, TRUE)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, read, finTaken, finAcked,
                   box, side, end, crashes, failures>>

(* PEP-RE-002: the end is acknowledged last. *)
AllConfirmed(d) == held[d] = <<>>

AckFin(d) ==
    /\ Serves(d) /\ end[d] = "open" /\ finTaken[d] /\ AllConfirmed(d) /\ ~finAcked[d]
    /\ finAcked' = Set(finAcked, d, TRUE)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, read, finTaken, finGot,
                   box, side, end, crashes, failures>>

----------------------------------------------------------------------------
(* Failures *)

Abort(e) ==
    /\ failures > 0 /\ end[e] = "open" /\ ~Done(e)
    /\ end' = Set(end, e, "aborted") /\ failures' = failures - 1
    /\ UNCHANGED <<streams, box, side, crashes>>

(* The box hears of it, or gives up by itself. *)
HearReset(e) ==
    /\ Serves(e) /\ end[e] # "open"
    /\ side' = Set(side, e, FALSE)
    /\ UNCHANGED <<streams, box, end, crashes, failures>>

SideFails(e) ==
    /\ failures > 0 /\ Serves(e) /\ end[e] = "open" /\ ~Done(e)
    /\ side' = Set(side, e, FALSE) /\ failures' = failures - 1
    /\ UNCHANGED <<streams, box, end, crashes>>

(* PEP-RE-006, PEP-RE-008: what the other end is told, here a reset, and never an end (PEP-RE-007). *)
Told(e) == IF end[e] = "open" /\ ~Done(e) THEN "reset" ELSE end[e]
EndsOf(e) == finGot

CarryOver(e) ==
    /\ Serves(e) /\ ~side[Other(e)]
    /\ side' = Set(side, e, FALSE) /\ end' = Set(end, e, Told(e)) /\ finGot' = EndsOf(e)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, read, finTaken, finAcked,
                   box, crashes, failures>>

(* An end whose side has failed hears nothing more, and gives up after a time. *)
GivesUpAfter(e) == ~side[e]

GiveUp(e) ==
    /\ GivesUpAfter(e) /\ end[e] = "open" /\ ~Done(e)
    /\ end' = Set(end, e, "reset")
    /\ UNCHANGED <<streams, box, side, crashes, failures>>

Crash ==
    /\ crashes > 0 /\ box = "up"
    /\ crashes' = crashes - 1 /\ box' = "down"
    /\ UNCHANGED <<streams, side, end, failures>>

(* A box that starts again remembers nothing. *)
Restarted == "new"

Restart ==
    /\ box = "down"
    /\ box' = Restarted
    /\ held' = << <<>>, <<>> >> /\ unheard' = <<0, 0>>
    /\ UNCHANGED <<sent, closed, limit, taken, delivered, read, finTaken, finAcked, finGot,
                   side, end, crashes, failures>>

(* PEP-RE-011: segments of connections that it does not know are answered with a RST. *)
ResetStranger(e) ==
    /\ box = "new" /\ end[e] = "open" /\ ~Done(e)
    /\ end' = Set(end, e, "reset")
    /\ UNCHANGED <<streams, box, side, crashes, failures>>

----------------------------------------------------------------------------

User(d) == Send(d) \/ Close(d)
Relay(d) == \/ Take(d) \/ Permit(d) \/ Deliver(d) \/ Confirm(d) \/ TakeFin(d) \/ DeliverFin(d)
            \/ AckFin(d)
Resets(e) == HearReset(e) \/ CarryOver(e) \/ GiveUp(e) \/ ResetStranger(e)

Next == \/ \E d \in Ends : User(d) \/ Read(d) \/ Relay(d) \/ Resets(d) \/ Abort(d) \/ SideFails(d)
        \/ Crash \/ Restart

Spec == Init /\ [][Next]_vars
FairSpec ==
    /\ Spec /\ WF_vars(Restart)
    /\ \A d \in Ends : /\ WF_vars(Send(d)) /\ WF_vars(Read(d)) /\ WF_vars(Resets(d))
                       /\ WF_vars(Take(d)) /\ WF_vars(Permit(d)) /\ WF_vars(Deliver(d))
                       /\ WF_vars(Confirm(d)) /\ WF_vars(TakeFin(d)) /\ WF_vars(DeliverFin(d))
                       /\ WF_vars(AckFin(d))

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ box \in {"up", "down", "new"} /\ crashes \in 0..Crashes /\ failures \in 0..Failures
    /\ \A e \in Ends : /\ end[e] \in {"open", "reset", "aborted"} /\ side[e] \in BOOLEAN
                       /\ sent[e] \in 0..Length(e) /\ taken[e] <= sent[e] /\ sent[e] <= limit[e]
                       /\ Len(delivered[e]) <= taken[e] /\ read[e] <= Len(delivered[e])
                       /\ unheard[e] \in 0..Len(held[e])

(* Two connections, nothing sent on either, and as much permitted as the box holds. *)
BeginsRight ==
    /\ box = "up" /\ \A e \in {1, 2} : side[e] /\ end[e] = "open" /\ limit[e] = Buffer
    /\ \A d \in {1, 2} : /\ sent[d] + taken[d] + unheard[d] + read[d] = 0
                         /\ Len(held[d]) = 0 /\ Len(delivered[d]) = 0
                         /\ ~closed[d] /\ ~finTaken[d] /\ ~finAcked[d] /\ ~finGot[d]

(* PEP-TR-001 *)
Octets(n) == [i \in 1..n |-> i]
Service(d) == INSTANCE ReliableFifo WITH
    Items <- Octets(Length(d)), accepted <- sent[d], delivered <- delivered[d]
DeliveredIsPrefix == \A d \in Ends : Service(d)!DeliveredIsPrefix
RefinesService ==
    [][\A d \in Ends : Service(d)!Next \/ UNCHANGED Service(d)!fifoVars]_vars

(* PEP-RE-003, PEP-RE-007, PEP-RE-008, PEP-RE-011, PEP-RE-013: no clean end without delivery. *)
CleanEnd == \A d \in Ends : finGot[d] => closed[d] /\ Len(delivered[d]) = sent[d]

(* PEP-RE-002: every octet has arrived, and the box has heard so. *)
ConfirmedEnd == \A d \in Ends : finAcked[d] => Len(delivered[d]) = sent[d] /\ held[d] = <<>>

(* PEP-FB-001, PEP-FB-002, PEP-FB-008 *)
BufferSuffices == \A d \in Ends : Len(held[d]) <= Buffer
TakenIsBounded == \A d \in Ends : taken[d] - Len(delivered[d]) <= Buffer
WindowIsHonest == \A d \in Ends : limit[d] - Len(delivered[d]) <= Buffer
(* PEP-LR-001: nothing is sent to a receiver beyond its window. *)
ReceiverHasRoom == \A d \in Ends : Len(delivered[d]) - read[d] <= Window
WindowNeverShrinks == [][\A d \in Ends : limit'[d] >= limit[d]]_vars

(* Both streams have ended for this end. Said here once more, so that the properties do not move along  *)
(* with what the steps take for it.                                                                    *)
Through(e) == finAcked[e] /\ finGot[Other(e)]

(* PEP-RE-006, PEP-RE-008: the box gives up the other side by a reset, and leaves nobody to his timer;   *)
(* an end that it has reset it knows no more; but an end that is through is reset no more.              *)
GivesUpByReset ==
    [][\A e \in Ends :
          failures' = failures /\ box = "up" /\ side[e] /\ end[e] = "open" /\ ~Through(e) =>
              (~side'[e] <=> end'[e] = "reset")]_vars
ThroughIsThrough == [][\A e \in Ends : Through(e) => end'[e] = end[e]]_vars

(* PEP-RE-001, PEP-RE-011: nothing passes between an end and a box where one of them has the connection  *)
(* no more. An acknowledgment may still be on its way from an end that has reset.                      *)
Served(e) == box = "up" /\ side[e]
NothingPassesUnconnected ==
    [][\A e \in Ends :
          /\ ~Served(e) => /\ unheard'[Other(e)] = unheard[Other(e)] \/ box' = "new"
                          /\ side'[e] = side[e]
          /\ ~(Served(e) /\ end[e] = "open") =>
                /\ taken'[e] = taken[e] /\ limit'[e] = limit[e]
                /\ finTaken'[e] = finTaken[e] /\ finAcked'[e] = finAcked[e]
                /\ delivered'[Other(e)] = delivered[Other(e)] /\ finGot'[Other(e)] = finGot[Other(e)]]_vars

(* An end whose connection is over sends nothing more, and its user reads nothing more. *)
OverIsOver ==
    [][\A e \in Ends : end[e] # "open" =>
          /\ end'[e] = end[e] /\ sent'[e] = sent[e] /\ closed'[e] = closed[e]
          /\ read'[Other(e)] = read[Other(e)]]_vars

(* PEP-FB-004: back-pressure never deadlocks. Without failures every sender gets rid of all it has, but  *)
(* for one whose receiver never reads; and what was closed ends (PEP-RE-004, PEP-RE-009).                *)
Moving(d) == Other(d) \notin Stalled
EverythingArrives == \A d \in Ends : Moving(d) => <>(closed[d] \/ Len(delivered[d]) = Length(d))
ClosedStreamsEnd == \A d \in Ends : Moving(d) => (closed[d] ~> finGot[d] /\ finAcked[d])

(* PEP-RE-006, PEP-RE-008, PEP-RE-011: after a failure nobody is left believing in a connection.          *)
Broken == box # "up" \/ \E e \in Ends : end[e] # "open" \/ ~side[e]
EveryoneLearns == Broken ~> \A e \in Ends : Through(e) \/ end[e] # "open"
==============================================================================
