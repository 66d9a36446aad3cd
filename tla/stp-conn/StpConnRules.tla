---------------------------- MODULE StpConnRules -----------------------------
(* What a step of STP's connections may change and send, said once more in other words, from the      *)
(* variables before and after and from what has arrived. Nothing of this is used by the steps         *)
(* themselves, and none of their rules is used here.                                                  *)
EXTENDS StpConn

Sent == net' \ net
Sending(type) == {m \in Sent : m.type = type}
Coming(type, from) == {m \in Arrivals : m.type = type /\ m.from = from}
Whole(e, own, other) == e.acked = own /\ e.rcv = other     \* both streams are through

(* What an end has of its peer's stream: what was handed over and what waits. *)
Has(e) == (0..(e.rcv - 1)) \cup {h[2] : h \in e.held}
Least(numbers) == CHOOSE n \in 0..Cardinality(numbers) : n \notin numbers /\ \A k \in 0..(n - 1) : k \in numbers

(* Nobody has called, and cookies, if any, were made before. *)
BeginsRight ==
    /\ now = Dawn /\ epoch = 0 /\ gone = 0 /\ Len(begins) = 0 /\ Len(calls) = 0 /\ Len(opened) = 0
    /\ \A p \in PortSet : \A e \in {C[p], S[p]} : e.st = "idle" /\ e.csn = 0 /\ e.peer = 0 /\ e.rcv = 0
    /\ DOMAIN made = 1..Stock /\ \A k \in 1..Stock : made[k].life = 0 /\ made[k].at = 0
    /\ Len(stock) = Stock /\ \A k \in 1..Stock : \E i \in 1..Stock : stock[i] = k
    /\ used = {} /\ net = {} /\ Len(log) = 0 /\ Len(back) = 0

----------------------------------------------------------------------------
(* Packets. Each field of what is sent, from the state of its sender after the step.                   *)

SameConnection(e, f) == e.csn = f.csn /\ e.peer = f.peer

(* Section 4, STP-CC-002, STP-CC-010, STP-CC-016, STP-CC-034: a BEGIN repeats its try, for a while; data  *)
(* with a cookie only.                                                                                *)
BeginsAreTries ==
    [][\A m \in Sending("BEGIN") :
          /\ m.from = "client" /\ C'[m.port].st = "begun" /\ C'[m.port].csn = m.csn /\ m.at = now
          /\ m.at - C'[m.port].since <= Repeat
          /\ \E t \in DOMAIN begins' : begins'[t].csn = m.csn /\ begins'[t].ck = m.ck
          /\ m.data <=> m.ck # NoCookie
          /\ m.fin <=> m.data /\ Packets = 1]_vars

(* STP-CC-016: as long as that, it may be repeated. *)
RepeatsWhileItMay ==
    \A p \in PortSet : C[p].st = "begun" /\ C[p].since + Repeat >= now => ENABLED Repeats(p)

(* STP-CC-012, STP-CC-015, STP-DT-010: a BGAK names both CSNs, what is next expected, a new cookie.    *)
BgaksAreTrue ==
    [][\A m \in Sending("BGAK") :
          /\ m.from = "server" /\ S'[m.port].st = "open"
          /\ m.csn = S'[m.port].csn /\ m.peer = S'[m.port].peer /\ m.r = S'[m.port].rcv
          /\ m.ck = Len(made) + 1
          /\ \E b \in Coming("BEGIN", "client") : b.port = m.port /\ b.csn = m.peer]_vars

(* STP-CC-036, STP-CC-038: a BGREJ names the caller; it has a new cookie, or there is no room.         *)
Proven(b) == b.ck \in 1..Len(made) /\ made[b.ck].life = epoch /\ now - made[b.ck].at <= Good
RefusalsAreTrue ==
    [][\A m \in Sending("BGREJ") :
          /\ m.from = "server" /\ UNCHANGED <<S, opened, used, log>>
          /\ \E b \in Coming("BEGIN", "client") :
                /\ b.port = m.port /\ b.csn = m.peer
                /\ b.ck \notin used
                /\ ~(S[m.port].st = "open" /\ S[m.port].peer = b.csn)
                /\ \/ m.reason = 6 /\ m.ck = Len(made') /\ (~Proven(b) \/ \E k \in used : k > b.ck)
                   \/ m.reason = 5 /\ m.ck = NoCookie /\ Proven(b) /\ made' = made
                        /\ Cardinality(used) = Room]_vars

(* STP-CC-024, STP-DT: SDs are numbered one by one, and the last has the flag. *)
SdsAreNumbered ==
    [][/\ \A m \in {x \in Sending("SD") : x.from = "client"} :
            /\ SameConnection(C[m.port], C'[m.port]) /\ m.csn = C[m.port].csn
            /\ m.n = C[m.port].sent /\ C'[m.port].sent = m.n + 1
            /\ m.fin <=> (m.n + 1 = Packets)
       /\ \A m \in {x \in Sending("SD") : x.from = "server"} :
            /\ m.csn = S'[m.port].csn /\ m.n < Replies /\ S'[m.port].sent > m.n
            /\ m.fin <=> (m.n + 1 = Replies)]_vars

(* STP-DT-010, STP-CC-042: reports say what has arrived, polls come from open ends. *)
ReportsAreTrue ==
    [][/\ \A m \in Sending("STAT") :
            LET e == IF m.from = "client" THEN C'[m.port] ELSE S'[m.port]
            IN e.st = "open" /\ m.csn = e.csn /\ m.r = e.rcv /\ m.r > 0
       /\ \A m \in Sending("POLL") :
            LET e == IF m.from = "client" THEN C[m.port] ELSE S[m.port]
            IN Polls /\ e.st = "open" /\ m.csn = e.csn]_vars

(* STP-CC-005, STP-CC-006, STP-CC-020, STP-CC-022, STP-CC-025: why an END is sent, and what it says.   *)
Reported(m, before, after) ==
    /\ before.st \in {"begun", "open"} /\ after.st = "over"
    /\ m.csn = before.csn /\ m.peer = before.peer
    /\ IF m.from = "client" THEN Whole(before, Packets, Replies) <=> m.kind = "release"
                            ELSE Whole(before, Replies, Packets) <=> m.kind = "release"
    /\ m.r = IF m.kind = "release" THEN before.rcv ELSE 0
Disowned(m) ==
    LET e == IF m.from = "client" THEN C[m.port] ELSE S[m.port]
        other == IF m.from = "client" THEN "server" ELSE "client"
    IN /\ m.r = 0 /\ C' = C /\ S' = S /\ calls' = calls /\ opened' = opened
       /\ \/ /\ \E b \in Coming("BGAK", other) : b.port = m.port /\ m.csn = b.peer /\ m.peer = b.csn
             /\ ~(e.st = "begun" /\ e.csn = m.csn) /\ e.st # "open"
          \/ /\ m.csn = Unknown /\ e.st \in {"idle", "over"}
             /\ \E b \in Coming("POLL", other) : b.port = m.port /\ m.peer = b.csn
          \/ /\ m.csn = Unknown /\ m.from = "server"
             /\ \E b \in Coming("BEGIN", other) : b.port = m.port /\ m.peer = b.csn /\ b.ck \in used
EndsHaveReason ==
    [][\A m \in Sending("END") :
          IF m.kind = "unknown" THEN Disowned(m)
          ELSE IF m.from = "client" THEN Reported(m, C[m.port], C'[m.port])
                                    ELSE Reported(m, S[m.port], S'[m.port])]_vars

----------------------------------------------------------------------------
(* The stream that arrives: at most one SD a step, of the peer's present connection.                   *)

Arrived(e, f, from, port) ==
    LET more == Has(f) \ Has(e)
        come == {m \in Coming("SD", from) : m.port = port /\ m.csn = f.peer /\ m.n \in more}
                \cup {m \in Coming("BEGIN", from) : m.port = port /\ m.csn = f.peer /\ m.data /\ 0 \in more}
    IN /\ Has(e) \subseteq Has(f) /\ Cardinality(more) <= 1 /\ (more # {} => come # {})
       /\ e.rfin # None => \A n \in more : n < e.rfin
       /\ f.rcv = Least(Has(f))
       /\ f.held = {<<f.peer, n>> : n \in {k \in Has(f) : k > f.rcv}}
       /\ f.rfin # e.rfin => more # {} /\ f.rfin \in more /\ \E m \in come : m.fin
       /\ more # {} /\ (\A m \in come : m.fin) => f.rfin \in more

Acked(e, f, from, port) ==
    \/ f.acked = e.acked
    \/ /\ f.acked > e.acked
       /\ \/ \E m \in Coming("STAT", from) : m.port = port /\ m.csn = f.peer /\ m.r = f.acked
          \/ \E m \in Coming("BGAK", from) : m.port = port /\ m.csn = f.peer /\ m.peer = e.csn /\ m.r = f.acked

(* STP-CC-001, STP-CC-004, STP-DT-010, STP-DT-019: an open connection of the client. *)
ClientStaysTrue ==
    [][\A p \in PortSet : LET e == C[p]  f == C'[p] IN
          e # f /\ e.st = "open" /\ f.st = "open" =>
             /\ SameConnection(e, f) /\ f.keeps = e.keeps /\ f.since = e.since
             /\ Arrived(e, f, "server", p) /\ Acked(e, f, "server", p)
             /\ f.sent \in {e.sent, e.sent + 1} /\ f.sent <= Packets
             /\ f.sent # e.sent => Cardinality(Sending("SD")) = 1
             /\ f.fin = IF f.sent = Packets THEN Packets - 1 ELSE None
             /\ Has(f) # Has(e) => /\ Len(back') - Len(back) = f.rcv - e.rcv
                                   /\ \A i \in (Len(back) + 1)..Len(back') :
                                        back'[i] = <<e.csn, e.peer, e.rcv + i - Len(back) - 1>>]_vars
ServerStaysTrue ==
    [][\A p \in PortSet : LET e == S[p]  f == S'[p] IN
          e # f /\ e.st = "open" /\ f.st = "open" /\ e.csn = f.csn =>
             /\ SameConnection(e, f) /\ Arrived(e, f, "client", p) /\ Acked(e, f, "client", p)
             /\ f.sent \in {e.sent, e.sent + 1} /\ f.sent <= Replies
             /\ f.sent # e.sent => Cardinality(Sending("SD")) = 1
             /\ f.fin = IF f.sent = Replies THEN Replies - 1 ELSE None
             /\ Has(f) # Has(e) => /\ Len(log') - Len(log) = f.rcv - e.rcv
                                   /\ \A i \in (Len(log) + 1)..Len(log') :
                                        log'[i] = <<e.csn, e.peer, e.rcv + i - Len(log) - 1>>]_vars

(* STP-DT-010: whatever comes of the present connection is answered by a report. *)
SdsAreReported ==
    [][\A p \in PortSet :
          /\ C[p].st = "open" /\ C'[p].st = "open" /\ Has(C'[p]) # Has(C[p]) /\ C'[p].rcv > 0 =>
                \E m \in net' : m.type = "STAT" /\ m.from = "client" /\ m.csn = C[p].csn /\ m.r = C'[p].rcv
          /\ S'[p].st = "open" /\ S'[p].rcv > S[p].rcv =>
                \E m \in net' : m.type = "STAT" /\ m.from = "server" /\ m.csn = S'[p].csn /\ m.r = S'[p].rcv]_vars

----------------------------------------------------------------------------
(* States of the client *)

(* STP-CC-012, section 9: state 2 is left for state 10 by a BGAK for this try. *)
OpensByBgak ==
    [][\A p \in PortSet : LET e == C[p]  f == C'[p] IN
          e.st # "open" /\ f.st = "open" =>
             /\ e.st = "begun" /\ f.csn = e.csn /\ f.sent = e.sent /\ f.fin = e.fin /\ f.rcv = e.rcv /\ f.keeps
             /\ \E m \in Coming("BGAK", "server") :
                   /\ m.port = p /\ m.peer = e.csn /\ m.csn = f.peer /\ m.r = f.acked /\ m.r <= e.sent
                   /\ stock' = IF e.keeps THEN Append(stock, m.ck) ELSE stock
             /\ UNCHANGED <<calls, begins>>]_vars

(* STP-CC-037, STP-CC-039: a try is a new call's, with the first cookie of the stock, or the same       *)
(* call's anew, with the cookie that its refusal brought.                                             *)
TriesHaveReason ==
    [][/\ \A t \in DOMAIN begins : begins'[t] = begins[t]
       /\ Len(begins') > Len(begins) =>
             LET x == begins'[Len(begins')] IN
             /\ Len(begins') = Len(begins) + 1 /\ x.epoch = epoch
             /\ \A t \in DOMAIN begins : begins[t].csn < x.csn
             /\ Sending("BEGIN") # {}
             /\ \E p \in PortSet : LET e == C[p]  f == C'[p] IN
                   /\ f.st = "begun" /\ f.csn = x.csn /\ f.peer = Unknown /\ f.rcv = 0 /\ f.acked = 0
                   /\ f.held = {} /\ f.keeps /\ f.rfin = None /\ f.since = now
                   /\ f.sent = (IF x.ck = NoCookie THEN 0 ELSE 1)
                   /\ f.fin = (IF f.sent = 1 /\ Packets = 1 THEN 0 ELSE None)
                   /\ \/ /\ e.st \in {"idle", "over"} /\ x.call = Len(calls) + 1 /\ Len(calls') = x.call
                         /\ calls'[x.call].told = "nothing"
                         /\ calls'[x.call].after = {c \in DOMAIN calls : calls[c].told # "nothing"}
                         /\ IF stock = <<>> THEN x.ck = NoCookie /\ stock' = stock
                                            ELSE <<x.ck>> \o stock' = stock
                      \/ /\ e.st = "begun" /\ calls' = calls /\ stock' = stock
                         /\ \E m \in Coming("BGREJ", "server") :
                               m.port = p /\ m.peer = e.csn /\ m.ck = x.ck /\ m.reason = 6
                         /\ \E t \in DOMAIN begins : begins[t].csn = e.csn /\ begins[t].call = x.call]_vars

(* STP-CC-005, STP-CC-006, STP-CC-019, STP-CC-021, STP-CC-027: how an end ends, and what its user is   *)
(* told. An END must know the connection.                                                             *)
Known(e, m) ==
    CASE m.kind = "unknown" -> m.peer = e.csn /\ (m.csn = Unknown \/ m.csn = e.peer)
      [] e.peer = Unknown -> m.peer = e.csn
      [] OTHER -> m.csn = e.peer /\ (m.peer = e.csn \/ (m.peer = Unknown /\ m.kind = "abort"))
Verdict(e, result, own, other, from, port, mine) ==
    \/ /\ result = "success" /\ Whole(e, own, other)
    \/ /\ result = "success" /\ e.rcv = other
       /\ \E m \in Coming("END", from) : m.port = port /\ Known(e, m) /\ m.kind = "release" /\ m.r = own
    \/ /\ result = "failure" /\ ~Whole(e, own, other)
       /\ \/ \E m \in Coming("END", from) : m.port = port /\ Known(e, m) /\ ~(m.kind = "release" /\ m.r = own /\ e.rcv = other)
          \/ mine
ResultOfCall(csn) == LET t == CHOOSE i \in DOMAIN begins : begins[i].csn = csn
                     IN calls'[begins[t].call].told
ClientEndsRight ==
    [][\A p \in PortSet : LET e == C[p]  f == C'[p] IN
          e.st \in {"begun", "open"} /\ f.st = "over" =>
             /\ f = [e EXCEPT !.st = "over", !.held = {}, !.keeps = f.keeps]
             /\ Verdict(e, ResultOfCall(e.csn), Packets, Replies, "server", p,
                        \/ \E m \in Sent : m.type = "END" /\ m.from = "client" /\ m.kind = "abort"
                        \/ /\ e.st = "begun"
                           /\ \E m \in Coming("BGREJ", "server") : m.port = p /\ m.peer = e.csn /\ m.reason = 5)
             /\ stock' = IF e.st = "begun" THEN <<>> ELSE stock
             /\ \A q \in PortSet \ {p} : C'[q] = IF e.st = "begun" /\ C[q].st = "begun"
                                                 THEN [C[q] EXCEPT !.keeps = FALSE] ELSE C[q]
             /\ UNCHANGED begins]_vars

(* What the user is told changes once, from nothing, and of one call in a step but for a restart.      *)
ToldOfOne ==
    [][/\ gone' = gone => Cardinality({x \in DOMAIN calls : calls'[x] # calls[x]}) <= 1
       /\ gone' # gone => /\ \A x \in DOMAIN calls : calls[x].told = "nothing" => calls'[x].told = "gone"
                          /\ stock' = <<>> /\ \A p \in PortSet : C'[p].st = "idle"
       /\ \A x \in DOMAIN calls : calls'[x].after = calls[x].after
       /\ \A x \in DOMAIN calls : calls'[x].told # calls[x].told => gone' # gone \/ \E p \in PortSet :
              C[p].st \in {"begun", "open"} /\ C'[p].st = "over"]_vars

----------------------------------------------------------------------------
(* States of the server *)

(* STP-CC-012, STP-CC-035, STP-CC-038, STP-CC-041: a connection is opened by a BEGIN with a good        *)
(* cookie, later than all that have opened one, as long as there is room; it replaces another.         *)
OpensByBegin ==
    [][/\ Len(opened') <= Len(opened) + 1
       /\ \A i \in DOMAIN opened : opened'[i] = [opened[i] EXCEPT !.told = opened'[i].told]
       /\ Len(opened') > Len(opened) =>
             LET x == opened'[Len(opened')]  f == S'[x.port]  e == S[x.port] IN
             /\ \A i \in DOMAIN opened : opened[i].own < x.own
             /\ x.epoch = epoch /\ x.gone = gone /\ x.told = "nothing"
             /\ f.st = "open" /\ f.csn = x.own /\ f.peer = x.csn /\ f.acked = 0 /\ f.sent = Replies
             /\ f.keeps /\ f.since = 0
             /\ \E b \in Coming("BEGIN", "client") :
                   /\ b.port = x.port /\ b.csn = x.csn /\ b.ck = x.ck /\ Proven(b)
                   /\ f.rcv = IF b.data THEN 1 ELSE 0
                   /\ f.rfin = IF b.data /\ b.fin THEN 0 ELSE None
                   /\ log' = log \o (IF b.data THEN <<<<x.own, x.csn, 0>>>> ELSE <<>>)
             /\ \A k \in used : k < x.ck
             /\ Cardinality(used) < Room /\ used' = used \cup {x.ck} /\ f.held = {}
             /\ Sending("BGAK") # {}
             /\ {m.n : m \in {m \in net' : m.type = "SD" /\ m.from = "server" /\ m.csn = x.own
                                           /\ m.port = x.port}} = 0..(Replies - 1)
             /\ e.st = "open" => \A i \in DOMAIN opened : opened[i].own = e.csn /\ opened[i].told = "nothing" =>
                   opened'[i].told = IF Whole(e, Replies, Packets) THEN "success" ELSE "failure"]_vars

ServerResult(own) == LET i == CHOOSE i \in DOMAIN opened : opened[i].own = own IN opened'[i].told
ServerEndsRight ==
    [][\A p \in PortSet : LET e == S[p]  f == S'[p] IN
          e.st = "open" /\ f.st = "over" =>
             /\ f = [e EXCEPT !.st = "over", !.held = {}]
             /\ \/ opened[CHOOSE i \in DOMAIN opened : opened[i].own = e.csn].told # "nothing"
                \/ Verdict(e, ServerResult(e.csn), Replies, Packets, "client", p,
                           \E m \in Sent : m.type = "END" /\ m.from = "server" /\ m.kind = "abort")
             /\ UNCHANGED <<made, used, log>>]_vars

(* STP-CC-009, STP-CC-031: a server's user is told of a success when both streams are through, else    *)
(* when the connection ends.                                                                          *)
ServerTellsRight ==
    [][\A i \in DOMAIN opened : opened'[i].told # opened[i].told =>
          LET p == opened[i].port  e == S[p] IN
          \/ epoch' # epoch /\ opened'[i].told = "gone"
          \/ e.csn = opened[i].own /\ e.st = "open" /\ S'[p] # e
          \/ e.csn = opened[i].own /\ e.st = "open" /\ opened'[i].told = "success" /\ Whole(e, Replies, Packets)]_vars

(* STP-CC-035, STP-CC-036: cookies are made one at a time, each for an answer; a restart forgets.      *)
CookiesAreAnswers ==
    [][/\ \A k \in DOMAIN made : made'[k] = made[k]
       /\ made' # made => /\ Len(made') = Len(made) + 1 /\ made'[Len(made')] = [life |-> epoch, at |-> now]
                          /\ \E m \in Sent : m.type \in {"BGAK", "BGREJ"} /\ m.ck = Len(made')
       /\ epoch' # epoch => used' = {} /\ (\A p \in PortSet : S'[p].st = "idle")
                            /\ \A i \in DOMAIN opened : opened[i].told = "nothing" => opened'[i].told = "gone"
       /\ epoch' = epoch /\ now' = now => used \subseteq used'
       /\ epoch' = epoch /\ used' # used /\ now' = now => Len(opened') > Len(opened)]_vars

(* STP-CC-038: a used cookie is forgotten as soon as it is as old as it says, and not before; a         *)
(* restart forgets all.                                                                               *)
ForgetsInTime ==
    [][epoch' = epoch =>
          used \ used' = {k \in used : now' # now /\ now' - made[k].at >= Remember}]_vars

(* One end moves in a step; nothing sent is taken back. *)
OneAtATime ==
    [][/\ now' = now => net \subseteq net'
       /\ S' # S => C' = C /\ UNCHANGED <<stock, begins, calls, back>>
       /\ C' # C => S' = S /\ UNCHANGED <<opened, made, used, log>>
       /\ epoch' = epoch => Cardinality({p \in PortSet : S'[p] # S[p]}) <= 1]_vars

(* States 1 and 4 hear of no success or failure any more and take nothing. *)
OnlyOpenEndsTake ==
    [][\A p \in PortSet :
          /\ C[p].st \in {"idle", "over"} /\ C'[p] # C[p] => C'[p].st = "begun" \/ gone' # gone
          /\ C[p].st = "begun" /\ C'[p].st = "begun" /\ C'[p] # C[p] =>
                \/ C'[p].csn # C[p].csn
                \/ C'[p] = [C[p] EXCEPT !.keeps = FALSE]
                \/ /\ C'[p].sent = C[p].sent + 1 /\ C'[p].sent <= EarlyCredit
                   /\ C'[p] = [C[p] EXCEPT !.sent = C'[p].sent, !.fin = C'[p].fin]
                   /\ C'[p].fin = (IF C'[p].sent = Packets THEN Packets - 1 ELSE None)
          /\ S[p].st \in {"idle", "over"} /\ S'[p] # S[p] => Len(opened') > Len(opened) \/ epoch' # epoch]_vars

----------------------------------------------------------------------------
(* A peer that keeps no rules: it sends a normal END whenever it likes, with any N(R) that can be     *)
(* (STP-CC-027), and answers the first BEGIN by a BGAK with an N(R) beyond all that there is to send.  *)
HastyEnd ==
    /\ \E p \in PortSet, from \in {"client", "server"}, r \in 0..Max(Packets, Replies) :
          LET e == IF from = "client" THEN C[p] ELSE S[p]
          IN /\ e.st = "open" /\ r <= (IF from = "client" THEN S[p].sent ELSE C[p].sent)
             /\ Emit({END(from, p, e.csn, e.peer, "release", r)}, {})
    /\ UNCHANGED <<now, clientVars, serverVars, abandoned>>
HastyBgak ==
    /\ \A m \in net : m.from = "client"
    /\ \E p \in PortSet : /\ C[p].st = "begun"
                         /\ Emit({BGAK(p, NextOwn, C[p].csn, Packets + 1, Forged)}, {})
    /\ UNCHANGED <<now, clientVars, serverVars, abandoned>>
HastySpec == Init /\ [][Next \/ HastyEnd \/ HastyBgak]_vars

(* A peer whose packets are not those of this connection: before any other END one of another, of      *)
(* whose CSNs one is right, and the other wrong or left out of a normal END (section 5.5); and an SD    *)
(* above a FIN that has arrived (STP-DT-028).                                                         *)
OtherEnd ==
    /\ \A m \in net : m.type # "END"
    /\ \E p \in PortSet, from \in {"client", "server"} :
          LET e == IF from = "client" THEN C[p] ELSE S[p]
          IN /\ e.st = "open"
             /\ \E m \in {END(from, p, e.csn, Stranger, "abort", 0), END(from, p, e.csn, Unknown, "release", e.rcv),
                          END(from, p, Stranger, e.peer, "unknown", 0)} : Emit({m}, {})
    /\ UNCHANGED <<now, clientVars, serverVars, abandoned>>
OtherSd ==
    /\ \E p \in PortSet, from \in {"client", "server"} :
          LET e == IF from = "client" THEN C[p] ELSE S[p]
              f == IF from = "client" THEN S[p] ELSE C[p]
          IN /\ f.st = "open" /\ f.peer = e.csn /\ f.rfin # None
             /\ Emit({}, {SD(from, p, e.csn, f.rfin + 1, FALSE)})
    /\ UNCHANGED <<now, clientVars, serverVars, abandoned>>
OtherSpec == Init /\ [][Next \/ OtherEnd \/ OtherSd]_vars

----------------------------------------------------------------------------
(* A server whose user speaks while the connection is open, and not before. *)
SpeaksLater(e) == e

(* A caller that has a cookie, and no data yet when it calls. *)
CarriesNothing(ck) == FALSE

----------------------------------------------------------------------------
(* Reachability *)
NeverHasty == ~\E x \in DOMAIN calls : calls[x].told = "failure" /\ abandoned = {}

Ends == {m \in net : m.type = "END"}
NeverHearsOfAbort == ~\E i \in DOMAIN opened :
    /\ opened[i].told = "failure" /\ <<"client", opened[i].csn>> \in abandoned
    /\ \A m \in Ends : m.kind = "abort" /\ m.peer = Unknown
NeverDisownsBgak == ~\E m \in Ends : m.kind = "unknown" /\ m.from = "client" /\ m.csn # Unknown
NeverDisownsPoll == ~\E m \in Ends : m.kind = "unknown" /\ m.from = "client" /\ m.csn = Unknown
(* No BEGIN is disowned where no cookie has been used; then it is a POLL that is. *)
NeverServerDisownsPoll ==
    [][used = {} => \A m \in Sending("END") : m.kind = "unknown" => m.from = "client"]_vars
==============================================================================
