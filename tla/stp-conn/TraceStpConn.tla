---------------------------- MODULE TraceStpConn ----------------------------
(* Is a recorded session one of StpConn's? Each trace is a sequence of records, as                      *)
(* bentpipe_conformance.models.sessions writes them: what the client and the server did, with the    *)
(* state after it and the control packets that were sent.                                               *)
(*                                                                                                      *)
(* What was lost, reordered or doubled is not recorded: every message ever sent may arrive, at any time *)
(* and again. When a user speaks or aborts is open. Answers that STP/1 limits to some per second may be *)
(* missing. When a complete end releases is open, and whether it leaves that to the other.              *)
EXTENDS StpConn, TLC

CONSTANT TraceLogs

VARIABLES
    trace,      \* which trace
    at,         \* the next event in it
    reply,      \* control packets that the last step sent
    newest      \* newest CSN of the server since its start

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])
ASSUME TLCSet(Count + 1, {0} \cup UNION
    {{TLCGet(i)[k].client : k \in DOMAIN TLCGet(i)} : i \in 1..TLCGet(0)})

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind
AtClient == Event.at = "client"
Other == IF AtClient THEN "server" ELSE "client"

(* In place of definitions of StpConn. *)
NamedCsns == TLCGet(TLCGet(0) + 1)
EmitTraced(control, data) == net' = net \cup control \cup data /\ reply' = control
ENDAK(from, peer) == [type |-> "ENDAK", from |-> from, peer |-> peer]
Endak(m) == {ENDAK(Event.at, m.csn)}
EndsByEvent(n) == Event.fin
ByEvent == Event.end
Always == TRUE
AlwaysTaken(csn) == TRUE
NotCounted(m) == UNCHANGED taken
SpeaksLater(e) == e
Others(p) == pending \ {p}
SameStart == {base}
AsksAgain(p) == {BGAK("server", p.csn, p.peer, AckOfWaiting, TRUE)}
AnswerToAsking(p) == IF Event.asks THEN AsksAgain(p) ELSE {}

TraceInit == /\ trace \in 1..TLCGet(0) /\ at = 1
             /\ Init
             /\ reply = {} /\ newest = 0

Unmoved == UNCHANGED <<clientVars, serverVars, abandoned>>
Silent == Emit({}, {}) /\ Unmoved

----------------------------------------------------------------------------
(* What an end does by itself *)

Begun == Is("begin") /\ Event.first /\ BeginWith(Event.carries)
BegunAgain == /\ Is("begin") /\ ~Event.first /\ cState = "begun" /\ Event.end = c.csn
              /\ Event.sent \subseteq net /\ Emit(Event.sent, {}) /\ Unmoved

Sent == /\ Is("send")
        /\ IF AtClient THEN ClientSends /\ Event.end = c.csn /\ Event.n = c.sent
                       ELSE ServerSends /\ Event.end = s.csn /\ Event.n = s.sent

(* Where STP-SEC-001 forbids to send the END, it is as good as lost. *)
Released == /\ Is("release")
            /\ IF AtClient THEN (ClientReleases \/ ClientAborts) /\ Event.end = c.csn
                           ELSE (ServerReleases \/ ServerAborts) /\ Event.end = s.csn

(* A question is free, and so is an END once more (STP-CC-026). *)
Asks(x) == IF AtClient THEN cState = "open" /\ x = BGAK("client", c.csn, c.peer, c.rcv, TRUE)
                       ELSE sState = "open" /\ x = BGAK("server", s.csn, s.peer, s.rcv, TRUE)
Repeats(x) == /\ x.type = "END" /\ x.from = Event.at /\ x \in net
              /\ IF AtClient THEN cState = "over" ELSE sState = "over"
Put == /\ Is("put") /\ \A x \in Event.sent : Asks(x) \/ Repeats(x)
       /\ Emit(Event.sent, {}) /\ Unmoved

