/** Lets so many in at once; others wait for their turn in the order in which they came. */
export type Turns = { take(): Promise<void>; give(): void };

export function openTurns(max: number): Turns {
  const waiting: (() => void)[] = [];
  let taken = 0;
  return {
    take: async () => {
      if (taken < max) taken++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
    },
    give: () => {
      const next = waiting.shift();
      if (next === undefined) taken--;
      else next();
    },
  };
}
