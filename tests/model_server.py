"""llm_server.py as a child process of a test."""
import json
import pathlib
import subprocess
import sys


class ModelServer:
    """Serves until stop(). `options` are llm_server.py's; it logs its requests in `folder`."""

    def __init__(self, folder, *options):
        self._log = pathlib.Path(folder) / "server.log"
        server = pathlib.Path(__file__).resolve().parent / "llm_server.py"
        self._process = subprocess.Popen([sys.executable, str(server), "--log", str(self._log), *options],
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}/v1"

    def requests(self):
        """What it has been asked, in order; a request that is being written down right now is not among them yet."""
        if not self._log.exists():
            return []
        written = self._log.read_text(encoding="utf-8")
        return [json.loads(line) for line in written[:written.rfind("\n") + 1].splitlines()]

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
