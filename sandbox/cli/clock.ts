import { defineCommand } from './command.ts';
import { connect, URL_OPTION } from './control.ts';

export const clock = defineCommand({
  name: 'clock',
  positional: '[BY]',
  about: 'tell the time of the sandbox, or turn it forward: 17h, 90m, 2h30m, 500ms',
  options: URL_OPTION,
  run: async ({ first, options }) => {
    const control = connect(options.url);
    const told: { time: string } =
      first === '' ? await control.get('/clock') : await control.post('/clock', { advance: first });
    return { data: told, lines: [told.time] };
  },
});
