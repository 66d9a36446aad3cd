----------------------------- MODULE MCStpData ------------------------------
EXTENDS StpData

(* Losses without end. *)
NeverSpent(budget) == budget

(* Timer_SILENCE does not probe for credit. *)
SilenceForSds == silence /\ vt_a # vt_s
=============================================================================
