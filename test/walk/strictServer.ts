/**
 * A strict chat completions server on the loopback. Invariant: a request with any fault is a 400 and is recorded. The
 * walker of its path determines every other answer: bytes, pauses and the end.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { requestFaults } from './requestFaults.ts';

/** A piece of an answer: bytes to send, or an act before the next piece. */
export type Piece = string | (() => unknown);
export interface Answer {
  status: number;
  headers: { [name: string]: string };
  pieces: readonly Piece[];
  /** The end of the body: regular, or a broken connection. */
  end: 'whole' | 'cut';
}

export interface WalkServer {
  /** The address for the requests of this walk. */
  baseURL(walk: string): string;
  /** The walker that answers them; `refused` receives the faults of a refused request. */
  serve(walk: string, answer: (body: unknown) => Answer, refused: (faults: string[]) => void): void;
  forget(walk: string): void;
  close(): Promise<void>;
}

async function send(response: ServerResponse, { status, headers, pieces, end }: Answer): Promise<void> {
  response.writeHead(status, headers);
  for (const piece of pieces) {
    if (response.destroyed) return;
    if (typeof piece === 'string') response.write(piece);
    else await piece();
  }
  if (end === 'whole') return void response.end();
  // Written bytes leave first; then the connection breaks.
  await new Promise((resolve) => response.write('\n', resolve));
  response.destroy();
}

const json = { 'content-type': 'application/json' };
const refusal = (faults: string[]): Answer => ({
  status: 400,
  headers: json,
  pieces: [JSON.stringify({ error: { message: faults.join('; '), type: 'invalid_request_error' } })],
  end: 'whole',
});

export async function walkServer(): Promise<WalkServer> {
  const walks = new Map<string, { answer(body: unknown): Answer; refused(faults: string[]): void }>();
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const walk = walks.get(request.url?.split('/')[1] ?? '');
    // The requesting process has been killed.
    if (!walk) return void response.destroy();
    const body: unknown = JSON.parse(text);
    const faults = requestFaults(body);
    if (faults.length > 0) walk.refused(faults);
    await send(response, faults.length > 0 ? refusal(faults) : walk.answer(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseURL: (walk) => `http://127.0.0.1:${port}/${walk}/v1`,
    serve: (walk, answer, refused) => void walks.set(walk, { answer, refused }),
    forget: (walk) => void walks.delete(walk),
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
