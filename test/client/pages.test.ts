/** The pages of a list that a client asks for, over a server that has any number of rows. */
import { expect, it } from 'vitest';
import { connect } from '../../src/client/index.ts';

/** The most rows that the server gives for one request, as `createHandlers` does. */
const PAGE_MOST = 1000;

/** A server with this number of rows, which refuses a limit that `createHandlers` refuses. */
function listOf(count: number) {
  const limits: number[] = [];
  const send = async (address: string | URL | Request): Promise<Response> => {
    const { searchParams } = new URL(String(address));
    const limit = Number(searchParams.get('limit'));
    limits.push(limit);
    if (!(Number.isInteger(limit) && limit >= 1 && limit <= PAGE_MOST)) return new Response('{}', { status: 400 });
    const from = Number(searchParams.get('cursor') ?? -1) + 1;
    const rows = Array.from({ length: Math.max(0, Math.min(limit, count - from)) }, (_, at) => ({
      id: `c${from + at}`,
      cursor: `${from + at}`,
    }));
    return Response.json(rows);
  };
  return { client: connect({ baseURL: 'http://x', fetch: send as typeof fetch }), limits };
}

const COUNTS = [0, 1, 999, 1000, 1001, 2000, 2500];
const LIMITS = [undefined, 1, 999, 1000, 1001, 1500, 2000, 2001, 5000];

it.each(COUNTS)('of %i rows a list has as many as its limit, in order and each once', async (count) => {
  for (const limit of LIMITS) {
    const { client, limits } = listOf(count);
    const rows = await client.list(limit === undefined ? {} : { limit });
    const wanted = Math.min(count, limit ?? count);
    expect([limit, rows.map(({ id }) => id)]).toEqual([limit, Array.from({ length: wanted }, (_, at) => `c${at}`)]);
    // No row beyond the limit is requested.
    expect(limits.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(limit ?? count + PAGE_MOST);
  }
});
