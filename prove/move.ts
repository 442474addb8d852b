import { parseArgs } from 'node:util';
import { proveKills } from './move_kills.ts';
import { proveMillion } from './move_million.ts';

/**
 * `npm run prove:move`: kills the mover, the settled that serves, and PostgreSQL at points of a move, and lets it be completed;
 * then moves a store with a million events while payments are delivered, the shop is told and its feed is read.
 */

const HELP = `npm run prove:move -- [options]

  --kills N     points at which something is killed (50)
  --events N    events of the large store (1000000)
`;

async function main(): Promise<number> {
  const options = { kills: { type: 'string', default: '50' }, events: { type: 'string', default: '1000000' } } as const;
  const { values } = parseArgs({ options: { ...options, help: { type: 'boolean', default: false } } });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const [kills, events] = [Number(values.kills), Number(values.events)];
  const broken = [
    ...(kills > 0 ? await proveKills(kills, print) : []),
    ...(events > 0 ? await proveMillion(events, print) : []),
  ];
  for (const what of broken) print(`broken: ${what}`);
  print(broken.length === 0 ? 'proved' : 'not proved');
  return broken.length === 0 ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

process.exit(await main());
