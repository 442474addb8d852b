#!/usr/bin/env python3
"""The smallest honest shop with Django: one file, Python 3.9 and Django 3.2 or newer.

    SHOP_TOKEN=… SHOP_SECRET=whsec_… python3 examples/django/shop.py
    SHOP_TOKEN=… SHOP_SECRET=whsec_… python3 examples/django/shop.py feed

The second, run by cron every minute, reads settled's feed: what the first has missed. In your project, the models, the
views and the command `feed` go where Django has them.

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
import sys
import time
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

import django
from django.conf import settings
from django.db import connection, models, transaction
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.shortcuts import get_object_or_404
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

LAMP = {"title": "A lamp for the desk", "amount": "149.90"}
REFERENCE = re.compile(r"lamp-[0-9a-f]{16}")
TOLERANCE_SECONDS = 300


def needed(name):
    return os.environ.get(name) or sys.exit(f"{name} is missing: see the top of this file.")


SETTLED = os.environ.get("SHOP_SETTLED", "http://127.0.0.1:8788")
LISTEN = os.environ.get("SHOP_LISTEN", "127.0.0.1:8800")
ADDRESS = os.environ.get("SHOP_URL", f"http://{LISTEN}")
TOKEN = needed("SHOP_TOKEN")
KEY = base64.b64decode(needed("SHOP_SECRET").removeprefix("whsec_"), validate=True)
if len(KEY) < 24:
    sys.exit("SHOP_SECRET must be whsec_ and at least 24 bytes in base64")

settings.configure(
    SECRET_KEY=secrets.token_hex(32),
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[__name__],
    MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ.get("SHOP_STORE", "shop.db"),
            "OPTIONS": {"timeout": 10},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()


class Order(models.Model):
    reference = models.CharField(max_length=128, primary_key=True)
    state = models.CharField(max_length=32, default="new")
    version = models.BigIntegerField(default=0)
    # Set once and never again, whatever the order becomes. Packing works from it, and looks whether it is still paid.
    packed = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["reference"], name="to_pack", condition=models.Q(state="paid", packed=False))]


class Feed(models.Model):
    cursor = models.TextField()


def front_page(request):
    return HttpResponse(f"<h1>A lamp for the desk</h1>{pay_button(request, f'lamp-{secrets.token_hex(8)}')}")


@require_POST
def buy(request):
    """Opens an order at settled and sends the customer to pay. Pressed twice it is one order: the page named it."""
    reference = request.POST.get("reference", "")
    if not REFERENCE.fullmatch(reference):
        return HttpResponse("Please begin at the first page.", status=400)
    Order.objects.get_or_create(reference=reference)  # known here before anybody can pay it
    own_page = f"{ADDRESS}/orders/{reference}"
    status, said = ask("/v1/orders", {**LAMP, "reference": reference, "callbackUrl": own_page})
    if status == 409:  # it was cancelled, or its link has expired: the order's own page says so
        return see_other(own_page)
    if status >= 300:
        raise RuntimeError(f"settled did not open {reference}: {said.get('detail')}")
    order = said["order"]
    # 202: the link is still being made. The order's own page offers it again.
    payable = order["state"] == "awaiting_payment" and order["link"] and order["link"]["url"]
    return see_other(payable or own_page)


def order_page(request, reference):
    if not REFERENCE.fullmatch(reference):
        raise Http404
    order = get_object_or_404(Order, reference=reference)
    if order.state == "paid":
        return HttpResponse(f"<h1>Paid. Thank you!</h1><p>{reference}</p>")
    heading = "Waiting for your payment" if order.version == 0 else f"Your order is {order.state.replace('_', ' ')}"
    again = '<meta http-equiv="refresh" content="3">'
    return HttpResponse(f"{again}<h1>{heading}</h1><p>{reference}</p>{pay_button(request, reference)}")


@csrf_exempt  # the signature protects it: settled has no token of a form
@require_POST
def take_notice(request):
    """What settled has to say. 2xx means that it is on the disk here; anything else, and settled says it again."""
    if not is_signed(request.headers, request.body):
        return HttpResponse("Not signed by settled, or not now.", status=401)
    order = json.loads(request.body)["data"]["order"]
    with transaction.atomic(durable=True):
        record(order)
        packed = pack(reference=order["reference"])
    say(packed)
    return HttpResponse(status=204)


urlpatterns = [
    path("", front_page),
    path("buy", buy),
    path("orders/<reference>", order_page),
    path("settled", take_notice),
]


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


def record(said):
    """Takes over what a notice says of an order. The same one again, or an older one sent anew, changes nothing."""
    reference, state, version = said["reference"], said["state"], said["version"]
    taken = Order.objects.filter(reference=reference, version__lt=version).update(state=state, version=version)
    if not taken:
        Order.objects.get_or_create(reference=reference, defaults={"state": state, "version": version})


def pack(**which):
    """Marks what is paid and was never packed: this order, or every one. Returns the references."""
    to_pack = Order.objects.select_for_update().filter(state="paid", packed=False, **which)
    references = list(to_pack.values_list("reference", flat=True))
    Order.objects.filter(reference__in=references).update(packed=True)
    return references


def say(packed):
    for reference in packed:
        print(f"{reference} is paid: pack it", flush=True)


def read_feed():
    """Reads one page; returns whether there is more. Its notices and the place after them are one transaction."""
    place = Feed.objects.first()
    status, page = ask(f"/v1/feed?after={quote(place.cursor)}" if place else "/v1/feed")
    if status == 410:
        # settled was restored from a backup: read from the beginning. What is known has versions that are known.
        Feed.objects.all().delete()
        return True
    if status != 200:
        raise RuntimeError(page.get("detail", f"settled answered {status}"))
    with transaction.atomic(durable=True):
        for notice in page["notices"]:
            record(notice["data"]["order"])
        Feed.objects.update_or_create(pk=1, defaults={"cursor": page["cursor"]})
        # Until the end is reached, an order may have been refunded since it was paid.
        packed = [] if page["more"] else pack()
    say(packed)
    return page["more"]


class NoRedirects(HTTPRedirectHandler):
    """urllib would take the token along, to whatever host it is led to."""

    def redirect_request(self, *_):
        return None


OPENER = build_opener(NoRedirects)


def ask(address, body=None):
    """Asks settled's private API; returns the status and what was said."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with OPENER.open(Request(SETTLED + address, data, headers), timeout=15) as response:
            return response.status, json.load(response)
    except HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def see_other(location):
    answer = HttpResponseRedirect(location)
    answer.status_code = 303
    return answer


def pay_button(request, reference):
    token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}">'
    button = f'<button name="reference" value="{reference}">Pay R$149.90</button>'
    return f'<form method="post" action="/buy">{token}{button}</form>'


def make_tables():
    """In your project: `manage.py migrate`."""
    there = connection.introspection.table_names()
    with connection.schema_editor() as editor:
        for model in (Order, Feed):
            if model._meta.db_table not in there:
                editor.create_model(model)


if __name__ == "__main__":
    make_tables()
    if sys.argv[1:] == ["feed"]:
        while read_feed():
            pass
    else:
        from django.core.management import execute_from_command_line

        execute_from_command_line([sys.argv[0], "runserver", LISTEN, "--noreload"])
