/**
 * Shows what happens in a conversation: to a person as steps, to a program as entries. Rule: an entry is shown when it
 * is durable, each once; in JSON nothing but entries is on standard output.
 */
import type { Conversation } from '../conversation.ts';
import type { LogStore } from '../stores/store.ts';
import { Renderer } from './render.ts';
import type { Output, Screen } from './screen.ts';
import { jsonLine } from './terminal.ts';

export function followAsSteps(conversation: Conversation, from: number, screen: Screen): Renderer {
  const renderer = new Renderer(screen);
  for (const entry of conversation.log().slice(0, from)) renderer.recall(entry);
  conversation.live$.subscribe((signal) => renderer.signal(signal));
  conversation.log$(from).subscribe((entry) => renderer.entry(entry));
  return renderer;
}

export function followAsJson(conversation: Conversation, from: number, output: Output): void {
  conversation.log$(from).subscribe((entry) => output.write(`${jsonLine(entry)}\n`));
}

/** A store that knows how long a log was when it was opened, before anything was repaired in it. */
export function countingStore(store: LogStore): LogStore & { readonly found: number } {
  let found = 0;
  return {
    list: () => store.list(),
    delete: (id) => store.delete(id),
    async open(id) {
      const handle = await store.open(id);
      for await (const entry of handle.read()) found = entry.seq + 1;
      return handle;
    },
    get found() {
      return found;
    },
  };
}
