"""Start, follow, approve and stop tasks of a Whoa server. Needs only the standard library."""

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """The server refused a request. The message says what to do."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Whoa:
    def __init__(self, url, token):
        self.url = url.rstrip("/")
        self.token = token

    def start(self, agent, text, key):
        """Starts a task, or returns the one that was started with this key. So it is safe to call it again."""
        return self._ask("POST", "/v1/tasks", {"agent": agent, "input": text, "key": key})["task"]

    def is_asking(self, task_id):
        """Returns whether a question of the task waits for an answer now. A journal has answered ones too."""
        task = self._ask("GET", f"/v1/tasks/{task_id}")
        return task.get("waiting", 0) > 0

    def follow(self, task_id):
        """Yields what the task does, then its end. Continues after a lost connection, without gaps or repeats."""
        last = None
        while True:
            try:
                with self._open("GET", f"/v1/tasks/{task_id}/events", last=last) as lines:
                    for line in lines:
                        name, _, value = line.decode().rstrip("\n").partition(": ")
                        if name == "id":
                            number = value
                        elif name == "data":
                            last, seen = number, json.loads(value)
                            yield seen
                            if seen["type"] == "end":
                                return
            except urllib.error.HTTPError as error:
                # A server that is shutting down: another one will answer.
                if error.code not in (429, 503):
                    raise _refused(error) from None
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(1)

    def cancel(self, task_id, reason, mode="graceful", undo=False):
        """Returns 'accepted', 'escalated', 'unchanged' or 'too-late'."""
        return self._send(f"/v1/tasks/{task_id}/cancel", {"reason": reason, "mode": mode, "undo": undo})

    def approve(self, entry, approved, why=None):
        """Answers a question of the journal: only who has seen it can. Returns 'accepted' or 'too-late'."""
        question_id = urllib.parse.quote(entry["event"]["id"], safe="")
        body = {"decision": "yes" if approved else "no"}
        if why is not None:
            body["why"] = why
        return self._send(f"/v1/questions/{question_id}", body)

    def _send(self, path, body):
        try:
            return self._ask("POST", path, body)["result"]
        except Refused as refused:
            if refused.code == "too-late":
                return refused.code
            raise

    def _ask(self, method, path, body=None, tries=5):
        for left in range(tries - 1, -1, -1):
            try:
                with self._open(method, path, body=body) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503) or left == 0:
                    raise _refused(error) from None
                time.sleep(float(error.headers.get("Retry-After") or 1))
            except (OSError, http.client.HTTPException):
                # The response was lost. Every request here may be repeated.
                if left == 0:
                    raise
                time.sleep(1)

    def _open(self, method, path, body=None, last=None):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if last is not None:
            headers["Last-Event-ID"] = last
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        # A comment every 15 s keeps a stream open, so silence for longer is a lost connection.
        return urllib.request.urlopen(request, timeout=60)


def _refused(error):
    words = json.load(error)["error"]
    return Refused(words["code"], words["message"])
