import type { FaultNote } from './store.ts';

export type Burial = { fault: FaultNote; kind: 'event_dead' | 'link_mismatch'; nowMs: number };

export function burialDetail(eventKey: number, { code, message }: FaultNote): string {
  return `Event ${eventKey} cannot be settled (${code}): ${message}`;
}
