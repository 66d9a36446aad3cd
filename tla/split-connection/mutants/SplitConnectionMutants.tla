----------------------- MODULE SplitConnectionMutants -----------------------
(* Each definition replaces one of SplitConnection's and must break the property named in manifest.json. *)
EXTENDS MCSplitConnection

(* acknowledge-fin-early: the FIN is acknowledged when it arrives.                                    *)
AcknowledgesAtOnce(d) == TRUE

(* crash-forgets: after a crash the box goes on with what arrives, without what it held.               *)
GoesOn == "up"

(* drop-on-overflow: the window is that of an empty buffer, and what has no room is dropped.           *)
AlwaysEmpty(d) == taken[d] + Buffer
DropsWhenFull(d) == IF Len(held[d]) < Buffer THEN Append(held[d], taken[d] + 1) ELSE held[d]

(* half-close-closes-both: a FIN from either end ends both streams.                                   *)
EndsBoth(d) == (finTaken[d] \/ finTaken[Other(d)]) /\ unheard[d] = Len(held[d])

(* A FIN that overtakes what the box holds.                                                           *)
EndsAtOnce(d) == finTaken[d]

(* The other end is told of a reset by a FIN.                                                         *)
EndsCleanly(e) == [finGot EXCEPT ![Other(e)] = TRUE]

(* The other end is not told.                                                                         *)
TellsNobody(e) == end[e]

(* What the receiver has and has not acknowledged counts as free.                                     *)
CountsUnheardAsFree(d) == taken[d] + Buffer - Len(held[d]) + unheard[d]

(* The window is never opened again.                                                                  *)
NeverOpens(d) == limit[d]

(* The window is taken back while the box holds anything.                                             *)
TakesBack(d) == IF held[d] = <<>> THEN taken[d] + Buffer ELSE taken[d] - 1
PermitsLess(d) == limit[d] # TakesBack(d)

(* No FIN is passed on.                                                                               *)
EndsNever(d) == FALSE

(* An end that hears nothing waits for ever.                                                          *)
NeverGivesUp(e) == FALSE
=============================================================================
