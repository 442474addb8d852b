import { describe, expect, it } from 'vitest';
import { type Chance, chanceOf } from '../../prove/harness/chance.ts';
import { headerNames as namesWith } from '../../src/paylink/events.ts';
import { verify } from '../../src/receive/verify.ts';
import { REJECTION_REASONS } from '../../src/vocabulary.ts';
import { times } from '../support/timing.ts';
import { type Attempt, hmacHexOf, isAuthentic } from './oracle.ts';

const INPUTS = times(100_000, 1_000_000);
const HEADER_NAMES = namesWith('x-service');
const SEED = Number(process.env.FUZZ_SEED ?? 20_251_109);

/** A delivery while it is made: the header lists are written out last. */
type Draft = { secret: string; timestamp: string; body: Buffer; signature: string; headers: [string, string][] };

const SECRETS = [
  'a-secret-of-at-least-24-bytes-1',
  'chave-secreta-ção-0123456789',
  'sixteen-bytes-16',
  'x'.repeat(100),
];
const BODIES = [
  '',
  '{}',
  '{"id":"evt_1","type":"payment_link.created"}',
  '1.{"id":"evt_2","note":"São Paulo 💳"}',
  '\ufeff{"id":"evt_3"}',
  `{"id":"evt_4","data":"${'x'.repeat(300)}"}`,
].map((text) => Buffer.from(text));

/** A code in lower-case hex. */
function code({ secret, timestamp, body }: Pick<Draft, 'secret' | 'timestamp' | 'body'>): string {
  return hmacHexOf(secret, Buffer.from(`${timestamp}.`), body);
}

function base64url(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64url');
}

const SPELLINGS: ((hex: string) => string)[] = [
  (hex) => hex,
  (hex) => hex.toUpperCase(),
  (hex) => Buffer.from(hex, 'hex').toString('base64'),
  base64url,
  (hex) => `${base64url(hex)}=`,
  (hex) => Buffer.from(hex, 'hex').toString('base64').replace('=', ''),
];
const PREFIXES = ['', '', 'sha256=', 'v1=', 'v1,', 'hmac-sha256=', 'sha256:', 'Sha256=', 'HMAC-SHA256=', 'V1='];

/** Signing is most of the work, so genuine deliveries are made beforehand and drawn from. */
function genuineDeliveries(random: Chance): Pick<Draft, 'secret' | 'timestamp' | 'body' | 'signature'>[] {
  return Array.from({ length: 4096 }, () => {
    const secret = random.pick(SECRETS);
    const timestamp = String(1_700_000_000_000 + random.below(2 ** 31));
    const body = Buffer.from(random.pick(BODIES));
    if (body.length > 3) body[random.below(body.length)] = random.below(256);
    const signature = random.pick(PREFIXES) + random.pick(SPELLINGS)(code({ secret, timestamp, body }));
    return { secret, timestamp, body, signature };
  });
}

const ODD_PREFIXES = [
  ...['sha256=', 'v1=', 'v1,', 'V1=', 'V1,', 'hmac-sha256=', 'sha256:'],
  ...['sha1=', '0x', '"', 'v1=v1=', 'v1:', 'hmac-sha256:', 'hmac_sha256=', 'sha256', 't='],
];

type Mutation = (draft: Draft, random: Chance) => void;

const ODD = ['', ' ', ',', '\n', '\r\n', '\0', '\t', '=', '0', '9', '+', '/', '-', '_', 'A', '.', '１', 'é', 'v1,'];

function edit(text: string, random: Chance): string {
  const at = random.below(text.length + 1);
  const odd = random.oneIn(2) ? random.pick(ODD) : String.fromCharCode(random.below(128));
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at) + odd + text.slice(at);
    case 1:
      return text.slice(0, at) + odd + text.slice(at + 1);
    case 2:
      return text.slice(0, at) + text.slice(at + 1);
    default:
      return odd + text;
  }
}

const randomMac = Buffer.alloc(32);

