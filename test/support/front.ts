import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** What the service answered. */
export type Passed = { status: number; headers: Record<string, string>; text: string };

type Asked = { method: string; path: string };

/** Answers in place of the service; `pass` asks it. Undefined: what it answers goes back as it is. */
type Handler = (
  asked: Asked,
  pass: () => Promise<Passed>,
  response: ServerResponse,
  /** Of the request. */
  body: string,
) => Promise<Passed | 'answered' | undefined>;

export type Front = {
  /** The address to give to settled in place of the service's. */
  url: string;
  answerWith(handler: Handler): void;
  /** Passes everything on, as at the start. */
  passAll(): void;
};

/** Stands before the service's API, and passes on what it has no other order for. */
export async function startFront(serviceUrl: () => string): Promise<Front> {
  const passAll: Handler = async () => undefined;
  let handler = passAll;
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const { method = 'GET', url: path = '/', headers } = request;
    const { host: _, connection: __, 'content-length': ___, ...kept } = headers;
    const pass = async (): Promise<Passed> => {
      const sent = { method, headers: kept as Record<string, string> };
      const answer = await fetch(serviceUrl() + path, body.length === 0 ? sent : { ...sent, body });
      const { connection: _, 'content-length': __, ...given } = Object.fromEntries(answer.headers);
      return { status: answer.status, headers: given, text: await answer.text() };
    };
    const answer = (await handler({ method, path }, pass, response, body.toString())) ?? (await pass());
    if (answer === 'answered') return;
    response.writeHead(answer.status, answer.headers).end(answer.text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith: (given) => {
      handler = given;
    },
    passAll: () => {
      handler = passAll;
    },
  };
}
