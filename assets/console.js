// The console's script. Every page works without it: it keeps the page fresh, lets times tick, and brings keys.

import { Idiomorph } from './idiomorph.js';

/** settled sends something every 3 s. */
const STALE_AFTER_MS = 8_000;
const REFRESH_EVERY_MS = 1_000;
/** However quiet it is: a message may be lost. */
const REFRESH_AT_LEAST_EVERY_MS = 30_000;
const RETRY_AFTER_MS = 2_000;
const TICK_MS = 1_000;
const FETCH_TIMEOUT_MS = 8_000;

/** In seconds. */
const UNITS = Object.entries({ d: 86_400, h: 3_600, min: 60, s: 1 });

const { prefix } = document.body.dataset;
const main = document.getElementById('main');
const mark = document.getElementById('live-state');
const pause = document.getElementById('live-pause');

const live = followServer();
if (document.body.dataset.still === undefined) refreshPage(live);
letTimesTick(live);
watchKeys();
openTarget();
addEventListener('hashchange', openTarget);

/** Unfolds the form that the address names. */
function openTarget() {
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.setAttribute('open', '');
}

/**
 * Hears what the server says. Of all tabs of this browser one has the stream, and tells the others; a hidden tab lets go of
 * it. Calls `heard` with the kind of each message: `ready`, `changed`, `ping` or `ended`.
 */
function followServer() {
  const listeners = [];
  const channel = new BroadcastChannel(`settled-live${prefix}`);
  const aheadMs = Date.parse(document.querySelector('#as-of time').dateTime) - Date.now();
  const state = { heardAtMs: performance.now(), aheadMs, listen: (heard) => listeners.push(heard), leave };
  let source = null;
  let leaving = null;
  let retry;

  function hear({ kind, now }) {
    if (document.hidden) return;
    state.heardAtMs = performance.now();
    state.aheadMs = Date.parse(now) - Date.now();
    for (const heard of listeners) heard(kind);
  }

  function join() {
    if (leaving !== null) return;
    leaving = new AbortController();
    state.heardAtMs = performance.now();
    channel.postMessage({ kind: 'hello' });
    const { signal } = leaving;
    // Without https there are no locks, and each tab has a stream.
    if (navigator.locks === undefined) return connect();
    const lead = () => {
      connect();
      return new Promise((resolve) => signal.addEventListener('abort', resolve));
    };
    navigator.locks.request(`settled-live${prefix}`, { signal }, lead).catch(() => {});
  }

  function leave() {
    clearTimeout(retry);
    source?.close();
    source = null;
    leaving?.abort();
    leaving = null;
  }

  function connect() {
    if (leaving === null || leaving.signal.aborted) return;
    source = new EventSource(`${prefix}/live`);
    for (const kind of ['ready', 'changed', 'ping', 'ended']) {
      source.addEventListener(kind, ({ data }) => {
        channel.postMessage({ kind, now: data });
        hear({ kind, now: data });
      });
    }
    source.addEventListener('error', () => {
      // It connects again by itself, except after an answer that is no stream.
      if (source?.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(connect, RETRY_AFTER_MS);
      for (const heard of listeners) heard('refused');
    });
  }

  channel.addEventListener('message', ({ data }) => {
    const hasStream = source?.readyState === EventSource.OPEN;
    if (data.kind !== 'hello') hear(data);
    else if (hasStream) channel.postMessage({ kind: 'ping', now: new Date(Date.now() + state.aheadMs).toISOString() });
  });
  document.addEventListener('visibilitychange', () => (document.hidden ? leave() : join()));
  addEventListener('pagehide', leave);
  addEventListener('pageshow', ({ persisted }) => persisted && join());
  if (!document.hidden) join();
  return state;
}

/** Fetches the page again after a change, at most once a second, and says whether what it shows is still true. */
function refreshPage(live) {
  /** Since when the page may show what is no longer so; null if it shows all that was heard of. */
  let dirtySinceMs = performance.now();
  let startedAtMs = Number.NEGATIVE_INFINITY;
  let hasHeard = false;
  let isFetching = false;
  let isPaused = false;
  let hasEnded = false;
  let timer;
  const touched = keepTouched();

  function noteChange() {
    dirtySinceMs ??= performance.now();
    show();
    refreshSoon();
  }

  function refreshSoon(waitMs = startedAtMs + REFRESH_EVERY_MS - performance.now()) {
    if (dirtySinceMs === null || isFetching || isPaused || hasEnded || document.hidden) return;
    clearTimeout(timer);
    if (waitMs > 0) timer = setTimeout(refreshSoon, waitMs, 0);
    else void refresh();
  }

  async function refresh() {
    isFetching = true;
    startedAtMs = performance.now();
    const wasDirtySinceMs = dirtySinceMs;
    dirtySinceMs = null;
    const fresh = await fetchPage().catch(() => null);
    isFetching = false;
    if (fresh === 'ended') {
      hasEnded = true;
      live.leave();
      const again = Object.assign(document.createElement('a'), { href: location.href, textContent: 'Sign in again' });
      say('Your session has ended, so this page is no longer refreshed. ', again, ' to come back to it.');
    } else if (fresh === null || isPaused) dirtySinceMs = wasDirtySinceMs;
    else {
      takeIn(fresh, touched);
      live.tick();
    }
    show();
    refreshSoon(fresh === null ? RETRY_AFTER_MS : undefined);
  }

  function show() {
    const nowMs = performance.now();
    const trueUntilMs = Math.min(live.heardAtMs, isPaused ? nowMs : (dirtySinceMs ?? nowMs));
    const isStale = nowMs - trueUntilMs > STALE_AFTER_MS;
    const is = hasEnded ? 'ended' : isStale ? 'stale' : isPaused ? 'paused' : hasHeard ? 'live' : '';
    if (document.hidden || mark.dataset.is === is) return;
    mark.dataset.is = is;
    mark.hidden = is === '';
    mark.textContent = is === 'stale' ? 'stale: no answer from settled' : is === 'ended' ? 'signed out' : is;
  }

  live.listen((kind) => {
    // What happened before the first message may have been missed.
    const isNews = !hasHeard || kind !== 'ping';
    hasHeard ||= kind !== 'refused';
    if (isNews) noteChange();
    else show();
  });
  document.addEventListener('visibilitychange', () => {
    hasHeard = false;
    show();
  });
  pause.hidden = false;
  pause.addEventListener('click', () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? 'Resume' : 'Pause';
    noteChange();
  });
  setInterval(() => {
    if (performance.now() - startedAtMs > REFRESH_AT_LEAST_EVERY_MS) noteChange();
    else show();
  }, TICK_MS);
}

