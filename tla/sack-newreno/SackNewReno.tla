---------------------------- MODULE SackNewReno -----------------------------
(* TCP's loss recovery with SACK: rules 1-7 of HK99's appendix, or RFC 6582 and RFC 6675 where        *)
(* Profile = "rfc". Segments have one size and are numbered 0..Segments-1; cwnd, ssthresh and flight   *)
(* count segments; recover holds the first segment not sent when recovery began (snd_max).            *)
(*                                                                                                    *)
(* The receiver acknowledges every segment at once and reports all it holds. The timer is ideal (it   *)
(* expires only when nothing is under way) plus EarlyTimeouts expiries at any moment. Growth in       *)
(* congestion avoidance is left out: it changes no decision of the recovery.                          *)
EXTENDS Integers, Sequences, FiniteSets, Operators, Channel

CONSTANTS
    Profile,        \* "hk99" or "rfc"
    Segments,       \* segments to transfer
    InitialWindow,  \* initial cwnd
    MaxWindow,      \* the receiver's window, in segments
    DupThresh,      \* duplicates that start fast retransmit: 3 in the standards, smaller in small models
    DataLosses, AckLosses, EarlyTimeouts   \* budgets

VARIABLES
    sndUna, sndNxt, sndMax,
    cwnd, ssthresh,
    dupAcks,
    recover,        \* -1 at first in the rfc profile: nothing recorded
    inRecovery,
    repaired,       \* segments retransmitted in this episode
    rescued,        \* the rescue retransmission of RFC 6675 was used in this episode
    sacked,         \* scoreboard: segments reported held
    link, held, ackLink,
    delivered,      \* sequence handed to the receiver's user
    dataLosses, ackLosses, earlyTimeouts,
    told,           \* ghost: reported held since the last timeout
    again,          \* ghost: retransmitted in this episode, whatever repaired says
    cuts,           \* ghost: reductions of the window in this episode
    cutAt           \* ghost: snd_max when the window was last reduced

window       == <<cwnd, ssthresh>>
senderVars   == <<sndUna, sndNxt, sndMax, window, dupAcks, recover, inRecovery, repaired, rescued, sacked>>
ghosts       == <<told, again, cuts, cutAt>>
budgets      == <<dataLosses, ackLosses, earlyTimeouts>>
receiverVars == <<held, delivered>>
vars == <<senderVars, link, receiverVars, ackLink, budgets, ghosts>>

Rfc == Profile = "rfc"

Init ==
    /\ sndUna = 0 /\ sndNxt = 0 /\ sndMax = 0
    /\ cwnd = InitialWindow /\ ssthresh = MaxWindow
    /\ dupAcks = 0
    /\ recover = IF Rfc THEN -1 ELSE 0      \* rule 1
    /\ inRecovery = FALSE /\ repaired = {} /\ rescued = FALSE /\ sacked = {}
    /\ link = <<>> /\ held = {} /\ delivered = <<>> /\ ackLink = <<>>
    /\ dataLosses = DataLosses /\ ackLosses = AckLosses /\ earlyTimeouts = EarlyTimeouts
    /\ told = {} /\ again = {} /\ cuts = 0 /\ cutAt = 0

RcvNxt == Len(delivered)

----------------------------------------------------------------------------
(* What may be sent *)

(* Rule 7 (SNR-SAK-002): going back after a timeout, what the receiver reported since is skipped.     *)
SkipHeld(n, board) == IF n < sndMax THEN Lowest({m \in n..sndMax : m \notin board}) ELSE n

(* How far the window reaches. *)
Edge(una, w) == Min(Segments, una + Min(w, MaxWindow))

(* Segments from snd_nxt on that the window permits, without those reported held. *)
Fresh(una, next, w, board) ==
    LET RECURSIVE list(_)
        list(n) == LET m == SkipHeld(n, board)
                   IN IF m >= Edge(una, w) THEN <<>> ELSE <<m>> \o list(m + 1)
    IN list(next)

After(list, next) == IF list = <<>> THEN next ELSE Max(next, list[Len(list)] + 1)

