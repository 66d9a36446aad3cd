"""Cookies as a listener makes them, remembers them, and as a caller keeps them."""

from __future__ import annotations

import pytest
from bentpipe_reference.stp.config import StpConfig
from bentpipe_reference.stp.cookies import CookieJar, Cookies, Ticket
from bentpipe_reference.stp.endpoint import StpEndpoint
from bentpipe_reference.stp.memory import Memory, Share

PEER, OTHER = ("10.0.0.1", 7253), ("10.0.0.1", 7254)


def test_cookies_rise_even_within_a_microsecond_and_backwards_time() -> None:
    cookies = Cookies(b"secret", 10)
    made = [cookies.make(PEER, now) for now in (5.0, 5.0, 5.0000001, 4.0, 6.0)]
    assert made == sorted(made) and len(set(made)) == 5
    assert all(cookies.is_good(PEER, cookie, 6.0) for cookie in made)


def test_cookie_with_any_bit_altered_is_not_good() -> None:
    cookies = Cookies(b"secret", 10)
    cookie = cookies.make(PEER, 5.0)
    for bit in range(8 * len(cookie)):
        altered = bytearray(cookie)
        altered[bit // 8] ^= 1 << bit % 8
        assert not cookies.is_good(PEER, bytes(altered), 5.0)
    for other in (cookie[:-1], cookie + b"\0", b"", None):
        assert not cookies.is_good(PEER, other, 5.0)


def test_cookie_of_another_address_or_another_life_is_not_good() -> None:
    cookies = Cookies(b"secret", 10)
    cookie = cookies.make(PEER, 5.0)
    assert not cookies.is_good(OTHER, cookie, 5.0)
    assert not Cookies(b"another", 10).is_good(PEER, cookie, 5.0)


def test_endpoints_of_two_seeds_have_two_secrets() -> None:
    near, far = (StpEndpoint(StpConfig(), seed)._cookies for seed in (1, 2))
    assert not far.is_good(PEER, near.make(PEER, 1.0), 1.0)
    same = [StpEndpoint(StpConfig(), 1, secret=secret)._cookies for secret in (b"a", b"b")]
    assert same[0].make(PEER, 1.0) != same[1].make(PEER, 1.0)


def test_cookie_used_with_the_v_flag_voids_those_made_before_it_for_its_address() -> None:
    cookies = Cookies(b"secret", 10)
    before, used, after = (cookies.make(PEER, 5.0) for _ in range(3))
    others = cookies.make(OTHER, 0.0)
    cookies.use(PEER, used, voids=True)
    assert cookies.is_used(PEER, used, 5.0) and not cookies.is_used(PEER, before, 5.0)
    assert not cookies.is_good(PEER, used, 5.0) and not cookies.is_good(PEER, before, 5.0)
    assert cookies.is_good(PEER, after, 5.0) and cookies.is_good(OTHER, others, 5.0)
    assert not cookies.is_used(OTHER, used, 5.0) and not cookies.is_good(OTHER, used, 5.0)


def test_cookie_used_without_the_v_flag_voids_no_other() -> None:
    cookies = Cookies(b"secret", 10)
    before, used, after = (cookies.make(PEER, 5.0) for _ in range(3))
    cookies.use(PEER, used, voids=False)
    assert cookies.is_used(PEER, used, 5.0) and not cookies.is_good(PEER, used, 5.0)
    assert cookies.is_good(PEER, before, 5.0) and cookies.is_good(PEER, after, 5.0)


def test_cookies_voided_stay_void_when_a_later_one_is_used_without_the_v_flag() -> None:
    cookies = Cookies(b"secret", 10)
    before, voiding, after = (cookies.make(PEER, 5.0) for _ in range(3))
    cookies.use(PEER, voiding, voids=True)
    cookies.use(PEER, after, voids=False)
    assert not cookies.is_good(PEER, before, 5.0)


def test_used_cookie_is_remembered_for_a_quarter_of_an_hour() -> None:
    cookies = Cookies(b"secret", 1)
    cookie = cookies.make(PEER, 100.0)
    cookies.use(PEER, cookie, voids=True)
    assert cookies.is_used(PEER, cookie, 1000.0) and not cookies.has_room(1000.0)
    assert not cookies.is_used(PEER, cookie, 1000.1) and cookies.has_room(1000.1)
    assert not cookies.is_good(PEER, cookie, 1000.1) and not cookies._void


def test_cookies_used_out_of_order_are_forgotten_in_their_order() -> None:
    cookies = Cookies(b"secret", 3)
    made = [(peer, cookies.make(peer, now)) for peer, now in ((PEER, 0.0), (OTHER, 100.0))]
    for peer, cookie in reversed(made):
        cookies.use(peer, cookie, voids=False)
    assert not cookies.is_used(*made[0], 950.0) and cookies.is_used(*made[1], 950.0)


def test_cookie_received_is_kept_for_ten_minutes() -> None:
    jar = CookieJar(10)
    jar.put(PEER, Ticket(b"first", 600, 0.0, jar.begin()))
    jar.put(PEER, Ticket(b"second", None, 5.0, jar.begin()))
    assert jar.take(PEER, 600.1) == Ticket(b"second", None, 5.0, 2)
    assert jar.take(PEER, 600.1) is None and len(jar) == 0


def test_failed_calls_are_remembered_within_the_bound_and_beyond_it_for_all() -> None:
    jar = CookieJar(2)
    early = jar.begin()
    for peer in (PEER, OTHER, ("10.0.0.2", 1)):
        jar.end(peer)
    late = jar.begin()
    for peer in (PEER, OTHER, ("10.0.0.3", 1)):
        for asked in (early, late):
            jar.put(peer, Ticket(b"%d" % asked, None, 0.0, asked))
        assert jar.take(peer, 0.0) == Ticket(b"%d" % late, None, 0.0, late)
        assert jar.take(peer, 0.0) is None
    assert len(jar._marks) == 2


def test_v_flag_is_set_until_a_call_made_since_the_start_or_a_failure_has_opened() -> None:
    jar = CookieJar(2)
    first = jar.begin()
    assert jar.voids(PEER, first)
    jar.open(PEER, first)
    early = jar.begin()
    assert not jar.voids(PEER, early) and jar.voids(OTHER, early)
    jar.end(PEER)
    late = jar.begin()
    assert jar.voids(PEER, late) and not jar.voids(PEER, early)
    jar.open(PEER, early)
    assert jar.voids(PEER, late)
    jar.open(PEER, late)
    assert not jar.voids(PEER, late)


def test_v_flag_of_a_call_made_before_a_failure_ends_with_one_opened_since() -> None:
    jar = CookieJar(2)
    early = jar.begin()
    jar.end(PEER)
    late = jar.begin()
    assert jar.voids(PEER, early)
    jar.open(PEER, late)
    assert not jar.voids(PEER, early)


def test_v_flag_of_a_call_made_before_a_failure_ends_with_another_such() -> None:
    jar = CookieJar(2)
    early = jar.begin()
    jar.end(PEER)
    late = jar.begin()
    jar.open(PEER, early)
    assert jar.voids(PEER, late) and not jar.voids(PEER, early)


def test_v_flag_is_set_for_an_address_that_made_room_for_others() -> None:
    jar = CookieJar(2)
    for peer in (PEER, OTHER, ("10.0.0.2", 1)):
        jar.open(peer, jar.begin())
    made = jar.begin()
    assert jar.voids(PEER, made) and not jar.voids(OTHER, made)


def test_share_never_exceeds_what_is_free() -> None:
    config = StpConfig(credit=2048)
    memory = Memory(10 * 4 * config.own_max_sd)
    shares = []
    while memory.has_room(config):
        shares.append(Share(memory, config))
    assert len(shares) == pytest.approx(9, abs=1) and memory.free >= 0
    assert all(share.grow(10_000) <= 2048 for share in shares) and memory.free >= 0
    for share in shares:
        share.give_back()
    assert memory.free == 10 * 4 * config.own_max_sd
