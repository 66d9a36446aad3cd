--------------------------- MODULE StpDataMutants ---------------------------
(* Each definition replaces one of StpData's and must break the property named in manifest.json.      *)
EXTENDS MCStpData

(* "Beyond the next expected" read as beyond VR(R).                                                   *)
BeyondInSequence(n) == n > vr_r
FromInSequence == vr_r

(* A POLL that leaves VR(H) alone: the next SD reports the same gap again.                            *)
PollRaisesNothing(high) == vr_h

(* The comparison of poll numbers is not strict.                                                      *)
NotAfter(transmission, poll) == transmission >= poll

(* Poll numbers are not compared at all.                                                              *)
AnyTransmission(transmission, poll) == TRUE

(* A timer that is forgotten.                                                                         *)
NeverRuns == FALSE

(* Timer_SILENCE is for SDs alone: it does not start where all is acknowledged, and stops there.      *)
StartsForSds == vt_a # vt_s
OverForSds(nr, permitted) == nr = vt_s
ProbesNothing(data) == FALSE

(* A POLL that asks about what is acknowledged already.                                               *)
AsksBelow == vt_a

(* The expiry of Timer_SILENCE sends again what is unacknowledged.                                    *)
RequeuesAll == DOMAIN buffer

(* A POLL's N(S) is believed without a look at the window.                                            *)
RaisedUnchecked(n) == Max(vr_h, n)

(* A POLL's CSN is not looked at.                                                                     *)
OfAnybody(n) == TRUE

(* A STAT without an upper bound: everything sent that is no gap counts as arrived.                   *)
EverythingElseArrived(nr, low, high, gaps) == (0..(vt_s - 1)) \ gaps

(* A part of a STAT is taken for the whole: what lies below its first element counts as arrived.      *)
PartIsWhole(nr, low, high, gaps) == (0..(high - 1)) \ gaps

(* A list however long in one STAT.                                                                   *)
NeverCut(age, nr, mr, high) == <<STAT(age, nr, mr, vr_r, high, Missing(high))>>

(* A STAT names the first missing SD only.                                                            *)
FirstMissing(high) == (vr_r..(high - 1)) \cap {vr_r}

(* The receiver drops what it has reported as held.                                                   *)
NothingKept == {}

(* An old STAT is used like a new one.                                                                *)
AnyStat(stat) == TRUE

(* A report is believed whatever it says.                                                             *)
AnyReport(nr, high) == TRUE

(* A USTAT retransmits an SD however often it has been sent.                                          *)
AnyTimes(n) == TRUE

(* The credit is taken for inclusive.                                                                 *)
OneTooMany == vt_s <= vt_ms

(* The receiver takes whatever comes.                                                                 *)
NothingIsBeyond(n) == FALSE

(* It promises one SD more than it has room for; or only what its user has asked for.                 *)
OneMore(read) == Room(read) + 1
OneAhead(read) == read + 1

(* Credit is announced whenever there is some.                                                        *)
AnnouncesAnything == Room(taken) > vr_mr

(* A POLL raises VR(H) past the FIN.                                                                  *)
NothingIsPast(n) == FALSE

(* STP-DT-028, one half of it forgotten. *)
OnlyAboveFin(n, fin) == FinReceived /\ n > Fin
OnlyFinBelow(n, fin) == fin /\ \E m \in held : m > n

(* STAT acknowledges the next highest expected instead of the next in sequence.                       *)
HighestAcknowledged(next, high) == high

(* Packets live for ever, or one number too long.                                                     *)
NoLifetimeBound == TRUE
LaxLifetimeBound ==
    \A m \in Contents(forward) \cup Contents(return) : m.n >= vt_s + 1 - (Modulus - Window)

(* New SDs do not wait for retransmissions.                                                           *)
NewDoesNotWait == TRUE

DeliverOnArrival(done, next, arrival) == Append(done, arrival)

EndlessRoom(channel, capacity, messages) == TRUE
=============================================================================
