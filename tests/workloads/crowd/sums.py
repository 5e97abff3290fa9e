"""Sums squares, and writes the sums as JSON, every few milliseconds."""

import json
import time


def squares(turns):
    return sum(i * i for i in range(turns))


def sums():
    return json.dumps({str(i): squares(50) for i in range(200)})


while True:
    sums()
    time.sleep(0.002)
