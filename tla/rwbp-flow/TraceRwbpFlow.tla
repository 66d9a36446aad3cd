---------------------------- MODULE TraceRwbpFlow ----------------------------
(* Is the recorded behaviour of a proxy, its gateway and the users behind the satellite one of          *)
(* RwbpFlow's? Each trace is a sequence of records [k |-> kind, f |-> flow, n |-> number, ...] as        *)
(* bentpipe_experiments.flow_trace describes them; counts are in packets and absolute, but for reports  *)
(* and losses. Code does several of the model's steps at once, so that each event has the guards of its  *)
(* last step. What is under way is not recorded: a packet has arrived here when the proxy knows it, and  *)
(* is lost when the proxy takes it for lost.                                                            *)
EXTENDS RwbpFlow, Rejection

CONSTANTS TraceLogs, Flows

TraceConnections == 1..Flows

VARIABLES
    trace,  \* which trace
    at      \* the next event in it

traceVars == <<trace, at>>

(* TLC would evaluate all traces anew at every step; its registers keep them evaluated.               *)
Count == Len(TraceLogs)
ASSUME TLCSet(0, Count) /\ \A i \in 1..Count : TLCSet(i, TraceLogs[i])

Log == TLCGet(trace)
Event == Log[at]
Is(kind) == at <= Len(Log) /\ Event.k = kind
F == Event.f

(* Nothing may pass before the gateway's first frame, and no window is known before the handshake.     *)
TraceInit ==
    /\ offered = Zero /\ received = Zero /\ moved = Zero /\ again = Zero /\ sent = Zero
    /\ arrived = Zero /\ consumed = Zero /\ window = Zero
    /\ tcpLimit = [c \in Connections |-> ReceiveBuffer]
    /\ ip = <<>> /\ gateway = <<>> /\ satellite = <<>>
    /\ gatewayCredit = 0 /\ toGateway = 0 /\ passed = 0
    /\ losses = Losses /\ last = Nobody
    /\ trace \in 1..TLCGet(0) /\ at = 1

Set(counts, n) == [counts EXCEPT ![F] = n]

(* The ring begins behind the flow served last (RWBP-SC-001).                                          *)
Ahead(d) == (d - last - 1 + Flows) % Flows
Passed == {d \in Connections : Ahead(d) < Ahead(F) /\ Sendable(d)}

ReceiveFits == Event.n - moved[F] <= ReceiveBuffer
Received ==
    /\ Is("receive") /\ Event.n >= received[F] /\ ReceiveFits
    /\ offered' = Set(offered, Event.n) /\ received' = Set(received, Event.n)
    /\ UNCHANGED <<tcpLimit, moved, again, sent, window, arrived, consumed, shared>>

SendFits == Event.n - arrived[F] <= SendBuffer
Moved ==
    /\ Is("move") /\ Event.n >= moved[F] /\ Event.n <= received[F] /\ SendFits
    /\ moved' = Set(moved, Event.n)
    /\ UNCHANGED <<offered, tcpLimit, received, again, sent, window, arrived, consumed, shared>>

EdgeTold ==
    /\ Is("edge") /\ Event.n >= window[F] /\ Event.n <= DownstreamLimit(F)
    /\ window' = Set(window, Event.n)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, again, sent, arrived, consumed, shared>>

Reported ==
    /\ Is("report") /\ arrived[F] + Event.n <= sent[F] /\ Event.awaited <= again[F]
    /\ arrived' = Set(arrived, arrived[F] + Event.n)
    /\ again' = Set(again, again[F] - Event.awaited)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, sent, window, consumed, shared>>

Lost ==
    /\ Is("lost") /\ arrived[F] + again[F] + Event.n <= sent[F]
    /\ again' = Set(again, again[F] + Event.n)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, sent, window, arrived, consumed, shared>>

Turn ==
    /\ IpHasRoom /\ Passed = {}
    /\ ip' = Append(ip, F) /\ last' = F
    /\ UNCHANGED <<offered, tcpLimit, received, moved, window, arrived, consumed,
                   gatewayCredit, toGateway, gateway, passed, satellite, losses>>

ServedNew ==
    /\ Is("serve") /\ again[F] = 0 /\ sent[F] < moved[F] /\ WindowOpen(F) /\ Turn
    /\ sent' = Plus(sent, F) /\ UNCHANGED again

ServedAgain ==
    /\ Is("again") /\ again[F] > 0 /\ Turn
    /\ again' = Set(again, again[F] - 1) /\ UNCHANGED sent

(* RWBP-SC-004: what carries no data takes no turn and waits for no room.                              *)
Controlled ==
    /\ Is("control") /\ ip' = Append(ip, Nobody)
    /\ UNCHANGED <<perFlow, gatewayCredit, toGateway, gateway, passed, satellite, losses, last>>

PassedOn == Is("pass") /\ PassToGateway

Credited ==
    /\ Is("credit") /\ Event.n <= GatewayLimit
    /\ gatewayCredit' = IF Event.n > gatewayCredit THEN Event.n ELSE gatewayCredit
    /\ UNCHANGED <<perFlow, ip, toGateway, gateway, passed, satellite, losses, last>>

Left ==
    /\ Is("leave") /\ gateway # <<>>
    /\ gateway' = Tail(gateway) /\ passed' = passed + 1
    /\ UNCHANGED <<perFlow, ip, gatewayCredit, toGateway, satellite, losses, last>>

Consumed ==
    /\ Is("consume") /\ Event.n >= consumed[F] /\ Event.n <= sent[F]
    /\ consumed' = Set(consumed, Event.n)
    /\ UNCHANGED <<offered, tcpLimit, received, moved, again, sent, window, arrived, shared>>

TraceNext ==
    /\ \/ Received \/ Moved \/ EdgeTold \/ Reported \/ Lost \/ ServedNew \/ ServedAgain
       \/ Controlled \/ PassedOn \/ Credited \/ Left \/ Consumed
    /\ at' = at + 1 /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* The guard that blocks the next event; only asked where nothing follows. *)
Turned ==
    IF ~IpHasRoom THEN MustBeAtMost("packets in the IP queue", IpQueue, "RWBP-FC-004")
    ELSE Must("the flow served", {d \in Passed : \A e \in Passed : Ahead(d) <= Ahead(e)},
              "RWBP-FC-005, RWBP-SC-001")

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("receive") -> MustLie("received", received[F], moved[F] + ReceiveBuffer, "RWBP-FC-001")
      [] Is("move") ->
            MustLie("moved", moved[F], IF received[F] < arrived[F] + SendBuffer THEN received[F]
                                       ELSE arrived[F] + SendBuffer, "RWBP-FC-002")
      [] Is("edge") -> MustLie("the edge", window[F], DownstreamLimit(F),
                               IF Event.n < window[F] THEN "RWBP-WN-002" ELSE "RWBP-FC-003")
      [] Is("report") /\ arrived[F] + Event.n > sent[F] ->
            MustBeAtMost("packets newly reported", sent[F] - arrived[F], "RWBP-EC-015")
      [] Is("report") -> MustBeAtMost("those of them that await retransmission", again[F], "RWBP-EC-002")
      [] Is("lost") -> MustBeAtMost("packets taken for lost", sent[F] - arrived[F] - again[F], "RWBP-EC-002")
      [] Is("serve") /\ again[F] > 0 ->
            "what is served must be a retransmission: " \o ToString(again[F]) \o " wait (RWBP-EC-004)"
      [] Is("serve") /\ sent[F] >= moved[F] ->
            MustBeAtMost("nothing waits in the send buffer: sent", moved[F], "RWBP-FC-002")
      [] Is("serve") /\ ~WindowOpen(F) -> MustBeAtMost("the window is closed: sent", window[F], "RWBP-FC-003")
      [] Is("again") /\ again[F] = 0 ->
            "nothing awaits retransmission: what is served must be new (RWBP-EC-012)"
      [] Is("serve") \/ Is("again") -> Turned
      [] Is("pass") /\ ip = <<>> ->
            MustBeAtMost("the IP queue is empty: packets passed to the gateway", toGateway, "RWBP-LC-008")
      [] Is("pass") -> MustBeAtMost("packets passed to the gateway", gatewayCredit, "RWBP-FC-006")
      [] Is("credit") -> MustBeAtMost("the gateway's limit", GatewayLimit, "RWBP-LC-010")
      [] Is("leave") -> MustBeAtMost("packets that have left the gateway", passed, "RWBP-LC-010")
      [] Is("consume") -> MustLie("packets that the user has taken", consumed[F], sent[F], "RWBP-EC-009")
      [] OTHER -> "no such event"

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
