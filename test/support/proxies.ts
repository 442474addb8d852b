import { createServer, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';
import { listen, type Passed, passOn } from './network.ts';
import { startReceiver } from './receiver.ts';

type Asked = { method: string; path: string };

/** Answers instead of the service; `pass` asks the service. Undefined passes the service's answer on unchanged. */
type Handler = (
  asked: Asked,
  pass: () => Promise<Passed>,
  response: ServerResponse,
  /** The request's body. */
  body: string,
) => Promise<Passed | 'answered' | undefined>;

export type ServiceProxy = {
  /** The address to give to settled instead of the service's. */
  url: string;
  answerWith(handler: Handler): void;
  /** Passes everything on, as in the beginning. */
  passAll(): void;
};

/** A proxy in front of the service's API. It passes everything on until `answerWith` changes that. */
export async function startServiceProxy(serviceUrl: () => string): Promise<ServiceProxy> {
  const passAll: Handler = async () => undefined;
  let handler = passAll;
  const server = createServer(async (request, response) => {
    // The service's answers have a date of their own, by its clock.
    response.sendDate = false;
    const body = Buffer.concat(await request.toArray());
    const { method = 'GET', url: path = '/' } = request;
    const pass = () => passOn(serviceUrl() + path, request, body);
    const answer = (await handler({ method, path }, pass, response, body.toString())) ?? (await pass());
    if (answer === 'answered') return;
    response.writeHead(answer.status, answer.headers).end(answer.text);
  });
  const { url, close } = await listen(server);
  onTestFinished(close);
  return {
    url,
    answerWith: (given) => {
      handler = given;
    },
    passAll: () => {
      handler = passAll;
    },
  };
}

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
      void passOn(`${origin}${path}`, { method: 'POST', headers }, body).then(({ status, text }) => {
        onPassed();
        response.writeHead(status).end(text);
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
