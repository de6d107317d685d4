/** A page without a screen: its received messages, over a real socket or over a test's channel. */
import { WebSocket } from 'ws';
import type { FromPage, ToPage } from '../../src/inspect/wire.ts';

type Of<Type extends ToPage['type']> = Extract<ToPage, { type: Type }>;
type Asked<Request = Exclude<FromPage, { type: 'subscribe' }>> = Request extends unknown ? Omit<Request, 'ask'> : never;

export class Watcher {
  readonly messages: ToPage[] = [];
  /** Characters of the largest frame. */
  largest = 0;
  readonly #socket: WebSocket;
  #wakes: (() => void)[] = [];
  #asks = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (bytes) => {
      const text = String(bytes);
      this.largest = Math.max(this.largest, text.length);
      this.messages.push(...(JSON.parse(text) as ToPage[]));
      for (const wake of this.#wakes.splice(0)) wake();
    });
  }

  /** `url`: that of the page. */
  static async open(url: string, from: number | undefined = 0, session?: string): Promise<Watcher> {
    const socket = new WebSocket(url.replace('http', 'ws').replace('/?', '/ws?'));
    const watcher = new Watcher(socket);
    await new Promise((resolve, reject) => void socket.once('open', resolve).once('error', reject));
    if (from !== undefined) watcher.say({ type: 'subscribe', from, ...(session && { session }) });
    return watcher;
  }

  say(message: object | string): void {
    this.#socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Resolves with the first matching message, received or future. */
  async see<Type extends ToPage['type']>(
    type: Type,
    fits: (message: Of<Type>) => boolean = () => true,
  ): Promise<Of<Type>> {
    for (;;) {
      const found = this.all(type).find(fits);
      if (found) return found;
      await new Promise<void>((resolve) => {
        this.#wakes.push(resolve);
      });
    }
  }

  all<Type extends ToPage['type']>(type: Type): Of<Type>[] {
    return this.messages.filter((message): message is Of<Type> => message.type === type);
  }

  async ask(request: Asked): Promise<Of<'answer'> | Of<'refused'>> {
    this.#asks += 1;
    const ask = this.#asks;
    this.say({ ...request, ask });
    const isAnswer = (message: { ask: number }): boolean => message.ask === ask;
    return Promise.race([this.see('answer', isAnswer), this.see('refused', isAnswer)]);
  }

  close(): void {
    this.#socket.terminate();
  }
}
