"""Forwards TCP connections to Unix sockets: forward.py PORT SOCKET [PORT SOCKET ...]."""

import asyncio
import sys


async def copy(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def forward(reader, writer, socket):
    try:
        to_socket = await asyncio.open_unix_connection(socket)
        await asyncio.gather(copy(reader, to_socket[1]), copy(to_socket[0], writer))
    except OSError:
        pass
    finally:
        writer.close()


async def main(arguments):
    for port, socket in zip(arguments[::2], arguments[1::2]):
        connected = lambda reader, writer, socket=socket: forward(reader, writer, socket)
        await asyncio.start_server(connected, "127.0.0.1", int(port))
    await asyncio.Event().wait()


asyncio.run(main(sys.argv[1:]))
