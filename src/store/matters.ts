import type { CheckReason } from '../domain/check.ts';

/** A request for a check; `confirms`: a completion waits for the API's answer, and is held if that never comes. */
export type CheckRequest = { linkKey: number; reason: CheckReason; atMs: number; confirms?: boolean };

/** A standing matter for a person. */
export type Matter = { subject: string; detail: string; atMs: number };
