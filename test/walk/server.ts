/**
 * A chat completions server on the loopback that is strict. Rule: a request with any fault is a 400 and is written
 * down; every other one is answered as the walker of its path says, bytes and pauses, broken or whole.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { requestFaults } from './strict.ts';

/** A piece of an answer: bytes to send, or something to do before the next piece. */
export type Piece = string | (() => unknown);
export interface Answer {
  status: number;
  headers: { [name: string]: string };
  pieces: readonly Piece[];
  /** How the body ends: as it should, or with the connection cut. */
  end: 'whole' | 'cut';
}

export interface WalkServer {
  /** Where the requests of this walk go. */
  baseURL(walk: string): string;
  /** Who answers them; the faults of a refused request are told to `refused`. */
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
  // What was written leaves first; then the connection goes.
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
    // The process that asked has been killed.
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
