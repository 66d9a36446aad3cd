--------------------------- MODULE StpConnReached ----------------------------
(* What must be reachable: steps that may be taken, where no property would miss them. *)
EXTENDS StpConnRules

(* STP-CC-002: early data goes on after the SD of the BEGIN. *)
NeverEarlySd == ~\E p \in PortSet : C[p].st = "begun" /\ C[p].sent > 1

(* STP-CC-021: before the BGAK an END is known by the client's CSN alone. *)
NeverEndedUnanswered == ~\E p \in PortSet :
    /\ C[p].st = "over" /\ C[p].peer = Unknown /\ <<"client", C[p].csn>> \notin abandoned
    /\ ~\E m \in net : /\ m.type = "BGREJ" \/ (m.type = "END" /\ m.kind = "unknown")
                       /\ m.peer = C[p].csn

(* STP-CC-038: a call that is refused for want of room has failed. *)
NeverEndedByRefusal == ~\E t \in DOMAIN begins :
    /\ calls[begins[t].call].told = "failure" /\ abandoned = {}
    /\ \E m \in net : m.type = "BGREJ" /\ m.reason = 5 /\ m.peer = begins[t].csn
    /\ ~\E m \in net : m.type = "END" /\ m.peer = begins[t].csn

(* STP-CC-016: a BEGIN is sent again. *)
NeverRepeats == ~\E m, n \in net : m.type = "BEGIN" /\ n.type = "BEGIN" /\ m.csn = n.csn /\ m.at < n.at

(* STP-CC-020: in state 2 as well, a BGAK for another try is disowned. *)
NeverDisownsWhileCalling ==
    [][\A m \in Sending("END") :
          m.kind = "unknown" /\ m.from = "client" /\ m.csn # Unknown => C[m.port].st # "begun"]_vars

(* STP-CC-006, STP-CC-025: either end releases, and the server's user speaks and aborts as the client's. *)
NeverClientReleases == ~\E m \in net : m.type = "END" /\ m.kind = "release" /\ m.from = "client"
NeverServerReleases == ~\E m \in net : m.type = "END" /\ m.kind = "release" /\ m.from = "server"
NeverServerSpeaks == ~\E m \in net : m.type = "SD" /\ m.from = "server"
NeverServerAborts == ~\E m \in net : m.type = "END" /\ m.kind = "abort" /\ m.from = "server"
==============================================================================
