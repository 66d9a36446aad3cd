----------------------------- MODULE MCStpData ------------------------------
EXTENDS StpData

(* Losses without end. *)
NeverSpent(budget) == budget
=============================================================================
