---------------------------- MODULE TraceStpData ----------------------------
(* Is a recorded transfer one of StpData's? Each trace is a sequence of records, as                     *)
(* bentpipe_conformance.models.exchanges writes them: what the sender of one stream did (call, bgak, *)
(* send, retransmit, poll, stat, ustat, credit) and what its receiver did (sd, poll_arrives, late,      *)
(* announce), with                                                                                      *)
(* the variables after it.                                                                              *)
(*                                                                                                      *)
(* What was lost, reordered or doubled is not recorded: every message ever sent may arrive, at any time *)
(* and again. When users write and read is not recorded either: data is there whenever it is sent, and  *)
(* the credit of a report is taken from the trace, within its bounds. POLLs may be sent at any time.    *)
EXTENDS StpData, Rejection

CONSTANTS
    TraceLogs,
    EarlyCredit     \* SDs before the first BGAK (STP-CC-002)

VARIABLES
    trace,      \* which trace
    at,         \* the next event in it
    polls       \* POLLs sent: VT(PS)

traceVars == <<trace, at, polls>>

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind

(* In place of definitions of StpData. *)
NeverGone(channel, i) == channel
AlwaysRoom(channel, capacity, messages) == TRUE
AtAnyTime == TRUE
GrantedByEvent(read) == Event.vr_mr
UnlessItWaits(n) == n > vr_h /\ ~Event.waits      \* STP-DT-026

TraceInit == /\ trace \in 1..TLCGet(0) /\ at = 1
             /\ Start(EarlyCredit)
             /\ polls = 0

----------------------------------------------------------------------------
(* Sender *)

(* The data of the BEGIN is SD 0. *)
Called ==
    /\ Is("call") /\ vt_s = 0
    /\ IF Event.vt_s = 0 THEN UNCHANGED vars ELSE SendNew
    /\ vt_s' = Event.vt_s

(* STP-CC-037: the stream begins anew; nothing of the call before has been taken (STP-CC-035).          *)
CalledAnew ==
    /\ Is("anew") /\ vr_h = 0
    /\ vt_s' = Event.vt_s
    /\ buffer' = IF Event.vt_s = 0 THEN <<>> ELSE With(<<>>, 0, 0)
    /\ forward' = IF Event.vt_s = 0 THEN <<>> ELSE <<SD(0)>>
    /\ UNCHANGED <<written, vt_a, vt_ms, vt_pa, queue, repeated, silence, unanswered>>
    /\ UNCHANGED <<receiverVars, return, budgets, ghosts>>

(* A BGAK acknowledges and gives credit. *)
Opened ==
    /\ Is("bgak")
    /\ Event.n_r \in vt_a..vr_r /\ Event.n_mr \in vt_ms..(vr_r + Window)
    /\ Update(Event.n_r, Event.n_mr, {}, {})
    /\ UNCHANGED <<written, vt_s, vt_pa, receiverVars, forward, return, budgets, misread, strange>>

Sent == Is("send") /\ Event.n = vt_s /\ SendNew

Repeated == Is("retransmit") /\ queue # {} /\ Event.n = Lowest(queue) /\ Retransmit

Polled == Is("poll") /\ Event.n_s = vt_s /\ Event.n_ps = polls + 1 /\ SendPoll

(* A STAT may be a part of a longer one, from one of its elements to another (STP-PF-012).              *)
IsPart(stat) ==
    /\ Event.lo >= stat.lo /\ Event.h <= stat.h
    /\ Event.gaps = stat.gaps \cap (Event.lo..(Event.h - 1))
    /\ Event.lo = stat.lo \/ (Event.lo \in stat.gaps /\ Event.lo - 1 \notin stat.gaps)
Part(stat) == [stat EXCEPT !.lo = Event.lo, !.h = Event.h, !.gaps = Event.gaps]

Reports(type) == {i \in DOMAIN return :
    return[i].type = type /\ return[i].n = Event.n_r /\ return[i].mr = Event.n_mr}
Stats == {i \in Reports("STAT") : return[i].age = polls - Event.n_ps /\ IsPart(return[i])}
Ustats == {i \in Reports("USTAT") : return[i].h = Event.h /\ return[i].gaps = Event.gaps}
Credits == Reports("CREDIT")

StatArrived == /\ Is("stat") /\ \E i \in Stats : UseStat(Part(return[i])) /\ ReceiveReport(i)
               /\ Event.valid => vt_pa' = polls - Event.n_ps
UstatArrived == Is("ustat") /\ \E i \in Ustats : ReceiveUstat(i)
CreditArrived == Is("credit") /\ \E i \in Credits : ReceiveCredit(i)

SenderStep == \/ Sent \/ Repeated \/ Polled
              \/ /\ StatArrived \/ UstatArrived \/ CreditArrived
                 /\ ~Event.valid => UNCHANGED <<vt_a, vt_ms, vt_pa, buffer, queue>>

Stamps == [n \in DOMAIN buffer' |-> polls' - buffer'[n]]
VtPa == IF vt_pa' = OldestAge THEN 0 ELSE polls' - vt_pa'

SenderShows == /\ vt_s' = Event.vt_s /\ vt_a' = Event.vt_a /\ vt_ms' = Event.vt_ms
               /\ polls' = Event.vt_ps /\ VtPa = Event.vt_pa
               /\ queue' = Event.queue /\ Stamps = Event.kept

----------------------------------------------------------------------------
(* Receiver *)

Sds == {i \in DOMAIN forward : forward[i] = SD(Event.n)}
Polls == {i \in DOMAIN forward :
    forward[i] = [type |-> "POLL", n |-> Event.n_s, age |-> polls - Event.n_ps]}

NewReport == return'[Len(return')]
Answers == Len(return') > Len(return)

SdArrived == /\ Is("sd") /\ \E i \in Sds : ReceiveSd(i)
             /\ Answers => Event.gap = NewReport.gaps
             /\ ~Answers => Event.waits \/ Event.gap = {}

PollArrived == /\ Is("poll_arrives") /\ \E i \in Polls : ReceivePoll(i)
               /\ NewReport.gaps = Event.gaps /\ NewReport.h = Event.h

(* A USTAT that has waited names only what is still missing.                                            *)
LateUstatSent ==
    /\ Is("late") /\ Event.gap # {} /\ Event.gap \subseteq Missing(vr_h)
    /\ vr_mr' = Event.vr_mr /\ closed' = (vr_mr' <= vr_h)
    /\ return' = Append(return, USTAT(vr_r, vr_mr', Lowest(Event.gap), Highest(Event.gap) + 1))
    /\ UNCHANGED <<senderVars, vr_r, vr_h, held, delivered, taken, forward, budgets, ghosts>>