(* SNR-SAK-005: rule 5 of HK99; IsLost of RFC 6675 in rfc. *)
ShownLost(n, una, board, dups) ==
    IF Rfc THEN \/ Cardinality({s \in board : s > n}) >= DupThresh
                \/ (n = una /\ dups >= DupThresh)
           ELSE \/ \E s \in board : s >= n + DupThresh
                \/ (n = una /\ dups >= DupThresh)

(* SNR-SAK-001, SNR-SAK-009: not held, not yet retransmitted in this episode. *)
Eligible(una, board, dups, done) ==
    {n \in una..(sndMax - 1) : /\ n \notin board /\ n \notin done
                               /\ ShownLost(n, una, board, dups)}

(* RFC 6675's estimate of what is under way. *)
Pipe(una, board, dups, done) ==
    LET out == {n \in una..(sndMax - 1) : n \notin board}
    IN Cardinality({n \in out : ~ShownLost(n, una, board, dups)}) + Cardinality(out \cap done)

----------------------------------------------------------------------------
(* Reactions to acknowledgments. Each gives the new values as a record.                               *)

Now == [una |-> sndUna, nxt |-> sndNxt, cwnd |-> cwnd, ssthresh |-> ssthresh, dups |-> dupAcks,
        recover |-> recover, inRecovery |-> inRecovery, repaired |-> repaired, rescued |-> rescued,
        board |-> sacked, out |-> <<>>, cuts |-> cuts, cutAt |-> cutAt, again |-> again]

Sending(r, list) == [r EXCEPT !.out = list, !.nxt = After(list, r.nxt)]

SendingFresh(r) == Sending(r, Fresh(r.una, r.nxt, r.cwnd, r.board))

Repairing(r, n) == [r EXCEPT !.out = @ \o <<n>>, !.repaired = @ \cup {n}, !.again = @ \cup {n}]

(* Half the flight, two segments at least. *)
Half(flight) == Max(flight \div 2, 2)

Reduced(r) == [r EXCEPT !.ssthresh = Half(sndMax - r.una), !.cuts = @ + 1, !.cutAt = sndMax]

(* SNR-REC-003: the gate of rule 2. RFC 6675 section 5.1 has the same: HighACK is the last octet        *)
(* acknowledged and RecoveryPoint the last one sent, so HighACK >= RecoveryPoint is una >= recover.    *)
(* That more than recover be covered (RFC 6582 section 3.2 step 2, SNR-REC-004) is asked of senders   *)
(* without SACK, which cannot tell duplicates of needless retransmissions from others.                 *)
GateOpen(una) == una >= recover

(* RFC 6675 section 5 (C), repeated until nothing more is permitted.                                  *)
RECURSIVE RfcOutput(_)
PipeOutput(r) == RfcOutput(r)
RfcOutput(r) ==
    LET todo  == Eligible(r.una, r.board, r.dups, r.repaired)
        pipe  == Pipe(r.una, r.board, r.dups, r.repaired)
                     + Cardinality({i \in DOMAIN r.out : r.out[i] >= sndMax})
        tail  == sndMax - 1
    IN IF pipe >= r.cwnd THEN r
       ELSE IF todo # {} THEN RfcOutput(Repairing(r, Lowest(todo)))
       ELSE IF r.nxt < Min(Segments, r.una + MaxWindow) /\ r.nxt >= sndMax
            THEN RfcOutput([r EXCEPT !.out = @ \o <<r.nxt>>, !.nxt = @ + 1])
       ELSE IF ~r.rescued /\ tail \notin r.board /\ tail >= r.una /\ r.una < sndMax /\ tail \notin r.repaired
            THEN [Repairing(r, tail) EXCEPT !.rescued = TRUE]
       ELSE r

(* Where new data begins once recovery is entered (SNR-SAK-009). The paper does not say what becomes  *)
(* of a snd_nxt that a timeout has set back; resuming there would repeat what recovery repairs.       *)
ResumeAt == sndMax

Enter(r) ==
    LET entered == [Reduced([r EXCEPT !.cuts = 0, !.nxt = ResumeAt]) EXCEPT
                       !.recover = sndMax, !.inRecovery = TRUE, !.repaired = {}, !.rescued = FALSE,
                       !.again = {}]
    IN IF Rfc THEN PipeOutput(Repairing([entered EXCEPT !.cwnd = entered.ssthresh], r.una))
              ELSE Repairing([entered EXCEPT !.cwnd = entered.ssthresh + DupThresh], r.una)

(* Rule 3 (SNR-REC-005). *)
ExitWindow(thresh, flight) == Min(thresh, IF Rfc THEN Max(flight, 1) + 1 ELSE flight + 1)

Exit(r) ==
    SendingFresh([r EXCEPT !.cwnd = ExitWindow(r.ssthresh, sndMax - r.una),
                           !.inRecovery = FALSE, !.repaired = {}, !.rescued = FALSE, !.again = {}])

(* What happens to the window at a loss that is found during recovery: nothing (SNR-REC-002).         *)
FurtherLoss(r) == r

(* Rule 6 (SNR-SAK-008): one eligible retransmission, or else inflate and send new data. *)
RuleSix(r) ==
    LET todo == Eligible(r.una, r.board, r.dups, r.repaired)
    IN IF todo # {} THEN FurtherLoss(Repairing(r, Lowest(todo)))
       ELSE SendingFresh([r EXCEPT !.cwnd = Min(@ + 1, MaxWindow + DupThresh)])

(* Rule 4 (SNR-REC-001): a partial acknowledgment deflates by what it covers and adds one.            *)
Partial(r, covered) ==
    IF Rfc THEN PipeOutput(r)
    ELSE RuleSix([r EXCEPT !.cwnd = Max(@ - covered + 1, 1)])

(* Which reports the scoreboard takes in. *)
TakenIn(reported) == reported

NewAck(r, covered) ==
    IF inRecovery
    THEN IF r.una >= r.recover THEN Exit(r) ELSE Partial(r, covered)
    ELSE SendingFresh([r EXCEPT !.cwnd = IF @ < r.ssthresh THEN Min(@ + 1, MaxWindow) ELSE @])

(* SNR-REC-001, SNR-SAK-015: rule 2; in rfc also step 2 of RFC 6675 section 5.                          *)
LossFound(r) == r.dups >= DupThresh \/ (Rfc /\ ShownLost(r.una, r.una, r.board, 0))

(* What counts as a duplicate: in rfc what reports something new (RFC 6675 section 2).                 *)
Counts(ack) == ~Rfc \/ TakenIn(ack.sack) \ sacked # {}

(* Limited transmit is left out: it changes when new data goes out, not what is repaired.             *)
DupAck(r) ==
    IF inRecovery THEN IF Rfc THEN PipeOutput(r) ELSE RuleSix(r)
    ELSE IF LossFound(r) /\ GateOpen(r.una) THEN Enter(r)
    ELSE r

(* What an acknowledgment covers. *)
Covered(ack) == ack.cum

Reaction(ack) ==
    LET covered == ack.cum - sndUna
        board   == {n \in sacked \cup TakenIn(ack.sack) : n >= Max(ack.cum, sndUna)}
        base    == [Now EXCEPT !.una = Max(@, ack.cum), !.board = board,
                               !.nxt = Max(@, ack.cum),
                               !.dups = IF covered > 0 THEN 0
                                         ELSE IF Counts(ack) THEN Min(@ + 1, DupThresh) ELSE @]
    IN IF covered > 0 THEN NewAck(base, covered)
       ELSE IF covered = 0 /\ sndMax > sndUna THEN DupAck(base)
       ELSE Now

TakeOver(r, reported) ==
    /\ sndUna' = r.una /\ sndNxt' = r.nxt /\ sndMax' = Max(sndMax, r.nxt)
    /\ cwnd' = r.cwnd /\ ssthresh' = r.ssthresh
    /\ dupAcks' = r.dups /\ recover' = r.recover /\ inRecovery' = r.inRecovery
    /\ repaired' = {n \in r.repaired : n >= r.una} /\ rescued' = r.rescued /\ sacked' = r.board
    /\ again' = {n \in r.again : n >= r.una} /\ cuts' = r.cuts /\ cutAt' = r.cutAt
    /\ told' = {n \in told \cup reported : n >= r.una}

ReceiveAck ==
    /\ ackLink # <<>>
    /\ LET ack == [Head(ackLink) EXCEPT !.cum = Covered(Head(ackLink))]
           r   == Reaction(ack)
       IN TakeOver(r, ack.sack) /\ link' = link \o r.out
    /\ ackLink' = Tail(ackLink)
    /\ UNCHANGED <<receiverVars, budgets>>

----------------------------------------------------------------------------
(* Start and timeout *)

Start ==
    /\ sndMax = 0
    /\ LET list == Fresh(0, 0, cwnd, {})
       IN link' = list /\ sndNxt' = Len(list) /\ sndMax' = Len(list)
    /\ UNCHANGED <<sndUna, window, dupAcks, recover, inRecovery, repaired, rescued, sacked,
                   receiverVars, ackLink, budgets, ghosts>>

Quiet == link = <<>> /\ ackLink = <<>>

(* RFC 6582 section 3.2 step 4 records recover at a timeout, the paper does not (SNR-REC-003).         *)
RecoverAfterTimeout == IF Rfc THEN sndMax ELSE recover

TimerArmed == sndUna < sndMax

GoBack ==
    /\ ssthresh' = Half(sndMax - sndUna) /\ cwnd' = 1
    /\ sndNxt' = sndUna + 1
    /\ recover' = RecoverAfterTimeout
    /\ inRecovery' = FALSE /\ repaired' = {} /\ rescued' = FALSE /\ sacked' = {} /\ dupAcks' = 0
    /\ told' = {} /\ again' = {} /\ cuts' = 0 /\ cutAt' = sndMax
    /\ UNCHANGED <<sndUna, sndMax>>

Expire ==
    /\ TimerArmed
    /\ GoBack
    /\ link' = Append(link, sndUna)
    /\ UNCHANGED <<receiverVars, ackLink>>

Timeout == Quiet /\ Expire /\ UNCHANGED budgets

EarlyTimeout ==
    /\ ~Quiet /\ earlyTimeouts > 0
    /\ Expire
    /\ earlyTimeouts' = earlyTimeouts - 1
    /\ UNCHANGED <<dataLosses, ackLosses>>

----------------------------------------------------------------------------
(* Receiver and link *)

(* Appends what has become deliverable: the run that begins at the first segment not yet delivered.   *)
Deliver(done, segments, arrival) ==
    LET end == Lowest({n \in Len(done)..Segments : n \notin segments})
    IN done \o [i \in 1..(end - Len(done)) |-> Len(done) + i - 1]

ReceiveData ==
    /\ link # <<>>
    /\ held' = held \cup {Head(link)}
    /\ delivered' = Deliver(delivered, held', Head(link))
    /\ link' = Tail(link)
    /\ LET next == Len(delivered')
       IN ackLink' = Append(ackLink, [cum |-> next, sack |-> {n \in held' : n > next}])
    /\ UNCHANGED <<senderVars, budgets, ghosts>>

