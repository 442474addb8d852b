/** Works on the numbers from 0 to below `count`, `atOnce` of them at the same time. */
export async function eachAtOnce(count: number, atOnce: number, work: (n: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let n = next++; n < count; n = next++) await work(n);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
