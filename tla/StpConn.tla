------------------------------- MODULE StpConn -------------------------------
(* STP's connections (HK99-STP section VII.B; requirements STP-CC): BEGIN with data, graceful *)
(* and abrupt release, successive incarnations, a server that restarts.                               *)
(*                                                                                                    *)
(* A client opens one connection after the other, each with its own connection sequence number (CSN), *)
(* and sends the SDs 0..Packets-1 on each; SD 0 travels in the BEGIN, and number Packets is the FIN.    *)
(* The network is the set of all messages ever sent: any of them may be delivered late, often, out of  *)
(* order, or never.                                                                                   *)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Connections,    \* connections the client opens
    Packets,        \* SDs on each
    EarlyCredit,    \* SDs that may be sent before the BEGIN is acknowledged
    Restarts        \* budget of server restarts

VARIABLES
    cState,         \* "idle", "begun", "open", "over"
    cCsn, cAcked,
    cEcho,          \* the server's number that the client confirms; 0 for none
    told,           \* what the client's user was told of each connection
    sState,         \* "listen", "waiting", "open", "over"
    sCsn, sRcv,
    sCache,         \* highest CSN known from this client; 0 when unknown (after a restart)
    sTold,          \* what the server's user was told of the end of each connection
    epoch,          \* restarts so far; the server's own number is epoch + 1
    net,
    log,            \* data handed to the server's user since the restart: pairs of CSN and number
    got,            \* ghost: all data ever handed over
    since,          \* ghost: first CSN that was not over when the server started
    abandoned       \* ghost: connections that the client aborted

clientVars == <<cState, cCsn, cAcked, cEcho, told, abandoned>>
serverVars == <<sState, sCsn, sRcv, sCache, sTold, epoch, log, got, since>>
vars == <<clientVars, serverVars, net>>

Csns == 1..Connections
Fin == Packets
Max(a, b) == IF a >= b THEN a ELSE b

BEGIN(csn)          == [type |-> "BEGIN", csn |-> csn]
BGAK(csn, own, r, asks) == [type |-> "BGAK", csn |-> csn, own |-> own, r |-> r, asks |-> asks]
CONFIRM(csn, own)   == [type |-> "CONFIRM", csn |-> csn, own |-> own]      \* a BGAK of the client
SD(csn, n)          == [type |-> "SD", csn |-> csn, n |-> n]
STAT(csn, r)        == [type |-> "STAT", csn |-> csn, r |-> r]
END(csn, from)      == [type |-> "END", csn |-> csn, from |-> from]

Own == epoch + 1

Init ==
    /\ cState = "idle" /\ cCsn = 0 /\ cAcked = 0 /\ cEcho = 0
    /\ told = [c \in Csns |-> "nothing"] /\ abandoned = {}
    /\ sState = "listen" /\ sCsn = 0 /\ sRcv = 0 /\ sCache = 0
    /\ sTold = [c \in Csns |-> "nothing"] /\ epoch = 0
    /\ net = {} /\ log = <<>> /\ got = {} /\ since = 1

----------------------------------------------------------------------------
(* Client *)

Begin ==
    /\ cState \in {"idle", "over"} /\ cCsn < Connections
    /\ cState' = "begun" /\ cCsn' = cCsn + 1 /\ cAcked' = 0 /\ cEcho' = 0
    /\ net' = net \cup {BEGIN(cCsn + 1)}
    /\ UNCHANGED <<told, abandoned, serverVars>>

(* STP-CC-002: before the acknowledgment only what the early credit permits. *)
MaySend(n) == cState = "open" \/ (cState = "begun" /\ n < EarlyCredit)

Send(n) ==
    /\ MaySend(n) /\ n >= Max(cAcked, 1)       \* SD 0 travels in the BEGIN only
    /\ net' = net \cup {SD(cCsn, n)}
    /\ UNCHANGED <<clientVars, serverVars>>

Over(result) ==
    /\ cState' = "over"
    /\ told' = [told EXCEPT ![cCsn] = result]

Live == cState \in {"begun", "open"}

(* STP-CC-003, STP-CC-007: the client confirms the server's number once; a newer number means that    *)
(* the server has lost the connection.                                                               *)
OtherNumber(own) == own > cEcho
LosesConnection(own) == Over("failure") /\ UNCHANGED <<cEcho, cAcked>>

ReceiveBgak(m) ==
    /\ m.type = "BGAK" /\ m.csn = cCsn /\ Live
    /\ \/ /\ cState = "begun"
          /\ cState' = "open" /\ cEcho' = m.own /\ cAcked' = Max(cAcked, m.r)
          /\ net' = IF m.asks THEN net \cup {CONFIRM(cCsn, m.own)} ELSE net      \* STP-CC-017
          /\ UNCHANGED told
       \/ /\ cState = "open" /\ OtherNumber(m.own)
          /\ LosesConnection(m.own)
          /\ UNCHANGED net
    /\ UNCHANGED <<cCsn, abandoned, serverVars>>

(* STP-CC-005: success only when the FIN is acknowledged, and with it everything before. *)
Complete(r) == r > Fin

ReceiveStat(m) ==
    /\ m.type = "STAT" /\ m.csn = cCsn /\ Live
    /\ cAcked' = Max(cAcked, m.r)
    /\ IF Complete(m.r) THEN Over("success") ELSE UNCHANGED <<cState, told>>
    /\ UNCHANGED <<cCsn, cEcho, abandoned, serverVars, net>>

(* STP-CC-006: an abort is a failure to both users. *)
AbortResult == "failure"

ClientAborts ==
    /\ Live
    /\ Over(AbortResult)
    /\ abandoned' = abandoned \cup {cCsn}
    /\ net' = net \cup {END(cCsn, "client")}
    /\ UNCHANGED <<cCsn, cAcked, cEcho, serverVars>>

ClientReceivesEnd(m) ==
    /\ m.type = "END" /\ m.from = "server" /\ m.csn = cCsn /\ Live
    /\ Over(AbortResult)
    /\ UNCHANGED <<cCsn, cAcked, cEcho, abandoned, serverVars, net>>

----------------------------------------------------------------------------
(* Server *)

Deliver(csn, n) ==
    /\ log' = Append(log, <<csn, n>>)
    /\ got' = got \cup {<<csn, n>>}

(* What a BGAK acknowledges before the data of the BEGIN has been handed over.                        *)
AckOfWaiting == 0

(* STP-CC-001: newer than everything known from this client. *)
Newer(csn) == csn > Max(sCsn, sCache)

(* STP-CC-003: data is accepted at once only from a client whose last CSN is known. *)
Known == sCache > 0

ReceiveBegin(m) ==
    /\ m.type = "BEGIN"
    /\ \/ /\ Newer(m.csn) /\ Known
          /\ sState' = "open" /\ sCsn' = m.csn /\ sCache' = m.csn /\ sRcv' = 1
          /\ Deliver(m.csn, 0)
          /\ net' = net \cup {BGAK(m.csn, Own, 1, FALSE)}
       \/ /\ Newer(m.csn) /\ ~Known
          /\ sState' = "waiting" /\ sCsn' = m.csn /\ sRcv' = 0
          /\ net' = net \cup {BGAK(m.csn, Own, AckOfWaiting, TRUE)}
          /\ UNCHANGED <<sCache, log, got>>
       \/ /\ m.csn = sCsn /\ sState \in {"waiting", "open"}
          /\ net' = net \cup {BGAK(m.csn, Own, IF sRcv > 0 THEN 1 ELSE 0, sState = "waiting")}
          /\ UNCHANGED <<sState, sCsn, sCache, sRcv, log, got>>
    /\ UNCHANGED <<clientVars, sTold, epoch, since>>

(* STP-CC-003 *)
Confirms(m) == m.own = Own

ReceiveConfirmation(m) ==
    /\ m.type = "CONFIRM" /\ sState = "waiting" /\ m.csn = sCsn /\ Confirms(m)
    /\ sState' = "open" /\ sCache' = sCsn /\ sRcv' = 1
    /\ Deliver(sCsn, 0)
    /\ net' = net \cup {STAT(sCsn, 1)}
    /\ UNCHANGED <<clientVars, sCsn, sTold, epoch, since>>

(* STP-CC-001: of the present incarnation. *)
Present(m) == m.csn = sCsn

(* STP-CC-004: the FIN has its number and waits for its turn. *)
InTurn(n) == n = sRcv

ReceiveSd(m) ==
    /\ m.type = "SD" /\ Present(m) /\ sState \in {"open", "over"}
    /\ IF sState = "open" /\ InTurn(m.n)
       THEN /\ sRcv' = m.n + 1
            /\ net' = net \cup {STAT(sCsn, m.n + 1)}
            /\ IF m.n = Fin
               THEN /\ sTold' = [sTold EXCEPT ![sCsn] = "end of stream"]
                    /\ sState' = "over"
                    /\ UNCHANGED <<log, got>>
               ELSE Deliver(m.csn, m.n) /\ UNCHANGED <<sTold, sState>>
       ELSE /\ sState = "over" => sTold[sCsn] = "end of stream"
            /\ net' = net \cup {STAT(sCsn, sRcv)}
            /\ UNCHANGED <<sRcv, sTold, sState, log, got>>
    /\ UNCHANGED <<clientVars, sCsn, sCache, epoch, since>>

ServerAborts ==
    /\ sState = "open"
    /\ sState' = "over" /\ sTold' = [sTold EXCEPT ![sCsn] = "abort"]
    /\ net' = net \cup {END(sCsn, "server")}
    /\ UNCHANGED <<clientVars, sCsn, sRcv, sCache, epoch, log, got, since>>

(* STP-CC-001: an END of another incarnation has no effect. *)
EndsPresent(m) == m.csn = sCsn

ServerReceivesEnd(m) ==
    /\ m.type = "END" /\ m.from = "client" /\ EndsPresent(m) /\ sState \in {"waiting", "open"}
    /\ sState' = "over"
    /\ sTold' = [sTold EXCEPT ![sCsn] = "abort by client"]
    /\ UNCHANGED <<clientVars, sCsn, sRcv, sCache, epoch, log, got, since, net>>

Restart ==
    /\ epoch < Restarts
    /\ epoch' = epoch + 1
    /\ sState' = "listen" /\ sCsn' = 0 /\ sRcv' = 0 /\ sCache' = 0
    /\ log' = <<>>
    /\ since' = IF Live THEN cCsn ELSE cCsn + 1
    /\ UNCHANGED <<clientVars, sTold, got, net>>

----------------------------------------------------------------------------

ClientStep == \/ Begin \/ \E n \in 0..Fin : Send(n)
              \/ \E m \in net : ReceiveBgak(m) \/ ReceiveStat(m) \/ ClientReceivesEnd(m)
ServerStep == \E m \in net : \/ ReceiveBegin(m) \/ ReceiveConfirmation(m) \/ ReceiveSd(m)
                             \/ ServerReceivesEnd(m)

Next == ClientStep \/ ServerStep \/ ClientAborts \/ ServerAborts \/ Restart

Spec == Init /\ [][Next]_vars

FairSpec ==
    /\ Spec /\ WF_vars(Begin) /\ \A n \in 0..Fin : WF_vars(Send(n))
    /\ WF_vars(\E m \in net : ReceiveBgak(m)) /\ WF_vars(\E m \in net : ReceiveStat(m))
    /\ WF_vars(\E m \in net : ClientReceivesEnd(m)) /\ WF_vars(\E m \in net : ReceiveBegin(m))
    /\ WF_vars(\E m \in net : ReceiveConfirmation(m)) /\ WF_vars(\E m \in net : ServerReceivesEnd(m))
    /\ \A n \in 0..Fin : WF_vars(\E m \in net : m.type = "SD" /\ m.n = n /\ ReceiveSd(m))

(* All that a client needs to learn of another number.                                                *)
AnswerSpec == Spec /\ WF_vars(\E m \in net : ReceiveBgak(m))

----------------------------------------------------------------------------
(* Properties *)

TypeOK ==
    /\ cState \in {"idle", "begun", "open", "over"} /\ cCsn \in 0..Connections
    /\ cAcked \in 0..(Fin + 1) /\ cEcho \in 0..(Restarts + 1)
    /\ \A c \in Csns : told[c] \in {"nothing", "success", "failure"}
    /\ sState \in {"listen", "waiting", "open", "over"} /\ sCsn \in 0..Connections
    /\ sRcv \in 0..(Fin + 1) /\ sCache \in 0..Connections
    /\ epoch \in 0..Restarts /\ since \in 1..(Connections + 1)

(* STP-CC-005 *)
SuccessMeansDelivered ==
    \A c \in Csns : told[c] = "success" => \A n \in 0..(Packets - 1) : <<c, n>> \in got

(* STP-CC-004 *)
CleanEndIsComplete ==
    \A c \in Csns : sTold[c] = "end of stream" => \A n \in 0..(Packets - 1) : <<c, n>> \in got

(* STP-CC-008: in order, once, one connection after the other. *)
InOrderOnce ==
    \A i \in DOMAIN log :
        \/ log[i][2] = 0 /\ \A j \in 1..(i - 1) : log[j][1] < log[i][1]
        \/ log[i][2] > 0 /\ i > 1 /\ log[i - 1] = <<log[i][1], log[i][2] - 1>>

(* STP-CC-001, STP-CC-003: nothing of a connection that was over before the server started. *)
OldNeverDelivered == \A i \in DOMAIN log : log[i][1] >= since

(* STP-CC-001 *)
OnlyAbandonedAborted == \A c \in Csns : sTold[c] = "abort by client" => c \in abandoned

(* STP-CC-002 *)
EarlyDataWithinCredit ==
    cState = "begun" => \A m \in net : m.type = "SD" /\ m.csn = cCsn => m.n < EarlyCredit

(* STP-CC-006 *)
AbortIsNoSuccess == \A c \in abandoned : told[c] # "success"

(* What the client takes for arrived, and keeps no longer, has been handed over (STP-DT-010). *)
ReleasedHasArrived == \A n \in 0..(Packets - 1) : n < cAcked => <<cCsn, n>> \in got

(* STP-CC-007: another number is not confirmed, and is reported. *)
NumberConfirmedOnce == [][cCsn' = cCsn /\ cEcho # 0 => cEcho' = cEcho]_vars
Answered(csn) == /\ cCsn = csn /\ cState = "open"
                 /\ \E m \in net : m.type = "BGAK" /\ m.csn = csn /\ m.own > cEcho
OtherNumberEnds == \A c \in Csns : Answered(c) ~> told[c] # "nothing"

(* STP-CC-009 *)
EveryConnectionEnds == \A c \in Csns : <>(told[c] # "nothing")

(* What each connection has taken from its user, as far as it left the client.                        *)
Numbers(c) == {m.n : m \in {x \in net : x.type = "SD" /\ x.csn = c /\ x.n < Fin}}
              \cup IF BEGIN(c) \in net THEN {0} ELSE {}
Accepted(c) == IF Numbers(c) = {} THEN 0
               ELSE 1 + (CHOOSE n \in Numbers(c) : \A k \in Numbers(c) : k <= n)
Service(c) == INSTANCE ReliableFifo WITH
    Items <- [k \in 1..Packets |-> <<c, k - 1>>],
    accepted <- Accepted(c),
    delivered <- SelectSeq(log, LAMBDA item : item[1] = c)
DeliveredIsPrefix == \A c \in Csns : Service(c)!DeliveredIsPrefix      \* STP-CC-008
RefinesService ==
    /\ \A c \in Csns : Service(c)!Init
    /\ [][\A c \in Csns : Service(c)!Next \/ UNCHANGED Service(c)!fifoVars]_vars

----------------------------------------------------------------------------
(* Reachability: each of these must be violated, or the model would hold vacuously. *)

NeverSuccess == \A c \in Csns : told[c] # "success"
NeverAcceptedAtOnce == [][~(sState' = "open" /\ sState # "waiting" /\ sState # "open")]_vars
NeverSecondSuccess == ~\A c \in Csns : told[c] = "success"
NeverRefusesNumber == [][~(cState = "open" /\ cState' = "over" /\ told'[cCsn] = "failure"
                           /\ abandoned' = abandoned /\ END(cCsn, "server") \notin net)]_vars
NeverServerAbort == \A c \in Csns : sTold[c] # "abort"
==============================================================================
