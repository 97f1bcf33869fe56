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
        """What it has been asked, in order."""
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
