import { flag, oneOf, some, whole } from '../prove/harness/proof.ts';
import { CONTESTANTS, type Contestant, runContest } from './contest.ts';
import { runFilled } from './filled.ts';
import { runIdle } from './idle.ts';
import { runTold } from './notices.ts';
import { runProfile } from './profile.ts';
import type { Found } from './report.ts';
import { compare } from './run.ts';

/** `npm run bench`: prints the figures of docs/bench.md. */

const PARTS = ['burst', 'sustained', 'filled', 'told', 'idle'] as const;
type Parts = readonly (typeof PARTS)[number][];

const OPTIONS = {
  only: some('PART', 'burst, sustained, filled, told or idle; may be repeated', PARTS),
  notices: whole('notices that wait while the shop is down (100000; quick 20000)', null, { max: 1_000_000 }),
  filled: whole('events in the fullest store (1000000; quick 20000); another has a tenth', null, { max: 20_000_000 }),
  engine: oneOf('ENGINE', 'of the filled stores: sqlite or postgres', ['sqlite', 'postgres']),
  profile: flag('only one sustained run, and where its time goes: the statements and the functions'),
};

/** Rows that a quick run leaves out. */
const OPTIONAL = /NORMAL|cold|grouped/;

/** The ceiling belongs to both comparisons. */
function takesPart(name: Contestant, parts: Parts, quick: boolean): boolean {
  if (quick && OPTIONAL.test(name)) return false;
  const sustained = name.endsWith('sustained');
  if (name.startsWith('ceiling')) return parts.includes('burst') || parts.includes('sustained');
  return parts.includes(sustained ? 'sustained' : 'burst');
}

await compare(
  'bench',
  OPTIONS,
  async ({ only: parts, quick, filled, engine, notices, profile }, run) => {
    if (profile) return [await runProfile(run)];
    const [few, many] = [20_000, 1_000_000];
    const contestants = CONTESTANTS.filter((name) => takesPart(name, parts, quick));
    const found: Found[] = [];
    if (contestants.length > 0) found.push(await runContest({ ...run, contestants }));
    if (parts.includes('filled'))
      found.push(await runFilled({ ...run, engine, events: filled ?? (quick ? few : many) }));
    if (parts.includes('told')) found.push(await runTold({ ...run, notices: notices ?? (quick ? few : many / 10) }));
    if (parts.includes('idle'))
      found.push(await runIdle({ ...run, starts: quick ? 1 : 3, idleMs: quick ? 2_000 : 10_000 }));
    return found;
  },
  ({ profile }) => profile,
);
