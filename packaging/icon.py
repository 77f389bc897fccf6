"""Draws crates/onward/assets/onward.svg as a PNG: clients of MCP bundles show no SVG."""

import math
import struct
import zlib

# The shapes of the SVG, in its units: a rounded square and two chevrons.
SIZE, RADIUS, WIDTH = 32, 7, 3.2
BLUE, WHITE = (0x1F, 0x5F, 0xBF), (0xFF, 0xFF, 0xFF)
CHEVRONS = [((x, 8), (x + 8, 16)) for x in (8, 16)] + [((x + 8, 16), (x, 24)) for x in (8, 16)]


def to_segment(x, y, start, end):
    (ax, ay), (bx, by) = start, end
    along = ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2)
    along = min(1, max(0, along))
    return math.hypot(x - ax - along * (bx - ax), y - ay - along * (by - ay))


def to_square(x, y):
    dx, dy = (abs(value - SIZE / 2) - SIZE / 2 + RADIUS for value in (x, y))
    return math.hypot(max(dx, 0), max(dy, 0)) + min(max(dx, dy), 0) - RADIUS


def png(pixels):
    unit = SIZE / pixels

    def coverage(distance):
        return min(1, max(0, 0.5 - distance / unit))

    rows = b""
    for row in range(pixels):
        rows += b"\0"
        for column in range(pixels):
            x, y = (column + 0.5) * unit, (row + 0.5) * unit
            line = coverage(min(to_segment(x, y, *part) for part in CHEVRONS) - WIDTH / 2)
            colour = [round(blue + (white - blue) * line) for blue, white in zip(BLUE, WHITE)]
            rows += bytes([*colour, round(255 * coverage(to_square(x, y)))])

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", pixels, pixels, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
