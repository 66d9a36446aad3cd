------------------------ MODULE RwbpRecoveryMutants ------------------------
(* Each definition replaces one of RwbpRecovery's and must break the property named in manifest.json. *)
EXTENDS MCRwbpRecovery

(* ZB03 read literally: stale entries stay in the list, and any earlier entry convicts.               *)
AnyEarlierEntry(list, edge, gone) ==
    {p \in Contents(list) : p \notin gone /\ FirstAt(list, p) < FirstAt(list, edge)}
StaleEntriesKept(packet, gone, missing) == packet \notin gone

(* The last transmission of the right-edge packet instead of its first.                               *)
LastMatch(list, edge, gone) ==
    {p \in Contents(list) : p \notin gone /\ LastAt(list, p) < LastAt(list, edge)}

(* The timer is taken for a rarity that can be left out.                                              *)
NoTimer == FALSE

(* The timer guards the tail of the transfer only: a window full of holes stalls.                     *)
TailTimer == Outstanding # {} /\ sndNxt = Packets

(* The edge of the latest acknowledgment instead of the highest edge ever seen.                       *)
LatestEdge(old, reported) == IF reported = {} THEN old ELSE Highest(reported)

(* A receiver that drops what it had reported.                                                        *)
Reneged(packets) == {p \in packets : p < RcvNxt}

(* One packet more than the receiver has room for.                                                    *)
WindowOffByOne == sndNxt <= sndUna + Window

(* New packets do not wait for retransmissions.                                                       *)
NewDoesNotWait == TRUE

(* The timer sends one copy only.                                                                     *)
OneCopy(packet) == <<packet>>

(* The timer sends the latest outstanding packet.                                                     *)
LatestOutstanding == Highest(Outstanding)

(* Packets are handed over as they arrive.                                                            *)
DeliverOnArrival(done, packets, arrival) ==
    IF \E i \in DOMAIN done : done[i] = arrival THEN done ELSE Append(done, arrival)

(* No mutant: RWBP-AK-003, an acknowledgment of its own for every arrival that does not extend the     *)
(* highest run. (A duplicate of the highest packet is taken for one that does.)                        *)
Prompt == ackDue => newest = Highest(held) /\ (newest = 0 \/ newest - 1 \in held)

(* The queue in front of the link is taken for endless.                                               *)
EndlessRoom(channel, capacity, messages) == TRUE
============================================================================
