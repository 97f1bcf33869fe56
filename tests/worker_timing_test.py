"""How the torch worker times itself, on a device that is simulated: the same as src/worker/native/timing_test.cpp."""
import unittest

from kernelbench_worker.timing import time_calls

MB = 1 << 20


class Simulated:
    """A device on which a call takes `call_us` and writing over a MB takes 1 us."""

    def __init__(self, call_us):
        self.call_us, self.now_us, self.last_cleared = call_us, 0, 0
        self.cleared = []  # by call

    def call(self):
        self.cleared.append(self.last_cleared)
        self.last_cleared = 0
        self.now_us += self.call_us

    def overwriter(self, size):
        def clear():
            self.last_cleared = size
            self.now_us += size // MB
        return clear

    def l2_bytes(self):
        return 50 * MB

    def new_event(self):
        return Event(self)

    def finisher(self, stub):
        return self.synchronize

    def synchronize(self):
        pass


class Event:
    def __init__(self, device):
        self._device = device

    def record(self):
        self.at_us = self._device.now_us

    def elapsed_time(self, later):
        return (later.at_us - self.at_us) / 1000


class Timing(unittest.TestCase):
    def test_events_are_around_the_call_alone(self):
        device = Simulated(500)
        self.assertEqual(time_calls(device, "event", 2, 5, device.call), [500] * 5)
        self.assertEqual(device.cleared, [100 * MB] * 7)

    def test_do_bench_does_what_triton_does(self):
        device = Simulated(500)
        (median,) = time_calls(device, "do_bench", 0, 1, device.call)
        self.assertAlmostEqual(median, 500)
        warmup, repeats = 33, 132  # the estimate holds the clearing: 756 us
        self.assertEqual(len(device.cleared), 1 + 5 + warmup + repeats)
        self.assertEqual(device.cleared.count(256 * MB), 5 + repeats)
        device = Simulated(1e6)
        time_calls(device, "do_bench", 0, 1, device.call)
        self.assertEqual(len(device.cleared), 1 + 5 + 1 + 1)

    def test_host(self):
        device = Simulated(500)
        times = time_calls(device, "host", 3, 4, device.call)
        self.assertEqual(len(times), 4)
        self.assertTrue(all(time >= 0 for time in times))
        self.assertEqual(device.cleared, [0] * 7)


if __name__ == "__main__":
    unittest.main()
