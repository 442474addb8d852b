// The script of the hosted page. Paying works without it: it calculates instalments, copies the PIX code, and continues
// after a moment. The Sandbox panel needs it.

const CARD_MOMENT_MS = 1500;
const LOOK_EVERY_MS = 2000;
const LOG_ENTRIES_MAX = 200;
const EXCERPT_LENGTH = 500;

const main = document.querySelector('main[data-link]');
if (main !== null) {
  showTotals();
  fillCard();
  copying();
  submitOnce();
  goOn();
  const panel = document.querySelector('[data-panel]');
  if (panel === null) setInterval(() => void lookAgain(), LOOK_EVERY_MS);
  else startPanel(panel);
}

/** The total and the interest follow the choice of instalments. */
function showTotals() {
  const select = document.querySelector('#installments');
  if (select === null) return;
  const show = () => {
    const { total, interest } = select.selectedOptions[0].dataset;
    for (const place of document.querySelectorAll('[data-total]:not(option)')) place.textContent = total;
    for (const place of document.querySelectorAll('[data-interest]:not(option)')) place.textContent = interest;
  };
  select.addEventListener('change', show);
  show();
}

function fillCard() {
  const button = document.querySelector('[data-fill-card]');
  if (button === null) return;
  button.hidden = false;
  button.addEventListener('click', () => {
    const card = { number: '0000 0000 0000 0000', name: 'MARIA TESTE', expiry: '12/34', cvc: '000' };
    for (const [name, value] of Object.entries(card)) document.querySelector(`#card-${name}`).value = value;
  });
}

function copying() {
  for (const button of document.querySelectorAll('[data-copy]')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const field = document.getElementById(button.dataset.copy);
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
        button.textContent = 'Copied';
      } catch {
        button.textContent = 'Press Ctrl+C';
      }
    });
  }
}

/** A second press does not pay a second time. After the browser's Back the form may be sent again. */
function submitOnce() {
  const forms = [...document.querySelectorAll('form')];
  for (const form of forms) {
    form.addEventListener('submit', (event) => {
      if (form.dataset.sent !== undefined) event.preventDefault();
      form.dataset.sent = '';
    });
  }
  addEventListener('pageshow', () => {
    for (const form of forms) delete form.dataset.sent;
  });
}

/** Completes a card's payment after a moment. */
function goOn() {
  const form = document.querySelector('form[data-goes-on]');
  if (form !== null) setTimeout(() => form.requestSubmit(), CARD_MOMENT_MS);
}

/** Notices that the link was paid in another tab, or has expired. */
async function lookAgain() {
  if (document.hidden) return;
  try {
    const response = await fetch(`/pay/${main.dataset.link}/state${location.search}`);
    if (!response.ok) return;
    const { state } = await response.json();
    if (state !== main.dataset.state) location.reload();
  } catch {
    // The sandbox is away. It is asked again.
  }
}

