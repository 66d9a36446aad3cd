-------------------------- MODULE RwbpRecoveryRules --------------------------
(* What a step of either end must do, said once more in other words, both ways of every "if and only   *)
(* if". Steps are told apart by what they change; nothing of this is used by the steps themselves.    *)
EXTENDS RwbpRecovery

Ack == Head(ackLink)
Acknowledged == Len(ackLink') < Len(ackLink) /\ ackLosses' = ackLosses
Acknowledging == Len(ackLink') > Len(ackLink)
Arriving == Len(link') < Len(link) /\ dataLosses' = dataLosses
Sending == Len(link') = Len(link) + 1
OnTimer == Len(link') = Len(link) + 2
Told(ack) == {p \in All : p < ack.cum} \cup ack.sack

(* Nothing has been sent, and nothing is known to have arrived. *)
BeginsRight ==
    /\ sndNxt = 0 /\ sndUna = 0 /\ released = {} /\ rightEdge < 0 /\ lost = {} /\ Len(transmissions) = 0
    /\ held = {} /\ Len(delivered) = 0 /\ ~ackDue /\ Len(link) = 0 /\ Len(ackLink) = 0

(* RWBP-EC-002, as it reads: all transmissions of the packet come before the first of the right edge.  *)
Before(packet, edge) ==
    /\ \E i \in DOMAIN transmissions : transmissions[i] = packet
    /\ \E i \in DOMAIN transmissions :
          /\ transmissions[i] = edge
          /\ \A k \in DOMAIN transmissions : transmissions[k] = edge => k >= i
          /\ \A k \in DOMAIN transmissions : transmissions[k] = packet => k < i
InfersExactly ==
    [][Acknowledged =>
          lost' = (lost \ released') \cup
                  (IF rightEdge' = rightEdge THEN {}
                   ELSE {p \in All \ released' : Before(p, rightEdge')})]_vars

(* RWBP-EC-003, RWBP-EC-006 *)
LearnsExactly ==
    [][Acknowledged =>
          /\ released' = released \cup Told(Ack)
          /\ sndUna' = IF Ack.cum > sndUna THEN Ack.cum ELSE sndUna
          /\ rightEdge' \in released' \cup {-1} /\ \A p \in released' : p <= rightEdge']_vars

(* RWBP-EC-006: the list has what is under way as far as the sender knows. *)
ListIsComplete == Contents(transmissions) = {p \in All \ (released \cup lost) : p < sndNxt}
ListGrows ==
    [][Len(link') > Len(link) =>
          \E n \in {1, 2} : /\ Len(link') = Len(link) + n
                            /\ Len(transmissions') = Len(transmissions) + n
                            /\ SubSeq(transmissions', 1, Len(transmissions)) = transmissions]_vars

(* RWBP-EC-004: the lowest of those to be sent again, once; new packets, in order, when there is none. *)
SendsInOrder ==
    [][Sending =>
          LET n == link'[Len(link')]
          IN IF sndNxt' = sndNxt THEN n \in lost /\ (\A p \in lost : n <= p) /\ lost' = lost \ {n}
             ELSE n = sndNxt /\ sndNxt' = n + 1 /\ n - sndUna < Window /\ lost = {} /\ lost' = {}]_vars
(* RWBP-EC-007 *)
TimerRepairs == [][OnTimer => LET n == link'[Len(link')]
                              IN n \notin released /\ lost' = lost \ {n} /\ sndNxt' = sndNxt]_vars

(* RWBP-EC-005, with time left out: an expiry that is not premature comes when nothing is under way any  *)
(* more, nothing waits to be acknowledged, and nothing waits to be sent again.                         *)
ExpiresLast ==
    [][OnTimer /\ earlyTimeouts' = earlyTimeouts =>
          link = <<>> /\ ackLink = <<>> /\ lost = {} /\ ~ackDue]_vars

(* RWBP-EC-008, RWBP-EC-009: what arrives is kept, and handed over as soon as it is its turn.          *)
TakesWhatArrives ==
    [][Arriving => held' = held \cup {Head(link)} /\ ackDue' /\ newest' = Head(link)]_vars
DeliversAtOnce == RcvNxt \notin held /\ \A p \in 0..(RcvNxt - 1) : p \in held

(* RWBP-AK-001: what an acknowledgment tells: whole runs, that of the latest arrival, then the highest, *)
(* as many as there are blocks.                                                                       *)
Firsts(packets) == {p \in packets : p - 1 \notin packets}
RunsAreTold ==
    [][Acknowledging =>
          LET ack == ackLink'[Len(ackLink')]
              above == {p \in held : p > RcvNxt}
              ofNewest == {p \in above : \A q \in Min(p, newest)..Max(p, newest) : q \in above}
          IN /\ ack.cum = RcvNxt /\ ~ackDue' /\ ack.sack \subseteq above
             /\ \A p \in ack.sack : \A q \in {p - 1, p + 1} \cap above : q \in ack.sack
             /\ Cardinality(Firsts(ack.sack)) = Min(Blocks, Cardinality(Firsts(above)))
             /\ newest \in above => newest \in ack.sack
             /\ \A p \in above \ ack.sack : \A q \in ack.sack \ ofNewest : q > p]_vars
(* RWBP-AK-001: what is due is sent, and not only forgotten. *)
AcknowledgesWhatIsDue == [][ackDue /\ ~ackDue' => Acknowledging]_vars
NewestIsOfThisAck == [][Acknowledging => newest' \notin All]_vars

(* RWBP-EC-005: where nothing is done yet, something can happen; not only a timer that is armed.       *)
NeverStuck == Done \/ ENABLED Next

----------------------------------------------------------------------------
(* Reachability *)
NeverLeavesARunOut == Cardinality(Firsts({p \in held : p > RcvNxt})) <= Blocks
NeverInfersTwo == Cardinality(lost) < 2
NeverNewestIsLow ==
    [][Acknowledging => LET above == {p \in held : p > RcvNxt}
                        IN newest \in above /\ Cardinality(Firsts(above)) > Blocks
                           => \E f \in Firsts(above) : \A q \in Firsts(above) : q <= f /\ f <= newest]_vars
=============================================================================
