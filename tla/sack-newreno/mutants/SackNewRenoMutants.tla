------------------------- MODULE SackNewRenoMutants -------------------------
(* Each definition replaces one of SackNewReno's and must break the property named in manifest.json.  *)
EXTENDS MCSackNewReno

(* Rule 2 without its gate.                                                                           *)
NoGate(una) == TRUE

(* A timeout does not record recover.                                                                 *)
NothingRecorded == recover

(* A segment is repaired as often as an acknowledgment shows it missing.                              *)
EligibleAgain(una, board, dups, done) ==
    {n \in una..(sndMax - 1) : n \notin board /\ ShownLost(n, una, board, dups)}

(* What is held is retransmitted too.                                                                 *)
EligibleThoughHeld(una, board, dups, done) ==
    {n \in una..(sndMax - 1) : n \notin done /\ (\E s \in board : s >= n)}

(* The window is reduced for every loss.                                                              *)
ReductionPerLoss(r) == Reduced(r)

(* Recovery ends with all of ssthresh.                                                                *)
NoExitCap(thresh, flight) == thresh

(* A partial acknowledgment only moves snd_una.                                                       *)
PartialIgnored(r, covered) == r

(* A partial acknowledgment ends recovery, as in Reno.                                                *)
PartialEndsRecovery(r, covered) == Exit(r)

(* After a timeout everything is sent again, whatever the receiver reports.                           *)
EverythingAgain(n, board) == n

(* The highest hole first.                                                                            *)
HighestFirst(r) ==
    LET todo == Eligible(r.una, r.board, r.dups, r.repaired)
    IN IF todo # {} THEN Repairing(r, Highest(todo))
       ELSE SendingFresh([r EXCEPT !.cwnd = Min(@ + 1, MaxWindow + DupThresh)])

(* The receiver's window is forgotten while cwnd is inflated.                                         *)
CongestionWindowOnly(una, w) == Min(Segments, una + w)

NoTimer == FALSE

(* The highest segment reported held counts as acknowledged.                                          *)
HighestReported(ack) == IF ack.sack = {} THEN ack.cum ELSE Highest(ack.sack) + 1

DeliverOnArrival(done, segments, arrival) ==
    IF \E i \in DOMAIN done : done[i] = arrival THEN done ELSE Append(done, arrival)

(* Recovery goes on where a timeout had set snd_nxt back to.                                          *)
ResumeWhereTimeoutLeft == sndNxt

(* A scoreboard that also believes in what was never sent.                                            *)
InventsReports(reported) == IF reported = {} THEN {} ELSE reported \cup {Segments}
=============================================================================
