import { type Environment, TARGET_NAMES, targetEnvironment } from '../config/environment.ts';
import { type ShownSetting, showConfig as settingsOf } from '../config/shown.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import type { Block } from './output.ts';
import { type Columns, table } from './table.ts';

export const showConfig = defineCommand({
  usage: 'config',
  about: 'show every setting with its value and where it comes from; secrets are hidden',
  details: [
    'It shows what a command or a server would read here: the environment, the .env of this folder, and files that NAME_FILE',
    'names. A server that runs elsewhere, or as another user, may have others.',
    'It asks no server, and ends with 78 if the configuration cannot be used.',
  ],
  examples: ['settled config', 'settled config --set'],
  options: { set: { about: 'only those that are not left to their default' } },
  isLocal: true,
  async run({ options, environment }) {
    const { settings, fault } = settingsOf(environment);
    const shown = options.set === true ? settings.filter(({ source }) => !IS_LEFT.has(source)) : settings;
    return {
      data: { settings: shown, fault },
      lines: [
        ...table(shown, COLUMNS, { nothing: 'Every setting is left to its default.' }),
        ...envFileLines(settings),
        ...elsewhereLines(targetEnvironment(environment)),
        ...(fault === null ? [] : ['', fault]),
      ],
      exit: fault === null ? EXIT.ok : EXIT.configuration,
    };
  },
});

const IS_LEFT: ReadonlySet<ShownSetting['source']> = new Set(['default', 'not set']);

const COLUMNS: Columns<ShownSetting> = {
  setting: 'name',
  value: ({ value, hidden, fault }) => (fault !== null ? 'cannot be used' : hidden ? '(hidden)' : value),
  source: ({ source, file }) => (file === null || source === '.env' ? source : `file ${file}`),
};

function envFileLines(settings: readonly ShownSetting[]): Block[] {
  const { file = null } = settings.find(({ source }) => source === '.env') ?? {};
  return file === null ? [] : ['', `.env is ${file}.`];
}

/** The environment that tells commands of a server elsewhere: the settings above then say nothing of that one. */
function elsewhereLines(environment: Environment): Block[] {
  const given = TARGET_NAMES.filter((name) => environment[name]);
  if (given.length === 0) return [];
  return ['', `Commands ask a server elsewhere, for which the environment has: ${given.join(', ')}.`];
}
