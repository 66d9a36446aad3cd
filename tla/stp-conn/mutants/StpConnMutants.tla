--------------------------- MODULE StpConnMutants ---------------------------
(* Each definition replaces one of StpConn's and must break the property named in manifest.json.      *)
EXTENDS MCStpConn

(* A BEGIN is believed without a look at its number.                                                  *)
AnyBegin(csn) == TRUE

(* Data is accepted at once even if nothing is known of the client.                                   *)
AlwaysKnown == TRUE

(* A confirmation needs no number.                                                                    *)
AnyEcho(m, p) == TRUE

(* An SD of any incarnation is taken.                                                                 *)
AnySd(m) == TRUE

(* An END of any incarnation ends the present one.                                                    *)
AnyEnd(m) == TRUE

(* The FIN is taken when it arrives, whatever is missing.                                             *)
FinAtOnce(e) == e.rfin # None

(* Success is reported when anything is acknowledged.                                                 *)
FirstAckIsSuccess(e) == e.acked > 0

(* Success is reported once the peer's stream has ended.                                              *)
PeerIsFinished(e) == Finished(e)

(* An aborted connection is reported as a success.                                                    *)
AbortIsSuccess == "success"

(* The early credit is forgotten.                                                                     *)
NoEarlyCredit == cState \in {"begun", "open"}

(* A server that counts its numbers from somewhere else.                                              *)
StrangeNumber == base + 5 + Sum(taken, Connections)

(* The server waits for a number it never gave.                                                       *)
NeverConfirmed(m, p) == FALSE

(* Another number of the server goes unnoticed.                                                       *)
Unnoticed(own) == FALSE

(* The client confirms another number as well, on the same connection.                                *)
ConfirmsAgain(own) ==
    /\ c' = [c EXCEPT !.peer = own] /\ UNCHANGED <<cState, told>>
    /\ Emit({ClientConfirms(own)}, {})

(* A BGAK acknowledges the data of a BEGIN that still waits for confirmation.                         *)
AcknowledgedUnseen == 1

(* SDs are taken in whatever order they come, again and again.                                        *)
TakesAny(e, n, fin) == [e EXCEPT !.rcv = n + 1]
HandsAny(e, f, n) == <<n>>

(* A connection ends when the client's BEGIN of another arrives.                                      *)
Yields(m) ==
    /\ ServerOver("failure") /\ UNCHANGED s
    /\ Emit({END("server", s.csn, s.peer, "abort", 0)}, {})

(* A hint that names the tag only ends the connection.                                                *)
BelievesHint == Over("failure") /\ Emit({}, {})
=============================================================================
