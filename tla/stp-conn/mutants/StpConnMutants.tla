--------------------------- MODULE StpConnMutants ---------------------------
(* Each definition replaces one of StpConn's and must break the property named in manifest.json.      *)
EXTENDS MCStpConn

(* Caller *)

(* Cookies are kept although a call has ended in state 2. *)
KeepsAll(cookies) == cookies
NothingDoubted(ends) == ends

(* A cookie is used again. *)
StaysInStock(cookies) == cookies

(* SDs follow a BEGIN without a cookie; the early credit is forgotten. *)
NoEarlyCredit(e) == e.st \in {"begun", "open"}

(* A BGREJ is taken from whoever sends it. *)
AnyRefusal(m) == TRUE

(* The caller takes SDs and STATs of any incarnation. *)
AnyServer(m) == TRUE

(* CSNs do not rise with every try. *)
SameCsn == Max(1, Len(begins))

(* A BGAK may acknowledge what has not been sent. *)
AnyAcknowledgment(e, r) == TRUE

(* The caller polls before it is answered. *)
PollsEarly(e) == e.st \in {"begun", "open"}

(* Server *)

(* Cookies: not made here, made before a restart, too old, older than one used, used. *)
AnyCookie(ck) == ck # NoCookie
AnyLife(ck) == ck \in DOMAIN made
AnyAge(ck) == TRUE
AnyOrder(ck) == TRUE
NeverUsed(ck) == FALSE

(* Whoever is in order is good, though it is used. *)
InOrderOrUsed(ck) == \A k \in used : ck >= k

(* Cookies are remembered only while there is room, or not at all. *)
NothingRemembered(ck) == used
AlwaysRoom == TRUE

(* A used cookie is answered with a fresh one. *)
AsksUsed(m) ==
    CASE ~IsGood(m.ck) -> ServerAsks(m)
      [] ~HasRoom      -> ServerSays(BGREJ(m.port, m.csn, 5, NoCookie))
      [] OTHER         -> ServerOpens(m)

(* A BEGIN that opens nothing ends the connection between its ports. *)
YieldsToCallers(m) ==
    /\ MayMake /\ Makes
    /\ Emit({BGREJ(m.port, m.csn, 6, Fresh)}, {})
    /\ UNCHANGED <<used, log>>
    /\ IF S[m.port].st = "open" THEN ServerOver(m.port, "failure") ELSE UNCHANGED <<S, opened>>

(* The server keeps the data of a caller that has proven nothing. *)
HandsOverUnproven(m) ==
    /\ MayMake /\ Makes
    /\ Emit({BGREJ(m.port, m.csn, 6, Fresh)}, {})
    /\ log' = IF m.data THEN Append(log, <<0, m.csn, 0>>) ELSE log
    /\ UNCHANGED <<S, opened, used>>

(* A repeated BEGIN delivers its data again. *)
StartsAgain(m) ==
    /\ MayMake /\ Makes
    /\ Emit({BGAK(m.port, S[m.port].csn, m.csn, S[m.port].rcv, Fresh)}, {})
    /\ log' = Append(log, <<S[m.port].csn, m.csn, 0>>)
    /\ UNCHANGED <<S, opened, used>>

(* The connection that is replaced stays, and its user is told nothing. *)
NotTold(p) == opened

(* An SD or STAT of any incarnation is taken. *)
AnyClient(m) == TRUE

(* A BGAK acknowledges what the BEGIN did not carry. *)
AcknowledgesMore(f) == f.rcv + 1

(* Both *)

(* ENDs: of any incarnation; without a look at the own CSN; zero for the peer's is not taken. *)
AnyEnd(e, m) == TRUE
EndOfPeer(e, m) == m.csn = e.peer \/ m.csn = Unknown
EndToMe(e, m) == m.peer = e.csn \/ m.peer = Unknown
EndWithoutZero(e, m) == m.csn = e.peer /\ m.peer = e.csn

(* The FIN is taken when it arrives, whatever is missing. *)
FinAtOnce(e) == e.rfin # None

(* Success when anything is acknowledged; when the peer's stream has ended; when the own has. *)
FirstAckIsSuccess(e) == e.acked > 0 /\ Finished(e)
PeerIsFinished(e) == Finished(e)
OwnIsAcknowledged(e) == Acknowledged(e, e.acked)

(* An abort is a success. *)
AbortIsSuccess(e) == "success"

(* The user is told again, and of a failure, though the end is complete. *)
AlwaysFailure(e) == "failure"
ToldAgain(before, result) == IF before = "nothing" \/ result # "gone" THEN result ELSE before

(* SDs are handed over in whatever order they come, and again and again. *)
TakesAny(e, csn, n, fin) == [e EXCEPT !.held = {<<csn, n>>}, !.rcv = n, !.rfin = IF fin THEN n ELSE @]

(* Nobody says that there is no connection; it is said to open ones, too. *)
NeverDisowns(from, m) == STAT(from, m.port, Unknown, 0)
=============================================================================
