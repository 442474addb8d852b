import { readConfig } from '../config.ts';
import { diagnose } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import { systemClock } from '../work/clock.ts';
import { UsageError, wholeNumber } from './arguments.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { printable } from './layout.ts';
import { readGivenFile, readSecret } from './links.ts';

export const verifyDelivery = defineCommand({
  name: 'verify',
  positionals: '',
  about: 'say whether a captured delivery is authentic, and if it is not, what is wrong with it',
  details: [
    'Works without a server. The body must be the bytes as they came: save them with a tool that changes nothing.',
    'A delivery that was captured some time ago is stale now: give the time at which it came as --now.',
    'A secret on the command line can be seen by other users of the machine: prefer --secret-file.',
  ],
  examples: [
    'settled verify --body body.json --signature "$SIGNATURE" --timestamp 1900000000000 --secret-file secret.txt',
  ],
  options: {
    body: { value: 'FILE', about: 'the raw body; - reads standard input; needed' },
    signature: {
      value: 'TEXT',
      about:
        'the value of the signature header, x-service-signature unless SETTLED_HEADER_PREFIX is set; needed',
    },
    timestamp: {
      value: 'TEXT',
      about:
        'the value of the timestamp header, x-service-timestamp unless SETTLED_HEADER_PREFIX is set; needed',
    },
    'secret-file': { value: 'FILE', about: "a file that holds the link's webhookSecret" },
    secret: { value: 'SECRET', about: "the link's webhookSecret" },
    now: {
      value: 'MS',
      about: 'when the delivery came, in epoch milliseconds; the present time if left out',
    },
    tolerance: {
      value: 'SECONDS',
      about: 'permitted clock difference; SETTLED_TOLERANCE_SECONDS if left out',
    },
  },
  async run({ options }) {
    const { body, signature, timestamp, now, tolerance } = options;
    const secret = readSecret(options);
    if (body === undefined || secret === undefined) {
      throw new UsageError(
        '`settled verify` needs --body FILE and --secret-file FILE (or --secret SECRET). See: settled help verify',
      );
    }
    if (signature === undefined || timestamp === undefined) {
      throw new UsageError(
        '`settled verify` needs --signature TEXT and --timestamp TEXT. A delivery that came without one of these headers ' +
          'was refused for that.',
      );
    }
    const diagnosis = diagnose({
      body: readGivenFile('body', body),
      signature,
      timestamp,
      secrets: [secret],
      nowMs: now === undefined ? systemClock.nowMs() : wholeNumber('now', now, 0),
      toleranceSeconds:
        tolerance === undefined ? readConfig().toleranceSeconds : wholeNumber('tolerance', tolerance, 1),
      effort: 'all',
    });
    const { answer, advice } = explainDiagnosis(diagnosis);
    const { code: verdict, ...details } = diagnosis;
    const authentic = verdict === 'authentic';
    return {
      data: { authentic, verdict, answer, advice, details },
      lines: [`${verdict}: ${answer}`, ...advice].map(printable),
      exit: authentic ? EXIT.ok : EXIT.notAuthentic,
    };
  },
});