function randomCode(random: Chance): string {
  for (let i = 0; i < 32; i += 4) randomMac.writeUInt32LE(random.below(2 ** 32), i);
  return randomMac.toString('hex');
}

/** Each does one thing to a delivery. Some leave it authentic: those must not be refused. */
const MUTATIONS: Record<string, Mutation> = {
  nothing: () => {},
  'body: one bit': (draft, random) => {
    const at = random.below(draft.body.length);
    draft.body = Buffer.from(draft.body);
    if (draft.body.length > 0) draft.body[at] = (draft.body[at] as number) ^ (1 << random.below(8));
  },
  'body: bytes in, out or after': (draft, random) => {
    const at = random.below(draft.body.length + 1);
    const more = Buffer.from(random.pick(['\ufeff', '\n', '\0', ' ', '{}', 'x']));
    const rest = draft.body.subarray(at + random.below(3));
    draft.body = Buffer.concat([draft.body.subarray(0, at), random.oneIn(2) ? more : Buffer.alloc(0), rest]);
  },
  'body: the same text in other invalid bytes': (draft, random) => {
    draft.body = Buffer.concat([draft.body, Buffer.from([0xff])]);
    draft.signature = random.pick(SPELLINGS)(code(draft));
    if (!random.oneIn(5)) draft.body[draft.body.length - 1] = 0xfe;
  },
  'timestamp: edited': (draft, random) => {
    draft.timestamp = edit(draft.timestamp, random);
  },
  'timestamp: edited, then signed': (draft, random) => {
    draft.timestamp = edit(draft.timestamp, random);
    draft.signature = random.pick(SPELLINGS)(code(draft));
  },
  'timestamp: another spelling, signed': (draft, random) => {
    const ms = draft.timestamp;
    draft.timestamp = random.pick([`+${ms}`, `0${ms}`, `${ms}.0`, `${ms}n`, ` ${ms}`, `${ms}\n`, ms.slice(0, 10)]);
    draft.signature = random.pick(SPELLINGS)(code(draft));
  },
  'timestamp: the delimiter moved': (draft, random) => {
    const at = 1 + random.below(12);
    draft.body = Buffer.concat([Buffer.from(`${draft.timestamp.slice(at)}.`), draft.body]);
    draft.timestamp = draft.timestamp.slice(0, at);
  },
  'timestamp: the delimiter moved, signed': (draft, random) => {
    const all = Buffer.concat([Buffer.from('1760000000000.17.'), draft.body]);
    draft.signature = random.pick(SPELLINGS)(hmacHexOf(draft.secret, all));
    const [timestamp, body] = random.pick([
      ['1760000000000', all.subarray(14)],
      ['1760000000000.17', all.subarray(17)],
    ] as const);
    draft.timestamp = timestamp;
    draft.body = Buffer.from(body);
  },
  'signature: edited': (draft, random) => {
    draft.signature = edit(draft.signature, random);
  },
  'signature: another prefix': (draft, random) => {
    draft.signature = random.pick(ODD_PREFIXES) + draft.signature;
  },
  'signature: the timestamp before it': (draft, random) => {
    const stamp = random.pick([
      draft.timestamp,
      draft.timestamp,
      String(Number(draft.timestamp) + 1),
      draft.timestamp.slice(0, 10),
      edit(draft.timestamp, random),
    ]);
    const name = random.pick(['t=', 't=', 't=', 'T=', 'ts=', 't:', 't= ', 't']);
    const separator = random.pick([',', ',', ', ', ' ', ';', '']);
    draft.signature = name + stamp + separator + draft.signature;
    if (random.oneIn(5)) draft.signature += random.pick([',', ' ']) + code(draft);
  },
  'signature: the timestamp elsewhere': (draft, random) => {
    const stamp = `t=${draft.timestamp}`;
    draft.signature = random.pick([
      `${draft.signature},${stamp}`,
      `${stamp},${stamp},${draft.signature}`,
      stamp,
      `${stamp},`,
      `${stamp} ${draft.signature} ${stamp}`,
    ]);
  },
  'signature: the case of its prefix': (draft, random) => {
    let prefix = '';
    for (const letter of random.pick(['hmac-sha256=', 'sha256=', 'sha256:', 'v1=', 'v1,'])) {
      prefix += random.oneIn(2) ? letter.toUpperCase() : letter;
    }
    draft.signature = prefix + random.pick(SPELLINGS)(code(draft));
  },
  'signature: the case of hex digits': (draft, random) => {
    draft.signature = '';
    for (const digit of code(draft)) draft.signature += random.oneIn(2) ? digit.toUpperCase() : digit;
  },
  'signature: a last digit with spare bits': (draft, random) => {
    const text = base64url(code(draft));
    const bytes = Buffer.from(text, 'base64url');
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const last = digits.indexOf(text[42] as string) | random.below(4);
    draft.signature = text.slice(0, 42) + digits[last] + (random.oneIn(2) ? '=' : '');
    if (bytes.length !== 32) throw new Error('a code has 32 bytes');
  },
  'signature: padding': (draft, random) => {
    const bytes = Buffer.from(code(draft), 'hex');
    const text = bytes.toString(random.oneIn(2) ? 'base64' : 'base64url');
    draft.signature = text.replace('=', '') + random.pick(['', '=', '==', '\n', ' ']);
  },
  'signature: random bytes': (draft, random) => {
    draft.signature = random.pick(PREFIXES) + random.pick(SPELLINGS)(randomCode(random));
  },
  'signature: several': (draft, random) => {
    const count = 1 + random.below(10);
    const right = random.below(10) < 7 ? random.below(count) : -1;
    const elements = Array.from({ length: count }, (_, i) => {
      const hex = i === right ? code(draft) : randomCode(random);
      return random.pick(random.oneIn(2) ? [''] : PREFIXES) + random.pick(SPELLINGS)(hex);
    });
    const separators = random.pick([[' '], [','], [', '], [' ', '  ', ',', ' ,', ' , '], [' ', ',,', ';', '\t']]);
    draft.signature = elements.reduce((list, element) => list + random.pick(separators) + element);
    if (random.oneIn(20)) draft.signature += random.pick([' ', ',', ' ,']);
  },
  'signature: of another secret': (draft, random) => {
    const secret = random.pick([...SECRETS, '', 'short', `${draft.secret}\0`, ` ${draft.secret}`]);
    draft.signature = random.pick(SPELLINGS)(code({ ...draft, secret }));
  },
  'secret: too short, or nearly': (draft, random) => {
    draft.secret = random.pick(['', 'whsec_', 'fifteen-bytes-1', 'sixteen-bytes-16', 'ção-ção', 'çãoçãoçãoção']);
    draft.signature = random.pick(SPELLINGS)(code(draft));
  },
  'headers: one missing': (draft, random) => {
    draft.headers.splice(random.below(draft.headers.length), 1);
  },
  'headers: one twice': (draft, random) => {
    const [name, value] = random.pick(draft.headers);
    const again = random.pick([value, '', edit(value, random)]);
    draft.headers.splice(random.below(draft.headers.length + 1), 0, [name.toUpperCase(), again]);
  },
  'headers: values exchanged': (draft) => {
    const [first, second] = draft.headers;
    if (first && second) [first[1], second[1]] = [second[1], first[1]];
  },
  'headers: a name edited': (draft, random) => {
    const header = random.pick(draft.headers);
    header[0] = edit(header[0], random);
  },
  'headers: names as values': (draft, random) => {
    const name = random.pick(['x', 'x-service-signature']);
    draft.headers.splice(random.below(3), 0, [name, 'x-service-timestamp'], ['x', draft.signature]);
  },
};

