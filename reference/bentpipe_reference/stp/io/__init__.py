"""STP/1 over real sockets: UDP or IP itself below, a selector loop or asyncio around.

The protocol machine stays sans-IO; here are clocks, sockets and nothing of the protocol.
"""
