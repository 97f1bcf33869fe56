"""A model server for tests: OpenAI's, Anthropic's and Google's forms, whole and streamed, with faults.

    python3 tests/llm_server.py [--log FILE] [--answer FILE | --turns FOLDER]

listens on a free port of this machine, prints the port as its first line, and serves until its standard
input ends. The model's name says what each request meets: `good`, or a fault (a method of Behaviour), or
`seq.a.b.c`: a for the first request, b for the second, c for every later one. The key is KEY.
--log gets one JSON line a request; --answer is what a good model says; FOLDER/1.md, 2.md … what the model
`turns` says at each turn of a conversation, the last of them from there on.
"""
import argparse
import email.utils
import json
import pathlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = "test-key-0123456789"
ANSWER = "Here is the kernel.\n\n```python\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n```\n"
THOUGHT = "One read, one write: it is bound by memory."
BIG = 10 << 20


class OpenAi:
    """The shapes of one form: what a whole answer, a stream and an error look like."""

    @staticmethod
    def whole(text, finish, thought=""):
        reason = {"stop": "stop", "length": "length", "refused": "content_filter"}[finish]
        message = {"role": "assistant", "content": text}
        if thought:
            message["reasoning_content"] = thought
        return {"id": "1", "object": "chat.completion", "model": "served-model",
                "choices": [{"index": 0, "message": message, "finish_reason": reason}],
                "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200,
                          "prompt_tokens_details": {"cached_tokens": 400},
                          "completion_tokens_details": {"reasoning_tokens": 50}}}

    @staticmethod
    def events(pieces, finish, thought=""):
        def chunk(delta, reason=None):
            return None, {"object": "chat.completion.chunk", "model": "served-model",
                          "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        yield chunk({"role": "assistant", "content": ""})
        if thought:
            yield chunk({"reasoning_content": thought})
        for piece in pieces:
            yield chunk({"content": piece})
        yield chunk({}, {"stop": "stop", "length": "length", "refused": "content_filter"}[finish])
        usage = OpenAi.whole("", "stop")["usage"]
        yield None, {"object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield None, "[DONE]"

    @staticmethod
    def error(status, kind, message):
        return {"error": {"message": message, "type": kind, "code": kind, "param": None}}


class Anthropic:
    @staticmethod
    def whole(text, finish, thought=""):
        content = [{"type": "thinking", "thinking": thought, "signature": "c2ln"}] if thought else []
        reason = {"stop": "end_turn", "length": "max_tokens", "refused": "refusal"}[finish]
        return {"id": "1", "type": "message", "role": "assistant", "model": "served-model",
                "content": content + [{"type": "text", "text": text}], "stop_reason": reason,
                "usage": {"input_tokens": 600, "cache_read_input_tokens": 400, "output_tokens": 200}}

    @staticmethod
    def events(pieces, finish, thought=""):
        def event(kind, **members):
            return kind, {"type": kind, **members}
        whole = Anthropic.whole("", finish)
        yield event("message_start", message={**whole, "content": [], "stop_reason": None,
                                              "usage": {**whole["usage"], "output_tokens": 1}})
        yield event("ping")
        if thought:
            yield event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""})
            yield event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": thought})
            yield event("content_block_stop", index=0)
        yield event("content_block_start", index=1, content_block={"type": "text", "text": ""})
        for piece in pieces:
            yield event("content_block_delta", index=1, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=1)
        yield event("message_delta", delta={"stop_reason": whole["stop_reason"]}, usage={"output_tokens": 200})
        yield event("message_stop")

    @staticmethod
    def error(status, kind, message):
        kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error",
                 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, kind), "message": message}}


