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
EXTENDS RwbpRecovery, TLC

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
Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("ack") -> "acknowledges more than was sent (RWBP-EC-015)"
      [] (Is("timeout") \/ Is("send")) /\ copies > 0 ->
            "a copy of segment " \o ToString(twice) \o " is due (RWBP-EC-007)"
      [] Is("timeout") /\ Due # {} -> "a retransmission waits, so that no timeout counts (RWBP-TM-005)"
      [] Is("timeout") -> "nothing is outstanding (RWBP-EC-005)"
      [] Is("state") /\ rightEdge # Event.edge -> "the right edge is " \o ToString(rightEdge) \o " (RWBP-EC-003)"
      [] Is("state") -> "taken for lost is " \o ToString(lost) \o " (RWBP-EC-002)"
      [] Is("again") /\ Event.n \in released -> "the segment has arrived (RWBP-EC-010)"
      [] Is("again") /\ Due = {} -> "nothing calls for this retransmission (RWBP-EC-012)"
      [] Due # {} -> "segment " \o ToString(Lowest(Due)) \o " is next (RWBP-EC-004)"
      [] OTHER -> "segment " \o ToString(sndNxt) \o " is next"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
