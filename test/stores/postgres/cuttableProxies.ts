/**
 * The proxies between clients, processes and the database in a test: a round-robin proxy before the processes, and a line to the database
 * for each process, which can be cut. Rule: a cut line is silent, like a network that loses every packet; nothing is refused.
 */
import { once } from 'node:events';
import { createServer as createHttpServer, request, type Server } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Worker } from './workerProcesses.ts';

/** Each request goes to the next process. A request to a missing process is answered 502. */
export async function roundRobin(workers: () => readonly Worker[]): Promise<{ base: string; close(): void }> {
  let turn = 0;
  const server: Server = createHttpServer((asked, answer) => {
    turn += 1;
    const all = workers();
    const worker = all[turn % Math.max(1, all.length)];
    const fail = (): void => {
      if (answer.headersSent) return void answer.destroy();
      answer.writeHead(502).end();
    };
    if (!worker) return fail();
    const { method, url, headers } = asked;
    const onward = request({ host: '127.0.0.1', port: worker.port, method, path: url, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.on('error', fail);
      response.on('aborted', fail);
      response.pipe(answer);
    });
    onward.on('error', fail);
    answer.on('close', () => onward.destroy());
    asked.pipe(onward);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

export interface DatabaseLine {
  port: number;
  /** Cuts the line: nothing passes any more. */
  cut(): void;
  /** Connections that were cut are lost; new ones pass. */
  mend(): void;
  close(): void;
}

/** `host`: the directory of the server's socket. */
export async function databaseLine(host: string): Promise<DatabaseLine> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((socket) => {
    const database = connect(join(host, '.s.PGSQL.5432'));
    for (const [one, other] of [
      [socket, database],
      [database, socket],
    ] as const) {
      sockets.add(one);
      one.on('data', (bytes) => void (isCut || other.write(bytes)));
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true;
    },
    mend: () => {
      for (const socket of sockets) socket.destroy();
      isCut = false;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
