/**
 * A conversation behind a server. Invariant: an act whose answer is lost is repeated under its id, and the server acts on it
 * once. After `close` no connection and no timer is left; runs continue on the server.
 */
import type { Observable } from 'rxjs';
import { RemoteConversation } from '../remote/remoteConversation.ts';
import type { Ports } from '../runtime/hostPorts.ts';
import { type ConnectionState, RemoteConnection } from './remoteConnection.ts';
import type { ServerCalls } from './serverCalls.ts';

export interface ServerOptions {
  id: string;
  calls: ServerCalls;
  silenceMs: number;
  setTimer: Ports['setTimer'];
  newId: Ports['newId'];
  report(error: unknown): void;
  closed(): void;
}

/**
 * A conversation of a server, with the members of a local one. `Output`: the type of final answers, where the agent has a
 * schema for them.
 */
export class ServerConversation<Output = unknown> extends RemoteConversation<Output> {
  /** The current state of the connection, then each change. */
  readonly connection$: Observable<ConnectionState>;
  readonly #connection: RemoteConnection;
  readonly #calls: ServerCalls;
  readonly #closed: () => void;

  constructor(options: ServerOptions) {
    const link = new RemoteConnection(options);
    super({ ...options, link });
    this.#connection = link;
    this.#calls = options.calls;
    this.#closed = options.closed;
    this.connection$ = link.state$;
  }

  /** Connects; resolves when the entries that the server has now are here. */
  async begin(entries: number): Promise<this> {
    this.#connection.begin();
    // The first event of the connection names the log and its length.
    await this.#connection.upTo(entries);
    const { error } = this.connection;
    if (error) throw error;
    return this;
  }

  /** Whether the events of the server arrive. */
  get connection(): ConnectionState {
    return this.#connection.state;
  }

  /**
   * The URL of the bytes of an image or a file of this conversation, for `<img src>` or `<a href download>`: an address of the
   * server, a `data:` URL, or the URL that the part has. A request to the server needs the same authorization as every other one.
   */
  attachmentURL({ mediaType, data }: { mediaType: string; data: string }): string {
    const [scheme = '', hash] = data.split(':', 2);
    // Base64 has no colon, unlike URLs and references.
    if (hash === undefined) return `data:${mediaType};base64,${data}`;
    if (/^(https?|data)$/i.test(scheme)) return data;
    return this.#calls.addressOf(`/conversations/${encodeURIComponent(this.id)}/blobs/${encodeURIComponent(hash)}`);
  }

  override async close(): Promise<void> {
    await super.close();
    this.#closed();
  }
}
