---------------------------- MODULE StpDataRules -----------------------------
(* What a step of either end must do, said once more in other words, for channels that keep the order  *)
(* and duplicate nothing, and lists that need not be cut. Steps are told apart by what they change;   *)
(* packets are looked at with their true numbers, so that decoding is judged too. Nothing of this is   *)
(* used by the steps themselves.                                                                      *)
EXTENDS StpData

At == Head(forward)         \* what arrives, if this is an arrival at the receiver
Back == Head(return)        \* or at the sender
ToReceiver == Len(forward') < Len(forward) /\ forwardLosses' = forwardLosses
ToSender == Len(return') < Len(return) /\ returnLosses' = returnLosses
Leaving == forward'[Len(forward')]
Sending(type) == Len(forward') > Len(forward) /\ Leaving.type = type
Reply == SubSeq(return', Len(return) + 1, Len(return'))

(* STP-DT-011, STP-DT-019, STP-DT-021: the first SD is the one expected, as many are permitted as there *)
(* is room for, and nothing has been told yet.                                                        *)
BeginsRight ==
    /\ written \in {0, Packets} /\ (UserWaits <=> written = 0)
    /\ vt_s = 0 /\ vt_a = 0 /\ vt_ms = Window /\ vt_pa > MaxPolls
    /\ DOMAIN buffer = {} /\ queue = {} /\ repeated = {} /\ ~silence /\ ~unanswered
    /\ vr_r = 0 /\ vr_h = 0 /\ vr_mr = Window /\ held = {} /\ ~closed
    /\ Len(delivered) = 0 /\ taken = 0 /\ Len(forward) = 0 /\ Len(return) = 0

(* STP-DT-019, STP-DT-020: an SD is taken if it is within what was permitted, and not there yet.       *)
IsNew(n) == n >= vr_r /\ n < vr_mr
TakesExactly ==
    [][ToReceiver /\ At.type = "SD" =>
          IF ~IsNew(At.n) THEN UNCHANGED <<receiverVars, return>>
          ELSE LET all == 0..(vr_r - 1) \cup held \cup {At.n}
               IN /\ vr_r' \notin all /\ \A n \in 0..(vr_r' - 1) : n \in all
                  /\ held' = {n \in all : n > vr_r'} /\ delivered' = [k \in 1..vr_r' |-> k - 1]
                  /\ vr_h' = IF At.n >= vr_h THEN At.n + 1 ELSE vr_h
                  /\ taken' = IF UserReads THEN taken ELSE vr_r']_vars

(* STP-DT-001: a gap is reported at once, iff the SD is beyond the next highest expected, with all     *)
(* that is between.                                                                                   *)
GapsAreReported ==
    [][ToReceiver /\ At.type = "SD" /\ IsNew(At.n) =>
          Reply = IF At.n <= vr_h THEN <<>>
                  ELSE <<[type |-> "USTAT", n |-> vr_r', mr |-> taken' + Window, h |-> At.n,
                          gaps |-> {n \in 0..(At.n - 1) : n >= vr_h}]>>]_vars

(* STP-DT-002, STP-DT-008, STP-DT-018, STP-PL-006: a POLL is answered by what has arrived of all that  *)
(* it asks about; what it asks about has been sent.                                                   *)
PollsAreAnswered ==
    [][ToReceiver /\ At.type = "POLL" =>
          /\ vr_h' = (IF At.n > vr_h THEN At.n ELSE vr_h)
          /\ Reply = <<[type |-> "STAT", n |-> vr_r, mr |-> taken + Window, age |-> At.age, lo |-> vr_r,
                        h |-> vr_h', gaps |-> {n \in 0..(vr_h' - 1) : n >= vr_r /\ n \notin held}]>>
          /\ UNCHANGED <<vr_r, held, delivered, taken>>]_vars