(* The user learns how it ended: with the END, before it when an end leaves that to the other, or when  *)
(* nobody answers the BEGIN.                                                                             *)
ClientTold == /\ Event.end = c.csn
              /\ \/ told[c.csn] = Event.result /\ UNCHANGED <<cState, told>>
                 \/ /\ Event.result = "success" /\ cState = "open" /\ Complete(c)
                    /\ told' = [told EXCEPT ![c.csn] = "success"] /\ UNCHANGED cState
                 \/ Event.result = "failure" /\ cState = "begun" /\ Over("failure")
              /\ UNCHANGED <<c, back, abandoned, serverVars>>
ServerTold == /\ Event.end = s.csn
              /\ \/ sTold[s.peer] = Event.result /\ Silent
                 \/ Event.result = "success" /\ ServerReports
Told == Is("told") /\ IF AtClient THEN ClientTold /\ Emit({}, {}) ELSE ServerTold

(* STP-CC-026, and 32 s without a confirmation *)
Gone == /\ Is("gone")
        /\ IF AtClient
           THEN Event.end = c.csn /\ cState = "over" /\ UNCHANGED pending
           ELSE \/ Event.end = s.csn /\ sState = "over" /\ UNCHANGED pending
                \/ pending' = {p \in pending : p.csn # Event.end} /\ Event.end # s.csn
        /\ Emit({}, {})
        /\ UNCHANGED <<clientVars, abandoned, sState, sTold>> /\ ServerUnmoved

Started == Is("start") /\ Restart
Forged == Is("forged") /\ net' = net \cup {Event.m} /\ reply' = {} /\ Unmoved

----------------------------------------------------------------------------
(* What an end does with a packet *)

Mine(e) == Event.end = e.csn
Here == {p \in pending : Mine(p)}
Stray == Event.end = 0

ClientRefused(m) ==
    /\ m.type = "BGREJ" /\ cState = "begun" /\ m.peer = c.csn
    /\ Over("failure") /\ Emit({}, {}) /\ UNCHANGED <<c, back, abandoned, serverVars>>
ServerRefuses(m) ==     \* STP-CC-019
    /\ m.type = "BEGIN" /\ Stray
    /\ Emit({[type |-> "BGREJ", from |-> "server", peer |-> m.csn]}, {}) /\ Unmoved
ClientKnowsNone(m) ==
    /\ m.type \in {"SD", "POLL"} /\ Stray /\ cState \in {"idle", "over"}
    /\ Emit({NOBODY("client", m.csn)}, {}) /\ Unmoved
ServerPolledWithout(m) ==
    /\ m.type = "POLL" /\ Stray /\ Listens
    /\ Emit({NOBODY("server", m.csn)}, {}) /\ Unmoved
ServerNobody(m) ==
    /\ m.type = "NOBODY" /\ sState = "open" /\ m.csn = s.csn
    /\ Emit({BGAK("server", s.csn, s.peer, s.rcv, TRUE)}, {}) /\ Unmoved
ServerPolledEarly(m) == \* STP-CC-015
    /\ m.type \in {"SD", "POLL"} /\ Listens /\ (m.type = "SD" => m.n >= EarlyCredit)
    /\ \E p \in Here : m.csn = p.peer /\ Emit(AnswerToAsking(p), {})
    /\ Unmoved
Polled(m) ==
    /\ m.type = "POLL"
    /\ IF AtClient THEN cState = "open" /\ m.csn = c.peer ELSE sState = "open" /\ m.csn = s.peer
    /\ Silent
(* A STAT that comes before any SD, or acknowledges no more than before, says nothing. *)
NothingNew(m) ==
    /\ m.type = "STAT" /\ m.r = 0
    /\ IF AtClient THEN cState = "open" /\ m.csn = c.peer ELSE sState = "open" /\ m.csn = s.peer
    /\ Silent

(* Where nothing needs to be done: section 9 says "discard", or answers are limited. *)
ClientMayIgnore(m) ==
    CASE m.type = "BGAK" ->
            ~(\/ cState = "begun" /\ m.peer = c.csn /\ m.r <= c.sent
              \/ cState = "open" /\ m.peer = c.csn /\ (m.csn > c.peer \/ (m.csn = c.peer /\ m.asks)))
      [] m.type = "END" ->
            /\ ~EndsClient(m)
            /\ cState \in {"idle", "over"} =>
                (m.kind = "unknown" \/ (~Stray /\ ~(m.csn = c.peer /\ m.peer = c.csn)))
      [] m.type = "BGREJ" -> ~(cState = "begun" /\ m.peer = c.csn)
      [] OTHER -> m.type \in {"NOBODY", "ENDAK"} \/ Stray
