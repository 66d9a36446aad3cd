--------------------------- MODULE MCSplitConnection ---------------------------
EXTENDS SplitConnection

(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverBlocked == ~\E d \in Ends : sent[d] < Length(d) /\ sent[d] = limit[d] /\ Len(held[d]) = Buffer
NeverEndWaits == ~\E d \in Ends : finTaken[d] /\ ~AllConfirmed(d)
NeverHalfOpen == ~(finGot[1] /\ finAcked[1] /\ ~closed[2] /\ Len(delivered[2]) > 0 /\ sent[2] < Length(2))
NeverForgotten == ~\E d \in Ends : box = "new" /\ taken[d] > Len(delivered[d])
NeverBothDone == ~(Through(1) /\ Through(2) /\ Len(delivered[1]) = Up /\ Len(delivered[2]) = Down)
NeverOneDone == ~\E e \in Ends : Through(e) /\ end[Other(e)] = "reset"
=============================================================================