(* STP-PF-012: a list that is longer than one STAT may hold is told in parts. Each begins where the one  *)
(* before ends, and all but the last are full; together they tell all.                                *)
AnsweredInParts ==
    [][ToReceiver /\ At.type = "POLL" =>
          LET missing == {n \in 0..(vr_h' - 1) : n >= vr_r /\ n \notin held}
              inner(part) == {b \in (part.lo + 1)..(part.h - 1) : (b - 1 \in missing) # (b \in missing)}
              elements(part) == 2 + Cardinality(inner(part))
          IN /\ Reply # <<>> /\ Reply[1].lo = vr_r /\ Reply[Len(Reply)].h = vr_h'
             /\ \A k \in DOMAIN Reply :
                   LET part == Reply[k]
                   IN /\ part.type = "STAT" /\ part.n = vr_r /\ part.mr = taken + Window
                      /\ part.age = At.age
                      /\ part.gaps = {n \in missing : n >= part.lo /\ n < part.h}
                      /\ k > 1 => part.lo = Reply[k - 1].h
                      /\ IF k < Len(Reply) THEN elements(part) = MaxStat ELSE elements(part) <= MaxStat]_vars

(* STP-DT-021: what was announced last is what is permitted, and whether it left any. *)
CreditIsKnown ==
    [][IF Reply = <<>> THEN vr_mr' = vr_mr ELSE vr_mr' = Reply[1].mr /\ vr_mr' = taken' + Window]_vars
ClosedIsKnown ==
    [][closed' = IF Reply = <<>> THEN closed ELSE Reply[1].mr <= vr_h']_vars

(* STP-DT-024: a window that was shown closed is announced when it has opened by half, or by 16.       *)
AnnouncesInTime ==
    [][Reply # <<>> /\ forward' = forward =>
          LET opened == taken + Window - vr_h
          IN /\ closed /\ ~closed' /\ Packets - 1 \notin held /\ vr_r < Packets
             /\ opened >= 16 \/ 2 * opened >= Window
             /\ Reply = <<[type |-> "CREDIT", n |-> vr_r, mr |-> taken + Window]>>]_vars

(* And as soon as that: it need not wait for anything but room on the way. *)
AnnouncesAtOnce ==
    LET opened == taken + Window - vr_h
    IN closed /\ Packets - 1 \notin held /\ vr_r < Packets /\ (opened >= 16 \/ 2 * opened >= Window)
          /\ Len(return) < ReturnCapacity => ENABLED Announce

----------------------------------------------------------------------------
(* Sender *)

(* STP-DT-009, STP-DT-011 *)
NewInOrder ==
    [][vt_s' # vt_s =>
          /\ Sending("SD") /\ Leaving.n = vt_s /\ vt_s' = vt_s + 1
          /\ vt_s < vt_ms /\ vt_s < written /\ queue = {}
          /\ DOMAIN buffer' = DOMAIN buffer \cup {vt_s} /\ buffer'[vt_s] = 0]_vars
LowestAgain ==
    [][Sending("SD") /\ vt_s' = vt_s =>
          LET n == Leaving.n
          IN /\ n \in queue /\ \A m \in queue : n <= m
             /\ queue' = queue \ {n} /\ repeated' = repeated \cup {n}
             /\ buffer' = [m \in DOMAIN buffer |-> IF m = n THEN 0 ELSE buffer[m]]]_vars

(* STP-PL-001, STP-PL-006, STP-PL-007: a POLL leaves while a timer runs, asks about all that was sent,  *)
(* and starts Timer_SILENCE and Timer_NO-RESPONSE. Nothing is sent again for it (STP-DT-027).          *)
PollsAskForAll ==
    [][Sending("POLL") =>
          /\ Leaving = [type |-> "POLL", n |-> vt_s, age |-> 0]
          /\ silence' /\ unanswered' /\ queue' = queue
          /\ keepAlives' = keepAlives => silence \/ \E n \in DOMAIN buffer : buffer[n] = 0
          /\ keepAlives' # keepAlives => ~silence /\ buffer = <<>> /\ written = vt_s
          /\ vt_pa' = Min(vt_pa + 1, OldestAge)
          /\ \A n \in DOMAIN buffer : buffer'[n] = Min(buffer[n] + 1, OldestAge)]_vars

(* STP-DT-009, STP-DT-011, STP-DT-013: a new SD need wait for nothing but what is sent again, credit,   *)
(* room on the way, and packets that are so old that its number would mean another one.               *)
NewMayGoAtOnce ==
    /\ vt_s < written /\ vt_s < vt_ms /\ queue = {} /\ Len(forward) < Capacity
    /\ \A m \in Contents(forward) \cup Contents(return) :
          ~(ForwardReorders \/ ReturnReorders) \/ m.n + Modulus > vt_s + 1 + Window
    => ENABLED SendNew

(* What a report shows as arrived, and what it asks for that was sent before (STP-DT-003, STP-DT-006,   *)
(* STP-DT-014).                                                                                       *)
IsOld(report) == report.type = "STAT" /\ report.age > vt_pa
Shown(report) ==
    {n \in 0..vt_s : \/ n < report.n
                     \/ report.type = "STAT" /\ n >= report.lo /\ n < report.h /\ n \notin report.gaps}
AskedFor(report) ==
    CASE report.type = "STAT" -> {n \in report.gaps \cap DOMAIN buffer : buffer[n] > report.age}
      [] report.type = "USTAT" -> {n \in report.gaps \cap DOMAIN buffer : n \notin repeated}
      [] OTHER -> {}
Uses == ToSender /\ ~IsOld(Back)
ReleasesExactly ==
    [][Uses => /\ DOMAIN buffer' = DOMAIN buffer \ Shown(Back)
               /\ \A n \in DOMAIN buffer' : buffer'[n] = buffer[n]
               /\ repeated' = repeated \ Shown(Back)]_vars
RequeuesExactly == [][Uses => queue' = (queue \cup AskedFor(Back)) \ Shown(Back)]_vars
AdvancesExactly ==
    [][Uses => /\ vt_a' = (IF Back.n > vt_a THEN Back.n ELSE vt_a)
               /\ vt_ms' = (IF Back.mr > vt_ms THEN Back.mr ELSE vt_ms)
               /\ vt_pa' = (IF Back.type = "STAT" THEN Back.age ELSE vt_pa)]_vars

(* STP-PL-007, STP-DT-025: Timer_SILENCE stops when all is acknowledged, unless data waits for credit.  *)
Starved(data, una, permitted) == una = vt_s /\ data > vt_s /\ vt_s >= permitted
SilenceExactly ==
    [][/\ Uses => /\ ~unanswered'
                  /\ silence' = IF Starved(written, vt_a', vt_ms') THEN TRUE
                                ELSE silence /\ vt_a' # vt_s
       /\ written' # written =>
            /\ written' = written + 1
            /\ silence' = (silence \/ Starved(written', vt_a, vt_ms))]_vars

NeverStuck == Done \/ ENABLED Next

(* STP-DT-005, STP-DT-013: for channels that reorder as well. Nothing in flight lags so far that its   *)
(* number means another packet. That no step breaks this at any size is proved by Z3.                 *)
NumbersAreNear ==
    \A m \in Contents(forward) \cup Contents(return) :
        /\ m.n <= vt_s /\ m.n >= vt_s - (Modulus - Window)
        /\ m.type = "POLL" => m.n > vt_s - (Modulus - Window)

----------------------------------------------------------------------------
(* A window that was just shown closed, full of SDs that the user has not read.                        *)
Full ==
    /\ written = Packets /\ vt_s = Window /\ vt_a = Window /\ vt_ms = Window /\ vt_pa = OldestAge
    /\ buffer = <<>> /\ queue = {} /\ repeated = {} /\ silence = TRUE /\ unanswered = FALSE
    /\ vr_r = Window /\ vr_h = Window /\ vr_mr = Window /\ held = {} /\ closed = TRUE
    /\ delivered = [k \in 1..Window |-> k - 1] /\ taken = 0
    /\ forward = <<>> /\ return = <<>>
    /\ forwardLosses = ForwardLosses /\ returnLosses = ReturnLosses /\ duplicates = Duplicates
    /\ keepAlives = KeepAlives
    /\ spurious = FALSE /\ misread = FALSE /\ strange = FALSE
FullSpec == Full /\ [][Next]_vars

----------------------------------------------------------------------------
(* Packets that a peer that keeps the rules never sends, one of them at any time: reports of SDs that   *)
(* were never sent, lists that end below N(R), and SDs beyond the credit. They are paid for as copies   *)
(* are.                                                                                               *)
Ahead(report) ==
    report.n > vt_s \/ (report.type # "CREDIT" /\ (report.h > vt_s \/ report.h < report.n))
ReportsAhead ==
    {report \in UNION {{STAT(0, n, n, n, h, {}), USTAT(n, n, n, h), CREDIT(n, n)}
                       : n, h \in vt_a..(vt_s + 2)} : Ahead(report)}
Unruly ==
    /\ duplicates > 0 /\ duplicates' = duplicates - 1
    /\ \/ /\ HasRoom(return, ReturnCapacity, 1)
          /\ \E report \in ReportsAhead : return' = Append(return, report)
          /\ UNCHANGED forward
       \/ /\ HasRoom(forward, Capacity, 1)
          /\ \E n \in vr_mr..(Packets - 1) : forward' = Append(forward, SD(n))
          /\ UNCHANGED return
    /\ UNCHANGED <<senderVars, receiverVars, forwardLosses, returnLosses, keepAlives, ghosts>>
UnrulySpec == Init /\ [][Next \/ Unruly]_vars

(* STP-DT-023; TakesExactly says the same of SDs (STP-DT-020). *)
AheadChangesNothing == [][ToSender /\ Ahead(Back) => UNCHANGED senderVars]_vars

----------------------------------------------------------------------------
(* Reachability *)
NeverRoomBeyondHeldFin == ~(Fin \in held /\ vr_mr > Fin + 1)
==============================================================================
