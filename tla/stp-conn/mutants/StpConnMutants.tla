--------------------------- MODULE StpConnMutants ---------------------------
(* Each definition replaces one of StpConn's and must break the property named in manifest.json.      *)
EXTENDS MCStpConn

(* A BEGIN is believed without a look at its number.                                                  *)
AnyBegin(csn) == csn # sCsn

(* Data is accepted at once even if nothing is known of the client.                                   *)
AlwaysKnown == TRUE

(* A confirmation needs no number.                                                                    *)
AnyEcho(m) == TRUE

(* An SD of any incarnation is taken.                                                                 *)
AnySd(m) == TRUE

(* An END of any incarnation ends the present one.                                                    *)
AnyEnd(m) == TRUE

(* The FIN is taken when it arrives, whatever is missing.                                             *)
FinAtOnce(n) == n = sRcv \/ n = Fin

(* Success is reported when anything is acknowledged.                                                 *)
FirstAckIsSuccess(r) == TRUE

(* An aborted connection is reported as a success.                                                    *)
AbortIsSuccess == "success"

(* The early credit is forgotten.                                                                     *)
NoEarlyCredit(n) == cState \in {"begun", "open"}

(* A server that counts its numbers from somewhere else.                                              *)
StrangeNumber == epoch + 3

(* The server waits for a number it never gave.                                                       *)
NeverConfirmed(m) == FALSE

(* Another number of the server goes unnoticed.                                                       *)
Unnoticed(own) == FALSE

(* The client confirms another number as well, on the same connection.                                *)
ConfirmsAgain(own) == cEcho' = own /\ UNCHANGED <<cState, told, cAcked>>

(* A BGAK acknowledges the data of a BEGIN that still waits for confirmation.                         *)
AcknowledgedUnseen == 1

(* SDs are taken in whatever order they come, again and again.                                        *)
AnyTurn(n) == TRUE
=============================================================================
