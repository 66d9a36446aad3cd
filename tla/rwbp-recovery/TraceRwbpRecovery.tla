------------------------- MODULE TraceRwbpRecovery --------------------------
(* Is a recorded sender's behaviour one of RwbpRecovery's? Each trace is a sequence of records          *)
(*     [k |-> kind, n |-> segment, held |-> segments, edge |-> segment, lost |-> segments]            *)
(* of which each kind has its own, as bentpipe_conformance.models.traces writes them:                  *)
(*     ack      n: first segment not acknowledged, held: reported by blocks                           *)
(*     send     n: a new segment                                                                      *)
(*     again    n: a segment sent before                                                              *)
(*     timeout  the timer expired                                                                     *)
(*     state    edge: the right edge, lost: what awaits retransmission                                *)
(* The copies of a timeout leave when the link has room for them, so that they are counted here; when  *)
(* the timer expires, and how far the window reaches, is not recorded.                                *)
EXTENDS RwbpRecovery, Rejection

CONSTANT TraceLogs

VARIABLES
    trace,  \* which trace
    at,     \* the next event in it
    twice,  \* the segment of which a timeout sends copies
    copies  \* how many of them are due

traceVars == <<trace, at, twice, copies>>
still == <<link, receiverVars, ackLink, budgets, spurious>>

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind

TraceInit == Init /\ trace \in 1..TLCGet(0) /\ at = 1 /\ twice = -1 /\ copies = 0

Due == lost \cup (IF copies > 0 THEN {twice} ELSE {})
AllSent == 0..(sndNxt - 1)
Unarrived == AllSent \ released

SentNew ==
    /\ Is("send") /\ Due = {} /\ Event.n = sndNxt
    /\ sndNxt' = sndNxt + 1 /\ transmissions' = Append(transmissions, Event.n)
    /\ UNCHANGED <<sndUna, released, rightEdge, lost, twice, copies>>

SentAgain ==
    /\ Is("again") /\ Due # {} /\ Event.n = Lowest(Due)
    /\ transmissions' = Append(transmissions, Event.n)
    /\ IF copies > 0 /\ Event.n = twice
       THEN copies' = copies - 1 /\ lost' = lost
       ELSE lost' = lost \ {Event.n} /\ copies' = copies
    /\ UNCHANGED <<sndNxt, sndUna, released, rightEdge, twice>>

Acknowledged ==
    /\ Is("ack") /\ Event.n <= sndNxt /\ Event.held \subseteq AllSent
    /\ LET reported == (0..(Event.n - 1)) \cup Event.held
           gone     == released \cup reported
           edge     == NewEdge(rightEdge, reported)
           waits    == IF copies > 0 THEN {twice} ELSE {}
           missing  == IF edge > rightEdge
                       THEN InferredLost(transmissions, edge, gone) \ waits ELSE {}
       IN /\ sndUna' = Max(sndUna, Event.n)
          /\ released' = gone
          /\ rightEdge' = edge
          /\ lost' = (lost \ gone) \cup missing
          /\ transmissions' = SelectSeq(transmissions, LAMBDA p : Keeps(p, gone, missing))
          /\ copies' = IF twice \in gone THEN 0 ELSE copies
    /\ UNCHANGED <<sndNxt, twice>>

TimedOut ==
    /\ Is("timeout") /\ Due = {} /\ Unarrived # {}
    /\ twice' = Lowest(Unarrived) /\ copies' = 2
    /\ UNCHANGED <<sndNxt, sndUna, released, rightEdge, lost, transmissions>>

Observed ==
    /\ Is("state") /\ rightEdge = Event.edge /\ lost = Event.lost
    /\ UNCHANGED <<senderVars, twice, copies>>

TraceNext ==
    /\ SentNew \/ SentAgain \/ Acknowledged \/ TimedOut \/ Observed
    /\ at' = at + 1
    /\ UNCHANGED <<trace, still>>

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* The guard that blocks the next event; only asked where nothing follows. *)
NextSegment == IF Due # {} THEN Lowest(Due) ELSE sndNxt
NextIs(why, rule) == MustBe(why \o "the next segment sent", NextSegment, rule)

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("ack") /\ Event.n > sndNxt ->
            MustBeAtMost("the first segment not acknowledged", sndNxt, "RWBP-EC-015")
      [] Is("ack") -> MustBeAtMost("segments that blocks report", sndNxt - 1, "RWBP-EC-013")
      [] (Is("timeout") \/ Is("send")) /\ copies > 0 ->
            NextIs("a copy of segment " \o ToString(twice) \o " is due: ", "RWBP-EC-007")
      [] Is("timeout") /\ Due # {} -> NextIs("a retransmission waits, so that no timeout counts: ", "RWBP-TM-005")
      [] Is("timeout") -> NextIs("nothing is outstanding, so that no timer runs: ", "RWBP-EC-005")
      [] Is("state") /\ rightEdge # Event.edge -> MustBe("the right edge", rightEdge, "RWBP-EC-003")
      [] Is("state") -> MustBe("what is taken for lost", lost, "RWBP-EC-002")
      [] Is("again") /\ Event.n \in released -> NextIs("the segment has arrived: ", "RWBP-EC-010")
      [] Is("again") /\ Due = {} -> NextIs("nothing calls for this retransmission: ", "RWBP-EC-012")
      [] Due # {} -> NextIs("", "RWBP-EC-004")
      [] OTHER -> NextIs("", "RWBP-EC-009")

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