class Google:
    @staticmethod
    def whole(text, finish, thought=""):
        parts = [{"text": thought, "thought": True}] if thought else []
        reason = {"stop": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}[finish]
        return {"candidates": [{"content": {"role": "model", "parts": parts + [{"text": text}]},
                                "finishReason": reason, "index": 0}],
                "usageMetadata": {"promptTokenCount": 1000, "cachedContentTokenCount": 400,
                                  "candidatesTokenCount": 150, "thoughtsTokenCount": 50},
                "modelVersion": "served-model"}

    @staticmethod
    def events(pieces, finish, thought=""):
        def part(text, **more):
            return None, {"candidates": [{"content": {"role": "model", "parts": [{"text": text, **more}]}}]}
        if thought:
            yield part(thought, thought=True)
        for piece in pieces:
            yield part(piece)
        yield None, Google.whole("", finish)

    @staticmethod
    def error(status, kind, message):
        names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
                 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
        return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}


def pieces_of(text, size=7):
    return [text[i:i + size] for i in range(0, len(text), size)]


class Behaviour:
    """What a request meets. Each method is a model's name (with a leading x where that is a number)."""

    def __init__(self, handler, form, streams):
        self.handler, self.form, self.streams = handler, form, streams

    # ---- what works ----
    def say(self, text, finish="stop", thought=""):
        if self.streams:
            self.handler.send_events(self.form.events(pieces_of(text), finish, thought))
        else:
            self.handler.send_json(200, self.form.whole(text, finish, thought))

    def good(self):
        self.say(self.handler.server.answer)

    def turns(self):
        messages = self.handler.body.get("messages", self.handler.body.get("contents"))
        turn = 1 + sum(message.get("role") in ("assistant", "model") for message in messages)
        files = sorted(pathlib.Path(self.handler.server.turns).glob("*.md"), key=lambda file: int(file.stem))
        self.say(files[min(turn, len(files)) - 1].read_text(encoding="utf-8"))

    def slow_turns(self):
        time.sleep(0.5)
        self.turns()

    def thinks(self):
        self.say(self.handler.server.answer, thought=THOUGHT)

    def slow(self):
        time.sleep(0.5)
        self.good()

    def truncated(self):
        self.say("```python\nclass ModelNew", "length")

    def refused(self):
        self.say("", "refused")

    def refuses_in_words(self):
        whole = OpenAi.whole(None, "stop")
        whole["choices"][0]["message"]["refusal"] = "I will not write kernels."
        self.handler.send_json(200, whole)

    def blocked(self):
        self.handler.send_json(200, {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})

    def empty(self):
        self.say("")

    def big(self):
        self.say("x" * BIG) if not self.streams else self.handler.send_events(
            self.form.events(["x" * 65536] * (BIG // 65536), "stop"))

    def ignores_stream(self):
        self.handler.send_json(200, self.form.whole(self.handler.server.answer, "stop"))

    def unnamed_stream(self):
        self.handler.send_events(self.form.events(pieces_of(self.handler.server.answer), "stop"),
                                 content_type="text/plain")

    def comments(self):
        self.handler.send_events(self.form.events(pieces_of(self.handler.server.answer), "stop"),
                                 between=b": still here\r\n\r\n")

    def no_done(self):
        events = [e for e in self.form.events(pieces_of(self.handler.server.answer), "stop")
                  if e[1] != "[DONE]" and e[0] != "message_stop"]
        self.handler.send_events(events)

    def stays_open(self):
        self.handler.send_events(self.form.events(pieces_of(self.handler.server.answer), "stop"), end=False)
        self.handler.wait_for_client()

    def invalid_utf8(self):
        marked = "caf\u00e9"
        def spoil(data):
            return data.replace(marked.encode(), b"caf\xe9").replace(b"caf\\u00e9", b"caf\xe9")
        if self.streams:
            self.handler.send_events(self.form.events([marked, " ", self.handler.server.answer], "stop"), spoil=spoil)
        else:
            self.handler.send_json(200, self.form.whole(marked + self.handler.server.answer, "stop"), spoil=spoil)

    def half_surrogate(self):
        self.say("\ud83d" + self.handler.server.answer)

    # ---- errors with a status ----
    def refuse(self, status, kind, message, headers=()):
        self.handler.send_json(status, self.form.error(status, kind, message), headers=headers)

    def x400(self):
        self.refuse(400, "invalid_request_error", "temperature: must be at most 1")

    def x401(self):
        self.refuse(401, "invalid_api_key", "Incorrect API key provided")

    def x402(self):
        self.refuse(402, "insufficient_credits", "This account has no credits left")

    def x403(self):
        self.refuse(403, "permission_denied", "This key may not use this model")

    def x404(self):
        self.refuse(404, "model_not_found", "The model `x` does not exist or you have no access to it")

    def no_path(self):
        self.handler.send_text(404, "text/plain", b"404 page not found")

    def x429(self):
        self.refuse(429, "rate_limit_exceeded", "Rate limit reached", [("Retry-After", "0")])

    def x429date(self):
        self.refuse(429, "rate_limit_exceeded", "Rate limit reached",
                    [("Retry-After", email.utils.formatdate(time.time(), usegmt=True))])

    def x429long(self):
        self.refuse(429, "rate_limit_exceeded", "Come back tomorrow", [("Retry-After", "86400")])

    def quota(self):
        self.refuse(429, "insufficient_quota", "You exceeded your current quota")

    def x500(self):
        self.refuse(500, "server_error", "The server had an error")

    def x503(self):
        self.refuse(503, "unavailable", "The model is loading", [("Retry-After", "0")])

    def x529(self):
        self.refuse(529, "overloaded_error", "Overloaded")

    def html500(self):
        self.handler.send_text(502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>")

    def quotes_key(self):
        headers = "; ".join(f"{k}: {v}" for k, v in self.handler.headers.items())
        self.refuse(400, "invalid_request_error", "x" * 150 + " bad request with headers " + headers)

    def says_key(self):
        self.say("the key is " + KEY)

    def escapes(self):
        self.refuse(400, "invalid_request_error", "\x1b[31mred\x1b[0m\r\n\x07 bell \u009b31m" + "y" * 5000)

    def redirect(self):
        self.handler.send_text(307, "text/html", b"moved", [("Location", "http://127.0.0.1:9/v1/elsewhere")])

    def error_with_200(self):
        self.handler.send_json(200, {"error": {"code": 502, "message": "The provider behind is gone"}})

    def error_in_stream(self):
        events = list(self.form.events(["The beg"], "stop"))[:2]
        if self.form is Anthropic:
            events.append(("error", Anthropic.error(529, "overloaded_error", "Overloaded")))
        else:
            events.append((None, {"error": {"code": 503, "message": "Overloaded", "type": "server_error"}}))
        self.handler.send_events(events)

    # ---- what is no answer ----
    def html(self):
        self.handler.send_text(200, "text/html", b"<!DOCTYPE html><html><body>Log in to the hotel's network</body></html>")

    def half_json(self):
        body = json.dumps(self.form.whole(self.handler.server.answer, "stop")).encode()
        self.handler.send_text(200, "application/json", body[:len(body) // 2])

    def half_event(self):
        if not self.streams:
            return self.half_json()
        self.handler.send_events(self.form.events(["The beg"], "stop"), spoil=lambda data: data[:len(data) - 3])

    def other_json(self):
        self.handler.send_json(200, {"hello": "world"})

    def a_list(self):
        self.handler.send_json(200, [])

    def nothing(self):
        self.handler.send_text(200, "application/json", b"")

    def cut_off(self):
        """The connection ends in mid-answer."""
        if self.streams:
            events = list(self.form.events(pieces_of(self.handler.server.answer), "stop"))
            self.handler.send_events(events[:6], end=False)
        else:
            self.handler.send_head(200, "application/json", [("Content-Length", "5000")])
            self.handler.wfile.write(b'{"choices": [')
        self.handler.close_connection = True

    def reset(self):
        self.handler.close_connection = True

    def silent(self):
        self.handler.wait_for_client()

    def stalls(self):
        if self.streams:
            events = list(self.form.events(pieces_of(self.handler.server.answer), "stop"))
            self.handler.send_events(events[:6], end=False)
        else:
            self.handler.send_head(200, "application/json", [("Content-Length", "5000")])
            self.handler.wfile.write(b'{"choices": [')
        self.handler.wfile.flush()
        self.handler.wait_for_client()

    def endless(self):
        def forever():
            text = "again and again " * 64
            events = list(self.form.events([text], "stop"))
            middle = next(e for e in events if text in json.dumps(e[1]))
            yield from events[:events.index(middle)]
            while True:
                yield middle
        if self.streams:
            self.handler.send_events(forever())
        else:
            self.handler.send_head(200, "application/json", [])
            while True:
                self.handler.wfile.write(b" " * 65536)

    def endless_line(self):
        self.handler.send_head(200, "text/event-stream", [])
        self.handler.wfile.write(b"data: ")
        while True:
            self.handler.wfile.write(b"x" * 65536)

    def endless_comments(self):
        self.handler.send_head(200, "text/event-stream", [])
        while True:
            self.handler.wfile.write(b": wait\n\n" * 8192)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path
        if path == "/v1/chat/completions":
            form, key = OpenAi, self.headers.get("Authorization", "").removeprefix("Bearer ")
            model, streams = body["model"], body.get("stream", False)
        elif path == "/v1/messages":
            form, key = Anthropic, self.headers.get("x-api-key")
            model, streams = body["model"], body.get("stream", False)
        elif path.startswith("/v1beta/models/"):
            form, key = Google, self.headers.get("x-goog-api-key")
            model, _, method = path.removeprefix("/v1beta/models/").partition(":")
            streams = method == "streamGenerateContent?alt=sse"
        else:
            return self.send_text(404, "text/plain", b"404 page not found")
        name = self.server.behaviour(model, (form, streams))
        self.server.record({"path": path, "form": form.__name__, "behaviour": name, "body": body,
                            "headers": sorted(k.lower() for k in self.headers), "key_ok": key == KEY,
                            "at": time.monotonic()})
        behaviour = Behaviour(self, form, streams)
        try:
            if key != KEY:
                return behaviour.x401()
            method = getattr(behaviour, "x" + name if name[:1].isdigit() else name, None)
            if method is None:
                return behaviour.x404()
            method()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def send_head(self, status, content_type, headers):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.close_connection = True  # the end of the connection is the end of the body
            self.send_header("Connection", "close")
        self.end_headers()

    def send_text(self, status, content_type, data, headers=()):
        self.send_head(status, content_type, [("Content-Length", str(len(data))), *headers])
        self.wfile.write(data)

    def send_json(self, status, value, headers=(), spoil=lambda data: data):
        self.send_text(status, "application/json", spoil(json.dumps(value).encode()), headers)

    def send_events(self, events, content_type="text/event-stream", between=b"", end=True, spoil=lambda data: data):
        """A chunked stream, as real servers send it; `end` closes it properly."""
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            lines = (f"event: {name}\n" if name else "").encode() + b"data: " + spoil(text.encode()) + b"\n\n" + between
            self.wfile.write(b"%x\r\n%s\r\n" % (len(lines), lines))
        if end:
            self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def wait_for_client(self):
        """Until the client gives up."""
        self.connection.settimeout(60)
        try:
            self.connection.recv(1)
        except OSError:
            pass
        self.close_connection = True


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, log, answer, turns=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.log, self.answer, self.turns = log, answer, turns
        self.lock = threading.Lock()
        self.asked = {}

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def behaviour(self, model, way):
        with self.lock:
            count = self.asked.get((model, way), 0)
            self.asked[model, way] = count + 1
        if not model.startswith("seq."):
            return model
        steps = model.split(".")[1:]
        return steps[min(count, len(steps) - 1)]

    def record(self, entry):
        if self.log:
            with self.lock, open(self.log, "a", encoding="utf-8") as log:
                log.write(json.dumps(entry) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--log")
    parser.add_argument("--answer")
    parser.add_argument("--turns")
    arguments = parser.parse_args()
    answer = ANSWER
    if arguments.answer:
        with open(arguments.answer, encoding="utf-8") as file:
            answer = file.read()
    server = Server(arguments.log, answer, arguments.turns)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
