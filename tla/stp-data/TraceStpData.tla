---------------------------- MODULE TraceStpData ----------------------------
(* Is a recorded transfer one of StpData's? Each trace is a sequence of records, as                     *)
(* bentpipe_conformance.models.exchanges writes them: what the sender of one stream did (call, bgak, *)
(* send, retransmit, poll, stat, ustat) and what its receiver did (sd, poll_arrives, announce), with    *)
(* the variables after it.                                                                              *)
(*                                                                                                      *)
(* What was lost, reordered or doubled is not recorded: every message ever sent may arrive, at any time *)
(* and again. When the user reads is not recorded either, so that VR(MR) is taken from the trace, within *)
(* its bounds. POLLs may be sent at any time.                                                           *)
EXTENDS StpData, TLC

CONSTANTS
    TraceLogs,
    EarlyCredit     \* SDs before the first BGAK (STP-CC-002)

VARIABLES
    trace,      \* which trace
    at,         \* the next event in it
    polls,      \* POLLs sent: VT(PS)
    credit,     \* VR(MR) as last recorded
    granted     \* N(MR) of each message in return

traceVars == <<trace, at, polls, credit, granted>>

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
GrantedByEvent(nr) == Event.n_mr
PermittedByEvent == Min(vr_r + Window, Event.vr_mr)

TraceInit == /\ trace \in 1..TLCGet(0) /\ at = 1
             /\ Start(EarlyCredit)
             /\ polls = 0 /\ credit = Window /\ granted = <<>>

----------------------------------------------------------------------------
(* Sender *)

(* The data of the BEGIN is SD 0. *)
Called ==
    /\ Is("call") /\ vt_s = 0
    /\ IF Event.vt_s = 0 THEN UNCHANGED vars ELSE SendNew
    /\ vt_s' = Event.vt_s

(* A BGAK acknowledges and gives credit. *)
Opened ==
    /\ Is("bgak")
    /\ Event.n_r \in vt_a..vr_r /\ Event.n_mr \in vt_ms..(vr_r + Window)
    /\ Update(Event.n_r, {}, {})
    /\ UNCHANGED <<vt_s, vt_pa, polled, receiverVars, forward, return, budgets, misread>>

Sent == Is("send") /\ Event.n = vt_s /\ SendNew

Repeated == Is("retransmit") /\ queue # {} /\ Event.n = Lowest(queue) /\ Retransmit

Polled == Is("poll") /\ Event.n_s = vt_s /\ Event.n_ps = polls + 1 /\ SendPoll

Reports == {i \in DOMAIN return :
    /\ return[i].n = Event.n_r /\ return[i].h = Event.h /\ return[i].gaps = Event.gaps
    /\ granted[i] = Event.n_mr}
Stats == {i \in Reports : return[i].type = "STAT" /\ return[i].age = polls - Event.n_ps}
Ustats == {i \in Reports : return[i].type = "USTAT"}

StatArrived == /\ Is("stat") /\ \E i \in Stats : ReceiveStat(i)
               /\ Event.valid => vt_pa' = polls - Event.n_ps
UstatArrived == Is("ustat") /\ \E i \in Ustats : ReceiveUstat(i)

SenderStep == \/ Sent \/ Repeated \/ Polled
              \/ /\ StatArrived \/ UstatArrived
                 /\ ~Event.valid => UNCHANGED <<vt_a, vt_ms, vt_pa, buffer, queue>>

Stamps == [n \in DOMAIN buffer' |-> polls' - buffer'[n]]
VtPa == IF vt_pa' = OldestAge THEN 0 ELSE polls' - vt_pa'

SenderShows == /\ vt_s' = Event.vt_s /\ vt_a' = Event.vt_a /\ vt_ms' = Event.vt_ms
               /\ polls' = Event.vt_ps /\ VtPa = Event.vt_pa /\ polled' = (Event.vt_pd = 0)
               /\ queue' = Event.queue /\ Stamps = Event.kept

----------------------------------------------------------------------------
(* Receiver *)

Sds == {i \in DOMAIN forward : forward[i] = SD(Event.n)}
Polls == {i \in DOMAIN forward :
    forward[i] = [type |-> "POLL", n |-> Event.n_s, age |-> polls - Event.n_ps]}

NewReport == return'[Len(return')]
Answers == Len(return') > Len(return)

SdArrived == /\ Is("sd") /\ \E i \in Sds : ReceiveSd(i)
             /\ Event.gap = IF Answers THEN NewReport.gaps ELSE {}

PollArrived == /\ Is("poll_arrives") /\ \E i \in Polls : ReceivePoll(i)
               /\ NewReport.gaps = Event.gaps /\ NewReport.h = Event.h

(* STP-DT-024: a window that has opened again; in the model users read at once.                       *)
Announced == /\ Is("announce")
             /\ return' = Append(return, STAT(polls - Event.n_ps, vr_h))
             /\ NewReport.gaps = Event.gaps /\ NewReport.h = Event.h
             /\ UNCHANGED <<senderVars, receiverVars, forward, budgets, spurious, misread>>

ReceiverStep == SdArrived \/ PollArrived \/ Announced

(* STP-DT-021 *)
CreditShows == Event.vr_mr \in credit..(vr_r' + Window)
ReceiverShows == /\ vr_r' = Event.vr_r /\ vr_h' = Event.vr_h /\ held' = Event.held
                 /\ CreditShows

----------------------------------------------------------------------------

Step == /\ Called \/ Opened \/ SenderStep \/ ReceiverStep
        /\ polls' = IF Is("poll") THEN polls + 1 ELSE polls

AtReceiver == Is("sd") \/ Is("poll_arrives") \/ Is("announce")
AtSender == ~AtReceiver /\ ~Is("call") /\ ~Is("bgak")

TraceNext ==
    /\ Step
    /\ AtSender => SenderShows
    /\ IF AtReceiver
       THEN /\ ReceiverShows
            /\ credit' = Event.vr_mr
            /\ granted' = IF Answers THEN Append(granted, Event.vr_mr) ELSE granted
       ELSE UNCHANGED <<credit, granted>>
    /\ at' = at + 1
    /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* The guard that blocks the next event; only asked where nothing follows. *)
Of(number) == "SD " \o ToString(number)
Wrong ==
    CASE AtSender /\ ~ENABLED (Step /\ vt_s' = Event.vt_s) -> "VT(S)"
      [] AtSender /\ ~ENABLED (Step /\ vt_a' = Event.vt_a) -> "VT(A)"
      [] AtSender /\ ~ENABLED (Step /\ vt_ms' = Event.vt_ms) -> "VT(MS)"
      [] AtSender /\ ~ENABLED (Step /\ polls' = Event.vt_ps) -> "VT(PS)"
      [] AtSender /\ ~ENABLED (Step /\ VtPa = Event.vt_pa) -> "VT(PA)"
      [] AtSender /\ ~ENABLED (Step /\ polled' = (Event.vt_pd = 0)) -> "VT(PD)"
      [] AtSender /\ ~ENABLED (Step /\ queue' = Event.queue) -> "the retransmission queue (STP-DT-003, STP-DT-014)"
      [] AtSender /\ ~ENABLED (Step /\ Stamps = Event.kept) -> "what is kept, or a stamp (STP-DT-010)"
      [] AtReceiver /\ ~ENABLED (Step /\ vr_r' = Event.vr_r) -> "VR(R)"
      [] AtReceiver /\ ~ENABLED (Step /\ vr_h' = Event.vr_h) -> "VR(H) (STP-DT-001, STP-DT-002, STP-DT-008)"
      [] AtReceiver /\ ~ENABLED (Step /\ CreditShows) -> "VR(MR) (STP-DT-021)"
      [] AtReceiver /\ ~ENABLED (Step /\ held' = Event.held) -> "what is held (STP-DT-019, STP-DT-022)"
      [] OTHER -> "the combination of variables"

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("call") -> "a BEGIN carries SD 0 or nothing, and is the first of all"
      [] Is("bgak") -> "a BGAK acknowledges or permits what the receiver does not"
      [] Is("send") /\ Event.n # vt_s -> Of(vt_s) \o " is the next new one (STP-DT-016)"
      [] Is("send") /\ ~NewMayGo -> Of(Lowest(queue)) \o " awaits retransmission and goes first (STP-DT-009)"
      [] Is("send") /\ ~Permitted -> "VT(MS) is " \o ToString(vt_ms) \o " (STP-DT-011)"
      [] Is("retransmit") /\ queue = {} -> "no SD awaits retransmission (STP-DT-003, STP-DT-014)"
      [] Is("retransmit") /\ Event.n # Lowest(queue) -> Of(Lowest(queue)) \o " is the next to be sent again"
      [] Is("poll") /\ Event.n_s # vt_s -> "VT(S) is " \o ToString(vt_s) \o " (STP-PL-006)"
      [] Is("poll") /\ Event.n_ps # polls + 1 -> "the next POLL is " \o ToString(polls + 1) \o " (STP-PL-006)"
      [] Is("stat") /\ Stats = {} -> "the receiver has sent no such STAT"
      [] Is("ustat") /\ Ustats = {} -> "the receiver has sent no such USTAT"
      [] Is("sd") /\ Sds = {} -> "the sender has sent no SD of that number"
      [] Is("poll_arrives") /\ Polls = {} -> "the sender has sent no such POLL"
      [] ENABLED TraceNext -> "followed"
      [] ENABLED Step -> "wrong after it: " \o Wrong
      [] Is("sd") -> "the gap is another (STP-DT-001)"
      [] AtReceiver -> "the list is another (STP-DT-002, STP-DT-006, STP-DT-018)"
      [] OTHER -> "whether the report is valid, or VT(PA), is another (STP-DT-007, STP-DT-023)"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
