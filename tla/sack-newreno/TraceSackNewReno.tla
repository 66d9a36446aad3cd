-------------------------- MODULE TraceSackNewReno --------------------------
(* Is a recorded sender's behaviour one of SackNewReno's? Each trace is a sequence of records           *)
(*     [k |-> kind, n |-> number, s |-> set of segments, d |-> BOOLEAN]                               *)
(* as bentpipe_conformance.models.traces writes them:                                              *)
(*     ack      n: first segment not acknowledged, s: reported held, d: may count as a duplicate      *)
(*     send     n: the segment                                                                        *)
(*     timeout  the timer expired                                                                     *)
(*     state    n: snd_una, d: in recovery                                                            *)
(* How far the window reaches is not recorded, so new data may be sent at any time, and in rfc the pipe *)
(* decides how much an acknowledgment lets go; what is repaired, and in which order, must be as in the  *)
(* model.                                                                                             *)
EXTENDS SackNewReno, Rejection

CONSTANT TraceLogs

VARIABLES
    trace,  \* which trace
    at,     \* the next event in it
    due,    \* retransmissions that the model has decided on and the trace has yet to show
    spent   \* the latest acknowledgment has been used for a retransmission (rule 6)

traceVars == <<trace, at, due, spent>>
still == <<link, receiverVars, ackLink, budgets>>

NoWindow(una, w) == una
LeftOpen(r) == r

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind

TraceInit == Init /\ trace \in 1..TLCGet(0) /\ at = 1 /\ due = <<>> /\ spent = FALSE

Acknowledged ==
    /\ Is("ack") /\ due = <<>> /\ Event.n <= sndMax
    /\ LET ack == [cum |-> Event.n, sack |-> Event.s]
           r   == IF Event.n = sndUna /\ ~Event.d /\ ~Rfc
                  THEN [Now EXCEPT !.board = {n \in sacked \cup Event.s : n >= sndUna}]
                  ELSE Reaction(ack)
       IN TakeOver(r, ack.sack) /\ due' = r.out /\ spent' = (~Rfc /\ r.inRecovery /\ r.out # <<>>)

SentAsDue ==
    /\ Is("send") /\ due # <<>> /\ Event.n = Head(due)
    /\ due' = Tail(due)
    /\ sndNxt' = IF sndNxt = Event.n THEN sndNxt + 1 ELSE sndNxt
    /\ UNCHANGED <<sndUna, sndMax, window, dupAcks, recover, inRecovery, repaired, rescued, sacked,
                   ghosts, spent>>

(* NextSeg of RFC 6675 section 4. Rule 2, new data, is SentInTurn. Rules 3 and 4 follow when there is  *)
(* no new data or no window for it, which is not recorded.                                            *)
Lost == Eligible(sndUna, sacked, dupAcks, repaired)
Missing == {n \in sndUna..(sndMax - 1) : n \notin sacked}
Speculative == {n \in Missing \ repaired : \E s \in sacked : s > n}
Choice == IF Lost # {} THEN Lowest(Lost)
          ELSE IF Speculative # {} THEN Lowest(Speculative)
          ELSE IF ~rescued /\ Missing # {} THEN Highest(Missing)
          ELSE -1
SentInTurn ==
    /\ Is("send") /\ due = <<>> /\ ~spent
    /\ Event.n = SkipHeld(sndNxt, sacked)
    /\ inRecovery => Event.n >= sndMax /\ (~Rfc \/ Lost = {})
    /\ sndNxt' = Event.n + 1 /\ sndMax' = Max(sndMax, Event.n + 1)
    /\ UNCHANGED <<sndUna, window, dupAcks, recover, inRecovery, repaired, rescued, sacked, ghosts,
                   due, spent>>

SentByPipe ==
    /\ Is("send") /\ due = <<>> /\ Rfc /\ inRecovery
    /\ Event.n = Choice
    /\ repaired' = repaired \cup {Event.n} /\ again' = again \cup {Event.n}
    /\ rescued' = (rescued \/ (Lost = {} /\ Speculative = {}))
    /\ UNCHANGED <<sndUna, sndNxt, sndMax, window, dupAcks, recover, inRecovery, sacked, told, cuts,
                   cutAt, due, spent>>

TimedOut ==
    /\ Is("timeout") /\ due = <<>> /\ TimerArmed
    /\ GoBack
    /\ due' = <<sndUna>> /\ spent' = FALSE

Observed ==
    /\ Is("state") /\ due = <<>> /\ sndUna = Event.n /\ inRecovery = Event.d
    /\ UNCHANGED <<senderVars, ghosts, due, spent>>

TraceNext ==
    /\ Acknowledged \/ SentAsDue \/ SentInTurn \/ SentByPipe \/ TimedOut \/ Observed
    /\ at' = at + 1
    /\ UNCHANGED <<trace, still>>

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* What may be sent next: new data, or what NextSeg chooses. *)
InTurn == LET n == SkipHeld(sndNxt, sacked)
          IN IF spent \/ (inRecovery /\ (n < sndMax \/ (Rfc /\ Lost # {}))) THEN {} ELSE {n}
Sendable == InTurn \cup (IF Rfc /\ inRecovery THEN {Choice} \ {-1} ELSE {})
NextIs(why, rule) ==
    IF Sendable = {} THEN why \o "nothing must be sent before the next acknowledgment (" \o rule \o ")"
    ELSE Must(why \o "the next segment sent, counted from 0,", Sendable, rule)
AfterTimeout == at > 1 /\ Log[at - 1].k = "timeout"

(* The guard that blocks the next event; only asked where nothing follows. *)
Guard ==
    CASE at > Len(Log) -> "accepted"
      [] due # <<>> -> MustBe("the next segment sent, counted from 0,", Head(due),
                              IF AfterTimeout THEN "SNR-RTO-008" ELSE "SNR-FR-002, SNR-SAK-008")
      [] Is("ack") -> MustBeAtMost("the first segment not acknowledged", sndMax, "RFC 9293 section 3.10.7.4")
      [] Is("timeout") -> NextIs("nothing is outstanding, so that no timer runs: ", "RFC 6298 section 5")
      [] Is("state") /\ sndUna # Event.n -> MustBe("snd_una", sndUna, "RFC 9293 section 3.4")
      [] Is("state") -> MustBe("being in recovery", inRecovery,
                               IF inRecovery THEN "SNR-REC-001, SNR-SAK-015" ELSE "SNR-REC-012, SNR-FR-003")
      [] Is("send") /\ Event.n < sndUna -> NextIs("the segment is acknowledged: ", "SNR-SAK-004")
      [] Is("send") /\ Event.n \in sacked -> NextIs("the segment is reported held: ", "SNR-SAK-001, SNR-SAK-002")
      [] Is("send") /\ Rfc /\ inRecovery /\ Lost # {} /\ Event.n # Lowest(Lost) -> NextIs("", "SNR-SAK-003")
      [] Is("send") /\ Event.n \in repaired ->
            NextIs("the segment has been retransmitted in this episode: ", "SNR-SAK-009")
      [] Is("send") /\ Event.n < sndMax /\ inRecovery ->
            NextIs("the segment is not eligible, or not the lowest: ", "SNR-SAK-003, SNR-SAK-005")
      [] Is("send") /\ spent ->
            NextIs("this acknowledgment has been used for a retransmission: ", "SNR-SAK-008")
      [] Is("send") /\ Event.n < sndMax -> NextIs("nothing calls for this retransmission: ", "SNR-SAK-004")
      [] OTHER -> NextIs("", "RFC 9293 section 3.4")

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
