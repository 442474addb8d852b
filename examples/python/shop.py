#!/usr/bin/env python3
"""The smallest honest shop beside settled: one file, Python 3.9 or newer, nothing to install.

    SHOP_TOKEN=… SHOP_SECRET=whsec_… python3 examples/python/shop.py

SHOP_TOKEN is settled's SETTLED_SHOP_TOKEN, SHOP_SECRET its SETTLED_SHOP_SECRET, and its SETTLED_SHOP_URL leads to
http://127.0.0.1:8800/settled. More settings: SHOP_SETTLED (settled's private API), SHOP_LISTEN, SHOP_URL (the shop as
customers see it) and SHOP_STORE.
"""
import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import sqlite3
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

LAMP = {"title": "A lamp for the desk", "amount": "149.90"}
REFERENCE = re.compile(r"lamp-[0-9a-f]{16}")
BODY_BYTES_MAX = 1_048_576
TOLERANCE_SECONDS = 300
FEED_EVERY_SECONDS = 60


def needed(name):
    return os.environ.get(name) or sys.exit(f"{name} is missing: see the top of this file.")


SETTLED = os.environ.get("SHOP_SETTLED", "http://127.0.0.1:8788")
LISTEN = os.environ.get("SHOP_LISTEN", "127.0.0.1:8800")
ADDRESS = os.environ.get("SHOP_URL", f"http://{LISTEN}")
STORE = os.environ.get("SHOP_STORE", "shop.db")
TOKEN = needed("SHOP_TOKEN")
KEY = base64.b64decode(needed("SHOP_SECRET").removeprefix("whsec_"), validate=True)
if len(KEY) < 24:
    sys.exit("SHOP_SECRET must be whsec_ and at least 24 bytes in base64")


def main():
    with transaction() as db:
        # packed: set once and never again, whatever the order becomes. Packing works from it, and looks whether it is
        # still paid.
        db.execute(
            """CREATE TABLE IF NOT EXISTS orders (
                 reference TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, packed INTEGER NOT NULL DEFAULT 0
               )"""
        )
        db.execute("CREATE INDEX IF NOT EXISTS to_pack ON orders (reference) WHERE state = 'paid' AND packed = 0")
        db.execute("CREATE TABLE IF NOT EXISTS feed (cursor TEXT NOT NULL)")
    host, port = LISTEN.rsplit(":", 1)
    server = ThreadingHTTPServer((host, int(port)), Shop)
    threading.Thread(target=follow_feed, daemon=True).start()
    print(f"the shop is open at {ADDRESS}", flush=True)
    server.serve_forever()


