------------------------------ MODULE Rejection ------------------------------
(* What is said of a recorded event that a model cannot follow: what had to be there instead, and by    *)
(* which rule. A text may have no quotation marks in it: it is printed as a string.                     *)
EXTENDS Sequences, FiniteSets, TLC

MustBe(name, value, rule) == name \o " must be " \o ToString(value) \o " (" \o rule \o ")"

(* Of the values with which a step is possible; one alone is named without braces.                      *)
Must(name, values, rule) ==
    MustBe(name, IF Cardinality(values) = 1 THEN CHOOSE v \in values : TRUE ELSE values, rule)

(* Texts, with "or" between them. *)
RECURSIVE OneOf(_)
OneOf(texts) == LET one == CHOOSE text \in texts : TRUE
                IN IF texts = {one} THEN one ELSE one \o " or " \o OneOf(texts \ {one})

MustBeAtMost(name, most, rule) == name \o " must be at most " \o ToString(most) \o " (" \o rule \o ")"

MustLie(name, least, most, rule) ==
    name \o " must be from " \o ToString(least) \o " to " \o ToString(most) \o " (" \o rule \o ")"
==============================================================================
