import { stayAlive } from '../work/clock.ts';
import { defineCommand } from './command.ts';

/** The command of the first hour: it makes a configuration that works, and shows that it does. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export const init = defineCommand({
  usage: 'init',
  about: 'set settled up in this folder by five questions, check it, and try it',
  details: [
    'It writes .env, and a file in data/ for each secret. It replaces no secret, and no .env without --force.',
    'On a terminal it asks for what no option and no setting in the environment answers. With --yes, or without a terminal,',
    'it asks nothing: --service-url, --api-key-file and --public-url are needed then, and what .env has counts as given.',
    "It sends the service two requests: one tries the API key, one is doctor's. The test order is paid at a sandbox.",
    'The exit code is 1 if doctor or the test order failed once all was written, 78 if an answer cannot be used, and 69 if',
    'the service or PostgreSQL does not answer. docs/first-hour.md describes each step.',
  ],
  examples: [
    'settled init',
    'settled init --yes --service-url https://links.example.com --api-key-file FILE --public-url https://pay.example.com',
  ],
  options: {
    'service-url': { value: 'URL', about: "the payment-link service's address" },
    'api-key-file': { value: 'FILE', about: 'a file with your API key at the service; - for standard input' },
    'public-url': { value: 'URL', about: 'the https address at which the service reaches settled' },
    store: { value: 'ADDRESS', about: 'sqlite:FILE, or postgres://…; sqlite:./data/settled.db if left out' },
    'shop-url': { value: 'URL', about: 'where the shop takes notices; without it the shop reads the feed' },
    'shop-allow-private': { about: 'the shop is on this machine or in this network' },
    yes: { about: 'ask nothing' },
    force: { about: 'replace the .env that is there, and keep a copy of it' },
    'skip-order': { about: 'leave out the test order' },
  },
  isLocal: true,
  async run({ options, json }) {
    const stop = new AbortController();
    const interrupt = (signal: NodeJS.Signals) => stop.abort(signal);
    for (const signal of SIGNALS) process.on(signal, interrupt);
    const release = stayAlive();
    try {
      // Loaded now, because no other command needs it.
      const [{ setUp }, { openTerminal }] = await Promise.all([
        import('./init_setup.ts'),
        import('./init_terminal.ts'),
      ]);
      const terminal = options.yes === true ? null : openTerminal(() => interrupt('SIGINT'));
      stop.signal.addEventListener('abort', () => terminal?.close());
      return await setUp({ options, json, terminal, signal: stop.signal }).finally(() => terminal?.close());
    } finally {
      release();
      for (const signal of SIGNALS) process.off(signal, interrupt);
      // It ends as a process does that does not listen to the signal.
      if (stop.signal.aborted) process.kill(process.pid, stop.signal.reason as NodeJS.Signals);
    }
  },
});
