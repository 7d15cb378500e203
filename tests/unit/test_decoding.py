"""Values of our types are made in any number of threads."""

import subprocess
import sys

_AT_ONCE = """
import sys, threading
from dataclasses import make_dataclass
from rowcall.decoding import converted, from_json

def work(kind, ready):
    ready.wait()
    assert converted({"inner": {"name": "a"}}, kind) == from_json('{"inner": {"name": "a"}}', kind)

sys.setswitchinterval(1e-6)
for _ in range(400):
    inner = make_dataclass("Inner", [("name", str | None), ("number", int, 0)])
    fields = [("inner", inner), ("texts", tuple[str, ...], ()), ("more", dict[str, str] | None, None)]
    outer = make_dataclass("Outer", fields)
    ready = threading.Barrier(4)
    threads = [threading.Thread(target=work, args=(outer, ready)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_threads_may_be_the_first_to_need_a_type() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
