"""The workloads of go run ./bench on SimPy 3 or later.

Usage: agenda.py WORKLOAD PENDING OPS CHECK DELAYS; see the package comment of
bench for the workloads and the line that is printed.
"""

import array
import sys
import time

import simpy

CYCLE = 1250


class Run:
    def __init__(self, ops, check, delays):
        self.env = simpy.Environment(initial_time=0)
        self.ops, self.check, self.delays = ops, check, delays
        self.mask = len(delays) - 1
        self.done = self.drawn = self.checked = 0
        self.end = self.env.event()
        self.cores, self.engines = [0] * 54, [0] * 6

    def draw(self):
        d = self.delays[self.drawn & self.mask]
        self.drawn += 1
        return d

    def count(self):
        self.done += 1
        if self.done == self.check:
            self.checked = self.env.now
        if self.done == self.ops:
            self.end.succeed()

    def book(self, free, i, service):
        free[i] = max(self.env.now, free[i]) + service
        return free[i] - self.env.now

    def hold(self, first):
        yield self.env.timeout(first)
        while True:
            self.count()
            yield self.env.timeout(self.draw())

    def customer(self, actor):
        yield self.env.timeout(0)
        while True:
            self.count()
            service = CYCLE * (10 + self.draw() % 40)
            yield self.env.timeout(self.book(self.cores, actor // 8, service))
            self.count()
            wait = self.book(self.engines, self.draw() % 6, 4 * CYCLE)
            yield self.env.timeout(wait + 100 * CYCLE)


def main():
    workload, pending, ops, check, path = sys.argv[1:]
    delays = array.array("q")
    with open(path, "rb") as f:
        delays.frombytes(f.read())
    run = Run(int(ops), int(check), delays)
    for actor in range(int(pending)):
        run.env.process(run.hold(run.draw()) if workload == "hold" else run.customer(actor))
    # The processes take their first step before the clock starts.
    while run.env.peek() == 0 and run.done == 0 and workload == "hold":
        run.env.step()
    begin = time.process_time()
    run.env.run(until=run.end)
    seconds = time.process_time() - begin
    print("%.2f %d" % (seconds * 1e9 / run.ops, run.checked))


main()
