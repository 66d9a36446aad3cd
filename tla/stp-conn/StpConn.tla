------------------------------- MODULE StpConn -------------------------------
(* STP's connections (STP/1, second edition, section 5; requirements STP-CC and STP-SEC): BEGIN with  *)
(* a cookie and data, calling anew, graceful and abrupt release, successive incarnations, several     *)
(* ports, restarts of both ends, forged packets.                                                      *)
(*                                                                                                    *)
(* One client calls one server again and again. Each try has its own connection sequence number       *)
(* (CSN), and so has each connection that the server opens. On every connection the client sends the  *)
(* SDs 0..Packets-1, the first of them in a BEGIN with cookie, and the server 0..Replies-1; the last  *)
(* of each carries the FIN flag.                                                                      *)
(* The network is the set of all messages ever sent: any of them may be delivered late, often, out of *)
(* order, or never. Only BEGINs grow old; all others live for ever.                                   *)
EXTENDS Integers, Sequences, FiniteSets, Operators

CONSTANTS
    Ports,          \* ports that the client calls from
    Calls,          \* calls of the client's user
    Packets,        \* SDs of the client on each connection
    Replies,        \* SDs of the server on each
    EarlyCredit,    \* SDs that may be sent before the BEGIN is acknowledged (STP-CC-002)
    Stock,          \* cookies that the client holds at first
    Cookies,        \* budget of cookies that the server makes, those of the stock included
    Takes,          \* budget of connections that the server opens
    Room,           \* used cookies that the server has room to remember (STP-CC-038)
    Restarts,       \* budget of restarts of the server
    Departures,     \* budget of restarts of the client
    Aborts,         \* budget of aborts
    Polls,          \* whether POLLs are sent
    Strays,         \* whether an attacker, who knows no CSN and no cookie, forges packets
    Timeouts,       \* whether a caller may give up for want of an answer, beside the aborts
    Dawn, Horizon,  \* times at which the model begins and ends; both 0 for a model without time
    Good,           \* age up to which a cookie may open a connection (600 s)
    Remember,       \* age from which a used one is forgotten (900 s)
    Repeat,         \* how long a BEGIN is repeated (15 s; vbdc 45 s)
    Life            \* how long a BEGIN lives in the network (MSL, 120 s)

VARIABLES
    now,
    C, S,           \* the ends of the client and of the server, by the client's port
    stock,          \* cookies the client holds, the first received first
    begins,         \* the client's tries: CSN, call, cookie, life of the server when it began
    calls,          \* the calls: what the user was told, and which calls had ended before
    opened,         \* the server's connections, in the order of opening
    made,           \* the server's cookies, by number: life of the server, time
    used,           \* those by which it has opened a connection, as far as it remembers
    epoch, gone,    \* restarts of the server and of the client so far
    net,
    log, back,      \* ghosts: data handed to the user of the server and of the client
    abandoned       \* ghost: who has aborted which connection

clientVars == <<C, stock, begins, calls, gone, back>>
serverVars == <<S, opened, made, used, epoch, log>>
vars == <<now, clientVars, serverVars, net, abandoned>>

PortSet == 1..Ports
None == -1          \* no FIN known
Unknown == 0        \* the CSN of the peer is not known; the zero of an END with R flag
NoCookie == 0
Forged == -1        \* cookies that this server has not made, or not for this address
Foreign == -2
Stranger == -9      \* a CSN that the attacker has guessed, wrongly

(* Packets. The client's port is in all of them. *)
BEGIN(p, csn, ck, data, fin) == [type |-> "BEGIN", from |-> "client", port |-> p, csn |-> csn,
                                 ck |-> ck, data |-> data, fin |-> fin, at |-> now]
BGAK(p, own, peer, r, ck) ==
    [type |-> "BGAK", from |-> "server", port |-> p, csn |-> own, peer |-> peer, r |-> r, ck |-> ck]
BGREJ(p, peer, reason, ck) ==
    [type |-> "BGREJ", from |-> "server", port |-> p, peer |-> peer, reason |-> reason, ck |-> ck]
SD(from, p, csn, n, fin) ==
    [type |-> "SD", from |-> from, port |-> p, csn |-> csn, n |-> n, fin |-> fin]
STAT(from, p, csn, r) ==    \* or USTAT
    [type |-> "STAT", from |-> from, port |-> p, csn |-> csn, r |-> r]
POLL(from, p, csn) == [type |-> "POLL", from |-> from, port |-> p, csn |-> csn]
END(from, p, csn, peer, kind, r) == [type |-> "END", from |-> from, port |-> p, csn |-> csn,
                                     peer |-> peer, kind |-> kind, r |-> r]

(* An END with R flag (section 5.5). *)
Disowns(from, m) ==
    IF m.type = "BGAK" THEN END(from, m.port, m.peer, m.csn, "unknown", 0)
                       ELSE END(from, m.port, Unknown, m.csn, "unknown", 0)

(* What an attacker sends that has to guess CSNs and cookies. *)
Forgeries(p) ==
    {[BEGIN(p, Stranger, ck, TRUE, Packets = 1) EXCEPT !.at = Dawn] : ck \in {NoCookie, Forged, Foreign}}
    \cup {BGAK(p, Stranger, Stranger, 0, Forged), BGREJ(p, Stranger, 6, Forged)}
    \cup UNION {{SD(from, p, Stranger, 0, FALSE), POLL(from, p, Stranger),
                 END(from, p, Stranger, Unknown, "abort", 0), END(from, p, Stranger, Stranger, "abort", 0),
                 END(from, p, Stranger, Stranger, "release", 9), END(from, p, Unknown, Stranger, "unknown", 0)}
                : from \in {"client", "server"}}
Arrivals == net \cup (IF Strays THEN UNION {Forgeries(p) : p \in PortSet} ELSE {})

(* An end of a connection: "idle", "begun" (state 2), "open" (10), "over" (4, or 1 again).             *)
New(st, csn, peer) == [st |-> st, csn |-> csn, peer |-> peer, sent |-> 0, fin |-> None, acked |-> 0,
                       rcv |-> 0, held |-> {}, rfin |-> None, keeps |-> TRUE, since |-> now]
Idle == [New("idle", Unknown, Unknown) EXCEPT !.since = 0]

(* What a step sends: control packets, and data or reports on it.                                     *)
Emit(control, data) == net' = net \cup control \cup data

(* An ENDAK tells nothing but that the END need not be repeated; here nothing is.                     *)
EndAcknowledged(m) == {}

(* Cookies are received in another order than they were made, where packets overtake each other.        *)
Orders(ids) == {f \in [1..Cardinality(ids) -> ids] : \A i, j \in DOMAIN f : i # j => f[i] # f[j]}

Init ==
    /\ now = Dawn
    /\ C = [p \in PortSet |-> Idle] /\ S = [p \in PortSet |-> Idle]
    /\ stock \in Orders(1..Stock)
    /\ begins = <<>> /\ calls = <<>> /\ opened = <<>>
    /\ made = [k \in 1..Stock |-> [life |-> 0, at |-> 0]] /\ used = {}
    /\ epoch = 0 /\ gone = 0
    /\ net = {} /\ log = <<>> /\ back = <<>> /\ abandoned = {}

----------------------------------------------------------------------------
(* Data, the same at both ends *)

(* SDs out of order are held (STP-DT-019), with the incarnation that sent them; those in order are     *)
(* handed over.                                                                                       *)
Numbers(held) == {h[2] : h \in held}
Held(e, csn, n, fin) ==
    IF n < e.rcv \/ n \in Numbers(e.held) \/ (e.rfin # None /\ n > e.rfin) THEN e
    ELSE [e EXCEPT !.held = @ \cup {<<csn, n>>}, !.rfin = IF fin THEN n ELSE @]
Reach(e) == Lowest((e.rcv..(e.rcv + Cardinality(e.held))) \ Numbers(e.held))
Advanced(e) == LET next == Reach(e)
               IN [e EXCEPT !.rcv = next, !.held = {h \in @ : h[2] > next}]
HandedOver(e) == [k \in 1..(Reach(e) - e.rcv) |-> CHOOSE h \in e.held : h[2] = e.rcv + k - 1]

Report(from, p, e) == IF e.rcv > 0 THEN {STAT(from, p, e.csn, e.rcv)} ELSE {}

(* STP-CC-024: nothing follows the FIN. *)
NewSd(e, ends) == [e EXCEPT !.sent = @ + 1, !.fin = IF ends THEN e.sent ELSE None]
ClientEnds(n) == n = Packets - 1
ServerEnds(n) == n = Replies - 1

(* STP-CC-004: the FIN has its number and waits for its turn. *)
Finished(e) == e.rfin # None /\ e.rcv > e.rfin

(* STP-CC-005: the FIN is acknowledged, and with it everything before; and the peer's has arrived.    *)
Acknowledged(e, r) == e.fin # None /\ r > e.fin
Complete(e) == Acknowledged(e, e.acked) /\ Finished(e)

(* STP-CC-027: a premature END is an abort. STP-CC-006: an abort is a failure, unless the end is       *)
(* complete already.                                                                                  *)
AbortResult(e) == IF Complete(e) THEN "success" ELSE "failure"
EndResult(e, m) ==
    IF m.kind = "release" /\ Acknowledged(e, m.r) /\ Finished(e) THEN "success" ELSE AbortResult(e)

(* Section 5.5, STP-CC-021: an END must know the connection. *)
Valid(e, m) ==
    IF m.kind = "unknown" THEN m.peer = e.csn /\ m.csn \in {Unknown, e.peer}
    ELSE IF e.peer = Unknown THEN m.peer = e.csn
    ELSE m.csn = e.peer /\ (m.peer = e.csn \/ (m.kind = "abort" /\ m.peer = Unknown))

MayAbort == Cardinality(abandoned) < Aborts
ToldOnce(before, result) == IF before = "nothing" THEN result ELSE before

----------------------------------------------------------------------------
(* Client *)

(* STP-CC-010: CSNs rise. Nobody compares them; they only differ. *)
NextCsn == Len(begins) + 1
MayCall == Len(calls) < Calls
TryOf(csn) == CHOOSE i \in DOMAIN begins : begins[i].csn = csn
CallOf(csn) == begins[TryOf(csn)].call

EndedCalls == {x \in DOMAIN calls : calls[x].told # "nothing"}

(* STP-CC-034, STP-CC-040 *)
Carries(ck) == ck # NoCookie

Starts(p, csn, ck, call) ==
    LET e == New("begun", csn, Unknown)
        f == IF Carries(ck) THEN NewSd(e, ClientEnds(0)) ELSE e
    IN /\ C' = [C EXCEPT ![p] = f]
       /\ begins' = Append(begins, [csn |-> csn, call |-> call, ck |-> ck, epoch |-> epoch])
       /\ Emit({BEGIN(p, csn, ck, Carries(ck), f.fin = 0)}, {})

(* STP-CC-039: of several cookies the first received, and each for one call. *)
Rest(cookies) == Tail(cookies)
Call(p) ==
    /\ C[p].st \in {"idle", "over"} /\ MayCall
    /\ calls' = Append(calls, [told |-> "nothing", after |-> EndedCalls])
    /\ Starts(p, NextCsn, IF stock = <<>> THEN NoCookie ELSE Head(stock), Len(calls) + 1)
    /\ stock' = IF stock = <<>> THEN stock ELSE Rest(stock)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>

(* STP-CC-014, STP-CC-016: the same BEGIN again. *)
Repeats(p) ==
    /\ C[p].st = "begun" /\ now - C[p].since <= Repeat
    /\ LET x == begins[TryOf(C[p].csn)]
       IN Emit({BEGIN(p, x.csn, x.ck, Carries(x.ck), Carries(x.ck) /\ ClientEnds(0))}, {})
    /\ UNCHANGED <<now, clientVars, abandoned, serverVars>>

(* STP-CC-002: before the acknowledgment only what the early credit permits, and with a cookie only.   *)
MaySend(e) ==
    \/ e.st = "open"
    \/ e.st = "begun" /\ begins[TryOf(e.csn)].ck # NoCookie /\ e.sent < EarlyCredit

ClientSends(p) ==
    LET c == C[p]
    IN /\ MaySend(c) /\ c.fin = None
       /\ C' = [C EXCEPT ![p] = NewSd(c, ClientEnds(c.sent))]
       /\ Emit({}, {SD("client", p, c.csn, c.sent, ClientEnds(c.sent))})
       /\ UNCHANGED <<now, stock, begins, calls, gone, back, abandoned, serverVars>>

Told(csn, result) == [calls EXCEPT ![CallOf(csn)].told = ToldOnce(@, result)]

(* STP-CC-039: a call that ends in state 2 leaves a BEGIN in the network that may still open. Cookies *)
(* that answer BEGINs of before may have been made before its own, and are used no more.              *)
Voided(cookies) == <<>>
Doubted(ends) ==
    [p \in PortSet |-> IF ends[p].st = "begun" THEN [ends[p] EXCEPT !.keeps = FALSE] ELSE ends[p]]
ClientOver(p, result) ==
    LET over == [C EXCEPT ![p].st = "over", ![p].held = {}]
        failed == C[p].st = "begun"
    IN /\ C' = IF failed THEN Doubted(over) ELSE over
       /\ stock' = IF failed THEN Voided(stock) ELSE stock
       /\ calls' = Told(C[p].csn, result)

Plausible(e, r) == r <= e.sent          \* section 9, BGAK in state 2
ClientOpens(m) ==
    LET c == C[m.port]
    IN /\ c.st = "begun" /\ m.peer = c.csn /\ Plausible(c, m.r)
       /\ C' = [C EXCEPT ![m.port] = [c EXCEPT !.st = "open", !.peer = m.csn, !.acked = Max(@, m.r),
                                               !.keeps = TRUE]]
       /\ stock' = IF c.keeps THEN Append(stock, m.ck) ELSE stock
       /\ Emit({}, {})
       /\ UNCHANGED <<begins, calls>>
ClientKnowsNone(m) ==   \* STP-CC-020
    LET c == C[m.port]
    IN /\ \/ c.st \in {"idle", "over"}
          \/ c.st = "begun" /\ m.type = "BGAK" /\ m.peer # c.csn
       /\ Emit({Disowns("client", m)}, {})
       /\ UNCHANGED <<C, stock, begins, calls>>

ClientBgak(m) ==
    /\ m.type = "BGAK"
    /\ ClientOpens(m) \/ ClientKnowsNone(m)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>

(* STP-CC-037: anew, with the cookie it was given and a new CSN. *)
CallsAnew(m) ==
    /\ m.reason = 6
    /\ Starts(m.port, NextCsn, m.ck, CallOf(m.peer))
    /\ UNCHANGED <<stock, calls>>
IsRefused(m) ==         \* STP-CC-019
    /\ m.reason # 6
    /\ ClientOver(m.port, "failure")
    /\ Emit({}, {})
    /\ UNCHANGED begins
OwnRefusal(m) == m.peer = C[m.port].csn     \* STP-SEC-005

ClientBgrej(m) ==
    /\ m.type = "BGREJ" /\ C[m.port].st = "begun" /\ OwnRefusal(m)
    /\ CallsAnew(m) \/ IsRefused(m)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>

(* STP-CC-001: of the present incarnation. *)
ClientPresent(m) == m.csn = C[m.port].peer

ClientSd(m) ==
    /\ m.type = "SD" /\ m.from = "server" /\ C[m.port].st = "open" /\ ClientPresent(m)
    /\ LET c == C[m.port]
           e == Held(c, m.csn, m.n, m.fin)
           f == Advanced(e)
           items == HandedOver(e)
       IN /\ C' = [C EXCEPT ![m.port] = f]
          /\ back' = back \o [k \in DOMAIN items |-> <<c.csn, items[k][1], items[k][2]>>]
          /\ Emit({}, Report("client", m.port, f))
    /\ UNCHANGED <<now, stock, begins, calls, gone, abandoned, serverVars>>

ClientStat(m) ==
    /\ m.type = "STAT" /\ m.from = "server" /\ C[m.port].st = "open" /\ ClientPresent(m)
    /\ C' = [C EXCEPT ![m.port].acked = Max(@, m.r)]
    /\ Emit({}, {})
    /\ UNCHANGED <<now, stock, begins, calls, gone, back, abandoned, serverVars>>

(* STP-CC-042: not in state 2. It stands for STP-DT-004 and for keep-alive (STP-PL-010).               *)
MayPoll(e) == e.st = "open"
ClientPolls(p) ==
    /\ Polls /\ MayPoll(C[p])
    /\ Emit({}, {POLL("client", p, C[p].csn)})
    /\ UNCHANGED <<now, clientVars, abandoned, serverVars>>
ClientPoll(m) ==
    /\ m.type = "POLL" /\ m.from = "server"
    /\ ClientKnowsNone(m)
    /\ UNCHANGED <<now, gone, back, abandoned, serverVars>>

(* STP-CC-025 *)
ClientReleases(p) ==
    LET c == C[p]
    IN /\ c.st = "open" /\ Complete(c)
       /\ ClientOver(p, "success")
       /\ Emit({END("client", p, c.csn, c.peer, "release", c.rcv)}, {})
       /\ UNCHANGED <<now, begins, gone, back, abandoned, serverVars>>

(* STP-CC-006. In state 2 the END names no CSN of the peer.                                            *)
ClientStops(p) ==
    LET c == C[p]
    IN /\ ClientOver(p, AbortResult(c))
       /\ Emit({END("client", p, c.csn, c.peer, "abort", 0)}, {})
       /\ UNCHANGED <<now, begins, gone, back, serverVars>>
ClientAborts(p) ==
    /\ C[p].st \in {"begun", "open"} /\ MayAbort /\ ~Complete(C[p])
    /\ abandoned' = abandoned \cup {<<"client", C[p].csn>>}
    /\ ClientStops(p)

(* The transmissions of the BEGIN are used up (section 5.1). *)
ClientGivesUp(p) ==
    /\ Timeouts /\ C[p].st = "begun" /\ UNCHANGED abandoned
    /\ ClientStops(p)

ClientEnd(m) ==
    /\ m.type = "END" /\ m.from = "server"
    /\ C[m.port].st \in {"begun", "open"} /\ Valid(C[m.port], m)
    /\ ClientOver(m.port, EndResult(C[m.port], m))
    /\ Emit(IF m.kind = "unknown" THEN {} ELSE EndAcknowledged(m), {})           \* STP-CC-022
    /\ UNCHANGED <<now, begins, gone, back, abandoned, serverVars>>

(* A client that restarts has no cookies any more. Its users are gone.                                *)
Departs ==
    /\ gone < Departures
    /\ gone' = gone + 1
    /\ C' = [p \in PortSet |-> Idle] /\ stock' = <<>>
    /\ calls' = [x \in DOMAIN calls |-> [calls[x] EXCEPT !.told = ToldOnce(@, "gone")]]
    /\ Emit({}, {})
    /\ UNCHANGED <<now, begins, back, abandoned, serverVars>>

----------------------------------------------------------------------------
(* Server *)

(* The server's CSNs rise as long as it lives (STP-CC-010). *)
NextOwn == Len(opened) + 1
MayOpen == Len(opened) < Takes
Place(own) == CHOOSE i \in DOMAIN opened : opened[i].own = own

MayMake == Len(made) < Cookies
Fresh == Len(made) + 1
Makes == made' = Append(made, [life |-> epoch, at |-> now])

Age(ck) == now - made[ck].at

(* STP-SEC-006: made by this endpoint in this life, for this address. *)
Genuine(ck) == ck \in DOMAIN made /\ made[ck].life = epoch
IsUsed(ck) == ck \in used                           \* STP-CC-038
InOrder(ck) == \A k \in used : ck > k               \* STP-CC-035: later than all by which one has opened
Timely(ck) == Age(ck) <= Good                       \* STP-CC-035
IsGood(ck) == Genuine(ck) /\ Timely(ck) /\ InOrder(ck)
HasRoom == Cardinality(used) < Room

ServerTold(own, result) == [opened EXCEPT ![Place(own)].told = ToldOnce(@, result)]
ServerOver(p, result) ==
    /\ S' = [S EXCEPT ![p].st = "over", ![p].held = {}]
    /\ opened' = ServerTold(S[p].csn, result)

Deliver(own, e) ==
    LET items == HandedOver(e)
    IN log' = log \o [k \in DOMAIN items |-> <<own, items[k][1], items[k][2]>>]

(* The server's user has said all it has to say before; what is sent early may still arrive late.      *)
Spoken(e) == [e EXCEPT !.sent = Replies, !.fin = Replies - 1]
Speech(p, e) == {SD("server", p, e.csn, n, ServerEnds(n)) : n \in e.sent..(Spoken(e).sent - 1)}

Remembered(ck) == used \cup {ck}
AckOf(f) == f.rcv
ReplacedTold(p) == IF S[p].st = "open" THEN ServerTold(S[p].csn, AbortResult(S[p])) ELSE opened

ServerOpens(m) ==       \* STP-CC-012, STP-CC-035, STP-CC-041
    LET e == IF m.data THEN Held(New("open", NextOwn, m.csn), m.csn, 0, m.fin)
                       ELSE New("open", NextOwn, m.csn)
        f == Advanced([e EXCEPT !.since = 0])
    IN /\ MayOpen /\ MayMake
       /\ S' = [S EXCEPT ![m.port] = Spoken(f)]
       /\ opened' = Append(ReplacedTold(m.port),
              [own |-> NextOwn, csn |-> m.csn, ck |-> m.ck, port |-> m.port, epoch |-> epoch,
               gone |-> gone, told |-> "nothing"])
       /\ used' = Remembered(m.ck) /\ Makes
       /\ Deliver(NextOwn, e)
       /\ Emit({BGAK(m.port, NextOwn, m.csn, AckOf(f), Fresh)},
               Report("server", m.port, f) \cup Speech(m.port, f))
ServerRepeats(m) ==     \* STP-CC-015
    /\ MayMake /\ Makes
    /\ Emit({BGAK(m.port, S[m.port].csn, m.csn, S[m.port].rcv, Fresh)}, {})
    /\ UNCHANGED <<S, opened, used, log>>
ServerAsks(m) ==        \* STP-CC-036
    /\ MayMake /\ Makes
    /\ Emit({BGREJ(m.port, m.csn, 6, Fresh)}, {})
    /\ UNCHANGED <<S, opened, used, log>>
ServerSays(packet) == Emit({packet}, {}) /\ UNCHANGED <<S, opened, made, used, log>>

(* Section 9, a BEGIN in state 1. *)
Answers(m) ==
    CASE IsUsed(m.ck)   -> ServerSays(Disowns("server", m))                      \* STP-CC-038
      [] ~IsGood(m.ck)  -> ServerAsks(m)
      [] ~HasRoom       -> ServerSays(BGREJ(m.port, m.csn, 5, NoCookie))         \* STP-CC-038
      [] OTHER          -> ServerOpens(m)

ServerBegin(m) ==
    /\ m.type = "BEGIN"
    /\ IF S[m.port].st = "open" /\ S[m.port].peer = m.csn THEN ServerRepeats(m) ELSE Answers(m)
    /\ UNCHANGED <<now, clientVars, abandoned, epoch>>

(* STP-CC-001: of the present incarnation. *)
Present(m) == m.csn = S[m.port].peer

ServerSd(m) ==          \* without a connection it is discarded
    /\ m.type = "SD" /\ m.from = "client" /\ S[m.port].st = "open" /\ Present(m)
    /\ LET e == Held(S[m.port], m.csn, m.n, m.fin)
           f == Advanced(e)
       IN /\ S' = [S EXCEPT ![m.port] = f]
          /\ Deliver(f.csn, e)
          /\ Emit({}, Report("server", m.port, f))
    /\ UNCHANGED <<now, clientVars, abandoned, opened, made, used, epoch>>

ServerStat(m) ==
    /\ m.type = "STAT" /\ m.from = "client" /\ S[m.port].st = "open" /\ Present(m)
    /\ S' = [S EXCEPT ![m.port].acked = Max(@, m.r)]
    /\ Emit({}, {})
    /\ UNCHANGED <<now, clientVars, abandoned, opened, made, used, epoch, log>>

ServerSends(p) ==
    LET s == S[p]
    IN /\ s.st = "open" /\ s.fin = None
       /\ S' = [S EXCEPT ![p] = NewSd(s, ServerEnds(s.sent))]
       /\ Emit({}, {SD("server", p, s.csn, s.sent, ServerEnds(s.sent))})
       /\ UNCHANGED <<now, clientVars, abandoned, opened, made, used, epoch, log>>

ServerPolls(p) ==
    /\ Polls /\ S[p].st = "open"
    /\ Emit({}, {POLL("server", p, S[p].csn)})
    /\ UNCHANGED <<now, clientVars, abandoned, serverVars>>
ServerPoll(m) ==        \* STP-CC-020
    /\ m.type = "POLL" /\ m.from = "client" /\ S[m.port].st \in {"idle", "over"}
    /\ ServerSays(Disowns("server", m))
    /\ UNCHANGED <<now, clientVars, abandoned, epoch>>

ServerUnmoved == UNCHANGED <<now, made, used, epoch, log>>

(* STP-CC-031: the one called says so, and leaves the release to the caller, for a while.             *)
ServerReports(p) ==
    /\ S[p].st = "open" /\ Complete(S[p])
    /\ opened' = ServerTold(S[p].csn, "success")
    /\ Emit({}, {})
    /\ UNCHANGED <<clientVars, abandoned, S>> /\ ServerUnmoved

ServerReleases(p) ==
    LET s == S[p]
    IN /\ s.st = "open" /\ Complete(s)
       /\ ServerOver(p, "success")
       /\ Emit({END("server", p, s.csn, s.peer, "release", s.rcv)}, {})
       /\ UNCHANGED <<clientVars, abandoned>> /\ ServerUnmoved

ServerAborts(p) ==
    LET s == S[p]
    IN /\ s.st = "open" /\ MayAbort /\ ~Complete(s)
       /\ ServerOver(p, "failure")
       /\ abandoned' = abandoned \cup {<<"server", s.csn>>}
       /\ Emit({END("server", p, s.csn, s.peer, "abort", 0)}, {})
       /\ UNCHANGED clientVars /\ ServerUnmoved

ServerEnd(m) ==
    /\ m.type = "END" /\ m.from = "client"
    /\ S[m.port].st = "open" /\ Valid(S[m.port], m)
    /\ ServerOver(m.port, EndResult(S[m.port], m))
    /\ Emit(IF m.kind = "unknown" THEN {} ELSE EndAcknowledged(m), {})           \* STP-CC-022
    /\ UNCHANGED <<clientVars, abandoned>> /\ ServerUnmoved

(* It remembers nothing, and its secret is new. Its users are gone.                                    *)
Restart ==
    /\ epoch < Restarts
    /\ epoch' = epoch + 1
    /\ S' = [p \in PortSet |-> Idle] /\ used' = {}
    /\ opened' = [i \in DOMAIN opened |-> [opened[i] EXCEPT !.told = ToldOnce(@, "gone")]]
    /\ Emit({}, {})
    /\ UNCHANGED <<now, clientVars, abandoned, made, log>>

(* Time passes: old BEGINs are gone, and used cookies may be forgotten.                                *)
Tick ==
    /\ now < Horizon
    /\ now' = now + 1
    /\ net' = {m \in net : m.type = "BEGIN" => m.at + Life >= now + 1}
    /\ used' = {k \in used : now + 1 - made[k].at < Remember}
    /\ UNCHANGED <<clientVars, abandoned, S, opened, made, epoch, log>>

----------------------------------------------------------------------------

ClientReceivesBgak  == \E m \in Arrivals : ClientBgak(m)
ClientReceivesBgrej == \E m \in Arrivals : ClientBgrej(m)
ClientReceivesSd    == \E m \in Arrivals : ClientSd(m)
ClientReceivesStat  == \E m \in Arrivals : ClientStat(m)
ClientReceivesPoll  == \E m \in Arrivals : ClientPoll(m)
ClientReceivesEnd   == \E m \in Arrivals : ClientEnd(m)
ServerReceivesBegin == \E m \in Arrivals : ServerBegin(m)
ServerReceivesSd    == \E m \in Arrivals : ServerSd(m)
ServerReceivesStat  == \E m \in Arrivals : ServerStat(m)
ServerReceivesPoll  == \E m \in Arrivals : ServerPoll(m)
ServerReceivesEnd   == \E m \in Arrivals : ServerEnd(m)

Next ==
    \/ \E p \in PortSet :
        \/ Call(p) \/ Repeats(p) \/ ClientSends(p) \/ ClientPolls(p) \/ ClientReleases(p)
        \/ ClientAborts(p) \/ ClientGivesUp(p)
        \/ ServerSends(p) \/ ServerPolls(p) \/ ServerReports(p) \/ ServerReleases(p) \/ ServerAborts(p)
    \/ Departs \/ Restart \/ Tick
    \/ ClientReceivesBgak \/ ClientReceivesBgrej \/ ClientReceivesSd \/ ClientReceivesStat
    \/ ClientReceivesPoll \/ ClientReceivesEnd
    \/ ServerReceivesBegin \/ ServerReceivesSd \/ ServerReceivesStat \/ ServerReceivesPoll
    \/ ServerReceivesEnd

Spec == Init /\ [][Next]_vars

(* What is sent again and again arrives once; timers expire. A BGAK is sent again only while the       *)
(* caller waits for it. Users abort and ends restart, or not, and nobody has to call.                  *)
AnsweredBgak == \E m \in Arrivals : C[m.port].st = "begun" /\ ClientBgak(m)
FairSpec ==
    /\ Spec
    /\ \A p \in PortSet :
        /\ WF_vars(ClientSends(p)) /\ WF_vars(ClientPolls(p)) /\ WF_vars(ClientReleases(p))
        /\ WF_vars(ClientGivesUp(p))
        /\ WF_vars(ServerSends(p)) /\ WF_vars(ServerPolls(p)) /\ WF_vars(ServerReports(p))
        /\ WF_vars(ServerReleases(p))
    /\ WF_vars(AnsweredBgak) /\ WF_vars(ClientReceivesBgrej) /\ WF_vars(ClientReceivesSd)
    /\ WF_vars(ClientReceivesStat) /\ WF_vars(ClientReceivesPoll) /\ WF_vars(ClientReceivesEnd)
    /\ WF_vars(ServerReceivesBegin) /\ WF_vars(ServerReceivesSd) /\ WF_vars(ServerReceivesStat)
    /\ WF_vars(ServerReceivesPoll) /\ WF_vars(ServerReceivesEnd)

----------------------------------------------------------------------------
(* Properties *)

Results == {"nothing", "success", "failure", "gone"}
IsEnd(e) == /\ e.st \in {"idle", "begun", "open", "over"}
            /\ e.sent \in 0..Max(Packets, Replies) /\ e.acked \in 0..e.sent
            /\ e.fin \in {None} \cup (0..e.sent) /\ e.rcv \in 0..Max(Packets, Replies)
            /\ \A h \in e.held : h[2] > e.rcv
TypeOK ==
    /\ \A p \in PortSet : IsEnd(C[p]) /\ IsEnd(S[p]) /\ S[p].st # "begun"
    /\ \A x \in DOMAIN calls : calls[x].told \in Results
    /\ \A i \in DOMAIN opened : opened[i].told \in Results
    /\ \A i \in DOMAIN stock : stock[i] \in DOMAIN made
    /\ Len(calls) <= Calls /\ Len(made) <= Cookies

Got(own) == {i \in DOMAIN log : log[i][1] = own}
Came(csn) == {i \in DOMAIN back : back[i][1] = csn}

(* STP-CC-001, STP-CC-008: at either end in order, once, and of one incarnation.                       *)
InOrderOnce ==
    /\ \A i \in DOMAIN log :
        LET own == log[i][1] IN
        /\ log[i][2] = opened[Place(own)].csn
        /\ log[i][3] = Cardinality({j \in Got(own) : j < i})
        /\ \A j \in DOMAIN log : log[j][2] = log[i][2] => log[j][1] = own
    /\ \A i \in DOMAIN back :
        LET csn == back[i][1] IN
        /\ opened[Place(back[i][2])].csn = csn
        /\ back[i][3] = Cardinality({j \in Came(csn) : j < i})

(* STP-CC-008, STP-CC-041: between the same ports nothing follows data of a later connection.          *)
LaterOnly ==
    \A i \in DOMAIN log : \A j \in 1..(i - 1) :
        opened[Place(log[i][1])].port = opened[Place(log[j][1])].port => log[j][2] <= log[i][2]

(* STP-CC-008, STP-CC-039: no call that had ended opens a connection after one that was made then.     *)
EndedOpensNothing ==
    \A i \in DOMAIN opened : \A j \in 1..(i - 1) :
        \/ Stranger \in {opened[i].csn, opened[j].csn}
        \/ CallOf(opened[i].csn) \notin calls[CallOf(opened[j].csn)].after

(* STP-CC-038: without a restart of the server the data of a call is delivered once, however often it  *)
(* calls anew.                                                                                        *)
CallOnce ==
    \A i \in DOMAIN opened : \A j \in DOMAIN opened \ {i} :
        \/ opened[i].epoch # opened[j].epoch \/ Stranger \in {opened[i].csn, opened[j].csn}
        \/ CallOf(opened[i].csn) # CallOf(opened[j].csn)
CallOnceEver ==
    \A i \in DOMAIN opened : \A j \in DOMAIN opened \ {i} : CallOf(opened[i].csn) # CallOf(opened[j].csn)

(* STP-CC-005, STP-CC-009: both streams are through, whichever side says so. *)
Through(own) ==
    /\ Cardinality(Got(own)) = Packets
    /\ Cardinality(Came(opened[Place(own)].csn)) = Replies
SuccessMeansDelivered ==
    /\ \A x \in DOMAIN calls : calls[x].told = "success" =>
        \E i \in DOMAIN opened : /\ opened[i].csn # Stranger /\ CallOf(opened[i].csn) = x
                                 /\ Through(opened[i].own)
    /\ \A i \in DOMAIN opened : opened[i].told = "success" => Through(opened[i].own)

(* STP-CC-004 *)
CleanEndIsComplete ==
    \A p \in PortSet :
        /\ S[p].st = "open" /\ Finished(S[p]) => Cardinality(Got(S[p].csn)) = Packets
        /\ C[p].st = "open" /\ Finished(C[p]) => Cardinality(Came(C[p].csn)) = Replies

(* STP-CC-001, STP-CC-021, STP-CC-041: what an end is told to have failed, a user has aborted, the     *)
(* other end has lost or ended, or a later call of its own has replaced.                               *)
Aborted(own) ==
    LET x == opened[Place(own)] IN <<"client", x.csn>> \in abandoned \/ <<"server", own>> \in abandoned
Replaced(i) == \E j \in DOMAIN opened : j > i /\ opened[j].port = opened[i].port
Peerless(csn) == \E x \in DOMAIN begins : /\ begins[x].csn = csn /\ begins[x].epoch # epoch
ServerFailsWithReason ==
    \A i \in DOMAIN opened : opened[i].told = "failure" =>
        \/ Aborted(opened[i].own) \/ opened[i].gone # gone \/ Replaced(i)
        \/ opened[i].csn # Stranger /\ calls[CallOf(opened[i].csn)].told # "nothing"
ClientFailsWithReason ==
    \A x \in DOMAIN calls : calls[x].told = "failure" =>
        \E t \in DOMAIN begins :
            /\ begins[t].call = x
            /\ \/ <<"client", begins[t].csn>> \in abandoned \/ Timeouts \/ begins[t].epoch # epoch
               \/ \E m \in net : m.type = "BGREJ" /\ m.peer = begins[t].csn /\ m.reason = 5
               \/ \E i \in DOMAIN opened : opened[i].csn = begins[t].csn /\ opened[i].told # "nothing"

(* STP-CC-002, STP-CC-034 *)
EarlyDataWithinCredit ==
    \A m \in net : /\ m.type = "BEGIN" => (m.data => m.ck # NoCookie)
                   /\ m.type = "SD" /\ m.from = "client" =>
                        \A p \in PortSet : C[p].st = "begun" /\ C[p].csn = m.csn =>
                            m.n < EarlyCredit /\ begins[TryOf(m.csn)].ck # NoCookie

(* STP-CC-006 *)
AbortIsNoSuccess ==
    /\ \A i \in DOMAIN opened : <<"server", opened[i].own>> \in abandoned => opened[i].told # "success"
    /\ \A t \in DOMAIN begins :
        <<"client", begins[t].csn>> \in abandoned => calls[begins[t].call].told # "success"

(* STP-CC-010 *)
CsnsRise ==
    /\ \A t \in DOMAIN begins : \A u \in 1..(t - 1) : begins[u].csn < begins[t].csn
    /\ \A i \in DOMAIN opened : \A j \in 1..(i - 1) :
        opened[j].epoch = opened[i].epoch => opened[j].own < opened[i].own

(* STP-CC-009: who has not been told has a connection still. *)
NobodyForgotten ==
    /\ \A x \in DOMAIN calls : calls[x].told = "nothing" =>
        \E p \in PortSet : C[p].st \in {"begun", "open"} /\ CallOf(C[p].csn) = x
    /\ \A i \in DOMAIN opened : opened[i].told = "nothing" =>
        \E p \in PortSet : S[p].st = "open" /\ S[p].csn = opened[i].own

(* What an end takes for arrived, and keeps no longer, has been handed over (STP-DT-010). *)
ReleasedHasArrived ==
    /\ \A p \in PortSet : C[p].st = "open" => C[p].acked <= Cardinality(Got(C[p].peer))
    /\ \A p \in PortSet : S[p].st = "open" => S[p].acked <= Cardinality(Came(S[p].peer))

(* STP-CC-035, STP-SEC-006: a cookie was made for this address, in this life, and nobody else has it.  *)
OnlyProvenOpens ==
    \A i \in DOMAIN opened :
        opened[i].csn # Stranger /\ opened[i].ck \in DOMAIN made /\ made[opened[i].ck].life = opened[i].epoch

(* STP-CC-035: a cookie opens no connection after its time. *)
OpensInTime == [][Len(opened') > Len(opened) => now - made[opened'[Len(opened')].ck].at <= Good]_vars

(* STP-CC-038, STP-CC-039: a cookie opens one connection. *)
CookieOpensOnce == \A i, j \in DOMAIN opened : i # j => opened[i].ck # opened[j].ck
CookieUsedOnce == \A t, u \in DOMAIN begins : t # u /\ begins[t].ck # NoCookie => begins[t].ck # begins[u].ck

(* STP-CC-036, STP-CC-041: who is given a cookie, and opens nothing, changes nothing; nothing is kept. *)
NothingForUnproven ==
    [][made' # made /\ Len(opened') = Len(opened) => UNCHANGED <<S, opened, used, log>>]_vars
(* STP-CC-038 *)
RoomHolds == Cardinality(used) <= Room

(* STP-CC-009: whoever has been told has been told. *)
ToldForGood ==
    [][/\ \A x \in DOMAIN calls : calls[x].told # "nothing" => calls'[x].told = calls[x].told
       /\ \A i \in DOMAIN opened : opened[i].told # "nothing" => opened'[i].told = opened[i].told]_vars

(* STP-CC-009: and is told in the end. *)
EveryCallEnds ==
    \A x \in 1..Calls : (Len(calls) >= x) ~> (Len(calls) >= x /\ calls[x].told # "nothing")
EveryConnectionEnds ==
    \A i \in 1..Takes : (Len(opened) >= i) ~> (Len(opened) >= i /\ opened[i].told # "nothing")

(* What each connection has taken from its user, as far as it left the client.                        *)
Accepted(csn) ==
    Cardinality({m \in net : m.type = "SD" /\ m.from = "client" /\ m.csn = csn})
    + Cardinality({t \in DOMAIN begins : begins[t].csn = csn /\ begins[t].ck # NoCookie})
Service(csn) == INSTANCE ReliableFifo WITH
    Items <- [k \in 1..Packets |-> <<csn, k - 1>>],
    accepted <- Accepted(csn),
    delivered <- LET items == SelectSeq(log, LAMBDA item : item[2] = csn)
                 IN [k \in DOMAIN items |-> <<items[k][2], items[k][3]>>]
Csns == 1..(Calls + Cookies)
DeliveredIsPrefix == \A csn \in Csns : Service(csn)!DeliveredIsPrefix            \* STP-CC-008
RefinesService ==
    /\ \A csn \in Csns : Service(csn)!Init
    /\ [][\A csn \in Csns : Service(csn)!Next \/ UNCHANGED Service(csn)!fifoVars]_vars

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverSuccess == ~\E i \in DOMAIN opened : /\ opened[i].told = "success"
                                          /\ calls[CallOf(opened[i].csn)].told = "success"
NeverAllSucceed == ~(Len(calls) = Calls /\ \A x \in DOMAIN calls : calls[x].told = "success")
NeverAnew == ~\E t \in DOMAIN begins : \E u \in 1..(t - 1) : begins[t].call = begins[u].call
NeverReplaced == ~\E i \in DOMAIN opened : opened[i].told = "failure" /\ abandoned = {} /\ Replaced(i)
NeverDisowned == ~\E m \in net : m.type = "END" /\ m.kind = "unknown" /\ m.from = "server"
NeverServerDisowned == ~\E i \in DOMAIN opened : /\ opened[i].told = "failure" /\ abandoned = {}
                                                 /\ ~Replaced(i)
NeverOutOfOrder == \A p \in PortSet : S[p].held = {} /\ C[p].held = {}
NeverLeavesEnd == ~\E p \in PortSet : /\ S[p].st = "open" /\ opened[Place(S[p].csn)].told = "success"
                                      /\ C[p].st = "open"
NeverRefused == ~\E m \in net : m.type = "BGREJ" /\ m.reason = 5
NeverAtOnce == ~\E i \in DOMAIN opened : \E j \in DOMAIN opened : /\ i # j
                    /\ \E p, q \in PortSet : p # q /\ S[p].csn = i /\ S[q].csn = j
                                             /\ S[p].st = "open" /\ S[q].st = "open"
=============================================================================
