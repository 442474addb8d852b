import { createRequire } from 'node:module';
import type * as PromClient from 'prom-client';

/**
 * The parts of prom-client that settled counts with. Its main file also loads what Node's own metrics need, with all of
 * OpenTelemetry's API: 15 MiB and a tenth of a start, which only the first scrape has to pay.
 */
const load = createRequire(import.meta.url);
export const Counter = load('prom-client/lib/counter.js') as typeof PromClient.Counter;
export const Gauge = load('prom-client/lib/gauge.js') as typeof PromClient.Gauge;
const Histogram = load('prom-client/lib/histogram.js') as typeof PromClient.Histogram;
export const Registry = load('prom-client/lib/registry.js') as typeof PromClient.Registry;
export type Gauge = PromClient.Gauge;
export type Registry = PromClient.Registry;

/** Makes one metric of each kind. */
export type NewMetrics = ReturnType<typeof newMetrics>;

/** From a commit on a fast disk to what a caller may wait for. */
const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Makes metrics that are read with these registers. */
export function newMetrics(registers: [Registry]) {
  const counter = <T extends string>(name: string, help: string, labelNames: readonly T[] = []) =>
    new Counter({ name, help, labelNames, registers });
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });
  return {
    counter,
    histogram,
    seconds: (name: string, help: string) => histogram(name, help, LATENCY_SECONDS),
    gauge: (name: string, help: string) => new Gauge({ name, help, registers }),
    /** Shows each value of the label as 0 from the start: the increase of a series begins with its second sample. */
    by: <T extends string>(label: T, values: readonly string[], name: string, help: string) => {
      const made = counter<string>(name, help, [label]);
      for (const value of values) made.inc({ [label]: value }, 0);
      return made;
    },
  };
}
