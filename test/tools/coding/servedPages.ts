/** A server on this machine with one page, and calls of WebFetch that may reach exactly that server. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Network } from '../../../src/tools/coding/web/pageRequest.ts';
import { isPublicAddress } from '../../../src/tools/coding/web/publicAddress.ts';
import { webFetchTool } from '../../../src/tools/coding/web/webFetch.ts';
import { answerOf, definitionOf, type ToolContext } from '../../../src/tools/tool.ts';

/** A server on this machine that the name `site.test` leads to, and a network that may reach exactly that. */
export async function site(listener: RequestListener, names: { [host: string]: string[] } = {}) {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.headers.host} ${request.url}`);
    listener(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  const { port } = server.address() as AddressInfo;
  const resolved: string[] = [];
  const network: Network = {
    resolve: async (host) => {
      resolved.push(host);
      const [next = '127.0.0.1', ...others] = names[host] ?? [];
      if (others.length > 0) names[host] = others;
      return [{ address: next, family: 4 }];
    },
    isAllowed: (address, at) => isPublicAddress(address) || (address === '127.0.0.1' && at === port),
  };
  return {
    port,
    requests,
    resolved,
    network,
    at: (path: string, host = 'site.test') => `http://${host}:${port}${path}`,
  };
}

export async function fetched(network: Network, url: string, more: object = {}, signal = new AbortController().signal) {
  const definition = definitionOf(webFetchTool(network));
  const checked = await definition?.parameters['~standard'].validate({ url, ...more });
  if (!definition || !checked || checked.issues) return { code: 'invalid', text: '' };
  const answer = answerOf(await definition.execute(checked.value, { signal } as ToolContext));
  if (!answer || answer.status === 'pending') throw new Error('no result');
  return { code: answer.status === 'error' ? answer.code : undefined, text: String(answer.content) };
}
export const html = (body: string, type = 'text/html'): RequestListener => {
  return (_, response) => void response.setHeader('content-type', type).end(body);
};
