---------------------------- MODULE TraceStpConn ----------------------------
(* Is a recorded session one of StpConn's? Each trace is a sequence of records, as                      *)
(* bentpipe_conformance.models.stp.sessions writes them: what the client and the server did, with the   *)
(* state after it and the control packets that were sent. Both use one port each.                       *)
(*                                                                                                      *)
(* What was lost, reordered or doubled is not recorded: every message ever sent may arrive, at any time *)
(* and again. When a user speaks or aborts is open. Answers that STP/1 limits to some per second may be *)
(* missing. When a complete end releases is open, and whether it leaves that to the other. Times are    *)
(* not compared: no cookie of a session is older than 600 s.                                            *)
EXTENDS StpConn, Rejection

CONSTANT TraceLogs

VARIABLES
    trace,      \* which trace
    at,         \* the next event in it
    reply,      \* control packets that the last step sent
    newest,     \* newest CSN of either since its start
    heard       \* side and CSN of the connections whose user has been told how they ended

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind
AtClient == Event.at = "client"
Other == IF AtClient THEN "server" ELSE "client"
Port == 1
c == C[Port]
s == S[Port]

(* In place of definitions of StpConn. *)
EmitTraced(control, data) == net' = net \cup control \cup data /\ reply' = control
ENDAK(from, peer) == [type |-> "ENDAK", from |-> from, port |-> Port, peer |-> peer]
Endak(m) == {ENDAK(Event.at, m.csn)}
EndsByEvent(n) == Event.fin
ByEventCarries(ck) == Event.carries
ByEvent == Event.end
Always == TRUE
SpeaksLater(e) == e

TraceInit == /\ trace \in 1..TLCGet(0) /\ at = 1
             /\ Init
             /\ reply = {} /\ newest = [client |-> 0, server |-> 0] /\ heard = {}

Unmoved == UNCHANGED <<now, clientVars, serverVars, abandoned>>
Silent == Emit({}, {}) /\ Unmoved
Says(packet) == Emit({packet}, {}) /\ Unmoved
Away(e) == e.st \in {"idle", "over"}

----------------------------------------------------------------------------
(* What an end does by itself *)

(* STP-CC-040 is a SHOULD: a caller need not use its cookies, but uses the first (STP-CC-039).         *)
MayUse(ck) == ck = NoCookie \/ (stock # <<>> /\ ck = Head(stock))
BeginsCall ==
    /\ Away(c) /\ MayUse(Event.ck)
    /\ calls' = Append(calls, [told |-> "nothing", after |-> EndedCalls])
    /\ Starts(Port, Event.end, Event.ck, Len(calls) + 1)
    /\ stock' = IF Event.ck = NoCookie THEN stock ELSE Tail(stock)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>
BeginsAnew ==
    /\ c.st = "begun"
    /\ \E m \in net : m.type = "BGREJ" /\ m.peer = c.csn /\ m.ck = Event.ck /\ CallsAnew(m)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>
EmptyWithout == Event.ck = NoCookie => ~Event.carries       \* STP-CC-034
Rises == Event.end > newest[Event.at]                        \* STP-CC-010
Begun == Is("begin") /\ Event.first /\ EmptyWithout /\ Rises /\ (BeginsCall \/ BeginsAnew)
BegunAgain == /\ Is("begin") /\ ~Event.first /\ c.st = "begun" /\ Event.end = c.csn
              /\ Event.sent \subseteq net /\ Emit(Event.sent, {}) /\ Unmoved

Sent == /\ Is("send")
        /\ IF AtClient THEN ClientSends(Port) /\ Event.end = c.csn /\ Event.n = c.sent
                       ELSE ServerSends(Port) /\ Event.end = s.csn /\ Event.n = s.sent

Released == /\ Is("release")
            /\ IF AtClient
               THEN (ClientReleases(Port) \/ ClientAborts(Port)) /\ Event.end = c.csn
               ELSE (ServerReleases(Port) \/ ServerAborts(Port)) /\ Event.end = s.csn

(* An END once more is free (STP-CC-026). *)
Repeated(x) == /\ x.type = "END" /\ x.from = Event.at /\ x \in net
               /\ IF AtClient THEN c.st = "over" ELSE s.st = "over"
Put == /\ Is("put") /\ \A x \in Event.sent : Repeated(x)
       /\ Emit(Event.sent, {}) /\ Unmoved

(* The user learns how it ended: with the END, before it when an end leaves that to the other, or when  *)
(* a later call is about to replace the connection (STP-CC-041).                                        *)
Replaceable == s.st = "open" /\ \E m \in net : /\ m.type = "BEGIN" /\ m.csn # s.peer
                                               /\ ~IsUsed(m.ck) /\ IsGood(m.ck)
ClientTold == /\ Event.end = c.csn
              /\ \/ calls[CallOf(c.csn)].told = Event.result /\ UNCHANGED calls
                 \/ /\ Event.result = "success" /\ c.st = "open" /\ Complete(c)
                    /\ calls' = Told(c.csn, "success")
              /\ Emit({}, {})
              /\ UNCHANGED <<now, C, stock, begins, gone, back, abandoned, serverVars>>
ServerTold_ == /\ Event.end = s.csn
               /\ \/ opened[Place(s.csn)].told = Event.result /\ Silent
                  \/ Event.result = "success" /\ ServerReports(Port)
                  \/ /\ Event.result = "failure" /\ Replaceable /\ ~Complete(s)
                     /\ opened' = ServerTold(s.csn, "failure") /\ Emit({}, {})
                     /\ UNCHANGED <<now, clientVars, S, made, used, epoch, log, abandoned>>
IsTold == Is("told") /\ IF AtClient THEN ClientTold ELSE ServerTold_

(* STP-CC-026 *)
Gone == /\ Is("gone")
        /\ IF AtClient THEN Event.end # c.csn \/ c.st = "over"
                       ELSE Event.end # s.csn \/ s.st = "over" \/ Replaceable
        /\ Silent

Started == Is("start") /\ IF AtClient THEN Departs ELSE Restart
IsForged == Is("forged") /\ net' = net \cup {Event.m} /\ reply' = {} /\ Unmoved

----------------------------------------------------------------------------
(* What an end does with a packet *)

Mine(e) == Event.end = e.csn
Stray == Event.end = 0

ServerRefuses(m) ==     \* STP-CC-012, STP-CC-019: nobody listens, another version, no resources
    /\ m.type = "BEGIN" /\ ~(s.st = "open" /\ m.csn = s.peer) /\ ~IsUsed(m.ck)
    /\ \E reason \in {3, 4, 5} :
        /\ reason = 5 => IsGood(m.ck)
        /\ Says(BGREJ(Port, m.csn, reason, NoCookie))
(* The POLL of an SDP (STP-CC-020). *)
Polled(m) ==
    /\ m.type = "POLL" \/ (m.type = "SD" /\ Event.asks)
    /\ Away(IF AtClient THEN c ELSE s)
    /\ Says(Disowns(Event.at, [m EXCEPT !.type = "POLL"]))
PolledAlive(m) ==
    /\ m.type = "POLL"
    /\ IF AtClient THEN c.st = "open" /\ m.csn = c.peer ELSE s.st = "open" /\ m.csn = s.peer
    /\ Silent
(* Section 9, an END in states 4 and 1 (STP-CC-022). *)
Ends(m) ==
    /\ m.type = "END" /\ m.kind # "unknown" /\ Away(IF AtClient THEN c ELSE s)
    /\ Emit(Endak(m), {}) /\ Unmoved
(* A STAT that comes before any SD, or acknowledges no more than before, says nothing. *)
NothingNew(m) ==
    /\ m.type = "STAT" /\ m.r = 0
    /\ IF AtClient THEN c.st = "open" /\ m.csn = c.peer ELSE s.st = "open" /\ m.csn = s.peer
    /\ Silent

(* Where nothing needs to be done: section 9 says "discard", or answers are limited. *)
ClientMayIgnore(m) ==
    CASE m.type = "BGAK" -> ~(c.st = "begun" /\ m.peer = c.csn /\ m.r <= c.sent)
      [] m.type = "END" -> /\ ~(c.st \in {"begun", "open"} /\ Valid(c, m))
                           /\ Away(c) => (m.kind = "unknown" \/ Stray \/ ~Valid(c, m))
      [] m.type = "BGREJ" -> ~(c.st = "begun" /\ m.peer = c.csn)
      [] m.type = "ENDAK" -> TRUE
      [] OTHER -> c.st = "open" => m.csn # c.peer
ServerMayIgnore(m) ==
    CASE m.type = "END" -> /\ ~(s.st = "open" /\ Valid(s, m))
                           /\ Away(s) => (m.kind = "unknown" \/ Stray \/ ~Valid(s, m))
      [] m.type = "BEGIN" -> s.st = "over" /\ m.csn = s.peer                     \* STP-CC-028
      [] m.type \in {"ENDAK", "BGREJ"} -> TRUE
      [] OTHER -> s.st = "open" => m.csn # s.peer

ClientArrival(m) ==
    \/ ClientBgak(m) \/ (m.type = "BGREJ" /\ m.reason # 6 /\ ClientBgrej(m)) \/ ClientSd(m)
    \/ ClientStat(m) \/ ClientEnd(m)
    \/ ClientMayIgnore(m) /\ Silent
ServerArrival(m) ==
    \/ ServerBegin(m) \/ ServerSd(m) \/ ServerStat(m) \/ ServerEnd(m) \/ ServerRefuses(m)
    \/ ServerMayIgnore(m) /\ Silent

Known_(m) == m \in net \/ m.type = "POLL" \/ (m.type = "STAT" /\ m.r = 0)
Arriving == Is("arrive") \/ Is("sd") \/ Is("report")
Arrived ==
    /\ Arriving /\ Known_(Event.m)
    /\ Event.m.from = Other
    /\ \/ IF AtClient THEN ClientArrival(Event.m) ELSE ServerArrival(Event.m)
       \/ Polled(Event.m) \/ PolledAlive(Event.m) \/ Ends(Event.m) \/ NothingNew(Event.m)

----------------------------------------------------------------------------
(* What shows after a step *)

Speaks == Event.k \notin {"start", "forged", "told", "gone"} /\ Event.end # 0

End == IF AtClient THEN C'[Port] ELSE S'[Port]
StateShows ==
    IF AtClient
    THEN /\ End.csn = Event.end
         /\ End.st = CASE Event.state = 2 -> "begun" [] Event.state = 10 -> "open" [] OTHER -> "over"
    ELSE IF Event.state = 10 THEN End.st = "open" /\ End.csn = Event.end
                             ELSE End.csn = Event.end => End.st = "over"
StrayShows == Is("arrive") /\ Stray /\ Event.m.type # "BEGIN" => End.st # "open"
Alive == Event.state \in {2, 10} \/ Is("release")
PeerShows == IF AtClient THEN End.peer = Event.peer
             ELSE Alive \/ End.csn = Event.end => End.peer = Event.peer
SentShows == Alive /\ Event.vt_s >= 0 => End.sent = Event.vt_s
AckedShows == Alive /\ Event.vt_a >= 0 => End.acked = Event.vt_a
TakenShows == Alive /\ Event.vr_r >= 0 => End.rcv = Event.vr_r
HeldShows == Is("sd") \/ (Is("report") /\ Event.m.type = "POLL") => Numbers(End.held) = Event.held
ToldAs(result) ==
    IF AtClient
    THEN calls' = IF result = "" THEN calls ELSE Told(Event.end, result)
    ELSE \A i \in DOMAIN opened :
            opened'[i].told = IF result # "" /\ opened[i].own = Event.end
                              THEN ToldOnce(opened[i].told, result) ELSE opened[i].told
ToldShows == Is("arrive") => ToldAs(Event.told)
(* Answers to what belongs to no connection may be limited to ten a second. *)
Limited == Stray /\ Event.sent = {} /\ Is("arrive") /\ Event.m.type \in {"BGAK", "SD", "POLL", "END"}
ReplyShows == reply' = Event.sent \/ Limited
Opening == Len(opened') > Len(opened)
OwnRises == Opening => Rises

(* STP-CC-009: the user is told once, and before the connection is forgotten.                *)
This == <<Event.at, Event.end>>
Telling == Is("told") \/ (Is("arrive") /\ Event.told # "")
ToldInTime == /\ Telling => This \notin heard
              /\ Is("gone") => This \in heard

Step == \/ Begun \/ BegunAgain \/ Sent \/ Released \/ Put \/ IsTold \/ Gone \/ Started \/ IsForged
        \/ Arrived

Shows == /\ ReplyShows /\ ToldShows
         /\ Speaks => StateShows /\ PeerShows /\ SentShows /\ AckedShows /\ TakenShows /\ HeldShows
         /\ StrayShows
         /\ OwnRises

TraceNext ==
    /\ ToldInTime /\ Step /\ Shows
    /\ newest' = IF Is("start") THEN [newest EXCEPT ![Event.at] = 0]
                 ELSE IF Opening \/ (Is("begin") /\ Event.first) THEN [newest EXCEPT ![Event.at] = Event.end]
                 ELSE newest
    /\ heard' = IF Is("start") THEN {who \in heard : who[1] # Event.at}
                ELSE IF Telling THEN heard \cup {This} ELSE heard
    /\ at' = at + 1
    /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, at, reply, newest, heard>>

----------------------------------------------------------------------------
(* Why the next event is not possible, and what had to be instead: of the values that something can    *)
(* have, those with which a step is possible. Only asked where nothing follows.                         *)

Kind == Event.m.type
Own == IF AtClient THEN c ELSE s
Stands == Own.st
Far == Max(Max(c.sent, s.sent), Max(c.rcv, s.rcv)) + Cardinality(c.held \cup s.held) + 2

Cookie(k) == CASE k = NoCookie -> "no cookie"
               [] k = Fresh /\ Arriving -> "a fresh cookie"
               [] OTHER -> "the server's cookie " \o ToString(k)
Said(m) ==
    CASE m.type = "BEGIN" -> (IF m.data THEN "a BEGIN with data" ELSE "an empty BEGIN") \o (IF m.fin THEN " and FIN" ELSE "")
      [] m.type = "BGAK" -> "a BGAK with N(R) " \o ToString(m.r) \o " and " \o Cookie(m.ck)
      [] m.type = "BGREJ" -> "a BGREJ with reason " \o ToString(m.reason) \o " and " \o Cookie(m.ck)
      [] m.type = "END" -> CASE m.kind = "unknown" -> "an END with R flag"
                             [] m.kind = "abort" -> "an END with A flag"
                             [] OTHER -> "a normal END with N(R) " \o ToString(m.r)
      [] OTHER -> "an " \o m.type

(* What could be sent at an event of this kind. *)
Candidates ==
    IF Is("begin") THEN {BEGIN(Port, Event.end, Event.ck, data, fin) : data, fin \in BOOLEAN}
    ELSE IF Is("release")
    THEN {END(Event.at, Port, Own.csn, Own.peer, k, r) : k \in {"release", "abort"}, r \in 0..Far}
    ELSE IF ~Arriving THEN {}
    ELSE (IF Kind = "END" THEN Endak(Event.m) ELSE {})
         \cup (IF Kind \in {"BEGIN", "BGAK", "SD", "POLL"} THEN {Disowns(Event.at, Event.m)} ELSE {})
         \cup (IF Kind = "BEGIN"
               THEN {BGREJ(Port, Event.m.csn, 6, Fresh), BGREJ(Port, Event.m.csn, 5, NoCookie)}
                    \cup {BGAK(Port, own, Event.m.csn, r, Fresh) : own \in {s.csn, Event.end}, r \in 0..Far}
               ELSE {})
Sendable == {x \in {{}} \cup {{x} : x \in Candidates} : ENABLED (Step /\ reply' = x)}
MustBeSent(rule) ==
    "what is sent must be "
    \o (IF Sendable = {} THEN "nothing like it"
        ELSE OneOf({IF x = {} THEN "nothing" ELSE Said(CHOOSE m \in x : TRUE) : x \in Sendable}))
    \o " (" \o rule \o ")"
WrongAnswer ==
    CASE Is("release") -> MustBeSent("STP-CC-025")
      [] ~Arriving -> MustBeSent("section 9")
      [] Kind = "BEGIN" /\ s.st = "open" /\ Event.m.csn = s.peer -> MustBeSent("STP-CC-015")
      [] Kind = "BEGIN" /\ IsUsed(Event.m.ck) -> "a used cookie: " \o MustBeSent("STP-CC-038")
      [] Kind = "BEGIN" /\ ~IsGood(Event.m.ck) -> "no good cookie: " \o MustBeSent("STP-CC-036")
      [] Kind = "BEGIN" -> MustBeSent("STP-CC-012")
      [] Kind = "END" -> MustBeSent("STP-CC-022")
      [] Kind \in {"BGAK", "SD", "POLL"} -> MustBeSent("STP-CC-020")
      [] OTHER -> MustBeSent("section 9")

Number(state) == CASE state = "begun" -> "2" [] state = "open" -> "10" [] OTHER -> "4 or 1"
Closed == "4 or 1"
States == {Number(state) : state \in {x \in {"idle", "begun", "open", "over"} : ENABLED (Step /\ End.st = x)}}
StateRule ==
    CASE ~Arriving -> "section 9"
      [] Kind = "END" -> "which of them an END ends: STP-CC-021, STP-CC-027"
      [] Kind = "BEGIN" /\ s.st = "open" /\ Event.m.csn = s.peer -> "a repeated BEGIN changes nothing: STP-CC-015"
      [] Kind = "BEGIN" /\ Event.state = 10 -> "its cookie is not good: STP-CC-035, STP-CC-038"
      [] Kind = "BEGIN" -> "a BEGIN that opens nothing changes nothing: STP-CC-041"
      [] Kind = "BGAK" /\ AtClient -> "a BGAK to this caller opens, no other: STP-CC-020, STP-SEC-005"
      [] Kind = "BGREJ" -> "a BGREJ to this caller counts, no other: STP-CC-037, STP-SEC-005"
      [] Kind \in {"SD", "STAT", "POLL"} -> "data and reports open and end nothing: STP-CC-001"
      [] OTHER -> "section 9"
WrongState == "the state after it must be " \o OneOf(States) \o ", of the connection that this end has ("
              \o StateRule \o ")"

Peers == {Unknown, c.peer, s.peer} \cup (IF Arriving /\ "csn" \in DOMAIN Event.m THEN {Event.m.csn} ELSE {})
Peer(csn) == CASE csn = Unknown -> "unknown"
               [] Arriving /\ "csn" \in DOMAIN Event.m /\ Event.m.csn = csn -> "that of the packet"
               [] OTHER -> "the one before"
MayTell == {""} \cup IF AtClient /\ \A i \in DOMAIN begins : begins[i].csn # Event.end THEN {} ELSE {"success", "failure"}
Wrong ==
    CASE Speaks /\ ~ENABLED (Step /\ StateShows) -> WrongState
      [] ~ENABLED (Step /\ ReplyShows) -> WrongAnswer
      [] ~ENABLED (Step /\ StrayShows) -> "there is a connection: the state after it must be 10 (STP-CC-020)"
      [] ~ENABLED (Step /\ OwnRises) -> "the server's CSN must be above that of its connection before (STP-CC-010)"
      [] ~ENABLED (Step /\ ToldShows) ->
            "what the user is told must be " \o OneOf({IF r = "" THEN "nothing" ELSE r :
                r \in {x \in MayTell : ENABLED (Step /\ ToldAs(x))}}) \o " (STP-CC-005, STP-CC-006, STP-CC-027)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ PeerShows) ->
            "the peer's CSN must be " \o OneOf({Peer(v) : v \in {x \in Peers : ENABLED (Step /\ StateShows /\ End.peer = x)}})
            \o " (STP-CC-001)"
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ SentShows) ->
            Must("VT(S)", {v \in 0..Far : ENABLED (Step /\ StateShows /\ End.sent = v)}, "STP-DT-016")
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ AckedShows) ->
            Must("VT(A)", {v \in 0..Far : ENABLED (Step /\ StateShows /\ End.acked = v)}, "STP-DT-010")
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ TakenShows) ->
            Must("VR(R)", {v \in 0..Far : ENABLED (Step /\ StateShows /\ End.rcv = v)}, "STP-CC-008")
      [] Speaks /\ ~ENABLED (Step /\ StateShows /\ HeldShows) ->
            "what is held must be "
            \o ToString({v \in 0..Far : ENABLED (Step /\ StateShows /\ v \in Numbers(End.held))}) \o " (STP-DT-019)"
      [] OTHER -> "state, variables and answer must be those of one and the same step (section 9)"

Offered == IF c.st = "begun" THEN {m.ck : m \in {x \in net : x.type = "BGREJ" /\ x.peer = c.csn}}
           ELSE {NoCookie} \cup (IF stock = <<>> THEN {} ELSE {Head(stock)})
NextSd == MustBe("the next SD", Own.sent, "STP-DT-016")

(* Nothing that arrives can be what was never sent. *)
SentSo == {x \in net : x.type = Kind /\ x.from = Other}
SameCsn == {x \in SentSo : "csn" \in DOMAIN x /\ x.csn = Event.m.csn}
Unsent ==
    "the " \o Other \o " has sent no such " \o Kind \o ": "
    \o (IF SentSo = {} THEN "none must arrive (section 9)"
        ELSE IF "csn" \in DOMAIN Event.m /\ SameCsn = {} THEN "its CSN must be one that the sender has chosen (STP-CC-001)"
        ELSE IF Kind = "SD" /\ Event.m.n \notin {x.n : x \in SameCsn} THEN Must("its N(S)", {x.n : x \in SameCsn}, "STP-DT-016")
        ELSE IF Kind = "STAT" THEN Must("its N(R)", {x.r : x \in SameCsn}, "STP-DT-018")
        ELSE "its fields must be those of " \o OneOf({Said(x) : x \in SentSo}) \o " (section 9)")

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] ENABLED TraceNext -> "followed"
      [] Telling /\ This \in heard ->
            "the user has been told before how this connection ended, and must be told once (STP-CC-009)"
      [] Is("gone") /\ This \notin heard ->
            "the user was never told how this connection ended, and must be before it is forgotten (STP-CC-009)"
      [] Is("begin") /\ Event.first /\ ~Rises -> "the client's CSN must be above that of its call before (STP-CC-010)"
      [] Is("begin") /\ Event.first /\ ~EmptyWithout -> "without a cookie a BEGIN must be empty (STP-CC-034)"
      [] Is("begin") /\ Event.first /\ c.st = "open" ->
            "the client's connection is not over: its state must be " \o Closed \o " (section 9)"
      [] Is("begin") /\ Event.first ->
            "the BEGIN must have " \o (IF Offered = {} THEN "a cookie that a BGREJ has given" ELSE OneOf({Cookie(k) : k \in Offered}))
            \o " (STP-CC-037, STP-CC-039)"
      [] Is("begin") ->
            "a repeated BEGIN must be the same, and the state must be 2: nothing has answered it (STP-CC-014, STP-CC-016)"
      [] Is("send") /\ AtClient /\ c.st = "begun" /\ begins[TryOf(c.csn)].ck = NoCookie ->
            "there is no cookie: SDs sent before the BGAK must be none (STP-CC-002)"
      [] Is("send") /\ AtClient /\ c.st = "begun" /\ c.sent >= EarlyCredit ->
            MustBeAtMost("SDs sent before the BGAK", EarlyCredit, "STP-CC-002")
      [] Is("send") /\ Stands \notin {"open", "begun"} -> "the state must be 10 (STP-CC-035, STP-CC-028)"
      [] Is("send") /\ Own.fin # None -> MustBe("the last SD, with the FIN,", Own.fin, "STP-CC-024")
      [] Is("send") /\ ~ENABLED Step -> NextSd
      [] Is("release") /\ Stands = "over" -> "the connection is over: what is sent must be nothing (STP-CC-025)"
      [] Is("release") /\ ~ENABLED Step -> "the connection must be the one that this end has (STP-CC-001)"
      [] Is("put") -> "nobody has asked: what is sent must be an END of before, or nothing (STP-CC-028)"
      [] Is("told") /\ Event.result = "success" ->
            "not all is through and acknowledged: the outcome must be failure, or none yet (STP-CC-005)"
      [] Is("told") -> "nothing has failed: the outcome must be success, or none yet (STP-CC-006)"
      [] Is("gone") -> "the state must be " \o Closed \o " (STP-CC-009)"
      [] Arriving /\ Event.m.from = Other /\ ~Known_(Event.m) -> Unsent
      [] Arriving /\ Kind = "BEGIN" /\ Event.state = 10 /\ Event.end # s.csn /\ IsGood(Event.m.ck) /\ ~Rises ->
            "the server's CSN must be above that of its connection before (STP-CC-010)"
      [] (Is("sd") \/ Is("report")) /\ Away(Own) ->
            "the connection is over: the state must be 10 for data and reports to count (STP-CC-028)"
      [] (Is("sd") \/ Is("report")) /\ Event.m.csn # Own.peer ->
            "the packet's CSN must be that of the present incarnation (STP-CC-001)"
      [] Arriving /\ ~ENABLED Step ->
            "it must not be ignored, nor is anything known that it calls for ("
            \o (IF Kind = "END" THEN "STP-CC-022" ELSE IF Kind = "BGREJ" THEN "STP-CC-037" ELSE "section 9") \o ")"
      [] ENABLED Step -> Wrong
      [] OTHER -> "the event must be one of section 9 (section 9)"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
