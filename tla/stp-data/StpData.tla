------------------------------ MODULE StpData -------------------------------
(* STP's data transfer (STP/1 sections 6, 7.1 and 7.2): SD, POLL, STAT and USTAT, credit that closes  *)
(* and opens again, and the timers that make the sender ask. VT(S), VR(H) and the others are written  *)
(* vt_s, vr_h.                                                                                        *)
(*                                                                                                    *)
(* Poll numbers only grow and only their order matters, so they are kept as ages: how many POLLs      *)
(* have been sent since. Sending a POLL ages every number by one, up to OldestAge, and waits while a  *)
(* message of that age is still under way (a bound on packet lifetime). VT(PS) has age 0.             *)
(* A STAT with N(PS) 0 answers no POLL; it is called CREDIT here.                                     *)
EXTENDS Integers, Sequences, FiniteSets, Operators, Channel, SeqMod

CONSTANTS
    Packets,        \* SDs to transfer, numbered 0..Packets-1; the last one carries the FIN
    Window,         \* the receiver's buffer, in SDs
    Capacity,       \* messages that fit into the forward channel
    MaxPolls,       \* POLLs and STATs under way at most
    MaxStat,        \* elements of a STAT's list at most
    ReturnCapacity, \* messages that fit into the return channel
    ForwardLosses, ReturnLosses,        \* loss budgets
    Duplicates,     \* budget of messages, either way, of which a second copy arrives
    ForwardReorders, ReturnReorders,    \* whether a channel reorders
    UserWaits,      \* whether the sender's user writes one SD at a time; all at the start otherwise
    UserReads,      \* whether the receiver's user reads one SD at a time; at once otherwise
    KeepAlives,     \* how often Timer_KEEP-ALIVE expires
    Strangers       \* whether packets arrive that do not belong to the stream

VARIABLES
    written,            \* SDs that the sender's user has written
    vt_s, vt_a, vt_ms,  \* next new SD; oldest not acknowledged; first SD not permitted
    vt_pa,              \* age of the POLL that the newest STAT echoed; OldestAge at first
    buffer,             \* age of the last transmission of each SD the sender still keeps
    queue,              \* SDs awaiting retransmission
    repeated,           \* SDs in the buffer that were sent more than once
    silence,            \* Timer_SILENCE runs
    unanswered,         \* Timer_NO-RESPONSE runs: no valid report has followed a POLL
    vr_r, vr_h,         \* next SD in sequence; next highest SD expected
    vr_mr,              \* first SD not permitted: the highest credit announced
    held,               \* SDs received beyond vr_r
    closed,             \* the last report showed no credit beyond VR(H)
    delivered,          \* sequence handed to the user
    taken,              \* how many SDs of it the user has read
    forward, return,    \* the channels
    forwardLosses, returnLosses, duplicates, keepAlives,
    spurious,           \* ghost: an SD was requeued that had arrived or was under way
    misread,            \* ghost: a sequence number was decoded wrongly and used
    strange             \* ghost: a packet that is none of the stream's was used

timers       == <<silence, unanswered>>
senderVars   == <<written, vt_s, vt_a, vt_ms, vt_pa, buffer, queue, repeated, timers>>
receiverVars == <<vr_r, vr_h, vr_mr, held, closed, delivered, taken>>
budgets      == <<forwardLosses, returnLosses, duplicates, keepAlives>>
ghosts       == <<spurious, misread, strange>>
vars == <<senderVars, receiverVars, forward, return, budgets, ghosts>>

OldestAge == MaxPolls + 1

Start(permitted) ==
    /\ written = IF UserWaits THEN 0 ELSE Packets
    /\ vt_s = 0 /\ vt_a = 0 /\ vt_ms = permitted /\ vt_pa = OldestAge
    /\ buffer = <<>> /\ queue = {} /\ repeated = {}
    /\ silence = FALSE /\ unanswered = FALSE
    /\ vr_r = 0 /\ vr_h = 0 /\ vr_mr = Window /\ held = {} /\ closed = FALSE
    /\ delivered = <<>> /\ taken = 0
    /\ forward = <<>> /\ return = <<>>
    /\ forwardLosses = ForwardLosses /\ returnLosses = ReturnLosses /\ duplicates = Duplicates
    /\ keepAlives = KeepAlives
    /\ spurious = FALSE /\ misread = FALSE /\ strange = FALSE

Init == Start(Window)

(* Messages. Only the receiver of a message may use its numbers, and only through Seen. A report      *)
(* speaks of the numbers from lo up to its bound h, of which those in gaps are missing.               *)
SD(n)   == [type |-> "SD", n |-> n]
POLL(n) == [type |-> "POLL", n |-> n, age |-> 0]
STAT(age, nr, mr, lo, h, gaps) ==
    [type |-> "STAT", n |-> nr, mr |-> mr, age |-> age, lo |-> lo, h |-> h, gaps |-> gaps]
USTAT(nr, mr, from, to) ==
    [type |-> "USTAT", n |-> nr, mr |-> mr, h |-> to, gaps |-> from..(to - 1)]
CREDIT(nr, mr) == [type |-> "CREDIT", n |-> nr, mr |-> mr]

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

(* Data waits for credit, and nothing else will make the sender ask (STP-DT-025). *)
WaitsForCredit(data, acknowledged, permitted) ==
    data > vt_s /\ acknowledged = vt_s /\ vt_s >= permitted

(* STP-DT-025: Timer_SILENCE starts when data comes to wait for credit. *)
ProbedFor(data) == WaitsForCredit(data, vt_a, vt_ms)

Write ==
    /\ written < Packets
    /\ written' = written + 1
    /\ silence' = (silence \/ ProbedFor(written'))
    /\ UNCHANGED <<vt_s, vt_a, vt_ms, vt_pa, buffer, queue, repeated, unanswered>>
    /\ UNCHANGED <<receiverVars, forward, return, budgets, ghosts>>