LoseData ==
    /\ link # <<>> /\ dataLosses > 0
    /\ link' = Tail(link) /\ dataLosses' = dataLosses - 1
    /\ UNCHANGED <<senderVars, receiverVars, ackLink, ackLosses, earlyTimeouts, ghosts>>

LoseAck ==
    /\ ackLink # <<>> /\ ackLosses > 0
    /\ ackLink' = Tail(ackLink) /\ ackLosses' = ackLosses - 1
    /\ UNCHANGED <<senderVars, link, receiverVars, dataLosses, earlyTimeouts, ghosts>>

Next == Start \/ ReceiveAck \/ Timeout \/ EarlyTimeout \/ ReceiveData \/ LoseData \/ LoseAck

Spec == Init /\ [][Next]_vars

(* Weak fairness of everything but losses and early timeouts, written out: TLC is very slow to find    *)
(* out whether ReceiveAck is enabled, although the answer is simple.                                  *)
CanStep == sndMax = 0 \/ ~Quiet \/ TimerArmed
FairSpec == Spec /\ ([]<>~CanStep \/ []<><<budgets' = budgets>>_vars)

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ 0 <= sndUna /\ sndUna <= sndMax /\ sndNxt \in sndUna..sndMax /\ sndMax \in 0..Segments
    /\ cwnd \in 1..(MaxWindow + 2 * DupThresh) /\ ssthresh \in 1..Max(MaxWindow, 2)
    /\ dupAcks \in 0..DupThresh
    /\ recover \in -1..Segments
    /\ inRecovery \in BOOLEAN /\ rescued \in BOOLEAN
    /\ \A n \in sacked \cup repaired : n \in sndUna..(sndMax - 1)

(* The receiver's window holds (SNR-REC-009). *)
WithinReceiverWindow == sndMax <= sndUna + MaxWindow

Sent == SubSeq(link', Len(link) + 1, Len(link'))
Resent == {n \in Contents(Sent) : n < sndMax}
AckStep == ackLink # <<>> /\ Len(ackLink') < Len(ackLink) /\ ackLosses' = ackLosses

(* SNR-SAK-001: while recovering, nothing is retransmitted that the receiver is known to hold.        *)
NeverResendsHeld == [][inRecovery' /\ Len(link') > Len(link) => Resent \cap told' = {}]_vars

(* SNR-SAK-002: nor after a timeout. *)
UsesSackAfterTimeout ==
    [][~inRecovery' /\ AckStep /\ Len(link') > Len(link) => Resent \cap told' = {}]_vars

(* SNR-SAK-009 *)
OnceRetransmittedPerEpisode ==
    [][inRecovery /\ inRecovery' /\ Len(link') > Len(link) =>
          Resent \cap again = {} /\ \A i, j \in DOMAIN Sent : Sent[i] = Sent[j] => i = j]_vars

