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

(* Only POLLs that accompany data, no timer.                                                          *)
PollOnlyWithData == vt_a # vt_s /\ ~polled

(* A POLL's N(S) is believed without a look at the window.                                            *)
RaisedUnchecked(n) == Max(vr_h, n)

(* A STAT without an upper bound: everything sent that is no gap counts as arrived.                   *)
EverythingElseArrived(nr, high, gaps) == (0..(vt_s - 1)) \ gaps

(* An old STAT is used like a new one.                                                                *)
AnyStat(stat) == TRUE

(* A USTAT retransmits an SD however often it has been sent.                                           *)
AnyTimes(n) == TRUE

(* The credit is taken for inclusive.                                                                 *)
OneTooMany == vt_s <= vt_ms

(* STAT acknowledges the next highest expected instead of the next in sequence.                       *)
HighestAcknowledged == vr_h

(* Packets live for ever.                                                                             *)
NoLifetimeBound == TRUE

(* New SDs do not wait for retransmissions.                                                           *)
NewDoesNotWait == TRUE

DeliverOnArrival(done, next, arrival) == Append(done, arrival)

EndlessRoom(channel, capacity, messages) == TRUE
=============================================================================
