------------------------- MODULE CaptureSackSender --------------------------
(* Could any SACK sender that follows the RFCs have sent what a capture shows? SackNewReno prescribes   *)
(* every repair; this module is the envelope around it, wide enough for RFC 6675, RACK-TLP (RFC 8985), *)
(* PRR, limited transmit, F-RTO and undo. What is not on the wire is existential:                       *)
(*     cwnd, ssthresh  new data may leave at any time within the offered window                         *)
(*     recover         an episode may begin and end wherever the guards below leave room for one        *)
(*     what it knew    an acknowledgment that was captured may not have been processed yet              *)
(*     the timer       it may have expired where the clock of the capture permits it (Event.t)          *)
(* A choice that permits all that another one permits is taken at once, so that few states remain.     *)
(*                                                                                                    *)
(* Data is numbered by pieces: the octets between neighbouring edges of segments, acknowledgments and  *)
(* SACK blocks. No piece is longer than a full-sized segment.                                          *)
(*                                                                                                    *)
(* A window is a record [max, weak, fresh, acks, log]: max pieces were outstanding at its start, all   *)
(* sent once (or, if weak, with an unknown past); fresh: nothing has been retransmitted on the          *)
(* connection; acks: where in the log the acknowledgments are. An event of the log is                   *)
(*     [k |-> "ack", n, b, d, o]  n: first piece not acknowledged; b: SACK blocks <<first, end>>;        *)
(*                                d: carries no data; o: the sender may have to drop it                 *)
(*     [k |-> "send", n, m, w, c, t, old, few, r]  pieces n..m-1; w: end of the offered window;          *)
(*                                c: acknowledgments that the sender surely has processed;              *)
(*                                t: 2 a timer may have sent it, 1 if nothing else explains it, 0;      *)
(*                                old: sent longer ago than a round trip and the reordering time;       *)
(*                                few: fewer than four segments outstanding;                            *)
(*                                r: reordering has been seen on the path                               *)
EXTENDS Integers, Sequences, FiniteSets, Operators, TLC

CONSTANTS Windows, DupThresh

VARIABLES
    window,     \* which window of the capture
    at,         \* the next event
    arrived,    \* acknowledgments captured so far
    taken,      \* how many of them the sender has processed
    una, max,   \* SND.UNA as the sender knows it; end of what has been sent
    sent,       \* of each piece, when it was last sent: a number that grows
    latest,     \* the latest transmission known to have arrived
    known,      \* pieces ever reported held
    sure,       \* pieces the sender must know to be held
    back,       \* pieces that may be repeated because the timer expired
    until,      \* max at that expiry
    dups,       \* duplicate acknowledgments in a row
    repeated,   \* pieces retransmitted since an expiry
    rescuedAt,  \* una at the last rescue retransmission
    fresh       \* nothing has been retransmitted

board == <<una, latest, known, sure, dups>>
history == <<sent, max, until, repeated, rescuedAt, fresh>>
vars == <<window, at, arrived, taken, board, history, back>>

(* TLC would evaluate all windows anew at every step; its registers keep them evaluated.              *)
Count == Len(Windows)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, Windows[i])

Window == TLCGet(window)
Log == Window.log
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind

Stride == 100000    \* more than a window has pieces
Stamp(p) == at * Stride + p

Init ==
    /\ window \in 1..TLCGet(0) /\ at = 1 /\ arrived = 0 /\ taken = 0
    /\ una = 0 /\ max = Window.max
    /\ sent = [p \in 0..(Window.pieces - 1) |-> p]
    /\ latest = IF Window.weak THEN Stride - 1 ELSE -1
    /\ known = {} /\ sure = {}
    /\ back = IF Window.weak THEN 0..(max - 1) ELSE {}
    /\ until = IF Window.weak THEN max ELSE 0
    /\ dups = IF Window.weak THEN DupThresh ELSE 0
    /\ repeated = {} /\ rescuedAt = -1 /\ fresh = Window.fresh

Above(S, n) == {p \in S : p >= n}
Greatest(S, least) == Highest(S \cup {least})

----------------------------------------------------------------------------
(* What the sender learns *)

Captured ==
    /\ Is("ack")
    /\ at' = at + 1 /\ arrived' = arrived + 1
    /\ UNCHANGED <<window, taken, board, history, back>>

(* Only a retransmission depends on what the sender knows, so acknowledgments wait until there is one. *)
AtRetransmission == Is("send") /\ Event.m <= max

TakeIn ==
    /\ AtRetransmission /\ taken < arrived
    /\ taken' = taken + 1
    /\ LET ack   == Log[Window.acks[taken + 1]]
           to    == IF ack.n > una THEN ack.n ELSE una
           held  == Above(UNION {ack.b[i][1]..(ack.b[i][2] - 1) : i \in DOMAIN ack.b}, to)
           now   == Above(known, to) \cup held
           news  == ((una..(to - 1)) \cup held) \ known
           stamp == Greatest({sent[p] : p \in news}, latest)
           \* A receiver that holds what it does not acknowledge has reneged (RFC 2018 section 8).
           reneged == to \in now
       IN \/ /\ una' = to
             /\ latest' = IF stamp > latest THEN stamp ELSE latest
             /\ known' = now
             /\ sure' = IF reneged THEN {} ELSE Above(sure, to) \cup held
             /\ back' = IF reneged THEN to..(max - 1) ELSE Above(back, to)
             /\ dups' = IF to > una THEN 0
                        ELSE IF ack.d /\ dups < DupThresh THEN dups + 1 ELSE dups
          \/ ack.o /\ UNCHANGED <<board, back>>
    /\ UNCHANGED <<window, at, arrived, history>>

