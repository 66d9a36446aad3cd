----------------------------- MODULE Operators ------------------------------
(* Operators that several models need.                                                               *)
EXTENDS Integers

Max(a, b) == IF a >= b THEN a ELSE b
Min(a, b) == IF a <= b THEN a ELSE b

(* Of a set that is not empty.                                                                       *)
Highest(S) == CHOOSE x \in S : \A y \in S : y <= x
Lowest(S)  == CHOOSE x \in S : \A y \in S : x <= y
=============================================================================
