/**
 * A transport between two ends in one process. Rule: messages cross as JSON, so neither end can change the other's
 * objects. Messages that the client sent before its close are read.
 */
import { type Observable, ReplaySubject } from 'rxjs';
import type { Incoming, Outgoing, Transport } from './wireMessages.ts';

/** Creates a transport within one process, with a client for its other end. */
export function inProcessTransport(): {
  server: Transport;
  client: { send(message: Incoming): void; readonly messages$: Observable<Outgoing>; close(): void };
} {
  const incoming: Incoming[] = [];
  const outgoing = new ReplaySubject<Outgoing>();
  let wake = (): void => {};
  let isClosed = false;
  const close = (): void => {
    isClosed = true;
    outgoing.complete();
    wake();
  };
  const stop = (): void => {
    incoming.length = 0;
    close();
  };
  const copied = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
  return {
    server: {
      async *read() {
        for (;;) {
          const next = incoming.shift();
          if (next !== undefined) yield next;
          else if (isClosed) return;
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      },
      async write(message) {
        outgoing.next(copied(message));
      },
      close: async () => stop(),
    },
    client: {
      send(message) {
        if (isClosed) return;
        incoming.push(copied(message));
        wake();
      },
      messages$: outgoing.asObservable(),
      close,
    },
  };
}
