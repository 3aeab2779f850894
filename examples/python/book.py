"""python3 book.py 'Book a table for two at seven': asks before it books; Ctrl-C stops it."""

import os
import sys

from whoa import Whoa

whoa = Whoa(os.environ["URL"], os.environ["TOKEN"])
task = whoa.start("assistant", sys.argv[1], key=sys.argv[1])


def follow():
    for seen in whoa.follow(task["id"]):
        if seen["type"] == "end":
            ended = seen["task"]
            print(ended["status"], ended["outcome"].get("answer", ""))
        elif seen["event"]["type"] == "approval-question" and whoa.is_asking(task["id"]):
            question = seen["event"]["question"]
            print(question["title"])
            for field in question["fields"]:
                print(f"  {field['name']}:", *field["lines"])
            yes = input("Allow it? [y/N] ") == "y"
            print(whoa.approve(seen, yes, why=None if yes else "not this time"))


try:
    follow()
except KeyboardInterrupt:
    print(whoa.cancel(task["id"], "stopped at the terminal"))
    follow()
