// The script of the tiny shop. Everything works without it: it reloads the page when an open order changes.

const LOOK_EVERY_MS = 1000;

const main = document.querySelector('main[data-open]');
if (main !== null) setInterval(() => void lookAgain(), LOOK_EVERY_MS);

async function lookAgain() {
  if (document.hidden) return;
  try {
    const response = await fetch(`${location.pathname}/state`);
    if (!response.ok) return;
    const { state } = await response.json();
    if (state !== main.dataset.state) location.replace(location.pathname);
  } catch {
    // The shop is away. It is asked again.
  }
}