----------------------------------------------------------------------------
(* What it sends *)

Pieces == Event.n..(Event.m - 1)
Live == {p \in Pieces : p >= una}
Sending == sent' = [p \in DOMAIN sent |-> IF p \in Pieces THEN Stamp(p) ELSE sent[p]]

(* SNR-WIN-001, SNR-REC-009 *)
NewData ==
    /\ Is("send") /\ Event.m > max /\ Event.m <= Event.w
    /\ Sending /\ max' = Event.m
    /\ at' = at + 1
    /\ UNCHANGED <<window, arrived, taken, board, back, until, repeated, rescuedAt, fresh>>

(* SNR-SAK-004: something sent later has arrived (RFC 8985 section 6.2; rules 1 and 3 of NextSeg in     *)
(* RFC 6675 imply it).                                                                                *)
ShownLost(p) == latest > sent[p]

(* The retransmission timer repeats what is lowest, a probe the end (RFC 8985 section 7). Where a      *)
(* report that was captured explains the retransmission as well, it is not taken for the timer's.      *)
ByTimer == una \in Live /\ (Event.t = 2 \/ (Event.t = 1 /\ taken = arrived /\ ~ShownLost(una)))
ByProbe == Event.m = max /\ Event.t > 0

(* SNR-SAK-006: how the first episode may begin. Later ones may have begun unseen.                     *)
ThresholdReached(p) ==
    \/ ~fresh \/ Event.old \/ Event.few \/ dups >= DupThresh
    \/ \E s \in known : s >= p + DupThresh

(* SNR-SAK-003 *)
LowestFirst ==
    \/ Event.r \/ back # {} \/ Event.m = max
    \/ \A q \in una..(Event.n - 1) : q \in known \/ q \in repeated

(* Rule 4 of NextSeg: once for each value of RecoveryPoint, which is at least una.                     *)
MayRescue == ~fresh /\ una > rescuedAt /\ \A q \in Event.m..(max - 1) : q \in known

(* Three duplicates ask for what is lowest: once, and once more after an expiry (HK99 has no gate).    *)
AskedFor(p) == p = una /\ dups >= DupThresh /\ (p \notin repeated \/ una < until)

Repairs(p) == p \in back \/ (ShownLost(p) /\ ThresholdReached(p) /\ LowestFirst) \/ AskedFor(p)

Missing == Live \ sure     \* SNR-SAK-001, SNR-SAK-002: something in it is not held
Knows == taken >= Event.c

Expired ==
    /\ sure' = {} /\ back' = (una..(max - 1)) \ Live /\ until' = max
    /\ repeated' = Live /\ rescuedAt' = -1 /\ fresh' = FALSE

Repaired ==
    /\ \/ /\ \E p \in Missing : Repairs(p)
          /\ rescuedAt' = rescuedAt
       \/ /\ Missing # {} /\ ~\E p \in Missing : Repairs(p)
          /\ MayRescue \/ ByProbe
          /\ rescuedAt' = IF ByProbe THEN rescuedAt ELSE una
       \/ /\ Missing = {} /\ Live # {} /\ ByProbe
          /\ rescuedAt' = rescuedAt
    /\ back' = IF una \in Live /\ AskedFor(una) /\ una < until
               THEN (una..(max - 1)) \ Live ELSE back \ Live
    /\ repeated' = Above(repeated, una) \cup Live
    /\ fresh' = FALSE
    /\ UNCHANGED <<sure, until>>

Retransmission ==
    /\ AtRetransmission /\ Knows
    /\ IF ByTimer THEN Expired ELSE Repaired
    /\ Sending
    /\ at' = at + 1
    /\ UNCHANGED <<window, arrived, taken, max, una, latest, known, dups>>

Next == Captured \/ TakeIn \/ NewData \/ Retransmission

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* The guard that blocks the next event; only asked where nothing follows. *)
Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("ack") -> "the acknowledgment has to be noted first"
      [] Event.m > max -> "it ends beyond the offered window (SNR-WIN-001)"
      [] ~Knows -> "acknowledgments have to be processed first"
      [] Live = {} -> "it is acknowledged already"
      [] Missing = {} -> "it is reported held (SNR-SAK-001, SNR-SAK-002)"
      [] \A p \in Missing : ~ShownLost(p) /\ p \in repeated ->
            "it has been retransmitted before, nothing sent since has arrived, and no timer can have expired (SNR-SAK-009)"
      [] \A p \in Missing : ~ShownLost(p) ->
            "nothing sent after it has arrived, and no timer can have expired (SNR-SAK-004)"
      [] \A p \in Missing : ~ThresholdReached(p) ->
            "too little has arrived of what was sent after it to begin a recovery (SNR-SAK-006)"
      [] OTHER -> "a lower segment is missing and has not been retransmitted (SNR-SAK-003)"

Reached == PrintT(<<"reached", window, at, taken, Guard>>)
=============================================================================
