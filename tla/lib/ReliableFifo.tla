---------------------------- MODULE ReliableFifo ----------------------------
(* The service that STP, RWBP and SACK-NewReno all give: what one side sends, the other side gets,  *)
(* unaltered, in order, once, and in the end completely.                                            *)
EXTENDS Naturals, Sequences

CONSTANT Items          \* the sequence the user wants to send

VARIABLES
    accepted,           \* how many items the sender has taken from its user
    delivered           \* the sequence handed to the receiver's user

fifoVars == <<accepted, delivered>>

Init == accepted = 0 /\ delivered = <<>>

Accept == /\ accepted < Len(Items)
          /\ accepted' \in (accepted + 1)..Len(Items)
          /\ UNCHANGED delivered

(* One step may deliver several items: a receiver that fills a hole hands over the whole run.       *)
Deliver == /\ Len(delivered) < accepted
           /\ \E n \in (Len(delivered) + 1)..accepted : delivered' = SubSeq(Items, 1, n)
           /\ UNCHANGED accepted

Next == Accept \/ Deliver

Spec == Init /\ [][Next]_fifoVars /\ WF_fifoVars(Accept) /\ WF_fifoVars(Deliver)

DeliveredIsPrefix == /\ Len(delivered) <= accepted
                     /\ delivered = SubSeq(Items, 1, Len(delivered))

EventuallyDelivered == <>(delivered = Items)
=============================================================================
