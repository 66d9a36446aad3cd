------------------------------ MODULE StpData -------------------------------
(* STP's data transfer (HK99-STP section VII.A): SD, POLL, STAT and USTAT, with the corrections of    *)
(* the requirements STP-DT-*. VT(S), VR(H) and the others are written vt_s, vr_h.                     *)
(*                                                                                                    *)
(* Poll numbers only grow and only their order matters, so they are kept as ages: how many POLLs      *)
(* have been sent since. Sending a POLL ages every number by one, up to OldestAge, and waits while a  *)
(* message of that age is still under way (a bound on packet lifetime). VT(PS) has age 0.             *)
(* Credit is VR(MR) = VR(R) + Window: the user takes data as soon as it is in sequence.               *)
EXTENDS Integers, Sequences, FiniteSets, Operators, Channel, SeqMod

CONSTANTS
    Packets,        \* SDs to transfer, numbered 0..Packets-1
    Window,         \* credit, in SDs
    Capacity,       \* messages that fit into the forward channel
    MaxPolls,       \* POLLs and STATs under way at most
    ReturnCapacity, \* messages that fit into the return channel
    ForwardLosses, ReturnLosses,        \* loss budgets
    Duplicates,     \* budget of messages, either way, of which a second copy arrives
    ForwardReorders, ReturnReorders     \* whether a channel reorders

VARIABLES
    vt_s, vt_a, vt_ms,  \* next new SD; oldest not acknowledged; first SD not permitted
    vt_pa,              \* age of the POLL that the newest STAT echoed; OldestAge at first
    buffer,             \* age of the last transmission of each SD the sender still keeps
    queue,              \* SDs awaiting retransmission
    repeated,           \* SDs in the buffer that were sent more than once
    polled,             \* nothing was sent since the last POLL: VT(PD) = 0
    vr_r, vr_h,         \* next SD in sequence; next highest SD expected
    held,               \* SDs received beyond vr_r
    delivered,          \* sequence handed to the user
    forward, return,    \* the channels
    forwardLosses, returnLosses, duplicates,
    spurious,           \* ghost: an SD was requeued that had arrived or was under way
    misread             \* ghost: a sequence number was decoded wrongly and used

senderVars   == <<vt_s, vt_a, vt_ms, vt_pa, buffer, queue, repeated, polled>>
receiverVars == <<vr_r, vr_h, held, delivered>>
budgets      == <<forwardLosses, returnLosses, duplicates>>
vars == <<senderVars, receiverVars, forward, return, budgets, spurious, misread>>

OldestAge == MaxPolls + 1

(* The first number that a receiver does not permit whose user has taken everything below nr.         *)
Credit(nr) == nr + Window

vr_mr == Credit(vr_r)

Start(permitted) ==
    /\ vt_s = 0 /\ vt_a = 0 /\ vt_ms = permitted /\ vt_pa = OldestAge
    /\ buffer = <<>> /\ queue = {} /\ repeated = {} /\ polled = TRUE
    /\ vr_r = 0 /\ vr_h = 0 /\ held = {} /\ delivered = <<>>
    /\ forward = <<>> /\ return = <<>>
    /\ forwardLosses = ForwardLosses /\ returnLosses = ReturnLosses /\ duplicates = Duplicates
    /\ spurious = FALSE /\ misread = FALSE

Init == Start(Window)

(* What STAT and USTAT acknowledge: N(R). *)
InSequence == vr_r

(* Messages. Only the receiver of a message may use its numbers, and only through Seen.               *)
SD(n)            == [type |-> "SD", n |-> n]
POLL(n)          == [type |-> "POLL", n |-> n, age |-> 0]
STAT(age, high)  == [type |-> "STAT", n |-> InSequence, h |-> high, age |-> age,
                     gaps |-> (vr_r..(high - 1)) \ held]
USTAT(from, to)  == [type |-> "USTAT", n |-> InSequence, h |-> to, gaps |-> from..(to - 1)]

Older(age) == Min(age + 1, OldestAge)
Aged(channel) == [i \in DOMAIN channel |->
    IF channel[i].type \in {"POLL", "STAT"} THEN [channel[i] EXCEPT !.age = Older(@)] ELSE channel[i]]
StatusUnderWay == {i \in DOMAIN forward : forward[i].type = "POLL"} \X {"f"} \cup
                  {i \in DOMAIN return : return[i].type = "STAT"} \X {"r"}
TooOld(channel) == \E i \in DOMAIN channel :
    channel[i].type \in {"POLL", "STAT"} /\ channel[i].age >= OldestAge - 1

----------------------------------------------------------------------------
(* Sender *)

With(map, key, value) == [k \in DOMAIN map \cup {key} |-> IF k = key THEN value ELSE map[k]]
Only(map, keys) == [k \in DOMAIN map \cap keys |-> map[k]]

(* STP-DT-011 *)
Permitted == vt_s < vt_ms

(* STP-DT-013: where a channel reorders, nothing may be so old that its number means another packet.  *)
LifetimeBound ==
    ForwardReorders \/ ReturnReorders =>
        \A m \in Contents(forward) \cup Contents(return) : m.n > vt_s + 1 - (Modulus - Window)

(* STP-DT-009: retransmissions go first. *)
NewMayGo == queue = {}

SendNew ==
    /\ NewMayGo /\ vt_s < Packets /\ Permitted /\ LifetimeBound
    /\ HasRoom(forward, Capacity, 1)
    /\ forward' = Append(forward, SD(vt_s))
    /\ buffer' = With(buffer, vt_s, 0)
    /\ vt_s' = vt_s + 1
    /\ polled' = FALSE
    /\ UNCHANGED <<vt_a, vt_ms, vt_pa, queue, repeated, receiverVars, return, budgets, spurious, misread>>

Retransmit ==
    /\ queue # {} /\ HasRoom(forward, Capacity, 1)
    /\ LET n == Lowest(queue)
       IN /\ forward' = Append(forward, SD(n))
          /\ buffer' = With(buffer, n, 0)
          /\ queue' = queue \ {n}
          /\ repeated' = repeated \cup {n}
    /\ polled' = FALSE
    /\ UNCHANGED <<vt_s, vt_a, vt_ms, vt_pa, receiverVars, return, budgets, spurious, misread>>

(* STP-DT-004: a POLL stays armed as long as anything is unacknowledged. *)
PollArmed == vt_a # vt_s

SendPoll ==
    /\ PollArmed
    /\ HasRoom(forward, Capacity, 1)
    /\ Cardinality(StatusUnderWay) < MaxPolls
    /\ ~TooOld(forward) /\ ~TooOld(return)
    /\ forward' = Append(Aged(forward), POLL(vt_s))
    /\ return' = Aged(return)
    /\ buffer' = [n \in DOMAIN buffer |-> Older(buffer[n])]
    /\ vt_pa' = Older(vt_pa)
    /\ polled' = TRUE
    /\ UNCHANGED <<vt_s, vt_a, vt_ms, queue, repeated, receiverVars, budgets, spurious, misread>>

(* STP-DT-003: strictly older than the POLL that the STAT answers. *)
Predates(transmission, poll) == transmission > poll

(* STP-DT-007: a STAT that is older than the newest one seen is discarded. *)
Fresh(stat) == stat.age <= vt_pa

(* STP-DT-006: what the STAT shows as arrived: everything up to its upper bound that is no gap.        *)
Arrived(nr, high, gaps) == (0..(high - 1)) \ gaps

AlreadyThere(n) == n < vr_r \/ n \in held \/ \E i \in DOMAIN forward : forward[i] = SD(n)

(* Common to STAT and USTAT: acknowledge up to nr, release what arrived, queue what is missing.       *)
Update(nr, arrived, missing) ==
    /\ vt_a' = Max(vt_a, nr)
    /\ vt_ms' = Max(vt_ms, Credit(nr))
    /\ buffer' = Only(buffer, {n \in DOMAIN buffer : n >= nr /\ n \notin arrived})
    /\ queue' = (queue \cup missing) \cap DOMAIN buffer'
    /\ repeated' = repeated \cap DOMAIN buffer'
    /\ spurious' = (spurious \/ \E n \in missing : AlreadyThere(n))

ReceiveStat(i) ==
    /\ return[i].type = "STAT"
    /\ LET stat == return[i]
           nr   == Seen(stat.n, vt_a)
           high == Seen(stat.h, vt_a)
           gaps == {Seen(g, vt_a) : g \in stat.gaps}
           valid == Fresh(stat) /\ nr <= vt_s /\ high <= vt_s
       IN IF valid
          THEN /\ Update(nr, Arrived(nr, high, gaps),
                         {g \in gaps : /\ g \in DOMAIN buffer \ queue
                                       /\ Predates(buffer[g], stat.age)})
               /\ vt_pa' = stat.age
               /\ misread' = (misread \/ nr # stat.n \/ high # stat.h \/ gaps # stat.gaps)
          ELSE UNCHANGED <<vt_a, vt_ms, vt_pa, buffer, queue, repeated, spurious, misread>>
    /\ return' = Without(return, i)
    /\ UNCHANGED <<vt_s, polled, receiverVars, forward, budgets>>

(* STP-DT-014: a USTAT reports a gap when it is first seen. A STAT may have overtaken it on the way,  *)
(* and the retransmission may have arrived since.                                                     *)
SentOnce(n) == n \notin repeated

ReceiveUstat(i) ==
    /\ return[i].type = "USTAT"
    /\ LET ustat == return[i]
           nr    == Seen(ustat.n, vt_a)
           high  == Seen(ustat.h, vt_a)
           gaps  == {Seen(g, vt_a) : g \in ustat.gaps}
           valid == nr <= vt_s /\ high <= vt_s /\ nr <= high
       IN IF valid
          THEN /\ Update(nr, {}, {g \in gaps : g \in DOMAIN buffer \ queue /\ SentOnce(g)})
               /\ misread' = (misread \/ nr # ustat.n \/ gaps # ustat.gaps)
          ELSE UNCHANGED <<vt_a, vt_ms, buffer, queue, repeated, spurious, misread>>
    /\ return' = Without(return, i)
    /\ UNCHANGED <<vt_s, vt_pa, polled, receiverVars, forward, budgets>>

----------------------------------------------------------------------------
(* Receiver *)

(* STP-DT-001: "beyond the next expected" means beyond VR(H). *)
IsGap(n) == n > vr_h
GapStart == vr_h

(* Appends the run that has become deliverable. *)
Deliver(done, next, arrival) == done \o [k \in 1..(next - vr_r) |-> vr_r + k - 1]

ReceiveSd(i) ==
    /\ forward[i].type = "SD"
    /\ LET n    == Seen(forward[i].n, vr_r)
           all  == held \cup {n}
           next == Lowest({m \in vr_r..(vr_mr + 1) : m \notin all})
           gap  == IsGap(n)
       IN IF n >= vr_mr
          THEN UNCHANGED <<receiverVars, return, misread>>      \* old, or beyond the credit
          ELSE /\ vr_r' = next
               /\ vr_h' = Max(vr_h, n + 1)
               /\ held' = {m \in all : m >= next}
               /\ delivered' = Deliver(delivered, next, n)
               /\ misread' = (misread \/ n # forward[i].n)
               /\ IF gap
                  THEN /\ HasRoom(return, ReturnCapacity, 1)
                       /\ return' = Append(return, USTAT(GapStart, n))
                  ELSE UNCHANGED return
    /\ forward' = Without(forward, i)
    /\ UNCHANGED <<senderVars, budgets, spurious>>

(* STP-DT-002: a POLL raises VR(H). STP-DT-008: but not beyond the credit, nor backwards. *)
RaisedBy(n) == IF n <= vr_mr THEN Max(vr_h, n) ELSE vr_h

Raised(high) == high

ReceivePoll(i) ==
    /\ forward[i].type = "POLL"
    /\ HasRoom(return, ReturnCapacity, 1)
    /\ LET n    == Seen(forward[i].n, vr_r)
           high == RaisedBy(n)
       IN /\ vr_h' = Raised(high)
          /\ return' = Append(return, STAT(forward[i].age, high))
          /\ misread' = (misread \/ (high # vr_h /\ n # forward[i].n))
    /\ forward' = Without(forward, i)
    /\ UNCHANGED <<senderVars, vr_r, held, delivered, budgets, spurious>>

----------------------------------------------------------------------------
(* Channels *)

(* What a loss takes from its budget. *)
Spent(budget) == budget - 1

LoseForward(i) ==
    /\ forwardLosses > 0
    /\ forward' = Without(forward, i)
    /\ forwardLosses' = Spent(forwardLosses)
    /\ UNCHANGED <<senderVars, receiverVars, return, returnLosses, duplicates, spurious, misread>>

LoseReturn(i) ==
    /\ returnLosses > 0
    /\ return' = Without(return, i)
    /\ returnLosses' = Spent(returnLosses)
    /\ UNCHANGED <<senderVars, receiverVars, forward, forwardLosses, duplicates, spurious, misread>>

DuplicateForward(i) ==
    /\ duplicates > 0 /\ HasRoom(forward, Capacity, 1)
    /\ forward' = Twice(forward, i)
    /\ duplicates' = duplicates - 1
    /\ UNCHANGED <<senderVars, receiverVars, return, forwardLosses, returnLosses, spurious, misread>>

DuplicateReturn(i) ==
    /\ duplicates > 0 /\ HasRoom(return, ReturnCapacity, 1)
    /\ return' = Twice(return, i)
    /\ duplicates' = duplicates - 1
    /\ UNCHANGED <<senderVars, receiverVars, forward, forwardLosses, returnLosses, spurious, misread>>

Receive ==
    \/ \E i \in Exits(forward, ForwardReorders) : ReceiveSd(i) \/ ReceivePoll(i)
    \/ \E i \in Exits(return, ReturnReorders) : ReceiveStat(i) \/ ReceiveUstat(i)

Lose == \/ \E i \in Exits(forward, ForwardReorders) : LoseForward(i)
        \/ \E i \in Exits(return, ReturnReorders) : LoseReturn(i)

Duplicate == \/ \E i \in Exits(forward, ForwardReorders) : DuplicateForward(i)
             \/ \E i \in Exits(return, ReturnReorders) : DuplicateReturn(i)

Next == SendNew \/ Retransmit \/ SendPoll \/ Receive \/ Lose \/ Duplicate

Spec == Init /\ [][Next]_vars

FairSpec == /\ Spec
            /\ WF_vars(SendNew) /\ WF_vars(Retransmit) /\ WF_vars(SendPoll) /\ WF_vars(Receive)

(* Losses without end: what is sent again and again arrives some day.                                 *)
Arrives(type, n) == \E i \in Exits(forward, ForwardReorders) :
    forward[i].type = type /\ (type = "SD" => forward[i].n = n) /\ (ReceiveSd(i) \/ ReceivePoll(i))
Reported == \E i \in Exits(return, ReturnReorders) : ReceiveStat(i)
StrongSpec == /\ FairSpec
              /\ \A n \in 0..(Packets - 1) : SF_vars(Arrives("SD", n))
              /\ SF_vars(Arrives("POLL", 0)) /\ SF_vars(Reported)

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ vt_a \in 0..vt_s /\ vt_s \in 0..Packets /\ vt_ms \in Nat
    /\ vt_pa \in 0..OldestAge
    /\ DOMAIN buffer \subseteq 0..(Packets - 1)
    /\ \A n \in DOMAIN buffer : buffer[n] \in 0..OldestAge
    /\ queue \subseteq DOMAIN buffer /\ repeated \subseteq DOMAIN buffer
    /\ polled \in BOOLEAN /\ spurious \in BOOLEAN /\ misread \in BOOLEAN
    /\ Len(forward) <= Capacity /\ Len(return) <= ReturnCapacity

(* STP-DT-009 *)
RetransmissionsGoFirst == [][vt_s' > vt_s => queue = {}]_vars

(* STP-DT-010 *)
ReleasedHasArrived == \A n \in 0..(vt_s - 1) : n \in DOMAIN buffer \/ n < vr_r \/ n \in held

(* STP-DT-003, STP-DT-014 *)
NoSpuriousRetransmission == ~spurious

(* STP-DT-001, STP-DT-002: a USTAT names nothing that an earlier report named. *)
GapReportedOnce == \A i, j \in DOMAIN return :
    i < j /\ return[j].type = "USTAT" /\ return[i] # return[j] => return[i].gaps \cap return[j].gaps = {}

(* STP-DT-005 *)
DecodedRightly == ~misread

(* STP-DT-008 *)
HighestIsReal == vr_r <= vr_h /\ vr_h <= vt_s

(* STP-DT-011 *)
WithinCredit == vt_s <= vt_ms /\ vt_ms <= vr_mr

(* STP-DT-007 *)
NeverBackwards == [][vt_a' >= vt_a /\ vt_ms' >= vt_ms /\ vr_r' >= vr_r /\ vr_h' >= vr_h
                     /\ vt_pa' <= Older(vt_pa)]_vars
AcknowledgedHasArrived == vt_a <= vr_r

Done == vt_a = Packets

(* STP-DT-004 *)
NoStall == \/ Done \/ forward # <<>> \/ return # <<>> \/ queue # {}
           \/ (vt_s < Packets /\ Permitted) \/ PollArmed

(* STP-DT-012 *)
EventuallyDone == <>Done

Items == [k \in 1..Packets |-> k - 1]
Service == INSTANCE ReliableFifo WITH accepted <- vt_s, delivered <- delivered
DeliveredIsPrefix == Service!DeliveredIsPrefix      \* STP-DT-012
RefinesService == Service!Init /\ [][Service!Next]_(Service!fifoVars)
RefinesFairService == Service!Spec

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverSecondLoss == ~\E n \in queue : forwardLosses = 0 /\ n < vr_h /\ queue = {n} /\ ForwardLosses = 2
NeverSuppressed == ~\E i \in DOMAIN return : /\ return[i].type = "STAT"
    /\ \E g \in return[i].gaps \cap DOMAIN buffer : ~Predates(buffer[g], return[i].age)
NeverUstat == \A i \in DOMAIN return : return[i].type # "USTAT"
NeverReleasedSelectively == ~\E n \in vt_a..(vt_s - 1) : n \notin DOMAIN buffer
NeverWraps == vr_r < Modulus
NeverDuplicateArrives == [][~\E i \in Exits(forward, ForwardReorders) :
    /\ forward[i].type = "SD" /\ forward[i].n < vr_r
    /\ forward' = Without(forward, i) /\ budgets' = budgets]_vars
==============================================================================