function startPanel(panel) {
  const link = panel.dataset.panel;
  const log = openLog(panel, `settled-sandbox-log:${link}`);
  const ask = async (action, value, money) => {
    const response = await fetch(`/pay/${link}/panel/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ value, money }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.message);
    return answer;
  };
  panel.addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (button === null) return;
    if (button.hasAttribute('data-clear-log')) log.clear();
    else if (button.dataset.set !== undefined) void simulate(button.dataset.set, button.value);
    else if (button.dataset.send !== undefined) void send(button, button.dataset.send);
  });

  async function simulate(action, value) {
    const money = panel.querySelector('[name="money"]:checked').value;
    const isOther = money !== 'asked' && (value === 'PENDING' || value === 'COMPLETED');
    const what = `${action === 'status' ? 'link status' : 'payment status'}: ${value}${isOther ? `, money: ${money}` : ''}`;
    try {
      const { atMs } = await ask(action, value, action === 'payment' ? money : undefined);
      await redraw();
      log.add({ atMs, what, how: 'simulated' });
    } catch (error) {
      log.add({ atMs: Date.now(), what, how: 'simulated', error: error.message });
    }
    panel.querySelector(`[data-set="${action}"][value="${value}"]`)?.focus();
  }

  async function send(button, what) {
    const from = panel.querySelector('[name="from"]:checked').value;
    button.setAttribute('aria-busy', 'true');
    const startMs = performance.now();
    const entry = { atMs: Date.now(), what, how: `from the ${from}` };
    try {
      const sent = from === 'server' ? await ask('send', what) : await sendFromHere(await ask('sign', what));
      Object.assign(entry, sent);
    } catch (error) {
      entry.error = error.message;
    }
    log.add({ ...entry, tookMs: Math.round(performance.now() - startMs) });
    button.removeAttribute('aria-busy');
  }
}

/** A browser does not tell a script why a request to another origin failed. */
async function sendFromHere({ atMs, event, url, headers, body }) {
  try {
    const response = await fetch(url, { method: 'POST', headers, body, credentials: 'omit' });
    return { atMs, event, status: response.status, body: await response.text() };
  } catch (error) {
    const error_ = `${error.message}: it cannot be reached, or does not allow ${location.origin} (CORS).`;
    return { atMs, event, error: `${error_} Send from the server instead, or allow this origin.` };
  }
}

/** Redraws what the server knows, and keeps the panel's log. */
async function redraw() {
  const response = await fetch(location.href);
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  for (const id of ['sheet', 'panel-state']) {
    document.getElementById(id).replaceWith(document.adoptNode(fresh.getElementById(id)));
  }
}

/** The requests and answers, newest first, kept in this browser for each link. */
function openLog(panel, key) {
  const list = panel.querySelector('[data-log]');
  const empty = panel.querySelector('[data-log-empty]');
  const clear = panel.querySelector('[data-clear-log]');
  const announce = panel.querySelector('[data-announce]');
  let entries = read();
  draw();
  addEventListener('storage', (event) => {
    if (event.key !== key && event.key !== null) return;
    entries = read();
    draw();
  });

  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(key) ?? '[]');
      return Array.isArray(kept) ? kept : [];
    } catch {
      return [];
    }
  }

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify(entries));
    } catch (error) {
      announce.textContent = `The log cannot be kept: ${error.message}`;
    }
  }

  function draw() {
    list.replaceChildren(...entries.map(drawEntry));
    empty.hidden = entries.length > 0;
    clear.hidden = entries.length === 0;
  }

  return {
    add: (entry) => {
      entries = [{ ...entry, body: entry.body?.slice(0, EXCERPT_LENGTH) }, ...read()].slice(0, LOG_ENTRIES_MAX);
      keep();
      draw();
      announce.textContent = `${entry.what}: ${entry.error ?? entry.status ?? 'done'}`;
    },
    clear: () => {
      entries = [];
      keep();
      draw();
      announce.textContent = 'The log is empty.';
    },
  };
}

function drawEntry({ atMs, what, how, status, body, error, event, tookMs }) {
  const isGood = status === undefined || status === null ? error == null : status >= 200 && status < 300;
  const answer = status ?? (error == null ? 'done' : 'failed');
  const took = tookMs === undefined ? '' : ` · ${tookMs} ms`;
  const item = element('li', isGood ? 'good' : 'bad');
  const head = element('p', 'what');
  head.append(element('b', 'answer', answer), element('span', 'event', what), element('span', 'how', how));
  const time = `${new Date(atMs).toISOString().replace('T', ' ').slice(0, 19)} UTC`;
  item.append(head, element('p', 'when', `${time}${took}${event === undefined ? '' : ` · ${event}`}`));
  if (body) item.append(element('pre', '', body));
  if (error != null) item.append(element('p', 'error', error));
  return item;
}

function element(name, className, text = '') {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}
