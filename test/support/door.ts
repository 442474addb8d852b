import { startReceiver } from './hook.ts';

export type Door = {
  /** The address to give to the service in place of settled's own. */
  through(settledsUrl: string): string;
  /** What comes is answered 503 from now on. */
  shut(): void;
  open(): void;
};

/**
 * A door before settled's hook. It is open at first.
 *
 * @param onPassed called when settled has answered a delivery, before the answer goes back
 */
export async function startDoor(onPassed: () => void = () => {}): Promise<Door> {
  const door = await startReceiver();
  let origin = '';
  const open = () =>
    door.answerWith(({ path, headers, body }, response) => {
      const { host: _, connection: __, 'content-length': ___, ...kept } = headers;
      const sent = fetch(`${origin}${path}`, { method: 'POST', headers: kept as Record<string, string>, body });
      void sent.then(async (answer) => {
        const text = await answer.text();
        onPassed();
        response.writeHead(answer.status).end(text);
      });
      return undefined;
    });
  open();
  return {
    through: (settledsUrl) => {
      const url = new URL(settledsUrl);
      origin = url.origin;
      return new URL(url.pathname, door.url).href;
    },
    shut: () => door.answerWith(503),
    open,
  };
}
