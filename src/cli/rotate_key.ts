import { defineCommand } from './command.ts';
import { count, printable, record } from './layout.ts';

/** Every link's signing secret is sealed again. */
const ROTATION_TIMEOUT_MS = 3_600_000;

type RotationAnswer = {
  rotation: { keyId: string; previousKeyId: string; secrets: number; resealed: number; keyPlace: string; note: string };
};

export const rotateKey = defineCommand({
  name: 'rotate-key',
  positionals: '',
  about: 'make a new secrets key, and seal all signing secrets under it, while the server serves',
  details: [
    'Signing secrets rest under the secrets key; links and what they sign do not change. It may take a while: no delivery',
    'waits for it. It ends with 78 where the key is given in SETTLED_SECRETS_KEY, and then says how to change it there; with',
    '75 where that change goes on but cannot end so far, as while another replica seals under the key before.',
    'Afterwards copy the new key file, apart from the backups; backups of before still need the old one.',
  ],
  options: {},
  async run({ server }) {
    const answer = await server().post<RotationAnswer>('/v1/admin/rotate-key', undefined, ROTATION_TIMEOUT_MS);
    const { keyId, previousKeyId, secrets, resealed, keyPlace, note } = answer.rotation;
    const lines = record([
      ['key', keyId],
      ['key before', previousKeyId],
      ['kept in', keyPlace],
    ]);
    const sealed =
      secrets === resealed ? 'all of them sealed now' : `${resealed} of them sealed now, the others before`;
    const done = `The secrets key is a new one. Under it: ${count(secrets, 'signing secret')}, ${sealed}.`;
    return { data: answer, lines: [done, printable(note), '', ...lines] };
  },
});
