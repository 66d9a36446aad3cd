--------------------------- MODULE RwbpFlowMutants ---------------------------
(* Each definition replaces one of RwbpFlow's and must break the property named in manifest.json.     *)
EXTENDS MCRwbpFlow

(* A source that ignores its window.                                                                  *)
AlwaysOffers(c) == TRUE

(* The write to the send buffer does not block.                                                       *)
WriteDoesNotBlock(c) == TRUE

(* Room is kept for what has not been sent only: a lost packet comes back into a full buffer.          *)
RoomForUnsentOnly(c) == InSendBuffer(c) < SendBuffer

(* The downstream window is ignored.                                                                  *)
WindowIgnored(c) == TRUE

(* "Greater than one" taken literally.                                                                *)
GreaterThanOne(c) == window[c] - sent[c] > 1

(* IP's queue is not looked at.                                                                       *)
EndlessIpQueue == TRUE

(* The gateway's credit is ignored.                                                                   *)
CreditIgnored == TRUE

(* The gateway names its whole queue, as if all that was sent to it had left.                         *)
WholeQueue == toGateway + GatewayQueue

(* The lowest connection is always served first.                                                      *)
LowestFirst(c) == \A d \in Connections : d < c => ~Sendable(d)

(* The scheduler takes packets that have not come from the source yet.                                *)
SendsWhatItHasNot(c) == again[c] > 0 \/ (sent[c] < Packets /\ WindowOpen(c))

(* The downstream proxy advertises room for what has arrived as well.                                 *)
ForgetsUnread(c) == arrived[c] + Window

(* The downstream proxy hands over what has not arrived.                                              *)
HandsOverAnything(c) == consumed[c] < Packets
==============================================================================