SendNew ==
    /\ NewMayGo /\ vt_s < written /\ Permitted /\ LifetimeBound
    /\ HasRoom(forward, Capacity, 1)
    /\ forward' = Append(forward, SD(vt_s))
    /\ buffer' = With(buffer, vt_s, 0)
    /\ vt_s' = vt_s + 1
    /\ UNCHANGED <<written, vt_a, vt_ms, vt_pa, queue, repeated, silence, unanswered>>
    /\ UNCHANGED <<receiverVars, return, budgets, ghosts>>

Retransmit ==
    /\ queue # {} /\ HasRoom(forward, Capacity, 1)
    /\ LET n == Lowest(queue)
       IN /\ forward' = Append(forward, SD(n))
          /\ buffer' = With(buffer, n, 0)
          /\ queue' = queue \ {n}
          /\ repeated' = repeated \cup {n}
    /\ UNCHANGED <<written, vt_s, vt_a, vt_ms, vt_pa, silence, unanswered>>
    /\ UNCHANGED <<receiverVars, return, budgets, ghosts>>

(* STP-PL-001 and STP-PL-007. When they expire is left open: a POLL may leave at any moment while     *)
(* one of them runs, and at no other. Timer_POLL runs for what was sent since the last POLL and is    *)
(* not acknowledged.                                                                                  *)
TimerPollRuns == \E n \in DOMAIN buffer : buffer[n] = 0
TimerSilenceRuns == silence

(* A POLL starts it, whatever it asks about; only a report stops it (STP-PL-007, STP-PL-010). *)
SilenceStarts == TRUE

(* STP-PL-006: N(S) of a POLL is VT(S). *)
Asked == vt_s

(* STP-DT-027: an expiry makes nothing be sent again. *)
RequeuedByTimer == {}

(* How many POLLs may be under way, and how old, is a bound of the model.                             *)
PollFits ==
    /\ HasRoom(forward, Capacity, 1)
    /\ Cardinality(StatusUnderWay) < MaxPolls
    /\ ~TooOld(forward) /\ ~TooOld(return)

