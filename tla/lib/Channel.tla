------------------------------- MODULE Channel -------------------------------
(* A one-way channel as a sequence of messages, oldest first. Where an action takes a message out    *)
(* of the middle, the channel has reordered it. Losses and duplicates come out of budgets that the   *)
(* models keep: after the last loss, weak fairness suffices for recovery.                            *)
EXTENDS Naturals, Sequences

Without(channel, i) == SubSeq(channel, 1, i - 1) \o SubSeq(channel, i + 1, Len(channel))

(* The positions from which the next message may come out.                                           *)
Exits(channel, reorders) ==
    IF channel = <<>> THEN {} ELSE IF reorders THEN DOMAIN channel ELSE {1}

(* A second copy of a message behind the first.                                                      *)
Twice(channel, i) == SubSeq(channel, 1, i) \o SubSeq(channel, i, Len(channel))

HasRoom(channel, capacity, messages) == Len(channel) + messages <= capacity

Contents(channel) == {channel[i] : i \in DOMAIN channel}
==============================================================================