const NAMES = Object.keys(MUTATIONS);
const DELIVERY_MUTATIONS = new Set(NAMES.filter((name) => !name.startsWith('headers')));

/** One to three things happen to a genuine delivery; the case, order and company of its headers vary always. */
function mutate(
  { genuine, names: spellings }: { genuine: ReturnType<typeof genuineDeliveries>; names: HeaderNames },
  random: Chance,
): { attempt: Attempt; names: string[] } {
  const draft: Draft = { ...random.pick(genuine), headers: [] };
  const names: string[] = [];
  for (let more = random.below(3); more >= 0; more--) names.push(random.pick(NAMES));
  for (const name of names) if (DELIVERY_MUTATIONS.has(name)) MUTATIONS[name]?.(draft, random);
  draft.headers = [
    [random.pick(spellings.signature), draft.signature],
    [random.pick(spellings.timestamp), draft.timestamp],
  ];
  for (const name of names) {
    if (!DELIVERY_MUTATIONS.has(name) && draft.headers.length > 0) MUTATIONS[name]?.(draft, random);
  }
  if (random.oneIn(2)) draft.headers.reverse();
  if (random.oneIn(2)) draft.headers.splice(random.below(3), 0, ['Host', 'localhost']);
  const rawHeaders: string[] = [];
  for (const [name, value] of draft.headers) rawHeaders.push(name, value);
  return { attempt: { rawHeaders, body: draft.body, secret: draft.secret }, names };
}