Announced == Is("announce") /\ Announce

ReceiverStep == SdArrived \/ PollArrived \/ LateUstatSent \/ Announced

(* STP-DT-020, STP-DT-021 *)
CreditShows == vr_mr' = Event.vr_mr /\ vr_mr' \in vr_mr..(vr_r' + Window)
ReceiverShows == /\ vr_r' = Event.vr_r /\ vr_h' = Event.vr_h /\ held' = Event.held
                 /\ CreditShows

----------------------------------------------------------------------------

Step == /\ Called \/ CalledAnew \/ Opened \/ SenderStep \/ ReceiverStep
        /\ polls' = IF Is("poll") THEN polls + 1 ELSE polls

AtReceiver == Is("sd") \/ Is("poll_arrives") \/ Is("late") \/ Is("announce")
AtSender == ~AtReceiver /\ ~Is("call") /\ ~Is("anew") /\ ~Is("bgak")

TraceNext ==
    /\ Step
    /\ AtSender => SenderShows
    /\ AtReceiver => ReceiverShows
    /\ at' = at + 1
    /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* The guard that blocks the next event; only asked where nothing follows. *)
(* Where the variable after the event is wrong, what it must be: of the values that it can have, those *)
(* with which a step is possible.                                                                     *)
Top == Max(vt_s, vr_h) + Window + 1
Wrong ==
    CASE AtSender /\ ~ENABLED (Step /\ vt_s' = Event.vt_s) ->
            Must("VT(S)", {v \in 0..Top : ENABLED (Step /\ vt_s' = v)}, "STP-DT-016")
      [] AtSender /\ ~ENABLED (Step /\ vt_a' = Event.vt_a) ->
            Must("VT(A)", {v \in 0..Top : ENABLED (Step /\ vt_a' = v)}, "STP-DT-029")
      [] AtSender /\ ~ENABLED (Step /\ vt_ms' = Event.vt_ms) ->
            Must("VT(MS)", {v \in 0..Top : ENABLED (Step /\ vt_ms' = v)}, "STP-DT-029")
      [] AtSender /\ ~ENABLED (Step /\ polls' = Event.vt_ps) ->
            Must("VT(PS)", {v \in polls..(polls + 1) : ENABLED (Step /\ polls' = v)}, "STP-PL-006")
      [] AtSender /\ ~ENABLED (Step /\ VtPa = Event.vt_pa) ->
            Must("VT(PA)", {v \in 0..(polls + 1) : ENABLED (Step /\ VtPa = v)}, "STP-DT-007")
      [] AtSender /\ ~ENABLED (Step /\ queue' = Event.queue) ->
            "the retransmission queue must be "
            \o ToString({n \in vt_a..vt_s : ENABLED (Step /\ n \in queue')}) \o " (STP-DT-003, STP-DT-014)"
      [] AtSender /\ ~ENABLED (Step /\ Stamps = Event.kept) ->
            "what is kept, by the number of the last POLL before it, must be "
            \o ToString({<<n, v>> \in (vt_a..vt_s) \X (0..(polls + 1)) :
                         ENABLED (Step /\ n \in DOMAIN Stamps /\ Stamps[n] = v)}) \o " (STP-DT-010)"
      [] AtReceiver /\ ~ENABLED (Step /\ vr_r' = Event.vr_r) ->
            Must("VR(R)", {v \in 0..Top : ENABLED (Step /\ vr_r' = v)}, "STP-DT-012")
      [] AtReceiver /\ ~ENABLED (Step /\ vr_h' = Event.vr_h) ->
            Must("VR(H)", {v \in 0..Top : ENABLED (Step /\ vr_h' = v)}, "STP-DT-001, STP-DT-002, STP-DT-008")
      [] AtReceiver /\ ~ENABLED (Step /\ CreditShows) ->
            "VR(MR) must be from " \o ToString(vr_mr) \o " to "
            \o ToString(Highest({v \in 0..Top : ENABLED (Step /\ vr_r' = v)}) + Window) \o " (STP-DT-020, STP-DT-021)"
      [] AtReceiver /\ ~ENABLED (Step /\ held' = Event.held) ->
            "what is held must be " \o ToString({n \in 0..Top : ENABLED (Step /\ n \in held')})
            \o " (STP-DT-019, STP-DT-022)"
      [] OTHER -> "the combination of variables"

(* What the receiver has sent in answer to the same POLL. *)
Shown(type) == {<<return[i].n, return[i].mr, return[i].h, return[i].gaps>> : i \in
    {j \in DOMAIN return : return[j].type = type /\ (type = "STAT" => return[j].age = polls - Event.n_ps)}}
NoSuch(type, rule) ==
    "the receiver has sent no such " \o type \o "; N(R), N(MR), bound, gaps must be "
    \o ToString(Shown(type)) \o " (" \o rule \o ")"
AskedAbout == {forward[i].n : i \in
    {j \in DOMAIN forward : forward[j].type = "POLL" /\ forward[j].age = polls - Event.n_ps}}

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("call") -> "a BEGIN must be the first of all, and carry SD 0 or nothing (section 5.1)"
      [] Is("anew") -> "VR(R) must be 0: the call was answered with a cookie (STP-CC-035)"
      [] Is("bgak") -> "what a BGAK acknowledges must be of " \o ToString(vt_a..vr_r) \o ", what it permits from "
            \o ToString(vt_ms) \o " to " \o ToString(vr_r + Window) \o " (STP-DT-018, STP-DT-020)"
      [] Is("send") /\ Event.n # vt_s -> MustBe("the next new SD", vt_s, "STP-DT-016")
      [] Is("send") /\ ~NewMayGo -> MustBe("one awaits retransmission: the next SD", Lowest(queue), "STP-DT-009")
      [] Is("send") /\ ~Permitted -> MustBeAtMost("the next new SD", vt_ms - 1, "STP-DT-011")
      [] Is("retransmit") /\ queue = {} -> MustBe("none awaits retransmission: the next SD", vt_s, "STP-DT-003, STP-DT-014")
      [] Is("retransmit") /\ Event.n # Lowest(queue) -> MustBe("the next SD", Lowest(queue), "STP-DT-027")
      [] Is("poll") /\ Event.n_s # vt_s -> MustBe("N(S)", vt_s, "STP-PL-006")
      [] Is("poll") /\ Event.n_ps # polls + 1 -> MustBe("N(PS)", polls + 1, "STP-PL-006")
      [] Is("stat") /\ Stats = {} -> NoSuch("STAT", "STP-DT-018")
      [] Is("ustat") /\ Ustats = {} -> NoSuch("USTAT", "STP-DT-001")
      [] Is("credit") /\ Credits = {} -> NoSuch("CREDIT", "STP-DT-024")
      [] Is("late") -> "what the USTAT names must be of " \o ToString(Missing(vr_h)) \o " (STP-DT-026)"
      [] Is("announce") /\ ~MayAnnounce -> "VR(MR) must be announced only when a closed window has opened by half (STP-DT-024)"
      [] Is("sd") /\ Sds = {} -> "the sender has sent no SD of that number; it must be at most "
            \o ToString(vt_s - 1) \o " (STP-DT-016)"
      [] Is("poll_arrives") /\ Polls = {} -> "the sender has sent no such POLL; its N(S) must be "
            \o ToString(AskedAbout) \o " (STP-PL-006)"
      [] ENABLED TraceNext -> "followed"
      [] ENABLED Step -> "wrong after it: " \o Wrong
      [] Is("sd") -> "the gap reported must be "
            \o ToString(IF Event.n > vr_h /\ Event.n < vr_mr THEN vr_h..(Event.n - 1) ELSE {}) \o " (STP-DT-001)"
      [] AtReceiver -> "the list must name " \o ToString(Missing(RaisedBy(Event.n_s))) \o " up to "
            \o ToString(RaisedBy(Event.n_s)) \o " (STP-DT-002, STP-DT-006, STP-DT-018)"
      [] OTHER -> "whether the report is valid must be " \o ToString(~Event.valid)
            \o ", or VT(PA) is another (STP-DT-007, STP-DT-023)"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
