import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A page of the feed, as the shop has just been given it. */
export type GivenPage = { notices: number; cursor: string };

export type FeedProxy = {
  /** settled's private API for the shop. */
  readonly url: string;
  /** Is told of each page with notices when its last byte is on the way. */
  onPage: (page: GivenPage) => void;
  close(): void;
};

/** Stands between a shop and settled's private API, so that a shop can be killed with a page of the feed in its hands. */
export async function startFeedProxy(apiUrl: string): Promise<FeedProxy> {
  const server = createServer((request, response) => {
    void passOn(request, response).catch(() => response.destroy());
  });

  async function passOn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { method = 'GET', url: path = '', headers } = request;
    const body = Buffer.concat(await request.toArray());
    const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...kept } = headers;
    const answer = await fetch(`${apiUrl}${path}`, {
      method,
      headers: kept as Record<string, string>,
      body: method === 'GET' ? null : body,
      signal: gone.signal,
    });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const { 'content-encoding': _____, 'transfer-encoding': ______, ...shown } = Object.fromEntries(answer.headers);
    response.writeHead(answer.status, { ...shown, 'content-length': bytes.length });
    response.end(bytes, () => {
      if (!path.startsWith('/v1/feed') || answer.status !== 200) return;
      const { notices, cursor } = JSON.parse(String(bytes));
      if (notices.length > 0) proxy.onPage({ notices: notices.length, cursor });
    });
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: FeedProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    onPage: () => {},
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return proxy;
}