Poll ==
    /\ PollFits
    /\ forward' = Append(Aged(forward), POLL(Asked))
    /\ return' = Aged(return)
    /\ buffer' = [n \in DOMAIN buffer |-> Older(buffer[n])]
    /\ vt_pa' = Older(vt_pa)
    /\ silence' = SilenceStarts /\ unanswered' = TRUE
    /\ queue' = queue \cup RequeuedByTimer
    /\ UNCHANGED <<written, vt_s, vt_a, vt_ms, repeated, receiverVars, ghosts>>

SendPoll == (TimerPollRuns \/ TimerSilenceRuns) /\ Poll /\ UNCHANGED budgets

(* STP-PL-010 *)
KeepAlive ==
    /\ keepAlives > 0 /\ vt_a = vt_s /\ written = vt_s /\ ~silence
    /\ Poll
    /\ keepAlives' = keepAlives - 1
    /\ UNCHANGED <<forwardLosses, returnLosses, duplicates>>

(* STP-DT-003: strictly older than the POLL that the STAT answers. *)
Predates(transmission, poll) == transmission > poll

(* STP-DT-007: a STAT that is older than the newest one seen is discarded. Parts of one are not.      *)
Fresh(stat) == stat.age <= vt_pa

(* STP-DT-023, after decoding from VT(A): what was below it lies above VT(S). *)
Plausible(nr, high) == nr <= vt_s /\ nr <= high /\ high <= vt_s

(* STP-DT-006: what the STAT shows as arrived: what its list covers and does not name as missing.     *)
Arrived(nr, low, high, gaps) == (0..(nr - 1)) \cup ((low..(high - 1)) \ gaps)

AlreadyThere(n) == n < vr_r \/ n \in held \/ \E i \in DOMAIN forward : forward[i] = SD(n)

(* STP-PL-007: a report stops Timer_SILENCE when all is acknowledged and no data waits for credit;    *)
(* STP-DT-025: it starts it when data does.                                                           *)
SilenceOver(nr, permitted) == nr = vt_s /\ ~WaitsForCredit(written, nr, permitted)

(* Common to all reports: acknowledge up to nr, release what arrived, queue what is missing.          *)
Update(nr, permitted, arrived, missing) ==
    /\ vt_a' = Max(vt_a, nr)
    /\ vt_ms' = Max(vt_ms, permitted)
    /\ buffer' = Only(buffer, {n \in DOMAIN buffer : n >= nr /\ n \notin arrived})
    /\ queue' = (queue \cup missing) \cap DOMAIN buffer'
    /\ repeated' = repeated \cap DOMAIN buffer'
    /\ silence' = /\ silence \/ WaitsForCredit(written, vt_a', vt_ms')
                  /\ ~SilenceOver(vt_a', vt_ms')
    /\ unanswered' = FALSE
    /\ spurious' = (spurious \/ \E n \in missing : AlreadyThere(n))

Discard == UNCHANGED <<vt_a, vt_ms, vt_pa, buffer, queue, repeated, silence, unanswered, ghosts>>

ReceiveReport(i) ==
    /\ return' = Without(return, i)
    /\ UNCHANGED <<written, vt_s, receiverVars, forward, budgets, strange>>

UseStat(stat) ==
    LET nr   == Seen(stat.n, vt_a)
        mr   == Seen(stat.mr, nr)
        low  == Seen(stat.lo, vt_a)
        high == Seen(stat.h, vt_a)
        gaps == {Seen(g, vt_a) : g \in stat.gaps}
        valid == Fresh(stat) /\ Plausible(nr, high)
    IN IF valid
       THEN /\ Update(nr, mr, Arrived(nr, low, high, gaps),
                      {g \in gaps : /\ g \in DOMAIN buffer \ queue
                                    /\ Predates(buffer[g], stat.age)})
            /\ vt_pa' = stat.age
            /\ misread' = (misread \/ nr # stat.n \/ mr # stat.mr \/ low # stat.lo
                                   \/ high # stat.h \/ gaps # stat.gaps)
       ELSE Discard

ReceiveStat(i) == return[i].type = "STAT" /\ UseStat(return[i]) /\ ReceiveReport(i)

