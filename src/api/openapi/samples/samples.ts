import { EVENT_SAMPLES, NOTICE_SAMPLES } from './events.ts';
import { ORDER_SAMPLES } from './orders.ts';
import { UPKEEP_SAMPLES } from './upkeep.ts';

/** A sample of each answer, by the operation's id and the status: an object for JSON, else a text. */
export type Samples = Readonly<Record<string, Readonly<Record<number, object | string>>>>;

/** All of them: the document and its page take theirs from here, and a test holds each against its schema. */
export const SAMPLES: Samples = { ...ORDER_SAMPLES, ...EVENT_SAMPLES, ...NOTICE_SAMPLES, ...UPKEEP_SAMPLES };
