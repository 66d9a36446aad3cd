-------------------------- MODULE SackNewRenoRules ---------------------------
(* What a sender does to its window and what it sends, said once more in other words, from what can be *)
(* observed of a step: the acknowledgment taken, the segments sent, the variables before and after.   *)
(* Nothing of this is used by the steps themselves, and nothing of theirs is used here.               *)
EXTENDS SackNewReno

Ack == Head(ackLink)
OnTimer == sndMax > 0 /\ Len(link') > Len(link) /\ ackLink' = ackLink
OnDuplicate == AckStep /\ Ack.cum = sndUna /\ sndMax > sndUna
OnAdvance == AckStep /\ Ack.cum > sndUna
Entering == ~inRecovery /\ inRecovery'
Leaving == inRecovery /\ ~inRecovery' /\ AckStep
Recovering == inRecovery /\ inRecovery'
New == {n \in Contents(Sent) : n >= sndMax}

(* Half of so many segments, two at least, without division. *)
HalfOf(flight) == CHOOSE h \in 2..Max(flight, 2) : 2 * h <= Max(flight, 4) /\ 2 * h + 2 > flight

(* RFC 6675, IsLost: as many segments beyond are held as duplicates start a fast retransmit. *)
Beyond(n, board) == Cardinality({s \in board : s > n})
SurelyLost(n, una, board, dups) ==
    \/ n = una /\ dups = DupThresh
    \/ IF Rfc THEN Beyond(n, board) >= DupThresh ELSE \E s \in board : s - n >= DupThresh

(* RFC 6675, SetPipe: once for each segment sent that is neither held nor lost, and once for each that *)
(* has been sent again and is not held.                                                               *)
UnderWay(una, top, board, dups, done) ==
    Cardinality({n \in una..(top - 1) : n \notin board /\ ~SurelyLost(n, una, board, dups)})
    + Cardinality({n \in una..(top - 1) : n \notin board /\ n \in done})

(* What is lost, as far as is known after the step, and was not sent again before it. *)
Holes(done) ==
    {n \in sndUna'..(sndMax - 1) : n \notin sacked' \cup done /\ SurelyLost(n, sndUna', sacked', dupAcks')}

Reach(una, w) == Min(Segments, una + Min(w, MaxWindow))

(* RFC 5681 section 3.1, HK99's appendix. *)
SlowStart ==
    [][OnAdvance /\ ~inRecovery =>
          /\ cwnd' = IF cwnd >= ssthresh \/ cwnd = MaxWindow THEN cwnd ELSE cwnd + 1
          /\ ssthresh' = ssthresh]_vars

(* RFC 5681 section 3.1 (SNR-RTO-008): the loss window, half the flight, and from the beginning. *)
TimeoutCollapses ==
    [][OnTimer =>
          /\ cwnd' = 1 /\ ssthresh' = HalfOf(sndMax - sndUna)
          /\ Sent = <<sndUna>> /\ sndNxt' = sndUna + 1
          /\ ~inRecovery' /\ dupAcks' = 0 /\ sacked' = {} /\ repaired' = {} /\ ~rescued'
          /\ recover' = IF Rfc THEN sndMax ELSE recover]_vars

(* SNR-RTO-011, with time left out: an expiry that is not premature comes when nothing is under way any  *)
(* more.                                                                                              *)
ExpiresLast ==
    [][OnTimer /\ earlyTimeouts' = earlyTimeouts => link = <<>> /\ ackLink = <<>>]_vars

(* Rule 2, the window: half the flight, and in hk99 the segments that have left the network. *)
EntryHalves ==
    [][Entering =>
          /\ ssthresh' = HalfOf(sndMax - sndUna) /\ recover' = sndMax
          /\ cwnd' = ssthresh' + (IF Rfc THEN 0 ELSE DupThresh)
          /\ Sent # <<>> /\ Head(Sent) = sndUna']_vars

(* A duplicate is counted, in rfc one that reports something new, and an advance forgets them. *)
DuplicatesAreCounted ==
    [][/\ OnDuplicate => dupAcks' = IF dupAcks = DupThresh \/ (Rfc /\ Ack.sack \subseteq sacked)
                                    THEN dupAcks ELSE dupAcks + 1
       /\ OnAdvance => dupAcks' = 0]_vars

(* RFC 5681 section 2: where nothing is outstanding, no acknowledgment is a duplicate. *)
NeedlessAcksChangeNothing ==
    [][AckStep /\ sndMax = sndUna /\ Ack.cum = sndUna => UNCHANGED senderVars /\ Sent = <<>>]_vars

(* Rule 2 and RFC 6675 section 5: recovery begins when a loss is shown and the gate is open, and only  *)
(* then.                                                                                              *)
EntersWhenDue ==
    [][OnDuplicate /\ ~inRecovery =>
          (inRecovery' <=> /\ sndUna >= recover
                           /\ dupAcks' = DupThresh \/ (Rfc /\ Beyond(sndUna, sacked') >= DupThresh))]_vars

(* Rule 3: recovery ends when all is covered that had been sent before it, and only then; with what is *)
(* under way and one segment more, ssthresh at most.                                                  *)
ExitsWhenCovered == [][inRecovery /\ AckStep => (~inRecovery' <=> Ack.cum >= recover)]_vars
ExitWindowIsExact ==
    [][Leaving =>
          LET flight == sndMax - sndUna'
              most == (IF Rfc /\ flight = 0 THEN 1 ELSE flight) + 1
          IN /\ cwnd' = IF ssthresh < most THEN ssthresh ELSE most
             /\ ssthresh' = ssthresh /\ repaired' = {}]_vars

(* Rules 4 and 6: a partial acknowledgment takes away what it covers and adds one, a duplicate adds    *)
(* one, a repair nothing. RFC 6675 leaves the window alone.                                           *)
Deflated(covered) == IF covered > cwnd THEN 1 ELSE Max(cwnd + 1 - covered, 1)
InflatedAndDeflated ==
    [][Recovering /\ AckStep /\ (OnDuplicate \/ OnAdvance) =>
          LET base == IF OnAdvance THEN Deflated(Ack.cum - sndUna) ELSE cwnd
          IN /\ ssthresh' = ssthresh
             /\ cwnd' = IF Rfc THEN cwnd
                        ELSE IF Resent # {} THEN base
                        ELSE IF base >= MaxWindow + DupThresh THEN MaxWindow + DupThresh ELSE base + 1]_vars

(* RFC 6675 section 5: beside the fast retransmit nothing is sent that makes more than cwnd be under   *)
(* way, and all is sent that does not.                                                                *)
PipeWithinWindow ==
    [][Rfc /\ inRecovery' /\ AckStep /\ Len(Sent) > (IF inRecovery THEN 0 ELSE 1) =>
          UnderWay(sndUna', sndMax', sacked', dupAcks', repaired') <= cwnd']_vars
PipeIsFilled ==
    [][Rfc /\ inRecovery' /\ (OnDuplicate \/ OnAdvance) =>
          \/ UnderWay(sndUna', sndMax', sacked', dupAcks', repaired') >= cwnd'
          \/ /\ Holes(repaired') = {} /\ sndMax' = Reach(sndUna', MaxWindow)
             /\ rescued' \/ sndMax - 1 \in sacked' \cup repaired']_vars

(* SNR-SAK-008: a hole is repaired as soon as it is shown, the lowest first, one for each             *)
(* acknowledgment.                                                                                    *)
RepairsAtOnce ==
    [][~Rfc /\ Recovering /\ (OnDuplicate \/ OnAdvance) /\ Holes(repaired) # {} =>
          Sent = <<Lowest(Holes(repaired))>>]_vars

(* What the window permits is sent, and nothing beyond; what is held is left out. *)
SendsWhatItMay ==
    [][(OnDuplicate \/ OnAdvance) /\ ~(Rfc /\ inRecovery') =>
          LET edge == Reach(sndUna', cwnd')
              rest == {n \in sndNxt'..(edge - 1) : n \notin sacked'}
          IN /\ \A n \in Contents(Sent) : n < edge \/ n \in Holes(repaired) \/ (Entering /\ n = sndUna)
             /\ OnAdvance /\ ~inRecovery' => rest = {}]_vars

(* A rescue retransmission is one, and of the last segment sent. *)
RescuesTheTail ==
    [][rescued' /\ ~rescued => Rfc /\ sndMax - 1 \in Resent]_vars

StartsWithInitialWindow ==
    [][sndMax = 0 /\ sndMax' > 0 =>
          /\ Sent = [i \in 1..Min(Segments, InitialWindow) |-> i - 1]
          /\ sndNxt' = Len(Sent) /\ sndMax' = Len(Sent)
          /\ sndUna' = 0 /\ dupAcks' = 0 /\ ~inRecovery' /\ ssthresh' = MaxWindow
          /\ recover' = IF Rfc THEN -1 ELSE 0]_vars

(* SNR-SAK-004, SNR-SAK-005: in recovery nothing is sent again but what is shown lost, and the rescue.  *)
RepairsOnlyHoles ==
    [][Recovering /\ (OnDuplicate \/ OnAdvance) =>
          \A n \in Resent : n \in Holes(repaired) \/ (Rfc /\ rescued' /\ ~rescued /\ n = sndMax - 1)]_vars

(* SNR-RCV-006, SNR-RCV-007: every arrival is acknowledged at once. All below the number has arrived,   *)
(* the number itself has not, and what else has is reported, the latest arrival with it.              *)
Arriving == Len(ackLink') > Len(ackLink) \/ (Len(link') < Len(link) /\ dataLosses' = dataLosses)
ReportsWhatHasArrived ==
    [][Arriving =>
          LET ack == ackLink'[Len(ackLink')]
          IN /\ Len(ackLink') = Len(ackLink) + 1 /\ link' = Tail(link)
             /\ held' = held \cup {Head(link)} /\ ack.cum \notin held'
             /\ {n \in held' : n < ack.cum} = 0..(ack.cum - 1)
             /\ ack.sack = {n \in held' : n > ack.cum}]_vars

(* snd_nxt is never behind what has been acknowledged, and nothing of that is sent again. *)
NeverResendsAcknowledged ==
    [][AckStep => sndNxt' >= sndUna' /\ \A n \in Contents(Sent) : n >= sndUna']_vars

----------------------------------------------------------------------------
(* Reachability *)
NeverSkipsTwo ==
    [][~(OnAdvance /\ ~inRecovery' /\ \E n \in sndNxt..(Reach(sndUna', cwnd') - 2) : {n, n + 1} \subseteq sacked')]_vars
==============================================================================