(* STP-DT-014: a USTAT reports a gap when it is first seen. A STAT may have overtaken it on the way,  *)
(* and the retransmission may have arrived since.                                                     *)
SentOnce(n) == n \notin repeated

ReceiveUstat(i) ==
    /\ return[i].type = "USTAT"
    /\ LET ustat == return[i]
           nr    == Seen(ustat.n, vt_a)
           mr    == Seen(ustat.mr, nr)
           high  == Seen(ustat.h, vt_a)
           gaps  == {Seen(g, vt_a) : g \in ustat.gaps}
       IN IF Plausible(nr, high)
          THEN /\ Update(nr, mr, {}, {g \in gaps : g \in DOMAIN buffer \ queue /\ SentOnce(g)})
               /\ vt_pa' = vt_pa
               /\ misread' = (misread \/ nr # ustat.n \/ mr # ustat.mr \/ gaps # ustat.gaps)
          ELSE Discard
    /\ ReceiveReport(i)

(* It answers no POLL: STP-DT-007 does not apply, and VT(PA) stays. *)
ReceiveCredit(i) ==
    /\ return[i].type = "CREDIT"
    /\ LET credit == return[i]
           nr     == Seen(credit.n, vt_a)
           mr     == Seen(credit.mr, nr)
       IN IF Plausible(nr, nr)
          THEN /\ Update(nr, mr, {}, {})
               /\ vt_pa' = vt_pa
               /\ misread' = (misread \/ nr # credit.n \/ mr # credit.mr)
          ELSE Discard
    /\ ReceiveReport(i)

----------------------------------------------------------------------------
(* Receiver *)

(* STP-DT-001: "beyond the next expected" means beyond VR(H). *)
IsGap(n) == n > vr_h
GapStart == vr_h
ReportsAtOnce(n) == IsGap(n)

(* Appends the run that has become deliverable. *)
Deliver(done, next, arrival) == done \o [k \in 1..(next - vr_r) |-> vr_r + k - 1]

(* What the receiver has room for, and so announces in its next report (STP-DT-021). *)
Room(read) == read + Window
Grant(read) == Room(read)

(* What STAT and USTAT acknowledge: N(R). *)
InSequence(next, high) == next

(* STP-DT-020 *)
BeyondCredit(n) == n >= vr_mr

(* STP-DT-028: above a FIN that has been received, or a FIN below an SD that has been.                *)
Fin == Packets - 1
FinReceived == vr_r > Fin \/ Fin \in held
Impossible(n, fin) == (FinReceived /\ n > Fin) \/ (fin /\ \E m \in held : m > n)

(* Takes SD n, which need not be the next one. *)
Take(n) ==
    LET all  == held \cup {n}
        next == Lowest({m \in vr_r..(n + Window + 1) : m \notin all})
        high == Max(vr_h, n + 1)
        read == IF UserReads THEN taken ELSE next
    IN /\ vr_r' = next
       /\ vr_h' = high
       /\ held' = {m \in all : m >= next}
       /\ delivered' = Deliver(delivered, next, n)
       /\ taken' = read
       /\ IF ReportsAtOnce(n)
          THEN /\ HasRoom(return, ReturnCapacity, 1)
               /\ vr_mr' = Grant(read)
               /\ closed' = (vr_mr' <= high)
               /\ return' = Append(return, USTAT(InSequence(next, high), vr_mr', GapStart, n))
          ELSE UNCHANGED <<vr_mr, closed, return>>

ReceiveSd(i) ==
    /\ forward[i].type = "SD"
    /\ LET n == Seen(forward[i].n, vr_r)
       IN IF BeyondCredit(n) \/ Impossible(n, forward[i].n = Fin)
          THEN UNCHANGED <<receiverVars, return, misread>>      \* old, or beyond the credit
          ELSE /\ Take(n)
               /\ misread' = (misread \/ n # forward[i].n)
    /\ forward' = Without(forward, i)
    /\ UNCHANGED <<senderVars, budgets, spurious, strange>>

