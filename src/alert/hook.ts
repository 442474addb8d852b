import type { AlertMessage } from '../explain/alert_message.ts';
import { Fault, terminalFault, transientFault } from '../fault.ts';
import type { Peer } from '../http/peer.ts';
import { openTarget, signedHeaders, type TargetOptions } from '../http/target.ts';
import type { AlertChannel } from '../vocabulary.ts';
import { chatText } from './texts.ts';

/** What a channel answered to a message. `fault`: why it did not take it; or, if it did, why not everybody gets it. */
export type ChannelAnswer = { fault: Fault | null; isTaken: boolean; answer: string | null };

/** A way to people. */
export type Channel = {
  name: AlertChannel;
  /** The message as it is stored until it is taken. Each attempt sends the same. */
  write(message: AlertMessage, nowMs: number): string;
  /** Makes one attempt. Null if `close` ended it. Never rejects. */
  send(message: { id: string; body: string }): Promise<ChannelAnswer | null>;
  close(): void;
};

/** How long a channel has to answer. */
export const ANSWER_MS = 10_000;

const FAULTS = {
  unreachable: 'alert_unreachable',
  timeout: 'alert_timeout',
  isPrivate: 'alert_address_private',
} as const;
const ALLOW = 'SETTLED_ALERT_ALLOW_PRIVATE';
const HOOK: Peer = { name: 'hook', what: 'alert', setting: 'SETTLED_ALERT_URL', allow: ALLOW, faults: FAULTS };
export const MAIL_SERVER: Peer = { ...HOOK, name: 'mail server', what: 'mail', setting: 'SETTLED_ALERT_SMTP' };
const BEATS = { name: 'heartbeat service', what: 'heartbeat', setting: 'SETTLED_HEARTBEAT_URL' };
export const HEARTBEAT: Peer = { ...HOOK, ...BEATS };

export type HookOptions = Pick<TargetOptions, 'url' | 'allowPrivate' | 'clock' | 'deadlineClock' | 'resolve'> & {
  keys: readonly Buffer[];
  clock: { nowMs(): number };
};

/** Sends messages as signed JSON (Standard Webhooks). */
export function openHook({ keys, ...options }: HookOptions): Channel {
  const { clock } = options;
  const target = openTarget({ ...options, peer: HOOK, connections: 1, deadlineMs: ANSWER_MS });
  return {
    name: 'url',
    write: (message, nowMs) => {
      const { type, title, data } = message;
      const text = chatText(message);
      // Each chat reads one of the two.
      const timestamp = new Date(nowMs).toISOString();
      return JSON.stringify({ type, timestamp, text, content: text, data: { title, ...data } });
    },
    send: async ({ id, body }) => {
      try {
        const reply = await target.post(signedHeaders(keys, { id, body, nowMs: clock.nowMs() }), body);
        if (reply === null) return null;
        const { status } = reply;
        const answer = `${status} ${reply.body}`.trim();
        const isTaken = status >= 200 && status < 300;
        return { fault: isTaken ? null : refused(status), isTaken, answer };
      } catch (error) {
        return { fault: faultOf(error), isTaken: false, answer: null };
      }
    },
    close: target.close,
  };
}

function refused(status: number): Fault {
  const hint =
    status >= 300 && status < 400
      ? 'redirects are not followed. Put the final address into SETTLED_ALERT_URL'
      : 'only 2xx takes an alert. Look at the log of what answers at SETTLED_ALERT_URL';
  return transientFault('alert_refused', `The hook answered ${status}: ${hint}.`);
}

export function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error;
  return terminalFault('alert_refused', `The message could not be sent: ${(error as Error).message}`, { cause: error });
}
