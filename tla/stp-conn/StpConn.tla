------------------------------- MODULE StpConn -------------------------------
(* STP's connections (STP/1 section 5 after HK99-STP section VII.B; requirements STP-CC): BEGIN with  *)
(* data, confirmation, graceful and abrupt release, successive incarnations, a server that restarts.  *)
(*                                                                                                    *)
(* A client opens one connection after the other, each with its own connection sequence number (CSN), *)
(* and the server chooses a CSN for each BEGIN that it takes. On every connection the client sends    *)
(* the SDs 0..Packets-1, the first of them in the BEGIN, and the server 0..Replies-1; the last of     *)
(* each carries the FIN flag.                                                                         *)
(* The network is the set of all messages ever sent: any of them may be delivered late, often, out of *)
(* order, or never.                                                                                   *)
EXTENDS Integers, Sequences, FiniteSets, Operators

CONSTANTS
    Connections,    \* connections the client opens
    Packets,        \* SDs of the client on each
    Replies,        \* SDs of the server on each
    EarlyCredit,    \* SDs that may be sent before the BEGIN is acknowledged
    Restarts,       \* budget of server restarts
    Takes,          \* how often a server takes the same BEGIN (budget of its copies)
    Aborts,         \* budget of aborts
    Strays          \* whether packets without a connection are answered

VARIABLES
    cState,         \* "idle", "begun", "open", "over" (END sent, or nothing left)
    c,              \* the client's end of its newest connection
    told,           \* what the client's user was told of each connection
    sState,         \* "listen", "open", "over"
    s,              \* the server's end of the connection that was confirmed last
    pending,        \* ends of those that wait for confirmation
    sCache,         \* highest CSN known from this client; 0 when unknown (after a restart)
    sTold,          \* what the server's user was told of the end of each connection
    base, taken,    \* the server's CSNs: where they began, and how many were chosen for each BEGIN
    epoch,          \* restarts so far
    net,
    log,            \* data handed to the server's user since the restart: pairs of CSN and number
    got, back,      \* ghosts: all data ever handed to the server's user, and to the client's
    finished,       \* ghost: connections whose end of stream the server's user was told of
    since,          \* ghost: first CSN that was not over when the server started
    abandoned       \* ghost: who aborted which connection

clientVars == <<cState, c, told, back>>
serverVars == <<sState, s, pending, sCache, sTold, base, taken, epoch, log, got, finished, since>>
vars == <<clientVars, serverVars, net, abandoned>>

Csns == 1..Connections
None == -1          \* no FIN known
Unknown == 0        \* the peer's CSN is not known

BEGIN(csn, data, fin) == [type |-> "BEGIN", from |-> "client", csn |-> csn, data |-> data, fin |-> fin]
BGAK(from, csn, peer, r, asks) ==
    [type |-> "BGAK", from |-> from, csn |-> csn, peer |-> peer, r |-> r, asks |-> asks]
SD(from, csn, n, fin) == [type |-> "SD", from |-> from, csn |-> csn, n |-> n, fin |-> fin]
STAT(from, csn, r)  == [type |-> "STAT", from |-> from, csn |-> csn, r |-> r]   \* or USTAT
END(from, csn, peer, kind, r) ==
    [type |-> "END", from |-> from, csn |-> csn, peer |-> peer, kind |-> kind, r |-> r]
NOBODY(from, csn)   == [type |-> "NOBODY", from |-> from, csn |-> csn]  \* END with R flag and a tag only

(* An end of a connection. *)
New(csn, peer) == [csn |-> csn, peer |-> peer, sent |-> 0, fin |-> None, acked |-> 0,
                   rcv |-> 0, held |-> {}, rfin |-> None]

(* What a step sends: control packets, and data or reports on it.                                     *)
Emit(control, data) == net' = net \cup control \cup data

(* An ENDAK tells nothing but that the END need not be repeated; here nothing is.                     *)
EndAcknowledged(m) == {}

Init ==
    /\ cState = "idle" /\ c = New(0, Unknown)
    /\ told = [x \in Csns |-> "nothing"] /\ abandoned = {}
    /\ sState = "listen" /\ s = New(0, Unknown) /\ pending = {} /\ sCache = 0
    /\ sTold = [x \in Csns |-> "nothing"]
    /\ base = 20 /\ taken = [x \in Csns |-> 0] /\ epoch = 0
    /\ net = {} /\ log = <<>> /\ got = {} /\ back = {} /\ finished = {} /\ since = 1

----------------------------------------------------------------------------
(* Data, the same at both ends *)

(* SDs out of order are held (STP-DT-019); those in order are handed over.                            *)
Advanced(e) ==
    LET next == CHOOSE n \in e.rcv..(e.rcv + Cardinality(e.held)) :
                    n \notin e.held /\ \A k \in e.rcv..(n - 1) : k \in e.held
    IN [e EXCEPT !.rcv = next, !.held = {n \in @ : n > next}]
Held(e, n, fin) ==
    IF n < e.rcv \/ n \in e.held \/ (e.rfin # None /\ n > e.rfin) THEN e
    ELSE [e EXCEPT !.held = @ \cup {n}, !.rfin = IF fin THEN n ELSE @]
Take(e, n, fin) == Advanced(Held(e, n, fin))
HandedOver(e, f, n) == [k \in 1..(f.rcv - e.rcv) |-> e.rcv + k - 1]

Report(from, e) == IF e.rcv > 0 THEN {STAT(from, e.csn, e.rcv)} ELSE {}

(* STP-CC-024: nothing follows the FIN. *)
NewSd(e, ends) == [e EXCEPT !.sent = @ + 1, !.fin = IF ends THEN e.sent ELSE None]
ClientEnds(n) == n = Packets - 1
ServerEnds(n) == n = Replies - 1

(* STP-CC-004: the FIN has its number and waits for its turn. *)
Finished(e) == e.rfin # None /\ e.rcv > e.rfin

(* STP-CC-005: the FIN is acknowledged, and with it everything before; and the peer's has arrived.    *)
Acknowledged(e, r) == e.fin # None /\ r > e.fin
Complete(e) == Acknowledged(e, e.acked) /\ Finished(e)

----------------------------------------------------------------------------
(* Client *)

(* STP-CC-010 *)
NextCsn == c.csn + 1
MayBegin == c.csn < Connections

BeginWith(carries) ==
    /\ cState \in {"idle", "over"} /\ MayBegin /\ NextCsn > c.csn
    /\ cState' = "begun"
    /\ LET e == New(NextCsn, Unknown)
           f == IF carries THEN NewSd(e, ClientEnds(0)) ELSE e
       IN /\ c' = f
          /\ Emit({BEGIN(NextCsn, carries, f.fin = 0)}, {})
    /\ UNCHANGED <<told, back, abandoned, serverVars>>
Begin == BeginWith(TRUE)

(* STP-CC-002: before the acknowledgment only what the early credit permits. *)
MaySend == cState = "open" \/ (cState = "begun" /\ c.sent < EarlyCredit)

ClientSends ==
    /\ MaySend /\ c.fin = None
    /\ c' = NewSd(c, ClientEnds(c.sent))
    /\ Emit({}, {SD("client", c.csn, c.sent, ClientEnds(c.sent))})
    /\ UNCHANGED <<cState, told, back, abandoned, serverVars>>

Live == cState \in {"begun", "open"}

(* The user is told once; whoever is complete may have been told before the END.                      *)
Over(result) ==
    /\ cState' = "over"
    /\ told' = [told EXCEPT ![c.csn] = IF @ = "success" THEN @ ELSE result]

(* STP-CC-003, STP-CC-007: the client confirms one number of the server; a newer one means that the   *)
(* server has lost the connection.                                                                   *)
OtherNumber(own) == own > c.peer
LosesConnection(own) ==
    /\ Over("failure") /\ UNCHANGED c
    /\ Emit({END("client", c.csn, own, "abort", 0)}, {})

ClientConfirms(own) == BGAK("client", c.csn, own, c.rcv, FALSE)

ClientOpens(m) ==
    /\ cState = "begun" /\ m.peer = c.csn /\ m.r <= c.sent
    /\ cState' = "open" /\ c' = [c EXCEPT !.peer = m.csn, !.acked = Max(@, m.r)]
    /\ Emit(IF m.asks THEN {ClientConfirms(m.csn)} ELSE {}, {})                  \* STP-CC-017
    /\ UNCHANGED told
ClientAnswers(m) ==     \* STP-CC-017
    /\ cState = "open" /\ m.peer = c.csn /\ m.csn = c.peer /\ m.asks
    /\ Emit({ClientConfirms(m.csn)}, {})
    /\ UNCHANGED <<cState, c, told>>
ClientHearsOther(m) == cState = "open" /\ m.peer = c.csn /\ OtherNumber(m.csn) /\ LosesConnection(m.csn)
ClientDisowns(m) ==     \* STP-CC-020
    /\ Strays /\ (cState \in {"idle", "over"} \/ (cState = "begun" /\ m.peer # c.csn))
    /\ Emit({END("client", m.peer, m.csn, "unknown", 0)}, {})
    /\ UNCHANGED <<cState, c, told>>
ClientEndsAgain(m) ==   \* section 5.5: the END of an abort could not name the server's CSN
    /\ cState = "over" /\ m.peer = c.csn /\ c.peer = Unknown /\ <<"client", c.csn>> \in abandoned
    /\ c' = [c EXCEPT !.peer = m.csn]
    /\ Emit({END("client", c.csn, m.csn, "abort", 0)}, {})
    /\ UNCHANGED <<cState, told>>

ClientBgak(m) ==
    /\ m.type = "BGAK" /\ m.from = "server"
    /\ \/ ClientOpens(m) \/ ClientAnswers(m) \/ ClientHearsOther(m)
       \/ ClientDisowns(m) \/ ClientEndsAgain(m)
    /\ UNCHANGED <<back, abandoned, serverVars>>

ClientSd(m) ==
    /\ m.type = "SD" /\ m.from = "server" /\ cState = "open" /\ m.csn = c.peer
    /\ LET f == Take(c, m.n, m.fin)
       IN /\ c' = f
          /\ back' = back \cup {<<c.csn, n>> : n \in c.rcv..(f.rcv - 1)}
          /\ Emit({}, Report("client", f))
    /\ UNCHANGED <<cState, told, abandoned, serverVars>>

ClientStat(m) ==
    /\ m.type = "STAT" /\ m.from = "server" /\ cState = "open" /\ m.csn = c.peer
    /\ c' = [c EXCEPT !.acked = Max(@, m.r)]
    /\ Emit({}, {})
    /\ UNCHANGED <<cState, told, back, abandoned, serverVars>>

(* STP-CC-025 *)
ClientReleases ==
    /\ cState = "open" /\ Complete(c)
    /\ Over("success")
    /\ Emit({END("client", c.csn, c.peer, "release", c.rcv)}, {})
    /\ UNCHANGED <<c, back, abandoned, serverVars>>

(* STP-CC-006: an abort is a failure to both users. *)
AbortResult == "failure"
MayAbort == Cardinality(abandoned) < Aborts

ClientAborts ==
    /\ Live /\ MayAbort
    /\ Over(AbortResult)
    /\ abandoned' = abandoned \cup {<<"client", c.csn>>}
    /\ Emit({END("client", c.csn, c.peer, "abort", 0)}, {})
    /\ UNCHANGED <<c, back, serverVars>>

(* STP-CC-027: a premature END is an abort. *)
EndResult(e, m) ==
    IF m.kind = "release" /\ Acknowledged(e, m.r) /\ Finished(e) THEN "success" ELSE AbortResult

(* STP-CC-021: an END must know the connection. *)
EndsClient(m) == \/ cState = "open" /\ m.csn = c.peer /\ m.peer = c.csn
                 \/ cState = "begun" /\ m.kind # "unknown" /\ m.peer = c.csn

ClientEnd(m) ==
    /\ m.type = "END" /\ m.from = "server"
    /\ \/ EndsClient(m) /\ Over(EndResult(c, m))
       \/ cState \in {"idle", "over"} /\ m.kind # "unknown" /\ UNCHANGED <<cState, told>>
    /\ Emit(IF m.kind = "unknown" THEN {} ELSE EndAcknowledged(m), {})           \* STP-CC-022
    /\ UNCHANGED <<c, back, abandoned, serverVars>>

(* STP-CC-021: a hint draws a challenge, no more. *)
ClientAsks == Emit({BGAK("client", c.csn, c.peer, c.rcv, TRUE)}, {}) /\ UNCHANGED <<cState, told>>
ClientNobody(m) ==
    /\ m.type = "NOBODY" /\ m.from = "server" /\ cState = "open" /\ m.csn = c.csn
    /\ ClientAsks
    /\ UNCHANGED <<c, back, abandoned, serverVars>>

----------------------------------------------------------------------------
(* Server *)

Deliver(csn, e, f, n) ==
    LET items == HandedOver(e, f, n)
    IN /\ log' = log \o [k \in DOMAIN items |-> <<csn, items[k]>>]
       /\ got' = got \cup {<<csn, items[k]>> : k \in DOMAIN items}
       /\ finished' = IF Finished(f) THEN finished \cup {csn} ELSE finished

(* What a BGAK acknowledges before the data of the BEGIN has been handed over.                        *)
AckOfWaiting == 0

(* STP-CC-003: newer than everything known from this client; unknown clients are asked, and one may   *)
(* always be asked.                                                                                   *)
Newer(csn) == csn > sCache
Known == sCache > 0

(* STP-CC-010: the server's CSNs rise as long as it lives.                                            *)
RECURSIVE Sum(_, _)
Sum(f, n) == IF n = 0 THEN 0 ELSE f[n] + Sum(f, n - 1)
NextOwn == base + 1 + Sum(taken, Connections)
MayTake(csn) == taken[csn] < Takes

Listens == sState \in {"listen", "over"}
Waiting(csn) == {p \in pending : p.peer = csn}

(* The pending ones that stay when one is confirmed. *)
StillPending(p) == {}

Called(m) == IF m.data THEN Held(New(NextOwn, m.csn), 0, m.fin) ELSE New(NextOwn, m.csn)
Counted(m) == taken' = [taken EXCEPT ![m.csn] = @ + 1]

(* The server's user has said all it has to say before; what is sent early may still arrive late.      *)
Spoken(e) == [e EXCEPT !.sent = Replies, !.fin = Replies - 1]
Speech(e) == {SD("server", e.csn, n, ServerEnds(n)) : n \in e.sent..(Spoken(e).sent - 1)}

Opens(p, f, cache) ==
    /\ sState' = "open" /\ s' = Spoken(f) /\ sCache' = Max(sCache, cache)
    /\ Deliver(p.peer, p, f, 0)

ServerAccepts(m) ==     \* STP-CC-013
    /\ Listens /\ Newer(m.csn) /\ Known /\ Waiting(m.csn) = {} /\ MayTake(m.csn)
    /\ LET p == Called(m)
           f == Advanced(p)
       IN /\ Opens(p, f, m.csn)
          /\ Emit({BGAK("server", f.csn, m.csn, f.rcv, FALSE)}, Report("server", f) \cup Speech(f))
    /\ pending' = StillPending(s) /\ Counted(m)
ServerAsks(m) ==        \* STP-CC-003, STP-CC-012
    /\ Listens /\ Waiting(m.csn) = {} /\ MayTake(m.csn)
    /\ pending' = pending \cup {Called(m)} /\ Counted(m)
    /\ Emit({BGAK("server", NextOwn, m.csn, AckOfWaiting, TRUE)}, {})
    /\ UNCHANGED <<sState, s, sCache, log, got, finished>>
ServerAsksAgain(csn) == \* STP-CC-015
    \E p \in Waiting(csn) :
        /\ Emit({BGAK("server", p.csn, csn, AckOfWaiting, TRUE)}, {})
        /\ UNCHANGED <<sState, s, pending, sCache, taken, log, got, finished>>
ServerRepeats(m) ==     \* STP-CC-015
    /\ sState = "open" /\ s.peer = m.csn
    /\ Emit({BGAK("server", s.csn, s.peer, s.rcv, FALSE)}, {})
    /\ UNCHANGED <<sState, s, pending, sCache, taken, log, got, finished>>
Challenge == Emit({BGAK("server", s.csn, s.peer, s.rcv, TRUE)}, {})
MeetsOther(m) == Challenge /\ UNCHANGED <<sState, s, sTold>>
ServerChallenges(m) ==  \* STP-CC-018
    /\ sState = "open" /\ s.peer # m.csn
    /\ MeetsOther(m)
    /\ UNCHANGED <<pending, sCache, taken, log, got, finished>>

ServerBegin(m) ==
    /\ m.type = "BEGIN"
    /\ \/ /\ ServerAccepts(m) \/ ServerAsks(m) \/ (Listens /\ ServerAsksAgain(m.csn)) \/ ServerRepeats(m)
          /\ UNCHANGED sTold
       \/ ServerChallenges(m)
    /\ UNCHANGED <<clientVars, abandoned, base, epoch, since>>

(* STP-CC-003: the server's own number has come back. *)
Confirms(m, p) == m.peer = p.csn

ServerConfirmed(m) ==
    /\ Listens
    /\ \E p \in Waiting(m.csn) :
        /\ Confirms(m, p)
        /\ Opens(p, Advanced(p), p.peer)
        /\ Emit(IF m.asks THEN {BGAK("server", p.csn, p.peer, Advanced(p).rcv, FALSE)} ELSE {},
                Report("server", Advanced(p)) \cup Speech(p))
        /\ pending' = StillPending(p)
ServerAnswers(m) ==     \* STP-CC-017
    /\ sState = "open" /\ m.csn = s.peer /\ m.peer = s.csn /\ m.asks
    /\ Emit({BGAK("server", s.csn, s.peer, s.rcv, FALSE)}, {})
    /\ UNCHANGED <<sState, s, pending, sCache, log, got, finished>>
ServerDisowns(m) ==     \* STP-CC-020
    /\ Strays /\ Listens /\ ~\E p \in Waiting(m.csn) : Confirms(m, p)
    /\ Emit({END("server", m.peer, m.csn, "unknown", 0)}, {})
    /\ UNCHANGED <<sState, s, pending, sCache, log, got, finished>>

ServerBgak(m) ==
    /\ m.type = "BGAK" /\ m.from = "client"
    /\ ServerConfirmed(m) \/ ServerAnswers(m) \/ ServerDisowns(m)
    /\ UNCHANGED <<clientVars, abandoned, sTold, base, taken, epoch, since>>

(* STP-CC-001: of the present incarnation. *)
Present(m) == m.csn = s.peer

ServerTakes(m) ==
    /\ sState = "open" /\ Present(m)
    /\ LET f == Take(s, m.n, m.fin)
       IN /\ s' = f
          /\ Deliver(m.csn, s, f, m.n)
          /\ Emit({}, Report("server", f))
    /\ UNCHANGED pending
AnswerToHeld(p) == {}   \* what asks for a report draws another question (STP-CC-015)
ServerHolds(m) ==       \* STP-CC-003: early SDs wait for the confirmation, too
    /\ Listens /\ m.n < EarlyCredit
    /\ \E p \in Waiting(m.csn) :
        /\ pending' = (pending \ {p}) \cup {Held(p, m.n, m.fin)}
        /\ Emit(AnswerToHeld(p), {})
    /\ UNCHANGED <<s, log, got, finished>>
ServerKnowsNone(m) ==   \* STP-CC-020
    /\ Strays /\ Listens /\ pending = {}
    /\ Emit({NOBODY("server", m.csn)}, {})
    /\ UNCHANGED <<s, pending, log, got, finished>>

ServerSd(m) ==
    /\ m.type = "SD" /\ m.from = "client"
    /\ ServerTakes(m) \/ ServerHolds(m) \/ ServerKnowsNone(m)
    /\ UNCHANGED <<clientVars, abandoned, sState, sCache, sTold, base, taken, epoch, since>>

ServerStat(m) ==
    /\ m.type = "STAT" /\ m.from = "client" /\ sState = "open" /\ Present(m)
    /\ s' = [s EXCEPT !.acked = Max(@, m.r)]
    /\ Emit({}, {})
    /\ UNCHANGED <<clientVars, abandoned, sState, pending, sCache, sTold, base, taken, epoch, log,
                   got, finished, since>>

ServerSends ==
    /\ sState = "open" /\ s.fin = None
    /\ s' = NewSd(s, ServerEnds(s.sent))
    /\ Emit({}, {SD("server", s.csn, s.sent, ServerEnds(s.sent))})
    /\ UNCHANGED <<clientVars, abandoned, sState, pending, sCache, sTold, base, taken, epoch, log, got,
                   finished, since>>

ServerOver(result) ==
    /\ sState' = "over"
    /\ sTold' = [sTold EXCEPT ![s.peer] = IF @ = "success" THEN @ ELSE result]

ServerUnmoved == UNCHANGED <<s, sCache, base, taken, epoch, log, got, finished, since>>

(* STP-CC-031: the one called says so, and leaves the release to the caller, for a while.             *)
ServerReports ==
    /\ sState = "open" /\ Complete(s)
    /\ sTold' = [sTold EXCEPT ![s.peer] = "success"]
    /\ Emit({}, {})
    /\ UNCHANGED <<clientVars, abandoned, sState, pending>> /\ ServerUnmoved

ServerReleases ==       \* STP-CC-025
    /\ sState = "open" /\ Complete(s)
    /\ ServerOver("success")
    /\ Emit({END("server", s.csn, s.peer, "release", s.rcv)}, {})
    /\ UNCHANGED <<clientVars, abandoned, pending>> /\ ServerUnmoved

ServerAborts ==
    /\ sState = "open" /\ MayAbort /\ sTold[s.peer] = "nothing"
    /\ ServerOver("failure")
    /\ abandoned' = abandoned \cup {<<"server", s.csn>>}
    /\ Emit({END("server", s.csn, s.peer, "abort", 0)}, {})
    /\ UNCHANGED <<clientVars, pending>> /\ ServerUnmoved

(* STP-CC-021: an END of another incarnation has no effect. *)
EndsServer(m) == m.csn = s.peer /\ m.peer = s.csn
EndsPending(m, p) == m.csn = p.peer /\ (m.peer = p.csn \/ (m.peer = Unknown /\ m.kind # "unknown"))

ServerEnd(m) ==
    /\ m.type = "END" /\ m.from = "client"
    /\ \/ sState = "open" /\ EndsServer(m) /\ ServerOver(EndResult(s, m)) /\ UNCHANGED pending
       \/ /\ Listens /\ \E p \in pending : EndsPending(m, p) /\ pending' = pending \ {p}
          /\ UNCHANGED <<sState, sTold>>
       \/ /\ Listens /\ m.kind # "unknown" /\ ~\E p \in pending : EndsPending(m, p)
          /\ UNCHANGED <<sState, sTold, pending>>
    /\ Emit(IF m.kind = "unknown" THEN {} ELSE EndAcknowledged(m), {})           \* STP-CC-022
    /\ UNCHANGED <<clientVars, abandoned>> /\ ServerUnmoved

(* Its numbers begin anew, anywhere (STP-CC-011): all are newer than those before, or older.           *)
Starts == {base - 10, base + 10}

Restart ==
    /\ epoch < Restarts
    /\ epoch' = epoch + 1 /\ base' \in Starts /\ taken' = [x \in Csns |-> 0]
    /\ sState' = "listen" /\ s' = New(0, Unknown) /\ pending' = {} /\ sCache' = 0
    /\ log' = <<>>
    /\ since' = IF Live THEN c.csn ELSE c.csn + 1
    /\ sTold' = [x \in Csns |-> "nothing"]
    /\ Emit({}, {})
    /\ UNCHANGED <<clientVars, abandoned, got, finished>>

----------------------------------------------------------------------------

ClientReceivesBgak   == \E m \in net : ClientBgak(m)
ClientReceivesSd     == \E m \in net : ClientSd(m)
ClientReceivesStat   == \E m \in net : ClientStat(m)
ClientReceivesEnd    == \E m \in net : ClientEnd(m)
ClientReceivesNobody == \E m \in net : ClientNobody(m)
ServerReceivesBegin  == \E m \in net : ServerBegin(m)
ServerReceivesBgak   == \E m \in net : ServerBgak(m)
ServerReceivesSd     == \E m \in net : ServerSd(m)
ServerReceivesStat   == \E m \in net : ServerStat(m)
ServerReceivesEnd    == \E m \in net : ServerEnd(m)

Next ==
    \/ Begin \/ ClientSends \/ ClientReleases \/ ClientAborts
    \/ ServerSends \/ ServerReports \/ ServerReleases \/ ServerAborts \/ Restart
    \/ ClientReceivesBgak \/ ClientReceivesSd \/ ClientReceivesStat \/ ClientReceivesEnd
    \/ ClientReceivesNobody
    \/ ServerReceivesBegin \/ ServerReceivesBgak \/ ServerReceivesSd \/ ServerReceivesStat
    \/ ServerReceivesEnd

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec /\ WF_vars(Begin) /\ WF_vars(ClientSends) /\ WF_vars(ClientReleases)
    /\ WF_vars(ServerSends) /\ WF_vars(ServerReleases)
    /\ WF_vars(ClientReceivesBgak) /\ WF_vars(ClientReceivesSd) /\ WF_vars(ClientReceivesStat)
    /\ WF_vars(ClientReceivesEnd) /\ WF_vars(ClientReceivesNobody)
    /\ WF_vars(ServerReceivesBegin) /\ WF_vars(ServerReceivesBgak) /\ WF_vars(ServerReceivesSd)
    /\ WF_vars(ServerReceivesStat) /\ WF_vars(ServerReceivesEnd)

(* All that a client needs to learn of another number.                                                *)
AnswerSpec == Spec /\ WF_vars(ClientReceivesBgak)

----------------------------------------------------------------------------
(* Properties *)

Results == {"nothing", "success", "failure"}
IsEnd(e) == /\ e.sent \in 0..Max(Packets, Replies) /\ e.acked \in 0..e.sent
            /\ e.fin \in {None} \cup (0..e.sent) /\ e.rcv \in 0..Max(Packets, Replies)
            /\ \A n \in e.held : n > e.rcv
Owns == (20 - 10 * Restarts)..(20 + 10 * Restarts + Connections * Takes)
TypeOK ==
    /\ cState \in {"idle", "begun", "open", "over"} /\ c.csn \in 0..Connections
    /\ c.peer \in {Unknown} \cup Owns /\ IsEnd(c)
    /\ \A x \in Csns : told[x] \in Results /\ sTold[x] \in Results
    /\ sState \in {"listen", "open", "over"} /\ s.csn \in {0} \cup Owns /\ s.peer \in 0..Connections
    /\ IsEnd(s)
    /\ \A p \in pending : p.csn \in Owns /\ p.peer \in Csns /\ p.rcv = 0 /\ p.sent = 0
    /\ sCache \in 0..Connections /\ epoch \in 0..Restarts /\ since \in 1..(Connections + 1)

AllOf(x) == \A n \in 0..(Packets - 1) : <<x, n>> \in got

(* STP-CC-005: both streams are through, whichever side says so. *)
SuccessMeansDelivered ==
    \A x \in Csns : (told[x] = "success" \/ sTold[x] = "success") =>
        AllOf(x) /\ \A n \in 0..(Replies - 1) : <<x, n>> \in back

(* STP-CC-004 *)
CleanEndIsComplete == \A x \in finished : AllOf(x)

(* STP-CC-008: in order, once, one connection after the other. *)
InOrderOnce ==
    \A i \in DOMAIN log :
        \/ log[i][2] = 0 /\ \A j \in 1..(i - 1) : log[j][1] < log[i][1]
        \/ log[i][2] > 0 /\ i > 1 /\ log[i - 1] = <<log[i][1], log[i][2] - 1>>

(* STP-CC-001, STP-CC-003: nothing of a connection that was over before the server started. *)
OldNeverDelivered == \A i \in DOMAIN log : log[i][1] >= since

(* STP-CC-001, STP-CC-018, STP-CC-021: what an end is told to have failed, a user has aborted, or the  *)
(* other end does not have any more.                                                                  *)
EndsWithReason ==
    /\ \A x \in Csns : sTold[x] = "failure" =>
        (<<"client", x>> \in abandoned \/ <<"server", s.csn>> \in abandoned \/ told[x] # "nothing"
         \/ s.peer # x)
    /\ \A x \in Csns : told[x] = "failure" =>
        (<<"client", x>> \in abandoned \/ sTold[x] # "nothing" \/ epoch > 0)

(* STP-CC-002 *)
EarlyDataWithinCredit ==
    cState = "begun" =>
        \A m \in net : m.type = "SD" /\ m.from = "client" /\ m.csn = c.csn => m.n < EarlyCredit

(* STP-CC-006 *)
AbortIsNoSuccess ==
    /\ \A x \in Csns : <<"client", x>> \in abandoned => told[x] # "success"
    /\ <<"server", s.csn>> \in abandoned => sTold[s.peer] # "success"

(* What an end takes for arrived, and keeps no longer, has been handed over (STP-DT-010). *)
ReleasedHasArrived ==
    /\ \A n \in 0..(c.acked - 1) : <<c.csn, n>> \in got
    /\ \A n \in 0..(s.acked - 1) : <<s.peer, n>> \in back

(* STP-CC-007: another number is not confirmed, and is reported. *)
NumberConfirmedOnce == [][c'.csn = c.csn /\ cState = "open" => c'.peer = c.peer]_vars
Answered(csn) == /\ c.csn = csn /\ cState = "open"
                 /\ \E m \in net : m.type = "BGAK" /\ m.from = "server" /\ m.peer = csn /\ m.csn > c.peer
OtherNumberEnds == \A x \in Csns : Answered(x) ~> told[x] # "nothing"

(* STP-CC-009 *)
EveryConnectionEnds == \A x \in Csns : <>(told[x] # "nothing")

(* What each connection has taken from its user, as far as it left the client.                        *)
Accepted(x) == IF c.csn = x THEN c.sent
               ELSE Cardinality({m \in net : m.type = "SD" /\ m.from = "client" /\ m.csn = x})
                    + Cardinality({m \in net : m.type = "BEGIN" /\ m.csn = x})
Service(x) == INSTANCE ReliableFifo WITH
    Items <- [k \in 1..Packets |-> <<x, k - 1>>],
    accepted <- Accepted(x),
    delivered <- SelectSeq(log, LAMBDA item : item[1] = x)
DeliveredIsPrefix == \A x \in Csns : Service(x)!DeliveredIsPrefix      \* STP-CC-008
RefinesService ==
    /\ \A x \in Csns : Service(x)!Init
    /\ [][\A x \in Csns : Service(x)!Next \/ UNCHANGED Service(x)!fifoVars]_vars

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverSuccess == \A x \in Csns : ~(told[x] = "success" /\ sTold[x] = "success")
NeverAcceptedAtOnce == [][~(sState' = "open" /\ sState # "open" /\ taken' # taken)]_vars
NeverSecondSuccess == ~\A x \in Csns : told[x] = "success"
NeverRefusesNumber ==
    ~\E m \in net : /\ m.type = "END" /\ m.from = "client" /\ m.kind = "abort"
                    /\ m.csn = c.csn /\ c.peer # Unknown /\ m.peer # c.peer
NeverServerAbort ==
    ~(<<"server", s.csn>> \in abandoned /\ <<"client", s.peer>> \notin abandoned /\ told[s.peer] = "failure")
NeverLeavesEnd == ~(sState = "open" /\ sTold[s.peer] = "success" /\ cState = "open")
NeverHeldBack == \A p \in pending : Cardinality(p.held) < 2
NeverOutOfOrder == s.held = {}
NeverDisowned ==
    ~\E m \in net : /\ m.type = "END" /\ m.from = "server" /\ m.kind = "unknown"
                    /\ m.csn = c.peer /\ m.peer = c.csn /\ cState = "over" /\ abandoned = {}
=============================================================================