ServerMayIgnore(m) ==
    CASE m.type = "BGAK" ->
            ~(\/ sState = "open" /\ m.csn = s.peer /\ m.peer = s.csn /\ m.asks
              \/ Listens /\ \E p \in pending : m.csn = p.peer /\ m.peer = p.csn)
      [] m.type = "END" ->
            /\ ~(sState = "open" /\ EndsServer(m))
            /\ Listens => \/ m.kind = "unknown" /\ ~\E p \in pending : EndsPending(m, p)
                          \/ ~Stray /\ ~(\E p \in pending : EndsPending(m, p)) /\ ~(Mine(s) /\ EndsServer(m))
      [] m.type = "BEGIN" ->
            \/ sState = "open" /\ m.csn # s.peer
            \/ sState = "over" /\ Mine(s) /\ m.csn <= s.peer
      [] m.type = "STAT" -> Stray \/ \E p \in Here : m.csn = p.peer
      [] OTHER -> m.type \in {"BGREJ", "NOBODY", "ENDAK"} \/ Stray

ClientArrival(m) ==
    \/ ClientBgak(m) \/ ClientSd(m) \/ ClientStat(m) \/ ClientEnd(m) \/ ClientNobody(m)
    \/ ClientRefused(m) \/ ClientKnowsNone(m)
    \/ ClientMayIgnore(m) /\ (m.type \in {"SD", "STAT", "POLL"} => cState # "open") /\ Silent
ServerArrival(m) ==
    \/ ServerBegin(m) \/ ServerBgak(m) \/ ServerSd(m) \/ ServerStat(m) \/ ServerEnd(m)
    \/ ServerRefuses(m) \/ ServerNobody(m) \/ ServerPolledEarly(m) \/ ServerPolledWithout(m)
    \/ ServerMayIgnore(m) /\ (m.type \in {"SD", "STAT", "POLL"} => sState # "open") /\ Silent

Known_(m) == m \in net \/ m.type = "POLL" \/ (m.type = "STAT" /\ m.r = 0)
Arriving == Is("arrive") \/ Is("sd") \/ Is("report")
Arrived ==
    /\ Arriving /\ Known_(Event.m)
    /\ Event.m.from = Other
    /\ IF AtClient THEN ClientArrival(Event.m) \/ Polled(Event.m) \/ NothingNew(Event.m)
                   ELSE ServerArrival(Event.m) \/ Polled(Event.m) \/ NothingNew(Event.m)

----------------------------------------------------------------------------
(* What shows after a step *)

Speaks == Event.k \notin {"start", "forged", "told", "gone"} /\ Event.end # 0

StateShows ==
    IF AtClient
    THEN /\ c'.csn = Event.end
         /\ cState' = CASE Event.state = 2 -> "begun" [] Event.state = 10 -> "open" [] OTHER -> "over"
    ELSE CASE Event.state = 3 -> \E p \in pending' : p.csn = Event.end
           [] Event.state = 10 -> sState' = "open" /\ s'.csn = Event.end
           [] OTHER -> /\ \A p \in pending' : p.csn # Event.end
                       /\ s'.csn = Event.end => sState' = "over"
StrayShows == IF AtClient THEN cState' # "open" ELSE sState' # "open"
Ends == IF AtClient THEN {c'} ELSE {s'} \cup pending'
End == CHOOSE e \in Ends : e.csn = Event.end
Alive == Event.state \in {2, 3, 10} \/ Is("release")
PeerShows == IF AtClient THEN c'.peer = Event.peer
             ELSE Alive \/ s'.csn = Event.end => End.peer = Event.peer
SentShows == Alive /\ Event.vt_s >= 0 => End.sent = Event.vt_s
AckedShows == Alive /\ Event.vt_a >= 0 => End.acked = Event.vt_a
TakenShows == Alive /\ Event.vr_r >= 0 => End.rcv = Event.vr_r
HeldShows == Is("sd") \/ (Is("report") /\ Event.m.type = "POLL") => End.held = Event.held
ToldShows == Is("arrive") =>
    IF AtClient
    THEN told' = IF Event.told = "" THEN told ELSE [told EXCEPT ![Event.client] = Event.told]
    ELSE sTold' = IF Event.told = "" THEN sTold ELSE [sTold EXCEPT ![Event.client] = Event.told]
ReplyShows == reply' = Event.sent \/ (Is("release") /\ Event.sent = {})
Takes_ == /\ Is("arrive") /\ ~AtClient /\ ~Stray /\ Event.m.type = "BEGIN"
          /\ ~Mine(s) /\ Here = {}
OwnRises == Takes_ => Event.end > newest
(* STP-CC-033: beside another that waits, everybody is asked. *)
AskedBeside == Takes_ /\ Event.state = 10 => pending = {}

Step == \/ Begun \/ BegunAgain \/ Sent \/ Released \/ Put \/ Told \/ Gone \/ Started \/ Forged \/ Arrived

Shows == /\ ReplyShows /\ ToldShows
         /\ Speaks => StateShows /\ PeerShows /\ SentShows /\ AckedShows /\ TakenShows /\ HeldShows
         /\ Is("arrive") /\ Stray => StrayShows
         /\ OwnRises /\ AskedBeside

TraceNext ==
    /\ Step /\ Shows
    /\ newest' = IF Is("start") THEN 0
                 ELSE IF Takes_ THEN Max(newest, Event.end) ELSE newest
    /\ at' = at + 1
    /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, at, reply, newest>>

----------------------------------------------------------------------------
(* Why the next event is not possible; only asked where nothing follows. *)

Kind == Event.m.type
WrongAnswer ==
    CASE ~Arriving -> "what was sent is another"
      [] Kind = "BEGIN" /\ sState = "open" /\ Event.m.csn # s.peer ->
            "a BEGIN of another connection draws nothing but a challenge (STP-CC-018)"
      [] Kind = "BEGIN" /\ Event.state = 3 -> "the BGAK has to ask, with N(R) = ISS (STP-CC-003, STP-CC-015)"
      [] Kind = "BEGIN" -> "the BGAK to this BEGIN is another (STP-CC-012, STP-CC-013, STP-CC-015)"
      [] Kind = "BGAK" /\ Event.m.asks /\ Event.sent = {} -> "the question is not answered (STP-CC-017)"
      [] Kind = "BGAK" /\ AtClient /\ cState = "open" /\ Event.m.csn # c.peer ->
            "a BGAK of another incarnation is not confirmed (STP-CC-007)"
      [] Kind = "BGAK" -> "the answer is another (STP-CC-017, STP-CC-020)"
      [] Kind = "END" -> "the END is not acknowledged as it must be (STP-CC-022)"
      [] Kind = "NOBODY" -> "a hint draws nothing but a challenge (STP-CC-021)"
      [] Kind \in {"SD", "POLL"} /\ ~Stray /\ Event.m.csn # Event.peer ->
            "the packet is of another incarnation (STP-CC-001)"
      [] Kind \in {"SD", "POLL"} -> "the answer is another (STP-CC-015, STP-CC-020)"
      [] OTHER -> "nothing is to be sent"

Stands == IF AtClient THEN cState ELSE sState
WrongState ==
    CASE Kind = "END" -> "this END does not end the connection, or has to (STP-CC-021, STP-CC-027)"
      [] Kind = "BEGIN" /\ sState = "open" -> "a BEGIN changes nothing here (STP-CC-015, STP-CC-018)"
      [] Kind = "BEGIN" /\ Event.state = 10 ->
            "the client is not known, or its CSN not newer: it has to be asked (STP-CC-003)"
      [] Kind = "BGAK" /\ AtClient /\ cState = "open" -> "a BGAK of a newer incarnation ends it, no other (STP-CC-007)"
      [] Kind = "BGAK" /\ ~AtClient -> "only a BGAK with both CSNs confirms (STP-CC-003)"
      [] Kind = "NOBODY" -> "a hint changes nothing (STP-CC-021)"
      [] Kind \in {"SD", "STAT", "POLL"} -> "data and reports open and end nothing"
      [] OTHER -> "section 9"

Wrong ==
    CASE Speaks /\ ~ENABLED (Step /\ StateShows) /\ Arriving ->
            "the state after it is not " \o ToString(Event.state) \o ": " \o WrongState
      [] Speaks /\ ~ENABLED (Step /\ StateShows) -> "the state after it is not " \o ToString(Event.state)
      [] ~ENABLED (Step /\ ReplyShows) -> WrongAnswer
      [] Is("arrive") /\ Stray /\ ~ENABLED (Step /\ StrayShows) -> "there is a connection (STP-CC-020)"
      [] ~ENABLED (Step /\ AskedBeside) -> "a BEGIN beside another that waits is asked about (STP-CC-033)"
      [] ~ENABLED (Step /\ OwnRises) -> "the server's CSN does not rise (STP-CC-010)"
      [] ~ENABLED (Step /\ ToldShows) -> "the user is told something else (STP-CC-005, STP-CC-006, STP-CC-027)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ PeerShows) -> "the peer's CSN is another (STP-CC-001)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ SentShows) -> "VT(S) is another (STP-DT-016)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ AckedShows) -> "VT(A) is another (STP-DT-010)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ TakenShows) ->
            "VR(R) is another: data is handed over too early, too late or twice (STP-CC-003, STP-CC-008)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ HeldShows) -> "what is held is another (STP-DT-019)"
      [] OTHER -> "the combination of state, variables and answer"

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] ENABLED TraceNext -> "followed"
      [] Is("begin") /\ Event.first /\ Event.end <= c.csn -> "the client's CSN does not rise (STP-CC-010)"
      [] Is("begin") /\ Event.first /\ Live -> "the client's connection is not over"
      [] Is("begin") /\ ~Event.first -> "a repeated BEGIN is the same, and only while none is answered (STP-CC-014, STP-CC-016)"
      [] Is("send") /\ AtClient /\ cState = "begun" -> "the early credit is used up, or this is not the next SD (STP-CC-002, STP-DT-016)"
      [] Is("send") /\ Stands # "open" -> "the connection is not open (STP-CC-003, STP-CC-028)"
      [] Is("send") /\ (IF AtClient THEN c.fin ELSE s.fin) # None -> "nothing follows the FIN (STP-CC-024)"
      [] Is("send") /\ ~ENABLED Step -> "this is not the next SD (STP-DT-016)"
      [] Is("release") /\ Stands = "over" -> "the connection is over already"
      [] Is("release") /\ ENABLED Step ->
            "this END is another: normal once its own FIN is acknowledged and the peer's delivered, with N(R) above that (STP-CC-025)"
      [] Is("release") -> "there is no such connection"
      [] Is("put") -> "nobody has asked for what was sent (STP-CC-015, STP-CC-017, STP-CC-028)"
      [] Is("told") /\ Event.result = "success" ->
            "success comes before both streams are through and acknowledged (STP-CC-005)"
      [] Is("told") -> "the user is told of a failure that there is not (STP-CC-006)"
      [] Is("gone") -> "the connection is not over (STP-CC-009)"
      [] Is("sd") /\ Event.state = 3 -> "data is handed over before the confirmation (STP-CC-003)"
      [] Arriving /\ Event.m.from = Other /\ ~Known_(Event.m) -> "the " \o Other \o " has sent no such " \o Kind
      [] (Is("sd") \/ Is("report")) /\ Stands = "over" ->
            "the connection is over: data and reports count no more (STP-CC-028)"
      [] (Is("sd") \/ Is("report")) /\ Event.m.csn # (IF AtClient THEN c.peer ELSE s.peer) ->
            "the packet is of another incarnation (STP-CC-001)"
      [] Is("arrive") /\ ~Stray /\ Kind \in {"SD", "POLL", "STAT"} /\ Event.m.csn # Event.peer ->
            "the packet is of another incarnation (STP-CC-001)"
      [] Arriving /\ ~ENABLED Step -> "this cannot be ignored, nor is anything known that it calls for: "
            \o (IF Kind = "BGAK" THEN "STP-CC-017" ELSE IF Kind = "END" THEN "STP-CC-022" ELSE "section 9")
      [] ENABLED Step -> Wrong
      [] OTHER -> "section 9"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
