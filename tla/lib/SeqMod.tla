------------------------------- MODULE SeqMod --------------------------------
(* Sequence numbers on the wire are counted modulo Modulus; models carry the absolute number as a    *)
(* ghost, and an endpoint sees of it only what Decode gives back.                                    *)
EXTENDS Integers

CONSTANT Modulus

OnWire(number) == number % Modulus

(* The smallest number not below base that looks the same on the wire.                               *)
Decode(wire, base) == base + ((wire - base) % Modulus)

Seen(number, base) == Decode(OnWire(number), base)
==============================================================================
