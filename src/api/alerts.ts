import { z } from 'zod';
import { alertTrouble, explainChannel, failsToTell } from '../explain/alert_status.ts';
import { capital, iso } from '../explain/glossary.ts';
import { ALERT_CHANNEL_WORDS, namesOf } from '../vocabulary.ts';
import { type Finding, failing, finding } from './doctor_store.ts';
import { problem } from './problem.ts';
import { type ApiOptions, ok, operation } from './route.ts';

/** How people are told of what needs them: a test, and what doctor finds. */

const tested = z
  .strictObject({
    name: z.enum(namesOf(ALERT_CHANNEL_WORDS)),
    taken: z.boolean().describe('Whether it took the test, for everybody.'),
    detail: z.string().describe('What it answered, or why it took nothing.'),
  })
  .meta({ id: 'TestedChannel' });

export type TestedChannel = z.infer<typeof tested>;

export const testAlerts = operation({
  summary: 'Send a test by each channel of alerts',
  description: 'It answers when each channel did, within a minute.',
  answers: ok('What each channel answered.', { channels: z.array(tested) }),
  problems: { 409: ['alerts_not_configured'] },
  answersWithoutStore: true,
  answer: async ({ alerts }) => {
    if (alerts.names.length === 0) {
      const detail =
        'No channel of alerts is configured. Set SETTLED_ALERT_URL or SETTLED_ALERT_SMTP: see docs/alerts.md.';
      throw problem(409, 'alerts_not_configured', detail);
    }
    const tests = await alerts.test();
    const channels = tests.map(({ name, fault, isTaken, answer }) => {
      const said = answer && `${fault === null ? 'it' : 'It'} answered: ${answer}`;
      const detail = [fault?.message, said].filter(Boolean).join(' ');
      return { name, taken: isTaken && fault === null, detail };
    });
    return { channels };
  },
});

/** Whether people are told: a finding for each channel, and one for the heartbeat. */
export async function checkAlerts({ store, alerts, heartbeats }: ApiOptions): Promise<Finding[]> {
  const states = alerts.names.length === 0 ? [] : await store.alertChannels();
  const found = alerts.names.map((channel) => {
    const name = `alerts: ${channel}`;
    const state = states.find((one) => one.name === channel);
    if (state === undefined) return failing(name, REMOVED);
    const detail = explainChannel(state);
    return failsToTell(state) ? failing(name, detail) : finding(name, state.fault === null, detail);
  });
  return [...(found.length === 0 ? [finding('alerts', true, NONE)] : found), ...checkHeartbeat(heartbeats)];
}

const NONE = 'no channel is configured, so nobody is told what needs attention (SETTLED_ALERT_URL, SETTLED_ALERT_SMTP)';
const REMOVED =
  'nothing is sent, because a replica that started later has other channels. Give all replicas the same settings, and restart them';

function checkHeartbeat(heartbeats: ApiOptions['heartbeats']): Finding[] {
  if (heartbeats === null) return [];
  const { heardAtMs, fault } = heartbeats.state();
  const heard = heardAtMs === null ? 'none was taken so far' : `the last one was taken at ${iso(heardAtMs)}`;
  return [finding('heartbeat', fault === null, heard, `${fault?.message} ${capital(heard)}`)];
}

/** What is wrong with the channels, for everybody who looks whether settled works: by the channel's name. */
export async function alertTroubles({ store }: Pick<ApiOptions, 'store'>): Promise<[string, string][]> {
  const channels = (await store.alertChannels()).filter(failsToTell);
  return channels.map((state) => [`alert_failing ${state.name}`, alertTrouble(state)]);
}