/** The page as it is now; null if it cannot be had, `ended` if nobody is signed in any more. */
async function fetchPage() {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const response = await fetch(location.href, { headers: { accept: 'text/html' }, cache: 'no-store', signal });
  if (response.status === 401) return 'ended';
  if (response.status >= 500) return null;
  const fresh = new DOMParser().parseFromString(await response.text(), 'text/html');
  if (fresh.getElementById('main') === null) return null;
  // A page for somebody who is not signed in has no such mark.
  return fresh.getElementById('as-of') === null ? 'ended' : fresh;
}

/**
 * Puts a fresh page in the place of this one, and leaves focus, selection, what was typed and what was opened as they are. What
 * was typed into a form that the fresh page does not have is said above it, with what is so now.
 */
function takeIn(fresh, touched) {
  const typed = [...main.querySelectorAll('textarea')].filter((field) => touched.has(field) && field.value !== '');
  Idiomorph.morph(main, fresh.getElementById('main'), {
    ignoreActiveValue: true,
    callbacks: {
      beforeNodeMorphed: (old) => !touched.has(old),
      beforeAttributeUpdated: (name, element) => !(name === 'open' && element.localName === 'details'),
    },
  });
  document.getElementById('as-of').replaceChildren(...fresh.getElementById('as-of').childNodes);
  document.title = fresh.title;
  for (const { value } of typed.filter((field) => !field.isConnected)) {
    const now = main.querySelector('.answer, main:not(:has(.answer)) h1').textContent;
    say('This changed while you were typing, and nothing was sent. ', now, ` You had typed: “${value}”`);
  }
}

/** Above the part of the page that is refreshed. */
function say(...parts) {
  const message = Object.assign(document.createElement('p'), { className: 'problem', role: 'alert' });
  message.append(...parts);
  main.before(message);
}

/** The controls in which somebody typed or chose something: a refresh leaves them alone. */
function keepTouched() {
  const touched = new WeakSet();
  main.addEventListener('input', ({ target }) => touched.add(target));
  main.addEventListener('reset', ({ target }) => {
    for (const control of target.elements) touched.delete(control);
  });
  return touched;
}

/** Ages tick, by the server's clock. */
function letTimesTick(live) {
  live.tick = () => {
    if (document.hidden) return;
    const nowMs = Date.now() + live.aheadMs;
    for (const time of main.querySelectorAll('time[data-age]')) {
      const words = ageInWords(nowMs - Date.parse(time.dateTime), time.dataset.age);
      if (time.textContent !== words) time.textContent = words;
    }
  };
  live.tick();
  setInterval(live.tick, TICK_MS);
}

function ageInWords(sinceMs, how) {
  const words = inWords(Math.floor(Math.abs(sinceMs) / 1000));
  if (how === 'lasting') return sinceMs < 0 ? inWords(0) : words;
  return sinceMs >= 0 ? `${words} ago` : `in ${words}`;
}

/** As the server writes it: `59 s`, `2 h 5 min`. */
function inWords(seconds) {
  if (seconds < 120) return `${seconds} s`;
  const parts = UNITS.map(([unit, size], at) => {
    return [Math.floor((seconds % (UNITS[at - 1]?.[1] ?? Number.POSITIVE_INFINITY)) / size), unit].join(' ');
  });
  return parts
    .filter((part) => !part.startsWith('0 '))
    .slice(0, 2)
    .join(' ');
}

function watchKeys() {
  const search = document.getElementById('find');
  const help = document.getElementById('keys');

  /** Puts the focus on the first link of the next row that has one, or of the one before. */
  function move(step) {
    const links = [...main.querySelectorAll('tbody tr')].map((row) => row.querySelector('a[href]')).filter(Boolean);
    const row = document.activeElement.closest('tr');
    const at = links.findIndex((link) => link.closest('tr') === row);
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step];
    next?.focus();
    next?.scrollIntoView({ block: 'nearest' });
  }

  const actions = { '/': () => search.select(), j: () => move(1), k: () => move(-1), '?': () => help.showModal() };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || help.open) return;
    if (event.target.closest('input, textarea, select, [contenteditable]') !== null) return;
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}
