import { Fault } from '../fault.ts';
import { wholeName } from '../store/address.ts';
import { defineCommand, type Report } from './command.ts';
import type { Connection } from './connection.ts';
import { EXIT, EXIT_OF_FAULT, type ExitCode } from './exit.ts';
import { table } from './layout.ts';

type Check = { name: string; status: 'ok' | 'warning' | 'failing'; detail: string };

export const doctor = defineCommand({
  name: 'doctor',
  positionals: '',
  about: 'check this installation, and say what to do about what is wrong',
  details: ['The exit code is 1 where something is failing, 69 where the server cannot be reached.'],
  options: {},
  async run({ config, server }) {
    const { store, envFile } = config();
    const connection = server();
    const { checks, exit, store: served } = await askServer(connection);
    const isOther = served !== undefined && served !== wholeName(store);
    const configuration: Check = {
      name: 'configuration',
      status: isOther ? 'warning' : 'ok',
      detail: isOther
        ? `the store is ${store.name}, and the server at ${connection.url} works on ${served}: what follows is of that one. ` +
          "Run this command with the server's SETTLED_STORE"
        : `the store is ${store.name}${envFile === null ? '' : `; ${envFile.path} gave ${envFile.names.join(', ')}`}`,
    };
    return report([configuration, ...checks], exit);
  },
});

type Asked = {
  checks: Check[];
  exit: ExitCode;
  /** On which the server works, where it answers. */
  store?: string;
};

async function askServer(server: Connection): Promise<Asked> {
  try {
    const { store, checks } = await server.get<{ store: string; checks: Check[] }>('/v1/admin/doctor');
    const answers: Check = { name: 'server', status: 'ok', detail: `settled answers at ${server.url}` };
    const failing = checks.some(({ status }) => status === 'failing');
    return { store, checks: [answers, ...checks], exit: failing ? EXIT.refused : EXIT.ok };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const checks: Check[] = [{ name: 'server', status: 'failing', detail: error.message }];
    return { checks, exit: EXIT_OF_FAULT[error.code] };
  }
}

function report(checks: Check[], exit: ExitCode): Report {
  const rows = checks.map(({ name, status, detail }) => [status, name, detail]);
  return { data: { checks }, lines: table(['status', 'check', 'detail'], rows, ''), exit };
}
