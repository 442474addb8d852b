import { startReceiver } from './hook.ts';

export type HookProxy = {
  /** The address to give to the service instead of settled's. */
  through(settledsUrl: string): string;
  /** From now on every delivery is answered 503. */
  shut(): void;
  open(): void;
};

/**
 * A proxy in front of settled's webhook address that can be shut. It is open at first.
 *
 * @param onPassed called when settled has answered a delivery, before the answer goes back
 */
export async function startHookProxy(onPassed: () => void = () => {}): Promise<HookProxy> {
  const receiver = await startReceiver();
  let origin = '';
  const open = () =>
    receiver.answerWith(({ path, headers, body }, response) => {
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
      return new URL(url.pathname, receiver.url).href;
    },
    shut: () => receiver.answerWith(503),
    open,
  };
}