(* STP-DT-002: a POLL raises VR(H). STP-DT-008: but not beyond the credit or the FIN, nor backwards.  *)
PastFin(n) == FinReceived /\ n > Fin + 1
RaisedBy(n) == IF n <= vr_mr /\ ~PastFin(n) THEN Max(vr_h, n) ELSE vr_h

Raised(high) == high

(* STP-DT-018: every run of missing numbers. *)
Missing(high) == (vr_r..(high - 1)) \ held

(* STP-DT-022: what a report has shown as held is kept. *)
Kept == held

(* STP-PF-012: the list, from VR(R) on, is cut after every MaxStat-th element; the last element of a  *)
(* part is the first of the next.                                                                     *)
STATs(age, nr, mr, high) ==
    LET gaps == Missing(high)
        elements == {b \in vr_r..high : b \in {vr_r, high} \/ ((b - 1 \in gaps) # (b \in gaps))}
        rank(b) == Cardinality({c \in elements : c < b})
        cuts == {b \in elements : rank(b) % (MaxStat - 1) = 0 /\ b # high} \cup {high}
        Cut(k) == CHOOSE c \in cuts : Cardinality({d \in cuts : d < c}) = k
    IN IF Cardinality(elements) <= MaxStat
       THEN <<STAT(age, nr, mr, vr_r, high, gaps)>>
       ELSE [k \in 1..(Cardinality(cuts) - 1) |->
             STAT(age, nr, mr, Cut(k - 1), Cut(k), gaps \cap (Cut(k - 1)..(Cut(k) - 1)))]

ReceivePoll(i) ==
    /\ forward[i].type = "POLL"
    /\ LET n     == Seen(forward[i].n, vr_r)
           high  == RaisedBy(n)
           stats == STATs(forward[i].age, InSequence(vr_r, high), Grant(taken), high)
       IN /\ HasRoom(return, ReturnCapacity, Len(stats))
          /\ vr_h' = Raised(high)
          /\ vr_mr' = Grant(taken)
          /\ closed' = (vr_mr' <= vr_h')
          /\ held' = Kept
          /\ return' = return \o stats
          /\ misread' = (misread \/ (high # vr_h /\ n # forward[i].n))
    /\ forward' = Without(forward, i)
    /\ UNCHANGED <<senderVars, vr_r, delivered, taken, budgets, spurious, strange>>

(* The user reads. *)
Read ==
    /\ UserReads /\ taken < vr_r
    /\ taken' = taken + 1
    /\ UNCHANGED <<senderVars, vr_r, vr_h, vr_mr, held, closed, delivered, forward, return>>
    /\ UNCHANGED <<budgets, ghosts>>

(* STP-DT-024: a window that has been shown closed and opens again, by 16 SDs or half the buffer.      *)
MayAnnounce == closed /\ ~FinReceived /\ Room(taken) - vr_h >= Min(16, (Window + 1) \div 2)

Announce ==
    /\ MayAnnounce /\ HasRoom(return, ReturnCapacity, 1)
    /\ vr_mr' = Grant(taken)
    /\ closed' = FALSE
    /\ return' = Append(return, CREDIT(vr_r, vr_mr'))
    /\ UNCHANGED <<senderVars, vr_r, vr_h, held, delivered, taken, forward, budgets, ghosts>>

(* Packets that are none of the stream's, and that the receiver can tell from it: an SD that cannot   *)
(* be (STP-DT-028), a POLL with another CSN or of an SD that cannot be (STP-DT-008).                  *)
OfStranger(n, fin) ==
    \/ FinReceived /\ n > Fin
    \/ fin /\ n \notin held /\ \E m \in held : m > n
PollOfStranger(n) == FinReceived /\ n > Fin + 1
OwnPolls(n) == FALSE

StrangeSd ==
    /\ Strangers
    /\ \E n \in vr_r..(vr_mr - 1), fin \in BOOLEAN :
        OfStranger(n, fin) /\ ~Impossible(n, fin) /\ ~BeyondCredit(n) /\ Take(n)
    /\ strange' = TRUE
    /\ UNCHANGED <<senderVars, forward, budgets, spurious, misread>>

StrangePoll ==
    /\ Strangers
    /\ \E n \in (vr_h + 1)..vr_mr :
        (OwnPolls(n) \/ PollOfStranger(n)) /\ vr_h' = Raised(RaisedBy(n))
    /\ UNCHANGED <<senderVars, vr_r, vr_mr, held, closed, delivered, taken, forward, return>>
    /\ UNCHANGED <<budgets, ghosts>>

----------------------------------------------------------------------------
(* Channels *)

(* What a loss takes from its budget. *)
Spent(budget) == budget - 1

LoseForward(i) ==
    /\ forwardLosses > 0
    /\ forward' = Without(forward, i)
    /\ forwardLosses' = Spent(forwardLosses)
    /\ UNCHANGED <<senderVars, receiverVars, return, returnLosses, duplicates, keepAlives, ghosts>>

LoseReturn(i) ==
    /\ returnLosses > 0
    /\ return' = Without(return, i)
    /\ returnLosses' = Spent(returnLosses)
    /\ UNCHANGED <<senderVars, receiverVars, forward, forwardLosses, duplicates, keepAlives, ghosts>>

DuplicateForward(i) ==
    /\ duplicates > 0 /\ HasRoom(forward, Capacity, 1)
    /\ forward' = Twice(forward, i)
    /\ duplicates' = duplicates - 1
    /\ UNCHANGED <<senderVars, receiverVars, return, forwardLosses, returnLosses, keepAlives, ghosts>>

DuplicateReturn(i) ==
    /\ duplicates > 0 /\ HasRoom(return, ReturnCapacity, 1)
    /\ return' = Twice(return, i)
    /\ duplicates' = duplicates - 1
    /\ UNCHANGED <<senderVars, receiverVars, forward, forwardLosses, returnLosses, keepAlives, ghosts>>

Receive ==
    \/ \E i \in Exits(forward, ForwardReorders) : ReceiveSd(i) \/ ReceivePoll(i)
    \/ \E i \in Exits(return, ReturnReorders) : ReceiveStat(i) \/ ReceiveUstat(i) \/ ReceiveCredit(i)

Lose == \/ \E i \in Exits(forward, ForwardReorders) : LoseForward(i)
        \/ \E i \in Exits(return, ReturnReorders) : LoseReturn(i)

Duplicate == \/ \E i \in Exits(forward, ForwardReorders) : DuplicateForward(i)
             \/ \E i \in Exits(return, ReturnReorders) : DuplicateReturn(i)

Next == \/ Write \/ SendNew \/ Retransmit \/ SendPoll \/ KeepAlive
        \/ Receive \/ Read \/ Announce \/ StrangeSd \/ StrangePoll
        \/ Lose \/ Duplicate

Spec == Init /\ [][Next]_vars

FairSpec == /\ Spec
            /\ WF_vars(Write) /\ WF_vars(SendNew) /\ WF_vars(Retransmit) /\ WF_vars(SendPoll)
            /\ WF_vars(Receive) /\ WF_vars(Read) /\ WF_vars(Announce)

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
    /\ vt_a \in 0..vt_s /\ vt_s \in 0..written /\ written \in 0..Packets /\ vt_ms \in Nat
    /\ vt_pa \in 0..OldestAge
    /\ DOMAIN buffer \subseteq 0..(Packets - 1)
    /\ \A n \in DOMAIN buffer : buffer[n] \in 0..OldestAge
    /\ queue \subseteq DOMAIN buffer /\ repeated \subseteq DOMAIN buffer
    /\ \A flag \in {silence, unanswered, closed, spurious, misread, strange} : flag \in BOOLEAN
    /\ taken \in 0..vr_r
    /\ Len(forward) <= Capacity /\ Len(return) <= ReturnCapacity

(* STP-DT-009 *)
RetransmissionsGoFirst == [][vt_s' > vt_s => queue = {}]_vars

(* STP-DT-027 *)
OnlyReportsRequeue == [][queue' \subseteq queue \/ Len(return') < Len(return)]_vars

(* STP-DT-010, STP-DT-018, STP-DT-022 *)
ReleasedHasArrived == \A n \in 0..(vt_s - 1) : n \in DOMAIN buffer \/ n < vr_r \/ n \in held

(* STP-DT-003, STP-DT-014 *)
NoSpuriousRetransmission == ~spurious

(* STP-DT-001, STP-DT-002: a USTAT names nothing that an earlier report named. *)
GapReportedOnce == \A i, j \in DOMAIN return :
    i < j /\ return[j].type = "USTAT" /\ return[i].type # "CREDIT" /\ return[i] # return[j]
        => return[i].gaps \cap return[j].gaps = {}

(* STP-PF-012 *)
ListsAreCut == \A i \in DOMAIN return : return[i].type = "STAT" =>
    LET stat == return[i]
    IN Cardinality({b \in stat.lo..stat.h : b \in {stat.lo, stat.h} \/
        ((b - 1 \in stat.gaps) # (b \in stat.gaps))}) <= MaxStat

(* STP-DT-005 *)
DecodedRightly == ~misread

(* STP-DT-028 *)
NothingStrange == ~strange

(* STP-DT-008 *)
HighestIsReal == vr_r <= vr_h /\ vr_h <= vt_s

(* STP-DT-011 *)
WithinCredit == vt_s <= vt_ms /\ vt_ms <= vr_mr

(* STP-DT-020, STP-DT-021: the credit promises no more than there is room for. *)
BufferHolds == vr_h <= vr_mr /\ vr_mr <= Room(taken)

(* STP-DT-024 *)
AnnouncesOnlyReopening == [][\A i \in DOMAIN return' :
    i = Len(return) + 1 /\ return'[i].type = "CREDIT" /\ duplicates' = duplicates
        => closed /\ vr_mr' > vr_h]_vars

(* STP-DT-007 *)
NeverBackwards == [][vt_a' >= vt_a /\ vt_ms' >= vt_ms /\ vr_r' >= vr_r /\ vr_h' >= vr_h
                     /\ vt_pa' <= Older(vt_pa)]_vars
AcknowledgedHasArrived == vt_a <= vr_r

(* STP-DT-021 *)
CreditNeverShrinks == [][vr_mr' >= vr_mr]_vars

Done == vt_a = Packets

(* STP-DT-004 *)
AlwaysATimer == vt_a # vt_s => TimerPollRuns \/ TimerSilenceRuns

(* STP-DT-004, STP-DT-025: whenever nobody can do anything, all is done. *)
NoStall == \/ Done \/ forward # <<>> \/ return # <<>> \/ queue # {}
           \/ (vt_s < written /\ Permitted) \/ written < Packets
           \/ (UserReads /\ taken < vr_r) \/ MayAnnounce
           \/ TimerPollRuns \/ TimerSilenceRuns

(* STP-DT-012 *)
EventuallyDone == <>Done

(* STP-PL-007, STP-PL-008: a peer that answers is heard in the end, and not given up.                 *)
AnsweredInTheEnd == unanswered ~> ~unanswered

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
NeverBound == LifetimeBound \/ queue # {} \/ vt_s >= written \/ ~Permitted
NeverClosed == ~(closed /\ vt_s = vt_ms /\ vt_a = vt_s /\ written > vt_s)
NeverReopened == \A i \in DOMAIN return : return[i].type # "CREDIT"
NeverInParts == \A i \in DOMAIN return : return[i].type = "STAT" => return[i].lo <= return[i].n
NeverStranger == ~\E n \in vr_r..(vr_mr - 1), fin \in BOOLEAN : OfStranger(n, fin)
NeverKeptAlive == KeepAlives = 0 \/ keepAlives > 0
NeverDuplicateArrives == [][~\E i \in Exits(forward, ForwardReorders) :
    /\ forward[i].type = "SD" /\ forward[i].n < vr_r
    /\ forward' = Without(forward, i) /\ budgets' = budgets]_vars
==============================================================================