type HeaderNames = { signature: string[]; timestamp: string[] };

function headerNames(random: Chance): HeaderNames {
  const spell = (name: string) =>
    Array.from({ length: 64 }, (_, i) =>
      [...name].map((letter) => (i > 0 && random.oneIn(2) ? letter.toUpperCase() : letter)).join(''),
    );
  return { signature: spell('x-service-signature'), timestamp: spell('x-service-timestamp') };
}

describe(`receive: ${INPUTS} mutated deliveries`, () => {
  it('are accepted exactly when a second reading of the rules accepts them, and none makes the verifier throw', () => {
    const random = chanceOf(SEED);
    const material = { genuine: genuineDeliveries(random), names: headerNames(random) };
    const outcomes = new Map<string, number>();
    const accepted = new Map<string, number>();
    const refused = new Map<string, number>();
    const count = (tally: Map<string, number>, key: string) => tally.set(key, (tally.get(key) ?? 0) + 1);
    const before = process.cpuUsage();
    for (let i = 0; i < INPUTS; i++) {
      const { attempt, names } = mutate(material, random);
      const { rawHeaders, body, secret } = attempt;
      const verified = verify({ rawHeaders, headerNames: HEADER_NAMES, body, credentials: { secret } });
      if (verified.ok !== isAuthentic(attempt)) {
        const bodyHex = Buffer.from(body).toString('hex');
        expect.unreachable(
          `false ${verified.ok ? 'accept' : 'reject'} with FUZZ_SEED=${SEED} at input ${i}: ${names.join(' + ')}: ` +
            JSON.stringify({ rawHeaders, secret, bodyHex, verified }),
        );
      }
      count(outcomes, verified.ok ? 'accepted' : verified.reason);
      if (names.length === 1) count(verified.ok ? accepted : refused, names[0] as string);
    }
    const { user, system } = process.cpuUsage(before);
    const seconds = (user + system) / 1e6;
    console.log(
      `FUZZ_SEED=${SEED}: ${INPUTS} inputs in ${seconds.toFixed(1)} s of CPU, no false accept, no false reject, no throw`,
      Object.fromEntries([...outcomes].sort()),
    );
    // A generator that reaches nothing would prove nothing.
    expect([...outcomes.keys()].sort()).toEqual(['accepted', ...REJECTION_REASONS].sort());
    expect(Math.min(...outcomes.values())).toBeGreaterThan(INPUTS / 200);
    expect(outcomes.get('accepted')).toBeGreaterThan(INPUTS / 20);
    expect(Object.keys(MUTATIONS).filter((name) => !accepted.has(name) && !refused.has(name))).toEqual([]);
    expect(refused.has('nothing')).toBe(false);
  });
});
