---------------------------- MODULE RwbpFlowRules ----------------------------
(* The scheduler judged by what it has done, not by what it remembers; weak fairness; and what is      *)
(* known of limits, said once more in other words.                                                    *)
EXTENDS RwbpFlow

VARIABLE served     \* history: the connection whose packet IP was given last; Nobody at first

Given == Len(ip') > Len(ip)

(* The steps of the specification, watched. Each has a name of its own: TLC tells no step by name that   *)
(* is a part of a conjunction.                                                                        *)
Watched == served' = IF Given THEN ip'[Len(ip')] ELSE served
Offers(c)           == Offer(c) /\ Watched
Receives(c)         == Receive(c) /\ Watched
AdvertisesTcp(c)    == AdvertiseTcp(c) /\ Watched
Moves(c)            == Move(c) /\ Watched
Schedules(c)        == Schedule(c) /\ Watched
Consumes(c)         == Consume(c) /\ Watched
AdvertisesWindow(c) == AdvertiseWindow(c) /\ Watched
PassesToGateway     == PassToGateway /\ Watched
GrantsCredit        == GrantCredit /\ Watched
GoesUp              == Uplink /\ Watched
Arrives             == Arrive /\ Watched
Loses               == Lose /\ Watched

WatchedInit == Init /\ served = Nobody
WatchedNext ==
    \/ \E c \in Connections :
        \/ Offers(c) \/ Receives(c) \/ AdvertisesTcp(c) \/ Moves(c) \/ Schedules(c)
        \/ Consumes(c) \/ AdvertisesWindow(c)
    \/ PassesToGateway \/ GrantsCredit \/ GoesUp \/ Arrives \/ Loses
WatchedSpec == WatchedInit /\ [][WatchedNext]_<<vars, served>>

(* RWBP-FC-005 *)
Waits(c) == again[c] > 0 \/ (sent[c] < moved[c] /\ sent[c] < window[c])
TakesTurns ==
    [][Given => \/ ip'[Len(ip')] # served
                \/ \A d \in Connections \ {served} : ~Waits(d)]_<<vars, served>>

(* What is given to IP was waiting, and retransmissions go first. *)
GivesWhatWaits ==
    [][Given => LET c == ip'[Len(ip')]
                IN IF again[c] > 0 THEN again'[c] = again[c] - 1 /\ sent'[c] = sent[c]
                   ELSE sent'[c] = sent[c] + 1 /\ sent'[c] <= moved[c] /\ sent'[c] <= window[c]]_vars

(* RWBP-FC-001, RWBP-FC-003, RWBP-FC-006: limits never promise more than there is room for, and never  *)
(* take back.                                                                                         *)
LimitsAreHonest ==
    /\ \A c \in Connections : /\ tcpLimit[c] <= moved[c] + ReceiveBuffer
                              /\ window[c] <= consumed[c] + Window
    /\ gatewayCredit <= passed + GatewayQueue
LimitsNeverShrink ==
    [][/\ \A c \in Connections : tcpLimit'[c] >= tcpLimit[c] /\ window'[c] >= window[c]
       /\ gatewayCredit' >= gatewayCredit]_vars

(* Nothing is lost on the way, or comes twice: what IP was given is somewhere. *)
InFlight(c) == Cardinality({i \in DOMAIN ip : ip[i] = c})
               + Cardinality({i \in DOMAIN gateway : gateway[i] = c})
               + Cardinality({i \in DOMAIN satellite : satellite[i] = c})
NothingVanishes == \A c \in Connections : sent[c] = arrived[c] + again[c] + InFlight(c)
CreditIsCounted == toGateway = passed + Len(gateway)

Idle == \A c \in Connections : IF c \in Stalled THEN ~ENABLED Flow(c) ELSE consumed[c] = Packets
NeverStuck == Idle \/ ENABLED Next

(* RWBP-FC-007 with weak fairness only: whoever has had its turn lets another one go first, so that a  *)
(* scheduler that never rests serves everybody.                                                       *)
WeakSpec == /\ WatchedSpec /\ \A c \in Connections : WF_vars(Flow(c))
            /\ WF_vars(\E c \in Connections : Schedule(c)) /\ WF_vars(Shared)

----------------------------------------------------------------------------
(* Reachability *)
NeverBothWait == ~\A c \in Connections : Waits(c)
NeverAgainBeforeNew == ~\E c \in Connections : again[c] > 0 /\ sent[c] < moved[c] /\ sent[c] < window[c]
==============================================================================