class Shop(BaseHTTPRequestHandler):
    timeout = 15  # seconds that a client may say nothing

    def do_GET(self):
        reference = self.path.removeprefix("/orders/")
        if self.path == "/":
            new = f"lamp-{secrets.token_hex(8)}"
            return self.answer(200, f"<h1>A lamp for the desk</h1>{pay_button(new)}")
        order = find_order(reference) if REFERENCE.fullmatch(reference) else None
        if order is None:
            return self.answer(404, "There is no such page.")
        self.answer(200, order_page(reference, *order))

    def do_POST(self):
        try:
            length = int(self.headers.get("Content-Length", "-1"))
            if not 0 <= length <= BODY_BYTES_MAX:
                return self.answer(413, "The body is too large, or of unknown length.")
            body = self.rfile.read(length)
            if self.path == "/buy":
                return self.buy(body)
            if self.path == "/settled":
                return self.take_notice(body)
            self.answer(404, "There is no such page.")
        except Exception as error:  # nothing was recorded, so no 2xx
            self.log_error("%s: %s", self.path, error)
            self.answer(500, "That did not work. Please try again.")

    def buy(self, body):
        """Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page named it."""
        reference = parse_qs(body.decode("ascii", "replace")).get("reference", [""])[0]
        if not REFERENCE.fullmatch(reference):
            return self.answer(400, "Please begin at the first page.")
        with transaction() as db:  # known here before anybody can pay it
            insert = "INSERT INTO orders (reference, state, version) VALUES (?, 'new', 0) ON CONFLICT DO NOTHING"
            db.execute(insert, [reference])
        own_page = f"{ADDRESS}/orders/{reference}"
        status, said = ask("/v1/orders", {**LAMP, "reference": reference, "callbackUrl": own_page})
        if status == 409:  # it was cancelled, or its link has expired: the order's own page says so
            return self.answer(303, "", location=own_page)
        if status >= 300:
            raise RuntimeError(f"settled did not open {reference}: {said.get('detail')}")
        order = said["order"]
        # 202: the link is still being made. The order's own page offers it again.
        payable = order["state"] == "awaiting_payment" and order["link"] and order["link"]["url"]
        self.answer(303, "", location=payable or own_page)

    def take_notice(self, body):
        """What settled has to say. 2xx means that it is on the disk here; anything else, and settled says it again."""
        if not is_signed(self.headers, body):
            return self.answer(401, "Not signed by settled, or not now.")
        order = json.loads(body)["data"]["order"]
        with transaction() as db:
            record(db, order)
            packed = pack(db, order["reference"])
        say(packed)
        self.answer(204, "")

    def answer(self, status, html, location=None):
        body = html.encode()
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        if status != 204:
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def is_signed(headers, body):
    """Standard Webhooks: HMAC-SHA256 over id, time and raw body. Two signatures come while the secret is changed."""
    notice, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not notice or not re.fullmatch("[0-9]{1,12}", timestamp):
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    digest = hmac.new(KEY, f"{notice}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    given = headers.get("webhook-signature", "").encode().split(b" ")
    return any([hmac.compare_digest(signature, expected) for signature in given])


def record(db, order):
    """Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing."""
    db.execute(
        """INSERT INTO orders (reference, state, version) VALUES (:reference, :state, :version)
           ON CONFLICT (reference) DO UPDATE SET state = :state, version = :version WHERE :version > version""",
        {name: order[name] for name in ("reference", "state", "version")},
    )


def pack(db, reference=None):
    """Marks what is paid and was never packed: this order, or every one. Returns the references."""
    to_pack = "state = 'paid' AND packed = 0 AND reference = coalesce(?, reference)"
    found = db.execute(f"SELECT reference FROM orders WHERE {to_pack}", [reference]).fetchall()
    db.execute(f"UPDATE orders SET packed = 1 WHERE {to_pack}", [reference])
    return [row[0] for row in found]


def say(packed):
    for reference in packed:
        print(f"{reference} is paid: pack it", flush=True)


def follow_feed():
    """The second way to learn of everything: settled's feed, from where it was last read."""
    while True:
        try:
            while read_feed():
                pass
        except Exception as error:
            print(f"the feed cannot be read: {error}", file=sys.stderr, flush=True)
        time.sleep(FEED_EVERY_SECONDS)


def read_feed():
    """Reads one page; returns whether there is more. Its notices and the place after them are one transaction."""
    with transaction() as db:
        place = db.execute("SELECT cursor FROM feed").fetchone()
    status, page = ask(f"/v1/feed?after={quote(place[0])}" if place else "/v1/feed")
    with transaction() as db:
        if status == 410:
            # settled was restored from a backup: read from the beginning. What is known has versions that are known.
            db.execute("DELETE FROM feed")
            return True
        if status != 200:
            raise RuntimeError(page.get("detail", f"settled answered {status}"))
        for notice in page["notices"]:
            record(db, notice["data"]["order"])
        db.execute("DELETE FROM feed")
        db.execute("INSERT INTO feed VALUES (?)", [page["cursor"]])
        # Until the end is reached, an order may have been refunded since it was paid.
        packed = [] if page["more"] else pack(db)
    say(packed)
    return page["more"]


class NoRedirects(HTTPRedirectHandler):
    """urllib would take the token along, to whatever host it is led to."""

    def redirect_request(self, *_):
        return None


OPENER = build_opener(NoRedirects)


def ask(path, body=None):
    """Asks settled's private API; returns the status and what was said."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with OPENER.open(Request(SETTLED + path, data, headers), timeout=15) as response:
            return response.status, json.load(response)
    except HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


@contextmanager
def transaction():
    """All or nothing, and on the disk when it ends."""
    db = sqlite3.connect(STORE, timeout=10, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")
    finally:
        db.close()


def find_order(reference):
    with transaction() as db:
        return db.execute("SELECT state, version FROM orders WHERE reference = ?", [reference]).fetchone()


def order_page(reference, state, version):
    if state == "paid":
        return f"<h1>Paid. Thank you!</h1><p>{reference}</p>"
    heading = "Waiting for your payment" if version == 0 else f"Your order is {state.replace('_', ' ')}"
    return f'<meta http-equiv="refresh" content="3"><h1>{heading}</h1><p>{reference}</p>{pay_button(reference)}'


def pay_button(reference):
    button = f'<button name="reference" value="{reference}">Pay R$149.90</button>'
    return f'<form method="post" action="/buy">{button}</form>'


if __name__ == "__main__":
    main()