(* SNR-REC-002 *)
OneReductionPerEpisode == cuts <= 1

(* SNR-REC-003: a fast retransmit never reduces the window for a segment of a window that has been    *)
(* reduced already.                                                                                   *)
NoFastRetransmitBelowRecover == [][~inRecovery /\ inRecovery' => sndUna' >= recover]_vars
NoReductionOfReducedWindow == [][~inRecovery /\ inRecovery' => sndUna' >= cutAt]_vars

(* SNR-REC-005 *)
ExitWindowIsCapped ==
    [][inRecovery /\ ~inRecovery' /\ AckStep =>
          cwnd' <= Min(ssthresh, (IF Rfc THEN Max(sndMax - sndUna', 1) ELSE sndMax - sndUna') + 1)]_vars

(* SNR-REC-001, SNR-REC-007: a partial acknowledgment keeps recovery going, and repairs the next       *)
(* segment as soon as it is shown lost.                                                               *)
PartialAckIsAnswered ==
    [][inRecovery /\ inRecovery' /\ sndUna' > sndUna /\ ~Rfc
          /\ Eligible(sndUna', {n \in sacked' : n > sndUna'}, 0, repaired) # {} =>
          Resent # {}]_vars
PartialAckStaysInRecovery ==
    [][inRecovery /\ AckStep /\ sndUna' < recover => inRecovery']_vars

(* SNR-SAK-003 *)
LowestFirst ==
    [][inRecovery /\ inRecovery' /\ Len(link') > Len(link) /\ ~rescued' =>
          \A n \in Resent : \A m \in sndUna'..(n - 1) : m \in told' \cup again']_vars

(* SNR-RTO-011 *)
Done == sndUna = Segments
NoStall == Done \/ ~Quiet \/ sndMax = 0 \/ TimerArmed
EventuallyDone == <>Done

AcknowledgedHasArrived == sndUna <= RcvNxt

Items == [i \in 1..Segments |-> i - 1]
Service == INSTANCE ReliableFifo
    WITH accepted <- sndMax, delivered <- delivered
DeliveredIsPrefix == Service!DeliveredIsPrefix
RefinesService == Service!Init /\ [][Service!Next]_(Service!fifoVars)
RefinesFairService == Service!Spec

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverRecovers == ~inRecovery
NeverExits == [][~(inRecovery /\ ~inRecovery' /\ AckStep)]_vars
NeverPartial == [][~(inRecovery /\ inRecovery' /\ sndUna' > sndUna)]_vars
NeverTwoRepairs == Cardinality(repaired) < 2
NeverSkips == [][~(AckStep /\ sndNxt < sndMax /\ sndNxt' > sndNxt + Len(Sent) /\ Sent # <<>> /\ sndNxt >= sndUna')]_vars
NeverGated == [][~(~inRecovery /\ AckStep /\ sndUna' = sndUna /\ dupAcks' >= DupThresh /\ ~inRecovery' /\ sndMax > sndUna)]_vars
NeverRescues == ~rescued
==============================================================================
