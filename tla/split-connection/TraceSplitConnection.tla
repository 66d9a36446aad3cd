------------------------ MODULE TraceSplitConnection ------------------------
(* Is the recorded behaviour of a box one of SplitConnection's? Each trace is a sequence of records     *)
(* [k |-> kind, d |-> stream, e |-> end, n |-> octets] as bentpipe_experiments.box_trace describes      *)
(* them; octets are absolute. Code does several of the model's steps at once, so that each event has    *)
(* the guards of its last step. What is under way to the box is not recorded: an end has sent what the  *)
(* box has taken. A receiver's window is what it has told the box, so that what it has read is counted  *)
(* as what it permits, and Window is nothing.                                                           *)
EXTENDS SplitConnection, Rejection

CONSTANT TraceLogs

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
D == Event.d
E == Event.e
N == Event.n

(* Nothing may be sent to the box before it has told its first window, nor by it.                      *)
TraceInit ==
    /\ sent = <<0, 0>> /\ taken = <<0, 0>> /\ read = <<0, 0>> /\ unheard = <<0, 0>>
    /\ limit = <<0, 0>>
    /\ held = << <<>>, <<>> >> /\ delivered = << <<>>, <<>> >>
    /\ closed = <<FALSE, FALSE>> /\ finTaken = <<FALSE, FALSE>>
    /\ finAcked = <<FALSE, FALSE>> /\ finGot = <<FALSE, FALSE>>
    /\ box = "up" /\ side = <<TRUE, TRUE>> /\ end = <<"open", "open">>
    /\ crashes = Crashes /\ failures = Failures
    /\ trace \in 1..TLCGet(0) /\ at = 1

SentOn(d) == Len(delivered[d])
Confirmed(d) == taken[d] - Len(held[d])
Hears(d) == Serves(d) /\ end[d] = "open"
Speaks(d) == Serves(Other(d)) /\ end[Other(d)] = "open"

Permitted ==
    /\ Is("permit") /\ Hears(D) /\ N >= limit[D] /\ N <= Limit(D)
    /\ limit' = Set(limit, D, N)
    /\ UNCHANGED <<sent, closed, taken, held, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

Took ==
    /\ Is("take") /\ Hears(D) /\ ~finTaken[D] /\ N > taken[D] /\ N <= limit[D]
    /\ sent' = Set(sent, D, N) /\ taken' = Set(taken, D, N)
    /\ held' = Set(held, D, held[D] \o [i \in 1..(N - taken[D]) |-> taken[D] + i])
    /\ UNCHANGED <<closed, limit, unheard, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

RoomTold ==
    /\ Is("room")
    /\ read' = Set(read, D, N)
    /\ UNCHANGED <<sent, closed, limit, taken, held, unheard, delivered, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

Goes(d, n) == Speaks(d) /\ ~finGot[d] /\ n > SentOn(d) /\ n <= taken[d]

Delivered ==
    /\ Is("deliver") /\ Goes(D, N) /\ N <= read[D] + Window
    /\ delivered' = Set(delivered, D,
           delivered[D] \o SubSeq(held[D], unheard[D] + 1, unheard[D] + N - SentOn(D)))
    /\ unheard' = Set(unheard, D, unheard[D] + N - SentOn(D))
    /\ UNCHANGED <<sent, closed, limit, taken, held, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

(* PEP-FB-006: one octet asks a closed window, and has not arrived before it is acknowledged.          *)
Probed == Is("probe") /\ Goes(D, N) /\ N = SentOn(D) + 1 /\ UNCHANGED vars

Acknowledged ==
    /\ Is("confirm") /\ N >= Confirmed(D) /\ N <= SentOn(D)
    /\ held' = Set(held, D, SubSeq(held[D], N - Confirmed(D) + 1, Len(held[D])))
    /\ unheard' = Set(unheard, D, unheard[D] - (N - Confirmed(D)))
    /\ UNCHANGED <<sent, closed, limit, taken, delivered, read, finTaken, finAcked, finGot,
                   box, side, end, crashes, failures>>

FinTaken ==
    /\ Is("fin") /\ Hears(D) /\ ~finTaken[D] /\ N = taken[D]
    /\ closed' = Set(closed, D, TRUE) /\ finTaken' = Set(finTaken, D, TRUE)
    /\ UNCHANGED <<sent, limit, taken, held, unheard, delivered, read, finAcked, finGot,
                   box, side, end, crashes, failures>>

EndSent == Is("end") /\ N = taken[D] /\ DeliverFin(D)
EndAcknowledged == Is("ackfin") /\ AckFin(D)

WasReset ==
    /\ Is("reset") /\ Serves(E)
    /\ end' = Set(end, E, "aborted") /\ side' = Set(side, E, FALSE)
    /\ UNCHANGED <<streams, box, crashes, failures>>

GivenUp ==
    /\ Is("fails") /\ Serves(E)
    /\ side' = Set(side, E, FALSE)
    /\ UNCHANGED <<streams, box, end, crashes, failures>>

(* Who was given up may be told, too.                                                                  *)
MayTell(e) == ~side[e] \/ (~side[Other(e)] /\ ~Done(e))
WasTold == /\ Is("told") /\ MayTell(E)
           /\ IF side[E] THEN CarryOver(E) ELSE UNCHANGED vars

(* A connection may be forgotten when nobody is left who believes in it.                               *)
Believes(e) == side[e] /\ ~Done(e)
Over == Is("over") /\ (\A e \in Ends : ~Believes(e)) /\ box' = "down"
        /\ UNCHANGED <<streams, side, end, crashes, failures>>

(* Where nothing happens any more nothing is left to do, of all that has to be done (PEP-FB-004,       *)
(* PEP-FB-010, PEP-RE-002, -004, -006, -008). A window is only known to be due when nothing is held; a  *)
(* box may wait until its own FIN is acknowledged, which finds no room in a closed window.             *)
Due(d) ==
    CASE Speaks(d) /\ ~finGot[d] /\ unheard[d] < Len(held[d]) /\ SentOn(d) < read[d] + Window -> "send"
      [] Speaks(d) /\ ~finGot[d] /\ MayEnd(d) -> "end"
      [] /\ Hears(d) /\ finTaken[d] /\ finGot[d] /\ AllConfirmed(d) /\ ~finAcked[d]
         /\ SentOn(d) < read[d] + Window -> "ackfin"
      [] Hears(d) /\ ~finTaken[d] /\ held[d] = <<>> /\ limit[d] = taken[d] -> "permit"
      [] Believes(d) /\ ~side[Other(d)] /\ end[d] = "open" /\ box = "up" -> "tell"
      [] OTHER -> "nothing"
Quiet == Is("quiet") /\ (\A d \in Ends : Due(d) = "nothing") /\ UNCHANGED vars

TraceNext ==
    /\ \/ Permitted \/ Took \/ RoomTold \/ Delivered \/ Probed \/ Acknowledged \/ FinTaken \/ EndSent
       \/ EndAcknowledged \/ WasReset \/ GivenUp \/ WasTold \/ Over \/ Quiet
    /\ at' = at + 1 /\ UNCHANGED trace

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, traceVars>>

(* The guard that blocks the next event; only asked where nothing follows. *)
Least(a, b) == IF a < b THEN a ELSE b

Late(d) ==
    CASE Due(d) = "send" ->
            MustBe("octets sent on", Least(taken[d], read[d] + Window), "PEP-FB-010, PEP-FB-004")
      [] Due(d) = "end" -> MustBe("a FIN sent on behind octet", taken[d], "PEP-RE-004, PEP-RE-009")
      [] Due(d) = "ackfin" -> MustBe("the FIN acknowledged", TRUE, "PEP-RE-002, PEP-RE-004")
      [] Due(d) = "permit" -> MustLie("octets permitted", limit[d] + 1, Limit(d), "PEP-FB-004")
      [] OTHER -> MustBe("an end told of the failure", d, "PEP-RE-006, PEP-RE-008")

Guard ==
    CASE at > Len(Log) -> "accepted"
      [] Is("permit") /\ Hears(D) ->
            MustLie("octets permitted", limit[D], Limit(D),
                    IF N < limit[D] THEN "PEP-FB-003" ELSE "PEP-FB-002")
      [] Is("take") /\ Hears(D) /\ ~finTaken[D] ->
            MustLie("octets taken", taken[D] + 1, limit[D], "PEP-FB-001, PEP-FB-008")
      [] Is("take") /\ finTaken[D] -> MustBeAtMost("octets taken of a stream that has ended", taken[D],
                                                   "PEP-RE-003")
      [] Is("deliver") /\ Speaks(D) /\ ~finGot[D] ->
            MustLie("octets sent on", SentOn(D) + 1, Least(taken[D], read[D] + Window),
                    IF N > taken[D] THEN "PEP-TR-001" ELSE "PEP-LR-001")
      [] Is("probe") /\ Speaks(D) /\ ~finGot[D] ->
            MustBe("the octet that asks a closed window", Least(SentOn(D) + 1, taken[D]), "PEP-FB-006")
      [] (Is("deliver") \/ Is("probe")) /\ Speaks(D) ->
            MustBeAtMost("octets sent on behind the end", SentOn(D), "PEP-RE-003")
      [] Is("confirm") -> MustLie("octets confirmed", Confirmed(D), SentOn(D), "PEP-RE-001")
      [] Is("fin") /\ Hears(D) -> MustBe("octets taken before the FIN", taken[D], "PEP-RE-003")
      [] Is("end") /\ Speaks(D) /\ ~finTaken[D] ->
            "no FIN may be sent on: it must be the sender who ends its stream (PEP-RE-003, PEP-RE-007, PEP-RE-008)"
      [] Is("end") /\ Speaks(D) /\ ~finGot[D] ->
            MustBe("octets sent on before the FIN", taken[D], "PEP-RE-003")
      [] Is("end") /\ Speaks(D) -> MustBe("the FIN sent on again behind octet", SentOn(D), "PEP-RE-003")
      [] Is("ackfin") /\ Hears(D) /\ ~finTaken[D] ->
            MustBeAtMost("octets acknowledged", taken[D], "PEP-RE-003")
      [] Is("ackfin") /\ Hears(D) /\ ~finAcked[D] ->
            MustBe("octets confirmed before the FIN is acknowledged", taken[D], "PEP-RE-002")
      [] Is("told") /\ Done(E) -> MustBe("an end that is through reset", FALSE, "PEP-RE-009")
      [] Is("told") ->
            MustBe("whether the side of the other end has failed", TRUE, "PEP-RE-006, PEP-RE-009")
      [] Is("over") -> Must("ends that were told of the failure, or are through", Ends,
                            "PEP-RE-006, PEP-RE-008, PEP-RE-016")
      [] Is("quiet") -> IF Due(1) # "nothing" THEN Late(1) ELSE Late(2)
      [] OTHER -> MustBe("the side of the end open", TRUE, "PEP-RE-006, PEP-RE-008")

Reached == PrintT(<<"reached", trace, at, 0, Guard>>)
=============================================================================
